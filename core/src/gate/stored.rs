//! A gate as it is stored: what must hold over a restart.

use serde::{Deserialize, Serialize};

use super::breaker::{Breaker, StoredBreaker};
use super::limiter::Limiter;

/// A gate as it is stored: its breaker, when attempts began, and how it is throttled. Permits are not
/// in it: they end with the process that holds them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct StoredGate {
    /// The breaker.
    #[serde(flatten)]
    pub breaker: StoredBreaker,
    /// Grows with every change of the gate. Of two snapshots the one with the higher number is the
    /// later, in whatever order they reach the store.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub sequence: u64,
    /// When attempts began, and how the endpoint is throttled.
    #[serde(default, skip_serializing_if = "Limiter::is_empty")]
    pub(super) limiter: Limiter,
}

impl<T: Into<StoredBreaker>> From<T> for StoredGate {
    fn from(breaker: T) -> Self {
        Self { breaker: breaker.into(), ..Self::default() }
    }
}

impl StoredGate {
    /// A snapshot that cannot be read any more, of which only the number is known.
    #[must_use]
    pub fn unreadable(sequence: u64) -> Self {
        Self { sequence, ..Self::default() }
    }

    /// The breaker as a new process finds it: a probe does not outlive the process that made it.
    pub(super) fn without_probe(mut self) -> Self {
        if let Breaker::HalfOpen { probe, .. } = &mut self.breaker.state {
            *probe = None;
        }
        self
    }
}
