//! Each kind of backoff and jitter: what it gives, what it refuses, and what holds for all of them.

use hookproof_core::policy::Policy;
use hookproof_core::preset;
use hookproof_core::schedule::{ATTEMPTS_MAX, Backoff, Bounds, Draw, Jitter, Schedule};
use hookproof_core::time::Millis;
use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::given::{entropy, laws, millis, ms, policy, schedule, secs};

fn doubling(jitter: Jitter) -> Schedule {
    let (base, cap) = (secs(10), secs(60));
    Schedule::new(Backoff::Exponential { base, factor: 2, cap, attempts_max: 6 }, jitter)
}

fn linear(base: Millis, step: Millis, cap: Millis, attempts_max: u32) -> Schedule {
    Schedule::new(Backoff::Linear { base, step, cap, attempts_max }, Jitter::None)
}

/// The bounds of each wait, written one after the other.
fn check(schedule: &Schedule, expected: &str) {
    assert_eq!(schedule.validate(), Ok(()));
    let written = |Bounds { lowest, highest }| match lowest == highest {
        true => lowest.to_string(),
        false => format!("{lowest}..{highest}"),
    };
    let bounds = (1..schedule.attempts_max()).filter_map(|n| schedule.bounds(n));
    assert_eq!(bounds.map(written).collect::<Vec<_>>().join(" "), expected);
}

fn check_invalid(schedule: &Schedule, field: &str, message: &str) {
    let error = schedule.validate().expect_err(message);
    assert_eq!((error.field(), error.to_string().as_str()), (field, message));
}

#[test]
fn linear_waits_grow_by_the_step_up_to_the_cap() {
    check(&linear(secs(10), secs(20), secs(45), 5), "10s 30s 45s 45s");
    check(&linear(secs(10), secs(0), secs(10), 3), "10s 10s");
    check(&linear(ms(1), Millis::MAX, Millis::MAX, 3), "1ms 213503982334d14h25m51s615ms");
}

#[test]
fn each_jitter_has_its_bounds() {
    check(&doubling(Jitter::None), "10s 20s 40s 1m 1m");
    check(&doubling(Jitter::Full), "0s..10s 0s..20s 0s..40s 0s..1m 0s..1m");
    check(&doubling(Jitter::Equal), "5s..10s 10s..20s 20s..40s 30s..1m 30s..1m");
    check(
        &doubling(Jitter::Proportional { percent: 20 }),
        "8s..12s 16s..24s 32s..48s 48s..1m12s 48s..1m12s",
    );
    check(
        &doubling(Jitter::Additive { most: secs(5) }),
        "10s..15s 20s..25s 40s..45s 1m..1m5s 1m..1m5s",
    );
    check(&doubling(Jitter::Decorrelated), "10s..20s 10s..40s 10s..1m 10s..1m 10s..1m");
}

#[test]
fn a_cap_after_the_jitter_cuts_what_was_drawn_and_gathers_it() {
    let mut schedule = doubling(Jitter::Proportional { percent: 20 });
    schedule.cap_after_jitter = Some(secs(45));
    check(&schedule, "8s..12s 16s..24s 32s..45s 45s 45s");
    let third = schedule.draw(3, None).expect("there is one");
    // 45 s to 48 s of 32 s to 48 s: three sixteenths gather at the cap.
    assert!(third.percentile(81) < secs(45));
    assert_eq!(third.percentile(82), secs(45));
}

#[test]
fn decorrelated_jitter_goes_on_from_the_wait_before() {
    let schedule = doubling(Jitter::Decorrelated);
    let bounds = |previous| schedule.draw(3, previous).map(Draw::bounds);
    let between = |lowest, highest| Some(Bounds { lowest, highest });
    assert_eq!(bounds(Some(secs(12))), between(secs(10), secs(24)));
    assert_eq!(bounds(Some(secs(40))), between(secs(10), secs(60)), "cut at the cap");
    assert_eq!(bounds(Some(ms(0))), between(secs(10), secs(10)), "never below the base");
    assert_eq!(bounds(Some(Millis::MAX)), between(secs(10), secs(60)));
}

