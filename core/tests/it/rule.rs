//! Rules of one's own, which stand before the agreement.

use hookproof_core::classify::{
    AGREEMENT, Classification, ClientError, DecidedBy, Line, PRESETS, Signal, Throttle, Verdict,
};
use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::rule::{Action, Condition, Rule};
use proptest::prelude::*;

use crate::given::{answered, answered_later, check_round_trip, failed, laws, outcome, secs};

fn with(rules: &[(&str, Action)]) -> Classification {
    let rule = |(when, then): &(&str, Action)| Rule {
        when: when.parse().expect("it is a condition"),
        then: *then,
    };
    Classification { rules: rules.iter().map(rule).collect(), ..Classification::default() }
}

fn check(rules: &[(&str, Action)], outcome: Outcome, verdict: Verdict, signal: Signal) {
    let judgement = with(rules).judge(&outcome);
    assert_eq!((judgement.verdict, judgement.signal), (verdict, signal), "{outcome} by {rules:?}");
    assert!(matches!(judgement.by, DecidedBy::Rule(_)), "{outcome} by {rules:?}");
}

const RETRY: Verdict = Verdict::Retry { floor: None };

#[test]
fn each_action_decides_about_a_status() {
    let failure = Signal::Failure;
    check(&[("503", Action::Delivered)], answered(503), Verdict::Delivered, Signal::Success);
    check(&[("503", Action::Retry)], answered_later(503, secs(5)), RETRY, failure);
    let floor = Verdict::Retry { floor: Some(secs(5)) };
    check(&[("503", Action::RetryAfter)], answered_later(503, secs(5)), floor, failure);
    check(&[("503", Action::Fail)], answered(503), Verdict::Final, failure);
    check(&[("503", Action::DisableEndpoint)], answered(503), Verdict::Gone, failure);
}

#[test]
fn case_32_only_what_is_delivered_is_a_success() {
    check(&[("200-299", Action::Fail)], answered(204), Verdict::Final, Signal::Neither);
    check(&[("202", Action::Retry)], answered(202), RETRY, Signal::Failure);
    check(&[("200", Action::DisableEndpoint)], answered(200), Verdict::Gone, Signal::Neither);
    check(&[("409", Action::Delivered)], answered(409), Verdict::Delivered, Signal::Success);
    for status in [403, 404, 410] {
        let judgement = Classification::default().judge(&answered(status));
        assert_eq!(judgement.signal, Signal::Neither, "{status}");
        assert_ne!(judgement.verdict, Verdict::Delivered, "{status}");
    }
}

#[test]
fn a_kind_of_failure_can_have_its_own_rule() {
    check(&[("dns", Action::Fail)], failed(Failure::Dns), Verdict::Final, Signal::Failure);
    check(
        &[("tls", Action::DisableEndpoint)],
        failed(Failure::Tls),
        Verdict::Gone,
        Signal::Failure,
    );
    let other = with(&[("dns", Action::Fail)]).judge(&failed(Failure::Tls));
    assert_eq!((other.verdict, other.by), (RETRY, DecidedBy::Agreement(&AGREEMENT[9])));
}

#[test]
fn the_first_rule_that_fits_decides() {
    let rules = with(&[("404", Action::Retry), ("400-499", Action::DisableEndpoint)]);
    let judged = |status| {
        let judgement = rules.judge(&answered(status));
        (judgement.verdict, judgement.by)
    };
    assert_eq!(judged(404), (RETRY, DecidedBy::Rule(0)));
    assert_eq!(judged(400), (Verdict::Gone, DecidedBy::Rule(1)));
    assert_eq!(judged(499), (Verdict::Gone, DecidedBy::Rule(1)));
    assert_eq!(judged(399), (RETRY, DecidedBy::Agreement(&AGREEMENT[1])));
    assert_eq!(judged(500), (RETRY, DecidedBy::Agreement(&AGREEMENT[6])));
}

