//! Signing and verifying by Standard Webhooks.

use hookproof_core::secret::{Secret, Secrets};
use hookproof_core::signature::{Signed, TOKENS_MAX, TOLERANCE, VerifyError, sign, verify};
use hookproof_core::time::{Millis, Timestamp};

use crate::given::{at, ms};

// Computed with Python's hmac, hashlib and base64, from the keys 1, 2, … 32 and 101, 102, … 132.
const NEW: &str = "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";
const OLD: &str = "whsec_ZWZnaGlqa2xtbm9wcXJzdHV2d3h5ent8fX5/gIGCg4Q=";
const ID: &str = "msg_hookproof_1";
const SENT_AT: i64 = 1_700_000_000;
const BODY: &[u8] = br#"{"type":"order.paid","total":12.50}"#;
const BY_NEW: &str = "v1,ayU6yv2wLS4khi8mCPGjPwX7uHIuRKkl6ZZ1KfuCphQ=";
const BY_OLD: &str = "v1,/DnUsqwP6kvQEcN0uBUAKOfe+hMhCu8IL8jr+f/iu1w=";

/// A well-formed token that matches neither.
const BY_OTHER: &str = "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

fn secrets(texts: &[&str]) -> Secrets {
    let parsed = texts.iter().map(|text| text.parse().expect("a secret")).collect();
    Secrets::new(parsed).expect("few enough secrets")
}

fn request(signature: &str) -> Signed<'_> {
    Signed {
        id: Some(ID.as_bytes()),
        timestamp: Some(b"1700000000"),
        signature: Some(signature.as_bytes()),
        body: BODY,
    }
}

/// Verifies with the new secret, at the second of the attempt.
fn check_request(signed: Signed<'_>, expected: Result<(), VerifyError>) {
    let now = Timestamp::from_secs(SENT_AT);
    assert_eq!(verify(&secrets(&[NEW]), &signed, now, TOLERANCE), expected, "{signed:?}");
}

fn check(signature: &str, expected: Result<(), VerifyError>) {
    check_request(request(signature), expected);
}

#[test]
fn a_signature_is_the_one_computed_by_other_means() {
    assert_eq!(sign(&secrets(&[NEW]), ID, SENT_AT, BODY), BY_NEW);
    assert_eq!(sign(&secrets(&[OLD]), ID, SENT_AT, BODY), BY_OLD);
    let empty = sign(&secrets(&[NEW]), "m", 0, b"");
    assert_eq!(empty, "v1,DEA0V8CigoLoYTzcR0MGtlFDbp/jWS3jMOrhhWSSXsE=");
    let binary = sign(&secrets(&[NEW]), "msg_bin", SENT_AT, b"\x00\xff.\n\x80");
    assert_eq!(binary, "v1,HrToG+Jr2Crptccq+IPJyB9M9Fo0+23SrJ/RpsnQBiQ=");
}

#[test]
fn a_rotation_signs_with_each_secret_the_newest_first() {
    assert_eq!(sign(&secrets(&[NEW, OLD]), ID, SENT_AT, BODY), format!("{BY_NEW} {BY_OLD}"));
}

#[test]
fn a_receiver_with_only_one_secret_of_a_rotation_accepts() {
    let signature = sign(&secrets(&[NEW, OLD]), ID, SENT_AT, BODY);
    let now = Timestamp::from_secs(SENT_AT);
    for held in [&[NEW][..], &[OLD], &[NEW, OLD], &[OLD, NEW]] {
        let accepted = verify(&secrets(held), &request(&signature), now, TOLERANCE);
        assert_eq!(accepted, Ok(()), "{held:?}");
    }
}

#[test]
fn a_receiver_with_both_secrets_accepts_a_signature_by_either() {
    let now = Timestamp::from_secs(SENT_AT);
    for signature in [BY_NEW, BY_OLD] {
        let accepted = verify(&secrets(&[NEW, OLD]), &request(signature), now, TOLERANCE);
        assert_eq!(accepted, Ok(()), "{signature}");
    }
}

#[test]
fn one_good_token_is_enough_wherever_it_stands() {
    check(BY_NEW, Ok(()));
    check(&format!("{BY_NEW} {BY_OTHER}"), Ok(()));
    check(&format!("{BY_OTHER} {BY_NEW}"), Ok(()));
    check(&format!("{BY_OTHER} {BY_OLD} {BY_NEW}"), Ok(()));
    check(&format!("  {BY_NEW}  "), Ok(()));
}

