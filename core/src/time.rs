//! Instants and spans in whole milliseconds.
//!
//! An instant is persisted, so it is wall-clock time and never a process-local `Instant`. All
//! arithmetic saturates: no attempt number, setting or clock can overflow it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch, UTC. May be negative.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The largest instant that can be expressed.
    pub const MAX: Self = Self(i64::MAX);

    /// An instant from milliseconds since the Unix epoch.
    #[must_use]
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms)
    }

    /// An instant from whole seconds since the Unix epoch; saturates.
    #[must_use]
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since the Unix epoch, rounded down: what `webhook-timestamp` carries.
    #[must_use]
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// This instant moved later by `span`; saturates at [`Timestamp::MAX`].
    #[must_use]
    pub const fn plus(self, span: Millis) -> Self {
        Self(self.0.saturating_add_unsigned(span.0))
    }

    /// The instant `span` earlier; the first one there is if that would be before it.
    #[must_use]
    pub const fn minus(self, span: Millis) -> Self {
        Self(self.0.saturating_sub_unsigned(span.0))
    }

    /// The span from `earlier` to this instant; zero if `earlier` is in fact later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Millis {
        if self.0 <= earlier.0 { Millis::ZERO } else { Millis(self.0.abs_diff(earlier.0)) }
    }
}

/// A span of time in whole milliseconds.
///
/// Written for people as `1h30m`, `5s`, `250ms` (see the [`FromStr`] and [`fmt::Display`]
/// implementations); that is also its form in configuration files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Millis(u64);

impl Millis {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span that can be expressed.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `ms` milliseconds.
    #[must_use]
    pub const fn new(ms: u64) -> Self {
        Self(ms)
    }

    /// A span of `secs` seconds; saturates.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// A span of `minutes` minutes; saturates.
    #[must_use]
    pub const fn from_minutes(minutes: u64) -> Self {
        Self::from_secs(minutes.saturating_mul(60))
    }

    /// A span of `hours` hours; saturates.
    #[must_use]
    pub const fn from_hours(hours: u64) -> Self {
        Self::from_minutes(hours.saturating_mul(60))
    }

    /// The span in milliseconds.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The sum of both spans; saturates.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// This span without `other`; zero if that is longer.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// So many hundredths of the span, rounded down; saturates.
    #[must_use]
    pub fn percent(self, percent: u32) -> Self {
        let part = u128::from(self.0) * u128::from(percent) / 100;
        Self(u64::try_from(part).unwrap_or(u64::MAX))
    }

    /// The span `factor` times over; saturates.
    #[must_use]
    pub const fn times(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// The span as a [`std::time::Duration`], for drivers.
    #[must_use]
    pub const fn to_duration(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0)
    }
}

const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

impl fmt::Display for Millis {
    /// Days only above 99 hours, since retry schedules are commonly told in hours: `75h35m5s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.pad("0s");
        }
        let mut rest = self.0;
        let mut text = String::new();
        for (unit, ms) in UNITS {
            if unit == "d" && rest < 100 * 3_600_000 {
                continue;
            }
            let count = rest / ms;
            rest %= ms;
            if count > 0 {
                text.push_str(&count.to_string());
                text.push_str(unit);
            }
        }
        f.pad(&text)
    }
}

/// Why a text is not a span of time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpanError {
    text: String,
}

impl fmt::Display for SpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a span of time: write whole numbers with a unit each, largest first, \
             as in `250ms`, `5s`, `1h30m` or `3d`",
            self.text
        )
    }
}

impl std::error::Error for SpanError {}

impl FromStr for Millis {
    type Err = SpanError;

    /// Parses `1h30m`, `5s`, `250ms`, `0s`; units must fall from left to right, each at most once.
    fn from_str(text: &str) -> Result<Self, SpanError> {
        parse_span(text).map(Self).ok_or_else(|| SpanError { text: text.to_owned() })
    }
}

fn parse_span(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut total = 0_u64;
    let mut units = UNITS.iter();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, tail) = rest.split_at(digits);
        let letters = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_lowercase()).len();
        let (unit, tail) = tail.split_at(letters);
        let (_, ms) = units.find(|(name, _)| *name == unit)?;
        let span = number.parse::<u64>().ok()?.checked_mul(*ms)?;
        total = total.checked_add(span)?;
        rest = tail;
    }
    Some(total)
}

impl Serialize for Millis {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
