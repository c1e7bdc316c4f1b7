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
    check(|c| c.limits.connections_max = 0, "`limits.connections_max` is 0; give at least 1");
    check(
        |c| c.limits.connections_max = usize::MAX,
        "`limits.connections_max` is too large; give at most 1000000",
    );
    check(
        |c| c.limits.header_timeout = Millis::ZERO,
        "`limits.header_timeout` is 0; give at least 1",
    );
    check(
        |c| c.limits.write_timeout = Millis::ZERO,
        "`limits.write_timeout` is 0; give at least 1",
    );
}

#[test]
fn a_policy_that_cannot_work_is_refused_with_its_field() {
    let check = |change: fn(&mut Policy), field: &str| {
        let mut config = SenderConfig::default();
        change(&mut config.policy);
        // What is wrong with it is said by core, and tested there.
        let error = config.validate().expect_err(field).to_string();
        assert!(error.starts_with(&format!("in the policy, `{field}` ")), "{error}");
    };
    check(|p| p.connect_timeout = Millis::ZERO, "connect_timeout");
    check(|p| p.total_timeout = Millis::from_secs(2), "total_timeout");
    check(|p| p.lease_margin = Millis::ZERO, "lease_margin");
    check(|p| p.gate.concurrency_max = 0, "gate.concurrency_max");
    check(
        |p| {
            let rule = BreakerRule { failures_in_a_row: 0, ..BreakerRule::default() };
            p.gate.breaker = Some(rule);
        },
        "gate.breaker.failures_in_a_row",
    );
    check(
        |p| {
            let backoff = Backoff::Exponential {
                base: Millis::from_secs(1),
                factor: 2,
                cap: Millis::from_secs(9),
                attempts_max: 0,
            };
            p.schedule = Schedule::new(backoff, Jitter::Full);
        },
        "schedule.backoff.attempts_max",
    );
}

#[test]
fn an_address_policy_that_cannot_work_is_refused_with_its_field() {
    check(
        |c| c.address.schemes.clear(),
        "in the address policy, `schemes` is empty, so nothing would ever be sent",
    );
    check(|c| c.address.ports.push(0), "in the address policy, `ports` has 0, which is no port");
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
