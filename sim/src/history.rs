//! One history and what was found in it.

use std::collections::BTreeMap;
use std::time::Duration;

use hookproof_core::time::{Millis, Timestamp};

use crate::checkers::{Invariant, Violation};
use crate::choices::Draw;
use crate::fault::Faults;

pub use crate::journal::{Counts, Line};
pub use crate::sometimes::Sometimes;

/// When every history begins: 2026-01-01T00:00:00Z.
pub(crate) const EPOCH: Duration = Duration::from_secs(1_767_225_600);

/// When every history begins, by the simulated clock.
#[must_use]
pub fn epoch() -> Timestamp {
    Timestamp::from_millis(i64::try_from(EPOCH.as_millis()).unwrap_or(i64::MAX))
}

/// One history and what was found in it.
#[derive(Clone, Debug)]
pub struct History {
    /// The faults that were on.
    pub faults: Faults,
    /// The invariant that does not hold, if any; the history ends there.
    pub violation: Option<Violation>,
    /// How often what happened.
    pub counts: Counts,
    /// How much each checker looked at.
    pub looks: BTreeMap<Invariant, u64>,
    /// The trace, if it was wanted.
    pub lines: Vec<Line>,
    /// The digest of the whole history.
    pub hash: String,
    /// How much simulated time passed.
    pub simulated: Millis,
    /// Every choice that was made.
    pub draws: Vec<Draw>,
    /// What came of it.
    pub totals: Totals,
}

/// What came of a history.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Events whose publish was acknowledged.
    pub accepted: u64,
    /// Deliveries made of them.
    pub deliveries: u64,
    /// Deliveries that the receiver took.
    pub delivered: u64,
    /// Deliveries that were given up.
    pub dead: u64,
    /// Requests that the sender wrote.
    pub requests: u64,
    /// Effects at the receiver.
    pub effects: u64,
}

impl Totals {
    /// Adds another history's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.deliveries += other.deliveries;
        self.delivered += other.delivered;
        self.dead += other.dead;
        self.requests += other.requests;
        self.effects += other.effects;
    }
}
