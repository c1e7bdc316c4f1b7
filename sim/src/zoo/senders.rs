//! Wrong senders: wrappers around the store that break one transaction.

use hookproof_core::delivery::{AttemptRecord, Committed, Ctx, Delivery, Input, Rejected, Step};
use hookproof_core::endpoint::{Endpoint, EndpointStatus};
use hookproof_core::event::Event;
use hookproof_core::gate::StoredGate;
use hookproof_core::id::{DeliveryId, EndpointId, EventId};
use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::policy::Policy;
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::database::StoreError;
use hookproof_runtime::host::Host;
use hookproof_sender::sqlite::SqliteStore;
use hookproof_sender::store::{
    Aged, Beside, Claimed, DeliveryFilter, DueEndpoint, History, ListedDelivery, PendingNotice,
    Publication, Published, Store, Totals,
};

use super::SenderMutant;

/// A store with one wrong transaction.
#[derive(Clone)]
pub(crate) struct WrongStore<H> {
    inner: SqliteStore,
    host: H,
    mutant: SenderMutant,
}

impl<H: Host> WrongStore<H> {
    pub(crate) fn new(inner: SqliteStore, host: H, mutant: SenderMutant) -> Self {
        Self { inner, host, mutant }
    }

    /// S04: what is sent from the second attempt on is, by its id, another event.
    fn with_new_id(&self, mut claimed: Claimed) -> Claimed {
        if claimed.delivery.attempts > 1 {
            claimed.event.id = EventId::from_entropy([self.host.entropy(), self.host.entropy()]);
        }
        claimed
    }

    /// S14: the attempts begin now, the claims are written when the store gets round to it.
    async fn claim_later(
        &self,
        steps: Vec<Step>,
        gates: Vec<(EndpointId, StoredGate)>,
    ) -> Result<Vec<Result<Claimed, Rejected>>, StoreError> {
        let endpoints = self.inner.endpoints().await?;
        let mut claims = Vec::new();
        for step in &steps {
            let delivery = step.next().clone();
            let event = self.inner.event(delivery.event_id.clone()).await?;
            let endpoint = endpoints.iter().find(|e| e.id == delivery.endpoint_id).cloned();
            let (Some(event), Some(endpoint)) = (event, endpoint) else {
                return Err(StoreError::Corrupt("a delivery without its event".to_owned()));
            };
            claims.push(Ok(Claimed { delivery, event, endpoint }));
        }
        let (inner, host) = (self.inner.clone(), self.host.clone());
        self.host.spawn(async move {
            host.sleep(Millis::new(100)).await;
            // Whether it worked, nobody will know.
            let _ = inner.claim(steps, gates).await;
        });
        Ok(claims)
    }

    /// S08: the step as it would be if the timeout had been a 200.
    async fn as_success(&self, step: Step) -> Result<Step, StoreError> {
        let timeout = Outcome::Failed { failure: Failure::Timeout };
        let record = match step.record() {
            Some(record) if record.outcome == timeout => *record,
            _ => return Ok(step),
        };
        let AttemptRecord { attempt, finished_at: now, .. } = record;
        let listed = self.inner.delivery(step.next().id.clone()).await?;
        let policy = Policy::default();
        let ctx = Ctx { now, entropy: 0, policy: &policy };
        let outcome = Outcome::Answered { status: 200, retry_after: None };
        let better =
            listed.and_then(|l| l.delivery.handle(ctx, Input::Finished { attempt, outcome }).ok());
        Ok(better.unwrap_or(step))
    }
}

impl<H: Host> Store for WrongStore<H> {
    async fn create_endpoint(&self, endpoint: Endpoint) -> Result<(), StoreError> {
        self.inner.create_endpoint(endpoint).await
    }

    async fn endpoints(&self) -> Result<Vec<Endpoint>, StoreError> {
        self.inner.endpoints().await
    }