/// That the good token counts as number 32 of those like `other`, and as number 33 not.
fn check_tokens_max(others: &str, at_33: Result<(), VerifyError>) {
    check(&format!("{}{BY_NEW}", others.repeat(31)), Ok(()));
    check(&format!("{}{BY_NEW}", others.repeat(32)), at_33);
}

#[test]
fn no_more_than_32_well_formed_tokens_are_compared() {
    assert_eq!(TOKENS_MAX, 32);
    check_tokens_max(&format!("{BY_OTHER} "), Err(VerifyError::Mismatch));
    check_tokens_max(&format!("{BY_OLD} "), Err(VerifyError::Mismatch));
}

#[test]
fn a_token_that_is_not_well_formed_does_not_count() {
    for junk in ["", "junk", "v1,", "v1,AAAA", "v1a,AAAA", "v2,AAAA"] {
        check_tokens_max(&format!("{junk} "), Ok(()));
        check(&format!("{}{BY_NEW}", format!("{junk} ").repeat(1_000)), Ok(()));
        check_tokens_max(&format!("{junk} {BY_OTHER} "), Err(VerifyError::Mismatch));
    }
}

#[test]
fn a_malformed_token_beside_a_good_one_is_skipped() {
    for junk in ["junk", "v1", "v1,", "v1,!!!", "v1,AAAA", ",", "v1=abc", "v9,AAAA", "\u{e9}"] {
        check(&format!("{junk} {BY_NEW}"), Ok(()));
        check(&format!("{BY_NEW} {junk}"), Ok(()));
        check(junk, Err(VerifyError::NoUsableSignature));
    }
    let mut bytes = b"v1,\xff\xfe ".to_vec();
    bytes.extend(BY_NEW.as_bytes());
    check_request(Signed { signature: Some(&bytes), ..request("") }, Ok(()));
}

#[test]
fn an_asymmetric_token_beside_a_good_one_is_skipped_and_alone_is_not_enough() {
    let v1a = BY_NEW.replace("v1,", "v1a,");
    check(&format!("{v1a} {BY_NEW}"), Ok(()));
    check(&format!("{BY_NEW} {v1a}"), Ok(()));
    check(&v1a, Err(VerifyError::NoUsableSignature));
}

#[test]
fn the_version_of_a_token_is_exactly_v1() {
    for tag in ["V1,", "v2,", "v11,", "v1 ,", "1,", ",", "", "v1;", "v1,,", "v1:"] {
        check(&BY_NEW.replace("v1,", tag), Err(VerifyError::NoUsableSignature));
    }
}

#[test]
fn tokens_of_which_none_matches_are_a_mismatch() {
    check(BY_OTHER, Err(VerifyError::Mismatch));
    check(BY_OLD, Err(VerifyError::Mismatch));
    check(&format!("{BY_OTHER} {BY_OLD} junk"), Err(VerifyError::Mismatch));
}

#[test]
fn a_header_without_a_token_is_refused() {
    for signature in ["", " ", "   "] {
        check(signature, Err(VerifyError::NoUsableSignature));
    }
}

#[test]
fn only_spaces_separate_tokens() {
    for separator in ["\t", ",", ", ", ";", "\n"] {
        let signature = format!("{BY_OTHER}{separator}{BY_NEW}");
        let now = Timestamp::from_secs(SENT_AT);
        let answer = verify(&secrets(&[NEW]), &request(&signature), now, TOLERANCE);
        assert_eq!(answer.is_ok(), separator == ", ", "{signature:?}");
    }
}

#[test]
fn base64_that_is_not_canonical_is_refused() {
    let unusable = Err(VerifyError::NoUsableSignature);
    check(&BY_NEW.replace("hQ=", "hR="), unusable);
    check(BY_NEW.trim_end_matches('='), unusable);
    check(&format!("{BY_NEW}="), unusable);
    check(&format!("{BY_NEW}\n"), unusable);
    let url_safe = BY_OLD.replace('/', "_").replace('+', "-");
    let now = Timestamp::from_secs(SENT_AT);
    assert_eq!(verify(&secrets(&[OLD]), &request(&url_safe), now, TOLERANCE), unusable);
    let hex = "v1,6b253acafdb02d2e24862f2608f1a33f05fbb8722e44a925e9967529fb82a614";
    check(hex, unusable);
}

