//! The receiver's ordering by entity version: only what is newer applies.
//!
//! At least once delivery does not keep the order: a retried event arrives after its successor. A
//! receiver that keeps, for each entity, the highest version it has applied ends at the highest
//! version, whatever the order of arrival. The decision belongs into the transaction that applies the
//! effect, since only there the stored version is the one that counts.

use serde::{Deserialize, Serialize};

/// What becomes of an event that is older than what is applied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Late {
    /// Nothing: the newer state is complete by itself.
    #[default]
    Ignore,
    /// The entity is fetched again from its source, since the event may hold what no newer one does.
    Reconcile,
}

/// What to do with an event about an entity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Apply it and keep its version.
    Apply,
    /// It is applied already, or out of date: acknowledge it.
    Ignore,
    /// It is out of date: acknowledge it and have the entity fetched again.
    Reconcile,
}

/// Decides about an event of this version, given the highest version that is applied. The same
/// version again is a repetition, and never late.
#[must_use]
pub fn judge(applied: Option<u64>, version: u64, late: Late) -> Decision {
    match applied {
        Some(applied) if version == applied => Decision::Ignore,
        Some(applied) if version < applied => match late {
            Late::Ignore => Decision::Ignore,
            Late::Reconcile => Decision::Reconcile,
        },
        Some(_) | None => Decision::Apply,
    }
}
