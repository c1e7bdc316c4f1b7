//! The attempts that this process has under way.
//!
//! A lease is for the process that comes after one that is gone. While a process lives it knows which
//! attempts are its own, and needs no clock to tell whether they are over.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hookproof_core::delivery::Delivery;
use hookproof_core::id::DeliveryId;

/// What an attempt is known by: its delivery, and its number there.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Number {
    delivery: DeliveryId,
    attempt: u32,
}

impl Number {
    /// The last attempt of a delivery.
    pub(crate) fn of(delivery: &Delivery) -> Self {
        Self { delivery: delivery.id.clone(), attempt: delivery.attempts }
    }
}

/// The attempts under way.
#[derive(Clone, Default)]
pub(crate) struct UnderWay(Arc<Mutex<BTreeSet<Number>>>);

/// That an attempt is under way, until this is dropped.
pub(crate) struct Entry {
    all: UnderWay,
    number: Number,
}

impl UnderWay {
    /// An attempt begins.
    pub(crate) fn enter(&self, claimed: &Delivery) -> Entry {
        let number = Number::of(claimed);
        self.lock().insert(number.clone());
        Entry { all: self.clone(), number }
    }

    /// Which they are.
    pub(crate) fn numbers(&self) -> BTreeSet<Number> {
        self.lock().clone()
    }

    /// A panic elsewhere cannot leave it half-changed: each change is one call.
    fn lock(&self) -> MutexGuard<'_, BTreeSet<Number>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.all.lock().remove(&self.number);
    }
}
