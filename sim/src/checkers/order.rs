//! I11: entities end at their highest version.

use std::collections::BTreeMap;

use hookproof_core::time::Timestamp;

use super::{Checker, Invariant, Look, NOTHING, RIGHT};
use crate::fact::{End, Fact};

/// I11.
#[derive(Default)]
pub(super) struct Order {
    has: BTreeMap<u32, u64>,
    seen: BTreeMap<u32, u64>,
}

impl Checker for Order {
    fn invariant(&self) -> Invariant {
        Invariant::Order
    }

    fn see(&mut self, _now: Timestamp, fact: &Fact<'_>) -> Look {
        match fact {
            Fact::Entity { entity, version } => match self.has.insert(*entity, *version) {
                Some(before) if before > *version => Err(format!(
                    "entity {entity} was at version {before} and went back to {version}"
                )),
                _ => RIGHT,
            },
            Fact::Seen { entity, version } => {
                let highest = self.seen.entry(*entity).or_insert(0);
                *highest = (*highest).max(*version);
                NOTHING
            }
            _ => NOTHING,
        }
    }

    fn end(&mut self, end: &End) -> Look {
        if !end.is_drained {
            return NOTHING;
        }
        let mut looked = 0;
        for (entity, highest) in &self.seen {
            if self.has.get(entity) != Some(highest) {
                let has = self.has.get(entity);
                return Err(format!(
                    "entity {entity} ends at {has:?}, and {highest} was worked off"
                ));
            }
            looked += 1;
        }
        Ok(looked)
    }
}
