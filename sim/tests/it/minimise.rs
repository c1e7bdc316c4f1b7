//! A failing history is made small, and stays the same failure.

use hookproof_sim::choices::Draw;
use hookproof_sim::minimise::{Minimised, minimise};
use hookproof_sim::plan::Plan;
use hookproof_sim::scenario::shipped;
use hookproof_sim::suite::World;
use hookproof_sim::zoo::Mutant;

use crate::found;

/// More than any of these takes.
const RUNS_MAX: u64 = 5000;

fn smallest(id: &str) -> Minimised {
    minimise(&found::plan(id), RUNS_MAX, &mut || true).expect("the plan breaks its invariant")
}

/// Breaks the same invariant with few decisions, and with none of them less.
fn check(id: &str, decisions_max: usize, events: u64) {
    let Minimised { plan, history, is_minimal, .. } = smallest(id);
    assert!(is_minimal, "{id} was cut short");
    assert!(plan.is_broken_by(&history), "{id}: {:?}", history.violation);
    let count = plan.draws.len();
    assert!(count <= decisions_max, "{id} takes {count} decisions: {:?}", plan.draws);
    assert_eq!(plan.scenario.events, (events, events), "{id}");
    for left_out in 0..count {
        let mut without = plan.clone();
        without.draws.remove(left_out);
        let history = without.run(false);
        assert!(!plan.is_broken_by(&history), "{id} needs no {:?}", plan.draws[left_out]);
    }
    for (index, draw) in plan.draws.iter().enumerate().filter(|(_, draw)| draw.value > 0) {
        let mut lower = plan.clone();
        lower.draws[index] = Draw { value: draw.value - 1, ..*draw };
        assert!(!plan.is_broken_by(&lower.run(false)), "{id}: {draw:?} is not as low as it can be");
    }
}

#[test]
fn a_crash_of_the_receiver_takes_two_decisions_of_one_event() {
    check("R01", 2, 1);
    check("R05", 2, 1);
}

#[test]
fn a_lost_answer_takes_few_decisions_of_one_event() {
    check("R11", 2, 1);
    check("S04", 2, 1);
}

#[test]
fn a_crash_of_the_sender_takes_few_decisions_of_one_event() {
    check("S01", 2, 1);
    check("S17", 2, 1);
}

#[test]
fn a_stuck_probe_takes_few_decisions() {
    check("S21", 1, 1);
}

#[test]
fn what_needs_no_fault_needs_no_decision() {
    let Minimised { plan, .. } = smallest("S14");
    assert_eq!(plan.draws, []);
}

#[test]
fn making_it_small_gives_the_same_result_each_time() {
    let (one, other) = (smallest("R03"), smallest("R03"));
    assert_eq!(one.plan, other.plan);
    assert_eq!(one.history.hash, other.history.hash);
    assert_eq!(one.runs, other.runs);
}

#[test]
fn what_is_small_does_not_get_smaller() {
    let once = smallest("R03").plan;
    let twice = minimise(&once, RUNS_MAX, &mut || true).expect("it breaks its invariant");
    assert_eq!(once, twice.plan);
}

#[test]
fn a_search_that_is_cut_short_says_so_and_keeps_what_it_has() {
    let plan = found::plan("R05");
    let by_runs = minimise(&plan, 10, &mut || true).expect("ten histories suffice to begin");
    assert!(!by_runs.is_minimal);
    assert_eq!(by_runs.runs, 11, "ten, and the one with its trace");
    let mut asked = 0;
    let by_caller = minimise(&plan, RUNS_MAX, &mut || {
        asked += 1;
        asked <= 10
    });
    let by_caller = by_caller.expect("ten histories suffice to begin");
    assert!(!by_caller.is_minimal);
    assert_eq!(by_caller.plan, by_runs.plan);
    assert!(by_caller.plan.is_broken_by(&by_caller.history));
}

#[test]
fn a_plan_that_breaks_nothing_cannot_be_made_small() {
    let plan = Plan { mutant: None, ..found::plan("R05") };
    assert!(minimise(&plan, RUNS_MAX, &mut || true).is_none());
}

#[test]
fn a_seed_in_which_everything_holds_has_no_plan() {
    assert_eq!(Plan::of_seed(World::Model, &shipped::steady(), None, 0), None);
    let mutant = Mutant::find("S14");
    assert!(Plan::of_seed(World::Model, &shipped::steady(), mutant, 0).is_some());
}
