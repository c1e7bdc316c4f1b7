//! How many attempts begin: the rate, the drain after a recovery, and throttling.

use hookproof_core::classify::{Signal, Throttle};
use hookproof_core::gate::{
    Admission, Breaker, BreakerRule, DeferReason, DrainRule, Gate, GateRule, Permit, RateRule,
    StoredGate,
};
use hookproof_core::policy::Policy;
use hookproof_core::time::{Millis, Timestamp};
use proptest::prelude::*;

use crate::given::{at, laws, ms, secs};

fn rated(attempts: u32, per: u64, burst: u32) -> GateRule {
    GateRule {
        concurrency_max: 1_000,
        rate: Some(RateRule { attempts, per: ms(per), burst }),
        ..GateRule::default()
    }
}

/// Asks at once and at each time that it is told to ask again: when the first `count` begin.
fn starts(gate: &mut Gate, rule: &GateRule, from: i64, count: usize) -> Vec<i64> {
    let mut now = at(from);
    let mut starts = Vec::new();
    while starts.len() < count {
        match gate.admit(rule, now, ms(1)) {
            Admission::Go(permit) => {
                gate.record(rule, now, permit, Signal::Success);
                starts.push(now.as_millis());
            }
            Admission::Defer { until, .. } => {
                assert!(until > now, "to ask again at once would be a busy wait");
                now = until;
            }
        }
    }
    starts
}

#[test]
fn case_93_one_in_a_minute_is_one_now_and_the_rest_spaced() {
    let starts = starts(&mut Gate::default(), &rated(1, 60_000, 0), 0, 5);
    assert_eq!(starts, [0, 60_000, 120_000, 180_000, 240_000]);
}

#[test]
fn a_burst_bounds_how_many_begin_at_once() {
    assert_eq!(starts(&mut Gate::default(), &rated(4, 100, 0), 0, 6), [0, 0, 0, 0, 100, 100]);
    assert_eq!(starts(&mut Gate::default(), &rated(4, 100, 2), 0, 6), [0, 0, 50, 50, 100, 100]);
    // A share that is no whole number is rounded up.
    assert_eq!(starts(&mut Gate::default(), &rated(3, 100, 1), 0, 4), [0, 34, 68, 102]);
}

#[test]
fn a_rate_says_how_much_room_there_is() {
    let mut gate = Gate::default();
    let rule = rated(3, 100, 0);
    assert_eq!(gate.room(&rule, at(0)), Ok(3));
    assert_eq!(starts(&mut gate, &rule, 0, 2), [0, 0]);
    assert_eq!(gate.room(&rule, at(99)), Ok(1));
    assert_eq!(starts(&mut gate, &rule, 99, 1), [99]);
    assert_eq!(gate.room(&rule, at(99)), Err((at(100), DeferReason::RateLimit)));
    assert_eq!(gate.room(&rule, at(100)), Ok(2));
    assert_eq!(gate.room(&rule, at(199)), Ok(3));
}

#[test]
fn a_clock_that_is_set_back_stops_nothing_for_longer_than_the_period() {
    let mut gate = Gate::default();
    let rule = rated(1, 100, 0);
    assert_eq!(starts(&mut gate, &rule, 1_000_000, 1), [1_000_000]);
    assert_eq!(gate.room(&rule, at(500)), Err((at(600), DeferReason::RateLimit)));
    assert_eq!(gate.room(&rule, at(600)), Ok(1));
}

#[test]
fn after_a_recovery_the_backlog_leaves_at_the_rate_of_the_drain() {
    let drain = DrainRule { attempts: 1, per: ms(10), lasts: ms(25) };
    let rule = GateRule {
        breaker: Some(BreakerRule::default()),
        drain: Some(drain),
        ..rated(1_000, 1, 0)
    };
    let mut gate = Gate::restored(Breaker::Open { until: at(100), pause: ms(100) });
    // The probe, at its rate for as long as it lasts, then all at once.
    assert_eq!(starts(&mut gate, &rule, 0, 6), [100, 110, 120, 125, 125, 125]);
    // A restart in between does not forget it.
    let mut gate = Gate::restored(Breaker::HalfOpen { probe: None, pause: ms(100) });
    assert_eq!(starts(&mut gate, &rule, 200, 1), [200]);
    let mut gate = Gate::restored(gate.stored());
    assert_eq!(starts(&mut gate, &rule, 205, 3), [210, 220, 225]);
    // Without a recovery there is no drain.
    assert_eq!(starts(&mut Gate::default(), &rule, 0, 3), [0, 0, 0]);
}

