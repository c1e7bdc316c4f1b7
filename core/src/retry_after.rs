//! `Retry-After` in its delta-seconds form (RFC 9110 §10.2.3: `delay-seconds = 1*DIGIT`).

use crate::time::Millis;

/// Reads a field value as whole seconds.
///
/// Strict: only digits, with optional white space around them (RFC 9110 §5.6.3). Anything else
/// (`-5`, `1.5`, `10 s`, an empty value) is `None`: a malformed field is ignored, it does not fail
/// the delivery. A number too large to express saturates; the policy bounds it afterwards.
#[must_use]
pub fn parse_delay_seconds(value: &[u8]) -> Option<Millis> {
    let digits = value.trim_ascii_start().trim_ascii_end();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let seconds = digits
        .iter()
        .fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    Some(Millis::from_secs(seconds))
}
