//! One event at the receiver: verified → recorded → acknowledged → claimed → applied and marked.
//!
//! The event is recorded, body and all, in one insert under the unique key (source, event id), and
//! acknowledged with 2xx only after the commit: from then on the receiver is responsible. A worker
//! claims it, and applies the effect and marks the entry in one transaction. What a worker left
//! behind is found by time, so no wake-up is ever needed for progress.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{EventId, SourceId};
use crate::schedule::{Jitter, Schedule};
use crate::time::{Millis, Timestamp};

/// The state of one received event.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The verified integration it came from.
    pub source: SourceId,
    /// The signed event id.
    pub event_id: EventId,
    /// When it was recorded.
    pub received_at: Timestamp,
    /// Grows by one with every step.
    pub version: u64,
    /// How often a worker has claimed it.
    pub attempts: u32,
    /// The last wait that was drawn, if the next depends on it (decorrelated jitter).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_wait: Option<Millis>,
    /// Where it stands.
    pub phase: Phase,
}

/// Where a received event stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Phase {
    /// It waits for a worker.
    Pending {
        /// Not before then.
        due: Timestamp,
    },
    /// A worker has it.
    Claimed {
        /// The number of the claim, from 1.
        attempt: u32,
        /// When the claim ends by itself.
        lease_until: Timestamp,
    },
    /// Its effect is applied.
    Applied {
        /// When.
        at: Timestamp,
    },
    /// An event of a newer version of the same entity was applied before it, so it has no effect
    /// ([`crate::ordering`]).
    Superseded {
        /// When that was found.
        at: Timestamp,
    },
    /// Its effect failed as often as the rule allows; it stays available.
    Dead {
        /// When.
        at: Timestamp,
    },
}

/// How received events are worked off.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InboxRule {
    /// How long a worker may hold an entry.
    pub lease: Millis,
    /// When a failed effect is tried again.
    pub schedule: Schedule,
}

impl Default for InboxRule {
    fn default() -> Self {
        use crate::schedule::Backoff;
        Self {
            lease: Millis::from_secs(30),
            schedule: Schedule {
                backoff: Backoff::Exponential {
                    base: Millis::from_secs(1),
                    factor: 2,
                    cap: Millis::from_hours(1),
                    attempts_max: 16,
                },
                jitter: Jitter::Full,
                cap_after_jitter: None,
            },
        }
    }
}

/// What a verified request turned out to be. Both are answered with 2xx: a 409 for a duplicate
/// would make one sender retry it and another give it up.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Receipt {
    /// Not seen before: record it, commit, then acknowledge.
    New(Entry),
    /// Already recorded: acknowledge.
    Duplicate,
}

/// What happened to an entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Input {
    /// A worker wants it.
    Claim,
    /// Its effect was applied, in the transaction that this step is written in.
    Applied {
        /// The number of the claim.
        attempt: u32,
    },
    /// A newer version of its entity is applied, as was found in the transaction that this step is
    /// written in.
    Superseded {
        /// The number of the claim.
        attempt: u32,
    },
    /// Its effect failed; nothing of it was applied. Or it is a call to another service under a key
    /// of the event, and nobody knows whether it was: the next attempt makes it under the same key.
    Failed {
        /// The number of the claim.
        attempt: u32,
    },
    /// The claim's time may be over.
    LeaseExpired,
    /// The process that made the claim is known to be gone.
    OwnerLost,
}

/// What a step is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Ctx<'a> {
    /// The time of the step.
    pub now: Timestamp,
    /// 64 random bits, of which the jitter is made.
    pub entropy: u64,
    /// The rule.
    pub rule: &'a InboxRule,
}

/// The input does not fit the state; nothing changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rejected {
    /// The step was made from a version that is no longer the stored one.
    Stale {
        /// The version that the step was made from.
        expected: u64,
        /// The version that is stored.
        stored: u64,
    },
    /// It is not due before then.
    NotDue(Timestamp),
    /// The claim holds until then.
    LeaseHolds(Timestamp),
    /// No claim of that number is held.
    NotClaimed,
    /// It is in a final state.
    Settled,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { expected, stored } => {
                write!(f, "made from version {expected}, but version {stored} is stored")
            }
            Self::NotDue(due) => write!(f, "not due before {} ms", due.as_millis()),
            Self::LeaseHolds(until) => write!(f, "claimed until {} ms", until.as_millis()),
            Self::NotClaimed => f.write_str("that claim is not held"),
            Self::Settled => f.write_str("the entry is in a final state"),
        }
    }
}

impl std::error::Error for Rejected {}

/// A decision that becomes true when the transaction that writes it commits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[must_use = "a step changes nothing until it is committed"]
pub struct Step {
    expected: u64,
    next: Entry,
}

impl Step {
    /// The state that this step leads to.
    #[must_use]
    pub fn next(&self) -> &Entry {
        &self.next
    }

