//! States worth having been in, as they are seen on the wire and in the stores.

use hookproof_core::delivery::{AttemptRecord, DeadReason, Delivery, Origin, Phase};
use hookproof_core::id::EndpointId;
use hookproof_core::outcome::Outcome;
use hookproof_runtime::crash_point::CrashPoint;

use super::request::RawRequest;
use super::verify::is_signed;
use super::witness::Witness;
use crate::fault::Fault;
use crate::sometimes::Sometimes;

/// What a crash at a point is an instance of.
pub(super) fn by_crash(point: CrashPoint) -> Option<Sometimes> {
    match point {
        CrashPoint::PublishCommitted => Some(Sometimes::CrashedBeforeAck),
        CrashPoint::InboxCommitted => Some(Sometimes::CrashedBeforeAnswer),
        CrashPoint::WorkClaimed => Some(Sometimes::CrashedAtWork),
        _ => None,
    }
}

/// What the answer to an attack is an instance of.
pub(super) fn by_attack(fault: Fault, request: &RawRequest, status: u16) -> Option<Sometimes> {
    let list = request.header("webhook-signature").unwrap_or_default();
    match (fault, status) {
        (Fault::ReplayAttack, 200) => Some(Sometimes::ReplayedRequest),
        (Fault::Forgery, 400..=499) if list.starts_with("v1,") && list.len() > "v1,====".len() => {
            Some(Sometimes::ForgeryRefused)
        }
        (Fault::Forgery, 400..=499) => Some(Sometimes::MalformedRefused),
        _ => None,
    }
}

impl Witness {
    /// A delivery was written, which was in that phase before.
    pub(super) fn reached_by(
        &self,
        before: Option<Phase>,
        state: &Delivery,
        record: Option<&AttemptRecord>,
    ) {
        if record.is_some_and(|record| record.outcome == Outcome::Unknown) {
            self.reached(Sometimes::UnknownOutcome);
        }
        let is_replay = |phase| match phase {
            Phase::Scheduled { origin, .. } | Phase::InFlight { origin, .. } => {
                matches!(origin, Origin::Replay { .. })
            }
            Phase::Delivered { .. } | Phase::Dead { .. } | Phase::Cancelled { .. } => false,
        };
        let was_replayed = before.is_some_and(is_replay);
        match (before, state.phase) {
            (_, Phase::Delivered { .. }) | (None, _) => {}
            _ if was_replayed && record.is_some() => self.reached(Sometimes::ReplayFailed),
            (Some(Phase::InFlight { .. }), Phase::Cancelled { .. }) => {
                self.reached(Sometimes::CancelledInFlight);
            }
            (Some(Phase::Scheduled { .. }), now @ Phase::Scheduled { .. }) if is_replay(now) => {
                self.reached(Sometimes::ReplayedWaiting);
            }
            (Some(Phase::Dead { .. }), now) if is_replay(now) => {
                self.reached(Sometimes::ReplayedDead);
            }
            (_, Phase::Dead { reason, .. }) => self.reached(match reason {
                DeadReason::Exhausted => Sometimes::Exhausted,
                DeadReason::Expired => Sometimes::Expired,
                DeadReason::Refused => Sometimes::Refused,
                DeadReason::Gone => Sometimes::Gone,
            }),
            _ => {}
        }
    }

    /// An endpoint is gone or held, with something waiting for it or not.
    pub(super) fn reached_if_waiting(&self, endpoint: &str, what: Sometimes) {
        let waits = |state: &Delivery| {
            state.endpoint_id.as_str() == endpoint && matches!(state.phase, Phase::Scheduled { .. })
        };
        if self.deliveries().any(waits) {
            self.reached(what);
        }
    }

    /// The breaker of an endpoint has another state.
    pub(super) fn reached_by_breaker(&self, endpoint: &EndpointId, is_open: bool) {
        match (self.gates.is_probing(endpoint), is_open) {
            (Some(false), true) => self.reached(Sometimes::BreakerOpened),
            (Some(true), false) => self.reached(Sometimes::BreakerClosed),
            _ => {}
        }
    }

    /// A request of the sender is on the wire, signed so that it holds.
    pub(super) fn reached_by_signatures(&self, request: &RawRequest, keys: &[Vec<u8>]) {
        let list = request.header("webhook-signature").unwrap_or_default();
        let Some((first, _)) = list.split_once(' ') else { return };
        self.reached(Sometimes::SignedTwice);
        let with_first_only = request.with("webhook-signature", |_| first.to_owned());
        if !keys.iter().any(|key| is_signed(&with_first_only, key)) {
            self.reached(Sometimes::SecondSignatureHeld);
        }
    }
}
