//! `Retry-After`: a number of seconds, or a date in one of HTTP's three forms (RFC 9110 §10.2.3), and
//! what it does to a wait.

use serde::{Deserialize, Serialize};

use crate::http_date;
use crate::time::{Millis, Timestamp};

/// What a `Retry-After` does to the wait that the schedule has; its longest wait is
/// [`Classification::retry_after_max`](crate::classify::Classification::retry_after_max).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryAfterRule {
    /// A shorter wait counts as this long.
    pub min: Millis,
    /// The longest that it can ask for, in hundredths of the schedule's wait before the jitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent_max: Option<u32>,
    /// Whether the jitter is drawn around the wait that was asked for: some attempts then come
    /// earlier than that. Without it none does.
    pub jitters: bool,
}

impl RetryAfterRule {
    /// What counts of a wait that was `asked` for, where the schedule has `wait` before its jitter.
    #[must_use]
    pub fn counted(&self, asked: Millis, wait: Millis) -> Millis {
        let most = self.percent_max.map_or(Millis::MAX, |percent| wait.percent(percent));
        asked.max(self.min).min(most)
    }
}

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
