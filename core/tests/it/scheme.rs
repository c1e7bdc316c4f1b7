//! Schemes of the field: against published vectors, other implementations, and by hand.

mod challenge;
mod dates;
mod descriptions;
mod diagnosis;
mod laws;
mod mistakes;
mod oracles;
mod published;
mod vectors;

use hookproof_core::scheme::{
    Fault, Key, KeyError, KeyForm, Message, Place, Request, Role, Scheme, SignError, Signed,
    Template, TimestampUnit, known,
};
use hookproof_core::secret::SecretError;
use hookproof_core::time::{Millis, Timestamp};

use vectors::VECTORS;

const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);
const BODY: &str = "{\"type\":\"order.paid\",\"total\":12.50,\"name\":\"Jürgen 💶\"}\n";
const URL: &str = "https://example.org/hooks%3Aa?x=1&y=%2F";

fn scheme(name: &str) -> Scheme {
    known::find(name).expect(name)
}

fn key(scheme: &Scheme, text: &str) -> Key {
    Key::parse(scheme.key, text).expect(&scheme.name)
}

fn fields(headers: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
    headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect()
}

fn message(scheme: &Scheme) -> (String, Vec<u8>) {
    (scheme.url_to_call(URL, BODY.as_bytes(), false), BODY.as_bytes().to_vec())
}

/// The request that carries what was signed.
fn carried(signed: &Signed, body: &[u8]) -> (Vec<(String, Vec<u8>)>, Vec<u8>) {
    let headers = signed.headers.iter().map(|(n, v)| (n.clone(), v.clone().into_bytes())).collect();
    if signed.fields.is_empty() {
        return (headers, body.to_vec());
    }
    let mut inner = serde_json::Map::new();
    for (pointer, value) in &signed.fields {
        let name = pointer.strip_prefix("/signature/").expect("only Mailgun signs fields");
        inner.insert(name.to_owned(), value.clone().into());
    }
    (headers, serde_json::json!({ "signature": inner }).to_string().into_bytes())
}

/// Verifies a published request, whose time is now.
fn check(
    name: &str,
    secret: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &[u8],
    expected: impl Into<Option<Fault>>,
) {
    let scheme = scheme(name);
    let headers = fields(headers);
    let request = Request { method: "POST", url, headers: &headers, body };
    let found = scheme.verify(&[key(&scheme, secret)], &request, NOW, None);
    assert_eq!(found.err(), expected.into(), "{name}: {request:?}");
}

