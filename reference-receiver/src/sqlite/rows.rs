//! The statements of the receiver's database, one function for each.
//!
//! [`super::SqliteInbox`] puts them together so that the promises hold. They are public for whoever
//! needs to put them together differently: a receiver that is broken on purpose, to see that the
//! simulator notices, or a test that needs a state of its own. Each runs in the transaction of the
//! connection it is given.

use bytes::Bytes;
use hookproof_core::id::{EventId, SourceId};
use hookproof_core::inbox::{Entry, Phase};
use hookproof_core::time::Timestamp;
use hookproof_runtime::database::StoreError;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::ordering::Versioned;
use crate::store::{Totals, Work};

/// The name of a phase in the column `phase`.
#[must_use]
pub fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending { .. } => "pending",
        Phase::Claimed { .. } => "claimed",
        Phase::Applied { .. } => "applied",
        Phase::Superseded { .. } => "superseded",
        Phase::Dead { .. } => "dead",
    }
}

/// Inserts an entry with its body.
///
/// # Errors
///
/// [`StoreError`], also if the inbox holds that event of that source already.
pub fn insert_entry(
    connection: &Connection,
    entry: &Entry,
    body: &[u8],
    content_type: &str,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO inbox (source, event_id, body, content_type, received_at, version,
                                attempts, phase, wake_at, state)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            entry.source.as_str(),
            entry.event_id.as_str(),
            body,
            content_type,
            entry.received_at.as_millis(),
            signed(entry.version)?,
            entry.attempts,
            phase_name(entry.phase),
            entry.wake_at().map(Timestamp::as_millis),
            to_json(entry)?,
        ])?;
    Ok(())
}

/// Replaces an entry by its next version.
///
/// # Errors
///
/// [`StoreError::Corrupt`] unless the version before is stored.
pub fn update_entry(connection: &Connection, entry: &Entry) -> Result<(), StoreError> {
    let changed = connection
        .prepare_cached(
            "UPDATE inbox SET version = ?3, attempts = ?4, phase = ?5, wake_at = ?6, state = ?7
             WHERE source = ?1 AND event_id = ?2 AND version = ?3 - 1",
        )?
        .execute(params![
            entry.source.as_str(),
            entry.event_id.as_str(),
            signed(entry.version)?,
            entry.attempts,
            phase_name(entry.phase),
            entry.wake_at().map(Timestamp::as_millis),
            to_json(entry)?,
        ])?;
    if changed == 1 {
        return Ok(());
    }
    Err(StoreError::Corrupt(format!(
        "event {} of source {} is not stored in the version before {}",
        entry.event_id, entry.source, entry.version
    )))
}

/// Counts one more duplicate of a recorded event.
///
/// # Errors
///
/// [`StoreError`].
pub fn count_duplicate(
    connection: &Connection,
    source: &SourceId,
    event_id: &EventId,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE inbox SET duplicates = duplicates + 1 WHERE source = ?1 AND event_id = ?2",
        )?
        .execute(params![source.as_str(), event_id.as_str()])?;
    Ok(())
}

/// Inserts an effect into the ledger, which takes as many for one event as it is given: see the
/// schema for why.
///
/// # Errors
///
/// [`StoreError`].
pub fn insert_effect(
    connection: &Connection,
    source: &SourceId,
    event_id: &EventId,
    applied_at: Timestamp,
    summary: &str,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO effects (source, event_id, applied_at, summary) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![source.as_str(), event_id.as_str(), applied_at.as_millis(), summary])?;
    Ok(())
}

/// The version of an entity that is applied, if any is.
///
/// # Errors
///
/// [`StoreError`].
pub fn entity_version(
    connection: &Connection,
    source: &SourceId,
    entity: &str,
) -> Result<Option<u64>, StoreError> {
    Ok(connection
        .prepare_cached("SELECT version FROM entities WHERE source = ?1 AND entity = ?2")?
        .query_row([source.as_str(), entity], |row| count(row, 0))
        .optional()?)
}

/// Remembers the version of an entity that the effect of `entry` brings.
///
/// # Errors
///
/// [`StoreError`].
pub fn set_entity_version(
    connection: &Connection,
    entry: &Entry,
    versioned: &Versioned,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO entities (source, entity, version, event_id) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET version = excluded.version, event_id = excluded.event_id",
        )?
        .execute(params![
            entry.source.as_str(),
            versioned.entity,
            signed(versioned.version)?,
            entry.event_id.as_str()
        ])?;
    Ok(())
}

/// Asks for an entity to be fetched again, because the event of `entry` came too late.
///
/// # Errors
///
/// [`StoreError`].
pub fn insert_reconciliation(
    connection: &Connection,
    entry: &Entry,
    versioned: &Versioned,
    now: Timestamp,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO reconciliations (source, entity, version, event_id, asked_at)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            entry.source.as_str(),
            versioned.entity,
            signed(versioned.version)?,
            entry.event_id.as_str(),
            now.as_millis()
        ])?;
    Ok(())
}