#[test]
fn a_kind_that_cannot_work_names_the_field() {
    check_invalid(
        &doubling(Jitter::Proportional { percent: 101 }),
        "jitter.proportional.percent",
        "`jitter.proportional.percent` is 101, but must be 0 to 100: a wait cannot be negative",
    );
    check_invalid(
        &Schedule { jitter: Jitter::Decorrelated, ..linear(secs(1), secs(1), secs(9), 3) },
        "jitter",
        "`jitter` is decorrelated, which needs a backoff of kind exponential: its base, factor \
         and cap",
    );
    let mut schedule = doubling(Jitter::Decorrelated);
    if let Backoff::Exponential { factor, .. } = &mut schedule.backoff {
        *factor = 1;
    }
    check_invalid(
        &schedule,
        "backoff.factor",
        "`backoff.factor` is 1, but decorrelated jitter must be able to grow; give at least 2",
    );
    check_invalid(
        &Schedule { cap_after_jitter: Some(ms(0)), ..doubling(Jitter::Full) },
        "cap_after_jitter",
        "`cap_after_jitter` is 0s, which would retry without pause; give at least 1ms",
    );
    check_invalid(
        &linear(secs(0), secs(1), secs(1), 2),
        "backoff.base",
        "`backoff.base` is 0s, which would retry without pause; give at least 1ms",
    );
    check_invalid(
        &linear(secs(2), secs(1), secs(1), 2),
        "backoff.cap",
        "`backoff.cap` is 1s, but must be at least the base, 2s",
    );
    check_invalid(
        &linear(secs(2), secs(1), secs(2), 0),
        "backoff.attempts_max",
        "`backoff.attempts_max` is 0, but must be 1 to 100000",
    );
}

#[test]
fn a_wait_may_be_spread_by_all_of_itself() {
    check(
        &doubling(Jitter::Proportional { percent: 100 }),
        "0s..20s 0s..40s 0s..1m20s 0s..2m 0s..2m",
    );
}

