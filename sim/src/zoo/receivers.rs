//! Wrong receivers: wrappers around the store that break one transaction.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use hookproof_core::id::{EventId, SourceId};
use hookproof_core::inbox::{Entry, InboxRule, Input, Phase, Receipt};
use hookproof_core::schedule::{Backoff, Jitter, Schedule};
use hookproof_core::time::{Millis, Timestamp};
use hookproof_receiver::effect::summary;
use hookproof_receiver::ordering::Versioned;
use hookproof_receiver::sqlite::{SqliteInbox, rows};
use hookproof_receiver::store::{
    Applied, Failed, InboxStore, Moment, Recorded, Totals, Verified, Work,
};
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::database::StoreError;
use hookproof_runtime::host::Host;
use rusqlite::Connection;

use super::ReceiverMutant;

/// How long R09 knows what it has applied.
const KEPT: Millis = Millis::from_secs(10);

/// How long R02's queue is.
const QUEUED: Millis = Millis::new(200);

/// How long R19's lease is.
const LEASE: Millis = Millis::from_secs(1);

/// Tells whether something that was not verified is known of a request.
pub(crate) type Met = Arc<dyn Fn(&Verified) -> bool + Send + Sync>;

/// A store with one wrong transaction.
#[derive(Clone)]
pub(crate) struct WrongInbox<H> {
    inner: SqliteInbox<H>,
    host: H,
    mutant: ReceiverMutant,
    /// What R08 remembers, and what R21 has queued; a restart begins with nothing.
    remembered: Arc<Mutex<BTreeSet<(SourceId, EventId)>>>,
    /// R07 and R23: whether what they know a request by was known before.
    is_met: Met,
}

impl<H: Host> WrongInbox<H> {
    pub(crate) fn new(inner: SqliteInbox<H>, host: H, mutant: ReceiverMutant, is_met: Met) -> Self {
        Self { inner, host, mutant, remembered: Arc::default(), is_met }
    }

    /// R02: the id is committed as processed, and what is to be done waits in memory.
    async fn enqueue_in_memory(&self, delivery: Verified) -> Result<Recorded, StoreError> {
        let database = self.inner.database().clone();
        let inserted = {
            let delivery = delivery.clone();
            database.write(move |c| insert_applied(c, &delivery)).await?
        };
        if !inserted {
            return Ok(Recorded::Duplicate);
        }
        let host = self.host.clone();
        self.host.spawn(async move {
            host.sleep(QUEUED).await;
            // Whether it worked, nobody will know.
            let _ = database.write(move |c| insert_effect(c, &delivery)).await;
        });
        Ok(Recorded::New)
    }

    /// R21: what is recorded is queued in memory, and found nowhere else.
    async fn record_and_queue(&self, delivery: Verified) -> Result<Recorded, StoreError> {
        let key = (delivery.source.clone(), delivery.event_id.clone());
        let recorded = self.inner.record(delivery).await?;
        if recorded == Recorded::New {
            self.remembered.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
        }
        Ok(recorded)
    }

    /// R18 and R21: what a former process has claimed stays so.
    fn strands(&self) -> bool {
        matches!(self.mutant, ReceiverMutant::ClaimWithoutLease | ReceiverMutant::QueueWithoutSweep)
    }

