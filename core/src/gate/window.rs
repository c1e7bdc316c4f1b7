//! A sliding window over outcomes: how many attempts ended of late, and how many of them failed.

use std::collections::VecDeque;

use serde::de::Deserializer;
use serde::{Deserialize, Serialize, Serializer};

use super::breaker::Cause;
use crate::time::{Millis, Timestamp};

/// The most distinct instants, of one millisecond each, that a window keeps apart. Outcomes of the
/// same instant are one entry, however many they are. They are stored with every attempt.
pub const WINDOW_INSTANTS_MAX: usize = 2048;

/// In how many parts a window is divided once it holds too many instants.
const PARTS: u64 = 1024;

/// Opens the breaker at a failure if, of the attempts that ended less than `within` ago, enough
/// failed.
///
/// Every outcome counts, and no other: the count is exact while the window holds at most
/// [`WINDOW_INSTANTS_MAX`] distinct instants. Of more, successes are taken for one with what comes next, if
/// both are in the same of 1,024 parts of the window; so failures are counted exactly, whatever the number
/// of successes, while at most 500 distinct instants of the window have any. Of still more, neighbours of
/// each kind are taken for one, as late as the later of them. None is lost, and none counts longer than it
/// should by `within` / 1024 or more, rounded up to a millisecond.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowRule {
    /// The length of the window, which ends at the failure.
    pub within: Millis,
    /// So many failures, at least.
    #[serde(default = "one")]
    pub failures: u32,
    /// Such a share of the attempts, at least, in percent.
    #[serde(default)]
    pub share_percent: u8,
    /// Of so many attempts, at least.
    #[serde(default = "one")]
    pub attempts_min: u32,
}

fn one() -> u32 {
    1
}

impl WindowRule {
    /// Whether successes do not matter.
    fn only_failures(&self) -> bool {
        self.share_percent == 0 && self.attempts_min <= self.failures
    }
}

/// The attempts that ended at one instant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Instant {
    at: Timestamp,
    failures: u32,
    attempts: u32,
}

/// What a window looks back on: instants in order, and their sums.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Outcomes {
    instants: VecDeque<Instant>,
    failures: u64,
    attempts: u64,
}

impl Outcomes {
    pub(super) fn is_empty(&self) -> bool {
        self.instants.is_empty()
    }

    /// An attempt ended; what has left the window is forgotten.
    pub(super) fn add(&mut self, window: &WindowRule, now: Timestamp, failed: bool) {
        if !failed && window.only_failures() {
            return;
        }
        self.push(Instant { at: now, failures: u32::from(failed), attempts: 1 });
        while let Some(oldest) = self.instants.front()
            && now.since(oldest.at) >= window.within
        {
            self.failures = self.failures.saturating_sub(oldest.failures.into());
            self.attempts = self.attempts.saturating_sub(oldest.attempts.into());
            self.instants.pop_front();
        }
        if self.instants.len() > WINDOW_INSTANTS_MAX {
            self.coarsen(window.within, |earlier| earlier.failures == 0);
        }
        if self.instants.len() > WINDOW_INSTANTS_MAX {
            self.coarsen(window.within, |_| true);
        }
    }

    /// Whether what [`Outcomes::add`] left is enough to open the breaker.
    pub(super) fn is_too_much(&self, window: &WindowRule) -> Option<Cause> {
        let share = u64::from(window.share_percent).saturating_mul(self.attempts);
        let told = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        (self.failures >= window.failures.into()
            && self.attempts >= window.attempts_min.into()
            && self.failures.saturating_mul(100) >= share)
            .then(|| Cause::Window { failures: told(self.failures), attempts: told(self.attempts) })
    }

    fn push(&mut self, next: Instant) {
        self.set_back(next.at);
        self.failures = self.failures.saturating_add(next.failures.into());
        self.attempts = self.attempts.saturating_add(next.attempts.into());
        match self.instants.back_mut() {
            Some(last) if last.at == next.at => last.absorb(next),
            _ => self.instants.push_back(next),
        }
    }

    /// If the clock was set back, the spans between the instants are kept and the last one is now:
    /// otherwise they would count for as long as it was set back.
    fn set_back(&mut self, now: Timestamp) {
        let Some(by) = self.instants.back().map(|last| last.at.since(now)) else { return };
        if by > Millis::ZERO {
            for instant in &mut self.instants {
                instant.at = instant.at.minus(by);
            }
        }
    }

    /// Takes instants of one part of the window for one with the next, if the earlier may be. The parts
    /// are fixed in time, so that what is merged again and again does not move on with each time.
    fn coarsen(&mut self, within: Millis, may_merge: impl Fn(&Instant) -> bool) {
        let length = i64::try_from(within.get().div_ceil(PARTS)).unwrap_or(i64::MAX).max(1);
        let part = |instant: &Instant| instant.at.as_millis().div_euclid(length);
        let fine = std::mem::take(&mut self.instants);
        for next in fine {
            match self.instants.back_mut() {
                Some(last) if may_merge(last) && part(last) == part(&next) => last.absorb(next),
                _ => self.instants.push_back(next),
            }
        }
    }
}

impl Instant {
    /// Adds the outcomes of a later instant, or of the same.
    fn absorb(&mut self, later: Self) {
        self.at = later.at;
        self.failures = self.failures.saturating_add(later.failures);
        self.attempts = self.attempts.saturating_add(later.attempts);
    }
}

/// An instant as it is written: the milliseconds since the one before, which keeps it short, and how
/// many failed of how many.
type Written = (i64, u32, u32);

/// An instant as it is read.
#[derive(Deserialize)]
#[serde(untagged)]
enum Read {
    Instant(Written),
    /// One outcome, as it was written before: when, and whether it failed.
    Outcome(Timestamp, bool),
}

impl Serialize for Outcomes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut before = 0_i64;
        serializer.collect_seq(self.instants.iter().map(|instant| -> Written {
            let at = instant.at.as_millis();
            let gap = at.wrapping_sub(before);
            before = at;
            (gap, instant.failures, instant.attempts)
        }))
    }
}

impl<'de> Deserialize<'de> for Outcomes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut at = 0_i64;
        let mut outcomes = Self::default();
        for read in Vec::<Read>::deserialize(deserializer)? {
            let (failures, attempts) = match read {
                Read::Instant((gap, failures, attempts)) => {
                    at = at.wrapping_add(gap);
                    (failures, attempts)
                }
                Read::Outcome(then, failed) => {
                    at = then.as_millis();
                    (u32::from(failed), 1)
                }
            };
            outcomes.push(Instant { at: Timestamp::from_millis(at), failures, attempts });
        }
        Ok(outcomes)
    }
}
