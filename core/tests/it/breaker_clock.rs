//! When an endpoint counts as failing for so long that it is given up.

use hookproof_core::classify::Signal;
use hookproof_core::gate::{
    BreakerRule, Cause, ClockRule, DisableRule, Gate, StoredBreaker, Transition, known_rules,
};
use hookproof_core::time::Millis;
use proptest::prelude::*;

use crate::breaker::{attempt, with};
use crate::given::{at, laws, ms};

use Signal::{Failure, Neither, Success};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// At which of the attempts the endpoint is given up, and after which time of nothing but failures.
fn gives_up(breaker: &BreakerRule, attempts: &[(i64, Signal)]) -> Option<(i64, Millis)> {
    let rule = with(breaker.clone());
    let mut gate = Gate::default();
    attempts.iter().find_map(|(now, signal)| {
        let moved = attempt(&mut gate, &rule, at(*now), *signal).expect("it is closed");
        // What was stored is as good as what is in memory.
        let stored = serde_json::to_string(&gate.stored()).expect("it can be written");
        gate = Gate::restored(serde_json::from_str::<StoredBreaker>(&stored).expect("and read"));
        match moved {
            Some(Transition::Disabled { why: Cause::FailingFor { span } }) => Some((*now, span)),
            other => {
                assert_eq!(other, None);
                None
            }
        }
    })
}

fn five_days(attempts: &[(i64, Signal)]) -> Option<i64> {
    let known = known_rules().into_iter().find(|known| known.name == "svix").expect("it is known");
    gives_up(&known.rule, attempts).map(|(now, _)| now)
}

#[test]
fn five_days_of_nothing_but_failures_give_up_counted_from_the_one_that_starts_the_clock() {
    // The clock starts after 12 h, so the endpoint is given up 5 days after that.
    let start = [(0, Failure), (12 * HOUR, Failure)];
    let then = |more: &[(i64, Signal)]| five_days(&[&start, more].concat());
    let end = 12 * HOUR + 5 * DAY;
    assert_eq!(then(&[(5 * DAY, Failure), (end - 1, Failure)]), None);
    assert_eq!(then(&[(5 * DAY, Failure), (end, Failure)]), Some(end));
    assert_eq!(then(&[(DAY, Success), (end, Failure)]), None);
    assert_eq!(then(&[(end, Neither)]), None);
}

#[test]
fn a_short_outage_starts_no_clock_however_many_attempts_fail_in_it() {
    let mut attempts: Vec<_> = (0..12).map(|hour| (hour * HOUR, Failure)).collect();
    attempts.push((12 * HOUR - 1, Failure));
    attempts.push((9 * DAY, Failure));
    assert_eq!(five_days(&attempts), None);
    // Nor does an endpoint with little traffic: one failure in more than a day.
    let rare: Vec<_> = (0..30).map(|failure| (failure * (DAY + 1), Failure)).collect();
    assert_eq!(five_days(&rare), None);
    let daily: Vec<_> = (0..30).map(|failure| (failure * DAY, Failure)).collect();
    assert_eq!(five_days(&daily), Some(6 * DAY));
}

#[test]
fn the_end_of_an_outage_and_the_begin_of_the_next_can_start_the_clock() {
    // 11 h of failures, then 13 h 30 min of quiet: the first is too old, the last is not.
    let attempts = [(0, Failure), (11 * HOUR, Failure), (24 * HOUR + HOUR / 2, Failure)];
    let end = 24 * HOUR + HOUR / 2 + 5 * DAY;
    assert_eq!(five_days(&[&attempts[..], &[(end, Failure)]].concat()), Some(end));
}

#[test]
fn without_a_clock_the_first_failure_counts_and_so_many_are_needed() {
    let disable =
        Some(DisableRule { failing_for: ms(50), failures_min: 3, ..DisableRule::default() });
    let rule = BreakerRule { failures_in_a_row: 0, disable, ..BreakerRule::default() };
    assert_eq!(gives_up(&rule, &[(0, Failure), (60, Failure)]), None);
    let three = [(0, Failure), (60, Failure), (70, Failure)];
    assert_eq!(gives_up(&rule, &three), Some((70, ms(70))));
}

#[test]
fn a_clock_of_the_machine_that_is_set_back_does_not_make_two_failures_lie_apart() {
    let back = [(20 * HOUR, Failure), (0, Failure), (12 * HOUR - 1, Failure), (9 * DAY, Failure)];
    assert_eq!(five_days(&back), None);
}

/// What the rule says, read out of all failures anew.
fn naive(clock: &ClockRule, failing_for: i64, attempts: &[(i64, Signal)]) -> Option<(i64, Millis)> {
    let [within, apart] =
        [clock.within, clock.apart].map(|span| i64::try_from(span.get()).expect("it is short"));
    let mut failures: Vec<i64> = Vec::new();
    let mut since = None;
    for (now, signal) in attempts {
        match signal {
            Neither => {}
            Success => {
                failures.clear();
                since = None;
            }
            Failure => {
                let starts = failures.iter().any(|then| (apart..=within).contains(&(now - then)));
                if since.is_none() && starts {
                    since = Some(*now);
                }
                failures.push(*now);
            }
        }
        let span = since.map(|since| now - since);
        if let Some(span) = span.filter(|span| *signal == Failure && *span >= failing_for) {
            return Some((*now, ms(u64::try_from(span).expect("time goes on"))));
        }
    }
    None
}

fn attempts() -> impl Strategy<Value = Vec<(i64, Signal)>> {
    let signal = prop_oneof![12 => Just(Failure), 1 => Just(Success), 2 => Just(Neither)];
    let gap = prop_oneof![4 => 0..6_i64, 2 => 0..30_i64, 1 => 0..90_i64];
    proptest::collection::vec((gap, signal), 0..40).prop_map(|steps| {
        let mut now = 0;
        let step = |(gap, signal)| {
            now += gap;
            (now, signal)
        };
        steps.into_iter().map(step).collect()
    })
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn the_clock_starts_where_all_failures_together_say_so(
        apart in 1..20_u64,
        more in 0..30_u64,
        failing_for in 1..60_u64,
        attempts in attempts(),
    ) {
        let clock = ClockRule { within: ms(2 * apart + more), apart: ms(apart) };
        let failing_for = ms(failing_for);
        let disable = DisableRule {
            failing_for,
            clock: Some(clock.clone()),
            ..DisableRule::default()
        };
        let rule = BreakerRule {
            failures_in_a_row: 0,
            disable: Some(disable),
            ..BreakerRule::default()
        };
        let expected = naive(&clock, i64::try_from(failing_for.get()).expect("it is short"), &attempts);
        prop_assert_eq!(gives_up(&rule, &attempts), expected);
    }
}
