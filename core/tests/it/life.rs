//! The life of one delivery as a driver leads it; each step is held to what all steps have in
//! common.

use hookproof_core::classify::Verdict;
use hookproof_core::delivery::{
    AttemptRecord, Committed, Ctx, DeadReason, Delivery, Effect, Input, Notice, Origin, Phase,
    Rejected, Settled, WakeReason,
};
use hookproof_core::outcome::Outcome;
use hookproof_core::policy::Policy;
use hookproof_core::time::Timestamp;
use proptest::prelude::*;

use crate::given::{ADMITTED, at, delivery_in, entropy, outcome, setback};

/// How an attempt ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    With(Outcome),
    LeaseExpired,
    OwnerLost,
}

impl End {
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Self::With(outcome) => outcome,
            Self::LeaseExpired | Self::OwnerLost => Outcome::Unknown,
        }
    }
}

/// Any end of an attempt, and entropy for it.
pub(crate) fn end() -> impl Strategy<Value = (End, u64)> {
    end_with(outcome())
}

/// Any end after which, by default, the schedule goes on, and entropy for it.
pub(crate) fn setback_end() -> impl Strategy<Value = (End, u64)> {
    end_with(setback())
}

fn end_with(outcome: impl Strategy<Value = Outcome>) -> impl Strategy<Value = (End, u64)> {
    let end = prop_oneof![
        6 => outcome.prop_map(End::With),
        1 => Just(End::LeaseExpired),
        1 => Just(End::OwnerLost),
    ];
    (end, entropy())
}

pub(crate) struct Life {
    pub(crate) policy: Policy,
    pub(crate) now: Timestamp,
    pub(crate) delivery: Delivery,
    pub(crate) records: Vec<AttemptRecord>,
    pub(crate) notices: Vec<Notice>,
    /// Steps that disabled the endpoint.
    pub(crate) disabled: usize,
    /// Claims that the schedule asked for.
    pub(crate) scheduled_claims: u32,
}

impl Life {
    /// A delivery that was published just now.
    pub(crate) fn new(policy: Policy) -> Self {
        let now = at(1_000_000);
        let mut delivery = delivery_in(Phase::Scheduled { due: now, origin: Origin::Schedule });
        delivery.created_at = now;
        Self {
            policy,
            now,
            delivery,
            records: Vec::new(),
            notices: Vec::new(),
            disabled: 0,
            scheduled_claims: 0,
        }
    }

    pub(crate) fn is_final(&self) -> bool {
        is_final(self.delivery.phase)
    }

    /// Makes and commits one step.
    pub(crate) fn step(&mut self, input: Input, entropy: u64) -> Result<Committed, Rejected> {
        let ctx = Ctx { now: self.now, entropy, policy: &self.policy };
        let step = self.delivery.handle(ctx, input)?;
        let committed = step.onto(&self.delivery).expect("nothing came between");
        check_step(&self.delivery, ctx, input, &committed);
        let is_by_schedule =
            |phase| matches!(phase, Phase::InFlight { origin: Origin::Schedule, .. });
        if matches!(input, Input::Admitted { .. }) && is_by_schedule(committed.delivery.phase) {
            self.scheduled_claims += 1;
        }
        assert!(committed.delivery.version < 1_000, "it would go on for ever");
        self.delivery = committed.delivery.clone();
        self.records.extend(committed.record);
        self.notices.extend(committed.notice);
        self.disabled += usize::from(committed.disables_endpoint);
        Ok(committed)
    }

    /// Waits until an attempt is due, makes it, and ends it.
    pub(crate) fn attempt(&mut self, (end, entropy): (End, u64)) -> Committed {
        let (due, _) = self.delivery.wake_at().expect("an attempt is due");
        self.now = self.now.max(due);
        self.step(ADMITTED, 0).expect("it is due");
        match end {
            End::With(outcome) => {
                let attempt = self.delivery.attempts;
                self.step(Input::Finished { attempt, outcome }, entropy)
            }
            End::LeaseExpired => {
                let (lease_until, _) = self.delivery.wake_at().expect("a lease ends");
                self.now = self.now.max(lease_until);
                self.step(Input::LeaseExpired, entropy)
            }
            End::OwnerLost => self.step(Input::OwnerLost, entropy),
        }
        .expect("the attempt is under way")
    }

