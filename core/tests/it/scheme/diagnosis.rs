//! What is told of a request that does not verify.

use hookproof_core::scheme::{Key, Message, Mistake, Request, Scheme, diagnose};
use hookproof_core::time::Timestamp;

use super::{NOW, carried, fields, scheme};

const WHSEC: &str = "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";
const LITERAL: &str = "a literal secret of a vendor";

fn secret_of(scheme: &Scheme) -> &'static str {
    if scheme.name == "standard-webhooks" { WHSEC } else { LITERAL }
}

/// What is found when this was signed, and that body arrives.
fn found(name: &str, signed_body: &[u8], body: &[u8]) -> Vec<&'static str> {
    let scheme = scheme(name);
    let text = secret_of(&scheme);
    let key = Key::parse(scheme.key, text).expect("it holds");
    let url = "https://example.org/";
    let message = Message { id: "msg_1", at: NOW, method: "POST", url, body: signed_body };
    let (headers, _) = carried(&scheme.sign(&[key], &message).expect("it holds"), signed_body);
    codes(&scheme, &[text], &[], &Request { method: "POST", url, headers: &headers, body })
}

fn codes(
    scheme: &Scheme,
    secrets: &[&str],
    older: &[&str],
    request: &Request<'_>,
) -> Vec<&'static str> {
    let found = diagnose(scheme, secrets, older, request, NOW, scheme.tolerance);
    found.map_or_else(Vec::new, |found| found.mistakes.iter().map(Mistake::code).collect())
}

#[test]
fn cases_43_44_and_47_a_body_that_was_parsed_and_written_again_is_recognised() {
    let raw = r#"{"b": 1.0, "a": [1, {"t": "\u2665 x/y"}], "e": {}, "l": []}"#;
    let forms: [&str; 6] = [
        r#"{"b":1.0,"a":[1,{"t":"\u2665 x/y"}],"e":{},"l":[]}"#,
        r#"{"b":1.0,"a":[1,{"t":"♥ x/y"}],"e":{},"l":[]}"#,
        r#"{"b":1.0,"a":[1,{"t":"\u2665 x\/y"}],"e":{},"l":[]}"#,
        r#"{"b": 1.0, "a": [1, {"t": "♥ x/y"}], "e": {}, "l": []}"#,
        "{\n  \"b\": 1.0,\n  \"a\": [\n    1,\n    {\n      \"t\": \"\\u2665 x/y\"\n    }\n  ],\n  \
         \"e\": {},\n  \"l\": []\n}",
        r#"{"a":[1,{"t":"♥ x/y"}],"b":1.0,"e":{},"l":[]}"#,
    ];
    for name in ["standard-webhooks", "stripe", "github", "square"] {
        for form in forms {
            // Whichever of both was signed: what is told must hold for the one that arrives.
            assert_eq!(
                found(name, form.as_bytes(), raw.as_bytes()),
                ["body-reserialised"],
                "{form}"
            );
        }
    }
}

#[test]
fn a_changed_end_or_start_of_the_body_is_recognised() {
    let cases: [(&[u8], &[u8], &str); 6] = [
        (b"{}", b"{}\n", "trailing-newline"),
        (b"{}\r\n", b"{}", "trailing-newline"),
        (b"{}", b"\xef\xbb\xbf{}", "byte-order-mark"),
        (b"\xef\xbb\xbf{}", b"{}", "byte-order-mark"),
        (b"a\r\nb", b"a\nb", "line-breaks"),
        (b"", b"{\"a\":1}", "empty-body"),
    ];
    for (signed, arrived, expected) in cases {
        assert_eq!(found("github", signed, arrived), [expected], "{signed:?} {arrived:?}");
    }
    assert!(found("github", b"one", b"another").is_empty());
}

#[test]
fn case_53_a_secret_that_was_not_decoded_is_recognised() {
    let standard = scheme("standard-webhooks");
    let stripe = scheme("stripe");
    let bytes: String = (1..=32).map(|byte| format!("{byte:02x}")).collect();
    for (scheme, wrong) in [
        (&standard, Key::parse(stripe.key, WHSEC)),
        (&standard, Key::parse(stripe.key, &WHSEC[6..])),
        (&standard, Key::parse(stripe.key, &format!("{WHSEC}\n"))),
        (&standard, Key::parse(stripe.key, &bytes)),
        (&stripe, Key::parse(standard.key, WHSEC)),
    ] {
        let message = Message { id: "msg_1", at: NOW, method: "POST", url: "", body: b"{}" };
        let signed = scheme.sign(&[wrong.unwrap()], &message).unwrap();
        let (headers, body) = carried(&signed, b"{}");
        let request = Request { method: "POST", url: "", headers: &headers, body: &body };
        assert_eq!(codes(scheme, &[WHSEC], &[], &request), ["secret-decoding"]);
    }
}

