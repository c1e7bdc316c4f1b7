//! When the next attempt is made.
//!
//! Attempts are numbered from 1. *Retry* `n` is the wait between attempt `n` and attempt `n + 1`,
//! also numbered from 1. All arithmetic saturates at the cap: an attempt number or a setting can
//! make a wait long, never zero, negative or a panic.

mod backoff;
mod draw;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::time::Millis;

pub use backoff::Backoff;
pub use draw::Draw;

/// The most attempts that a schedule may allow. One that allows so many is bounded by the age of a
/// delivery alone.
pub const ATTEMPTS_MAX: u32 = 100_000;

/// The waits between attempts, and how many attempts there are.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The waits before jitter.
    pub backoff: Backoff,
    /// How a wait is spread.
    #[serde(default)]
    pub jitter: Jitter,
    /// The longest wait after the jitter. Unlike the cap of [`Backoff`], which comes before the
    /// jitter, it gathers at itself whatever was drawn above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_after_jitter: Option<Millis>,
}

/// How a wait is spread, so that events that failed together do not come back together. Each spread
/// is even, both ends included.
///
/// Full, equal and decorrelated jitter are named and compared in "Exponential Backoff And Jitter"
/// (AWS Architecture Blog, 2015).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Jitter {
    /// The wait as it is.
    #[default]
    None,
    /// Between zero and the wait.
    Full,
    /// Between half the wait and the wait.
    Equal,
    /// The wait, at most `percent` of it shorter or longer.
    Proportional {
        /// 0 to 100.
        percent: u32,
    },
    /// The wait and at most `most` on top.
    Additive {
        /// The most that is added.
        most: Millis,
    },
    /// Between the base and `factor` times the wait before, at most the cap; the first is drawn as
    /// if the base had gone before. Needs [`Backoff::Exponential`], whose other waits it replaces.
    Decorrelated,
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
    /// The path of the field that is wrong, for example `backoff.attempts_max`.
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
    /// A schedule whose only cap is that of its backoff.
    #[must_use]
    pub fn new(backoff: Backoff, jitter: Jitter) -> Self {
        Self { backoff, jitter, cap_after_jitter: None }
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`] with the field that is wrong.
    pub fn validate(&self) -> Result<(), ScheduleError> {
        self.backoff.validate()?;
        match (self.jitter, &self.backoff) {
            (Jitter::Proportional { percent }, _) if percent > 100 => fail(
                "jitter.proportional.percent",
                format!("is {percent}, but must be 0 to 100: a wait cannot be negative"),
            ),
            (Jitter::Decorrelated, Backoff::Exponential { factor: 1, .. }) => fail(
                "backoff.factor",
                "is 1, but decorrelated jitter must be able to grow; give at least 2".to_owned(),
            ),
            (Jitter::Decorrelated, Backoff::List { .. } | Backoff::Linear { .. }) => fail(
                "jitter",
                "is decorrelated, which needs a backoff of kind exponential: its base, factor and \
                 cap"
                .to_owned(),
            ),
            _ if self.cap_after_jitter == Some(Millis::ZERO) => fail(
                "cap_after_jitter",
                "is 0s, which would retry without pause; give at least 1ms".to_owned(),
            ),
            _ => Ok(()),
        }
    }

    /// Attempts in all, the first included.
    #[must_use]
    pub fn attempts_max(&self) -> u32 {
        match &self.backoff {
            Backoff::List { waits } => {
                u32::try_from(waits.len()).unwrap_or(ATTEMPTS_MAX).saturating_add(1)
            }
            Backoff::Linear { attempts_max, .. } | Backoff::Exponential { attempts_max, .. } => {
                *attempts_max
            }
        }
    }

    /// Whether it is for the age alone to end a delivery: nothing limits the attempts but what is possible
    /// at all.
    #[must_use]
    pub fn is_open_ended(&self) -> bool {
        !matches!(self.backoff, Backoff::List { .. }) && self.attempts_max() == ATTEMPTS_MAX
    }

    /// The wait after attempt `attempt`, or `None` if that was the last one (or there is no such
    /// attempt: they are numbered from 1).
    ///
    /// Decorrelated jitter is drawn over all that it can be after so many attempts, as nothing is
    /// known of the wait before; see [`Schedule::draw`].
    #[must_use]
    pub fn wait(&self, attempt: u32, entropy: u64) -> Option<Millis> {
        Some(self.draw(attempt, None)?.at(entropy))
    }

    /// The bounds of the wait after attempt `attempt`, both of which can occur.
    #[must_use]
    pub fn bounds(&self, attempt: u32) -> Option<Bounds> {
        Some(self.draw(attempt, None)?.bounds())
    }

    /// How the wait after attempt `attempt` is drawn, if the one before that was `previous`: only
    /// decorrelated jitter asks for it.
    #[must_use]
    pub fn draw(&self, attempt: u32, previous: Option<Millis>) -> Option<Draw> {
        self.draw_raised(attempt, previous, Millis::ZERO)
    }

    /// The same, where the wait is at least `least` before its jitter. Decorrelated jitter has no
    /// such wait and stays as it is.
    #[must_use]
    pub(crate) fn draw_raised(
        &self,
        attempt: u32,
        previous: Option<Millis>,
        least: Millis,
    ) -> Option<Draw> {
        let wait = self.wait_before_jitter(attempt)?.max(least);
        let between = |lowest, highest| Draw::between(lowest, highest);
        let draw = match self.jitter {
            Jitter::None => between(wait, wait),
            Jitter::Full => between(Millis::ZERO, wait),
            Jitter::Equal => between(wait.minus(wait.percent(50)), wait),
            Jitter::Proportional { percent } => {
                let part = wait.percent(percent);
                between(wait.minus(part), wait.plus(part))
            }
            Jitter::Additive { most } => between(wait, wait.plus(most)),
            Jitter::Decorrelated => self.decorrelated(attempt, previous, wait),
        };
        Some(match self.cap_after_jitter {
            Some(cap) => draw.at_most(cap),
            None => draw,
        })
    }

    fn decorrelated(&self, attempt: u32, previous: Option<Millis>, wait: Millis) -> Draw {
        let Backoff::Exponential { base, factor, cap, .. } = &self.backoff else {
            // `validate` refuses this.
            return Draw::between(wait, wait);
        };
        let highest = match previous {
            Some(previous) => previous.times(u64::from(*factor)),
            None => base.times(u64::from(*factor).saturating_pow(attempt)),
        };
        Draw::between(*base, highest.max(*base)).at_most(*cap)
    }

    /// The wait after attempt `attempt` that the jitter spreads.
    #[must_use]
    pub fn wait_before_jitter(&self, attempt: u32) -> Option<Millis> {
        if attempt == 0 || attempt >= self.attempts_max() {
            return None;
        }
        match &self.backoff {
            Backoff::List { waits } => waits.get(attempt as usize - 1).copied(),
            Backoff::Linear { base, step, cap, .. } => {
                Some(base.plus(step.times(u64::from(attempt - 1))).min(*cap))
            }
            Backoff::Exponential { base, factor, cap, .. } => {
                let growth = u64::from(*factor).saturating_pow(attempt - 1);
                Some(base.times(growth).min(*cap))
            }
        }
    }
}

fn fail(field: &'static str, problem: String) -> Result<(), ScheduleError> {
    Err(ScheduleError { field, problem })
}