    /// The body of the transaction: accepts the step if `stored` is the state it was made from.
    ///
    /// # Errors
    ///
    /// [`Rejected::Stale`] if another step came first: throw this one away, and with it every
    /// effect in the same transaction.
    pub fn onto(self, stored: &Entry) -> Result<Entry, Rejected> {
        let same = stored.source == self.next.source && stored.event_id == self.next.event_id;
        if same && stored.version == self.expected {
            Ok(self.next)
        } else {
            Err(Rejected::Stale { expected: self.expected, stored: stored.version })
        }
    }
}

impl Entry {
    /// What a verified request is, given what is stored under its (source, event id).
    #[must_use]
    pub fn receive(
        stored: Option<&Self>,
        source: SourceId,
        event_id: EventId,
        now: Timestamp,
    ) -> Receipt {
        if stored.is_some() {
            return Receipt::Duplicate;
        }
        Receipt::New(Self {
            source,
            event_id,
            received_at: now,
            version: 0,
            attempts: 0,
            previous_wait: None,
            phase: Phase::Pending { due: now },
        })
    }

    /// When a worker must look at the entry again; `None` in a final state.
    #[must_use]
    pub fn wake_at(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Pending { due } => Some(due),
            Phase::Claimed { lease_until, .. } => Some(lease_until),
            Phase::Applied { .. } | Phase::Superseded { .. } | Phase::Dead { .. } => None,
        }
    }

    /// Decides what `input` makes of this entry.
    ///
    /// # Errors
    ///
    /// [`Rejected`] if the input does not fit the state.
    pub fn handle(&self, ctx: Ctx<'_>, input: Input) -> Result<Step, Rejected> {
        match (input, self.phase) {
            (Input::Claim, Phase::Pending { due }) if ctx.now < due => Err(Rejected::NotDue(due)),
            (Input::Claim, Phase::Pending { .. }) => Ok(self.claim(ctx)),
            (Input::Claim, Phase::Claimed { lease_until, .. }) => {
                Err(Rejected::LeaseHolds(lease_until))
            }

            (Input::Applied { attempt }, Phase::Claimed { attempt: current, .. })
                if attempt == current =>
            {
                Ok(self.step(Phase::Applied { at: ctx.now }))
            }
            (Input::Superseded { attempt }, Phase::Claimed { attempt: current, .. })
                if attempt == current =>
            {
                Ok(self.step(Phase::Superseded { at: ctx.now }))
            }
            (Input::Failed { attempt }, Phase::Claimed { attempt: current, .. })
                if attempt == current =>
            {
                Ok(self.after_failure(ctx))
            }

            (Input::LeaseExpired, Phase::Claimed { lease_until, .. }) if ctx.now < lease_until => {
                Err(Rejected::LeaseHolds(lease_until))
            }
            (Input::LeaseExpired | Input::OwnerLost, Phase::Claimed { .. }) => {
                Ok(self.step(self.after_loss(ctx)))
            }

            (_, Phase::Applied { .. } | Phase::Superseded { .. } | Phase::Dead { .. }) => {
                Err(Rejected::Settled)
            }
            (_, Phase::Pending { .. } | Phase::Claimed { .. }) => Err(Rejected::NotClaimed),
        }
    }

    fn claim(&self, ctx: Ctx<'_>) -> Step {
        let attempt = self.attempts.saturating_add(1);
        let lease_until = ctx.now.plus(ctx.rule.lease);
        let mut step = self.step(Phase::Claimed { attempt, lease_until });
        step.next.attempts = attempt;
        step
    }

    fn after_failure(&self, ctx: Ctx<'_>) -> Step {
        let schedule = &ctx.rule.schedule;
        let Some(draw) = schedule.draw(self.attempts, self.previous_wait) else {
            let mut step = self.step(Phase::Dead { at: ctx.now });
            step.next.previous_wait = None;
            return step;
        };
        let wait = draw.at(ctx.entropy);
        let mut step = self.step(Phase::Pending { due: ctx.now.plus(wait) });
        step.next.previous_wait = (schedule.jitter == Jitter::Decorrelated).then_some(wait);
        step
    }

    /// The effect is applied in the same transaction as the mark, so a claim without a mark has had
    /// no effect, or none that the key of a call would not be known by; it can be taken over at once. But an event whose effect ends the process every
    /// time must not be claimed for ever: such claims count like failures.
    fn after_loss(&self, ctx: Ctx<'_>) -> Phase {
        match ctx.rule.schedule.wait_before_jitter(self.attempts) {
            Some(_) => Phase::Pending { due: ctx.now },
            None => Phase::Dead { at: ctx.now },
        }
    }

    fn step(&self, phase: Phase) -> Step {
        let next = Self { version: self.version.wrapping_add(1), phase, ..self.clone() };
        Step { expected: self.version, next }
    }
}
