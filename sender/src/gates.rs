//! The gates of the endpoints, in memory. They are the truth while the process runs; what is stored
//! of them is for the next one.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hookproof_core::gate::{Gate, StoredGate};
use hookproof_core::id::EndpointId;
use hookproof_core::time::Timestamp;

/// The gate of each endpoint that something was due for.
#[derive(Default)]
pub(crate) struct Gates(Mutex<BTreeMap<EndpointId, Gate>>);

impl Gates {
    /// Does something with an endpoint's gate, which is as it was `stored` unless it is known.
    pub(crate) fn with<T>(
        &self,
        endpoint: &EndpointId,
        stored: impl FnOnce() -> StoredGate,
        work: impl FnOnce(&mut Gate) -> T,
    ) -> T {
        let mut gates = self.lock();
        work(gates.entry(endpoint.clone()).or_insert_with(|| Gate::restored(stored())))
    }

    /// Does something with the gate of an endpoint that a permit was asked for, and so is known.
    pub(crate) fn known<T>(&self, endpoint: &EndpointId, work: impl FnOnce(&mut Gate) -> T) -> T {
        self.with(endpoint, StoredGate::default, work)
    }

    /// The gate as it is to be stored now.
    pub(crate) fn stored(&self, endpoint: &EndpointId) -> StoredGate {
        self.known(endpoint, |gate| gate.stored())
    }

    /// How many attempts to an endpoint are under way.
    pub(crate) fn in_flight(&self, endpoint: &EndpointId, now: Timestamp) -> usize {
        self.lock().get(endpoint).map_or(0, |gate| gate.in_flight(now))
    }

    /// A panic elsewhere cannot leave a gate half-changed: each change is one call.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<EndpointId, Gate>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