/// The entry of an event, if it is recorded.
///
/// # Errors
///
/// [`StoreError`].
pub fn load_entry(
    connection: &Connection,
    source: &SourceId,
    event_id: &EventId,
) -> Result<Option<Entry>, StoreError> {
    Ok(connection
        .prepare_cached("SELECT state FROM inbox WHERE source = ?1 AND event_id = ?2")?
        .query_row([source.as_str(), event_id.as_str()], |row| entry(row, 0))
        .optional()?)
}

/// The pending entry that has been due longest, with its body; it is not claimed by this.
///
/// # Errors
///
/// [`StoreError`].
pub fn first_due(connection: &Connection, now: Timestamp) -> Result<Option<Work>, StoreError> {
    let work = |row: &Row<'_>| {
        Ok(Work {
            entry: entry(row, 0)?,
            body: Bytes::from(row.get::<_, Vec<u8>>(1)?),
            content_type: row.get(2)?,
        })
    };
    Ok(connection
        .prepare_cached(
            "SELECT state, body, content_type FROM inbox WHERE phase = 'pending' AND wake_at <= ?1
             ORDER BY wake_at, seq LIMIT 1",
        )?
        .query_row([now.as_millis()], work)
        .optional()?)
}

/// The claimed entries whose lease ends at `until` or before, those first that end first.
///
/// # Errors
///
/// [`StoreError`].
pub fn claimed(connection: &Connection, until: Timestamp) -> Result<Vec<Entry>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT state FROM inbox WHERE phase = 'claimed' AND wake_at <= ?1 ORDER BY wake_at, seq",
    )?;
    let rows = statement.query_map([until.as_millis()], |row| entry(row, 0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// When the first entry is due or the first claim ends.
///
/// # Errors
///
/// [`StoreError`].
pub fn next_wake(connection: &Connection) -> Result<Option<Timestamp>, StoreError> {
    let first: Option<i64> = connection
        .prepare_cached(
            "SELECT min(wake_at) FROM (
                 SELECT min(wake_at) AS wake_at FROM inbox WHERE phase = 'pending'
                 UNION ALL
                 SELECT min(wake_at) FROM inbox WHERE phase = 'claimed')",
        )?
        .query_row([], |row| row.get(0))?;
    Ok(first.map(Timestamp::from_millis))
}

/// How many effects an event id has had: from one source, or over all of them.
///
/// # Errors
///
/// [`StoreError`].
pub fn count_effects(
    connection: &Connection,
    event_id: &EventId,
    source: Option<&SourceId>,
) -> Result<u64, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT count(*) FROM effects WHERE event_id = ?1 AND (?2 IS NULL OR source = ?2)",
    )?;
    let source = source.map(SourceId::as_str);
    Ok(statement.query_row(params![event_id.as_str(), source], |row| count(row, 0))?)
}

/// How much there is of what.
///
/// # Errors
///
/// [`StoreError`].
pub fn totals(connection: &Connection) -> Result<Totals, StoreError> {
    let inbox =
        "SELECT count(*), coalesce(sum(phase = 'pending'), 0), coalesce(sum(phase = 'claimed'), 0),
                        coalesce(sum(phase = 'applied'), 0), coalesce(sum(phase = 'superseded'), 0),
                        coalesce(sum(phase = 'dead'), 0), coalesce(sum(duplicates), 0)
                 FROM inbox";
    let mut totals = connection.prepare_cached(inbox)?.query_row([], |row| {
        Ok(Totals {
            events: count(row, 0)?,
            pending: count(row, 1)?,
            claimed: count(row, 2)?,
            applied: count(row, 3)?,
            superseded: count(row, 4)?,
            dead: count(row, 5)?,
            duplicates: count(row, 6)?,
            ..Totals::default()
        })
    })?;
    let effects = "SELECT coalesce(sum(n), 0), coalesce(sum(n > 1), 0)
                   FROM (SELECT count(*) AS n FROM effects GROUP BY event_id, source)";
    (totals.effects, totals.effects_twice) = connection
        .prepare_cached(effects)?
        .query_row([], |row| Ok((count(row, 0)?, count(row, 1)?)))?;
    let waiting = "SELECT count(*) FROM reconciliations";
    totals.to_reconcile = connection.prepare_cached(waiting)?.query_row([], |row| count(row, 0))?;
    Ok(totals)
}

fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let count: i64 = row.get(column)?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// SQLite's integers are signed.
fn signed(version: u64) -> Result<i64, StoreError> {
    i64::try_from(version).map_err(|error| StoreError::Corrupt(error.to_string()))
}

fn to_json(entry: &Entry) -> Result<String, StoreError> {
    serde_json::to_string(entry).map_err(|error| StoreError::Corrupt(error.to_string()))
}

fn entry(row: &Row<'_>, column: usize) -> rusqlite::Result<Entry> {
    let text = row.get_ref(column)?.as_str()?;
    serde_json::from_str(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
    })
}
