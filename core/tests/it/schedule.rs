//! Schedules and the presets among them.

use std::collections::BTreeSet;

use hookproof_core::preset::{self, Certainty};
use hookproof_core::schedule::{ATTEMPTS_MAX, Backoff, Bounds, Jitter, Schedule};
use hookproof_core::time::Millis;
use proptest::prelude::*;

use crate::given::{check_round_trip, entropy, laws, ms, schedule, secs};

fn list(waits: &[u64]) -> Schedule {
    let waits = waits.iter().copied().map(secs).collect();
    Schedule::new(Backoff::List { waits }, Jitter::None)
}

fn exponential(base: Millis, factor: u32, cap: Millis, attempts_max: u32) -> Schedule {
    let backoff = Backoff::Exponential { base, factor, cap, attempts_max };
    Schedule::new(backoff, Jitter::None)
}

fn without_jitter(schedule: Schedule) -> Schedule {
    Schedule { jitter: Jitter::None, ..schedule }
}

fn waits(schedule: &Schedule) -> Vec<Millis> {
    (1..schedule.attempts_max()).map(|attempt| schedule.wait(attempt, 0).expect("a wait")).collect()
}

fn sum(waits: &[Millis]) -> Millis {
    waits.iter().fold(Millis::ZERO, |sum, wait| sum.plus(*wait))
}

/// What the waits are, written one after the other.
fn check(schedule: &Schedule, expected: &str) {
    schedule.validate().expect("a valid schedule");
    let printed: Vec<_> = waits(schedule).iter().map(Millis::to_string).collect();
    assert_eq!(printed.join(" "), expected);
    assert_eq!(schedule.wait(0, 0), None, "attempts are numbered from 1");
    assert_eq!(schedule.wait(schedule.attempts_max(), 0), None, "after the last attempt");
    assert_eq!(schedule.wait(u32::MAX, 0), None, "long after the last attempt");
}

#[test]
fn a_list_has_one_attempt_more_than_waits() {
    check(&list(&[]), "");
    check(&list(&[5]), "5s");
    check(&list(&[5, 0, 60]), "5s 0s 1m");
    assert_eq!(list(&[]).attempts_max(), 1);
    assert_eq!(list(&[5, 0, 60]).attempts_max(), 4);
}

#[test]
fn exponential_waits_grow_by_the_factor_up_to_the_cap() {
    check(&exponential(secs(30), 2, secs(200), 6), "30s 1m 2m 3m20s 3m20s");
    check(&exponential(ms(1), 10, secs(2), 6), "1ms 10ms 100ms 1s 2s");
    check(&exponential(secs(7), 1, secs(7), 4), "7s 7s 7s");
    check(&exponential(secs(7), 3, secs(7), 1), "");
}

#[test]
fn waits_too_long_to_express_stay_at_the_cap() {
    let schedule = exponential(secs(1), u32::MAX, Millis::MAX, ATTEMPTS_MAX);
    assert_eq!(schedule.wait(2, 0), Some(secs(u64::from(u32::MAX))));
    assert_eq!(schedule.wait(ATTEMPTS_MAX - 1, 0), Some(Millis::MAX));
    let hourly = exponential(secs(2), 2, Millis::from_hours(1), ATTEMPTS_MAX);
    assert_eq!(hourly.wait(ATTEMPTS_MAX - 1, 0), Some(Millis::from_hours(1)));
}

#[test]
fn full_jitter_spreads_a_wait_evenly_from_zero_to_all_of_it() {
    let schedule = Schedule { jitter: Jitter::Full, ..list(&[10]) };
    let wait = |entropy| schedule.wait(1, entropy);
    assert_eq!(wait(0), Some(ms(0)));
    assert_eq!(wait(u64::MAX / 4), Some(ms(2_500)));
    assert_eq!(wait(u64::MAX / 2), Some(ms(5_000)));
    assert_eq!(wait(u64::MAX / 4 * 3), Some(ms(7_500)));
    assert_eq!(wait(u64::MAX), Some(ms(10_000)));
    assert_eq!(schedule.bounds(1), Some(Bounds { lowest: ms(0), highest: ms(10_000) }));
}

#[test]
fn each_wait_is_as_likely_as_the_others_under_full_jitter() {
    let backoff = Backoff::List { waits: vec![ms(2)] };
    let schedule = Schedule::new(backoff, Jitter::Full);
    let third = u64::MAX / 3;
    for (entropy, wait) in
        [(0, 0), (third, 0), (third + 1, 1), (2 * third, 1), (2 * third + 1, 2), (u64::MAX, 2)]
    {
        assert_eq!(schedule.wait(1, entropy), Some(ms(wait)), "{entropy}");
    }
}

#[test]
fn standard_webhooks_makes_10_attempts_over_75h35m5s() {
    let schedule = preset::standard_webhooks().schedule;
    check(&schedule, "5s 5m 30m 2h 5h 10h 14h 20h 24h");
    assert_eq!(schedule.attempts_max(), 10);
    assert_eq!(sum(&waits(&schedule)).to_string(), "75h35m5s");
}

