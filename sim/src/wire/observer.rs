//! The harness's own look into both stores: by SQL, beside the code that wrote them, after each commit.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use hookproof_core::delivery::{AttemptRecord, Delivery};
use hookproof_core::inbox;
use rusqlite::{Connection, OpenFlags, Row};
use serde::de::DeserializeOwned;

/// What a commit at the sender changed, in the order in which it is to be told.
#[derive(Debug)]
pub(super) enum SenderChange {
    Registered {
        id: String,
        url: String,
    },
    Stored {
        id: String,
        key: String,
        body: Vec<u8>,
    },
    Written {
        state: Box<Delivery>,
        record: Option<AttemptRecord>,
        has_notice: bool,
    },
    Lost {
        delivery: String,
    },
    /// A sender on trial has it in two places.
    Doubled {
        delivery: String,
    },
    Enabled {
        id: String,
        is_enabled: bool,
    },
    Deleted {
        id: String,
    },
    Noticed {
        delivery: String,
    },
}

/// What a commit at the receiver changed.
#[derive(Debug)]
pub(super) enum ReceiverChange {
    /// When it was received, by the receiver's clock, if it says so.
    Recorded {
        source: String,
        event: String,
        received_at: Option<i64>,
    },
    Forgotten {
        source: String,
        event: String,
    },
    /// An entry is as its machine has it.
    Stepped(Box<inbox::Entry>),
    Effect {
        source: String,
        event: String,
    },
    Claimed {
        source: String,
        event: String,
    },
    WorkedOff {
        source: String,
        event: String,
        end: EntryEnd,
    },
    Entity {
        source: String,
        entity: String,
        version: u64,
    },
    Lost {
        event: String,
    },
}

/// How an entry of the receiver ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EntryEnd {
    Applied,
    Superseded,
    Dead,
}

/// A look into one file.
pub(super) struct Eye<S> {
    path: PathBuf,
    connection: Option<Connection>,
    version: i64,
    pub(super) seen: S,
}

impl<S: Seen> Eye<S> {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, connection: None, version: -1, seen: S::default() }
    }

    /// What was committed since the last look; `None` if nothing was.
    pub(super) fn look(&mut self) -> rusqlite::Result<Option<Vec<S::Change>>> {
        if self.connection.is_none() {
            self.connection = Some(open(&self.path)?);
        }
        let Some(connection) = &self.connection else { return Ok(None) };
        let version: i64 =
            connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if version == self.version {
            return Ok(None);
        }
        self.version = version;
        self.seen.compare(connection).map(Some)
    }
}

impl Eye<SenderSeen> {
    /// All deliveries, by a connection that has seen nothing before.
    pub(super) fn stock(&self) -> rusqlite::Result<Vec<Delivery>> {
        all(&self.path, "SELECT state FROM deliveries ORDER BY seq")
    }
}

impl Eye<ReceiverSeen> {
    /// All entries, by a connection that has seen nothing before.
    pub(super) fn stock(&self) -> rusqlite::Result<Vec<inbox::Entry>> {
        all(&self.path, "SELECT state FROM inbox ORDER BY seq")
    }
}

fn all<T: DeserializeOwned>(path: &Path, query: &str) -> rusqlite::Result<Vec<T>> {
    open(path)?.prepare(query)?.query_map([], |row| from_json(row, 0))?.collect()
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags)
}

/// What was seen at the last look.
pub(super) trait Seen: Default {
    type Change;

    /// Compares it with what is there, and takes that over.
    fn compare(&mut self, connection: &Connection) -> rusqlite::Result<Vec<Self::Change>>;
}

/// How the sender writes what an endpoint's status is.
const ENABLED: &str = "enabled";
const DELETED: &str = "deleted";

/// What was last seen at the sender.
#[derive(Default)]
pub(super) struct SenderSeen {
    /// Endpoint id → its status.
    endpoints: BTreeMap<String, String>,
    /// How many events there are; their numbers grow.
    events: (i64, i64),
    /// Delivery id → its row, as text and as what it says.
    deliveries: BTreeMap<String, (String, Delivery)>,
    /// Delivery id → how many attempts are recorded.
    attempts: BTreeMap<String, u32>,
    /// Notices about deliveries that are dead → whether they were sent.
    notices: BTreeMap<i64, bool>,
}

impl SenderSeen {
    /// All deliveries as they are stored.
    pub(super) fn deliveries(&self) -> impl Iterator<Item = &Delivery> {
        self.deliveries.values().map(|(_, state)| state)
    }

    /// One of them.
    pub(super) fn delivery(&self, id: &str) -> Option<&Delivery> {
        self.deliveries.get(id).map(|(_, state)| state)
    }

    /// Takes a delivery for stored like this, where there is no store.
    pub(super) fn assumes(&mut self, state: &Delivery) {
        self.deliveries.insert(state.id.as_str().to_owned(), (String::new(), state.clone()));
    }

    /// The endpoints that there are, and whether each is enabled.
    pub(super) fn endpoints_known(&self) -> impl Iterator<Item = (&str, bool)> {
        let there = self.endpoints.iter().filter(|(_, status)| *status != DELETED);
        there.map(|(id, status)| (id.as_str(), status == ENABLED))
    }