#[test]
fn an_older_secret_another_scheme_and_two_mistakes_at_once_are_recognised() {
    let stripe = scheme("stripe");
    let old = Key::parse(stripe.key, "old").unwrap();
    let message = Message { id: "msg_1", at: NOW, method: "POST", url: "", body: b"{}" };
    let (headers, _) = carried(&stripe.sign(&[old], &message).unwrap(), b"{}");
    let request = Request { method: "POST", url: "", headers: &headers, body: b"{}" };
    assert_eq!(codes(&stripe, &["new"], &["older", "old"], &request), ["older-secret"]);
    assert_eq!(codes(&scheme("github"), &["old"], &[], &request), ["other-scheme"]);
    let request = Request { body: b"{}\n", ..request };
    let both = codes(&stripe, &["new"], &["old"], &request);
    assert_eq!(both, ["trailing-newline", "older-secret"]);
}

#[test]
fn two_mistakes_at_once_are_tried_on_a_body_of_64_kib_and_on_no_longer_one() {
    let github = scheme("github");
    let check = |length: usize, expected: &[&str]| {
        let body = vec![b'x'; length];
        let message = Message { id: "", at: NOW, method: "POST", url: "", body: &body[1..] };
        let old = Key::parse(github.key, "old").unwrap();
        let (headers, _) = carried(&github.sign(&[old], &message).unwrap(), &body);
        let ended = [&body[1..], b"\n"].concat();
        let request = Request { method: "POST", url: "", headers: &headers, body: &ended };
        assert_eq!(codes(&github, &["new"], &["old"], &request), expected, "{length}");
    };
    check(65_536, &["trailing-newline", "older-secret"]);
    check(65_537, &[]);
}

#[test]
fn a_signature_in_the_wrong_place_or_spelling_is_recognised() {
    // GitHub's published vector, spelt in other ways.
    let hex = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let base64 = "dXEH6g6yUJ/CESIczphLijdXC211hsIsRvQ3nIsEPhc=";
    let cases = [
        ("X-Hub-Signature-256", format!("sha256={base64}"), "encoding"),
        ("X-Hub-Signature-256", format!("sha256={}", hex.to_uppercase()), "encoding"),
        ("X-Hub-Signature-256", hex.to_owned(), "header-part"),
        ("X-Hub-Signature-256", format!("v1={hex}"), "header-part"),
        ("X-Other", format!("sha256={hex}"), "other-header"),
    ];
    for (name, value, expected) in cases {
        let headers = fields(&[(name, &value)]);
        let request = Request { headers: &headers, body: b"Hello, World!", ..Request::default() };
        let github = scheme("github");
        let found = codes(&github, &["It's a Secret to Everybody"], &[], &request);
        assert_eq!(found, [expected], "{name}: {value}");
    }
}

#[test]
fn case_59_a_time_in_the_wrong_unit_and_a_wrong_clock_are_told_apart() {
    let slack = scheme("slack");
    let at = |at: Timestamp| {
        let key = Key::parse(slack.key, LITERAL).unwrap();
        let message = Message { id: "", at, method: "POST", url: "", body: b"{}" };
        let (headers, _) = carried(&slack.sign(&[key], &message).unwrap(), b"{}");
        let request = Request { method: "POST", url: "", headers: &headers, body: b"{}" };
        codes(&slack, &[LITERAL], &[], &request)
    };
    assert_eq!(at(Timestamp::from_secs(NOW.as_millis())), ["timestamp-unit"]);
    assert_eq!(at(Timestamp::from_secs(NOW.as_secs() - 3600)), ["clock"]);
    assert!(at(NOW).is_empty(), "nothing is wrong");
}

#[test]
fn other_parts_than_those_of_the_scheme_are_named() {
    let slack = scheme("slack");
    let stripe = scheme("stripe");
    let key = Key::parse(stripe.key, LITERAL).unwrap();
    let message = Message { id: "", at: NOW, method: "POST", url: "", body: b"{}" };
    let signed = stripe.sign(&[key], &message).unwrap();
    let digest = signed.headers[0].1.split_once("v1=").unwrap().1.to_owned();
    let headers = fields(&[
        ("X-Slack-Request-Timestamp", "1700000000"),
        ("X-Slack-Signature", &format!("v0={digest}")),
    ]);
    let request = Request { headers: &headers, body: b"{}", ..Request::default() };
    let found = diagnose(&slack, &[LITERAL], &[], &request, NOW, slack.tolerance).unwrap();
    assert_eq!(found.mistakes, [Mistake::OtherParts("{timestamp}.{body}".to_owned())]);
}

#[test]
fn a_body_of_an_asymmetric_scheme_is_tried_too() {
    let text = super::published::SENDGRID_BODY.trim_end();
    let headers = fields(&super::published::SENDGRID_HEADERS);
    let request = Request { headers: &headers, body: text.as_bytes(), ..Request::default() };
    let sendgrid = scheme("sendgrid");
    assert_eq!(
        codes(&sendgrid, &[super::published::SENDGRID_KEY], &[], &request),
        ["trailing-newline"]
    );
}
