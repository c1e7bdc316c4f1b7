//! How the receiver's entries end, as its store says.

use hookproof_core::time::Timestamp;

use super::Witness;
use crate::fact::{self, Fact};
use crate::sometimes::Sometimes;
use crate::wire::observer::EntryEnd;

impl Witness {
    /// A service that the receiver calls has had an effect.
    pub(in crate::wire) fn effect_elsewhere(&mut self, now: Timestamp, source: &str, event: &str) {
        self.effects_elsewhere += 1;
        let (source, event) = (self.names.source(source), self.names.event(event));
        self.tell(now, &Fact::Effect { source, event });
    }

    /// An entry of the receiver is final.
    pub(super) fn worked_off(&mut self, now: Timestamp, source: &str, event: &str, end: EntryEnd) {
        let (source_no, event) = (self.names.source(source), self.names.event(event));
        let carried = self.versions.get(&event).cloned();
        let version =
            carried.map(|(entity, version)| (self.names.entity(source, &entity), version));
        let as_told = match end {
            EntryEnd::Applied => fact::EntryEnd::Applied,
            EntryEnd::Superseded => fact::EntryEnd::Superseded { version },
            EntryEnd::Dead => fact::EntryEnd::GivenUp,
        };
        self.tell(now, &Fact::WorkedOff { source: source_no, event, end: as_told });
        match end {
            EntryEnd::Dead => return,
            EntryEnd::Superseded => self.reached(Sometimes::OlderArrivedLate),
            EntryEnd::Applied => {}
        }
        if let Some((entity, version)) = version {
            self.tell(now, &Fact::Seen { entity, version });
        }
    }
}
