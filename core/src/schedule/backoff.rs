//! The waits before jitter, and how they are written in a file.

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};

use super::{ATTEMPTS_MAX, ScheduleError, fail};
use crate::time::Millis;

/// The waits before jitter.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Backoff {
    /// The waits one by one; there is one attempt more than there are waits. An empty list means a
    /// single attempt; a wait of zero means at once.
    List {
        /// Waits before attempts 2, 3, …
        waits: Vec<Millis>,
    },
    /// `base + step · (n − 1)` before attempt `n + 1`, at most `cap`.
    Linear {
        /// The first wait.
        base: Millis,
        /// By how much each wait is longer than the one before; zero repeats the base.
        step: Millis,
        /// The longest wait.
        cap: Millis,
        /// Attempts in all, the first included; [`ATTEMPTS_MAX`], which a file says by leaving it out,
        /// if only the age is to end a delivery.
        attempts_max: u32,
    },
    /// `base · factorⁿ⁻¹` before attempt `n + 1`, at most `cap`. The cap comes before the jitter,
    /// so that no mass of probability sits at it.
    Exponential {
        /// The first wait.
        base: Millis,
        /// By how much each wait exceeds the one before.
        factor: u32,
        /// The longest wait.
        cap: Millis,
        /// Attempts in all, the first included; [`ATTEMPTS_MAX`], which a file says by leaving it out,
        /// if only the age is to end a delivery.
        attempts_max: u32,
    },
}

impl Backoff {
    pub(super) fn validate(&self) -> Result<(), ScheduleError> {
        let (base, cap, attempts_max) = match self {
            Self::List { waits } if waits.len() >= ATTEMPTS_MAX as usize => {
                let (count, most) = (waits.len(), ATTEMPTS_MAX - 1);
                return fail(
                    "backoff.waits",
                    format!("has {count} entries, but at most {most} are allowed"),
                );
            }
            Self::List { .. } => return Ok(()),
            Self::Linear { base, cap, attempts_max, .. }
            | Self::Exponential { base, cap, attempts_max, .. } => (*base, *cap, *attempts_max),
        };
        if !(1..=ATTEMPTS_MAX).contains(&attempts_max) {
            let problem = format!("is {attempts_max}, but must be 1 to {ATTEMPTS_MAX}");
            return fail("backoff.attempts_max", problem);
        }
        if matches!(self, Self::Exponential { factor: 0, .. }) {
            let problem = "is 0, but must be at least 1 (1 repeats the base)";
            return fail("backoff.factor", problem.to_owned());
        }
        if base == Millis::ZERO {
            let problem = "is 0s, which would retry without pause; give at least 1ms";
            return fail("backoff.base", problem.to_owned());
        }
        if cap < base {
            return fail("backoff.cap", format!("is {cap}, but must be at least the base, {base}"));
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Backoff {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Written::deserialize(deserializer)?.backoff()
    }
}

/// The fields of all kinds. A tagged enum is read from a copy of its fields, where an error no
/// longer knows in which of them it came up.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    kind: Kind,
    #[serde(default, deserialize_with = "given")]
    waits: Option<Vec<Millis>>,
    #[serde(default, deserialize_with = "given")]
    base: Option<Millis>,
    #[serde(default, deserialize_with = "given")]
    step: Option<Millis>,
    #[serde(default, deserialize_with = "given")]
    factor: Option<u32>,
    #[serde(default, deserialize_with = "given")]
    cap: Option<Millis>,
    #[serde(default, deserialize_with = "given")]
    attempts_max: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    List,
    Linear,
    Exponential,
}

impl Kind {
    fn fields(&self) -> &'static [&'static str] {
        match self {
            Self::List => &["kind", "waits"],
            Self::Linear => &["kind", "base", "step", "cap", "attempts_max"],
            Self::Exponential => &["kind", "base", "factor", "cap", "attempts_max"],
        }
    }
}

impl Written {
    fn backoff<E: Error>(self) -> Result<Backoff, E> {
        let allowed = self.kind.fields();
        if let Some(other) = self.names().find(|name| !allowed.contains(name)) {
            return Err(E::unknown_field(other, allowed));
        }
        let Self { kind, waits, base, step, factor, cap, attempts_max } = self;
        Ok(match kind {
            Kind::List => Backoff::List { waits: needed(waits, "waits")? },
            Kind::Linear => Backoff::Linear {
                base: needed(base, "base")?,
                step: needed(step, "step")?,
                cap: needed(cap, "cap")?,
                attempts_max: attempts_max.unwrap_or(ATTEMPTS_MAX),
            },
            Kind::Exponential => Backoff::Exponential {
                base: needed(base, "base")?,
                factor: needed(factor, "factor")?,
                cap: needed(cap, "cap")?,
                attempts_max: attempts_max.unwrap_or(ATTEMPTS_MAX),
            },
        })
    }

    /// The fields that are there, the kind apart.
    fn names(&self) -> impl Iterator<Item = &'static str> {
        let fields = [
            ("waits", self.waits.is_some()),
            ("base", self.base.is_some()),
            ("step", self.step.is_some()),
            ("factor", self.factor.is_some()),
            ("cap", self.cap.is_some()),
            ("attempts_max", self.attempts_max.is_some()),
        ];
        fields.into_iter().filter_map(|(name, is_there)| is_there.then_some(name))
    }
}

/// A field that is there has a value: `null` is none.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

fn needed<T, E: Error>(value: Option<T>, name: &'static str) -> Result<T, E> {
    value.ok_or_else(|| E::missing_field(name))
}
