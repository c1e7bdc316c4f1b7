//! The model's stores, holding what the real ones hold: so that their answers can be compared.

use std::collections::BTreeMap;

use hookproof_core::delivery::Delivery;
use hookproof_core::id::{DeliveryId, EndpointId, EventId, SourceId};
use hookproof_core::inbox::Entry;
use hookproof_core::time::Timestamp;

use super::inbox::{EntryRow, Inbox, Key};
use super::network::Body;
use super::store::Store;
use crate::fact::{EndpointNo, EventNo, PublishNo, Route};

/// Both stores, and the numbers by which they know what others know by name.
#[derive(Default)]
pub(crate) struct Replica {
    store: Store,
    rows: BTreeMap<DeliveryId, usize>,
    endpoints: BTreeMap<EndpointId, EndpointNo>,
    inbox: Inbox,
    keys: BTreeMap<(SourceId, EventId), Key>,
}

impl Replica {
    /// A delivery is committed.
    pub(crate) fn keep(&mut self, delivery: &Delivery) {
        if let Some(row) = self.rows.get(&delivery.id) {
            self.store.write(*row, delivery.clone());
            return;
        }
        let endpoint = self.endpoint(&delivery.endpoint_id);
        let event = self.store.new_event_number();
        let row = self.store.add_row(Route { event, endpoint }, delivery.clone());
        self.rows.insert(delivery.id.clone(), row);
    }

    fn endpoint(&mut self, id: &EndpointId) -> EndpointNo {
        let next = EndpointNo(u32::try_from(self.endpoints.len()).unwrap_or(u32::MAX));
        let number = *self.endpoints.entry(id.clone()).or_insert(next);
        if number == next {
            self.store.add_endpoint();
        }
        number
    }

    /// What the model's dispatcher would find due to an endpoint.
    pub(crate) fn due(&self, endpoint: &EndpointId, now: Timestamp, limit: u32) -> Vec<DeliveryId> {
        let Some(endpoint) = self.endpoints.get(endpoint) else { return Vec::new() };
        self.ids(self.store.due_by(*endpoint, now), limit)
    }

    /// Whose lease it would find ended.
    pub(crate) fn leased(&self, until: Timestamp, limit: u32) -> Vec<DeliveryId> {
        self.ids(self.store.leased_until(until), limit)
    }

    fn ids(&self, rows: impl Iterator<Item = usize>, limit: u32) -> Vec<DeliveryId> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        rows.take(limit).map(|row| self.store.rows[row].state.id.clone()).collect()
    }

    /// An entry is committed.
    pub(crate) fn keep_entry(&mut self, entry: &Entry) {
        let name = (entry.source.clone(), entry.event_id.clone());
        if let Some(key) = self.keys.get(&name) {
            self.inbox.write(*key, entry.clone());
            return;
        }
        // Numbered as they come, as the real inbox does: what is due at once comes in that order.
        let number = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        let (source, event) = (EndpointNo(0), EventNo(number));
        let key = (source, u64::from(number));
        let body = Body::of(PublishNo(number));
        let recorded_at = entry.received_at;
        self.inbox.insert(key, EntryRow { source, event, body, entry: entry.clone(), recorded_at });
        self.keys.insert(name, key);
    }

    /// What the model's worker would take.
    pub(crate) fn first_due(&self, now: Timestamp) -> Option<&Entry> {
        let key = self.inbox.first_due(now)?;
        self.inbox.entries.get(&key).map(|row| &row.entry)
    }

    /// Whether an entry is committed like this.
    pub(crate) fn holds(&self, entry: &Entry) -> bool {
        self.inbox.entries.values().any(|row| row.entry == *entry)
    }
}
