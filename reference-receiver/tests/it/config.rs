//! A configuration says what is wrong with it, and with which field.

use hookproof_core::ordering::Late;
use hookproof_core::schedule::{ATTEMPTS_MAX, Backoff};
use hookproof_core::signature::TOLERANCE;
use hookproof_core::time::Millis;
use hookproof_receiver::config::{BODY_BYTES_MAX_HIGHEST, ReceiverConfig, Source};
use hookproof_receiver::downstream::Downstream;

use crate::given::{config, secrets, source, source_id};

const SHOP: &str = r#"
[[sources]]
id = "shop"
secrets = ["whsec_c2hvcHNob3BzaG9wc2hvcHNob3BzaG9wc2hvcHNob3A="]
"#;

#[test]
fn a_file_needs_to_name_no_more_than_the_sources() {
    let config: ReceiverConfig = toml::from_str(SHOP).unwrap();
    assert_eq!(config, ReceiverConfig::new(vec![source("shop")]));
    assert_eq!(config.sources[0].verifier.tolerance, Some(TOLERANCE));
    assert_eq!(config.body_bytes_max, 1_048_576);
    assert_eq!(config.body_timeout, Millis::from_secs(10));
    assert_eq!(config.sweep_interval, Millis::from_secs(1));
    config.validate().unwrap();
}

#[test]
fn a_file_can_set_everything() {
    let text = r#"
        body_bytes_max = 2000
        body_timeout = "3s"
        sweep_interval = "250ms"

        [inbox]
        lease = "1m"
        schedule = { backoff = { kind = "list", waits = ["1s"] }, jitter = "none" }

        [limits]
        connections_max = 7
        drain_timeout = "2s"

        [[sources]]
        id = "shop"
        secrets = ["whsec_c2hvcHNob3BzaG9wc2hvcHNob3BzaG9wc2hvcHNob3A="]
        tolerance = "1m"
        ordering = { entity = "/data/id", version = "/data/version", late = "reconcile" }
    "#;
    let config: ReceiverConfig = toml::from_str(text).unwrap();
    config.validate().unwrap();
    assert_eq!(config.sources[0].ordering.as_ref().map(|o| o.late), Some(Late::Reconcile));
    assert_eq!((config.body_bytes_max, config.body_timeout), (2000, Millis::from_secs(3)));
    assert_eq!(config.sweep_interval, Millis::new(250));
    assert_eq!(config.inbox.lease, Millis::from_minutes(1));
    assert_eq!(config.limits.connections_max, 7);
    assert_eq!(config.limits.header_timeout, Millis::from_secs(10), "left out: as usual");
    assert_eq!(config.limits.drain_timeout, Millis::from_secs(2));
    assert_eq!(config.sources[0].verifier.tolerance, Some(Millis::from_minutes(1)));
}

#[test]
fn a_file_with_an_unknown_or_malformed_field_is_refused() {
    let check = |text: &str, problem: &str| {
        let error = toml::from_str::<ReceiverConfig>(text).unwrap_err().to_string();
        assert!(error.contains(problem), "{text}\n{error}");
        assert!(!error.contains("c2hvcHNob3"), "the secret is shown: {error}");
    };
    check(&format!("body_bytes = 1\n{SHOP}"), "unknown field `body_bytes`");
    check(&format!("[limits]\nmax = 1\n{SHOP}"), "unknown field `max`");
    check(&format!("[inbox]\nleese = \"1s\"\n{SHOP}"), "unknown field `leese`");
    check(&format!("{SHOP}secret = 1"), "unknown field `secret`");
    check(&format!("body_timeout = 3\n{SHOP}"), "expected a string");
    let order = "ordering = { entity = \"data.id\", version = \"/version\" }";
    check(&format!("{SHOP}{order}"), "`data.id` is no JSON Pointer: write /data/id");
    let order = "ordering = { entity = \"/id\" }";
    check(&format!("{SHOP}{order}"), "missing field `version`");
    let called = "downstream = { url = \"https://ledger/\" }";
    check(&format!("{SHOP}{called}"), "`https://ledger/` is https, and calls leave in the clear");
    let called = "downstream = { url = \"http://ledger/\", retries = 1 }";
    check(&format!("{SHOP}{called}"), "unknown field `retries`");
    check("[[sources]]\nid = \"a.b\"\nsecrets = []", "an identifier may hold only");
    check("[[sources]]\nid = \"a\"\nsecrets = []", "0 secrets given");
}