    async fn gate(&self, id: EndpointId) -> Result<Option<StoredGate>, StoreError> {
        self.inner.gate(id).await
    }

    async fn set_endpoint_status(
        &self,
        id: EndpointId,
        status: EndpointStatus,
        gate: Option<StoredGate>,
    ) -> Result<bool, StoreError> {
        self.inner.set_endpoint_status(id, status, gate).await
    }

    async fn publish(&self, publication: Publication) -> Result<Published, StoreError> {
        if self.mutant != SenderMutant::AckBeforeCommit {
            return self.inner.publish(publication).await;
        }
        let event_id = publication.event.id.clone();
        let inner = self.inner.clone();
        self.host.spawn(async move {
            // Whether it worked, nobody will know.
            let _ = inner.publish(publication).await;
        });
        Ok(Published::New { event_id, deliveries: 0 })
    }

    async fn event(&self, id: EventId) -> Result<Option<Event>, StoreError> {
        self.inner.event(id).await
    }

    async fn due_endpoints(&self, now: Timestamp) -> Result<Vec<DueEndpoint>, StoreError> {
        self.inner.due_endpoints(now).await
    }

    async fn due_deliveries(
        &self,
        endpoint: EndpointId,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<Delivery>, StoreError> {
        self.inner.due_deliveries(endpoint, now, limit).await
    }

    async fn aged_deliveries(
        &self,
        endpoint: EndpointId,
        before: Timestamp,
        limit: u32,
    ) -> Result<Aged, StoreError> {
        self.inner.aged_deliveries(endpoint, before, limit).await
    }

    async fn claim(
        &self,
        steps: Vec<Step>,
        gates: Vec<(EndpointId, StoredGate)>,
    ) -> Result<Vec<Result<Claimed, Rejected>>, StoreError> {
        match self.mutant {
            SenderMutant::SendBeforeClaim => self.claim_later(steps, gates).await,
            SenderMutant::NewIdOnRetry => {
                let claims = self.inner.claim(steps, gates).await?;
                Ok(claims.into_iter().map(|claim| claim.map(|c| self.with_new_id(c))).collect())
            }
            _ => self.inner.claim(steps, gates).await,
        }
    }

    async fn commit(
        &self,
        step: Step,
        beside: Beside,
    ) -> Result<Result<Committed, Rejected>, StoreError> {
        let step = match self.mutant {
            SenderMutant::TimeoutIsSuccess => self.as_success(step).await?,
            _ => step,
        };
        self.inner.commit(step, beside).await
    }

    async fn commit_each(
        &self,
        steps: Vec<Step>,
    ) -> Result<Vec<Result<Committed, Rejected>>, StoreError> {
        self.inner.commit_each(steps).await
    }

    async fn leased(&self, until: Timestamp, limit: u32) -> Result<Vec<Delivery>, StoreError> {
        self.inner.leased(until, limit).await
    }

    async fn next_lease_end(&self) -> Result<Option<Timestamp>, StoreError> {
        self.inner.next_lease_end().await
    }

    async fn delivery(&self, id: DeliveryId) -> Result<Option<ListedDelivery>, StoreError> {
        self.inner.delivery(id).await
    }

    async fn deliveries(&self, filter: DeliveryFilter) -> Result<Vec<ListedDelivery>, StoreError> {
        self.inner.deliveries(filter).await
    }

    async fn history(&self, id: DeliveryId) -> Result<Option<History>, StoreError> {
        self.inner.history(id).await
    }

    async fn totals(&self) -> Result<Totals, StoreError> {
        self.inner.totals().await
    }

    async fn pending_notices(&self, limit: u32) -> Result<Vec<PendingNotice>, StoreError> {
        self.inner.pending_notices(limit).await
    }

    async fn notice_sent(&self, id: i64, now: Timestamp) -> Result<(), StoreError> {
        self.inner.notice_sent(id, now).await
    }
}
