//! What a description may hold, what it is called, and what its user is told.

use hookproof_core::scheme::{
    Algorithm, ChallengeError, Encoding, Fault, Key, KeyError, KeyForm, Message, Place, Role,
    Scheme, SignError, TimestampUnit, known,
};
use hookproof_core::secret::SecretError;
use hookproof_core::time::Millis;

use super::{NOW, scheme};

const RIGHT: &str = r#"
    name = "mine"
    source = "me"
    algorithm = "hmac-sha256"
    key = "literal"
    signed = "{timestamp}.{body}"
    encoding = "hex"
    signature = { header = "X-Mine", prefix = "v1=", separator = "," }
    timestamp = { header = "X-Mine", prefix = "t=", separator = "," }
    tolerance = "5m"
"#;

/// Whether the description is right once `from` is `to`, or else what is told of it.
fn checked(from: &str, to: &str) -> Result<(), String> {
    assert!(RIGHT.contains(from), "{from}");
    let scheme: Scheme = toml::from_str(&RIGHT.replacen(from, to, 1)).expect("it is well-formed");
    scheme.check().map_err(|error| error.to_string())
}

#[test]
fn a_description_that_cannot_be_carried_out_is_refused_with_its_field() {
    assert_eq!(checked("", ""), Ok(()));
    let name = "has a `header` that is no header's name";
    let mark = "has a `separator` that is not one character, or one and a space";
    let time = r#"header = "X-Mine", prefix = "t=", separator = ",""#;
    for (from, to, field, told) in [
        ("\"mine\"", "\"\"", "name", "is empty"),
        ("\"literal\"", "\"ed25519\"", "key", "cannot be ed25519 where `algorithm` is hmac-sha256"),
        ("hmac-sha256", "ecdsa-p256", "key", "cannot be literal where `algorithm` is ecdsa-p256"),
        ("hmac-sha256", "ed25519", "key", "cannot be literal where `algorithm` is ed25519"),
        ("hmac-sha256", "token", "encoding", "is plain for a token, and else hex or base64"),
        ("\"hex\"", "\"plain\"", "encoding", "is plain for a token, and else hex or base64"),
        ("{timestamp}.{body}", "", "signed", "is empty: nothing would be protected"),
        ("{timestamp}.", "{id}.", "signed", "has {id}, but `id` says nowhere where"),
        ("{timestamp}.", "", "tolerance", "needs a timestamp that is signed"),
        ("X-Mine", "X Mine", "signature", name),
        ("X-Mine", "", "signature", name),
        ("prefix = \"v1=\"", "json = \"/a\"", "signature", "must have either"),
        ("prefix = \"v1=\"", "prefix = \"é\"", "signature", "has a `prefix` that no header"),
        (time, "prefix = \"t=\"", "timestamp", "must have either `header` or `json`"),
        (time, "json = \"a\"", "timestamp", "has a `json` that is no pointer"),
        (time, "json = \"/a\", separator = \",\"", "timestamp", "has a `separator` in JSON"),
        ("\",\"", "\"::\"", "signature", mark),
        ("\",\"", "\"\"", "signature", mark),
        ("\",\"", "\"  \"", "signature", mark),
        ("\",\"", "\"é\"", "signature", mark),
        ("\",\"", "\"\\u0001\"", "signature", mark),
    ] {
        let refused = checked(from, to).expect_err(to);
        assert!(refused.starts_with(&format!("`{field}` {told}")), "{from} -> {to}: {refused}");
    }
    for mark in [" ", ", ", ";", "|"] {
        assert_eq!(checked("\",\"", &format!("\"{mark}\"")), Ok(()), "{mark:?}");
    }
    assert_eq!(checked(time, "json = \"/a\""), Ok(()));
    let misspelt = RIGHT.replace("tolerance", "tolerence");
    assert!(toml::from_str::<Scheme>(&misspelt).is_err(), "an unknown field");
}

