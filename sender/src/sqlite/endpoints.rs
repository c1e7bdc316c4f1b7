//! Rows of `endpoints`. The row of a deleted endpoint stays, since deliveries refer to it, but nobody
//! finds it and its secrets are gone.

use hookproof_core::endpoint::{Endpoint, EndpointStatus};
use hookproof_core::gate::StoredGate;
use hookproof_core::id::EndpointId;
use hookproof_core::secret::Secrets;
use hookproof_core::time::Timestamp;
use hookproof_runtime::database::StoreError;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{Read, Unreadable, checked, each, from_json, to_json};
use crate::store::DueEndpoint;

const COLUMNS: &str = "id, url, secrets, event_types, status, created_at";

pub(super) fn status_name(status: EndpointStatus) -> &'static str {
    match status {
        EndpointStatus::Enabled => "enabled",
        EndpointStatus::Disabled => "disabled",
    }
}

pub(super) fn insert(connection: &Connection, endpoint: &Endpoint) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO endpoints (id, url, secrets, event_types, status, gate, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            endpoint.id.as_str(),
            endpoint.url,
            to_json(&endpoint.secrets)?,
            to_json(&endpoint.event_types)?,
            status_name(endpoint.status),
            to_json(&StoredGate::default())?,
            endpoint.created_at.as_millis(),
        ])?;
    Ok(())
}

pub(super) fn all(connection: &Connection) -> Result<Vec<Endpoint>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM endpoints WHERE status <> 'deleted' ORDER BY created_at, id"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn one(
    connection: &Connection,
    id: &EndpointId,
) -> Result<Option<Endpoint>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM endpoints WHERE id = ?1 AND status <> 'deleted'");
    Ok(connection.prepare_cached(&sql)?.query_row([id.as_str()], read).optional()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Endpoint> {
    let status = match row.get_ref(4)?.as_str()? {
        "enabled" => EndpointStatus::Enabled,
        _ => EndpointStatus::Disabled,
    };
    Ok(Endpoint {
        id: checked(row, 0)?,
        url: row.get(1)?,
        secrets: from_json(row, 2)?,
        event_types: from_json(row, 3)?,
        status,
        created_at: Timestamp::from_millis(row.get(5)?),
    })
}

pub(super) fn set_status(
    connection: &Connection,
    id: &EndpointId,
    status: EndpointStatus,
) -> Result<bool, StoreError> {
    let changed = connection
        .prepare_cached("UPDATE endpoints SET status = ?2 WHERE id = ?1 AND status <> 'deleted'")?
        .execute([id.as_str(), status_name(status)])?;
    Ok(changed > 0)
}

pub(super) fn set_secrets(
    connection: &Connection,
    id: &EndpointId,
    secrets: &Secrets,
) -> Result<bool, StoreError> {
    let changed = connection
        .prepare_cached("UPDATE endpoints SET secrets = ?2 WHERE id = ?1 AND status <> 'deleted'")?
        .execute([id.as_str(), &to_json(secrets)?])?;
    Ok(changed > 0)
}

pub(super) fn delete(connection: &Connection, id: &EndpointId) -> Result<bool, StoreError> {
    let changed = connection
        .prepare_cached(
            "UPDATE endpoints SET status = 'deleted', secrets = '[]'
             WHERE id = ?1 AND status <> 'deleted'",
        )?
        .execute([id.as_str()])?;
    Ok(changed > 0)
}

/// Writes a gate, unless a later one is stored: attempts that end at the same time are recorded in
/// any order.
pub(super) fn set_gate(
    connection: &Connection,
    id: &EndpointId,
    gate: &StoredGate,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE endpoints SET gate = ?2, gate_sequence = ?3
             WHERE id = ?1 AND gate_sequence < ?3",
        )?
        .execute(params![id.as_str(), to_json(gate)?, sequence(gate)?])?;
    Ok(())
}

/// SQLite's integers are signed.
fn sequence(gate: &StoredGate) -> Result<i64, StoreError> {
    i64::try_from(gate.sequence).map_err(|error| StoreError::Corrupt(error.to_string()))
}

pub(super) fn gate(
    connection: &Connection,
    id: &EndpointId,
) -> Result<Option<StoredGate>, StoreError> {
    let read = |row: &Row<'_>| {
        let sequence: i64 = row.get(1)?;
        let as_new = StoredGate::unreadable(u64::try_from(sequence).unwrap_or_default());
        Ok(from_json(row, 0).unwrap_or(as_new))
    };
    let mut statement = connection.prepare_cached(
        "SELECT gate, gate_sequence FROM endpoints WHERE id = ?1 AND status <> 'deleted'",
    )?;
    Ok(statement.query_row([id.as_str()], read).optional()?)
}

/// An endpoint whose row cannot be read gets no attempts; what waits for it is kept. It is the one
/// place that says so, and says it once.
pub(super) fn disable_unreadable(
    connection: &Connection,
    unreadable: &[Unreadable<String>],
) -> Result<(), StoreError> {
    for Unreadable { key, error } in unreadable {
        tracing::error!(
            endpoint = key, %error,
            "the row of an endpoint cannot be read; it is disabled, and what waits for it is kept"
        );
        connection
            .prepare_cached("UPDATE endpoints SET status = 'disabled' WHERE id = ?1")?
            .execute([key])?;
    }
    Ok(())
}

/// Per endpoint two look-ups in the index of what is scheduled, whatever the length of its backlog.
pub(super) fn due(
    connection: &Connection,
    now: Timestamp,
) -> Result<Read<DueEndpoint, String>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT id, gate,
                (SELECT min(wake_at) FROM deliveries
                 WHERE endpoint_id = endpoints.id AND phase = 'scheduled'),
                (SELECT min(wake_at) FROM deliveries
                 WHERE endpoint_id = endpoints.id AND phase = 'scheduled' AND wake_at > ?1)
         FROM endpoints WHERE status = 'enabled' ORDER BY id",
    )?;
    each(statement.query([now.as_millis()])?, "id", |row| {
        let first: Option<i64> = row.get(2)?;
        let next: Option<i64> = row.get(3)?;
        Ok(DueEndpoint {
            id: checked(row, 0)?,
            gate: from_json(row, 1)?,
            is_due: first.is_some_and(|first| first <= now.as_millis()),
            next_due: next.map(Timestamp::from_millis),
        })
    })
}