#[test]
fn the_waits_of_seed_2_to_the_eighth_retry_add_up_to_510_s() {
    let waits = waits(&without_jitter(preset::full_jitter_hour().schedule));
    assert_eq!(sum(&waits[..8]), secs(510));
    assert_eq!(waits[7], secs(256), "the eighth");
    assert_eq!(waits[9], secs(1_024), "the tenth");
}

#[test]
fn seed_2_is_spread_by_full_jitter_and_never_waits_longer_than_an_hour() {
    let mut schedule = preset::full_jitter_hour().schedule;
    assert_eq!(schedule.jitter, Jitter::Full);
    if let Backoff::Exponential { attempts_max, .. } = &mut schedule.backoff {
        *attempts_max = 14;
    }
    let highest = |attempt| schedule.bounds(attempt).map(|bounds| bounds.highest);
    assert_eq!(highest(11), Some(secs(2_048)));
    assert_eq!(highest(12), Some(Millis::from_hours(1)));
    assert_eq!(highest(13), Some(Millis::from_hours(1)));
}

#[test]
fn each_preset_is_valid_has_a_source_and_is_found_by_its_name() {
    let mut names = BTreeSet::new();
    for preset in preset::all() {
        assert_eq!(preset.schedule.validate(), Ok(()), "{}", preset.name);
        assert!(!preset.source.is_empty(), "{}", preset.name);
        assert!(names.insert(preset.name), "{} is there twice", preset.name);
        assert_eq!(preset::find(preset.name), Some(preset));
    }
    assert!(names.contains("standard-webhooks") && names.contains("seed-2"), "{names:?}");
    assert_eq!(preset::find("no-such-sender"), None);
}

#[test]
fn how_well_a_preset_is_known_is_told_in_one_word() {
    let certainties = [Certainty::Documented, Certainty::Secondary, Certainty::Unknown];
    assert_eq!(certainties.map(Certainty::as_str), ["documented", "secondary", "unknown"]);
}

fn check_invalid(schedule: &Schedule, field: &str, message: &str) {
    let error = schedule.validate().expect_err(message);
    assert_eq!(error.field(), field);
    assert_eq!(error.to_string(), message);
}

#[test]
fn a_schedule_that_cannot_work_names_the_field() {
    let hour = Millis::from_hours(1);
    check_invalid(
        &exponential(secs(1), 2, hour, 0),
        "backoff.attempts_max",
        "`backoff.attempts_max` is 0, but must be 1 to 100000",
    );
    check_invalid(
        &exponential(secs(1), 2, hour, 100_001),
        "backoff.attempts_max",
        "`backoff.attempts_max` is 100001, but must be 1 to 100000",
    );
    check_invalid(
        &exponential(secs(1), 0, hour, 5),
        "backoff.factor",
        "`backoff.factor` is 0, but must be at least 1 (1 repeats the base)",
    );
    check_invalid(
        &exponential(ms(0), 2, hour, 5),
        "backoff.base",
        "`backoff.base` is 0s, which would retry without pause; give at least 1ms",
    );
    check_invalid(
        &exponential(secs(90), 2, secs(60), 5),
        "backoff.cap",
        "`backoff.cap` is 1m, but must be at least the base, 1m30s",
    );
    check_invalid(
        &list(&[1; 100_000]),
        "backoff.waits",
        "`backoff.waits` has 100000 entries, but at most 99999 are allowed",
    );
}

#[test]
fn a_schedule_at_the_edge_of_what_is_allowed_is_valid() {
    assert_eq!(list(&[1; 99_999]).validate(), Ok(()));
    assert_eq!(list(&[1; 99_999]).attempts_max(), ATTEMPTS_MAX);
    assert_eq!(exponential(ms(1), 1, ms(1), 1).validate(), Ok(()));
    assert_eq!(exponential(ms(1), 1, ms(1), ATTEMPTS_MAX).validate(), Ok(()));
}

