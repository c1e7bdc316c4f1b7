//! Policies: what is refused, and what an empty one means.

use hookproof_core::classify::ClientError;
use hookproof_core::gate::{BreakerRule, GateRule};
use hookproof_core::policy::Policy;
use hookproof_core::preset;
use hookproof_core::schedule::{Backoff, Jitter, Schedule};
use hookproof_core::time::Millis;
use proptest::prelude::*;

use crate::given::{check_round_trip, laws, ms, policy, secs};

/// That a default policy with this change is refused, and why.
fn check(change: impl FnOnce(&mut Policy), field: &str, message: &str) {
    let mut policy = Policy::default();
    change(&mut policy);
    let error = policy.validate().expect_err(message);
    assert_eq!(error.field(), field);
    assert_eq!(error.to_string(), message);
}

fn breaker(policy: &mut Policy) -> &mut BreakerRule {
    policy.gate.breaker.get_or_insert_default()
}

#[test]
fn a_setting_that_cannot_work_is_named() {
    check(
        |policy| policy.connect_timeout = Millis::ZERO,
        "connect_timeout",
        "`connect_timeout` is 0s; give at least 1ms",
    );
    check(
        |policy| policy.total_timeout = ms(2_999),
        "total_timeout",
        "`total_timeout` is shorter than the connect timeout that it includes",
    );
    check(
        |policy| policy.lease_margin = Millis::ZERO,
        "lease_margin",
        "`lease_margin` is 0s; the outcome could never be recorded in time",
    );
    check(
        |policy| policy.gate.concurrency_max = 0,
        "gate.concurrency_max",
        "`gate.concurrency_max` is 0, so nothing would ever be sent",
    );
}

#[test]
fn a_breaker_that_cannot_work_is_named() {
    check(
        |policy| breaker(policy).failures_in_a_row = 0,
        "gate.breaker.failures_in_a_row",
        "`gate.breaker.failures_in_a_row` is 0; give at least 1, or switch the breaker off with \
         `breaker = \"off\"`",
    );
    check(
        |policy| breaker(policy).pause = Millis::ZERO,
        "gate.breaker.pause",
        "`gate.breaker.pause` is 0s; give at least 1ms",
    );
    check(
        |policy| breaker(policy).pause_max = ms(59_999),
        "gate.breaker.pause_max",
        "`gate.breaker.pause_max` is shorter than the first pause",
    );
}

#[test]
fn a_schedule_that_cannot_work_is_named_with_its_path() {
    let with = |base, factor, cap, attempts_max| {
        let backoff = Backoff::Exponential { base, factor, cap, attempts_max };
        move |policy: &mut Policy| policy.schedule = Schedule::new(backoff, Jitter::Full)
    };
    check(
        with(secs(1), 2, secs(60), 0),
        "schedule.backoff.attempts_max",
        "`schedule.backoff.attempts_max` is 0, but must be 1 to 100000",
    );
    check(
        with(secs(1), 0, secs(60), 5),
        "schedule.backoff.factor",
        "`schedule.backoff.factor` is 0, but must be at least 1 (1 repeats the base)",
    );
    check(
        with(ms(0), 2, secs(60), 5),
        "schedule.backoff.base",
        "`schedule.backoff.base` is 0s, which would retry without pause; give at least 1ms",
    );
    check(
        with(secs(2), 2, secs(1), 5),
        "schedule.backoff.cap",
        "`schedule.backoff.cap` is 1s, but must be at least the base, 2s",
    );
    check(
        |policy| policy.schedule.backoff = Backoff::List { waits: vec![secs(1); 100_000] },
        "schedule.backoff.waits",
        "`schedule.backoff.waits` has 100000 entries, but at most 99999 are allowed",
    );
}

#[test]
fn settings_at_the_edge_of_what_can_work_are_valid() {
    let policy = Policy {
        connect_timeout: ms(1),
        total_timeout: ms(1),
        lease_margin: ms(1),
        gate: GateRule {
            concurrency_max: 1,
            breaker: Some(BreakerRule {
                failures_in_a_row: 1,
                pause: ms(1),
                pause_max: ms(1),
                ..BreakerRule::default()
            }),
            ..GateRule::default()
        },
        ..Policy::default()
    };
    assert_eq!(policy.validate(), Ok(()));
    let gate = GateRule { breaker: None, ..policy.gate.clone() };
    assert_eq!(Policy { gate, ..policy }.validate(), Ok(()));
}

#[test]
fn the_default_policy_is_valid_and_is_what_the_documentation_says() {
    let policy = Policy::default();
    assert_eq!(policy.validate(), Ok(()));
    assert_eq!(policy.schedule, preset::standard_webhooks().schedule);
    assert_eq!(policy.classification.client_error, ClientError::Final);
    assert_eq!(policy.classification.retry_after_max.to_string(), "24h");
    assert_eq!(policy.connect_timeout.to_string(), "3s");
    assert_eq!(policy.total_timeout.to_string(), "10s");
    assert_eq!(policy.lease().to_string(), "15s");
    assert_eq!(policy.gate.concurrency_max, 10);
    let breaker = policy.gate.breaker.expect("a breaker");
    assert_eq!(breaker.failures_in_a_row, 20);
    assert_eq!(
        (breaker.pause.to_string(), breaker.pause_max.to_string()),
        ("1m".into(), "1h".into())
    );
}

