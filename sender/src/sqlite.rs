//! The sender's store on SQLite.

mod deliveries;
mod endpoints;
mod events;
mod notices;

use hookproof_core::delivery::{Committed, Delivery, Rejected, Step};
use hookproof_core::endpoint::{Endpoint, EndpointStatus};
use hookproof_core::event::Event;
use hookproof_core::gate::StoredGate;
use hookproof_core::id::{DeliveryId, EndpointId, EventId};
use hookproof_core::secret::Secrets;
use hookproof_core::time::Timestamp;
use hookproof_runtime::database::{Database, DatabaseConfig, OpenError, Schema, StoreError};
use hookproof_runtime::host::Host;
use rusqlite::types::{FromSql, Type};
use rusqlite::{Connection, Row, Rows};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::store::{
    Aged, Beside, Claimed, DeliveryFilter, DueEndpoint, History, ListedDelivery, Orphans,
    PendingNotice, Publication, Published, Store, Totals,
};

/// What the sender's database looks like.
pub const SCHEMA: Schema = Schema {
    name: "sender",
    application_id: 0x686b_7331,
    migrations: &[
        include_str!("sqlite/001_initial.sql"),
        include_str!("sqlite/002_gates.sql"),
        include_str!("sqlite/003_created.sql"),
        include_str!("sqlite/004_deleted.sql"),
    ],
};

/// The sender's store on SQLite; cheap to clone.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    database: Database,
}

impl SqliteStore {
    /// Opens the database, creates or migrates its schema, and starts its writer and reader.
    ///
    /// # Errors
    ///
    /// [`OpenError`].
    pub fn open<H: Host>(host: &H, config: &DatabaseConfig) -> Result<Self, OpenError> {
        Ok(Self { database: Database::open(host, config, &SCHEMA)? })
    }

    /// The deliveries that `read` finds; those that cannot be read are set aside. If they are so many
    /// that nothing else was found, there may be more behind them.
    async fn readable(
        &self,
        read: impl Fn(&Connection) -> Result<Read<Delivery>, StoreError> + Clone + Send + 'static,
    ) -> Result<Vec<Delivery>, StoreError> {
        loop {
            let (found, unreadable) = self.database.read(read.clone()).await?;
            if unreadable.is_empty() {
                return Ok(found);
            }
            self.database.write(move |c| deliveries::set_aside(c, &unreadable)).await?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
    }
}

impl Store for SqliteStore {
    async fn create_endpoint(&self, endpoint: Endpoint) -> Result<(), StoreError> {
        self.database.write(move |c| endpoints::insert(c, &endpoint)).await
    }

    async fn endpoints(&self) -> Result<Vec<Endpoint>, StoreError> {
        self.database.read(endpoints::all).await
    }

    async fn gate(&self, id: EndpointId) -> Result<Option<StoredGate>, StoreError> {
        self.database.read(move |c| endpoints::gate(c, &id)).await
    }

    async fn set_endpoint_status(
        &self,
        id: EndpointId,
        status: EndpointStatus,
        gate: Option<StoredGate>,
    ) -> Result<bool, StoreError> {
        self.database
            .write(move |c| {
                if let Some(gate) = gate {
                    endpoints::set_gate(c, &id, &gate)?;
                }
                endpoints::set_status(c, &id, status)
            })
            .await
    }

    async fn set_secrets(&self, id: EndpointId, secrets: Secrets) -> Result<bool, StoreError> {
        self.database.write(move |c| endpoints::set_secrets(c, &id, &secrets)).await
    }

    async fn delete_endpoint(&self, id: EndpointId) -> Result<bool, StoreError> {
        self.database.write(move |c| endpoints::delete(c, &id)).await
    }

    async fn orphans(&self, limit: u32) -> Result<Orphans, StoreError> {
        // In this order: no attempt to a deleted endpoint begins any more, so what ends between the two
        // looks is found by the second.
        let is_under_way = self.database.read(deliveries::is_orphan_under_way).await?;
        let waiting = self.readable(move |c| deliveries::orphaned(c, limit)).await?;
        let is_all = waiting.len() < limit as usize;
        Ok(Orphans { waiting, is_more: is_under_way || !is_all })
    }

    async fn publish(&self, publication: Publication) -> Result<Published, StoreError> {
        self.database.write(move |c| events::publish(c, &publication)).await
    }

    async fn event(&self, id: EventId) -> Result<Option<Event>, StoreError> {
        self.database.read(move |c| events::find(c, &id)).await
    }

