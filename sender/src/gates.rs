//! The gates of the endpoints, in memory. They are the truth while the process runs; what is stored
//! of them is for the next one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hookproof_core::delivery::{Ctx, Delivery, Rejected, Step};
use hookproof_core::dispatch::{self, Lesson};
use hookproof_core::gate::{Gate, Permit, StoredGate, Transition};
use hookproof_core::id::EndpointId;
use hookproof_core::policy::Policy;
use hookproof_core::time::Timestamp;
use hookproof_runtime::decision::{Asked, Decision};
use hookproof_runtime::host::Host;

use crate::store::DueEndpoint;

/// The gate of each endpoint that something was due for; cheap to clone.
#[derive(Clone)]
pub(crate) struct Gates<H> {
    host: H,
    policy: Arc<Policy>,
    gates: Arc<Mutex<BTreeMap<EndpointId, Gate>>>,
}

/// A permit that is out. However its holder ends, it comes back: so every gate knows that whatever has
/// one is at work.
pub(crate) struct Held<H: Host> {
    gates: Gates<H>,
    endpoint: EndpointId,
    permit: Option<Permit>,
}

/// What becomes of a delivery that is due: [`dispatch::Wanted`], with the permit in hand.
pub(crate) enum Wanted<H: Host> {
    Claim(Step, Held<H>),
    Ends(Step),
    Stale(Rejected),
    Deferred(Timestamp),
}

impl<H: Host> Gates<H> {
    pub(crate) fn new(host: H, policy: &Policy) -> Self {
        Self { host, policy: Arc::new(policy.clone()), gates: Arc::default() }
    }

    /// How many permits there are to be had now, or until when there are none.
    pub(crate) fn room(&self, endpoint: &DueEndpoint) -> Result<u32, Timestamp> {
        self.with(&endpoint.id, &endpoint.gate, |gate, tell| {
            let (rule, now) = (&self.policy.gate, self.host.now());
            self.renew(gate, now, tell);
            let result = gate.room(rule, now);
            tell(gate, Asked::Room { rule, now, result: &result });
            result.map_err(|(until, _why)| until)
        })
    }

    /// What becomes of a delivery that is due.
    pub(crate) fn want(&self, endpoint: &DueEndpoint, state: &Delivery, ctx: Ctx<'_>) -> Wanted<H> {
        let result = self.with(&endpoint.id, &endpoint.gate, |gate, tell| {
            self.renew(gate, ctx.now, tell);
            let result = dispatch::want(gate, state, ctx);
            tell(gate, Asked::Want { state, ctx, result: &result });
            result
        });
        match result {
            dispatch::Wanted::Claim(step, permit) => {
                let (gates, endpoint) = (self.clone(), endpoint.id.clone());
                Wanted::Claim(step, Held { gates, endpoint, permit: Some(permit) })
            }
            dispatch::Wanted::Ends(step) => Wanted::Ends(step),
            dispatch::Wanted::Stale(rejected) => Wanted::Stale(rejected),
            dispatch::Wanted::Deferred { until, .. } => Wanted::Deferred(until),
        }
    }

    /// An attempt ends within its own limits, by a clock that cannot be set, and gives its permit back
    /// then. Until then it is under way, whatever the clock has been set to.
    fn renew(&self, gate: &mut Gate, now: Timestamp, tell: &dyn Fn(&Gate, Asked<'_>)) {
        let lease = self.policy.lease();
        if gate.renew(now, lease) {
            tell(gate, Asked::Renew { now, lease });
        }
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

    /// Takes back a permit of an endpoint, by the clock as it is now.
    fn learn(&self, endpoint: &EndpointId, permit: Permit, lesson: Lesson) -> Option<Transition> {
        self.with(endpoint, &StoredGate::default(), |gate, tell| {
            let (rule, now, id) = (&self.policy.gate, self.host.now(), permit.id());
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

impl<H: Host> Held<H> {
    /// The endpoint that it is for.
    pub(crate) fn endpoint(&self) -> &EndpointId {
        &self.endpoint
    }

    /// Gives it back, with what is learnt from how it ended.
    pub(crate) fn give_back(mut self, lesson: Lesson) -> Option<Transition> {
        self.gates.learn(&self.endpoint, self.permit.take()?, lesson)
    }
}

impl<H: Host> Drop for Held<H> {
    /// A panic gives it back too. A host that ends drops its tasks otherwise, and has no gates any more.
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(permit) = self.permit.take()
        {
            self.gates.learn(&self.endpoint, permit, Lesson::NOTHING);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use hookproof_core::gate::GateRule;
    use hookproof_core::id::{DeliveryId, EventId};
    use hookproof_runtime::tokio_host::TokioHost;

    use super::*;

    /// A place that is never given back would be lost for good: permits at work do not end.
    #[test]
    fn a_panic_gives_the_permit_back() {
        let gate = GateRule { concurrency_max: 1, ..GateRule::default() };
        let policy = Policy { gate, ..Policy::default() };
        let gates = Gates::new(TokioHost, &policy);
        let (event, id) = (EventId::new("msg_1"), EndpointId::new("ep_1"));
        let (event, id) = (event.expect("an id"), id.expect("an id"));
        let gate = StoredGate::default();
        let endpoint = DueEndpoint { id: id.clone(), gate, is_due: true, next_due: None };
        let now = TokioHost.now();
        let delivery = Delivery::new(DeliveryId::of(&event, &id), event, id, now);
        let ctx = Ctx { now, entropy: 0, policy: &policy };
        let Wanted::Claim(_, held) = gates.want(&endpoint, &delivery, ctx) else {
            panic!("nothing stands in the way");
        };
        assert!(gates.room(&endpoint).is_err(), "there is one place");
        let panicked = catch_unwind(AssertUnwindSafe(move || {
            let _held = held;
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        assert_eq!(gates.room(&endpoint), Ok(1));
    }
}
