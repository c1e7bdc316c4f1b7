//! One event on its way to one endpoint.
//!
//! ```text
//!              admitted                    2xx
//! Scheduled ───────────────▶ InFlight ─────────────▶ Delivered
//!     ▲                       │  │  │
//!     └───────────────────────┘  │  └─ last, too old, final, gone ─▶ Dead
//!       retry, or owner unknown  │
//!                                └─ cancel ─▶ Cancelled
//! ```
//!
//! `Delivered`, `Dead` and `Cancelled` are final, except through an explicit replay: one extra
//! attempt under the same event id, which leaves the automatic schedule as it is.

mod step;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::classify::Verdict;
use crate::id::{DeliveryId, EndpointId, EventId};
use crate::life::WhileHeld;
use crate::outcome::Outcome;
use crate::policy::Policy;
use crate::schedule::Jitter;
use crate::time::{Millis, Timestamp};
pub use step::{AttemptRecord, Committed, Effect, Notice, Step, WakeReason};

/// The state of one event on its way to one endpoint.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Delivery {
    /// Its identifier.
    pub id: DeliveryId,
    /// The event.
    pub event_id: EventId,
    /// The endpoint.
    pub endpoint_id: EndpointId,
    /// When the publish was accepted.
    pub created_at: Timestamp,
    /// Grows by one with every step.
    pub version: u64,
    /// Attempts begun, replays included.
    pub attempts: u32,
    /// Attempts begun by the schedule, which it counts against its limit.
    pub scheduled_attempts: u32,
    /// The last wait that was drawn, if the next depends on it (decorrelated jitter).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_wait: Option<Millis>,
    /// How long the breaker held attempts back while they were due, if that does not count as age
    /// ([`WhileHeld::Stops`]).
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub held: Millis,
    /// Where it stands.
    pub phase: Phase,
}

/// Where a delivery stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Phase {
    /// It waits for its next attempt.
    Scheduled {
        /// The attempt may not begin sooner.
        due: Timestamp,
        /// What asked for the attempt.
        origin: Origin,
    },
    /// An attempt is under way.
    InFlight {
        /// Its number, from 1.
        attempt: u32,
        /// When it was claimed.
        started_at: Timestamp,
        /// When the claim ends by itself.
        lease_until: Timestamp,
        /// What asked for the attempt.
        origin: Origin,
    },
    /// The receiver took responsibility.
    Delivered {
        /// When.
        at: Timestamp,
    },
    /// No further attempt is made; the event stays available for replay.
    Dead {
        /// When.
        at: Timestamp,
        /// Why.
        reason: DeadReason,
    },
    /// Its owner withdrew it.
    Cancelled {
        /// When.
        at: Timestamp,
    },
}

/// What asked for an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Origin {
    /// The schedule.
    Schedule,
    /// A person; if the replay fails, the delivery is again what it was.
    Replay {
        /// What it was.
        settled: Settled,
    },
}

/// What a delivery was before a replay.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "was", rename_all = "snake_case")]
pub enum Settled {
    /// Waiting for the attempt due then.
    Scheduled {
        /// When it was due.
        due: Timestamp,
    },
    /// [`Phase::Delivered`].
    Delivered {
        /// When.
        at: Timestamp,
    },
    /// [`Phase::Dead`].
    Dead {
        /// When.
        at: Timestamp,
        /// Why.
        reason: DeadReason,
    },
    /// [`Phase::Cancelled`].
    Cancelled {
        /// When.
        at: Timestamp,
    },
}

impl Settled {
    /// The final phase that this was; a delivery that was waiting is cancelled `now`.
    fn unless_waiting(self, now: Timestamp) -> Phase {
        match self {
            Self::Scheduled { .. } => Phase::Cancelled { at: now },
            Self::Delivered { at } => Phase::Delivered { at },
            Self::Dead { at, reason } => Phase::Dead { at, reason },
            Self::Cancelled { at } => Phase::Cancelled { at },
        }
    }
}

/// Why no further attempt is made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadReason {
    /// The last attempt of the schedule failed.
    Exhausted,
    /// The next attempt would begin after the greatest age that the policy allows.
    Expired,
    /// The classification says that no retry can help.
    Refused,
    /// The receiver answered 410: it no longer wants events there.
    Gone,
}