    /// Whether each notice was sent.
    pub(super) fn all_noticed(&self) -> bool {
        self.notices.values().all(|is_sent| *is_sent)
    }

    fn endpoints(
        &mut self,
        connection: &Connection,
        changes: &mut Vec<SenderChange>,
    ) -> rusqlite::Result<Vec<SenderChange>> {
        let mut statement =
            connection.prepare_cached("SELECT id, url, status FROM endpoints ORDER BY rowid")?;
        let rows = statement.query_map([], |row| {
            Ok((row.get::<_, String>(0)?, row.get(1)?, row.get::<_, String>(2)?))
        })?;
        let mut switched = Vec::new();
        for row in rows {
            let (id, url, status) = row?;
            let is_enabled = status == ENABLED;
            match self.endpoints.insert(id.clone(), status.clone()) {
                None => changes.push(SenderChange::Registered { id, url }),
                Some(before) if before == status => {}
                // Before what is published with it: that is owed to it no more.
                Some(_) if status == DELETED => changes.push(SenderChange::Deleted { id }),
                Some(_) => switched.push(SenderChange::Enabled { id, is_enabled }),
            }
        }
        Ok(switched)
    }

    fn events(
        &mut self,
        connection: &Connection,
        changes: &mut Vec<SenderChange>,
    ) -> rusqlite::Result<()> {
        let (mut count, mut last) = self.events;
        let mut statement = connection.prepare_cached(
            "SELECT rowid, id, coalesce(idempotency_key, ''), body FROM events
             WHERE rowid > ?1 ORDER BY rowid",
        )?;
        let rows = statement
            .query_map([last], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
        for row in rows {
            let (number, id, key, body) = row?;
            last = number;
            count += 1;
            changes.push(SenderChange::Stored { id, key, body });
        }
        let there: i64 = connection
            .prepare_cached("SELECT count(*) FROM events")?
            .query_row([], |row| row.get(0))?;
        if there < count {
            changes.push(SenderChange::Lost { delivery: String::new() });
        }
        self.events = (there, last);
        Ok(())
    }

    fn deliveries_changed(
        &mut self,
        connection: &Connection,
        changes: &mut Vec<SenderChange>,
    ) -> rusqlite::Result<()> {
        let noticed = self.new_notices(connection)?;
        let rows: Vec<(String, String)> = connection
            .prepare_cached("SELECT id, state FROM deliveries ORDER BY seq")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        let mut gone: Vec<String> = self.deliveries.keys().cloned().collect();
        for (id, text) in rows {
            gone.retain(|known| *known != id);
            if self.deliveries.get(&id).is_some_and(|(known, _)| *known == text) {
                continue;
            }
            let state: Delivery = json(&text)?;
            let record = self.new_record(connection, &id)?;
            let has_notice = noticed.contains(&id);
            self.deliveries.insert(id, (text, state.clone()));
            changes.push(SenderChange::Written { state: Box::new(state), record, has_notice });
        }
        for delivery in gone {
            self.deliveries.remove(&delivery);
            changes.push(SenderChange::Lost { delivery });
        }
        self.lost_attempts(connection, changes)
    }

    /// The record of the attempt that ended with this change.
    fn new_record(
        &mut self,
        connection: &Connection,
        id: &str,
    ) -> rusqlite::Result<Option<AttemptRecord>> {
        let known = self.attempts.get(id).copied().unwrap_or(0);
        let record: Option<AttemptRecord> = connection
            .prepare_cached(
                "SELECT record FROM attempts WHERE delivery_id = ?1 AND attempt > ?2
                 ORDER BY attempt LIMIT 1",
            )?
            .query_map((id, known), |row| from_json(row, 0))?
            .next()
            .transpose()?;
        if let Some(record) = &record {
            self.attempts.insert(id.to_owned(), record.attempt);
        }
        Ok(record)
    }

    /// What was recorded stays so.
    fn lost_attempts(
        &mut self,
        connection: &Connection,
        changes: &mut Vec<SenderChange>,
    ) -> rusqlite::Result<()> {
        let there: BTreeMap<String, u32> = connection
            .prepare_cached("SELECT delivery_id, max(attempt) FROM attempts GROUP BY delivery_id")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        for (delivery, known) in &self.attempts {
            if there.get(delivery) != Some(known) {
                changes.push(SenderChange::Lost { delivery: delivery.clone() });
            }
        }
        Ok(())
    }

    /// The deliveries that a notice was written about. One that the breaker's rule writes is about
    /// the endpoint.
    fn new_notices(&mut self, connection: &Connection) -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare_cached(
            "SELECT id, delivery_id FROM notices WHERE reason NOT IN ('\"given_up\"', '\"paused\"')
             ORDER BY id",
        )?;
        let rows =
            statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
        let mut new = Vec::new();
        for row in rows {
            let (number, delivery) = row?;
            if let Entry::Vacant(place) = self.notices.entry(number) {
                place.insert(false);
                new.push(delivery);
            }
        }
        Ok(new)
    }