#[test]
fn case_15_16_22_a_429_is_retried_not_before_its_retry_after_and_throttles() {
    let judgement = Classification::default().judge(&answered_later(429, secs(30)));
    assert_eq!(judgement.verdict, Verdict::Retry { floor: Some(secs(30)) });
    assert_eq!(judgement.throttle, Some(Throttle { wait: Some(secs(30)) }));
}

#[test]
fn exactly_429_502_503_and_504_throttle_the_endpoint() {
    let agreement = Classification::default();
    let throttling: Vec<_> =
        (0..=999).filter(|status| agreement.judge(&answered(*status)).throttle.is_some()).collect();
    assert_eq!(throttling, [429, 502, 503, 504]);
    // What they mean for the delivery is another question.
    let finally = with(&[("503", Action::Fail)]).judge(&answered(503));
    assert_eq!(finally.throttle, Some(Throttle { wait: None }));
    // A wait is bounded, also there.
    let long = agreement.judge(&answered_later(503, secs(1_000_000)));
    assert_eq!(long.throttle, Some(Throttle { wait: Some(agreement.retry_after_max) }));
}

#[test]
fn case_23_24_25_27_29_30_31_the_agreement_decides_by_these_lines() {
    for (outcome, line) in [
        (answered(201), "200-299"),
        (answered(202), "200-299"),
        (answered(204), "200-299"),
        (answered(301), "300-399"),
        (answered(302), "300-399"),
        (answered(408), "408, 425, 429"),
        (answered(410), "410"),
        (answered(401), "other 400-499"),
        (answered(500), "500-599"),
        (answered(199), "100-199"),
        (answered(600), "600-999"),
        (failed(Failure::Dns), "no answer"),
        (failed(Failure::Oversize), "no answer"),
        (Outcome::Unknown, "unknown"),
        (failed(Failure::Blocked), "blocked"),
    ] {
        match Classification::default().judge(&outcome).by {
            DecidedBy::Agreement(decided) => assert_eq!(decided.when, line, "{outcome}"),
            DecidedBy::Rule(at) => unreachable!("there is no rule {at}"),
        }
    }
}

#[test]
fn the_line_that_decides_about_a_4xx_names_the_setting_that_decided() {
    for (preset, setting) in
        [("seed", "client_error final"), ("standard-webhooks", "client_error retry")]
    {
        let agreement = Classification::preset(preset).expect("it is known");
        let DecidedBy::Agreement(line) = agreement.judge(&answered(404)).by else {
            unreachable!("there are no rules")
        };
        assert_eq!(line.when, "other 400-499");
        let about_4xx = |line: &&&Line| line.when == "other 400-499";
        let lines: Vec<_> = agreement.lines().collect();
        assert_eq!(lines.iter().filter(about_4xx).collect::<Vec<_>>(), [&line], "{preset}");
        assert_eq!(lines.len(), AGREEMENT.len() - 1);
        assert!(line.then.contains(setting), "{line:?}");
    }
}

#[test]
fn the_presets_differ_in_what_a_4xx_means() {
    let preset = |name| Classification::preset(name).expect("it is known");
    assert_eq!(
        PRESETS.map(preset).map(|agreement| agreement.verdict(&answered(404))),
        [Verdict::Final, RETRY]
    );
    assert_eq!(preset("seed"), Classification::default());
    assert_eq!(preset("standard-webhooks").client_error, ClientError::Retry);
    assert_eq!(Classification::preset("seeds"), None);
}

