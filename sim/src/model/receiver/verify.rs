//! Whether a request is what it says.

use hookproof_core::time::Millis;

use crate::model::hosts::Process;
use crate::model::network::{Body, Request, Signature};
use crate::model::world::World;
use crate::zoo::ReceiverMutant;

/// How far a timestamp may be from the receiver's clock, on either side, in seconds.
const TOLERANCE: i64 = 300;

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    Malformed,
    Signature,
    Timestamp,
}

impl World<'_> {
    /// By an independent verifier, who makes no mistakes.
    pub(super) fn is_valid(&self, process: Process, request: &Request) -> bool {
        self.holding_signature(request).is_some() && self.age(process, request).abs() <= TOLERANCE
    }

    /// The first signature that holds, and its place.
    pub(super) fn holding_signature(&self, request: &Request) -> Option<usize> {
        let key = self.endpoints[usize::try_from(request.source.0).unwrap_or(0)].receiver_key;
        let holds = |signature: &Option<Signature>| {
            signature.is_some_and(|signature| {
                signature.key == key
                    && signature.event == request.event
                    && signature.body == request.body
                    && signature.timestamp == request.timestamp
            })
        };
        request.signatures.iter().position(holds)
    }

    /// How old a request is, in seconds, by the receiver's clock.
    fn age(&self, process: Process, request: &Request) -> i64 {
        self.wall(process).as_secs() - request.timestamp
    }

    /// As this receiver verifies.
    pub(super) fn verify(&self, process: Process, request: &Request) -> Result<(), Refusal> {
        if request.is_malformed {
            return Err(Refusal::Malformed);
        }
        if !self.accepts_signature(request) {
            return Err(Refusal::Signature);
        }
        let age = self.age(process, request);
        let is_recent = match self.is_receiver(ReceiverMutant::OneSidedTolerance) {
            true => age >= -TOLERANCE,
            false => age.abs() <= TOLERANCE,
        };
        if is_recent { Ok(()) } else { Err(Refusal::Timestamp) }
    }

    fn accepts_signature(&self, request: &Request) -> bool {
        let mut seen = *request;
        match self.wrong.receiver {
            Some(ReceiverMutant::FirstSignatureOnly) => seen.signatures[1] = None,
            Some(ReceiverMutant::VerifiesReserialised) => {
                seen.body = Body::of(seen.body.publish).reencoded();
            }
            Some(ReceiverMutant::TimestampNotSigned) => {
                if let Some(signature) = seen.signatures[0] {
                    seen.timestamp = signature.timestamp;
                }
            }
            _ => {}
        }
        self.holding_signature(&seen).is_some()
    }
}

/// How long a receiver keeps what it knows of duplicates: longer than any sender retries.
pub(super) fn horizon(wrong: Option<ReceiverMutant>) -> Option<Millis> {
    match wrong {
        Some(ReceiverMutant::DedupExpires) => Some(Millis::from_secs(10)),
        Some(ReceiverMutant::DedupForTolerance) => {
            Some(Millis::from_secs(TOLERANCE.unsigned_abs()))
        }
        _ => None,
    }
}
