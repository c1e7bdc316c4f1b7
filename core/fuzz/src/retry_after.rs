//! `Retry-After`: eight bytes of a clock in milliseconds, the least first, then the field's value.

use hookproof_core::classify::{Classification, Verdict};
use hookproof_core::http_date;
use hookproof_core::outcome::Outcome;
use hookproof_core::retry_after::{parse, parse_delay_seconds};
use hookproof_core::time::{Millis, Timestamp};

/// 2026-11-30T12:00:00Z.
const NOW_MS: i64 = 1_796_040_000_000;

/// Values in each form that there is.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let values = [
        "0",
        "120",
        " 86400\t",
        "18446744073709551616",
        "Mon, 30 Nov 2026 12:02:00 GMT",
        "Monday, 30-Nov-26 12:02:00 GMT",
        "Mon Nov 30 12:02:00 2026",
        "Sun Nov  6 08:49:37 1994",
        "Sat, 31 Dec 2016 23:59:60 GMT",
        "Tue, 29 Feb 2028 00:00:00 GMT",
    ];
    values.map(|value| [&NOW_MS.to_le_bytes()[..], value.as_bytes()].concat()).to_vec()
}

/// Holds the laws; whether there was a wait.
pub fn check(bytes: &[u8]) -> bool {
    let (now, value) = bytes
        .split_first_chunk()
        .map_or((NOW_MS, bytes), |(clock, value)| (i64::from_le_bytes(*clock), value));
    let now = Timestamp::from_millis(now);
    let wait = parse(value, now);
    let delay = parse_delay_seconds(value);
    let padded = [b" \t", value, b"\t "].concat();
    assert_eq!(parse(&padded, now), wait, "white space around a value is none of it");
    bounded(wait);
    match (delay, wait) {
        (Some(delay), _) => {
            assert_eq!(wait, Some(delay), "digits are seconds whatever the clock says");
            printed(value.trim_ascii(), delay);
        }
        (None, Some(wait)) => dated(value.trim_ascii(), now, wait),
        (None, None) => {}
    }
    wait.is_some()
}

/// However long the wait, a delivery is not held back for longer than its policy allows.
fn bounded(wait: Option<Millis>) {
    let agreement = Classification::default();
    for status in [408, 425, 429, 503] {
        let judgement = agreement.judge(&Outcome::Answered { status, retry_after: wait });
        let floor = wait.map(|wait| wait.min(agreement.retry_after_max));
        assert_eq!(judgement.verdict, Verdict::Retry { floor }, "{status}");
    }
}

/// A number of seconds is exact or, where it cannot be expressed, the longest wait; and it reads the
/// same once it is written again.
fn printed(digits: &[u8], delay: Millis) {
    let text = std::str::from_utf8(digits).expect("digits are ASCII");
    let exact_ms = text.parse::<u128>().unwrap_or(u128::MAX).saturating_mul(1000);
    assert_eq!(delay, u64::try_from(exact_ms).map_or(Millis::MAX, Millis::new), "{text}");
    if delay < Millis::MAX {
        let text = (delay.get() / 1000).to_string();
        assert_eq!(parse_delay_seconds(text.as_bytes()), Some(delay), "{text}");
    }
}

/// A date is one instant: whoever reads it later waits less, and another reader finds the same.
fn dated(value: &[u8], now: Timestamp, wait: Millis) {
    let date = http_date::parse(value, now).expect("what is no number is a date");
    assert_eq!(date.since(now), wait);
    // The century of a year of two digits depends on the clock.
    if value.contains(&b'-') {
        return;
    }
    let later = now.plus(Millis::from_secs(1));
    assert_eq!(http_date::parse(value, later), Some(date));
    assert!(date.since(later) <= wait);
    let text = std::str::from_utf8(value).expect("a date is ASCII");
    if let Ok(theirs) = httpdate::parse_http_date(text) {
        let since = theirs.duration_since(std::time::UNIX_EPOCH).expect("theirs begin in 1970");
        assert_eq!(u64::try_from(date.as_secs()).ok(), Some(since.as_secs()), "{text}");
    }
}