#[test]
fn each_kind_is_read_from_json() {
    let read = |text: &str| serde_json::from_str::<Schedule>(text).expect(text);
    let kinds = [
        (r#""none""#, Jitter::None),
        (r#""full""#, Jitter::Full),
        (r#""equal""#, Jitter::Equal),
        (r#""decorrelated""#, Jitter::Decorrelated),
        (r#"{"proportional": {"percent": 20}}"#, Jitter::Proportional { percent: 20 }),
        (r#"{"additive": {"most": "5s"}}"#, Jitter::Additive { most: secs(5) }),
    ];
    for (written, jitter) in kinds {
        let text = format!(
            r#"{{"backoff": {{"kind": "linear", "base": "1s", "step": "2s", "cap": "9s",
                "attempts_max": 4}}, "jitter": {written}, "cap_after_jitter": "8s"}}"#
        );
        let expected = linear(secs(1), secs(2), secs(9), 4);
        assert_eq!(read(&text), Schedule { jitter, cap_after_jitter: Some(secs(8)), ..expected });
    }
}

#[test]
fn field_02_the_interval_is_capped_however_often_it_doubled() {
    let hour = Millis::from_hours(1);
    let backoff = Backoff::Exponential { base: secs(1), factor: 2, cap: hour, attempts_max: 60 };
    let schedule = Schedule::new(backoff, Jitter::None);
    for attempt in [30, 31, 34, 59] {
        assert_eq!(schedule.wait(attempt, 0), Some(hour), "attempt {attempt}");
    }
}

#[test]
fn field_03_a_product_that_wraps_in_64_bits_is_still_the_cap() {
    for factor in [2, 3, 10, 1 << 30, u32::MAX] {
        let (base, cap) = (Millis::new(u64::MAX / 3), Millis::MAX);
        let backoff = Backoff::Exponential { base, factor, cap, attempts_max: ATTEMPTS_MAX };
        let schedule = Schedule::new(backoff, Jitter::None);
        for attempt in [4, 30, 31, 32, 33, 63, 64, 65, 9_999] {
            assert_eq!(schedule.wait(attempt, 0), Some(cap), "factor {factor}, {attempt}");
        }
    }
}

#[test]
fn field_05_the_delay_never_falls_at_any_of_10_000_attempts() {
    let exponential =
        |base, factor, cap| Backoff::Exponential { base, factor, cap, attempts_max: ATTEMPTS_MAX };
    let linear = |base, step, cap| Backoff::Linear { base, step, cap, attempts_max: ATTEMPTS_MAX };
    for backoff in [
        exponential(ms(1), 2, Millis::MAX),
        exponential(secs(1), 3, Millis::from_hours(24)),
        exponential(Millis::MAX, u32::MAX, Millis::MAX),
        linear(ms(1), Millis::MAX, Millis::MAX),
        linear(secs(1), secs(60), Millis::from_hours(4)),
    ] {
        let jitters =
            [Jitter::None, Jitter::Equal, Jitter::Proportional { percent: 50 }, Jitter::Full];
        for jitter in jitters {
            let schedule = Schedule::new(backoff.clone(), jitter);
            assert_eq!(schedule.wait(0, 0), None);
            let mut before = ms(1);
            for attempt in 1..ATTEMPTS_MAX {
                let wait = schedule.wait_before_jitter(attempt).expect("a wait");
                assert!(wait >= before, "{schedule:?}: {wait} after {before}");
                let highest = schedule.wait(attempt, u64::MAX).expect("a wait");
                assert!(highest >= wait, "{schedule:?}: {attempt}");
                before = wait;
            }
            assert_eq!(schedule.wait(ATTEMPTS_MAX, 0), None);
        }
    }
}

#[test]
fn field_08_after_16_failures_the_next_attempt_is_never_further_than_the_cap() {
    let schedule = preset::full_jitter_hour().schedule;
    for attempt in 1..schedule.attempts_max() {
        let highest = schedule.bounds(attempt).expect("a wait").highest;
        assert!(highest <= Millis::from_hours(1));
    }
    // Without the cap the seventeenth attempt would be 18 hours away.
    let (base, cap) = (secs(2), Millis::from_hours(1));
    let backoff = Backoff::Exponential { base, factor: 2, cap, attempts_max: 20 };
    assert_eq!(Schedule::new(backoff, Jitter::None).wait(16, 0), Some(cap));
}

#[test]
fn field_12_an_empty_list_is_no_retry_and_a_zero_is_at_once() {
    let list = |waits| Schedule::new(Backoff::List { waits }, Jitter::None);
    assert_eq!(list(vec![]).validate(), Ok(()));
    assert_eq!((list(vec![]).attempts_max(), list(vec![]).wait(1, 7)), (1, None));
    let at_once = list(vec![ms(0), secs(5)]);
    assert_eq!(at_once.validate(), Ok(()));
    assert_eq!((at_once.wait(1, 7), at_once.wait(2, 7)), (Some(ms(0)), Some(secs(5))));
    let read: Schedule =
        serde_json::from_str(r#"{"backoff": {"kind": "list", "waits": ["0s", "5s"]}}"#).unwrap();
    assert_eq!(read, at_once);
}

/// The mean of a draw over a small range, value by value.
fn mean_by_hand(lowest: u64, highest: u64, ceiling: u64, floor: u64) -> u128 {
    let sum: u128 = (lowest..=highest).map(|drawn| u128::from(drawn.min(ceiling).max(floor))).sum();
    (sum << 16) / u128::from(highest - lowest + 1)
}

#[test]
fn a_mean_counts_what_gathers_at_a_bound_once_each() {
    let mean = |lowest, highest, ceiling, floor| {
        let draw = Draw::between(ms(lowest), ms(highest)).at_most(ms(ceiling));
        draw.at_least(ms(floor), ms(0)).mean_65536()
    };
    for (lowest, highest, ceiling, floor) in [
        (5, 8, 5, 0),
        (5, 8, 4, 0),
        (5, 8, 8, 0),
        (5, 8, 9, 0),
        (0, 8, 0, 0),
        (0, 8, 9, 0),
        (5, 8, 9, 5),
        (5, 8, 9, 6),
        (5, 8, 9, 8),
        (5, 8, 9, 9),
        (5, 8, 6, 7),
        (5, 5, 5, 5),
    ] {
        let expected = mean_by_hand(lowest, highest, ceiling, floor);
        assert_eq!(mean(lowest, highest, ceiling, floor), expected, "{lowest} {highest} {ceiling}");
    }
}

#[test]
fn a_mean_under_a_floor_that_is_spread_is_that_of_the_spread() {
    // 3 · 65,536 waits, of which every third is drawn: the middle one of each three.
    let spread = 3 * 65_536 - 1;
    let draw = Draw::between(ms(0), ms(0)).at_least(ms(1000), ms(spread));
    assert_eq!(draw.mean_65536(), (1000 << 16) + u128::from(spread) * (1 << 15));
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn a_mean_is_the_mean_of_all_that_can_be_drawn(
        lowest in 0..60_u64, width in 0..60_u64, ceiling in 0..150_u64, floor in 0..150_u64,
    ) {
        let draw = Draw::between(ms(lowest), ms(lowest + width)).at_most(ms(ceiling));
        let expected = mean_by_hand(lowest, lowest + width, ceiling, 0);
        prop_assert_eq!(draw.mean_65536(), expected);
        let expected = mean_by_hand(lowest, lowest + width, ceiling, floor);
        prop_assert_eq!(draw.at_least(ms(floor), ms(0)).mean_65536(), expected);
    }

    #[test]
    fn a_mean_lies_within_the_bounds_whatever_the_settings(
        schedule in schedule(), attempt in 1..40_u32, floor in millis(), spread in millis(),
    ) {
        if let Some(draw) = schedule.draw(attempt, None) {
            for draw in [draw, draw.at_least(floor, ms(0)), draw.at_least(floor, spread)] {
                let Bounds { lowest, highest } = draw.bounds();
                let mean = draw.mean_65536() >> 16;
                prop_assert!(u128::from(lowest.get()) <= mean && mean <= u128::from(highest.get()));
            }
        }
    }

    #[test]
    fn a_floor_is_never_undercut_and_spreads_upwards_only(
        policy in policy(), attempt in 1..20_u32, floor in millis(), entropy in entropy(),
    ) {
        let plain = policy.draw(attempt, None, None).map(|draw| draw.at(entropy));
        let floored = policy.draw(attempt, None, Some(floor)).map(|draw| draw.at(entropy));
        prop_assert_eq!(plain.is_some(), floored.is_some());
        if let (Some(plain), Some(floored)) = (plain, floored) {
            prop_assert!(floored >= floor && floored >= plain);
            prop_assert!(floored <= plain.max(floor.plus(policy.retry_after_spread)));
        }
    }

    #[test]
    fn any_bytes_are_a_policy_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(policy) = serde_json::from_slice::<Policy>(&bytes) {
            let _ = policy.validate();
        }
    }

    #[test]
    fn any_change_of_a_policy_is_a_policy_that_can_be_used_or_an_error(
        policy in policy(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
        attempt in 0..=ATTEMPTS_MAX, entropy in entropy(),
    ) {
        let mut bytes = serde_json::to_vec(&policy).expect("it can be written");
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(policy) = serde_json::from_slice::<Policy>(&bytes)
            && policy.validate().is_ok()
        {
            let wait = policy.schedule.wait(attempt, entropy);
            prop_assert_eq!(wait.is_some(), (1..policy.schedule.attempts_max()).contains(&attempt));
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: 100, ..laws() })]

    /// 100 schedules, 1,000 draws each: 10⁵ samples.
    #[test]
    fn of_100_000_samples_each_is_within_the_bounds_and_on_the_right_side_of_each_percentile(
        schedule in schedule(), attempt in 1..30_u32, seed in any::<u64>(),
    ) {
        let Some(draw) = schedule.draw(attempt, None) else { return Ok(()) };
        let Bounds { lowest, highest } = draw.bounds();
        let median = draw.percentile(50);
        let mut below = 0;
        for n in 0..1_000_u64 {
            // Steps of the golden ratio fill the range evenly.
            let wait = draw.at(seed.wrapping_add(n.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
            prop_assert!(lowest <= wait && wait <= highest);
            below += u32::from(wait <= median);
        }
        prop_assert!(below >= 480, "{below} of 1000 are at most the median");
    }
}