#[test]
fn a_truncated_digest_is_refused_at_every_length() {
    for length in 0..BY_NEW.len() {
        check(&BY_NEW[..length], Err(VerifyError::NoUsableSignature));
    }
    // Whole groups, so that the base64 itself is well-formed.
    check("v1,ayU6", Err(VerifyError::NoUsableSignature));
    check("v1,ayU6yv2wLS4khi8mCPGjPwX7uHIuRKkl6ZZ1KfuC", Err(VerifyError::NoUsableSignature));
    check("v1,ayU6yv2wLS4khi8mCPGjPwX7uHIuRKkl6ZZ1KfuCphQA", Err(VerifyError::NoUsableSignature));
}

#[test]
fn each_missing_header_is_named() {
    let good = request(BY_NEW);
    check_request(Signed { id: None, ..good }, Err(VerifyError::MissingId));
    check_request(Signed { id: Some(b""), ..good }, Err(VerifyError::MissingId));
    check_request(Signed { timestamp: None, ..good }, Err(VerifyError::MissingTimestamp));
    check_request(Signed { signature: None, ..good }, Err(VerifyError::MissingSignature));
}

#[test]
fn what_is_signed_cannot_be_split_again_into_another_id_and_time() {
    // The body as published begins with what reads as a time.
    let (published, rest) = (&b"1700000100.{}"[..], &b"{}"[..]);
    let signature = sign(&secrets(&[NEW]), ID, SENT_AT, published);
    let original = Signed { body: published, ..request(&signature) };
    check_request(original, Ok(()));
    let forged_id = format!("{ID}.{SENT_AT}");
    let forged = Signed {
        id: Some(forged_id.as_bytes()),
        timestamp: Some(b"1700000100"),
        body: rest,
        ..original
    };
    let bytes = |signed: Signed<'_>| {
        [signed.id.unwrap(), signed.timestamp.unwrap(), signed.body].join(&b'.')
    };
    assert_eq!(bytes(original), bytes(forged), "the same bytes are signed");
    check_request(forged, Err(VerifyError::AmbiguousId));
}

#[test]
fn an_id_with_a_full_stop_is_refused_even_if_it_was_signed_so() {
    for id in ["msg.1", ".", ".msg", "msg.", "a..b"] {
        let signature = sign(&secrets(&[NEW]), id, SENT_AT, BODY);
        let signed = Signed { id: Some(id.as_bytes()), ..request(&signature) };
        check_request(signed, Err(VerifyError::AmbiguousId));
        let unsigned = Signed { timestamp: None, signature: None, ..signed };
        check_request(unsigned, Err(VerifyError::AmbiguousId));
    }
}

#[test]
fn a_timestamp_that_is_not_a_plain_number_is_refused() {
    for timestamp in ["", " ", "1e9", "0x6553f100", "12.0", "+1", "-1", "01", "00", "01700000000"] {
        let signed = Signed { timestamp: Some(timestamp.as_bytes()), ..request(BY_NEW) };
        check_request(signed, Err(VerifyError::MalformedTimestamp));
    }
    let junk = ["1700000000junk", " 1700000000", "1700000000 ", "1_700_000_000", "1700000000\n"];
    for timestamp in junk.into_iter().chain(["٣", "9223372036854775808", "NaN", "-0"]) {
        let signed = Signed { timestamp: Some(timestamp.as_bytes()), ..request(BY_NEW) };
        check_request(signed, Err(VerifyError::MalformedTimestamp));
    }
    let signed = Signed { timestamp: Some(b"17\xff"), ..request(BY_NEW) };
    check_request(signed, Err(VerifyError::MalformedTimestamp));
}

#[test]
fn a_timestamp_in_milliseconds_is_too_new() {
    let signed = Signed { timestamp: Some(b"1700000000000"), ..request(BY_NEW) };
    check_request(signed, Err(VerifyError::TooNew));
    let signed = Signed { timestamp: Some(b"9223372036854775807"), ..request(BY_NEW) };
    check_request(signed, Err(VerifyError::TooNew));
}

