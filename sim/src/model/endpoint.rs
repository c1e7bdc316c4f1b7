//! Endpoints as the world knows them: whether they work, and which secrets their receivers have.

use hookproof_core::gate::Gate;
use hookproof_core::time::{Millis, Timestamp};

use super::store::EndpointRow;
use super::world::{Happening, World};
use crate::fact::{EndpointNo, Fact};
use crate::scenario::{Break, Operation};
use crate::sometimes::Sometimes;
use crate::zoo::SenderMutant;

/// One endpoint and the receiver's integration behind it.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    /// How it fails for ever, if it does.
    pub(super) breaks: Option<Break>,
    /// A time in which it cannot be reached.
    pub(super) outage: Option<(Timestamp, Timestamp, Break)>,
    /// The secret that the receiver verifies with.
    pub(super) receiver_key: u32,
    /// The number of the newest secret.
    newest_key: u32,
}

impl Endpoint {
    pub(super) fn new(
        breaks: Option<Break>,
        outage: Option<(Timestamp, Timestamp, Break)>,
    ) -> Self {
        Self { breaks, outage, receiver_key: 0, newest_key: 0 }
    }

    /// How it fails at this moment.
    pub(super) fn fails(&self, now: Timestamp) -> Option<Break> {
        let outage = self.outage.filter(|(from, to, _)| *from <= now && now < *to);
        self.breaks.or(outage.map(|(_, _, fails)| fails))
    }
}

/// How long a rotation takes: the sender signs with both secrets for twice as long.
const ROTATION: Millis = Millis::from_secs(20);

impl World<'_> {
    /// People do what the scenario says, in the first phase.
    pub(super) fn operate(&mut self, operation: Operation) {
        if !self.faults_on {
            return;
        }
        match operation {
            Operation::Disable => self.disable_one(),
            Operation::Delete => self.delete_one(),
            Operation::Replay => self.replay_one(),
            Operation::Cancel => self.cancel_one(),
            Operation::Rotate => self.rotate_one(),
        }
    }

    fn any_endpoint(&mut self) -> u32 {
        let index = self.number(("people", 0), "endpoint", self.endpoints.len());
        u32::try_from(index).unwrap_or(0)
    }

    fn disable_one(&mut self) {
        let endpoint = self.any_endpoint();
        let row = self.store.endpoint_mut(EndpointNo(endpoint));
        if row.is_deleted || !row.is_enabled {
            return;
        }
        row.is_enabled = false;
        self.note_waiting(endpoint, Sometimes::DisabledWaiting);
        self.fact(&Fact::Disabled { endpoint: EndpointNo(endpoint), has_cause: true });
        self.record.line(self.now, "people", || format!("disable endpoint {endpoint}"));
        let seconds = self.choices.between(("people", 0), "disabled for", 5, 60);
        self.happens(self.now.plus(Millis::from_secs(seconds)), Happening::Enables(endpoint));
    }

    /// What was disabled by people is enabled by people, and so is what a gateway's 410 disabled.
    pub(super) fn enable(&mut self, endpoint: u32) {
        let row = self.store.endpoint_mut(EndpointNo(endpoint));
        if row.is_deleted || row.is_enabled {
            return;
        }
        row.is_enabled = true;
        let mut gate = Gate::restored(row.gate.clone());
        gate.reset();
        row.gate = gate.stored();
        for sender in &mut self.senders {
            if let Some(gate) = sender.gates.get_mut(&EndpointNo(endpoint)) {
                gate.reset();
            }
        }
        self.fact(&Fact::Enabled { endpoint: EndpointNo(endpoint) });
        self.record.line(self.now, "people", || format!("enable endpoint {endpoint}"));
        self.poke_all();
    }

    fn delete_one(&mut self) {
        let endpoint = self.any_endpoint();
        if endpoint == 0 || self.store.endpoint(EndpointNo(endpoint)).is_deleted {
            return;
        }
        self.note_waiting(endpoint, Sometimes::DeletedWaiting);
        let row: &mut EndpointRow = self.store.endpoint_mut(EndpointNo(endpoint));
        row.is_deleted = true;
        row.is_enabled = false;
        self.record.line(self.now, "people", || format!("delete endpoint {endpoint}"));
        self.fact(&Fact::Deleted { endpoint: EndpointNo(endpoint) });
        for row in self.store.open_rows(EndpointNo(endpoint)) {
            self.cancel(row);
        }
    }

    fn note_waiting(&mut self, endpoint: u32, what: Sometimes) {
        if !self.store.open_rows(EndpointNo(endpoint)).is_empty() {
            self.sometimes(what);
        }
    }

    /// The sender signs with both secrets, the receiver changes over, the sender drops the old one.
    fn rotate_one(&mut self) {
        let endpoint = self.any_endpoint();
        let is_hard = self.is_sender(SenderMutant::RotationWithoutOverlap);
        let index = usize::try_from(endpoint).unwrap_or(0);
        // One rotation at a time: the old secret of the last must be gone.
        if self.store.endpoint(EndpointNo(endpoint)).keys.len() > 1 {
            return;
        }
        let known = &mut self.endpoints[index];
        known.newest_key += 1;
        let (new, old) = (known.newest_key, known.receiver_key);
        let row = self.store.endpoint_mut(EndpointNo(endpoint));
        row.keys = if is_hard { vec![new] } else { vec![new, old] };
        self.record
            .line(self.now, "people", || format!("rotate the secret of endpoint {endpoint}"));
        self.happens(self.now.plus(ROTATION), Happening::ChangesOver(endpoint));
        self.happens(self.now.plus(ROTATION).plus(ROTATION), Happening::DropsOld(endpoint));
    }

    pub(super) fn change_over(&mut self, endpoint: u32) {
        let known = &mut self.endpoints[usize::try_from(endpoint).unwrap_or(0)];
        known.receiver_key = known.newest_key;
        self.record.line(self.now, "receiver", || {
            format!("changes over to the new secret of endpoint {endpoint}")
        });
    }

    pub(super) fn drop_old_secret(&mut self, endpoint: u32) {
        self.store.endpoint_mut(EndpointNo(endpoint)).keys.truncate(1);
    }
}