#[test]
fn a_schedule_is_read_from_json_and_a_misspelt_field_is_refused() {
    let read = |text| serde_json::from_str::<Schedule>(text);
    let list_of_two = read(r#"{"backoff": {"kind": "list", "waits": ["5s", "1m"]}}"#).unwrap();
    assert_eq!(list_of_two, list(&[5, 60]));
    let doubling = read(
        r#"{"backoff": {"kind": "exponential", "base": "2s", "factor": 2, "cap": "1h",
            "attempts_max": 11}, "jitter": "full"}"#,
    );
    assert_eq!(doubling.unwrap(), preset::full_jitter_hour().schedule);
    let open_ended = r#"{"backoff": {"kind": "linear", "base": "5s", "step": "0s", "cap": "5s"}}"#;
    let open_ended = read(open_ended).unwrap();
    assert!(open_ended.is_open_ended() && open_ended.attempts_max() == ATTEMPTS_MAX);
    assert!(read(r#"{"backoff": {"kind": "list", "waits": []}, "jiter": "full"}"#).is_err());
}

#[test]
fn a_backoff_names_the_field_that_is_missing_or_of_another_kind() {
    let check = |backoff: &str, expected: &str| {
        let error = serde_json::from_str::<Backoff>(backoff).expect_err(backoff).to_string();
        assert!(error.starts_with(expected), "{backoff}: {error}");
    };
    check(
        r#"{"cap": "1h", "waits": [], "kind": "list"}"#,
        "unknown field `cap`, expected `kind` or `waits`",
    );
    check(
        r#"{"kind": "linear", "base": "1s", "factor": 2, "cap": "1h", "attempts_max": 3}"#,
        "unknown field `factor`, expected one of `kind`, `base`, `step`, `cap`, `attempts_max`",
    );
    check(
        r#"{"kind": "exponential", "base": "1s", "step": "1s", "cap": "1h", "attempts_max": 3}"#,
        "unknown field `step`, expected one of `kind`, `base`, `factor`, `cap`, `attempts_max`",
    );
    check(r#"{"kind": "list", "wait": []}"#, "unknown field `wait`, expected one of");
    check(r#"{"kind": "list"}"#, "missing field `waits`");
    check(r#"{"kind": "list", "waits": null}"#, "invalid type: null, expected a sequence");
    check(r#"{"kind": "list", "waits": [], "cap": null}"#, "invalid type: null");
    check(r#"{"kind": "list", "waits": [], "waits": []}"#, "duplicate field `waits`");
    check(r#"{"kind": "fibonacci"}"#, "unknown variant `fibonacci`, expected one of `list`");
    check(r#"{"waits": []}"#, "missing field `kind`");
    let linear = r#""base": "1s", "step": "2s", "cap": "9s", "attempts_max": 4"#;
    let exponential = r#""base": "1s", "factor": 2, "cap": "9s", "attempts_max": 4"#;
    for (kind, fields) in [("linear", linear), ("exponential", exponential)] {
        // Without a limit on the attempts, it is for the age to end a delivery.
        for left_out in fields.split(", ").filter(|field| !field.contains("attempts_max")) {
            let others: Vec<_> = fields.split(", ").filter(|field| *field != left_out).collect();
            let name = left_out.split('"').nth(1).expect("a name");
            check(
                &format!(r#"{{"kind": "{kind}", {}}}"#, others.join(", ")),
                &format!("missing field `{name}`"),
            );
        }
    }
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn every_wait_is_within_bounds_and_both_bounds_occur(
        schedule in schedule(),
        attempt in 0..=ATTEMPTS_MAX,
        entropy in entropy(),
    ) {
        for attempt in [attempt, attempt % 25] {
            let there_is_one = attempt >= 1 && attempt < schedule.attempts_max();
            let bounds = schedule.bounds(attempt);
            prop_assert_eq!(bounds.is_some(), there_is_one);
            let wait = schedule.wait(attempt, entropy);
            prop_assert_eq!(wait.is_some(), there_is_one);
            if let (Some(Bounds { lowest, highest }), Some(wait)) = (bounds, wait) {
                prop_assert!(lowest <= wait && wait <= highest);
                prop_assert_eq!(schedule.wait(attempt, 0), Some(lowest));
                prop_assert_eq!(schedule.wait(attempt, u64::MAX), Some(highest));
            }
        }
    }

    #[test]
    fn a_schedule_of_the_generator_is_valid_and_comes_back_from_json(schedule in schedule()) {
        prop_assert_eq!(schedule.validate(), Ok(()));
        check_round_trip(&schedule)?;
    }

    #[test]
    fn exponential_bounds_never_fall_and_end_at_the_cap(schedule in schedule()) {
        if let Backoff::Exponential { base, factor, cap, .. } = schedule.backoff {
            let mut before = base;
            for attempt in 1..schedule.attempts_max().min(200) {
                let exact = u128::from(factor)
                    .checked_pow(attempt - 1)
                    .and_then(|growth| growth.checked_mul(u128::from(base.get())))
                    .unwrap_or(u128::MAX);
                let expected = u64::try_from(exact).map_or(cap, |exact| ms(exact).min(cap));
                prop_assert_eq!(schedule.wait_before_jitter(attempt), Some(expected));
                prop_assert!(before <= expected);
                before = expected;
            }
        }
    }

    #[test]
    fn more_entropy_never_means_a_shorter_wait(
        schedule in schedule(),
        attempt in 1..25_u32,
        one in any::<u64>(),
        other in any::<u64>(),
    ) {
        let (less, more) = (one.min(other), one.max(other));
        prop_assert!(schedule.wait(attempt, less) <= schedule.wait(attempt, more));
    }
}
