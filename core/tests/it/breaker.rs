//! The breaker's further rules: a sliding window, the growth of pauses, and giving up.

use hookproof_core::classify::{PRESETS, Signal};
use hookproof_core::gate::{
    Admission, Breaker, BreakerRule, Cause, ClockRule, DisableRule, Gate, GateRule, StoredBreaker,
    Transition, WindowRule, known_rules,
};
use hookproof_core::policy::Policy;
use hookproof_core::time::{Millis, Timestamp};

use crate::given::{at, check_round_trip, ms, secs};

pub(crate) fn with(breaker: BreakerRule) -> GateRule {
    GateRule { breaker: Some(breaker), ..GateRule::default() }
}

pub(crate) fn windowed(
    within: u64,
    failures: u32,
    share_percent: u8,
    attempts_min: u32,
) -> GateRule {
    let window = WindowRule { within: ms(within), failures, share_percent, attempts_min };
    with(BreakerRule { failures_in_a_row: 0, window: Some(window), ..BreakerRule::default() })
}

/// One attempt that begins and ends at once; `None` if it may not begin.
pub(crate) fn attempt(
    gate: &mut Gate,
    rule: &GateRule,
    now: Timestamp,
    signal: Signal,
) -> Option<Option<Transition>> {
    match gate.admit(rule, now, ms(1)) {
        Admission::Go(permit) => Some(gate.record(rule, now, permit, signal)),
        Admission::Defer { .. } => None,
    }
}

/// At which of the attempts the breaker opens, and why.
pub(crate) fn opens(rule: &GateRule, attempts: &[(i64, Signal)]) -> Option<(i64, Cause)> {
    let mut gate = Gate::default();
    attempts.iter().find_map(|(now, signal)| {
        match attempt(&mut gate, rule, at(*now), *signal).expect("it is closed") {
            Some(Transition::Opened { why, .. }) => Some((*now, why)),
            other => {
                assert_eq!(other, None);
                None
            }
        }
    })
}

use Signal::{Failure, Neither, Success};

#[test]
fn failures_within_the_window_open_the_breaker_whatever_lies_between() {
    let rule = windowed(100, 3, 0, 1);
    let opened = |attempts: &[(i64, Signal)]| opens(&rule, attempts);
    let three = Cause::Window { failures: 3, attempts: 3 };
    assert_eq!(
        opened(&[(0, Failure), (50, Success), (60, Failure), (99, Failure)]),
        Some((99, three))
    );
    assert_eq!(opened(&[(0, Failure), (50, Failure), (100, Failure)]), None);
    assert_eq!(opened(&[(0, Failure), (1, Failure), (2, Neither)]), None);
}

#[test]
fn case_34_a_share_needs_its_minimum_of_attempts() {
    let rule = windowed(100, 1, 50, 4);
    let opened = |attempts: &[(i64, Signal)]| opens(&rule, attempts);
    assert_eq!(opened(&[(0, Failure), (1, Failure), (2, Failure)]), None);
    let half = Cause::Window { failures: 2, attempts: 4 };
    assert_eq!(opened(&[(0, Success), (1, Success), (2, Failure), (3, Failure)]), Some((3, half)));
    let mut less = vec![(0, Success), (1, Success), (2, Success), (3, Failure), (4, Failure)];
    assert_eq!(opened(&less), None);
    less.push((101, Failure));
    // The first two have left: three of four.
    assert_eq!(opened(&less), Some((101, Cause::Window { failures: 3, attempts: 4 })));
}

#[test]
fn a_window_outlives_a_restart() {
    let rule = windowed(100, 2, 0, 1);
    let mut gate = Gate::default();
    assert_eq!(attempt(&mut gate, &rule, at(0), Failure), Some(None));
    let json = serde_json::to_string(&gate.stored()).unwrap();
    let mut gate = Gate::restored(serde_json::from_str::<StoredBreaker>(&json).unwrap());
    let moved = attempt(&mut gate, &rule, at(99), Failure);
    assert!(matches!(moved, Some(Some(Transition::Opened { .. }))), "{moved:?}");
}