#[test]
fn a_token_is_text_and_signs_nothing() {
    let gitlab = scheme("gitlab");
    assert_eq!(gitlab.check(), Ok(()), "it has nothing to sign");
    for key in [KeyForm::Hex, KeyForm::Base64, KeyForm::P256Spki] {
        assert!(Scheme { key, ..gitlab.clone() }.check().is_err(), "{key:?}");
    }
    for key in [KeyForm::Whsec, KeyForm::Hex, KeyForm::Base64] {
        assert_eq!(Scheme { key, ..scheme("github") }.check(), Ok(()), "{key:?}");
    }
}

#[test]
fn a_name_is_the_one_that_stands_in_a_description() {
    fn check(value: impl serde::Serialize, name: &str) {
        assert_eq!(serde_json::to_value(value).expect("it can be written"), name);
    }
    for algorithm in [
        Algorithm::HmacSha256,
        Algorithm::HmacSha1,
        Algorithm::Ed25519,
        Algorithm::EcdsaP256,
        Algorithm::Token,
    ] {
        check(algorithm, algorithm.as_str());
    }
    for encoding in [Encoding::Hex, Encoding::Base64, Encoding::Plain] {
        check(encoding, encoding.as_str());
    }
    for form in [
        KeyForm::Whsec,
        KeyForm::Literal,
        KeyForm::Hex,
        KeyForm::Base64,
        KeyForm::Ed25519,
        KeyForm::Ed25519Hex,
        KeyForm::P256Spki,
    ] {
        check(form, form.as_str());
    }
}

#[test]
fn a_description_leaves_out_what_is_as_usual() {
    let names = |name: &str| -> Vec<String> {
        let written = serde_json::to_value(scheme(name)).expect("it can be written");
        written.as_object().expect("a table").keys().cloned().collect()
    };
    let usual = ["algorithm", "encoding", "key", "name", "signature", "signed", "source"];
    assert_eq!(names("github"), [&usual[..], &["timestamp_unit"]].concat());
    let twilio = names("twilio");
    assert!(twilio.iter().any(|name| name == "any_port"), "{twilio:?}");
}

#[test]
fn each_scheme_warns_of_what_it_leaves_open() {
    const TOKEN: &str = "nothing is signed";
    const BODY: &str = "the body is not signed";
    const ID: &str = "the id is not signed";
    const TIME: &str = "no time is signed";
    const AGE: &str = "its age is not limited";
    for scheme in known::all() {
        let expected: &[&str] = match scheme.name.as_str() {
            "gitlab" => &[TOKEN],
            "mailgun" => &[BODY, AGE],
            "twilio" => &[ID, TIME, "without separators"],
            "seed-1" => &[ID, TIME],
            "seed-2" => &["names no headers"],
            "sendgrid" => &[AGE, "may end in CR LF"],
            "zendesk" | "zoom" | "discord" | "convoy-advanced" => &[AGE],
            "github" | "shopify" | "intercom" | "adyen" | "dropbox" | "typeform"
            | "lemonsqueezy" | "convoy" | "square" => &[TIME],
            _ => &[],
        };
        let found = scheme.warnings();
        let is_expected = found.iter().zip(expected).all(|(text, part)| text.contains(part));
        assert!(is_expected && found.len() == expected.len(), "{}: {found:?}", scheme.name);
    }
}

#[test]
fn a_place_is_named_by_its_header_or_by_what_stands_within_it() {
    let check = |place: Place, expected: &str| assert_eq!(place.to_string(), expected);
    check(Place::header("X-A"), "`X-A`");
    check(Place::header("X-A").prefix("v0="), "`X-A`");
    check(Place::header("X-A").separator(","), "`X-A`");
    check(Place::header("X-A").prefix("t=").separator(","), "`t=` in `X-A`");
    check(Place::json("/a/b"), "`/a/b` in the body");
}

