//! What an outcome means, in both modes of the agreement.

use hookproof_core::classify::{Classification, ClientError, Signal, Verdict};
use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::rule::{Action, Rule};
use hookproof_core::time::Millis;
use proptest::prelude::*;

use crate::given::{
    FAILURES, answered, answered_later, check_round_trip, failed, failure, laws, millis, outcome,
    secs,
};

const RETRY: Verdict = Verdict::Retry { floor: None };

/// What `outcome` means by default, what it means where client errors are retried, and what it
/// says about the endpoint in both.
fn check(outcome: Outcome, by_default: Verdict, lenient: Verdict, signal: Signal) {
    check_signals(outcome, by_default, lenient, [signal; 2]);
}

fn check_signals(outcome: Outcome, by_default: Verdict, lenient: Verdict, signals: [Signal; 2]) {
    let default = Classification::default();
    let retrying = Classification { client_error: ClientError::Retry, ..default.clone() };
    assert_eq!(default.verdict(&outcome), by_default, "{outcome} by default");
    assert_eq!(retrying.verdict(&outcome), lenient, "{outcome} where client errors are retried");
    let told = [default, retrying].map(|agreement| agreement.signal(&outcome));
    assert_eq!(told, signals, "the signals of {outcome}");
}

#[test]
fn each_2xx_is_a_delivery() {
    for status in 200..=299 {
        check(answered(status), Verdict::Delivered, Verdict::Delivered, Signal::Success);
        let later = answered_later(status, secs(60));
        check(later, Verdict::Delivered, Verdict::Delivered, Signal::Success);
    }
}

#[test]
fn a_redirect_is_a_failure_that_is_retried_and_its_retry_after_is_not_heeded() {
    for status in 300..=399 {
        check(answered(status), RETRY, RETRY, Signal::Failure);
        check(answered_later(status, secs(60)), RETRY, RETRY, Signal::Failure);
    }
}

#[test]
fn a_status_that_says_try_again_is_retried_not_before_its_retry_after() {
    let floor = Verdict::Retry { floor: Some(secs(60)) };
    for status in [408, 425, 429].into_iter().chain(500..=599) {
        check(answered(status), RETRY, RETRY, Signal::Failure);
        check(answered_later(status, secs(60)), floor, floor, Signal::Failure);
    }
}

#[test]
fn a_410_ends_the_delivery_in_both_modes() {
    check(answered(410), Verdict::Gone, Verdict::Gone, Signal::Neither);
    check(answered_later(410, secs(60)), Verdict::Gone, Verdict::Gone, Signal::Neither);
}

#[test]
fn any_other_4xx_is_final_or_retried_as_the_setting_has_it() {
    let floor = Verdict::Retry { floor: Some(secs(60)) };
    for status in (400..=499).filter(|status| ![408, 410, 425, 429].contains(status)) {
        let signals = [Signal::Neither, Signal::Failure];
        check_signals(answered(status), Verdict::Final, RETRY, signals);
        check_signals(answered_later(status, secs(60)), Verdict::Final, floor, signals);
    }
}

#[test]
fn an_answer_that_is_not_the_final_one_is_a_failure_that_is_retried() {
    for status in 0..200 {
        check(answered(status), RETRY, RETRY, Signal::Failure);
        check(answered_later(status, secs(60)), RETRY, RETRY, Signal::Failure);
    }
}

#[test]
fn a_status_above_599_is_treated_as_a_5xx() {
    let floor = Verdict::Retry { floor: Some(secs(60)) };
    for status in (600..=999).chain([u16::MAX]) {
        check(answered(status), RETRY, RETRY, Signal::Failure);
        check(answered_later(status, secs(60)), floor, floor, Signal::Failure);
        assert_eq!(Classification::default().judge(&answered(status)).throttle, None, "{status}");
    }
}

#[test]
fn a_failure_without_an_answer_is_retried() {
    for failure in FAILURES.into_iter().filter(|failure| *failure != Failure::Blocked) {
        check(failed(failure), RETRY, RETRY, Signal::Failure);
    }
}

#[test]
fn what_our_own_settings_forbid_is_final_and_says_nothing_about_the_endpoint() {
    check(failed(Failure::Blocked), Verdict::Final, Verdict::Final, Signal::Neither);
}