#[test]
fn a_condition_is_a_status_a_range_or_a_kind_of_failure() {
    let read = |text: &str| text.parse::<Condition>().ok();
    assert_eq!(read("404"), Some(Condition::Status(404, 404)));
    assert_eq!(read("100-599"), Some(Condition::Status(100, 599)));
    assert_eq!(read("600-999"), Some(Condition::Status(600, 999)));
    assert_eq!(read("500-500"), Some(Condition::Status(500, 500)));
    assert_eq!(read("connect_timeout"), Some(Condition::Failed(Failure::ConnectTimeout)));
    for wrong in [
        "",
        "99",
        "099",
        "1000",
        "0404",
        "404 ",
        "+44",
        "5xx",
        "599-500",
        "500-",
        "-500",
        "500-599-600",
        "blocked",
        "unknown",
        "DNS",
    ] {
        assert_eq!(read(wrong), None, "{wrong}");
    }
}

#[test]
fn a_rule_is_written_with_a_condition_and_an_action() {
    let text = r#"{"rules":[{"when":"404","then":"disable_endpoint"}]}"#;
    let read: Classification = serde_json::from_str(text).expect("it is an agreement");
    assert_eq!(read, with(&[("404", Action::DisableEndpoint)]));
    let old = r#"{"client_error":"retry","retry_after_max":"5m"}"#;
    assert!(serde_json::from_str::<Classification>(old).is_ok());
    for wrong in [
        r#"{"rules":[{"when":"blocked","then":"retry"}]}"#,
        r#"{"rules":[{"when":"404","then":"ignore"}]}"#,
        r#"{"rules":[{"when":404,"then":"retry"}]}"#,
        r#"{"rules":[{"when":"404","then":"retry","and":"more"}]}"#,
    ] {
        assert!(serde_json::from_str::<Classification>(wrong).is_err(), "{wrong}");
    }
}

fn action() -> impl Strategy<Value = Action> {
    proptest::sample::select(vec![
        Action::Delivered,
        Action::Retry,
        Action::RetryAfter,
        Action::Fail,
        Action::DisableEndpoint,
    ])
}

fn rule() -> impl Strategy<Value = Rule> {
    let status = (100..1000_u16, 100..1000_u16)
        .prop_map(|(one, other)| Condition::Status(one.min(other), one.max(other)));
    let failures = Failure::ALL[..Failure::ALL.len() - 1].to_vec();
    let failure = proptest::sample::select(failures).prop_map(Condition::Failed);
    (prop_oneof![3 => status, 1 => failure], action()).prop_map(|(when, then)| Rule { when, then })
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn no_text_makes_the_reading_of_a_condition_panic(text in ".{0,12}", close in "[0-9x-]{0,8}") {
        for text in [text, close] {
            if let Ok(condition) = text.parse::<Condition>() {
                prop_assert_eq!(condition.to_string().parse(), Ok(condition));
            }
        }
    }

    #[test]
    fn whatever_the_rules_delivered_alone_is_a_success(
        rules in proptest::collection::vec(rule(), 0..6),
        outcome in outcome(),
    ) {
        let agreement = Classification { rules, ..Classification::default() };
        check_round_trip(&agreement)?;
        let judgement = agreement.judge(&outcome);
        prop_assert_eq!(judgement.signal == Signal::Success, judgement.verdict == Verdict::Delivered);
        let first = agreement.rules.iter().position(|rule| rule.when.fits(&outcome));
        match judgement.by {
            DecidedBy::Rule(at) => prop_assert_eq!(Some(at), first),
            DecidedBy::Agreement(_) => prop_assert_eq!(first, None),
        }
        if matches!(outcome, Outcome::Failed { failure: Failure::Blocked }) {
            prop_assert_eq!(judgement.verdict, Verdict::Final);
        }
    }
}

#[test]
fn conditions_are_told_as_they_are_written() {
    for text in ["404", "500-599", "timeout"] {
        let condition: Condition = text.parse().expect("a condition");
        assert_eq!(condition.to_string(), text);
    }
    let error = "4o4".parse::<Condition>().expect_err("no number").to_string();
    assert!(error.starts_with("`4o4` is not an outcome that a rule can be about"), "{error}");
    assert!(error.contains("connect_refused") && !error.contains("blocked"), "{error}");
}
