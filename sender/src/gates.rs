//! The gates of the endpoints, in memory. They are the truth while the process runs; what is stored
//! of them is for the next one.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hookproof_core::delivery::{Ctx, Delivery, Rejected, Step};
use hookproof_core::dispatch::{self, Lesson, Wanted};
use hookproof_core::gate::{DeferReason, Gate, GateRule, Permit, StoredGate, Transition};
use hookproof_core::id::EndpointId;
use hookproof_core::time::Timestamp;
use hookproof_runtime::decision::{Asked, Decision};
use hookproof_runtime::host::Host;

use crate::store::DueEndpoint;

/// The gate of each endpoint that something was due for.
pub(crate) struct Gates<H> {
    host: H,
    gates: Mutex<BTreeMap<EndpointId, Gate>>,
}

impl<H: Host> Gates<H> {
    pub(crate) fn new(host: H) -> Self {
        Self { host, gates: Mutex::default() }
    }

    /// How many permits there are to be had, or until when there are none and why.
    pub(crate) fn room(
        &self,
        endpoint: &DueEndpoint,
        rule: &GateRule,
        now: Timestamp,
    ) -> Result<u32, (Timestamp, DeferReason)> {
        self.with(&endpoint.id, &endpoint.gate, |gate, tell| {
            let result = gate.room(rule, now);
            tell(gate, Asked::Room { rule, now, result: &result });
            result
        })
    }

    /// What becomes of a delivery that is due.
    pub(crate) fn want(&self, endpoint: &DueEndpoint, state: &Delivery, ctx: Ctx<'_>) -> Wanted {
        self.with(&endpoint.id, &endpoint.gate, |gate, tell| {
            let result = dispatch::want(gate, state, ctx);
            tell(gate, Asked::Want { state, ctx, result: &result });
            result
        })
    }

    /// The end of a delivery that became too old while it waited, if it did.
    pub(crate) fn expire(
        &self,
        endpoint: &DueEndpoint,
        state: &Delivery,
        ctx: Ctx<'_>,
    ) -> Result<Step, Rejected> {
        self.with(&endpoint.id, &endpoint.gate, |gate, tell| {
            let result = dispatch::expire(gate, state, ctx);
            tell(gate, Asked::Expire { state, ctx, result: &result });
            result
        })
    }

    /// Gives back a permit of an endpoint, by the clock as it is then.
    pub(crate) fn learn(
        &self,
        endpoint: &EndpointId,
        rule: &GateRule,
        permit: Permit,
        lesson: Lesson,
    ) -> Option<Transition> {
        self.with(endpoint, &StoredGate::default(), |gate, tell| {
            let (now, id) = (self.host.now(), permit.id());
            let result = dispatch::learn(gate, rule, now, permit, lesson);
            tell(gate, Asked::Learn { rule, now, permit: id, lesson, result });
            result
        })
    }

    /// Forgets every failure; tells what is to be stored.
    pub(crate) fn reset(&self, endpoint: &EndpointId, stored: &StoredGate) -> StoredGate {
        self.with(endpoint, stored, |gate, tell| {
            gate.reset();
            tell(gate, Asked::Reset);
            gate.stored()
        })
    }

    /// The gate as it is to be stored now, of an endpoint that a permit was asked for.
    pub(crate) fn stored(&self, endpoint: &EndpointId) -> StoredGate {
        self.with(endpoint, &StoredGate::default(), |gate, _| gate.stored())
    }

    /// How many attempts to an endpoint are under way.
    pub(crate) fn in_flight(&self, endpoint: &EndpointId, now: Timestamp) -> usize {
        self.lock().get(endpoint).map_or(0, |gate| gate.in_flight(now))
    }

    /// Does something with an endpoint's gate, which is as it was `stored` unless it is known, and
    /// tells the host of it.
    fn with<T>(
        &self,
        endpoint: &EndpointId,
        stored: &StoredGate,
        work: impl FnOnce(&mut Gate, &dyn Fn(&Gate, Asked<'_>)) -> T,
    ) -> T {
        let tell = |gate: &Gate, asked: Asked<'_>| {
            self.host.decided(&Decision::Gate { endpoint, asked, gate });
        };
        let mut gates = self.lock();
        let gate = gates.entry(endpoint.clone()).or_insert_with(|| {
            let gate = Gate::restored(stored.clone());
            tell(&gate, Asked::Restore(stored));
            gate
        });
        work(gate, &tell)
    }

    /// A panic elsewhere cannot leave a gate half-changed: each change is one call.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<EndpointId, Gate>> {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
