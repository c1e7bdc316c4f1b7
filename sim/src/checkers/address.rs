//! I12: where connections go.

use hookproof_core::time::Timestamp;

use super::{Checker, Invariant, Look, NOTHING, RIGHT};
use crate::fact::Fact;

/// I12.
pub(super) struct Address;

impl Checker for Address {
    fn invariant(&self) -> Invariant {
        Invariant::Address
    }

    fn see(&mut self, _now: Timestamp, fact: &Fact<'_>) -> Look {
        match fact {
            Fact::Dialled { route, is_denied: true } => {
                Err(format!("{route}: a connection went to an address that is denied"))
            }
            Fact::Dialled { .. } => RIGHT,
            _ => NOTHING,
        }
    }
}
