//! Wrong senders: wrappers around the store that break one transaction.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hookproof_core::classify::Verdict;
use hookproof_core::delivery::{
    AttemptRecord, Committed, Ctx, Delivery, Input, Origin, Phase, Rejected, Step,
};
use hookproof_core::endpoint::EndpointStatus;
use hookproof_core::gate::StoredGate;
use hookproof_core::id::{DeliveryId, EndpointId, EventId};
use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::policy::Policy;
use hookproof_core::schedule::Backoff;
use hookproof_core::secret::Secrets;
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::database::StoreError;
use hookproof_runtime::host::Host;
use hookproof_sender::sqlite::SqliteStore;
use hookproof_sender::store::{
    Beside, Claimed, DeliveryFilter, ListedDelivery, Publication, Published, Store,
};
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use super::SenderMutant;

/// How long S03's queue is.
const QUEUED: Millis = Millis::new(500);

/// A store with one wrong transaction.
#[derive(Clone)]
pub(crate) struct WrongStore<H> {
    inner: SqliteStore,
    host: H,
    mutant: SenderMutant,
    policy: Policy,
    path: PathBuf,
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

/// What a wrong sender adds to its database: S31 has it forget what goes to a disabled endpoint, S02 has
/// it put aside what an event makes, for a transaction of its own.
pub(crate) fn after_open(mutant: SenderMutant, path: &Path) -> rusqlite::Result<()> {
    let sql = match mutant {
        SenderMutant::DisabledDropsEvents => {
            "CREATE TRIGGER IF NOT EXISTS drops AFTER INSERT ON deliveries
             WHEN (SELECT status FROM endpoints WHERE id = NEW.endpoint_id) <> 'enabled'
             BEGIN DELETE FROM deliveries WHERE id = NEW.id; END"
        }
        SenderMutant::PersistThenFanOut => {
            "CREATE TABLE IF NOT EXISTS aside AS SELECT * FROM deliveries WHERE 0;
             CREATE TABLE IF NOT EXISTS fanning_out (event_id TEXT);
             CREATE TRIGGER IF NOT EXISTS puts_aside AFTER INSERT ON deliveries
             WHEN NOT EXISTS (SELECT 1 FROM fanning_out)
             BEGIN
                INSERT INTO aside SELECT * FROM deliveries WHERE id = NEW.id;
                UPDATE aside SET seq = NULL;
                DELETE FROM deliveries WHERE id = NEW.id;
             END"
        }
        _ => return Ok(()),
    };
    Connection::open(path)?.execute_batch(sql)
}

/// S02: the second transaction; it may meet one of the store's own.
fn fan_out(path: &Path, event: &EventId) -> rusqlite::Result<()> {
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(Duration::ZERO)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute("INSERT INTO fanning_out VALUES (?1)", [event.as_str()])?;
    transaction.execute(
        "INSERT INTO deliveries SELECT * FROM aside WHERE event_id = ?1",
        [event.as_str()],
    )?;
    transaction.execute("DELETE FROM fanning_out", [])?;
    transaction.commit()
}

/// What a wrong sender makes of its policy: S42 overlooks the drain rate.
pub(crate) fn misunderstand(mutant: SenderMutant, policy: &mut Policy) {
    if mutant == SenderMutant::BacklogAtOnce {
        policy.gate.drain = None;
    }
}

impl<H: Host> WrongStore<H> {
    pub(crate) fn new(
        inner: SqliteStore,
        host: H,
        mutant: SenderMutant,
        policy: &Policy,
        path: &Path,
    ) -> Self {
        let (policy, path) = (policy.clone(), path.to_owned());
        Self { inner, host, mutant, policy, path, timers: Arc::default() }
    }