/// The gate of the next process.
fn restarted(gate: &Gate) -> Gate {
    let text = serde_json::to_string(&gate.stored()).expect("a gate can be written");
    Gate::restored(serde_json::from_str::<StoredGate>(&text).expect("and read"))
}

#[test]
fn a_window_that_was_begun_before_a_restart_is_exact_after_it() {
    let rule = rated(3, 100, 0);
    let mut gate = Gate::default();
    assert_eq!(starts(&mut gate, &rule, 0, 2), [0, 0]);
    let mut gate = restarted(&gate);
    assert_eq!(starts(&mut gate, &rule, 40, 3), [40, 100, 100]);
    let mut gate = restarted(&gate);
    assert_eq!(starts(&mut gate, &rule, 100, 2), [140, 200]);
}

#[test]
fn what_an_endpoint_asked_for_outlives_a_restart() {
    let rule = GateRule { throttle_max: secs(60), ..GateRule::default() };
    let mut gate = restarted(&throttled(&rule, Some(secs(30)), 1));
    assert_eq!(gate.room(&rule, at(29_999)), Err((at(30_000), DeferReason::Throttled)));
    assert_eq!(gate.room(&rule, at(30_000)), Ok(5));
}

#[test]
fn a_gate_is_told_by_its_breaker_and_what_its_limits_remember() {
    let mut gate = Gate::default();
    assert_eq!(
        serde_json::to_string(&gate.stored()).unwrap(),
        r#"{"state":"closed","failures":0}"#
    );
    assert_eq!(starts(&mut gate, &rated(2, 100, 0), 1000, 2), [1000, 1000]);
    let text = serde_json::to_string(&gate.stored()).unwrap();
    let started = r#"{"state":"closed","failures":0,"sequence":4,"limiter":{"starts":[1000,0]}}"#;
    assert_eq!(text, started);
}

#[test]
fn all_that_a_gate_looks_back_on_survives_its_storage() {
    let text = r#"{"state":"closed","failures":1,"history":{"streak":3,"failing_since":5,"ended":[[5,1,1]],"recovered_at":6},"sequence":9,"limiter":{"starts":[1000,0],"held_until":7,"withdrawn":2}}"#;
    let stored: StoredGate = serde_json::from_str(text).expect("it can be read");
    assert_eq!(serde_json::to_string(&stored).expect("it can be written"), text);
}

#[test]
fn every_change_of_a_gate_has_a_higher_number_and_a_restart_goes_on_from_it() {
    let rule = GateRule::default();
    let mut gate = Gate::default();
    let mut last = gate.stored().sequence;
    let mut grows = |gate: &Gate, what: &str| {
        assert!(gate.stored().sequence > last, "{what}");
        last = gate.stored().sequence;
    };
    let Admission::Go(permit) = gate.admit(&rule, at(0), secs(1)) else { unreachable!("it may") };
    grows(&gate, "an admission");
    gate.throttle(&rule, at(1), Throttle { wait: None });
    grows(&gate, "a throttling");
    gate.record(&rule, at(1), permit, Signal::Failure);
    grows(&gate, "an outcome");
    let mut gate = restarted(&gate);
    gate.reset();
    grows(&gate, "a reset after a restart");
}

#[test]
fn a_reset_forgets_the_failures_and_keeps_what_the_limits_remember() {
    let rule = GateRule {
        breaker: Some(BreakerRule { failures_in_a_row: 1, ..BreakerRule::default() }),
        ..rated(1, 100, 0)
    };
    let mut gate = Gate::default();
    let Admission::Go(permit) = gate.admit(&rule, at(0), secs(1)) else { unreachable!("it may") };
    gate.record(&rule, at(0), permit, Signal::Failure);
    assert!(matches!(gate.room(&rule, at(1)), Err((_, DeferReason::BreakerOpen))));
    gate.reset();
    assert_eq!(gate.room(&rule, at(1)), Err((at(100), DeferReason::RateLimit)));
    assert_eq!(gate.room(&rule, at(100)), Ok(1));
}