/// What happened to a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Input {
    /// It is due and the gate admits it: an attempt may be claimed.
    Admitted {
        /// For how long of the time since it was due the breaker held it back: what
        /// [`Gate::held`](crate::gate::Gate::held) says.
        held: Millis,
    },
    /// It may have become too old while it waits. This asks no gate: what is too old dies behind an
    /// open breaker, too.
    LifeExpired {
        /// As with [`Input::Admitted`].
        held: Millis,
    },
    /// The attempt ended.
    Finished {
        /// Its number.
        attempt: u32,
        /// What came of it.
        outcome: Outcome,
    },
    /// The claim's time may be over.
    LeaseExpired,
    /// The process that made the claim is known to be gone, whatever is left of its lease.
    OwnerLost,
    /// Its owner withdraws it; during a replay, only the replay of what had been settled before.
    Cancel,
    /// Its owner asks for one extra attempt.
    Replay,
}

/// What a step is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Ctx<'a> {
    /// The time of the step.
    pub now: Timestamp,
    /// 64 random bits, of which the jitter is made.
    pub entropy: u64,
    /// The endpoint's policy.
    pub policy: &'a Policy,
}

/// The input does not fit the state. A durable system expects stale inputs: this is no bug, and
/// nothing changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rejected {
    /// The step was made from a version that is no longer the stored one.
    Stale {
        /// The version that the step was made from.
        expected: u64,
        /// The version that is stored.
        stored: u64,
    },
    /// The attempt is not due before then.
    NotDue(Timestamp),
    /// The claim holds until then.
    LeaseHolds(Timestamp),
    /// It is not too old for its next attempt; a replay never is.
    LifeHolds,
    /// No attempt of that number is under way.
    NotInFlight,
    /// An attempt is under way.
    InFlight,
    /// The delivery is in a final state.
    Settled,
    /// The endpoint takes no attempts: it was disabled since the step was made.
    EndpointDisabled,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { expected, stored } => {
                write!(f, "made from version {expected}, but version {stored} is stored")
            }
            Self::NotDue(due) => write!(f, "not due before {} ms", due.as_millis()),
            Self::LeaseHolds(until) => write!(f, "claimed until {} ms", until.as_millis()),
            Self::LifeHolds => f.write_str("not too old for its next attempt"),
            Self::NotInFlight => f.write_str("that attempt is not under way"),
            Self::InFlight => f.write_str("an attempt is under way"),
            Self::Settled => f.write_str("the delivery is in a final state"),
            Self::EndpointDisabled => f.write_str("the endpoint is disabled"),
        }
    }
}

impl std::error::Error for Rejected {}

impl Delivery {
    /// A delivery as it is written with the publish: its first attempt is due at once.
    #[must_use]
    pub fn new(id: DeliveryId, event_id: EventId, endpoint_id: EndpointId, now: Timestamp) -> Self {
        Self {
            id,
            event_id,
            endpoint_id,
            created_at: now,
            version: 0,
            attempts: 0,
            scheduled_attempts: 0,
            previous_wait: None,
            held: Millis::ZERO,
            phase: Phase::Scheduled { due: now, origin: Origin::Schedule },
        }
    }

    /// When the delivery wants attention, and why; `None` in a final state.
    #[must_use]
    pub fn wake_at(&self) -> Option<(Timestamp, WakeReason)> {
        match self.phase {
            Phase::Scheduled { due, .. } => Some((due, WakeReason::Due)),
            Phase::InFlight { lease_until, .. } => Some((lease_until, WakeReason::LeaseEnds)),
            Phase::Delivered { .. } | Phase::Dead { .. } | Phase::Cancelled { .. } => None,
        }
    }

