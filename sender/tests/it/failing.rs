//! A store that fails the calls it is told to, and counts all of them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

use hookproof_core::delivery::{Committed, Delivery, Rejected, Step};
use hookproof_core::endpoint::{Endpoint, EndpointStatus};
use hookproof_core::event::Event;
use hookproof_core::gate::StoredGate;
use hookproof_core::id::{DeliveryId, EndpointId, EventId};
use hookproof_core::outcome::Outcome;
use hookproof_core::time::Timestamp;
use hookproof_runtime::database::StoreError;
use hookproof_sender::sqlite::SqliteStore;
use hookproof_sender::store::{
    Aged, Beside, Claimed, DeliveryFilter, DueEndpoint, History, ListedDelivery, PendingNotice,
    Publication, Published, Store, Totals,
};

use crate::running::eventually;

/// Calls go by the names of the methods, but for commits: `record N` is what came of attempt N,
/// `settle` is a claim that is over, and `commit` is any other.
#[derive(Clone)]
pub(crate) struct FailingStore {
    inner: SqliteStore,
    calls: Arc<Mutex<Calls>>,
}

#[derive(Default)]
struct Calls {
    failing: BTreeMap<String, RangeInclusive<usize>>,
    counts: BTreeMap<String, usize>,
    looked_at: Option<Timestamp>,
}

impl FailingStore {
    /// Fails nothing.
    pub(crate) fn new(inner: SqliteStore) -> Self {
        Self { inner, calls: Arc::default() }
    }

    /// Fails the calls of one name with these numbers, counted from 1.
    pub(crate) fn failing(self, name: &str, nths: RangeInclusive<usize>) -> Self {
        self.with(|calls| calls.failing.insert(name.to_owned(), nths));
        self
    }

    /// How many calls of one name there were.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.with(|calls| calls.counts.get(name).copied().unwrap_or(0))
    }

    pub(crate) async fn called(&self, name: &str, count: usize) {
        let what = format!("{count} calls of {name}");
        eventually(&what, || async { (self.count(name) >= count).then_some(()) }).await;
    }

    /// Waits until the dispatcher has looked at what is due at that time or later.
    pub(crate) async fn looked(&self, at: Timestamp) {
        eventually("the dispatcher looks", || async {
            self.with(|calls| calls.looked_at.filter(|looked| *looked >= at)).map(drop)
        })
        .await;
    }

    fn with<T>(&self, work: impl FnOnce(&mut Calls) -> T) -> T {
        work(&mut self.calls.lock().expect("no test panics in here"))
    }

    fn call(&self, name: &str) -> Result<(), StoreError> {
        self.with(|calls| {
            let count = calls.counts.entry(name.to_owned()).or_default();
            *count += 1;
            match calls.failing.get(name) {
                Some(nths) if nths.contains(count) => {
                    Err(StoreError::NotCommitted(format!("call {count} of {name} is to fail")))
                }
                _ => Ok(()),
            }
        })
    }
}

fn name_of(step: &Step) -> String {
    match step.record() {
        Some(record) if record.outcome == Outcome::Unknown => "settle".to_owned(),
        Some(record) => format!("record {}", record.attempt),
        None => "commit".to_owned(),
    }
}

impl Store for FailingStore {
    async fn create_endpoint(&self, endpoint: Endpoint) -> Result<(), StoreError> {
        self.call("create_endpoint")?;
        self.inner.create_endpoint(endpoint).await
    }

    async fn endpoints(&self) -> Result<Vec<Endpoint>, StoreError> {
        self.call("endpoints")?;
        self.inner.endpoints().await
    }

    async fn gate(&self, id: EndpointId) -> Result<Option<StoredGate>, StoreError> {
        self.call("gate")?;
        self.inner.gate(id).await
    }

    async fn set_endpoint_status(
        &self,
        id: EndpointId,
        status: EndpointStatus,
        gate: Option<StoredGate>,
    ) -> Result<bool, StoreError> {
        self.call("set_endpoint_status")?;
        self.inner.set_endpoint_status(id, status, gate).await
    }

    async fn publish(&self, publication: Publication) -> Result<Published, StoreError> {
        self.call("publish")?;
        self.inner.publish(publication).await
    }

    async fn event(&self, id: EventId) -> Result<Option<Event>, StoreError> {
        self.call("event")?;
        self.inner.event(id).await
    }

    async fn due_endpoints(&self, now: Timestamp) -> Result<Vec<DueEndpoint>, StoreError> {
        self.call("due_endpoints")?;
        self.with(|calls| calls.looked_at = Some(now));
        self.inner.due_endpoints(now).await
    }

    async fn due_deliveries(
        &self,
        endpoint: EndpointId,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<Delivery>, StoreError> {
        self.call("due_deliveries")?;
        self.inner.due_deliveries(endpoint, now, limit).await
    }

    async fn aged_deliveries(
        &self,
        endpoint: EndpointId,
        before: Timestamp,
        limit: u32,
    ) -> Result<Aged, StoreError> {
        self.call("aged_deliveries")?;
        self.inner.aged_deliveries(endpoint, before, limit).await
    }

    async fn commit_each(
        &self,
        steps: Vec<Step>,
    ) -> Result<Vec<Result<Committed, Rejected>>, StoreError> {
        self.call("commit_each")?;
        self.inner.commit_each(steps).await
    }

    async fn claim(
        &self,
        steps: Vec<Step>,
        gates: Vec<(EndpointId, StoredGate)>,
    ) -> Result<Vec<Result<Claimed, Rejected>>, StoreError> {
        self.call("claim")?;
        self.inner.claim(steps, gates).await
    }

    async fn commit(
        &self,
        step: Step,
        beside: Beside,
    ) -> Result<Result<Committed, Rejected>, StoreError> {
        self.call(&name_of(&step))?;
        self.inner.commit(step, beside).await
    }

    async fn leased(&self, until: Timestamp, limit: u32) -> Result<Vec<Delivery>, StoreError> {
        self.call("leased")?;
        self.inner.leased(until, limit).await
    }

    async fn next_lease_end(&self) -> Result<Option<Timestamp>, StoreError> {
        self.call("next_lease_end")?;
        self.inner.next_lease_end().await
    }

    async fn delivery(&self, id: DeliveryId) -> Result<Option<ListedDelivery>, StoreError> {
        self.call("delivery")?;
        self.inner.delivery(id).await
    }

    async fn deliveries(&self, filter: DeliveryFilter) -> Result<Vec<ListedDelivery>, StoreError> {
        self.call("deliveries")?;
        self.inner.deliveries(filter).await
    }

    async fn history(&self, id: DeliveryId) -> Result<Option<History>, StoreError> {
        self.call("history")?;
        self.inner.history(id).await
    }

    async fn totals(&self) -> Result<Totals, StoreError> {
        self.call("totals")?;
        self.inner.totals().await
    }

    async fn pending_notices(&self, limit: u32) -> Result<Vec<PendingNotice>, StoreError> {
        self.call("pending_notices")?;
        self.inner.pending_notices(limit).await
    }

    async fn notice_sent(&self, id: i64, now: Timestamp) -> Result<(), StoreError> {
        self.call("notice_sent")?;
        self.inner.notice_sent(id, now).await
    }
}