    /// Makes attempts that end like this, over and over, until no more is due.
    pub(crate) fn attempt_until_final(&mut self, end: (End, u64)) {
        while !self.is_final() {
            self.attempt(end);
        }
    }
}

pub(crate) fn is_final(phase: Phase) -> bool {
    match phase {
        Phase::Scheduled { .. } | Phase::InFlight { .. } => false,
        Phase::Delivered { .. } | Phase::Dead { .. } | Phase::Cancelled { .. } => true,
    }
}

/// What holds of each accepted step, from whatever state.
pub(crate) fn check_step(before: &Delivery, ctx: Ctx<'_>, input: Input, step: &Committed) {
    let after = &step.delivery;
    assert_eq!(after.version, before.version.wrapping_add(1), "the version grows by one");
    assert_eq!(
        (&after.id, &after.event_id, &after.endpoint_id, after.created_at),
        (&before.id, &before.event_id, &before.endpoint_id, before.created_at),
        "what is delivered where stays the same"
    );

    let too_old = matches!(after.phase, Phase::Dead { reason: DeadReason::Expired, .. });
    let claims = u32::from(matches!(input, Input::Admitted { .. }) && !too_old);
    let by_schedule = matches!(before.phase, Phase::Scheduled { origin: Origin::Schedule, .. });
    let scheduled_claims = if by_schedule { claims } else { 0 };
    assert_eq!(after.attempts, before.attempts.saturating_add(claims));
    assert_eq!(
        after.scheduled_attempts,
        before.scheduled_attempts.saturating_add(scheduled_claims),
        "only a claim of the schedule counts against its limit"
    );

    match before.phase {
        Phase::InFlight { attempt, started_at, .. } => {
            let record = step.record.expect("an attempt that ends is recorded");
            assert_eq!((record.attempt, record.started_at), (attempt, started_at));
            assert_eq!(record.finished_at, ctx.now);
            assert_eq!(record.verdict, ctx.policy.classification.verdict(&record.outcome));
        }
        _ => assert_eq!(step.record, None, "no attempt ended"),
    }

    let gone = step.record.is_some_and(|record| record.verdict == Verdict::Gone);
    assert_eq!(step.disables_endpoint, gone, "a 410 disables the endpoint, and nothing else does");
    let newly_dead = match after.phase {
        Phase::Dead { reason, .. } if !was_dead(before.phase) => Some(Notice { reason }),
        _ => None,
    };
    assert_eq!(step.notice, newly_dead, "the owner is told of each death once");

    check_effects(ctx, input, step);
}

/// Whether a delivery is dead, but for a replay of it that goes on.
fn was_dead(phase: Phase) -> bool {
    match phase {
        Phase::Scheduled { origin, .. } | Phase::InFlight { origin, .. } => {
            matches!(origin, Origin::Replay { settled: Settled::Dead { .. } })
        }
        Phase::Dead { .. } => true,
        Phase::Delivered { .. } | Phase::Cancelled { .. } => false,
    }
}

fn check_effects(ctx: Ctx<'_>, input: Input, step: &Committed) {
    let mut expected = Vec::new();
    match step.delivery.phase {
        Phase::InFlight { attempt, started_at, lease_until, .. } => {
            assert!(matches!(input, Input::Admitted { .. }), "only a claim leads to a send");
            assert_eq!(attempt, step.delivery.attempts);
            assert_eq!(started_at, ctx.now);
            assert_eq!(lease_until, ctx.now.plus(ctx.policy.lease()));
            expected.push(Effect::Send { attempt });
            expected.push(Effect::WakeAt { at: lease_until, reason: WakeReason::LeaseEnds });
        }
        Phase::Scheduled { due, .. } => {
            expected.push(Effect::WakeAt { at: due, reason: WakeReason::Due });
        }
        Phase::Delivered { .. } | Phase::Dead { .. } | Phase::Cancelled { .. } => {}
    }
    if step.notice.is_some() {
        let expired = step.notice == Some(Notice { reason: DeadReason::Expired });
        assert!(step.record.is_some() || expired, "only an attempt's end kills, or age");
        expected.push(Effect::NoticePending);
    }
    assert_eq!(step.effects, expected, "after {input:?}");
}
