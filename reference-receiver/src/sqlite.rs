//! The receiver's store on SQLite.

pub mod rows;

use hookproof_core::id::{EventId, SourceId};
use hookproof_core::inbox::{Entry, Input, Phase, Receipt, Rejected, Step};
use hookproof_core::ordering::{Decision as Order, judge};
use hookproof_core::time::Timestamp;
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::database::{Database, DatabaseConfig, OpenError, Schema, StoreError};
use hookproof_runtime::decision::Decision;
use hookproof_runtime::host::Host;
use rusqlite::Connection;

use crate::effect::{Effect, EffectError, Ledger};
use crate::ordering::Versioned;
use crate::store::{Applied, Failed, InboxStore, Moment, Recorded, Totals, Verified, Work};

/// What the receiver's database looks like.
pub const SCHEMA: Schema = Schema {
    name: "receiver",
    application_id: 0x686b_7231,
    migrations: &[include_str!("sqlite/001_inbox.sql"), include_str!("sqlite/002_ordering.sql")],
};

/// The receiver's store on SQLite, with the effect that it applies; cheap to clone.
#[derive(Clone, Debug)]
pub struct SqliteInbox<H, E = Ledger> {
    host: H,
    database: Database,
    effect: E,
}

impl<H: Host> SqliteInbox<H> {
    /// Opens the database with the ledger as the effect: creates or migrates its schema, and starts
    /// its writer and reader.
    ///
    /// # Errors
    ///
    /// [`OpenError`].
    pub fn open(host: &H, config: &DatabaseConfig) -> Result<Self, OpenError> {
        Self::open_with(host, config, Ledger)
    }
}

impl<H: Host, E: Effect> SqliteInbox<H, E> {
    /// Opens the database with an effect of your own.
    ///
    /// # Errors
    ///
    /// [`OpenError`].
    pub fn open_with(host: &H, config: &DatabaseConfig, effect: E) -> Result<Self, OpenError> {
        Ok(Self { host: host.clone(), database: Database::open(host, config, &SCHEMA)?, effect })
    }

    /// The database, for transactions of your own from [`rows`].
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }
}

impl<H: Host, E: Effect> InboxStore for SqliteInbox<H, E> {
    async fn record(&self, delivery: Verified) -> Result<Recorded, StoreError> {
        let host = self.host.clone();
        self.database.write(move |c| record(c, &host, delivery)).await
    }

    async fn recover(&self, moment: Moment) -> Result<u64, StoreError> {
        let host = self.host.clone();
        self.database
            .write(move |c| release(c, &host, &moment, Timestamp::MAX, Input::OwnerLost))
            .await
    }

    async fn release_expired(&self, moment: Moment) -> Result<u64, StoreError> {
        let host = self.host.clone();
        self.database
            .write(move |c| release(c, &host, &moment, moment.now, Input::LeaseExpired))
            .await
    }

    async fn claim(&self, moment: Moment) -> Result<Option<Work>, StoreError> {
        let host = self.host.clone();
        self.database.write(move |c| claim(c, &host, &moment)).await
    }

    async fn apply(
        &self,
        work: &Work,
        versioned: Option<Versioned>,
        moment: Moment,
    ) -> Result<Applied, StoreError> {
        let (host, effect, work) = (self.host.clone(), self.effect.clone(), work.clone());
        self.database
            .write(move |c| {
                if let Some(versioned) = &versioned {
                    match judged(c, &work, versioned)? {
                        Order::Apply => {}
                        Order::Ignore => {
                            return supersede(c, &host, &work, versioned, false, &moment);
                        }
                        Order::Reconcile => {
                            return supersede(c, &host, &work, versioned, true, &moment);
                        }
                    }
                }
                apply(c, &host, &effect, &work, versioned.as_ref(), &moment)
            })
            .await
    }

    async fn mark(&self, work: &Work, moment: Moment) -> Result<Applied, StoreError> {
        let (host, work) = (self.host.clone(), work.clone());
        self.database.write(move |c| mark(c, &host, &work, &moment)).await
    }

    async fn fail(&self, work: &Work, moment: Moment) -> Result<Failed, StoreError> {
        let (host, work) = (self.host.clone(), work.clone());
        self.database.write(move |c| fail(c, &host, &work, &moment)).await
    }

    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError> {
        self.database.read(rows::next_wake).await
    }

    async fn effects_of(
        &self,
        event_id: EventId,
        source: Option<SourceId>,
    ) -> Result<u64, StoreError> {
        self.database.read(move |c| rows::count_effects(c, &event_id, source.as_ref())).await
    }

    async fn totals(&self) -> Result<Totals, StoreError> {
        self.database.read(rows::totals).await
    }
}

/// There is one writer, so nothing comes between the look and the insert; the unique key would
/// refuse it all the same.
fn record<H: Host>(
    connection: &Connection,
    host: &H,
    delivery: Verified,
) -> Result<Recorded, StoreError> {
    let Verified { source, event_id, body, content_type, received_at } = delivery;
    let stored = rows::load_entry(connection, &source, &event_id)?;
    let stored = stored.as_ref();
    let receipt = Entry::receive(stored, source.clone(), event_id.clone(), received_at);
    host.decided(&Decision::Receipt {
        stored,
        source: &source,
        event_id: &event_id,
        now: received_at,
        receipt: &receipt,
    });
    match receipt {
        Receipt::New(entry) => {
            rows::insert_entry(connection, &entry, &body, &content_type)?;
            Ok(Recorded::New)
        }
        Receipt::Duplicate => {
            rows::count_duplicate(connection, &source, &event_id)?;
            Ok(Recorded::Duplicate)
        }
    }
}