    /// R21: whether this process knows of no work.
    fn is_queue_empty(&self) -> bool {
        self.mutant == ReceiverMutant::QueueWithoutSweep
            && self.remembered.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// R19: another worker takes the row over once its lease has ended, if it is still claimed.
    fn take_over_later(&self, work: &Work, moment: Moment) {
        let (host, database) = (self.host.clone(), self.inner.database().clone());
        let (entry, text) = (work.entry.clone(), summary(&work.body));
        self.host.spawn(async move {
            host.sleep(LEASE).await;
            let now = host.now();
            // If the store refuses, nobody tries again.
            let _ = database
                .write(move |c| {
                    let stored = rows::load_entry(c, &entry.source, &entry.event_id)?;
                    if stored.is_some_and(|stored| stored == entry) {
                        rows::insert_effect(c, &entry.source, &entry.event_id, now, &text)?;
                        mark(c, &entry, &moment)?;
                    }
                    Ok(())
                })
                .await;
        });
    }

    /// R17 and R19: the effect is applied and the version written, whatever is stored by now.
    async fn apply_regardless(
        &self,
        work: &Work,
        versioned: Option<Versioned>,
        moment: Moment,
    ) -> Result<Applied, StoreError> {
        let (entry, text, now) = (work.entry.clone(), summary(&work.body), moment.now);
        self.inner
            .database()
            .write(move |c| {
                rows::insert_effect(c, &entry.source, &entry.event_id, now, &text)?;
                if let Some(versioned) = &versioned {
                    rows::set_entity_version(c, &entry, versioned)?;
                }
                mark(c, &entry, &moment)
            })
            .await
    }

    /// R01: the id is committed as processed, and only then the event is processed.
    async fn insert_then_process(&self, delivery: Verified) -> Result<Recorded, StoreError> {
        let database = self.inner.database();
        let inserted = {
            let delivery = delivery.clone();
            database.write(move |c| insert_applied(c, &delivery)).await?
        };
        if !inserted {
            return Ok(Recorded::Duplicate);
        }
        self.host.at(CrashPoint::InboxCommitted).await;
        database.write(move |c| insert_effect(c, &delivery)).await?;
        Ok(Recorded::New)
    }

    /// R03: between the look and the insert another copy can look.
    async fn check_then_insert(&self, delivery: Verified) -> Result<Recorded, StoreError> {
        let database = self.inner.database();
        let (source, event_id) = (delivery.source.clone(), delivery.event_id.clone());
        let found = database.read(move |c| rows::load_entry(c, &source, &event_id)).await?;
        if found.is_some() {
            return Ok(Recorded::Duplicate);
        }
        self.process(delivery).await
    }

    /// R08: only this process knows what it has seen.
    async fn dedup_in_memory(&self, delivery: Verified) -> Result<Recorded, StoreError> {
        let key = (delivery.source.clone(), delivery.event_id.clone());
        let is_new = self.remembered.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
        if is_new { self.process(delivery).await } else { Ok(Recorded::Duplicate) }
    }

    /// R09: what was applied long ago is forgotten.
    async fn forget(&self, now: Timestamp) -> Result<(), StoreError> {
        let before = now.minus(KEPT).as_millis();
        self.inner
            .database()
            .write(move |c| {
                c.execute(
                    "DELETE FROM inbox WHERE phase = 'applied' AND received_at < ?1",
                    [before],
                )?;
                Ok(())
            })
            .await
    }

    /// R22: an id that any source had is a duplicate.
    async fn is_known_anywhere(&self, event_id: &EventId) -> Result<bool, StoreError> {
        let id = event_id.as_str().to_owned();
        self.inner
            .database()
            .read(move |c| {
                let count: i64 =
                    c.query_row("SELECT count(*) FROM inbox WHERE event_id = ?1", [id], |row| {
                        row.get(0)
                    })?;
                Ok(count > 0)
            })
            .await
    }

    /// R06: the mark is committed, and only then the effect.
    async fn mark_then_apply(&self, work: &Work, moment: Moment) -> Result<Applied, StoreError> {
        let database = self.inner.database();
        let (entry, now) = (work.entry.clone(), moment.now);
        let marked = database.write(move |c| mark(c, &entry, &moment)).await?;
        self.host.at(CrashPoint::EffectApplied).await;
        let (entry, text) = (work.entry.clone(), summary(&work.body));
        database
            .write(move |c| rows::insert_effect(c, &entry.source, &entry.event_id, now, &text))
            .await?;
        Ok(marked)
    }

    /// Processes an event in one transaction, whatever is stored of it.
    async fn process(&self, delivery: Verified) -> Result<Recorded, StoreError> {
        self.inner
            .database()
            .write(move |c| {
                insert_applied(c, &delivery)?;
                insert_effect(c, &delivery)
            })
            .await?;
        Ok(Recorded::New)
    }

    /// R05: the effect is committed, and only then the mark.
    async fn apply_then_mark(&self, work: &Work, moment: Moment) -> Result<Applied, StoreError> {
        let database = self.inner.database();
        let entry = work.entry.clone();
        let text = summary(&work.body);
        let now = moment.now;
        database
            .write(move |c| rows::insert_effect(c, &entry.source, &entry.event_id, now, &text))
            .await?;
        self.host.at(CrashPoint::EffectApplied).await;
        let entry = work.entry.clone();
        database.write(move |c| mark(c, &entry, &moment)).await
    }
}

/// The same moment, by a rule without another attempt.
fn last(moment: &Moment) -> Moment {
    let schedule = Schedule::new(Backoff::List { waits: Vec::new() }, Jitter::None);
    let rule = Arc::new(InboxRule { schedule, ..InboxRule::clone(&moment.rule) });
    Moment { rule, ..moment.clone() }
}

fn mark(connection: &Connection, entry: &Entry, moment: &Moment) -> Result<Applied, StoreError> {
    let Some(stored) = rows::load_entry(connection, &entry.source, &entry.event_id)? else {
        return Ok(Applied::TakenOver);
    };
    let step = entry.handle(moment.ctx(), Input::Applied { attempt: entry.attempts });
    let Ok(next) = step.and_then(|step| step.onto(&stored)) else {
        return Ok(Applied::TakenOver);
    };
    rows::update_entry(connection, &next)?;
    Ok(Applied::Done)
}

/// Inserts an event as already processed; `false` if it is there.
fn insert_applied(connection: &Connection, delivery: &Verified) -> Result<bool, StoreError> {
    let Verified { source, event_id, body, content_type, received_at } = delivery;
    let stored = rows::load_entry(connection, source, event_id)?;
    match Entry::receive(stored.as_ref(), source.clone(), event_id.clone(), *received_at) {
        Receipt::New(entry) => {
            let entry = Entry { phase: Phase::Applied { at: *received_at }, ..entry };
            rows::insert_entry(connection, &entry, body, content_type)?;
            Ok(true)
        }
        Receipt::Duplicate => Ok(false),
    }
}

fn insert_effect(connection: &Connection, delivery: &Verified) -> Result<(), StoreError> {
    let Verified { source, event_id, body, received_at, .. } = delivery;
    rows::insert_effect(connection, source, event_id, *received_at, &summary(body))
}

impl<H: Host> InboxStore for WrongInbox<H> {
    async fn record(&self, delivery: Verified) -> Result<Recorded, StoreError> {
        match self.mutant {
            ReceiverMutant::InsertThenProcess => self.insert_then_process(delivery).await,
            ReceiverMutant::CheckThenInsert => self.check_then_insert(delivery).await,
            ReceiverMutant::DedupInMemory => self.dedup_in_memory(delivery).await,
            ReceiverMutant::AckBeforeCommit => {
                let inner = self.inner.clone();
                self.host.spawn(async move {
                    // Whether it worked, nobody will know.
                    let _ = inner.record(delivery).await;
                });
                Ok(Recorded::New)
            }
            ReceiverMutant::EnqueueInMemory => self.enqueue_in_memory(delivery).await,
            ReceiverMutant::QueueWithoutSweep => self.record_and_queue(delivery).await,
            ReceiverMutant::RecordsBeforeVerify | ReceiverMutant::DedupByUnsignedHeader
                if (self.is_met)(&delivery) =>
            {
                Ok(Recorded::Duplicate)
            }
            ReceiverMutant::DedupByUnsignedHeader => self.process(delivery).await,
            ReceiverMutant::DedupExpires => {
                self.forget(delivery.received_at).await?;
                self.inner.record(delivery).await
            }
            ReceiverMutant::SuccessOnStoreError => {
                Ok(self.inner.record(delivery).await.unwrap_or(Recorded::New))
            }
            ReceiverMutant::DedupAcrossSources => {
                if self.is_known_anywhere(&delivery.event_id).await? {
                    return Ok(Recorded::Duplicate);
                }
                self.inner.record(delivery).await
            }
            _ => self.inner.record(delivery).await,
        }
    }