    fn noticed(
        &mut self,
        connection: &Connection,
        changes: &mut Vec<SenderChange>,
    ) -> rusqlite::Result<()> {
        let mut statement = connection
            .prepare_cached("SELECT id, delivery_id FROM notices WHERE sent_at IS NOT NULL")?;
        let rows =
            statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
        for row in rows {
            let (number, delivery) = row?;
            if let Some(is_sent) = self.notices.get_mut(&number).filter(|is_sent| !**is_sent) {
                *is_sent = true;
                changes.push(SenderChange::Noticed { delivery });
            }
        }
        Ok(())
    }
}

impl Seen for SenderSeen {
    type Change = SenderChange;

    fn compare(&mut self, connection: &Connection) -> rusqlite::Result<Vec<SenderChange>> {
        let mut changes = Vec::new();
        let switched = self.endpoints(connection, &mut changes)?;
        self.events(connection, &mut changes)?;
        self.deliveries_changed(connection, &mut changes)?;
        changes.extend(switched);
        self.noticed(connection, &mut changes)?;
        Ok(changes)
    }
}

/// What was last seen at the receiver.
#[derive(Default)]
pub(super) struct ReceiverSeen {
    /// (source, event id) → phase and version.
    inbox: BTreeMap<(String, String), (String, i64)>,
    last_effect: i64,
    /// (source, entity) → version.
    entities: BTreeMap<(String, String), u64>,
    /// How many effects there are.
    pub(super) effects: u64,
}

impl ReceiverSeen {
    /// Whether each entry is worked off.
    pub(super) fn is_settled(&self) -> bool {
        self.inbox.values().all(|(phase, _)| is_final(phase))
    }

    fn new_effects(
        &mut self,
        connection: &Connection,
        changes: &mut Vec<ReceiverChange>,
    ) -> rusqlite::Result<()> {
        let mut statement = connection
            .prepare_cached("SELECT id, source, event_id FROM effects WHERE id > ?1 ORDER BY id")?;
        let rows = statement
            .query_map([self.last_effect], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        for row in rows {
            let (number, source, event) = row?;
            self.last_effect = number;
            self.effects += 1;
            changes.push(ReceiverChange::Effect { source, event });
        }
        Ok(())
    }

    fn new_versions(
        &mut self,
        connection: &Connection,
        changes: &mut Vec<ReceiverChange>,
    ) -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached(
            "SELECT source, entity, version FROM entities ORDER BY source, entity",
        )?;
        let rows = statement.query_map([], |row| {
            Ok(((row.get::<_, String>(0)?, row.get::<_, String>(1)?), row.get::<_, i64>(2)?))
        })?;
        for row in rows {
            let (key, version) = row?;
            let version = u64::try_from(version).unwrap_or(0);
            if self.entities.insert(key.clone(), version) != Some(version) {
                let (source, entity) = key;
                changes.push(ReceiverChange::Entity { source, entity, version });
            }
        }
        Ok(())
    }
}

fn is_final(phase: &str) -> bool {
    !matches!(phase, "pending" | "claimed")
}

impl Seen for ReceiverSeen {
    type Change = ReceiverChange;

    fn compare(&mut self, connection: &Connection) -> rusqlite::Result<Vec<ReceiverChange>> {
        let mut changes = Vec::new();
        let mut worked_off = Vec::new();
        let mut gone = std::mem::take(&mut self.inbox);
        let mut statement = connection.prepare_cached(
            "SELECT source, event_id, phase, received_at, version, state FROM inbox ORDER BY seq",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let key: (String, String) = (row.get(0)?, row.get(1)?);
            let (phase, received_at): (String, i64) = (row.get(2)?, row.get(3)?);
            let version: i64 = row.get(4)?;
            let (source, event) = key.clone();
            let before = gone.remove(&key);
            let (before, before_version) = before.unzip();
            if before_version != Some(version) {
                changes.push(ReceiverChange::Stepped(Box::new(from_json(row, 5)?)));
            }
            if before.is_none() {
                let (source, event) = key.clone();
                let received_at = Some(received_at);
                changes.push(ReceiverChange::Recorded { source, event, received_at });
            }
            if phase == "claimed" && before_version != Some(version) {
                let (source, event) = key.clone();
                changes.push(ReceiverChange::Claimed { source, event });
            }
            if is_final(&phase) && before.as_ref() != Some(&phase) {
                let end = match phase.as_str() {
                    "applied" => EntryEnd::Applied,
                    "superseded" => EntryEnd::Superseded,
                    _ => EntryEnd::Dead,
                };
                worked_off.push(ReceiverChange::WorkedOff { source, event, end });
            }
            self.inbox.insert(key, (phase, version));
        }
        let forgotten = gone.into_keys();
        changes
            .extend(forgotten.map(|(source, event)| ReceiverChange::Forgotten { source, event }));
        self.new_effects(connection, &mut changes)?;
        // What is superseded is so by what is there then.
        self.new_versions(connection, &mut changes)?;
        changes.append(&mut worked_off);
        Ok(changes)
    }
}

fn json<T: DeserializeOwned>(text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, error.into())
    })
}

fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    json(row.get_ref(column)?.as_str()?)
}