/// Gives up the claims that end at `until` or before, as far as the machine agrees.
fn release<H: Host>(
    connection: &Connection,
    host: &H,
    moment: &Moment,
    until: Timestamp,
    input: Input,
) -> Result<u64, StoreError> {
    let mut released = 0;
    for stored in rows::claimed(connection, until)? {
        let step = step(host, &stored, moment, input);
        if let Ok(next) = step.and_then(|step| step.onto(&stored)) {
            rows::update_entry(connection, &next)?;
            released += 1;
        }
    }
    Ok(released)
}

fn claim<H: Host>(
    connection: &Connection,
    host: &H,
    moment: &Moment,
) -> Result<Option<Work>, StoreError> {
    let Some(due) = rows::first_due(connection, moment.now)? else { return Ok(None) };
    let step = step(host, &due.entry, moment, Input::Claim);
    let Ok(entry) = step.and_then(|step| step.onto(&due.entry)) else { return Ok(None) };
    rows::update_entry(connection, &entry)?;
    Ok(Some(Work { entry, ..due }))
}

/// The heart of the receiver: effect and mark in one transaction, and neither for a claim that has
/// been taken over meanwhile.
fn apply<H: Host, E: Effect>(
    connection: &Connection,
    host: &H,
    effect: &E,
    work: &Work,
    versioned: Option<&Versioned>,
    moment: &Moment,
) -> Result<Applied, StoreError> {
    let input = Input::Applied { attempt: work.attempt() };
    let Ok(next) = decide(connection, host, work, moment, input)? else {
        return Ok(Applied::TakenOver);
    };
    let effect = in_savepoint(connection, || effect.apply(connection, work, moment.now))?;
    if let Err(error) = effect {
        return Ok(Applied::Failed(error));
    }
    if host.passes(CrashPoint::EffectApplied) {
        // The error undoes the operation, as the end of the process would.
        return Err(StoreError::Closed);
    }
    if let Some(versioned) = versioned {
        rows::set_entity_version(connection, &work.entry, versioned)?;
    }
    rows::update_entry(connection, &next)?;
    Ok(Applied::Done)
}

/// The mark alone, for an effect that is not in this database.
fn mark<H: Host>(
    connection: &Connection,
    host: &H,
    work: &Work,
    moment: &Moment,
) -> Result<Applied, StoreError> {
    let input = Input::Applied { attempt: work.attempt() };
    let Ok(next) = decide(connection, host, work, moment, input)? else {
        return Ok(Applied::TakenOver);
    };
    rows::update_entry(connection, &next)?;
    Ok(Applied::Done)
}

/// What the rule makes of an event about a version of an entity, by the version that is applied at this
/// moment: this transaction is the only one that runs.
fn judged(
    connection: &Connection,
    work: &Work,
    versioned: &Versioned,
) -> Result<Order, StoreError> {
    let applied = rows::entity_version(connection, &work.entry.source, &versioned.entity)?;
    Ok(judge(applied, versioned.version, versioned.late))
}

/// Marks an event that a newer version, or the same one, came before: without its effect.
fn supersede<H: Host>(
    connection: &Connection,
    host: &H,
    work: &Work,
    versioned: &Versioned,
    reconciles: bool,
    moment: &Moment,
) -> Result<Applied, StoreError> {
    let input = Input::Superseded { attempt: work.attempt() };
    let Ok(next) = decide(connection, host, work, moment, input)? else {
        return Ok(Applied::TakenOver);
    };
    if reconciles {
        rows::insert_reconciliation(connection, &work.entry, versioned, moment.now)?;
    }
    rows::update_entry(connection, &next)?;
    Ok(Applied::Superseded)
}

fn fail<H: Host>(
    connection: &Connection,
    host: &H,
    work: &Work,
    moment: &Moment,
) -> Result<Failed, StoreError> {
    let input = Input::Failed { attempt: work.attempt() };
    let Ok(next) = decide(connection, host, work, moment, input)? else {
        return Ok(Failed::TakenOver);
    };
    rows::update_entry(connection, &next)?;
    Ok(match next.phase {
        Phase::Pending { due } => Failed::Retried { due },
        Phase::Claimed { .. }
        | Phase::Applied { .. }
        | Phase::Superseded { .. }
        | Phase::Dead { .. } => Failed::Dead,
    })
}

/// The step is made from the entry as it was claimed, so that the version fences a worker whose
/// claim was given up: its step does not fit onto what is stored now.
fn decide<H: Host>(
    connection: &Connection,
    host: &H,
    work: &Work,
    moment: &Moment,
    input: Input,
) -> Result<Result<Entry, Rejected>, StoreError> {
    let (source, event_id) = (&work.entry.source, &work.entry.event_id);
    let stored = rows::load_entry(connection, source, event_id)?.ok_or_else(|| {
        StoreError::Corrupt(format!("claimed event {event_id} of source {source} is missing"))
    })?;
    Ok(step(host, &work.entry, moment, input).and_then(|step| step.onto(&stored)))
}

/// What `input` makes of an entry.
fn step<H: Host>(host: &H, state: &Entry, moment: &Moment, input: Input) -> Result<Step, Rejected> {
    let ctx = moment.ctx();
    let result = state.handle(ctx, input);
    host.decided(&Decision::Entry { state, ctx, input, result: &result });
    result
}

/// Undoes what a failed effect has written, and leaves the rest of the transaction as it is.
fn in_savepoint(
    connection: &Connection,
    effect: impl FnOnce() -> Result<(), EffectError>,
) -> Result<Result<(), EffectError>, StoreError> {
    connection.execute_batch("SAVEPOINT effect")?;
    let result = effect();
    connection.execute_batch(match result {
        Ok(()) => "RELEASE effect",
        Err(_) => "ROLLBACK TO effect; RELEASE effect",
    })?;
    Ok(result)
}
