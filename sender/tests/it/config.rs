//! Which configurations hold together.

use hookproof_core::gate::BreakerRule;
use hookproof_core::policy::Policy;
use hookproof_core::schedule::{Backoff, Jitter, Schedule};
use hookproof_core::time::Millis;
use hookproof_sender::config::SenderConfig;

fn check(change: impl FnOnce(&mut SenderConfig), expected: &str) {
    let mut config = SenderConfig::default();
    change(&mut config);
    assert_eq!(config.validate().expect_err(expected).to_string(), expected);
}

#[test]
fn a_configuration_that_cannot_work_is_refused_with_its_field() {
    check(|c| c.attempts_max = 0, "`attempts_max` is 0; give at least 1");
    check(|c| c.body_bytes_max = 0, "`body_bytes_max` is 0; give at least 1");
    check(|c| c.body_timeout = Millis::ZERO, "`body_timeout` is 0; give at least 1");
    check(|c| c.sweep_interval = Millis::ZERO, "`sweep_interval` is 0; give at least 1");
}

#[test]
fn a_policy_that_cannot_work_is_refused_with_its_field() {
    check(
        |c| c.policy.connect_timeout = Millis::ZERO,
        "in the policy, `connect_timeout` is 0s; give at least 1ms",
    );
    check(
        |c| c.policy.total_timeout = Millis::from_secs(2),
        "in the policy, `total_timeout` is shorter than the connect timeout that it includes",
    );
    check(
        |c| c.policy.gate.concurrency_max = 0,
        "in the policy, `gate.concurrency_max` is 0, so nothing would ever be sent",
    );
    check(
        |c| {
            let rule = BreakerRule { failures_in_a_row: 0, ..BreakerRule::default() };
            c.policy.gate.breaker = Some(rule);
        },
        "in the policy, `gate.breaker.failures_in_a_row` is 0; give at least 1, or leave it out",
    );
    check(
        |c| {
            let backoff = Backoff::Exponential {
                base: Millis::from_secs(1),
                factor: 2,
                cap: Millis::from_secs(9),
                attempts_max: 0,
            };
            c.policy.schedule = Schedule { backoff, jitter: Jitter::Full };
        },
        "in the policy, `schedule.attempts_max` is 0, but must be 1 to 10000",
    );
}

#[test]
fn the_default_holds_together() {
    let config = SenderConfig::default();
    config.validate().expect("it is valid");
    assert_eq!(config.policy, Policy::default());
    assert_eq!(config.policy.connect_timeout, Millis::from_secs(3));
    assert_eq!(config.policy.total_timeout, Millis::from_secs(10));
    assert_eq!(config.policy.schedule.attempts_max(), 10);
}

#[test]
fn no_excerpt_at_all_is_a_choice() {
    let config = SenderConfig { excerpt_bytes_max: 0, ..SenderConfig::default() };
    config.validate().expect("it is valid");
}

#[test]
fn a_written_configuration_is_read_back_and_what_is_left_out_is_the_default() {
    let config = SenderConfig { attempts_max: 7, ..SenderConfig::default() };
    let written = serde_json::to_string(&config).expect("it can be written");
    assert_eq!(serde_json::from_str::<SenderConfig>(&written).expect("it can be read"), config);
    let read: SenderConfig = serde_json::from_str(r#"{"attempts_max": 7}"#).expect("it is enough");
    assert_eq!(read, config);
    let error = serde_json::from_str::<SenderConfig>(r#"{"atempts_max": 7}"#).expect_err("a slip");
    assert!(error.to_string().starts_with("unknown field `atempts_max`, expected "), "{error}");
}