    async fn due_endpoints(&self, now: Timestamp) -> Result<Vec<DueEndpoint>, StoreError> {
        let (due, unreadable) = self.database.read(move |c| endpoints::due(c, now)).await?;
        if !unreadable.is_empty() {
            self.database.write(move |c| endpoints::disable_unreadable(c, &unreadable)).await?;
        }
        Ok(due)
    }

    async fn due_deliveries(
        &self,
        endpoint: EndpointId,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<Delivery>, StoreError> {
        let read = move |c: &Connection| deliveries::due(c, &endpoint, now, limit);
        self.readable(read).await
    }

    async fn aged_deliveries(
        &self,
        endpoint: EndpointId,
        before: Timestamp,
        limit: u32,
    ) -> Result<Aged, StoreError> {
        self.database.read(move |c| deliveries::aged(c, &endpoint, before, limit)).await
    }

    async fn claim(
        &self,
        steps: Vec<Step>,
        gates: Vec<(EndpointId, StoredGate)>,
    ) -> Result<Vec<Result<Claimed, Rejected>>, StoreError> {
        self.database
            .write(move |c| {
                for (endpoint, gate) in &gates {
                    endpoints::set_gate(c, endpoint, gate)?;
                }
                steps.into_iter().map(|step| deliveries::claim(c, step)).collect()
            })
            .await
    }

    async fn commit(
        &self,
        step: Step,
        beside: Beside,
    ) -> Result<Result<Committed, Rejected>, StoreError> {
        self.database.write(move |c| deliveries::commit(c, step, &beside)).await
    }

    async fn commit_each(
        &self,
        steps: Vec<Step>,
    ) -> Result<Vec<Result<Committed, Rejected>>, StoreError> {
        self.database
            .write(move |c| {
                let commit = |step| deliveries::commit(c, step, &Beside::default());
                steps.into_iter().map(commit).collect()
            })
            .await
    }

    async fn leased(&self, until: Timestamp, limit: u32) -> Result<Vec<Delivery>, StoreError> {
        self.readable(move |c| deliveries::leased(c, until, limit)).await
    }

    async fn next_lease_end(&self, after: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        self.database.read(move |c| deliveries::next_lease_end(c, after)).await
    }

    async fn delivery(&self, id: DeliveryId) -> Result<Option<ListedDelivery>, StoreError> {
        self.database.read(move |c| deliveries::one(c, &id)).await
    }

    async fn deliveries(&self, filter: DeliveryFilter) -> Result<Vec<ListedDelivery>, StoreError> {
        self.database.read(move |c| deliveries::list(c, &filter)).await
    }

    async fn history(&self, id: DeliveryId) -> Result<Option<History>, StoreError> {
        self.database.read(move |c| deliveries::history(c, &id)).await
    }

    async fn totals(&self) -> Result<Totals, StoreError> {
        self.database.read(deliveries::totals).await
    }

    async fn pending_notices(&self, limit: u32) -> Result<Vec<PendingNotice>, StoreError> {
        self.database.read(move |c| notices::pending(c, limit)).await
    }

    async fn notice_sent(&self, id: i64, now: Timestamp) -> Result<(), StoreError> {
        self.database.write(move |c| notices::sent(c, id, now)).await
    }
}

/// A row that cannot be read: its key, and why.
struct Unreadable<K> {
    key: K,
    error: rusqlite::Error,
}

/// What was read, and what could not be.
type Read<T, K = i64> = (Vec<T>, Vec<Unreadable<K>>);

/// Reads each row by itself, so that one that cannot be read does not hide the others. `key` is what
/// finds such a row again.
fn each<T, K: FromSql>(
    mut rows: Rows<'_>,
    key: &'static str,
    mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Read<T, K>, StoreError> {
    let (mut found, mut unreadable) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        match read(row) {
            Ok(value) => found.push(value),
            Err(error) => unreadable.push(Unreadable { key: row.get(key)?, error }),
        }
    }
    Ok((found, unreadable))
}

/// Tells a row that cannot be read from a store that cannot be asked.
fn readable<T>(read: Result<T, StoreError>) -> Result<Result<T, rusqlite::Error>, StoreError> {
    match read {
        Ok(value) => Ok(Ok(value)),
        Err(StoreError::Sqlite(error @ rusqlite::Error::FromSqlConversionFailure(..))) => {
            Ok(Err(error))
        }
        Err(error) => Err(error),
    }
}

/// A value as the JSON text of a column.
fn to_json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// A column's JSON text as a value.
fn from_json<T: DeserializeOwned>(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    serde_json::from_str(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
    })
}

/// A text column as an identifier or another type with a checked form.
fn checked<T>(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<T>
where
    T: TryFrom<String>,
    T::Error: std::error::Error + Send + Sync + 'static,
{
    T::try_from(row.get(column)?).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
    })
}
