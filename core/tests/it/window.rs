//! The breaker's sliding window: that it counts what is in it, all of it and nothing else.

use hookproof_core::classify::Signal;
use hookproof_core::gate::{Cause, Gate, StoredBreaker, Transition, WINDOW_INSTANTS_MAX};
use proptest::prelude::*;

use crate::breaker::{attempt, opens, windowed};
use crate::given::{at, check_round_trip, laws};

use Signal::{Failure, Neither, Success};

#[test]
fn a_share_is_one_of_all_outcomes_in_the_window_however_many_they_are() {
    let rule = windowed(60_000, 1, 50, 20);
    let attempts = [vec![(0, Success); 300], vec![(1_000, Failure); 300]].concat();
    let half = Cause::Window { failures: 300, attempts: 600 };
    assert_eq!(opens(&rule, &attempts), Some((1_000, half)));
    assert_eq!(opens(&rule, &attempts[..599]), None);
}

/// A failure every 2 ms, so many of them.
fn failures(count: i64) -> Vec<(i64, Signal)> {
    (0..count).map(|failure| (failure * 2, Failure)).collect()
}

#[test]
fn of_more_instants_than_are_kept_apart_none_is_lost_and_none_counts_much_longer() {
    // The window holds 4,000 of these failures. A part of it is 8 ms, so 4 of them.
    let all = Cause::Window { failures: 4_000, attempts: 4_000 };
    assert_eq!(opens(&windowed(8_000, 4_000, 0, 1), &failures(4_000)), Some((7_998, all)));
    assert_eq!(opens(&windowed(8_000, 4_005, 0, 1), &failures(20_000)), None);
}

#[test]
fn however_many_successes_there_are_failures_count_for_as_long_as_the_window_and_no_longer() {
    let rule = windowed(3_600_000, 3, 0, 4);
    let successes = (1..=3_000).map(|second| (second * 1_000, Success));
    let trace = |last| {
        let first = [(0, Failure), (500, Failure)];
        first.into_iter().chain(successes.clone()).chain([(last, Failure)]).collect::<Vec<_>>()
    };
    // By the last one, both of the first two have left the window, or one of them, or none.
    assert_eq!(opens(&rule, &trace(3_600_500)), None);
    assert_eq!(opens(&rule, &trace(3_600_000)), None);
    let three = Cause::Window { failures: 3, attempts: 3_003 };
    assert_eq!(opens(&rule, &trace(3_599_999)), Some((3_599_999, three)));
}

#[test]
fn no_more_instants_are_stored_than_are_kept_apart() {
    let rule = windowed(1_000_000, 1_000_000, 0, 1);
    let mut gate = Gate::default();
    for (now, signal) in failures(10_000) {
        assert_eq!(attempt(&mut gate, &rule, at(now), signal), Some(None));
    }
    let stored = serde_json::to_value(gate.stored()).unwrap();
    let instants = stored["history"]["ended"].as_array().unwrap();
    assert!(instants.len() <= WINDOW_INSTANTS_MAX, "{}", instants.len());
    let count: u64 = instants.iter().map(|instant| instant[1].as_u64().unwrap()).sum();
    assert_eq!(count, 10_000);
}

#[test]
fn a_clock_that_is_set_back_lets_nothing_count_for_longer_than_the_window() {
    let rule = windowed(100, 3, 0, 1);
    assert_eq!(opens(&rule, &[(1_000_000, Failure), (500, Failure), (600, Failure)]), None);
    let three = Cause::Window { failures: 3, attempts: 3 };
    let within = [(1_000_000, Failure), (500, Failure), (599, Failure)];
    assert_eq!(opens(&rule, &within), Some((599, three)));
}

#[test]
fn a_window_that_was_stored_outcome_by_outcome_can_be_read() {
    let stored = |ended: &str| {
        let text = format!(r#"{{"state":"closed","failures":2,"history":{{"ended":{ended}}}}}"#);
        serde_json::from_str::<StoredBreaker>(&text).expect(ended)
    };
    let before = stored("[[3,false],[10,true],[10,true]]");
    assert_eq!(before, stored("[[3,0,1],[7,2,2]]"));
    let mut gate = Gate::restored(before);
    let moved = attempt(&mut gate, &windowed(100, 3, 75, 4), at(11), Failure);
    let why = Cause::Window { failures: 3, attempts: 4 };
    let is_it = |moved| matches!(moved, Transition::Opened { why: told, .. } if told == why);
    assert!(moved.flatten().is_some_and(is_it), "{moved:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..laws() })]

    /// The successes are many more than are kept apart.
    #[test]
    fn failures_among_thousands_of_successes_are_counted_as_naively(
        mut failing in prop::collection::btree_set(0..20_000_i64, 1..60),
        most in 2..6_u32,
        within in 500..8_000_u64,
    ) {
        failing.insert(20_000);
        let rule = windowed(within, most, 0, most + 1);
        let is_recent = |at: i64, now: i64| u64::try_from(now - at).is_ok_and(|age| age < within);
        let naive = failing.iter().find(|now| {
            let count = failing.iter().filter(|at| **at <= **now && is_recent(**at, **now)).count();
            // There is a success at each millisecond, so there are attempts enough.
            count >= usize::try_from(most).unwrap_or(usize::MAX) && **now >= i64::from(most)
        });
        let trace: Vec<_> = (0..=20_000)
            .map(|at| (at, if failing.contains(&at) { Failure } else { Success }))
            .collect();
        prop_assert_eq!(opens(&rule, &trace).map(|(at, _)| at), naive.copied());
    }
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn a_window_opens_exactly_when_a_naive_count_says_so(
        within in 1..60_u64,
        failures in prop_oneof![1..5_u32, 1..400_u32],
        share_percent in prop_oneof![Just(0_u8), 0..=100_u8],
        attempts_min in prop_oneof![1..6_u32, 1..600_u32],
        steps in proptest::collection::vec(
            (0..30_i64, 0..3_u8, prop_oneof![19 => Just(1_u32), 1 => 1..400_u32]),
            0..60,
        ),
    ) {
        let rule = windowed(within, failures, share_percent, attempts_min);
        let mut gate = Gate::default();
        let mut history: Vec<(i64, bool)> = Vec::new();
        let mut now = 0;
        'steps: for (pause, kind, times) in steps {
            now += pause;
            let signal = [Failure, Success, Neither][usize::from(kind)];
            for _ in 0..times {
                if signal != Neither {
                    history.push((now, signal == Failure));
                }
                let recent: Vec<_> = history
                    .iter()
                    .filter(|(then, _)| now - then < i64::try_from(within).unwrap())
                    .collect();
                let failed = recent.iter().filter(|(_, failed)| *failed).count();
                let expected = signal == Failure
                    && failed >= failures as usize
                    && recent.len() >= attempts_min as usize
                    && failed * 100 >= usize::from(share_percent) * recent.len();
                let moved = attempt(&mut gate, &rule, at(now), signal).expect("it is closed");
                prop_assert_eq!(matches!(moved, Some(Transition::Opened { .. })), expected);
                if expected {
                    break 'steps;
                }
            }
            check_round_trip(&gate.stored())?;
        }
    }
}