fn downstream(timeout: &str) -> Option<Downstream> {
    let text = format!("url = \"http://ledger/entries\"\ntimeout = \"{timeout}\"");
    Some(toml::from_str(&text).expect("a service"))
}

#[test]
fn a_service_to_call_is_named_by_its_url_and_has_five_seconds() {
    let named = format!("{SHOP}downstream = {{ url = \"http://ledger:8090/entries\" }}");
    let config: ReceiverConfig = toml::from_str(&named).unwrap();
    config.validate().unwrap();
    let expected = Downstream::new("http://ledger:8090/entries").unwrap();
    assert_eq!(config.sources[0].downstream, Some(expected.clone()));
    assert_eq!(expected.timeout, Millis::from_secs(5));
}

#[test]
fn what_the_types_cannot_check_is_checked_and_the_field_named() {
    let check = |spoil: fn(&mut ReceiverConfig), error: &str| {
        let mut spoilt = config();
        spoil(&mut spoilt);
        let found = spoilt.validate().unwrap_err();
        assert_eq!(found.to_string(), error);
        assert!(error.starts_with(&format!("`{}` ", found.field())), "{error}");
    };
    config().validate().unwrap();
    check(
        |config| config.sources.clear(),
        "`sources` is empty; give at least one, with an id and secrets",
    );
    check(
        |config| config.sources.push(Source::new(source_id("shop"), &secrets("other"))),
        "`sources[2].id` repeats `shop` of sources[0]; to rotate a secret, list both secrets in \
         one source",
    );
    check(
        |config| config.sources[1].verifier.tolerance = Some(Millis::new(999)),
        "`sources[1].tolerance` is 999ms, but timestamps are whole seconds: give 1s or more",
    );
    check(|config| config.body_bytes_max = 0, "`body_bytes_max` is 0, but must be 1 to 268435456");
    check(
        |config| config.body_bytes_max = BODY_BYTES_MAX_HIGHEST + 1,
        "`body_bytes_max` is 268435457, but must be 1 to 268435456",
    );
    check(
        |config| config.limits.connections_max = 0,
        "`limits.connections_max` is 0, but must be 1 to 1000000",
    );
    check(
        |config| config.limits.header_timeout = Millis::ZERO,
        "`limits.header_timeout` is 0s, but must be at least 1ms",
    );
    check(
        |config| config.limits.write_timeout = Millis::ZERO,
        "`limits.write_timeout` is 0s, but must be at least 1ms",
    );
    check(
        |config| config.body_timeout = Millis::ZERO,
        "`body_timeout` is 0s, but must be at least 1ms",
    );
    check(
        |config| config.sweep_interval = Millis::ZERO,
        "`sweep_interval` is 0s, but must be at least 1ms",
    );
    check(
        |config| config.inbox.lease = Millis::ZERO,
        "`inbox.lease` is 0s, but must be at least 1ms",
    );
    check(
        |config| config.sources[1].downstream = downstream("30s"),
        "`sources[1].downstream.timeout` is 30s, but must be less than `inbox.lease`, which is 30s: \
         a call must end before another worker may make it",
    );
    check(
        |config| config.sources[0].downstream = downstream("0s"),
        "`sources[0].downstream.timeout` is 0s, but must be at least 1ms",
    );
    check(
        |config| {
            config.sources[0].downstream = downstream("1s");
            let ordering = "entity = \"/id\"\nversion = \"/version\"";
            config.sources[0].ordering = toml::from_str(ordering).ok();
        },
        "`sources[0].downstream` cannot be used with `ordering`: versions are compared in the \
         transaction of the effect, which does not reach another service; let that one compare them",
    );
    check(
        |config| {
            config.inbox.schedule.backoff = Backoff::Exponential {
                base: Millis::from_secs(1),
                factor: 0,
                cap: Millis::from_secs(1),
                attempts_max: 1,
            };
        },
        "`inbox.schedule.backoff.factor` is 0, but must be at least 1 (1 repeats the base)",
    );
    check(
        |config| {
            config.inbox.schedule.backoff = Backoff::Exponential {
                base: Millis::from_secs(1),
                factor: 2,
                cap: Millis::from_secs(1),
                attempts_max: ATTEMPTS_MAX,
            };
        },
        "`inbox.schedule.backoff.attempts_max` is left out, and an event has no age that would end the \
         work on it; give a number of attempts",
    );
}

#[test]
fn a_secret_is_not_printed_with_a_configuration() {
    let printed = format!("{:?}", config());
    assert!(printed.contains("Key(…)"), "{printed}");
    assert!(!printed.contains("115, 104, 111, 112"), "{printed}");
}