fn throttled(rule: &GateRule, wait: Option<Millis>, times: u32) -> Gate {
    let mut gate = Gate::default();
    for _ in 0..times {
        gate.throttle(rule, at(0), Throttle { wait });
    }
    gate
}

#[test]
fn a_throttled_endpoint_is_left_alone_as_long_as_it_asks_within_the_bound() {
    let rule = GateRule { throttle_max: secs(60), ..GateRule::default() };
    let held = |wait| throttled(&rule, wait, 1).room(&rule, at(0)).unwrap_err();
    assert_eq!(held(Some(secs(30))), (at(30_000), DeferReason::Throttled));
    assert_eq!(held(Some(secs(90))), (at(60_000), DeferReason::Throttled));
    let mut gate = throttled(&rule, Some(secs(30)), 1);
    assert_eq!(gate.room(&rule, at(29_999)), Err((at(30_000), DeferReason::Throttled)));
    assert_eq!(gate.room(&rule, at(30_000)), Ok(5));
    let mut set_back = throttled(&rule, Some(secs(30)), 1);
    let expected = (at(-40_000), DeferReason::Throttled);
    assert_eq!(set_back.room(&rule, at(-100_000)), Err(expected));
    let off = GateRule { throttle_max: Millis::ZERO, ..rule.clone() };
    assert_eq!(throttled(&off, Some(secs(30)), 3).room(&off, at(0)), Ok(10));
}

#[test]
fn each_throttling_answer_halves_what_goes_at_once_and_each_success_gives_one_back() {
    let rule = GateRule::default();
    let room = |times| throttled(&rule, None, times).room(&rule, at(0));
    assert_eq!([0, 1, 2, 3, 4, 9].map(room), [Ok(10), Ok(5), Ok(2), Ok(1), Ok(1), Ok(1)]);
    let mut gate = throttled(&rule, None, 2);
    assert_eq!(starts(&mut gate, &rule, 1, 3).len(), 3);
    assert_eq!(gate.room(&rule, at(1)), Ok(5));
    assert_eq!(starts(&mut gate, &rule, 2, 9).len(), 9);
    assert_eq!(gate.room(&rule, at(2)), Ok(10));
}

#[test]
fn settings_of_the_limits_that_cannot_be_are_refused_by_name() {
    let check = |gate: GateRule, field: &str| {
        let error = Policy { gate, ..Policy::default() }.validate().expect_err(field);
        assert_eq!(error.field(), field);
    };
    check(rated(0, 1, 0), "gate.rate.attempts");
    check(rated(10_001, 1, 0), "gate.rate.attempts");
    check(rated(1, 0, 0), "gate.rate.per");
    let drain = |attempts, per, lasts| GateRule {
        drain: Some(DrainRule { attempts, per: ms(per), lasts: ms(lasts) }),
        ..GateRule::default()
    };
    check(drain(0, 1, 1), "gate.drain.attempts");
    check(drain(1, 0, 1), "gate.drain.per");
    check(drain(1, 1, 0), "gate.drain.lasts");
}

