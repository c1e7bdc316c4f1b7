//! `Retry-After`: a number of seconds, or a date in one of HTTP's three forms (RFC 9110 §10.2.3).

use crate::http_date;
use crate::time::{Millis, Timestamp};

/// Reads a field value that arrived at `now` as the wait that it asks for.
///
/// A date that is past asks for no wait at all. What is neither a number of seconds nor a date is
/// ignored. Nothing is bounded here: that is the policy's `retry_after_max`.
#[must_use]
pub fn parse(value: &[u8], now: Timestamp) -> Option<Millis> {
    parse_delay_seconds(value)
        .or_else(|| http_date::parse(trimmed(value), now).map(|date| date.since(now)))
}

/// Without the optional white space around it (RFC 9110 §5.6.3).
fn trimmed(value: &[u8]) -> &[u8] {
    value.trim_ascii()
}

/// Reads a field value as whole seconds.
///
/// Strict: only digits, with optional white space around them (RFC 9110 §5.6.3). Anything else
/// (`-5`, `1.5`, `10 s`, an empty value) is `None`: a malformed field is ignored, it does not fail
/// the delivery. A number too large to express saturates; the policy bounds it afterwards.
#[must_use]
pub fn parse_delay_seconds(value: &[u8]) -> Option<Millis> {
    let digits = trimmed(value);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let seconds = digits
        .iter()
        .fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    Some(Millis::from_secs(seconds))
}
