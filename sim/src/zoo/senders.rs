//! Wrong senders: wrappers around the store that break one transaction.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use hookproof_core::delivery::{AttemptRecord, Committed, Ctx, Delivery, Input, Rejected, Step};
use hookproof_core::gate::StoredGate;
use hookproof_core::id::{DeliveryId, EndpointId, EventId};
use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::policy::Policy;
use hookproof_core::schedule::Backoff;
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::database::StoreError;
use hookproof_runtime::host::Host;
use hookproof_sender::sqlite::SqliteStore;
use hookproof_sender::store::{Beside, Claimed, Publication, Published, Store};
use rusqlite::Connection;

use super::SenderMutant;

/// A store with one wrong transaction.
#[derive(Clone)]
pub(crate) struct WrongStore<H> {
    inner: SqliteStore,
    host: H,
    mutant: SenderMutant,
    policy: Policy,
    /// The retries that S13 has timers for; a restart begins with none.
    timers: Arc<Mutex<BTreeSet<DeliveryId>>>,
}

/// What a wrong sender does to its file before it starts: S11 forgets how often it has tried, S33 tries
/// again what it had given up. Tells whether anything was changed.
pub(crate) fn before_start(
    mutant: SenderMutant,
    path: &Path,
    now: Timestamp,
) -> rusqlite::Result<bool> {
    let sql = match mutant {
        SenderMutant::AttemptsLostOnRestart => {
            "UPDATE deliveries SET version = version + 1, attempts = 0,
             state = json_set(state, '$.version', version + 1, '$.attempts', 0,
                              '$.scheduled_attempts', 0)
             WHERE phase = 'scheduled' AND attempts > 0 AND ?1 > 0"
        }
        SenderMutant::RestartRearms => {
            "UPDATE deliveries SET version = version + 1, phase = 'scheduled', wake_at = ?1,
             state = json_set(state, '$.version', version + 1, '$.phase',
                json_object('name', 'scheduled', 'due', ?1,
                            'origin', json_object('by', 'schedule')))
             WHERE phase = 'dead'"
        }
        _ => return Ok(false),
    };
    if !path.exists() {
        return Ok(false);
    }
    let connection = Connection::open(path)?;
    Ok(connection.execute(sql, [now.as_millis()])? > 0)
}

impl<H: Host> WrongStore<H> {
    pub(crate) fn new(inner: SqliteStore, host: H, mutant: SenderMutant, policy: &Policy) -> Self {
        Self { inner, host, mutant, policy: policy.clone(), timers: Arc::default() }
    }

    /// S06: what is sent from the second attempt on was taken apart and put together again.
    fn reencoded(mut claimed: Claimed) -> Claimed {
        if claimed.delivery.attempts > 1
            && let Ok(value) = serde_json::from_slice::<serde_json::Value>(&claimed.event.body)
        {
            claimed.event.body = Arc::from(value.to_string().into_bytes());
        }
        claimed
    }

    /// S13: what this process knows of.
    fn with_timer(&self, delivery: &Delivery) -> bool {
        let timers = self.timers.lock().unwrap_or_else(PoisonError::into_inner);
        delivery.attempts == 0 || timers.contains(&delivery.id)
    }

    fn set_timer(&self, delivery: &Delivery) {
        let mut timers = self.timers.lock().unwrap_or_else(PoisonError::into_inner);
        timers.insert(delivery.id.clone());
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

    /// S08, S09, S10: the step as it would be if that had been a 200. S12: as it would be if the
    /// schedule ended an attempt sooner.
    async fn bent(&self, step: Step) -> Result<Step, StoreError> {
        let Some(AttemptRecord { attempt, finished_at: now, outcome, .. }) = step.record().copied()
        else {
            return Ok(step);
        };
        let mut policy = self.policy.clone();
        let is_taken_for_success = match self.mutant {
            SenderMutant::TimeoutIsSuccess => {
                outcome == Outcome::Failed { failure: Failure::Timeout }
            }
            SenderMutant::RedirectIsSuccess => {
                matches!(outcome, Outcome::Answered { status: 300..=399, .. })
            }
            SenderMutant::GoneIsSuccess => {
                matches!(outcome, Outcome::Answered { status: 404 | 410, .. })
            }
            _ => false,
        };
        let outcome = match self.mutant {
            _ if is_taken_for_success => Outcome::Answered { status: 200, retry_after: None },
            SenderMutant::OneTooFew if outcome != Outcome::Unknown => {
                if let Backoff::Exponential { attempts_max, .. } = &mut policy.schedule.backoff {
                    *attempts_max -= 1;
                }
                outcome
            }
            _ => return Ok(step),
        };
        let listed = self.inner.delivery(step.next().id.clone()).await?;
        let ctx = Ctx { now, entropy: self.host.entropy(), policy: &policy };
        let bent =
            listed.and_then(|l| l.delivery.handle(ctx, Input::Finished { attempt, outcome }).ok());
        Ok(bent.unwrap_or(step))
    }
}

impl<H: Host> Store for WrongStore<H> {
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

    async fn due_deliveries(
        &self,
        endpoint: EndpointId,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<Delivery>, StoreError> {
        let mut due = self.inner.due_deliveries(endpoint, now, limit).await?;
        if self.mutant == SenderMutant::TimersInMemory {
            due.retain(|delivery| self.with_timer(delivery));
        }
        Ok(due)
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
            SenderMutant::ReencodedBody => {
                let claims = self.inner.claim(steps, gates).await?;
                Ok(claims.into_iter().map(|claim| claim.map(Self::reencoded)).collect())
            }
            _ => self.inner.claim(steps, gates).await,
        }
    }

    async fn commit(
        &self,
        step: Step,
        beside: Beside,
    ) -> Result<Result<Committed, Rejected>, StoreError> {
        let step = self.bent(step).await?;
        if step.record().is_some_and(|record| record.outcome != Outcome::Unknown) {
            self.set_timer(step.next());
        }
        self.inner.commit(step, beside).await
    }

    async fn leased(&self, until: Timestamp, limit: u32) -> Result<Vec<Delivery>, StoreError> {
        if self.mutant == SenderMutant::InFlightIgnored {
            return Ok(Vec::new());
        }
        self.inner.leased(until, limit).await
    }

    async fn next_lease_end(&self) -> Result<Option<Timestamp>, StoreError> {
        if self.mutant == SenderMutant::InFlightIgnored {
            return Ok(None);
        }
        self.inner.next_lease_end().await
    }

    hookproof_sender::pass_on! { |this, _method| this.inner =>
        create_endpoint, endpoints, gate, set_endpoint_status, set_secrets, delete_endpoint, orphans, event,
        due_endpoints, aged_deliveries, commit_each, delivery, deliveries, history, totals,
        pending_notices, notice_sent
    }
}
