//! The times that schemes sign: read, and written, as another calendar has them.

use hookproof_core::scheme::{Fault, Message, Request, Scheme, SignError};
use hookproof_core::time::{Millis, Timestamp};
use proptest::prelude::*;

use super::{fields, key, scheme};
use crate::given::laws;

/// Zendesk's scheme, which signs a date, with no tolerance.
fn zendesk() -> Scheme {
    Scheme { tolerance: Some(Millis::ZERO), ..scheme("zendesk") }
}

/// What is wrong with this date at that instant; for the instant itself, only the signature.
fn fault_at(text: &str, now: Timestamp) -> Fault {
    let scheme = zendesk();
    let headers = fields(&[
        ("X-Zendesk-Webhook-Signature-Timestamp", text),
        ("X-Zendesk-Webhook-Signature", "AAAA"),
    ]);
    let request = Request { headers: &headers, ..Request::default() };
    let keys = [key(&scheme, "secret")];
    scheme.verify(&keys, &request, now, scheme.tolerance).expect_err("it is not signed")
}

fn check(text: &str, ms: i64) {
    assert_eq!(fault_at(text, Timestamp::from_millis(ms)), Fault::NoUsableSignature, "{text}");
}

fn written(name: &str, at: Timestamp) -> Result<String, SignError> {
    let scheme = scheme(name);
    let message = Message { id: "1", at, method: "POST", url: "", body: b"" };
    let signed = scheme.sign(&[key(&scheme, "secret")], &message)?;
    Ok(signed.headers[0].1.clone())
}

#[test]
fn the_examples_of_rfc_3339_are_the_instants_that_it_says() {
    // RFC 3339 §5.8. A leap second is counted as the second after it.
    check("1985-04-12T23:20:50.52Z", 482_196_050_520);
    check("1996-12-19T16:39:57-08:00", 851_042_397_000);
    check("1996-12-20T00:39:57Z", 851_042_397_000);
    check("1990-12-31T23:59:60Z", 662_688_000_000);
    check("1990-12-31T15:59:60-08:00", 662_688_000_000);
    check("1937-01-01T12:00:27.87+00:20", -1_041_337_172_130);
}

#[test]
fn a_date_is_right_at_each_end_of_a_year_an_age_and_the_calendar() {
    for (text, secs) in [
        ("0000-01-01T00:00:00Z", -62_167_219_200),
        ("0000-02-29T00:00:00Z", -62_162_121_600),
        ("0001-01-01T00:00:00Z", -62_135_596_800),
        ("1600-02-29T00:00:00Z", -11_670_998_400),
        ("1900-02-28T23:59:59Z", -2_203_891_201),
        ("1900-03-01T00:00:00Z", -2_203_891_200),
        ("1969-12-31T23:59:59Z", -1),
        ("1970-01-01T00:00:00Z", 0),
        ("2000-02-29T12:00:00Z", 951_825_600),
        ("2000-03-01T00:00:00Z", 951_868_800),
        ("2023-12-31T23:59:59Z", 1_704_067_199),
        ("2100-02-28T00:00:00Z", 4_107_456_000),
        ("2100-03-01T00:00:00Z", 4_107_542_400),
        ("9999-12-31T23:59:59Z", 253_402_300_799),
    ] {
        check(text, secs * 1000);
        assert_eq!(written("zendesk", Timestamp::from_secs(secs)), Ok(text.to_owned()));
    }
}

#[test]
fn what_is_no_date_of_rfc_3339_is_malformed() {
    for text in [
        "",
        "2023-11-14",
        "2023-11-14T22:13:20",
        "2023-11-14t22:13:20Z",
        "2023-11-14 22:13:20Z",
        "2023/11-14T22:13:20Z",
        "2023-11/14T22:13:20Z",
        "2023-11-14T22.13:20Z",
        "2023-11-14T22:13.20Z",
        "23-11-14T22:13:20Z",
        "+023-11-14T22:13:20Z",
        "2023-00-14T22:13:20Z",
        "2023-13-14T22:13:20Z",
        "2023-11-00T22:13:20Z",
        "2023-11-31T22:13:20Z",
        "2023-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2023-11-14T24:00:00Z",
        "2023-11-14T22:60:20Z",
        "2023-11-14T22:13:61Z",
        "2023-11-14T22:13:20.Z",
        "2023-11-14T22:13:20,5Z",
        "2023-11-14T22:13:20ZZ",
        "2023-11-14T22:13:20Zü",
        "1700000000",
        "2023-11-14T22:13:20+24:00",
        "2023-11-14T22:13:20+01:60",
        "2023-11-14T22:13:20+0100",
        "2023-11-14T22:13:20 01:00",
        "2023-11-14T22:13:20+1:00",
    ] {
        // An empty value counts as none.
        let is_told = match fault_at(text, super::NOW) {
            Fault::Missing { .. } => text.is_empty(),
            fault => matches!(fault, Fault::MalformedTimestamp { .. }),
        };
        assert!(is_told, "{text}");
    }
}

#[test]
fn a_time_that_the_scheme_cannot_write_is_refused_and_not_written_wrong() {
    let before = Timestamp::from_millis(-1);
    for name in ["slack", "hubspot", "stripe"] {
        let message = Message { id: "", at: before, method: "POST", url: "a", body: b"" };
        let scheme = scheme(name);
        let refused = scheme.sign(&[key(&scheme, "secret")], &message);
        assert_eq!(refused, Err(SignError::TimeOutOfRange), "{name}");
    }
    assert_eq!(written("slack", Timestamp::from_millis(0)).as_deref(), Ok("0"));
    for secs in [-62_167_219_201, 253_402_300_800] {
        let refused = written("zendesk", Timestamp::from_secs(secs));
        assert_eq!(refused, Err(SignError::TimeOutOfRange), "{secs}");
    }
    assert!(written("github", before).is_ok(), "it writes no time");
}

/// The date of an oracle of another make, without a zone.
fn date_and_time(secs: u64) -> String {
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(secs);
    let text = httpdate::fmt_http_date(at);
    let words: Vec<_> = text.split(' ').collect();
    let months =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = months.iter().position(|name| *name == words[2]).expect("a month") + 1;
    format!("{}-{month:02}-{}T{}", words[3], words[1], words[4])
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn each_second_is_written_and_read_as_another_calendar_has_it(
        secs in 86_400..253_402_214_400_u64,
        fraction in "[0-9]{1,9}",
        hours in 0..24_u64,
        minutes in 0..60_u64,
        is_ahead in any::<bool>(),
    ) {
        let at = i64::try_from(secs).expect("it is small");
        let text = date_and_time(secs);
        prop_assert_eq!(written("zendesk", Timestamp::from_secs(at)), Ok(format!("{text}Z")));
        let ms: i64 = format!("{fraction:0<3}")[..3].parse().expect("digits");
        let sign = if is_ahead { '+' } else { '-' };
        let text = format!("{text}.{fraction}{sign}{hours:02}:{minutes:02}");
        let offset = i64::try_from((hours * 60 + minutes) * 60).expect("it is small");
        let utc = if is_ahead { at - offset } else { at + offset };
        let now = Timestamp::from_millis(utc * 1000 + ms);
        prop_assert_eq!(fault_at(&text, now), Fault::NoUsableSignature);
        let later = now.plus(Millis::new(1));
        prop_assert_eq!(fault_at(&text, later), Fault::TooOld { age: Millis::new(1), tolerance: Millis::ZERO });
    }
}