#[test]
fn a_timestamp_of_zero_is_a_plain_number() {
    let signature = sign(&secrets(&[NEW]), ID, 0, BODY);
    let signed = Signed { timestamp: Some(b"0"), ..request(&signature) };
    assert_eq!(verify(&secrets(&[NEW]), &signed, at(0), TOLERANCE), Ok(()));
}

fn check_tolerance(now: Timestamp, tolerance: Millis, expected: Result<(), VerifyError>) {
    let answer = verify(&secrets(&[NEW]), &request(BY_NEW), now, tolerance);
    assert_eq!(answer, expected, "at {} ms", now.as_millis());
}

#[test]
fn the_tolerance_is_exact_to_the_millisecond_on_both_sides() {
    let sent_at = SENT_AT * 1_000;
    check_tolerance(at(sent_at + 300_000), TOLERANCE, Ok(()));
    check_tolerance(at(sent_at + 300_001), TOLERANCE, Err(VerifyError::TooOld));
    check_tolerance(at(sent_at - 300_000), TOLERANCE, Ok(()));
    check_tolerance(at(sent_at - 300_001), TOLERANCE, Err(VerifyError::TooNew));
    check_tolerance(at(sent_at), Millis::ZERO, Ok(()));
    check_tolerance(at(sent_at + 1), Millis::ZERO, Err(VerifyError::TooOld));
    check_tolerance(at(sent_at - 1), Millis::ZERO, Err(VerifyError::TooNew));
    check_tolerance(at(sent_at + 1), ms(1), Ok(()));
}

#[test]
fn a_clock_at_the_end_of_time_refuses_without_panicking() {
    check_tolerance(at(i64::MAX), TOLERANCE, Err(VerifyError::TooOld));
    check_tolerance(at(i64::MIN), TOLERANCE, Err(VerifyError::TooNew));
    check_tolerance(at(i64::MAX), Millis::MAX, Ok(()));
}

#[test]
fn the_age_is_judged_before_the_signature() {
    let now = at(SENT_AT * 1_000 + 300_001);
    let answer = verify(&secrets(&[NEW]), &request(BY_OTHER), now, TOLERANCE);
    assert_eq!(answer, Err(VerifyError::TooOld));
}

#[test]
fn the_body_is_taken_as_raw_bytes() {
    check_request(Signed { body: b"{}", ..request(BY_NEW) }, Err(VerifyError::Mismatch));
    let reserialised = br#"{"type":"order.paid","total":12.5}"#;
    check_request(Signed { body: reserialised, ..request(BY_NEW) }, Err(VerifyError::Mismatch));
    let with_newline = [BODY, b"\n"].concat();
    check_request(Signed { body: &with_newline, ..request(BY_NEW) }, Err(VerifyError::Mismatch));
}

#[test]
fn the_key_is_the_decoded_secret_not_its_text() {
    let text = Secret::from_bytes(NEW.as_bytes()).expect("50 bytes are a key too");
    assert_ne!(sign(&Secrets::one(text), ID, SENT_AT, BODY), BY_NEW);
}

#[test]
fn each_refusal_says_in_the_log_what_is_wrong() {
    let told = |error: VerifyError| error.to_string();
    assert_eq!(told(VerifyError::MissingId), "`webhook-id` is absent, empty or repeated");
    assert_eq!(
        told(VerifyError::AmbiguousId),
        "`webhook-id` holds a full stop, the separator of what is signed"
    );
    assert_eq!(told(VerifyError::MissingTimestamp), "`webhook-timestamp` is absent or repeated");
    assert_eq!(told(VerifyError::MissingSignature), "`webhook-signature` is absent or repeated");
    assert_eq!(
        told(VerifyError::MalformedTimestamp),
        "`webhook-timestamp` is not a whole number of seconds"
    );
    assert_eq!(told(VerifyError::TooOld), "`webhook-timestamp` is older than the tolerance");
    assert_eq!(
        told(VerifyError::TooNew),
        "`webhook-timestamp` is further in the future than the tolerance"
    );
    assert_eq!(
        told(VerifyError::NoUsableSignature),
        "`webhook-signature` holds no well-formed `v1,` token"
    );
    assert_eq!(
        told(VerifyError::Mismatch),
        "no signature matches: wrong secret, or the body was changed"
    );
}