#[test]
fn a_lease_covers_the_attempt_and_its_recording_and_saturates() {
    let policy = Policy { total_timeout: secs(30), lease_margin: secs(2), ..Policy::default() };
    assert_eq!(policy.lease(), secs(32));
    assert_eq!(Policy { total_timeout: Millis::MAX, ..policy }.lease(), Millis::MAX);
}

#[test]
fn what_a_policy_leaves_out_is_the_default() {
    let read = |text| serde_json::from_str::<Policy>(text).expect("a policy");
    assert_eq!(read("{}"), Policy::default());
    let with_timeout = read(r#"{"total_timeout": "30s", "gate": {"concurrency_max": 3}}"#);
    assert_eq!(with_timeout.total_timeout, secs(30));
    assert_eq!(with_timeout.gate, GateRule { concurrency_max: 3, ..GateRule::default() });
    let with_breaker = read(r#"{"gate": {"breaker": {"pause": "5s"}}}"#);
    assert_eq!(
        with_breaker.gate.breaker,
        Some(BreakerRule { pause: secs(5), ..BreakerRule::default() })
    );
}

#[test]
fn a_breaker_that_is_off_is_written_as_a_word() {
    let off = GateRule { breaker: None, ..GateRule::default() };
    assert_eq!(
        serde_json::to_string(&off).unwrap(),
        r#"{"concurrency_max":10,"throttle_max":"5m","breaker":"off"}"#
    );
    // From a text that is escaped, from a reader and from a tree, the word arrives in other ways.
    let texts = [r#"{"breaker": "off"}"#, r#"{"breaker": "\u006fff"}"#];
    for text in texts {
        assert_eq!(serde_json::from_str::<GateRule>(text).unwrap(), off, "{text}");
        assert_eq!(serde_json::from_reader::<_, GateRule>(text.as_bytes()).unwrap(), off);
        let tree: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::from_value::<GateRule>(tree).unwrap(), off);
    }
    let on = serde_json::from_value::<GateRule>(serde_json::json!({ "breaker": {} })).unwrap();
    assert_eq!(on, GateRule::default());
}

fn check_breaker_error(breaker: &str, expected: &str) {
    let text = format!(r#"{{"gate": {{"breaker": {breaker}}}}}"#);
    let error = serde_json::from_str::<Policy>(&text).expect_err(expected).to_string();
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn what_is_neither_a_breaker_nor_the_word_off_is_refused_with_both() {
    let expected = r#"expected the settings of a breaker, or "off" at"#;
    for word in ["Off", "on", "none", "off ", ""] {
        let told = format!("invalid value: string \"{word}\", {expected}");
        check_breaker_error(&format!("\"{word}\""), &told);
    }
    check_breaker_error("null", &format!("invalid type: null, {expected}"));
    check_breaker_error("false", &format!("invalid type: boolean `false`, {expected}"));
    check_breaker_error("[]", &format!("invalid type: sequence, {expected}"));
    check_breaker_error(r#"{"pauze": "5s"}"#, "unknown field `pauze`, expected one of");
}

#[test]
fn a_misspelt_setting_is_refused() {
    for text in [
        r#"{"total_timout": "30s"}"#,
        r#"{"gate": {"concurency_max": 3}}"#,
        r#"{"gate": {"breaker": {"pauze": "5s"}}}"#,
        r#"{"classification": {"client_errors": "retry"}}"#,
        r#"{"classification": {"client_error": "ignore"}}"#,
        r#"{"total_timeout": 30}"#,
    ] {
        assert!(serde_json::from_str::<Policy>(text).is_err(), "{text}");
    }
}

fn holds_null(tree: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Bool, Null, Number, Object, String};
    match tree {
        Null => true,
        Bool(_) | Number(_) | String(_) => false,
        Array(items) => items.iter().any(holds_null),
        Object(fields) => fields.values().any(holds_null),
    }
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn any_valid_policy_comes_back_from_json(policy in policy()) {
        prop_assert_eq!(policy.validate(), Ok(()));
        check_round_trip(&policy)?;
    }

    #[test]
    fn any_policy_can_be_written_without_a_null_which_toml_has_not(policy in policy()) {
        let tree = serde_json::to_value(&policy).expect("it can be written");
        prop_assert!(!holds_null(&tree), "{}", tree);
        let back: Policy = serde_json::from_value(tree).expect("it can be read back");
        prop_assert_eq!(back, policy);
    }

    #[test]
    fn a_lease_outlives_every_attempt_of_a_valid_policy(policy in policy()) {
        prop_assert!(policy.lease() > policy.total_timeout || policy.lease() == Millis::MAX);
    }
}

#[test]
fn a_window_that_leaves_its_counts_out_is_satisfied_with_one() {
    let text = r#"{"breaker": {"window": {"within": "1h", "share_percent": 50}}}"#;
    let rule: GateRule = serde_json::from_str(text).expect("a rule");
    let window = rule.breaker.and_then(|breaker| breaker.window).expect("a window");
    assert_eq!((window.failures, window.attempts_min), (1, 1));
}