#[test]
fn each_scheme_signs_as_another_implementation_does() {
    for (name, secret, expected) in VECTORS {
        let scheme = scheme(name);
        let (url, body) = message(&scheme);
        let message = Message { id: "msg_1", at: NOW, method: "POST", url: &url, body: &body };
        let signed = scheme.sign(&[key(&scheme, secret)], &message).expect(name);
        let found: Vec<_> = signed.headers.iter().chain(&signed.fields).collect();
        let found: Vec<_> = found.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn each_scheme_verifies_what_another_implementation_signed() {
    for (name, secret, expected) in VECTORS.into_iter().filter(|(name, ..)| *name != "mailgun") {
        let scheme = scheme(name);
        let (url, body) = message(&scheme);
        check(name, secret, &url, expected, &body, None);
        let changed = [&body[..], b" "].concat();
        let fault = if name == "twilio" { Fault::BodyHash } else { Fault::Mismatch };
        let expected_of = (name != "gitlab").then_some(fault);
        check(name, secret, &url, expected, &changed, expected_of);
    }
}

#[test]
fn each_scheme_has_a_vector() {
    let with_vector = |name: &str| VECTORS.iter().any(|(known, ..)| *known == name);
    let missing: Vec<_> =
        known::all().into_iter().map(|s| s.name).filter(|name| !with_vector(name)).collect();
    assert_eq!(missing, ["sendgrid"], "SendGrid's is published");
}

#[test]
fn the_crate_standardwebhooks_signs_the_same_for_both_names_of_the_headers() {
    let secret = "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";
    let oracle = standardwebhooks::Webhook::new(secret).expect("it reads the secret");
    let its = oracle.sign("msg_1", NOW.as_secs(), BODY.as_bytes()).expect("it signs");
    for name in ["standard-webhooks", "svix"] {
        let scheme = scheme(name);
        let message =
            Message { id: "msg_1", at: NOW, method: "POST", url: "", body: BODY.as_bytes() };
        let signed = scheme.sign(&[key(&scheme, secret)], &message).expect("we sign");
        assert_eq!(signed.headers[2].1, its, "{name}");
    }
}

#[test]
fn each_scheme_can_be_carried_out_and_described_in_toml() {
    for scheme in known::all() {
        assert_eq!(scheme.check(), Ok(()), "{}", scheme.name);
        let text = toml::to_string(&scheme).expect("it can be written");
        assert_eq!(toml::from_str::<Scheme>(&text).as_ref(), Ok(&scheme), "{text}");
    }
}

#[test]
fn case_56_each_scheme_with_a_tolerance_protects_its_timestamp() {
    for scheme in known::all() {
        assert!(scheme.tolerance.is_none() || scheme.protects_timestamp(), "{}", scheme.name);
    }
    let seed = scheme("seed-1");
    let unsigned = Scheme { tolerance: Some(Millis::from_minutes(5)), ..seed.clone() };
    assert!(unsigned.check().unwrap_err().to_string().contains("signed"));
    let warnings = seed.warnings().join("; ");
    assert!(warnings.contains("the id is not signed"), "{warnings}");
    assert!(warnings.contains("no time is signed"), "{warnings}");
}

#[test]
fn case_41_one_good_signature_of_a_list_is_enough() {
    for name in ["stripe", "paddle", "calendly", "workos", "convoy-advanced", "svix"] {
        let (_, secret, expected) = VECTORS.into_iter().find(|(n, ..)| *n == name).unwrap();
        let scheme = scheme(name);
        let mark = scheme.signature.separator.clone().unwrap();
        let (header, value) = expected.last().unwrap();
        let junk = format!("{}junk", scheme.signature.prefix);
        let check_list = |list: &str, outcome: Option<Fault>| {
            let mut headers = expected.to_vec();
            headers.pop();
            headers.push((header, list));
            check(name, secret, "", &headers, BODY.as_bytes(), outcome);
        };
        check_list(&format!("{value}{mark}{junk}"), None);
        check_list(&format!("{junk}{mark}{value}"), None);
        let only = format!("{}{mark}{junk}", value.split(mark.trim()).next().unwrap());
        check_list(if name == "svix" { &junk } else { &only }, Some(Fault::NoUsableSignature));
    }
}

#[test]
fn case_54_a_rotation_signs_with_both_and_either_verifies() {
    for name in ["stripe", "paddle", "workos", "standard-webhooks", "standard-webhooks-v1a"] {
        let scheme = scheme(name);
        let texts = match name {
            "standard-webhooks" => [
                "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=",
                "whsec_ZWZnaGlqa2xtbm9wcXJzdHV2d3h5ent8fX5/gIGCg4Q=",
            ],
            "standard-webhooks-v1a" => [
                "whsk_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=",
                "whsk_ZWZnaGlqa2xtbm9wcXJzdHV2d3h5ent8fX5/gIGCg4Q=",
            ],
            _ => ["new", "old"],
        };
        let keys = texts.map(|text| key(&scheme, text));
        let message = Message { id: "msg_1", at: NOW, method: "POST", url: "", body: b"{}" };
        let signed = scheme.sign(&keys, &message).unwrap();
        let (headers, body) = carried(&signed, b"{}");
        let request = Request { method: "POST", url: "", headers: &headers, body: &body };
        for one in keys {
            assert_eq!(scheme.verify(&[one], &request, NOW, Some(Millis::ZERO)), Ok(()), "{name}");
        }
    }
    let github = scheme("github");
    let keys = ["new", "old"].map(|text| key(&github, text));
    let message = Message { id: "", at: NOW, method: "POST", url: "", body: b"{}" };
    assert_eq!(github.sign(&keys, &message), Err(SignError::OneKeyOnly));
}

#[test]
fn case_51_an_empty_secret_or_an_absent_header_fails_closed() {
    for scheme in known::all() {
        assert_eq!(Key::parse(scheme.key, "").unwrap_err(), KeyError::Empty, "{}", scheme.name);
        let request = Request { method: "POST", url: URL, headers: &[], body: b"{}" };
        let fault = scheme.verify(&[], &request, NOW, scheme.tolerance).unwrap_err();
        assert!(matches!(fault, Fault::Missing { .. }), "{}: {fault:?}", scheme.name);
    }
    let github = scheme("github");
    for value in ["", "sha256=", "757107ea", "sha1=00"] {
        let headers = [("X-Hub-Signature-256", value)];
        check("github", "secret", "", &headers, b"", Fault::NoUsableSignature);
        let headers = fields(&headers);
        let request = Request { headers: &headers, ..Request::default() };
        assert!(github.verify(&[], &request, NOW, None).is_err());
    }
}

#[test]
fn case_53_a_secret_in_the_wrong_form_is_told_and_not_shown() {
    let tagged = "v1,whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";
    for form in [KeyForm::Whsec, KeyForm::Literal, KeyForm::Hex, KeyForm::Ed25519] {
        assert_eq!(Key::parse(form, tagged).unwrap_err(), KeyError::SchemeTag, "{form:?}");
    }
    let bare = Key::parse(KeyForm::Whsec, "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=");
    assert_eq!(bare.unwrap_err(), KeyError::Whsec(SecretError::Prefix));
    assert_eq!(Key::parse(KeyForm::Hex, "abc").unwrap_err(), KeyError::Hex);
    assert_eq!(Key::parse(KeyForm::P256Spki, "AAAA").unwrap_err(), KeyError::P256);
    assert_eq!(format!("{:?}", Key::parse(KeyForm::Literal, "hidden").unwrap()), "Key(…)");
    // All zeros is a point of small order: one signature would fit many messages.
    let weak = "00".repeat(32);
    assert_eq!(Key::parse(KeyForm::Ed25519Hex, &weak).unwrap_err(), KeyError::Ed25519Hex);
}

#[test]
fn cases_59_and_60_a_time_is_a_plain_number_within_the_tolerance_on_both_sides() {
    let scheme = scheme("slack");
    let keys = [key(&scheme, "secret")];
    let fault_at = |text: &str, now: Timestamp| {
        let headers = fields(&[
            ("X-Slack-Signature", &format!("v0={}", "0".repeat(64))),
            ("X-Slack-Request-Timestamp", text),
        ]);
        let request = Request { headers: &headers, ..Request::default() };
        scheme.verify(&keys, &request, now, scheme.tolerance).unwrap_err()
    };
    for wrong in ["not-a-number", "NaN", "-1", "+1", "1.5", "1e9", "0x10", "123junk", "01", " 1"] {
        let fault = fault_at(wrong, NOW);
        let is_told = matches!(&fault, Fault::MalformedTimestamp { value, unit }
            if value == wrong && *unit == TimestampUnit::Seconds);
        assert!(is_told, "{wrong}: {fault:?}");
    }
    let ms = Millis::new;
    assert_eq!(fault_at("1700000000", NOW.plus(ms(300_000))), Fault::Mismatch);
    let tolerance = ms(300_000);
    let too_old = Fault::TooOld { age: ms(300_001), tolerance };
    assert_eq!(fault_at("1700000000", NOW.plus(ms(300_001))), too_old);
    assert_eq!(fault_at("1700000300", NOW), Fault::Mismatch);
    assert_eq!(fault_at("1700000301", NOW), Fault::TooNew { ahead: ms(301_000), tolerance });
    let fault = fault_at("1700000000000", NOW);
    assert!(matches!(fault, Fault::TooNew { .. }), "milliseconds are far in the future: {fault:?}");
}

#[test]
fn a_repeated_header_and_a_repeated_time_are_refused() {
    let headers = [("X-Signature", "a"), ("x-signature", "a")];
    let repeated = |role, place: &str| Fault::Repeated { role, place: place.to_owned() };
    let fault = repeated(Role::Signature, "`X-Signature`");
    check("lemonsqueezy", "k", "", &headers, b"", fault);
    let headers = [("Stripe-Signature", "t=1,t=2,v1=00")];
    let fault = repeated(Role::Timestamp, "`t=` in `Stripe-Signature`");
    check("stripe", "k", "", &headers, b"", fault);
}

#[test]
fn twilios_idempotency_token_is_its_id_which_a_retry_keeps_and_nobody_signs() {
    let twilio = scheme("twilio");
    let keys = [key(&twilio, "12345")];
    let sent = |id: &str, at: Timestamp| {
        let message = Message { id, at, method: "POST", url: URL, body: b"Digits=1234" };
        twilio.sign(&keys, &message).unwrap().headers
    };
    let first = sent("token-1", NOW);
    assert_eq!(first[0], ("I-Twilio-Idempotency-Token".to_owned(), "token-1".to_owned()));
    assert_eq!(sent("token-1", NOW.plus(Millis::from_minutes(1))), first, "a retry is the same");
    let other = sent("token-2", NOW);
    assert_eq!(other[1], first[1], "another token fits the same signature");
    assert_eq!(sent("", NOW), [first[1].clone()], "and it may be absent");
    let warnings = twilio.warnings().join("; ");
    assert!(warnings.contains("the id is not signed"), "{warnings}");
}

#[test]
fn an_id_that_blurs_what_is_signed_is_neither_signed_nor_accepted() {
    let scheme = scheme("svix");
    let (_, secret, _) = VECTORS[0];
    for id in ["a.b", "a\r\nb", "a b", "ü"] {
        let message = Message { id, at: NOW, method: "POST", url: "", body: b"" };
        let refused = scheme.sign(&[key(&scheme, secret)], &message);
        assert_eq!(refused, Err(SignError::AmbiguousId), "{id:?}");
    }
    let headers = [("svix-id", "a.1"), ("svix-timestamp", "1"), ("svix-signature", "v1,AAAA")];
    check("svix", secret, "", &headers, b"", Fault::AmbiguousId);
}

#[test]
fn a_template_names_what_it_does_not_know() {
    for text in ["", "{id}.{timestamp}.{body}", "v0:{timestamp}:{body}", "{method}{url-decoded}"] {
        assert_eq!(text.parse::<Template>().expect("a template").to_string(), text);
    }
    for text in ["{", "}", "{}", "{Body}", "a{b", "{body}}", "{body"] {
        let error = text.parse::<Template>().expect_err(text).to_string();
        assert!(error.contains("{timestamp}"), "{error}");
    }
}

#[test]
fn linears_time_is_read_from_the_body_as_a_whole_number_or_a_text() {
    let scheme = scheme("linear");
    let keys = [key(&scheme, "secret")];
    let fault_at = |time: &str, later: u64| {
        let body = format!(r#"{{"webhookTimestamp": {time}}}"#).into_bytes();
        let message = Message { id: "", at: NOW, method: "POST", url: "", body: &body };
        let signed = scheme.sign(&keys, &message).expect("it signs");
        assert_eq!(signed.fields, [], "a signed body is for its author to write");
        let (headers, _) = carried(&signed, &body);
        let request = Request { method: "POST", url: "", headers: &headers, body: &body };
        let now = NOW.plus(Millis::from_secs(later));
        scheme.verify(&keys, &request, now, scheme.tolerance).err()
    };
    assert_eq!(fault_at("1700000000000", 60), None);
    assert_eq!(fault_at("\"1700000000000\"", 60), None);
    let (age, tolerance) = (Millis::from_secs(61), Millis::from_secs(60));
    assert_eq!(fault_at("1700000000000", 61), Some(Fault::TooOld { age, tolerance }));
    let place = "`/webhookTimestamp` in the body".to_owned();
    let missing = Fault::Missing { role: Role::Timestamp, place };
    for time in ["1700000000000.5", "1.7e12", "true", "null", "[1700000000000]", "\"\""] {
        assert_eq!(fault_at(time, 0), Some(missing.clone()), "{time}");
    }
}

#[test]
fn an_empty_value_is_a_missing_one() {
    let (_, secret, _) = VECTORS[0];
    let missing = |role, place: &str| Fault::Missing { role, place: place.to_owned() };
    let headers = [("svix-id", ""), ("svix-timestamp", "1"), ("svix-signature", "v1,AAAA")];
    check("svix", secret, "", &headers, b"", missing(Role::Id, "`svix-id`"));
    let headers = [("svix-id", "1"), ("svix-timestamp", ""), ("svix-signature", "v1,AAAA")];
    check("svix", secret, "", &headers, b"", missing(Role::Timestamp, "`svix-timestamp`"));
    let mut headers = published::SENDGRID_HEADERS;
    headers[1].1 = "";
    check("sendgrid", published::SENDGRID_KEY, "", &headers, b"", Fault::NoUsableSignature);
    check("gitlab", "token", "", &[("X-Gitlab-Token", "")], b"", Fault::NoUsableSignature);
    // Nor is there an item between two marks, or behind the last one.
    let stripe = scheme("stripe");
    let time = Place::header("X-Time").separator(";");
    let listed = Scheme { timestamp: Some(time), ..stripe };
    let headers = fields(&[("X-Time", ";; 1700000000 ;"), ("Stripe-Signature", "v1=00")]);
    let request = Request { headers: &headers, ..Request::default() };
    let found = listed.verify(&[key(&listed, "k")], &request, NOW, listed.tolerance);
    assert_eq!(found, Err(Fault::NoUsableSignature));
}

#[test]
fn a_scheme_that_signs_the_url_needs_one() {
    for name in ["square", "hubspot", "twilio"] {
        let scheme = scheme(name);
        let message = Message { id: "", at: NOW, method: "POST", url: "", body: b"" };
        let refused = scheme.sign(&[key(&scheme, "secret")], &message);
        assert_eq!(refused, Err(SignError::MissingUrl), "{name}");
    }
}

#[test]
fn a_body_that_is_no_form_has_its_hash_in_the_url_once() {
    // The SHA-256 of nothing (NIST, the examples of FIPS 180-4 with an empty message).
    let hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let check = |name: &str, url: &str, is_form: bool, expected: &str| {
        assert_eq!(scheme(name).url_to_call(url, b"", is_form), expected, "{name} {url}");
    };
    let (plain, queried) = ("https://a.com/b", "https://a.com/b?c=d");
    let hashed = format!("{plain}?bodySHA256={hash}");
    check("twilio", plain, false, &hashed);
    check("twilio", queried, false, &format!("{queried}&bodySHA256={hash}"));
    check("twilio", &hashed, false, &hashed);
    check("twilio", plain, true, plain);
    check("square", plain, false, plain);
}

#[test]
fn a_url_counts_with_and_without_its_port_where_the_scheme_says_so() {
    let check = |name: &str, signed_url: &str, url: &str, is_right: bool| {
        let scheme = scheme(name);
        let keys = [key(&scheme, "12345")];
        let message = Message { id: "", at: NOW, method: "POST", url: signed_url, body: b"a=b" };
        let (headers, body) = carried(&scheme.sign(&keys, &message).expect("it signs"), b"a=b");
        let request = Request { method: "POST", url, headers: &headers, body: &body };
        let found = scheme.verify(&keys, &request, NOW, None);
        assert_eq!(found.is_ok(), is_right, "{name}: {signed_url}, {url}: {found:?}");
    };
    for (without, with) in [
        ("https://a.com/b?c", "https://a.com:443/b?c"),
        ("http://a.com?c:d", "http://a.com:80?c:d"),
        ("https://[2001:db8::1]/", "https://[2001:db8::1]:443/"),
        ("http://[::1]", "http://[::1]:80"),
    ] {
        check("twilio", without, with, true);
        check("twilio", with, without, true);
        check("square", without, with, false);
    }
    check("twilio", "https://a.com", "https://a.com:8443", true);
    check("twilio", "https://a.com:8443", "https://a.com", false);
}