#[test]
fn what_was_stored_before_can_be_read_and_is_written_the_same() {
    for text in [
        r#"{"state":"closed","failures":7}"#,
        r#"{"state":"open","until":5,"pause":"10ms"}"#,
        r#"{"state":"half_open","probe":null,"pause":"10ms"}"#,
    ] {
        let read: StoredBreaker = serde_json::from_str(text).expect(text);
        assert_eq!(read, serde_json::from_str::<Breaker>(text).expect(text).into());
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}

#[test]
fn pauses_grow_by_the_factor_up_to_the_longest() {
    let pauses = |factor| {
        let rule = with(BreakerRule {
            failures_in_a_row: 1,
            pause: secs(1),
            pause_factor: factor,
            pause_max: secs(10),
            ..BreakerRule::default()
        });
        let mut gate = Gate::default();
        let mut now = at(0);
        std::array::from_fn::<_, 4, _>(|_| match attempt(&mut gate, &rule, now, Failure) {
            Some(Some(Transition::Opened { until, .. })) => {
                let pause = until.since(now);
                now = until;
                pause
            }
            other => unreachable!("{other:?}"),
        })
    };
    assert_eq!(pauses(1), [secs(1); 4]);
    assert_eq!(pauses(3), [secs(1), secs(3), secs(9), secs(10)]);
}

#[test]
fn case_40_gitlabs_rule_pauses_at_4_doubles_to_a_day_and_gives_up_at_40() {
    let known = known_rules().into_iter().find(|known| known.name == "gitlab").unwrap();
    let rule = with(known.rule);
    let mut gate = Gate::default();
    let mut now = at(0);
    let mut pauses = Vec::new();
    for failure in 1..=40 {
        match attempt(&mut gate, &rule, now, Failure).expect("the pause is over") {
            None => assert!(failure < 4),
            Some(Transition::Opened { until, .. }) => {
                pauses.push(until.since(now));
                now = until;
            }
            Some(Transition::Disabled { why }) => {
                assert_eq!((failure, why), (40, Cause::FailuresInARow { failures: 40 }));
            }
            Some(Transition::Closed) => unreachable!("nothing succeeded"),
        }
    }
    assert_eq!(pauses.len(), 36);
    assert_eq!(pauses[..3], [60, 120, 240].map(secs));
    assert_eq!(pauses[10..12], [secs(61_440), Millis::from_hours(24)]);
    // Should the disabling get lost, the next failure says so again.
    let Breaker::Open { until, .. } = gate.breaker() else { unreachable!("it is open") };
    let again = attempt(&mut gate, &rule, until, Failure);
    assert!(matches!(again, Some(Some(Transition::Disabled { .. }))), "{again:?}");
}

#[test]
fn case_10_33_only_a_success_begins_the_count_of_failures_anew() {
    let disable = DisableRule { failures_in_a_row: 3, ..DisableRule::default() };
    let rule = with(BreakerRule { disable: Some(disable), ..BreakerRule::default() });
    let gives_up = |signals: &[Signal]| {
        let mut gate = Gate::default();
        let last =
            signals.iter().fold(None, |_, signal| Some(attempt(&mut gate, &rule, at(0), *signal)));
        matches!(last, Some(Some(Some(Transition::Disabled { .. }))))
    };
    assert!(gives_up(&[Failure, Failure, Failure]));
    assert!(gives_up(&[Failure, Neither, Failure, Neither, Failure]));
    assert!(!gives_up(&[Failure, Failure, Success, Failure]));
}

#[test]
fn each_known_rule_is_a_valid_one() {
    for known in known_rules() {
        let policy = Policy { gate: with(known.rule), ..Policy::default() };
        assert_eq!(policy.validate(), Ok(()), "{}", known.name);
        assert!(PRESETS.contains(&known.agreement), "{}", known.name);
        check_round_trip(&policy).unwrap();
    }
}

#[test]
fn settings_of_the_breaker_that_cannot_be_are_refused_by_name() {
    let check = |gate: GateRule, field: &str| {
        let error = Policy { gate, ..Policy::default() }.validate().expect_err(field);
        assert_eq!(error.field(), field);
    };
    check(windowed(0, 1, 0, 1), "gate.breaker.window.within");
    check(windowed(1, 0, 0, 1), "gate.breaker.window.failures");
    check(windowed(1, 1, 0, 0), "gate.breaker.window.attempts_min");
    check(windowed(1, 1, 101, 1), "gate.breaker.window.share_percent");
    check(
        with(BreakerRule { pause_factor: 0, ..BreakerRule::default() }),
        "gate.breaker.pause_factor",
    );
    let disable = Some(DisableRule::default());
    check(with(BreakerRule { disable, ..BreakerRule::default() }), "gate.breaker.disable");
    let disable =
        Some(DisableRule { failures_in_a_row: 9, failures_min: 8, ..DisableRule::default() });
    let alone = with(BreakerRule { disable, ..BreakerRule::default() });
    check(alone, "gate.breaker.disable.failures_min");
    let clocked = |failing_for, within, apart| {
        let clock = Some(ClockRule { within: ms(within), apart: ms(apart) });
        let failures_in_a_row = 9;
        let disable =
            DisableRule { failures_in_a_row, failing_for, clock, ..DisableRule::default() };
        with(BreakerRule { disable: Some(disable), ..BreakerRule::default() })
    };
    check(clocked(Millis::ZERO, 2, 1), "gate.breaker.disable.clock");
    check(clocked(ms(9), 2, 0), "gate.breaker.disable.clock.apart");
    check(clocked(ms(9), 3, 2), "gate.breaker.disable.clock.within");
    let valid = Policy { gate: clocked(ms(9), 4, 2), ..Policy::default() };
    assert_eq!(valid.validate(), Ok(()));
}
