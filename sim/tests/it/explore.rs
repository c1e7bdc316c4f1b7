//! Exhaustive search: that it leaves nothing out, and what it finds.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use hookproof_runtime::crash_point::CrashPoint;
use hookproof_sim::choices::Choices;
use hookproof_sim::explore::tree::{self, End, Limits, Tally, Walked};
use hookproof_sim::explore::{self, Report, Search, Verdict};
use hookproof_sim::fault::{Fault, Faults};
use hookproof_sim::model::Options;
use hookproof_sim::zoo::{Killer, Mutant, ReceiverMutant, SenderMutant};

/// The values drawn on the way to each leaf, in the order in which leaves were visited.
#[derive(Default, PartialEq, Eq, Debug)]
struct Leaves(Vec<Vec<u64>>);

impl Tally for Leaves {
    fn merge(&mut self, later: Self) {
        self.0.extend(later.0);
    }
}

type Toy = fn(&Choices);

/// A toy tree, walked; a leaf for which `stops` holds ends the walk.
fn walked(
    toy: Toy,
    leaves_max: u64,
    (split_depth, jobs): (usize, usize),
    stops: fn(&[u64]) -> bool,
) -> Walked<Leaves> {
    let leaf = |choices: &Choices, leaves: &mut Leaves| {
        toy(choices);
        let values: Vec<u64> = choices.draws().iter().map(|draw| draw.value).collect();
        let is_last = stops(&values);
        leaves.0.push(values);
        if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    tree::walk(Limits { leaves_max, split_depth, jobs }, &leaf, &|_| {})
}

const NEVER: fn(&[u64]) -> bool = |_| false;
/// How a walk is shared: by how many decisions, among how many threads.
const SHARES: [(usize, usize); 8] =
    [(0, 1), (1, 1), (2, 1), (100, 1), (0, 2), (1, 3), (2, 2), (100, 4)];

/// All of 3 · 2 · 4.
fn even(choices: &Choices) {
    for bound in [3, 2, 4] {
        choices.draw("toy", "even", bound);
    }
}

/// As many bits as the first draw says.
fn ragged(choices: &Choices) {
    for _ in 0..choices.draw("toy", "how many", 5) {
        choices.draw("toy", "bit", 2);
    }
}

/// The orders of five things.
fn orders(choices: &Choices) {
    for left in (1..=5).rev() {
        choices.draw("toy", "next", left);
    }
}

/// At most two of ten.
fn two_of_ten(choices: &Choices) {
    let mut left = 2;
    for _ in 0..10 {
        if left > 0 && choices.chance("toy", "this one", 1) {
            left -= 1;
        }
    }
}

/// Nothing to decide.
fn straight(choices: &Choices) {
    choices.draw("toy", "one alternative", 1);
    choices.pick("toy", "one weight", &[0, 7, 0]);
    choices.bits("toy", "a name");
}

#[test]
fn each_leaf_of_a_tree_is_visited_once_and_in_order() {
    let check = |toy: Toy, count: usize, depth: usize| {
        for share in SHARES {
            let found = walked(toy, 1000, share, NEVER);
            assert_eq!(found.end, End::Finished);
            assert_eq!((found.tally.0.len(), found.depth), (count, depth), "{share:?}");
            assert_eq!(found.leaves, u64::try_from(count).unwrap());
            assert!(found.tally.0.is_sorted(), "{share:?}");
            let different: BTreeSet<_> = found.tally.0.iter().collect();
            assert_eq!(different.len(), count, "{share:?}");
        }
    };
    check(even, 3 * 2 * 4, 3);
    check(ragged, 1 + 2 + 4 + 8 + 16, 5);
    check(orders, 5 * 4 * 3 * 2, 4);
    check(two_of_ten, 1 + 10 + 10 * 9 / 2, 10);
    check(straight, 1, 0);
}

#[test]
fn a_bound_cuts_the_same_leaves_off_however_the_tree_is_shared() {
    let all = walked(ragged, 1000, (0, 1), NEVER).tally.0;
    for share in SHARES {
        for (bound, taken) in (0_u64..32).zip(0_usize..) {
            let found = walked(ragged, bound, share, NEVER);
            let end = if bound < 31 { End::Bound } else { End::Finished };
            assert_eq!(found.end, end, "{bound} {share:?}");
            assert_eq!(found.tally.0, all[..taken], "{bound} {share:?}");
        }
    }
}

#[test]
fn a_walk_stops_at_the_first_leaf_in_order_that_gives_reason_to() {
    for share in SHARES {
        let found = walked(orders, 1000, share, |values| values[1..4] == [2, 1, 1]);
        let End::Stopped(path) = &found.end else { panic!("{:?}", found.end) };
        let values: Vec<u64> = path.iter().map(|branch| branch.value).collect();
        assert_eq!(values, [0, 2, 1, 1], "{share:?}");
        assert_eq!(found.leaves, 16, "{share:?}");
    }
}

/// Piece 0 waits until the last one is being visited, and gives reason to stop; the last one lets it
/// go first.
#[test]
fn what_was_visited_ahead_of_a_leaf_that_ends_the_walk_does_not_count() {
    for _ in 0..50 {
        let (runs, ahead) = (AtomicU64::new(0), AtomicU64::new(0));
        let leaf = |choices: &Choices, leaves: &mut Leaves| {
            let value = choices.draw("toy", "piece", 8);
            leaves.0.push(vec![value]);
            if value > 0 {
                let is_last = ahead.fetch_add(1, Ordering::Relaxed) + 1 == 2 * 7;
                if is_last {
                    (0..1000).for_each(|_| std::thread::yield_now());
                }
                return ControlFlow::Continue(());
            }
            // The first run only finds out which decisions there are.
            if runs.fetch_add(1, Ordering::Relaxed) > 0 {
                while ahead.load(Ordering::Relaxed) < 2 * 7 {
                    std::thread::yield_now();
                }
            }
            ControlFlow::Break(())
        };
        let limits = Limits { leaves_max: 1000, split_depth: 1, jobs: 2 };
        let found = tree::walk(limits, &leaf, &|_| {});
        assert_eq!((found.leaves, found.tally), (1, Leaves(vec![vec![0]])));
    }
}

#[test]
fn a_run_that_its_choices_do_not_determine_is_noticed() {
    let runs = AtomicU64::new(0);
    let leaf = |choices: &Choices, _: &mut Leaves| {
        let bound = 2 + runs.fetch_add(1, Ordering::Relaxed) / 4;
        choices.draw("toy", "first", 3);
        choices.draw("toy", "second", bound);
        ControlFlow::Continue(())
    };
    let limits = Limits { leaves_max: 1000, split_depth: 0, jobs: 1 };
    let found = tree::walk(limits, &leaf, &|_| {});
    assert!(matches!(found.end, End::Strayed(_)), "{:?}", found.end);
}

fn search(name: &str) -> Search {
    let found = Search::find(name);
    found.unwrap_or_else(|| panic!("there is no search {name}"))
}

fn report(search: &Search, mutant: Option<Mutant>, jobs: usize) -> Report {
    explore::run(search, mutant, jobs, &|_| {})
}

/// The whole tree: as many histories as are told, and nothing wrong in any of them.
fn holds(name: &str) {
    let search = search(name);
    let report = report(&search, None, 2);
    assert_eq!(report.failure, None);
    assert_eq!(report.verdict, Verdict::Holds);
    assert_eq!(report.sum.histories, search.histories);
    for point in CrashPoint::ALL {
        assert!(report.sum.counts.crashed_at.contains_key(point), "no crash at {point}");
    }
}

#[test]
fn the_design_holds_in_each_of_the_695_histories_with_one_crash() {
    holds("one-crash");
    assert_eq!(search("one-crash").histories, 695);
}

#[test]
fn the_design_holds_in_each_of_the_14633_histories_with_two_crashes() {
    holds("two-crashes");
    assert_eq!(search("two-crashes").histories, 14_633);
}

/// All of it takes a quarter of a minute without optimisation, and is for `.ci/run`.
#[test]
fn the_design_holds_in_the_histories_of_two_events() {
    assert_eq!(search("two-events").histories, 24_049);
    if std::env::var_os("HOOKPROOF_CI").is_some() {
        return holds("two-events");
    }
    let search = Search { histories_max: 1500, ..search("two-events") };
    let report = report(&search, None, 2);
    assert_eq!(report.verdict, Verdict::Unfinished, "{:?}", report.failure);
    assert_eq!(report.sum.histories, 1500);
}

/// One crash, with these faults on connections.
fn with(faults: &[(Fault, u64)], crashes: u64) -> Report {
    let one = search("one-crash");
    let options = Options {
        faults: Some(Faults::fixed(faults)),
        crashes_in_all: Some(crashes),
        ..one.options.clone()
    };
    report(&Search { options, ..one }, None, 1)
}

#[test]
fn the_number_of_histories_is_what_counting_by_hand_gives() {
    // An attempt succeeds, loses its request or loses its response; after three the event is dead.
    let losses = [(Fault::RequestLost, 1), (Fault::ResponseLost, 1)];
    let report = with(&losses, 0);
    assert_eq!(report.sum.histories, 1 + 2 + 4 + 8);
    assert_eq!((report.crashed, report.depth), (0, 3));
    assert_eq!(report.sum.totals.dead, 8);
    // One crash at each point that is passed, and none.
    let crashes = [(Fault::SenderCrash, 1), (Fault::ReceiverCrash, 1)];
    let straight: u64 = with(&[], 0).sum.counts.passed.values().sum();
    let report = with(&crashes, 1);
    assert_eq!(report.sum.histories, 1 + straight);
    assert_eq!(report.crashed, straight);
}

#[test]
fn the_report_does_not_depend_on_the_number_of_threads() {
    let check = |mutant| {
        let told = |jobs| format!("{:?}", report(&search("one-crash"), mutant, jobs));
        assert_eq!(told(1), told(2));
        assert_eq!(told(1), told(5));
    };
    check(None);
    check(Some(Mutant::Receiver(ReceiverMutant::InsertThenProcess)));
    check(Some(Mutant::Sender(SenderMutant::TimersInMemory)));
}

/// The search finds a mutant, by what must find it, and the history can be run again by its draws.
fn is_found(name: &str, mutant: Mutant, within: u64) {
    let Killer::Invariants(expected) = mutant.killer() else { panic!("{mutant} is a harness") };
    let search = search(name);
    let report = report(&search, Some(mutant), 2);
    assert_eq!(report.verdict, Verdict::Violated, "{mutant}");
    assert!(report.sum.histories <= within, "{mutant} took {}", report.sum.histories);
    let Some(failure) = report.failure else { panic!("{mutant}: no failure is told") };
    assert!(expected.contains(&failure.violation.invariant), "{mutant}: {:?}", failure.violation);
    let again = search.history(&Choices::recorded(&failure.draws), Some(mutant), true);
    assert_eq!(again.violation, Some(failure.violation), "{mutant}");
    let right = search.history(&Choices::recorded(&failure.draws), None, false);
    assert_eq!(right.violation, None, "the design on the history of {mutant}");
}

#[test]
fn what_random_search_finds_is_found_in_few_histories() {
    is_found("one-crash", Mutant::Receiver(ReceiverMutant::InsertThenProcess), 30);
    is_found("one-crash", Mutant::Receiver(ReceiverMutant::ApplyThenMark), 5);
    is_found("one-crash", Mutant::Sender(SenderMutant::PersistThenFanOut), 700);
    is_found("one-crash", Mutant::Sender(SenderMutant::TimersInMemory), 200);
    is_found("one-crash", Mutant::Sender(SenderMutant::NoticeTwice), 200);
    is_found("two-events", Mutant::Receiver(ReceiverMutant::CheckThenInsert), 300);
}