    async fn recover(&self, moment: Moment) -> Result<u64, StoreError> {
        if self.strands() {
            return Ok(0);
        }
        self.inner.recover(moment).await
    }

    async fn release_expired(&self, moment: Moment) -> Result<u64, StoreError> {
        if self.strands() {
            return Ok(0);
        }
        self.inner.release_expired(moment).await
    }

    async fn claim(&self, moment: Moment) -> Result<Option<Work>, StoreError> {
        if self.is_queue_empty() {
            return Ok(None);
        }
        let work = self.inner.claim(moment.clone()).await?;
        if self.mutant == ReceiverMutant::LeaseWithoutFence
            && let Some(work) = &work
        {
            self.take_over_later(work, moment);
        }
        if self.mutant == ReceiverMutant::QueueWithoutSweep {
            self.remembered.lock().unwrap_or_else(PoisonError::into_inner).pop_first();
        }
        Ok(work)
    }

    async fn apply(
        &self,
        work: &Work,
        versioned: Option<Versioned>,
        moment: Moment,
    ) -> Result<Applied, StoreError> {
        match self.mutant {
            ReceiverMutant::ApplyThenMark => self.apply_then_mark(work, moment).await,
            ReceiverMutant::MarkThenApply => self.mark_then_apply(work, moment).await,
            ReceiverMutant::NoVersionCompare | ReceiverMutant::LeaseWithoutFence => {
                self.apply_regardless(work, versioned, moment).await
            }
            _ => self.inner.apply(work, versioned, moment).await,
        }
    }

    async fn mark(&self, work: &Work, moment: Moment) -> Result<Applied, StoreError> {
        self.inner.mark(work, moment).await
    }

    async fn fail(&self, work: &Work, moment: Moment) -> Result<Failed, StoreError> {
        match self.mutant {
            // There, every call that fails is one whose outcome is unknown.
            ReceiverMutant::UnknownIsDone => {
                self.inner.mark(work, moment).await?;
                Ok(Failed::TakenOver)
            }
            ReceiverMutant::UnknownIsFailed => self.inner.fail(work, last(&moment)).await,
            _ => self.inner.fail(work, moment).await,
        }
    }

    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError> {
        if self.is_queue_empty() {
            return Ok(None);
        }
        self.inner.next_wake().await
    }

    async fn effects_of(
        &self,
        event_id: EventId,
        source: Option<SourceId>,
    ) -> Result<u64, StoreError> {
        self.inner.effects_of(event_id, source).await
    }

    async fn totals(&self) -> Result<Totals, StoreError> {
        self.inner.totals().await
    }
}
