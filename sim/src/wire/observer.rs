//! The harness's own look into both stores: by SQL, beside the code that wrote them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hookproof_core::delivery::Delivery;
use rusqlite::{Connection, OpenFlags};

/// What the sender's store holds, as committed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SenderSnapshot {
    /// Event id → (idempotency key, body).
    pub events: BTreeMap<String, (String, Vec<u8>)>,
    /// All deliveries.
    pub deliveries: Vec<Delivery>,
    /// Recorded attempts per delivery.
    pub attempts: BTreeMap<String, u64>,
    /// What came of the last attempt of a delivery, in words.
    pub outcomes: BTreeMap<String, String>,
}

/// What the receiver's store holds, as committed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReceiverSnapshot {
    /// (source, event id) → phase.
    pub inbox: BTreeMap<(String, String), String>,
    /// (source, event id) → how many effects.
    pub effects: BTreeMap<(String, String), u64>,
}

/// A look into one file, taken again only when something was committed.
pub(super) struct Watch<T> {
    path: PathBuf,
    connection: Option<Connection>,
    version: i64,
    read: fn(&Connection) -> rusqlite::Result<T>,
    pub(super) snapshot: T,
}

impl<T: Default> Watch<T> {
    pub(super) fn new(path: PathBuf, read: fn(&Connection) -> rusqlite::Result<T>) -> Self {
        Self { path, connection: None, version: -1, read, snapshot: T::default() }
    }

    /// The file that is looked into.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Looks again; says whether anything was committed since the last look.
    pub(super) fn look(&mut self) -> rusqlite::Result<bool> {
        if self.connection.is_none() {
            if !self.path.exists() {
                return Ok(false);
            }
            self.connection = Some(open(&self.path)?);
        }
        let Some(connection) = &self.connection else { return Ok(false) };
        let version: i64 =
            connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if version == self.version {
            return Ok(false);
        }
        match (self.read)(connection) {
            Ok(snapshot) => {
                self.version = version;
                self.snapshot = snapshot;
                Ok(true)
            }
            // The host is still creating its tables.
            Err(rusqlite::Error::SqliteFailure(_, Some(why))) if why.contains("no such table") => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

pub(super) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags)
}

pub(super) fn read_sender(connection: &Connection) -> rusqlite::Result<SenderSnapshot> {
    let events = connection
        .prepare_cached("SELECT id, coalesce(idempotency_key, ''), body FROM events")?
        .query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?
        .collect::<Result<_, _>>()?;
    let deliveries = connection
        .prepare_cached("SELECT state FROM deliveries ORDER BY seq")?
        .query_map([], |row| {
            let state: String = row.get(0)?;
            serde_json::from_str(&state).map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(
                    0,
                    rusqlite::types::Type::Text,
                    error.into(),
                )
            })
        })?
        .collect::<Result<_, _>>()?;
    let attempts = connection
        .prepare_cached("SELECT delivery_id, count(*) FROM attempts GROUP BY delivery_id")?
        .query_map([], |row| Ok((row.get(0)?, count(row, 1)?)))?
        .collect::<Result<_, _>>()?;
    let outcomes = connection
        .prepare_cached("SELECT id, last_outcome FROM deliveries WHERE last_outcome IS NOT NULL")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    Ok(SenderSnapshot { events, deliveries, attempts, outcomes })
}

pub(super) fn read_receiver(connection: &Connection) -> rusqlite::Result<ReceiverSnapshot> {
    let inbox = connection
        .prepare_cached("SELECT source, event_id, phase FROM inbox")?
        .query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    let effects = connection
        .prepare_cached("SELECT source, event_id, count(*) FROM effects GROUP BY source, event_id")?
        .query_map([], |row| Ok(((row.get(0)?, row.get(1)?), count(row, 2)?)))?
        .collect::<Result<_, _>>()?;
    Ok(ReceiverSnapshot { inbox, effects })
}

fn count(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|count| u64::try_from(count).unwrap_or(0))
}
