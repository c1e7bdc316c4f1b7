//! What whoever dispatches decides between two machines: the delivery that is due and the gate of its
//! endpoint. The order of the questions is part of the rule, so it stands here, once, and not in each
//! driver.

use crate::classify::{Judgement, Signal, Throttle};
use crate::delivery::{Ctx, Delivery, Input, Phase, Rejected, Step};
use crate::gate::{Admission, DeferReason, Gate, GateRule, Permit, Transition};
use crate::time::{Millis, Timestamp};

/// One place in so many is kept for endpoints that have no attempt under way.
pub const KEPT_PART: u32 = 8;

/// What becomes of a delivery that is due.
#[derive(PartialEq, Eq, Debug)]
#[must_use]
pub enum Wanted {
    /// An attempt is to be claimed, under this permit. Give it back if the claim does not commit.
    Claim(Step, Permit),
    /// It became too old while it waited: there is nothing to send, and no permit was asked for.
    Ends(Step),
    /// It is no longer what it was when it was read.
    Stale(Rejected),
    /// The gate has no permit for it.
    Deferred {
        /// When to ask again.
        until: Timestamp,
        /// What stands in the way.
        why: DeferReason,
    },
}

/// Decides about a delivery that was read as due: first whether there is anything to send, and only
/// then does it ask for a permit, which nothing must be left holding.
pub fn want(gate: &mut Gate, delivery: &Delivery, ctx: Ctx<'_>) -> Wanted {
    let held = held(gate, delivery, ctx.now);
    let step = match delivery.handle(ctx, Input::Admitted { held }) {
        Ok(step) => step,
        Err(rejected) => return Wanted::Stale(rejected),
    };
    if !matches!(step.next().phase, Phase::InFlight { .. }) {
        return Wanted::Ends(step);
    }
    match gate.admit(&ctx.policy.gate, ctx.now, ctx.policy.lease()) {
        Admission::Go(permit) => Wanted::Claim(step, permit),
        Admission::Defer { until, why } => Wanted::Deferred { until, why },
    }
}

/// Ends a delivery that became too old while it waited, whatever its gate says.
///
/// # Errors
///
/// [`Rejected`] if it is young enough, or no longer waits. What the breaker held back is younger than
/// it looks.
pub fn expire(gate: &Gate, delivery: &Delivery, ctx: Ctx<'_>) -> Result<Step, Rejected> {
    delivery.handle(ctx, Input::LifeExpired { held: held(gate, delivery, ctx.now) })
}

/// For how long of the time since it was due the breaker held a delivery back.
#[must_use]
pub fn held(gate: &Gate, delivery: &Delivery, now: Timestamp) -> Millis {
    match delivery.phase {
        Phase::Scheduled { due, .. } => gate.held(due, now),
        _ => Millis::ZERO,
    }
}

/// What a gate learns from the end of a permit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Lesson {
    /// What the outcome says about the endpoint's health.
    pub signal: Signal,
    /// That the endpoint said it has too much to do.
    pub throttle: Option<Throttle>,
}

impl Lesson {
    /// From a claim that was never made.
    pub const NOTHING: Self = Self { signal: Signal::Neither, throttle: None };
}

impl From<Judgement> for Lesson {
    fn from(judgement: Judgement) -> Self {
        Self { signal: judgement.signal, throttle: judgement.throttle }
    }
}

/// Gives a permit back. An endpoint that asked to be left alone is throttled before the permit's
/// place is free.
pub fn learn(
    gate: &mut Gate,
    rule: &GateRule,
    now: Timestamp,
    permit: Permit,
    lesson: Lesson,
) -> Option<Transition> {
    if let Some(throttle) = lesson.throttle {
        gate.throttle(rule, now, throttle);
    }
    gate.record(rule, now, permit, lesson.signal)
}

/// How places are shared at one moment of a pass.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Places {
    /// The most attempts under way in the process.
    pub attempts_max: u32,
    /// Those under way, and those wanted in this pass.
    pub taken: u32,
    /// Endpoints with something due that were not looked at yet, this one included.
    pub to_share: u32,
}

impl Places {
    /// How many attempts one endpoint may begin: an equal part of the places that are left, and some
    /// are kept for endpoints that have none under way. So endpoints that never answer cannot take
    /// them all.
    #[must_use]
    pub fn share(&self, is_served: bool) -> u32 {
        let kept = if is_served { self.attempts_max / KEPT_PART } else { 0 };
        let left = self.attempts_max.saturating_sub(self.taken).saturating_sub(kept);
        (left / self.to_share.max(1)).max(1).min(left)
    }
}
