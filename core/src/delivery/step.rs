//! A decision about a delivery: what is written in one transaction, and what follows from it.

use serde::{Deserialize, Serialize};

use super::{DeadReason, Delivery, Phase, Rejected};
use crate::classify::Verdict;
use crate::outcome::Outcome;
use crate::time::Timestamp;

/// One attempt as it is remembered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// Its number, from 1.
    pub attempt: u32,
    /// When it was claimed.
    pub started_at: Timestamp,
    /// When its outcome was known.
    pub finished_at: Timestamp,
    /// What came of it.
    pub outcome: Outcome,
    /// What that meant.
    pub verdict: Verdict,
}

/// What the owner must be told: a row in the same transaction as the step. There is one when a
/// delivery becomes dead, and none when a replay of it fails: whoever asked for that is looking.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Notice {
    /// Why the delivery is dead.
    pub reason: DeadReason,
}

/// What a driver does after the commit. If it is lost in a crash, the store can rebuild it: a send
/// by the lease's end, a wake-up by the indexed wake time, a notice by its row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// Send attempt number `attempt`.
    Send {
        /// The number, from 1.
        attempt: u32,
    },
    /// The delivery wants attention then.
    WakeAt {
        /// When.
        at: Timestamp,
        /// What for.
        reason: WakeReason,
    },
    /// A notice waits to be sent.
    NoticePending,
}

/// Why a delivery wants attention.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WakeReason {
    /// An attempt is due.
    Due,
    /// A claim ends.
    LeaseEnds,
}

/// A decision that is not yet true: it becomes so when [`Step::onto`] accepts the stored state and
/// the transaction that writes the result commits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[must_use = "a step changes nothing until it is committed"]
pub struct Step {
    pub(super) expected: u64,
    pub(super) next: Delivery,
    pub(super) record: Option<AttemptRecord>,
    pub(super) notice: Option<Notice>,
    pub(super) disables_endpoint: bool,
}

/// What to write in one transaction, and what to do once it is committed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Committed {
    /// The new state.
    pub delivery: Delivery,
    /// The attempt that ended with this step.
    pub record: Option<AttemptRecord>,
    /// What the owner must be told.
    pub notice: Option<Notice>,
    /// Whether the endpoint is disabled: its receiver answered 410.
    pub disables_endpoint: bool,
    /// What to do after the commit, in this order.
    pub effects: Vec<Effect>,
}

impl Step {
    /// The state that this step leads to.
    #[must_use]
    pub fn next(&self) -> &Delivery {
        &self.next
    }

    /// The attempt that ends with this step.
    #[must_use]
    pub fn record(&self) -> Option<&AttemptRecord> {
        self.record.as_ref()
    }

    /// The body of the transaction: accepts the step if `stored` is the state that it was made from.
    ///
    /// # Errors
    ///
    /// [`Rejected::Stale`] if another step came first: throw this one away and load again.
    pub fn onto(self, stored: &Delivery) -> Result<Committed, Rejected> {
        if stored.version != self.expected || stored.id != self.next.id {
            return Err(Rejected::Stale { expected: self.expected, stored: stored.version });
        }
        let mut effects = Vec::new();
        if let Phase::InFlight { attempt, .. } = self.next.phase {
            effects.push(Effect::Send { attempt });
        }
        if let Some((at, reason)) = self.next.wake_at() {
            effects.push(Effect::WakeAt { at, reason });
        }
        if self.notice.is_some() {
            effects.push(Effect::NoticePending);
        }
        Ok(Committed {
            delivery: self.next,
            record: self.record,
            notice: self.notice,
            disables_endpoint: self.disables_endpoint,
            effects,
        })
    }
}
