//! Who owns an endpoint: a lease with an epoch that grows with each owner, so that what a former
//! owner writes is known and refused.

use crate::fact::EndpointNo;
use crate::model::hosts::Process;
use crate::model::world::World;
use crate::sometimes::Sometimes;
use crate::zoo::SenderMutant;

impl World<'_> {
    /// Renews what this process owns, and takes what nobody owns any more.
    pub(super) fn claim_shards(&mut self, process: Process) {
        let (_, number) = process.who();
        let me = (number, self.hosts.get(process).life);
        let count = self.senders.len();
        for endpoint in self.store.endpoint_numbers() {
            let until = self.now.plus(self.scenario.shard_lease);
            let now = self.now;
            let shard = &mut self.store.endpoint_mut(endpoint).shard;
            if shard.owner == Some(me) && shard.until > now {
                if count > 1 {
                    shard.until = until;
                }
                continue;
            }
            if shard.owner.is_some() && shard.until > now {
                continue;
            }
            let had_owner = shard.owner.is_some_and(|(owner, _)| owner != number);
            shard.owner = Some(me);
            shard.until = if count > 1 { until } else { crate::model::FOREVER };
            shard.epoch += 1;
            // Its gate is restored from what is stored.
            self.sender(process).gates.remove(&endpoint);
            if had_owner {
                self.sometimes(Sometimes::ShardTakenOver);
            }
        }
    }

    /// Whether this process may make attempts to an endpoint.
    pub(super) fn owns(&self, process: Process, endpoint: EndpointNo) -> bool {
        if self.is_sender(SenderMutant::ClaimInAutocommit) {
            return true;
        }
        let (_, number) = process.who();
        let shard = self.store.endpoint(endpoint).shard;
        shard.owner == Some((number, self.hosts.get(process).life)) && shard.until > self.now
    }

    /// Whether a write in this epoch is still the owner's.
    pub(super) fn is_fenced_off(&mut self, endpoint: EndpointNo, epoch: u64) -> bool {
        let is_former = self.store.endpoint(endpoint).shard.epoch != epoch;
        if is_former {
            self.sometimes(Sometimes::FencedOff);
        }
        is_former && !self.is_sender(SenderMutant::NoFencing)
    }
}