    /// Decides what `input` makes of this delivery.
    ///
    /// # Errors
    ///
    /// [`Rejected`] if the input does not fit the state.
    pub fn handle(&self, ctx: Ctx<'_>, input: Input) -> Result<Step, Rejected> {
        match (input, self.phase) {
            (Input::Admitted { held }, Phase::Scheduled { due, origin }) => {
                self.claim(ctx, due, origin, held)
            }
            (Input::LifeExpired { held }, Phase::Scheduled { due, origin }) => {
                let held = self.held_until(ctx, due, origin, held);
                self.expire(ctx, due, origin, held).ok_or(Rejected::LifeHolds)
            }
            (Input::Admitted { .. } | Input::LifeExpired { .. }, Phase::InFlight { .. }) => {
                Err(Rejected::InFlight)
            }

            (
                Input::Finished { attempt, outcome },
                Phase::InFlight { attempt: current, started_at, origin, .. },
            ) if attempt == current => Ok(self.finish(ctx, current, started_at, origin, outcome)),
            (Input::Finished { .. }, _) => Err(Rejected::NotInFlight),

            (Input::LeaseExpired, Phase::InFlight { lease_until, .. }) if ctx.now < lease_until => {
                Err(Rejected::LeaseHolds(lease_until))
            }
            (
                Input::LeaseExpired | Input::OwnerLost,
                Phase::InFlight { attempt, started_at, origin, .. },
            ) => Ok(self.finish(ctx, attempt, started_at, origin, Outcome::Unknown)),
            (Input::LeaseExpired | Input::OwnerLost, _) => Err(Rejected::NotInFlight),

            (Input::Cancel, Phase::Scheduled { .. } | Phase::InFlight { .. }) => {
                Ok(self.cancel(ctx))
            }

            (Input::Replay, Phase::InFlight { .. }) => Err(Rejected::InFlight),
            (Input::Replay, _) => Ok(self.replay(ctx)),

            (
                Input::Admitted { .. } | Input::LifeExpired { .. } | Input::Cancel,
                Phase::Delivered { .. } | Phase::Dead { .. } | Phase::Cancelled { .. },
            ) => Err(Rejected::Settled),
        }
    }

    fn claim(
        &self,
        ctx: Ctx<'_>,
        due: Timestamp,
        origin: Origin,
        held: Millis,
    ) -> Result<Step, Rejected> {
        if ctx.now < due {
            return Err(Rejected::NotDue(due));
        }
        let held = self.held_until(ctx, due, origin, held);
        if let Some(expired) = self.expire(ctx, due, origin, held) {
            return Ok(expired);
        }
        let attempt = self.attempts.saturating_add(1);
        let mut step = self.step(Phase::InFlight {
            attempt,
            started_at: ctx.now,
            lease_until: ctx.now.plus(ctx.policy.lease()),
            origin,
        });
        step.next.attempts = attempt;
        step.next.held = held;
        if origin == Origin::Schedule {
            step.next.scheduled_attempts = self.scheduled_attempts.saturating_add(1);
        }
        Ok(step)
    }

    fn finish(
        &self,
        ctx: Ctx<'_>,
        attempt: u32,
        started_at: Timestamp,
        origin: Origin,
        outcome: Outcome,
    ) -> Step {
        let verdict = ctx.policy.classification.verdict(&outcome);
        let (phase, previous_wait) = match origin {
            Origin::Schedule => self.after_scheduled_attempt(ctx, verdict),
            Origin::Replay { settled } => (after_replay(ctx, settled, verdict), self.previous_wait),
        };
        let mut step = self.step(phase);
        step.next.previous_wait = previous_wait;
        step.record =
            Some(AttemptRecord { attempt, started_at, finished_at: ctx.now, outcome, verdict });
        step.notice = notice(origin, phase);
        step.disables_endpoint = verdict == Verdict::Gone;
        step
    }

    /// The phase, and the wait to remember.
    fn after_scheduled_attempt(&self, ctx: Ctx<'_>, verdict: Verdict) -> (Phase, Option<Millis>) {
        let at = ctx.now;
        let dead = |reason| (Phase::Dead { at, reason }, None);
        let floor = match verdict {
            Verdict::Delivered => return (Phase::Delivered { at }, None),
            Verdict::Final => return dead(DeadReason::Refused),
            Verdict::Gone => return dead(DeadReason::Gone),
            Verdict::Retry { floor } => floor,
        };
        let Ctx { policy, entropy, .. } = ctx;
        let Some(draw) = policy.draw(self.scheduled_attempts, self.previous_wait, floor) else {
            return dead(DeadReason::Exhausted);
        };
        let due = at.plus(draw.at(entropy));
        if !self.may_begin(ctx, due, self.held) {
            return dead(DeadReason::Expired);
        }
        let remembers = policy.schedule.jitter == Jitter::Decorrelated;
        // Without the floor: what one receiver asked for once must not raise all later waits.
        let drawn = policy.schedule.draw(self.scheduled_attempts, self.previous_wait);
        let previous_wait = drawn.filter(|_| remembers).map(|drawn| drawn.at(entropy));
        (Phase::Scheduled { due, origin: Origin::Schedule }, previous_wait)
    }

