//! When the next attempt is made.
//!
//! Attempts are numbered from 1. *Retry* `n` is the wait between attempt `n` and attempt `n + 1`,
//! also numbered from 1. All arithmetic saturates at the cap: an attempt number or a setting can
//! make a wait long, never zero, negative or a panic.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::time::Millis;

/// The most attempts that a schedule may allow.
pub const ATTEMPTS_MAX: u32 = 10_000;

/// The waits between attempts, and how many attempts there are.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The waits before jitter.
    pub backoff: Backoff,
    /// How a wait is spread.
    #[serde(default)]
    pub jitter: Jitter,
}

/// The waits before jitter.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Backoff {
    /// The waits one by one; there is one attempt more than there are waits. An empty list means a
    /// single attempt; a wait of zero means at once.
    List {
        /// Waits before attempts 2, 3, …
        waits: Vec<Millis>,
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
        /// Attempts in all, the first included.
        attempts_max: u32,
    },
}

/// How a wait is spread, so that events that failed together do not come back together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// The wait as it is.
    #[default]
    None,
    /// Uniform between zero and the wait, both included ("full jitter").
    Full,
}

/// The shortest and the longest wait that one retry can have; both can occur.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bounds {
    /// The shortest.
    pub lowest: Millis,
    /// The longest.
    pub highest: Millis,
}

/// What is wrong with a schedule, and with which field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleError {
    field: &'static str,
    problem: String,
}

impl ScheduleError {
    /// The field that is wrong, for example `attempts_max`.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.field
    }
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.field, self.problem)
    }
}

impl std::error::Error for ScheduleError {}

impl Schedule {
    /// Checks what the types cannot.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`] with the field that is wrong.
    pub fn validate(&self) -> Result<(), ScheduleError> {
        let fail = |field, problem: String| Err(ScheduleError { field, problem });
        match &self.backoff {
            Backoff::List { waits } if waits.len() >= ATTEMPTS_MAX as usize => fail(
                "waits",
                format!(
                    "has {} entries, but at most {} are allowed",
                    waits.len(),
                    ATTEMPTS_MAX - 1
                ),
            ),
            Backoff::List { .. } => Ok(()),
            Backoff::Exponential { attempts_max, .. }
                if !(1..=ATTEMPTS_MAX).contains(attempts_max) =>
            {
                fail("attempts_max", format!("is {attempts_max}, but must be 1 to {ATTEMPTS_MAX}"))
            }
            Backoff::Exponential { factor: 0, .. } => {
                fail("factor", "is 0, but must be at least 1 (1 repeats the base)".to_owned())
            }
            Backoff::Exponential { base, .. } if *base == Millis::ZERO => {
                fail("base", "is 0s, which would retry without pause; give at least 1ms".to_owned())
            }
            Backoff::Exponential { base, cap, .. } if cap < base => {
                fail("cap", format!("is {cap}, but must be at least the base, {base}"))
            }
            Backoff::Exponential { .. } => Ok(()),
        }
    }

    /// Attempts in all, the first included.
    #[must_use]
    pub fn attempts_max(&self) -> u32 {
        match &self.backoff {
            Backoff::List { waits } => {
                u32::try_from(waits.len()).unwrap_or(ATTEMPTS_MAX).saturating_add(1)
            }
            Backoff::Exponential { attempts_max, .. } => *attempts_max,
        }
    }

    /// The wait after attempt `attempt`, or `None` if that was the last one (or there is no such
    /// attempt: they are numbered from 1).
    #[must_use]
    pub fn wait(&self, attempt: u32, entropy: u64) -> Option<Millis> {
        let wait = self.wait_before_jitter(attempt)?;
        Some(match self.jitter {
            Jitter::None => wait,
            Jitter::Full => uniform(wait, entropy),
        })
    }

    /// The bounds of the wait after attempt `attempt`, both of which can occur.
    #[must_use]
    pub fn bounds(&self, attempt: u32) -> Option<Bounds> {
        let highest = self.wait_before_jitter(attempt)?;
        let lowest = match self.jitter {
            Jitter::None => highest,
            Jitter::Full => Millis::ZERO,
        };
        Some(Bounds { lowest, highest })
    }

    fn wait_before_jitter(&self, attempt: u32) -> Option<Millis> {
        if attempt == 0 || attempt >= self.attempts_max() {
            return None;
        }
        match &self.backoff {
            Backoff::List { waits } => waits.get(attempt as usize - 1).copied(),
            Backoff::Exponential { base, factor, cap, .. } => {
                let growth = u64::from(*factor).saturating_pow(attempt - 1);
                Some(base.times(growth).min(*cap))
            }
        }
    }
}

/// Uniform in `0..=most`, from 64 bits of entropy, without modulo bias.
fn uniform(most: Millis, entropy: u64) -> Millis {
    let scaled = (u128::from(entropy) * (u128::from(most.get()) + 1)) >> 64;
    // The product is below 2⁶⁴ · (most + 1), so the quotient is at most `most` and fits.
    Millis::new(u64::try_from(scaled).unwrap_or(most.get()))
}