    /// S02: the event is committed, and only then what it makes.
    async fn persist_then_fan_out(
        &self,
        publication: Publication,
    ) -> Result<Published, StoreError> {
        let published = self.inner.publish(publication).await?;
        if let Published::New { event_id, .. } = &published {
            self.host.at(CrashPoint::PublishCommitted).await;
            while fan_out(&self.path, event_id).is_err() {
                self.host.sleep(Millis::new(10)).await;
            }
            self.host.at(CrashPoint::StoreCommitted).await;
        }
        Ok(published)
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

    /// S35: a new secret takes effect at once, and the old one is gone.
    fn with_newest_secret(mut claimed: Claimed) -> Claimed {
        let newest = claimed.endpoint.secrets.iter().next().cloned();
        if let Some(newest) = newest {
            claimed.endpoint.secrets = Secrets::one(newest);
        }
        claimed
    }

    /// S16: the same claims, for a second or two, however long an attempt may take.
    async fn shortened(&self, steps: Vec<Step>) -> Result<Vec<Step>, StoreError> {
        let (total_timeout, lease_margin) = (Millis::from_secs(1), Millis::from_secs(1));
        let policy = Policy { total_timeout, lease_margin, ..self.policy.clone() };
        let mut shortened = Vec::new();
        for step in steps {
            let Phase::InFlight { started_at: now, .. } = step.next().phase else {
                shortened.push(step);
                continue;
            };
            let listed = self.inner.delivery(step.next().id.clone()).await?;
            let ctx = Ctx { now, entropy: self.host.entropy(), policy: &policy };
            let input = Input::Admitted { held: Millis::ZERO };
            let short = listed.and_then(|listed| listed.delivery.handle(ctx, input).ok());
            shortened.push(short.unwrap_or(step));
        }
        Ok(shortened)
    }

    /// S16: ends claims whose lease is over, whoever is at work on them.
    async fn end(&self, leased: &[Delivery], now: Timestamp) -> Result<(), StoreError> {
        for delivery in leased {
            let ctx = Ctx { now, entropy: self.host.entropy(), policy: &self.policy };
            if let Ok(step) = delivery.handle(ctx, Input::LeaseExpired) {
                let _ = self.inner.commit(step, Beside::default()).await?;
            }
        }
        Ok(())
    }

    /// S01 and S03: the publish is accepted, and written when the store gets round to it.
    async fn publish_later(&self, publication: Publication, later: Millis) -> Published {
        let event_id = publication.event.id.clone();
        let (inner, host) = (self.inner.clone(), self.host.clone());
        self.host.spawn(async move {
            host.sleep(later).await;
            // Whether it worked, nobody will know.
            let _ = inner.publish(publication).await;
        });
        Published::New { event_id, deliveries: 0 }
    }

    /// S39: the publish is answered once it is executed, and a commit that takes long comes later.
    async fn publish_and_commit(&self, publication: Publication) -> Result<Published, StoreError> {
        let event_id = publication.event.id.clone();
        let (answer, answered) = oneshot::channel();
        let inner = self.inner.clone();
        self.host.spawn(async move {
            // Perhaps nobody waits any more.
            let _ = answer.send(inner.publish(publication).await);
        });
        match self.host.within(Millis::new(1), answered).await {
            Some(Ok(published)) => published,
            _ => Ok(Published::New { event_id, deliveries: 0 }),
        }
    }

    /// S27: what its other endpoints have got of the event goes to them again.
    async fn retry_the_others(&self, failed: &Delivery) -> Result<(), StoreError> {
        let filter = DeliveryFilter {
            event: Some(failed.event_id.clone()),
            endpoint: None,
            phase: Some("delivered".to_owned()),
            after: None,
            limit: 100,
        };
        for other in self.inner.deliveries(filter).await? {
            let now = self.host.now();
            let ctx = Ctx { now, entropy: self.host.entropy(), policy: &self.policy };
            if let Ok(step) = other.delivery.handle(ctx, Input::Replay) {
                // If somebody else was faster, so be it.
                let _ = self.inner.commit(step, Beside::default()).await?;
            }
        }
        Ok(())
    }

    /// S29: a replay that fails takes the delivery's schedule with it.
    async fn without_schedule(&self, step: Step) -> Result<Step, StoreError> {
        let is_failure = |record: &AttemptRecord| record.verdict != Verdict::Delivered;
        if !step.record().is_some_and(is_failure) {
            return Ok(step);
        }
        let Some(listed) = self.inner.delivery(step.next().id.clone()).await? else {
            return Ok(step);
        };
        if !matches!(listed.delivery.phase, Phase::InFlight { origin: Origin::Replay { .. }, .. }) {
            return Ok(step);
        }
        let now = self.host.now();
        let ctx = Ctx { now, entropy: self.host.entropy(), policy: &self.policy };
        Ok(listed.delivery.handle(ctx, Input::Cancel).unwrap_or(step))
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
    /// schedule ended an attempt sooner. S19, S20: as it would be if the receiver had asked for less time.
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
            SenderMutant::JitterBelowRetryAfter => asked_for(outcome, |span| span.percent(50)),
            SenderMutant::RetryAfterUnits => {
                asked_for(outcome, |span| Millis::new(span.get() / 1000))
            }
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

/// The outcome as it would be if its receiver had asked for that.
fn asked_for(outcome: Outcome, change: impl Fn(Millis) -> Millis) -> Outcome {
    match outcome {
        Outcome::Answered { status, retry_after } => {
            Outcome::Answered { status, retry_after: retry_after.map(change) }
        }
        outcome => outcome,
    }
}

impl<H: Host> Store for WrongStore<H> {
    async fn publish(&self, publication: Publication) -> Result<Published, StoreError> {
        match self.mutant {
            SenderMutant::AckBeforeCommit => {
                Ok(self.publish_later(publication, Millis::ZERO).await)
            }
            SenderMutant::EnqueueThenPersist => Ok(self.publish_later(publication, QUEUED).await),
            SenderMutant::PersistThenFanOut => self.persist_then_fan_out(publication).await,
            SenderMutant::ReplyBeforeGroupCommit => self.publish_and_commit(publication).await,
            _ => self.inner.publish(publication).await,
        }
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
            SenderMutant::RotationWithoutOverlap => {
                let claims = self.inner.claim(steps, gates).await?;
                Ok(claims.into_iter().map(|claim| claim.map(Self::with_newest_secret)).collect())
            }
            SenderMutant::LeaseShorterThanTimeout => {
                self.inner.claim(self.shortened(steps).await?, gates).await
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
            SenderMutant::ResendEndsSchedule => self.without_schedule(step).await?,
            _ => self.bent(step).await?,
        };
        let (next, has_record) = (step.next().clone(), step.record().is_some());
        if step.record().is_some_and(|record| record.outcome != Outcome::Unknown) {
            self.set_timer(&next);
        }
        let committed = self.inner.commit(step, beside).await?;
        if committed.is_err() || !has_record {
            return Ok(committed);
        }
        match (self.mutant, next.phase) {
            (SenderMutant::FanOutAsOneUnit, Phase::Scheduled { .. }) => {
                self.retry_the_others(&next).await?;
            }
            (SenderMutant::LastSuccessDisables, Phase::Delivered { .. })
                if next.scheduled_attempts >= self.policy.schedule.attempts_max() =>
            {
                let status = EndpointStatus::Disabled;
                self.inner.set_endpoint_status(next.endpoint_id, status, None).await?;
            }
            _ => {}
        }
        Ok(committed)
    }

    async fn delivery(&self, id: DeliveryId) -> Result<Option<ListedDelivery>, StoreError> {
        let mut listed = self.inner.delivery(id).await?;
        if self.mutant == SenderMutant::ResendClearsLease
            && let Some(listed) = &mut listed
            && let Phase::InFlight { started_at: due, .. } = listed.delivery.phase
        {
            // Whoever replays it sees something that waits.
            listed.delivery.phase = Phase::Scheduled { due, origin: Origin::Schedule };
        }
        Ok(listed)
    }

    async fn leased(&self, until: Timestamp, limit: u32) -> Result<Vec<Delivery>, StoreError> {
        if self.mutant == SenderMutant::InFlightIgnored {
            return Ok(Vec::new());
        }
        let leased = self.inner.leased(until, limit).await?;
        if self.mutant == SenderMutant::LeaseShorterThanTimeout {
            // Whose attempts they are is not asked: a lease is a lease.
            self.end(&leased, until).await?;
            return Ok(Vec::new());
        }
        Ok(leased)
    }

    async fn next_lease_end(&self, after: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        if self.mutant == SenderMutant::InFlightIgnored {
            return Ok(None);
        }
        self.inner.next_lease_end(after).await
    }

    hookproof_sender::pass_on! { |this, _method| this.inner =>
        create_endpoint, endpoints, gate, set_endpoint_status, set_secrets, delete_endpoint, orphans, event,
        due_endpoints, aged_deliveries, commit_each, deliveries, history, totals,
        pending_notices, notice_sent
    }
}