    /// The end of what is too old for the attempt that was `due`. A replay is made at any age.
    fn expire(&self, ctx: Ctx<'_>, due: Timestamp, origin: Origin, held: Millis) -> Option<Step> {
        if origin != Origin::Schedule || self.may_begin(ctx, ctx.now.max(due), held) {
            return None;
        }
        let phase = Phase::Dead { at: ctx.now, reason: DeadReason::Expired };
        let mut step = self.step(phase);
        step.notice = notice(origin, phase);
        Some(step)
    }

    /// How long the breaker has held attempts back by now, `held` of it since one was `due`.
    fn held_until(&self, ctx: Ctx<'_>, due: Timestamp, origin: Origin, held: Millis) -> Millis {
        match (ctx.policy.life.while_held, origin) {
            (WhileHeld::Stops, Origin::Schedule) => self.held.plus(held.min(ctx.now.since(due))),
            _ => self.held,
        }
    }

    /// Whether the delivery is young enough to begin an attempt `at` that time.
    fn may_begin(&self, ctx: Ctx<'_>, at: Timestamp, held: Millis) -> bool {
        ctx.policy.life.allows(at.since(self.created_at).minus(held))
    }

    /// What is withdrawn is the next attempt: of a replay that settled nothing new, only the replay.
    fn cancel(&self, ctx: Ctx<'_>) -> Step {
        let phase = match self.origin() {
            Some(Origin::Replay { settled }) => settled.unless_waiting(ctx.now),
            Some(Origin::Schedule) | None => Phase::Cancelled { at: ctx.now },
        };
        let mut step = self.step(phase);
        if let Phase::InFlight { attempt, started_at, .. } = self.phase {
            // The request may already have been acted on: the history says so.
            step.record = Some(AttemptRecord {
                attempt,
                started_at,
                finished_at: ctx.now,
                outcome: Outcome::Unknown,
                verdict: ctx.policy.classification.verdict(&Outcome::Unknown),
            });
        }
        step
    }

    fn origin(&self) -> Option<Origin> {
        match self.phase {
            Phase::Scheduled { origin, .. } | Phase::InFlight { origin, .. } => Some(origin),
            Phase::Delivered { .. } | Phase::Dead { .. } | Phase::Cancelled { .. } => None,
        }
    }

    fn replay(&self, ctx: Ctx<'_>) -> Step {
        let settled = match self.phase {
            Phase::Scheduled { due, origin: Origin::Schedule } => Settled::Scheduled { due },
            Phase::Scheduled { origin: Origin::Replay { settled }, .. } => settled,
            Phase::Delivered { at } => Settled::Delivered { at },
            Phase::Dead { at, reason } => Settled::Dead { at, reason },
            // `handle` rejects a replay while an attempt is under way.
            Phase::Cancelled { at } | Phase::InFlight { started_at: at, .. } => {
                Settled::Cancelled { at }
            }
        };
        self.step(Phase::Scheduled { due: ctx.now, origin: Origin::Replay { settled } })
    }

    fn step(&self, phase: Phase) -> Step {
        let next = Self { version: self.version.wrapping_add(1), phase, ..self.clone() };
        Step { expected: self.version, next, record: None, notice: None, disables_endpoint: false }
    }
}

/// A replay is one attempt, whatever comes of it: if its outcome is unknown the history says so, and
/// whoever wants can ask again.
fn after_replay(ctx: Ctx<'_>, settled: Settled, verdict: Verdict) -> Phase {
    match (verdict, settled) {
        (Verdict::Delivered, Settled::Delivered { at }) => Phase::Delivered { at },
        (Verdict::Delivered, _) => Phase::Delivered { at: ctx.now },
        (Verdict::Gone, Settled::Scheduled { .. }) => {
            Phase::Dead { at: ctx.now, reason: DeadReason::Gone }
        }
        (_, Settled::Scheduled { due }) => Phase::Scheduled { due, origin: Origin::Schedule },
        (_, settled) => settled.unless_waiting(ctx.now),
    }
}

fn notice(origin: Origin, phase: Phase) -> Option<Notice> {
    let was_dead = matches!(origin, Origin::Replay { settled: Settled::Dead { .. } });
    match phase {
        Phase::Dead { reason, .. } if !was_dead => Some(Notice { reason }),
        _ => None,
    }
}