#[test]
fn an_answer_that_a_rule_retries_is_a_failure_of_the_endpoint() {
    let rules = vec![Rule { when: "404".parse().expect("a status"), then: Action::Retry }];
    for client_error in [ClientError::Final, ClientError::Retry] {
        let agreement =
            Classification { rules: rules.clone(), client_error, ..Classification::default() };
        assert_eq!(agreement.signal(&answered(404)), Signal::Failure, "{client_error:?}");
        assert_eq!(agreement.signal(&answered(204)), Signal::Success, "{client_error:?}");
    }
}

#[test]
fn an_attempt_whose_process_ended_is_retried_and_says_nothing_about_the_endpoint() {
    check(Outcome::Unknown, RETRY, RETRY, Signal::Neither);
}

#[test]
fn a_retry_after_is_cut_to_what_the_setting_allows() {
    let floor = |retry_after, retry_after_max| {
        let agreement = Classification { retry_after_max, ..Classification::default() };
        agreement.verdict(&answered_later(503, retry_after))
    };
    let of = |wait| Verdict::Retry { floor: Some(wait) };
    assert_eq!(floor(secs(59), secs(60)), of(secs(59)));
    assert_eq!(floor(secs(60), secs(60)), of(secs(60)));
    assert_eq!(floor(secs(61), secs(60)), of(secs(60)));
    assert_eq!(floor(Millis::MAX, secs(60)), of(secs(60)));
    assert_eq!(floor(secs(5), Millis::ZERO), of(Millis::ZERO));
    assert_eq!(Classification::default().retry_after_max, Millis::from_hours(24));
}

#[test]
fn an_outcome_is_told_in_a_few_words() {
    let told = |outcome: Outcome| outcome.to_string();
    assert_eq!(told(answered(204)), "204");
    assert_eq!(told(answered_later(429, secs(90))), "429, retry after 1m30s");
    assert_eq!(told(Outcome::Unknown), "unknown");
    let failures: Vec<_> = FAILURES.into_iter().map(|failure| told(failed(failure))).collect();
    assert_eq!(
        failures.join(" "),
        "dns connect_refused connect_timeout tls reset timeout protocol oversize blocked"
    );
}

#[test]
fn a_failure_is_named_in_json_as_it_is_told() {
    for failure in FAILURES {
        let json = serde_json::to_value(failure).unwrap();
        assert_eq!(json, failure.as_str());
    }
}

#[test]
fn an_outcome_in_json_leaves_out_what_was_not_said() {
    let json = |outcome| serde_json::to_string(&outcome).unwrap();
    assert_eq!(json(answered(503)), r#"{"kind":"answered","status":503}"#);
    assert_eq!(
        json(answered_later(503, secs(5))),
        r#"{"kind":"answered","status":503,"retry_after":"5s"}"#
    );
    assert_eq!(json(failed(Failure::Dns)), r#"{"kind":"failed","failure":"dns"}"#);
    assert_eq!(json(Outcome::Unknown), r#"{"kind":"unknown"}"#);
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn an_outcome_and_its_verdict_come_back_from_json(outcome in outcome()) {
        check_round_trip(&outcome)?;
        check_round_trip(&Classification::default().verdict(&outcome))?;
    }

    #[test]
    fn no_floor_is_above_the_setting_and_none_comes_from_nowhere(
        status in any::<u16>(),
        asked in proptest::option::of(millis()),
        retry_after_max in millis(),
        lenient in any::<bool>(),
    ) {
        let client_error = if lenient { ClientError::Retry } else { ClientError::Final };
        let agreement = Classification { client_error, retry_after_max, rules: Vec::new() };
        let outcome = Outcome::Answered { status, retry_after: asked };
        if let Verdict::Retry { floor: Some(floor) } = agreement.verdict(&outcome) {
            prop_assert_eq!(Some(floor), asked.map(|asked| asked.min(retry_after_max)));
        }
    }

    #[test]
    fn a_success_is_a_delivery_and_a_delivery_a_success(outcome in outcome()) {
        let agreement = Classification::default();
        let delivered = agreement.verdict(&outcome) == Verdict::Delivered;
        prop_assert_eq!(agreement.signal(&outcome) == Signal::Success, delivered);
    }

    #[test]
    fn a_failure_without_an_answer_never_disables_an_endpoint(failure in failure()) {
        prop_assert_ne!(Classification::default().verdict(&failed(failure)), Verdict::Gone);
    }
}
