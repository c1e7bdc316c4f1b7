//! For benchmarks: what is taken to have been seen, where no store is looked into.

use hookproof_core::delivery::Delivery;

use super::{Moment, Witness};
use crate::fact::{Fact, Life};

impl Witness {
    /// An event was wanted, stored with its delivery and received; and the delivery was claimed.
    pub(in crate::wire) fn assumes(&mut self, first: &Delivery, claimed: &Delivery, body: &[u8]) {
        let now = first.created_at;
        let at = Moment { now, local: now, wall: now, life: Life { process: 0, number: 1 } };
        let (event, endpoint) = (first.event_id.as_str(), first.endpoint_id.as_str());
        let endpoint = self.names.endpoint_at(endpoint, "http://receiver.sim/hooks/shop");
        self.tell(now, &Fact::Registered { endpoint, is_sound: true });
        self.wants(now, event, body);
        self.stored(&at, event, event, body);
        self.written(&at, first, None, false);
        self.written(&at, claimed, None, false);
        self.sender.assumes(claimed);
        let event = self.names.event(event);
        self.tell(now, &Fact::Recorded { source: endpoint, event });
    }
}