/// The reference: how many of all starts lie in the span of this length that ends at `now`.
fn within(starts: &[i64], now: i64, per: u64) -> usize {
    let per = i64::try_from(per).expect("it is short");
    starts.iter().filter(|start| now - **start < per).count()
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn no_span_ever_holds_more_starts_than_the_rate_allows_and_no_room_is_wasted(
        attempts in 1..6_u32,
        per in 1..50_u64,
        burst in 0..6_u32,
        pauses in proptest::collection::vec(prop_oneof![Just(0_i64), 0..60_i64], 0..80),
    ) {
        let rule = rated(attempts, per, burst);
        let share = (per * u64::from(burst)).div_ceil(u64::from(attempts));
        let is_burst = burst > 0 && burst < attempts;
        let mut gate = Gate::default();
        let mut starts: Vec<i64> = Vec::new();
        let mut out: Vec<Permit> = Vec::new();
        let mut now = 0;
        for pause in pauses {
            now += pause;
            let fits = |now| {
                within(&starts, now, per) < attempts as usize
                    && (!is_burst || within(&starts, now, share) < burst as usize)
            };
            match gate.admit(&rule, at(now), secs(60)) {
                Admission::Go(permit) => {
                    prop_assert!(fits(now));
                    out.push(permit);
                    starts.push(now);
                }
                Admission::Defer { until, why } => {
                    prop_assert_eq!(why, DeferReason::RateLimit);
                    let first = (now..).find(|later| fits(*later)).expect("once they leave");
                    prop_assert_eq!(until, at(first));
                    prop_assert!(first > now);
                }
            }
        }
        for end in &starts {
            prop_assert!(within(&starts[..starts.partition_point(|s| s <= end)], *end, per) <= attempts as usize);
        }
    }

    #[test]
    fn a_drain_bounds_the_starts_after_each_recovery_beside_the_rate_and_wastes_no_room(
        rate in (1..6_u32, 1..50_u64),
        drain in (1..4_u32, 1..60_u64, 1..120_u64),
        steps in proptest::collection::vec(
            (prop_oneof![Just(0_i64), 0..30_i64], proptest::bool::weighted(0.2)),
            0..80,
        ),
    ) {
        let (attempts, per, lasts) = drain;
        let breaker = BreakerRule {
            failures_in_a_row: 1,
            pause: ms(15),
            pause_factor: 1,
            ..BreakerRule::default()
        };
        let rule = GateRule {
            breaker: Some(breaker),
            drain: Some(DrainRule { attempts, per: ms(per), lasts: ms(lasts) }),
            ..rated(rate.0, rate.1, 0)
        };
        let mut gate = Gate::default();
        let mut starts: Vec<i64> = Vec::new();
        // The end of the pause, and the last recovery.
        let (mut pause, mut recovered): (Option<i64>, Option<i64>) = (None, None);
        let mut now = 0;
        for (passes, fails) in steps {
            now += passes;
            let lasts = i64::try_from(lasts).expect("it is short");
            let drains = |now| recovered.is_some_and(|at| now - at < lasts);
            let fits = |now| {
                within(&starts, now, rate.1) < rate.0 as usize
                    && (!drains(now) || within(&starts, now, per) < attempts as usize)
            };
            match gate.admit(&rule, at(now), secs(60)) {
                Admission::Go(permit) => {
                    prop_assert!(pause.is_none_or(|until| now >= until) && fits(now));
                    let signal = if fails { Signal::Failure } else { Signal::Success };
                    gate.record(&rule, at(now), permit, signal);
                    starts.push(now);
                    if fails {
                        pause = Some(now + 15);
                    } else if pause.take().is_some() {
                        recovered = Some(now);
                    }
                }
                Admission::Defer { until, why: DeferReason::BreakerOpen } => {
                    prop_assert_eq!(pause.map(at), Some(until));
                    prop_assert!(until > at(now));
                }
                Admission::Defer { until, why } => {
                    prop_assert_eq!(why, DeferReason::RateLimit);
                    let first = (now..).find(|later| fits(*later)).expect("once they leave");
                    prop_assert_eq!(until, at(first));
                    prop_assert!(first > now);
                }
            }
        }
    }

    #[test]
    fn no_time_and_no_rate_makes_a_limiter_panic(
        attempts in any::<u32>(),
        per in any::<u64>(),
        burst in any::<u32>(),
        times in proptest::collection::vec((any::<i64>(), proptest::option::of(any::<u64>())), 0..30),
    ) {
        let drain = Some(DrainRule { attempts: burst, per: ms(per), lasts: ms(per) });
        let rule = GateRule { drain, ..rated(attempts, per, burst) };
        let mut gate = Gate::default();
        for (now, wait) in times {
            let now = Timestamp::from_millis(now);
            gate.throttle(&rule, now, Throttle { wait: wait.map(ms) });
            if let Admission::Go(permit) = gate.admit(&rule, now, ms(1)) {
                gate.record(&rule, now, permit, Signal::Success);
            }
        }
    }
}