#[test]
fn each_fault_has_a_name_and_says_what_is_wrong_and_where() {
    let check = |fault: Fault, code: &str, told: &str| {
        assert_eq!((fault.code(), fault.to_string().as_str()), (code, told));
    };
    let place = || "`X-A`".to_owned();
    check(
        Fault::Missing { role: Role::Id, place: place() },
        "missing",
        "the event's id is missing: no `X-A`",
    );
    check(
        Fault::Repeated { role: Role::Timestamp, place: place() },
        "repeated",
        "the timestamp is there more than once: `X-A`",
    );
    check(
        Fault::TooOld { age: Millis::from_minutes(6), tolerance: Millis::from_minutes(5) },
        "too-old",
        "the timestamp is 6m old, beyond the tolerance of 5m",
    );
    check(
        Fault::TooNew { ahead: Millis::from_hours(1), tolerance: Millis::from_secs(30) },
        "too-new",
        "the timestamp is 1h in the future, beyond the tolerance of 30s",
    );
    check(
        Fault::MalformedTimestamp { value: "1.5\n".to_owned(), unit: TimestampUnit::Seconds },
        "malformed-timestamp",
        "the timestamp is `1.5\\n`, and the scheme has whole seconds since 1970, in plain digits, as in \
         1767225600",
    );
    check(
        Fault::Mismatch,
        "mismatch",
        "no signature matches: another secret, or other bytes were signed",
    );
}

#[test]
fn each_refusal_of_a_key_or_a_message_says_what_would_be_right() {
    let check = |told: &dyn std::fmt::Display, part: &str| {
        assert!(told.to_string().contains(part), "{told}");
    };
    check(&KeyError::Empty, "an empty secret protects nothing");
    check(&KeyError::SchemeTag, "remove the `v1,` in front of it");
    check(&KeyError::Whsec(SecretError::Prefix), &SecretError::Prefix.to_string());
    check(&KeyError::Ed25519Hex, "64 hexadecimal digits (public) or 128");
    check(&SignError::NoKey, "there is no secret to sign with");
    check(&SignError::CannotSign, "sign with the private key");
    check(&ChallengeError::Token, "longer than 200 characters");
    check(&ChallengeError::Key, "answered with the secret that signs");
}

#[test]
fn only_a_private_key_of_the_schemes_kind_signs() {
    let private = "whsk_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";
    let private = Key::parse(KeyForm::Ed25519, private).expect("a key");
    let public = private.public_text().expect("it has one");
    let public = Key::parse(KeyForm::Ed25519, &public).expect("a key");
    let literal = Key::parse(KeyForm::Literal, "secret").expect("a key");
    let point = Key::parse(KeyForm::P256Spki, super::published::SENDGRID_KEY).expect("a key");
    let message = Message { id: "1", at: NOW, method: "POST", url: "", body: b"" };
    let check = |name: &str, key: &Key, expected: Option<SignError>| {
        let signed = scheme(name).sign(std::slice::from_ref(key), &message);
        assert_eq!(signed.err(), expected, "{name}");
    };
    check("standard-webhooks-v1a", &private, None);
    check("standard-webhooks-v1a", &public, Some(SignError::CannotSign));
    check("standard-webhooks-v1a", &literal, Some(SignError::OtherKind));
    check("github", &literal, None);
    check("github", &private, Some(SignError::OtherKind));
    check("gitlab", &point, Some(SignError::OtherKind));
    check("sendgrid", &point, Some(SignError::CannotSign));
    check("sendgrid", &literal, Some(SignError::OtherKind));
    let can_sign = [&private, &public, &literal, &point].map(Key::can_sign);
    assert_eq!(can_sign, [true, false, true, false]);
}

#[test]
fn a_private_key_with_the_public_key_of_another_is_none() {
    let seed = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
    let own = "79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664";
    let other = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    let read = |text: String| Key::parse(KeyForm::Ed25519Hex, &text).map(|key| key.can_sign());
    assert_eq!(read(format!("{seed}{own}")), Ok(true));
    assert_eq!(read(format!("{seed}{other}")), Err(KeyError::Ed25519Hex));
    assert_eq!(read(other.to_owned()), Ok(false), "64 digits are a public key");
    assert_eq!(read(seed[..62].to_owned()), Err(KeyError::Ed25519Hex));
}
