//! Rows of `deliveries` and `attempts`.

use hookproof_core::delivery::{Committed, Delivery, Phase, Rejected, Step};
use hookproof_core::endpoint::EndpointStatus;
use hookproof_core::id::{DeliveryId, EndpointId};
use hookproof_core::time::Timestamp;
use hookproof_runtime::database::StoreError;
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};

use super::{
    Read, Unreadable, checked, each, endpoints, events, from_json, notices, readable, to_json,
};
use crate::store::{
    Aged, Beside, Claimed, DeliveryFilter, EndpointReason, History, ListedAttempt, ListedDelivery,
    NoticeReason, Totals,
};

pub(super) fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Scheduled { .. } => "scheduled",
        Phase::InFlight { .. } => "in_flight",
        Phase::Delivered { .. } => "delivered",
        Phase::Dead { .. } => "dead",
        Phase::Cancelled { .. } => "cancelled",
    }
}

pub(super) fn insert(connection: &Connection, delivery: &Delivery) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO deliveries
             (id, event_id, endpoint_id, version, phase, attempts, wake_at, state, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            delivery.id.as_str(),
            delivery.event_id.as_str(),
            delivery.endpoint_id.as_str(),
            version(delivery)?,
            phase_name(delivery.phase),
            delivery.attempts,
            delivery.wake_at().map(|(at, _)| at.as_millis()),
            to_json(delivery)?,
            delivery.created_at.as_millis(),
        ])?;
    Ok(())
}

/// SQLite's integers are signed.
fn version(delivery: &Delivery) -> Result<i64, StoreError> {
    i64::try_from(delivery.version).map_err(|error| StoreError::Corrupt(error.to_string()))
}

fn load(connection: &Connection, id: &DeliveryId) -> Result<Option<Delivery>, StoreError> {
    Ok(connection
        .prepare_cached("SELECT state FROM deliveries WHERE id = ?1")?
        .query_row([id.as_str()], |row| from_json(row, 0))
        .optional()?)
}

/// Load, decide, persist: the step becomes true here or not at all.
pub(super) fn commit(
    connection: &Connection,
    step: Step,
    beside: &Beside,
) -> Result<Result<Committed, Rejected>, StoreError> {
    let id = step.next().id.clone();
    let stored = load(connection, &id)?
        .ok_or_else(|| StoreError::Corrupt(format!("delivery {id} is missing")))?;
    let committed = match step.onto(&stored) {
        Ok(committed) => committed,
        Err(rejected) => return Ok(Err(rejected)),
    };
    update(connection, &committed)?;
    if let Some(record) = &committed.record {
        connection
            .prepare_cached(
                "INSERT INTO attempts (delivery_id, attempt, record, excerpt)
                 VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![id.as_str(), record.attempt, to_json(record)?, beside.excerpt])?;
    }
    let endpoint = &committed.delivery.endpoint_id;
    if let Some(gate) = &beside.gate {
        endpoints::set_gate(connection, endpoint, gate)?;
    }
    let at = match (&committed.record, committed.delivery.phase) {
        (Some(record), _) => record.finished_at,
        (None, Phase::Dead { at, .. }) => at,
        (None, _) => committed.delivery.created_at,
    };
    if let Some(notice) = committed.notice {
        let reason = NoticeReason::Dead(notice.reason);
        notices::insert(connection, &committed, reason, committed.disables_endpoint, at)?;
    }
    if let Some(reason) = beside.endpoint {
        let told = NoticeReason::Endpoint(reason);
        notices::insert(connection, &committed, told, reason.disables(), at)?;
    }
    if committed.disables_endpoint || beside.endpoint.is_some_and(EndpointReason::disables) {
        endpoints::set_status(connection, endpoint, EndpointStatus::Disabled)?;
    }
    Ok(Ok(committed))
}

fn update(connection: &Connection, committed: &Committed) -> Result<(), StoreError> {
    let delivery = &committed.delivery;
    let changed = connection
        .prepare_cached(
            "UPDATE deliveries
             SET version = ?2, phase = ?3, attempts = ?4, wake_at = ?5, state = ?6,
                 last_outcome = coalesce(?7, last_outcome)
             WHERE id = ?1 AND version = ?2 - 1",
        )?
        .execute(params![
            delivery.id.as_str(),
            version(delivery)?,
            phase_name(delivery.phase),
            delivery.attempts,
            delivery.wake_at().map(|(at, _)| at.as_millis()),
            to_json(delivery)?,
            committed.record.map(|record| record.outcome.to_string()),
        ])?;
    if changed == 1 {
        Ok(())
    } else {
        Err(StoreError::Corrupt(format!("delivery {} has two versions", delivery.id)))
    }
}

pub(super) fn claim(
    connection: &Connection,
    step: Step,
) -> Result<Result<Claimed, Rejected>, StoreError> {
    let delivery = step.next();
    let endpoint = match readable(endpoints::one(connection, &delivery.endpoint_id))? {
        Ok(Some(endpoint)) => endpoint,
        Ok(None) => return Ok(Err(Rejected::EndpointDisabled)),
        Err(error) => {
            let key = delivery.endpoint_id.as_str().to_owned();
            endpoints::disable_unreadable(connection, &[Unreadable { key, error }])?;
            return Ok(Err(Rejected::EndpointDisabled));
        }
    };
    if endpoint.status == EndpointStatus::Disabled {
        return Ok(Err(Rejected::EndpointDisabled));
    }
    let event = match readable(events::one(connection, &delivery.event_id))? {
        Ok(event) => event,
        Err(error) => {
            let key = seq(connection, &delivery.id)?;
            set_aside(connection, &[Unreadable { key, error }])?;
            return Ok(Err(Rejected::Settled));
        }
    };
    Ok(commit(connection, step, &Beside::default())?.map(|committed| Claimed {
        delivery: committed.delivery,
        event,
        endpoint,
    }))
}

fn seq(connection: &Connection, id: &DeliveryId) -> Result<i64, StoreError> {
    Ok(connection
        .prepare_cached("SELECT seq FROM deliveries WHERE id = ?1")?
        .query_row([id.as_str()], |row| row.get(0))?)
}

pub(super) fn due(
    connection: &Connection,
    endpoint: &EndpointId,
    now: Timestamp,
    limit: u32,
) -> Result<Read<Delivery>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT state, seq FROM deliveries
         WHERE endpoint_id = ?1 AND phase = 'scheduled' AND wake_at <= ?2
         ORDER BY wake_at, seq LIMIT ?3",
    )?;
    let rows = statement.query(params![endpoint.as_str(), now.as_millis(), limit])?;
    each(rows, "seq", |row| from_json(row, 0))
}

/// Replays are made at any age, so they are left out: else they would take the places of the others.
pub(super) fn aged(
    connection: &Connection,
    endpoint: &EndpointId,
    before: Timestamp,
    limit: u32,
) -> Result<Aged, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT state FROM deliveries
         WHERE endpoint_id = ?1 AND phase = 'scheduled' AND created_at < ?2
           AND json_extract(state, '$.phase.origin.by') = 'schedule'
         ORDER BY created_at, seq LIMIT ?3",
    )?;
    let rows = statement
        .query_map(params![endpoint.as_str(), before.as_millis(), limit], |row| {
            from_json(row, 0)
        })?;
    let deliveries = rows.collect::<Result<_, _>>()?;
    let next: Option<i64> = connection
        .prepare_cached(
            "SELECT min(created_at) FROM deliveries
             WHERE endpoint_id = ?1 AND phase = 'scheduled' AND created_at >= ?2",
        )?
        .query_row(params![endpoint.as_str(), before.as_millis()], |row| row.get(0))?;
    Ok(Aged { deliveries, next_created_at: next.map(Timestamp::from_millis) })
}

pub(super) fn leased(
    connection: &Connection,
    until: Timestamp,
    limit: u32,
) -> Result<Read<Delivery>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT state, seq FROM deliveries WHERE phase = 'in_flight' AND wake_at <= ?1
         ORDER BY wake_at, seq LIMIT ?2",
    )?;
    each(statement.query(params![until.as_millis(), limit])?, "seq", |row| from_json(row, 0))
}

/// What waits for deleted endpoints.
pub(super) fn orphaned(connection: &Connection, limit: u32) -> Result<Read<Delivery>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT d.state, d.seq FROM endpoints e
         JOIN deliveries d ON d.endpoint_id = e.id AND d.phase = 'scheduled'
         WHERE e.status = 'deleted' LIMIT ?1",
    )?;
    each(statement.query([limit])?, "seq", |row| from_json(row, 0))
}

/// Whether an attempt to a deleted endpoint is under way.
pub(super) fn is_orphan_under_way(connection: &Connection) -> Result<bool, StoreError> {
    let is_one = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM deliveries d
                            JOIN endpoints e ON e.id = d.endpoint_id AND e.status = 'deleted'
                            WHERE d.phase = 'in_flight')",
        )?
        .query_row([], |row| row.get(0))?;
    Ok(is_one)
}

/// What cannot be read gets no attempt, and no query finds it again but the totals. Its `state` stays
/// as it is, for whoever mends it.
pub(super) fn set_aside(
    connection: &Connection,
    unreadable: &[Unreadable<i64>],
) -> Result<(), StoreError> {
    for Unreadable { key, error } in unreadable {
        let id: String = connection
            .prepare_cached(
                "UPDATE deliveries SET phase = 'unreadable', wake_at = NULL WHERE seq = ?1
                 RETURNING id",
            )?
            .query_row([key], |row| row.get(0))?;
        tracing::error!(delivery = id, %error, "a delivery cannot be read; it is set aside");
    }
    Ok(())
}

pub(super) fn next_lease_end(
    connection: &Connection,
    after: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let end: Option<i64> = connection
        .prepare_cached(
            "SELECT min(wake_at) FROM deliveries WHERE phase = 'in_flight' AND wake_at > ?1",
        )?
        .query_row([after.as_millis()], |row| row.get(0))?;
    Ok(end.map(Timestamp::from_millis))
}

const LISTED: &str = "SELECT d.state, e.event_type, d.last_outcome
                      FROM deliveries d JOIN events e ON e.id = d.event_id";

fn listed(row: &Row<'_>) -> rusqlite::Result<ListedDelivery> {
    Ok(ListedDelivery {
        delivery: from_json(row, 0)?,
        event_type: checked(row, 1)?,
        last_outcome: row.get(2)?,
    })
}

pub(super) fn one(
    connection: &Connection,
    id: &DeliveryId,
) -> Result<Option<ListedDelivery>, StoreError> {
    let sql = format!("{LISTED} WHERE d.id = ?1");
    Ok(connection.prepare_cached(&sql)?.query_row([id.as_str()], listed).optional()?)
}

pub(super) fn list(
    connection: &Connection,
    filter: &DeliveryFilter,
) -> Result<Vec<ListedDelivery>, StoreError> {
    // Only what is asked for, so that each index can be used.
    let mut wanted = vec!["d.phase <> 'unreadable'"];
    let mut values: Vec<&dyn ToSql> = Vec::new();
    let event = filter.event.as_ref().map(|id| id.as_str());
    let endpoint = filter.endpoint.as_ref().map(|id| id.as_str());
    let after = filter.after.as_ref().map(|id| id.as_str());
    let conditions: [(&str, Option<&dyn ToSql>); 4] = [
        ("d.event_id = ?", event.as_ref().map(|id| id as &dyn ToSql)),
        ("d.endpoint_id = ?", endpoint.as_ref().map(|id| id as &dyn ToSql)),
        ("d.phase = ?", filter.phase.as_ref().map(|phase| phase as &dyn ToSql)),
        (
            "d.seq > (SELECT seq FROM deliveries WHERE id = ?)",
            after.as_ref().map(|id| id as &dyn ToSql),
        ),
    ];
    for (condition, value) in conditions {
        wanted.extend(value.map(|_| condition));
        values.extend(value);
    }
    values.push(&filter.limit);
    let sql = format!("{LISTED} WHERE {} ORDER BY d.seq LIMIT ?", wanted.join(" AND "));
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(&values[..], listed)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn history(
    connection: &Connection,
    id: &DeliveryId,
) -> Result<Option<History>, StoreError> {
    let Some(listed) = one(connection, id)? else { return Ok(None) };
    Ok(Some(History { listed, history: attempts(connection, id)? }))
}

fn attempts(connection: &Connection, id: &DeliveryId) -> Result<Vec<ListedAttempt>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT record, excerpt FROM attempts WHERE delivery_id = ?1 ORDER BY attempt",
    )?;
    let rows = statement.query_map([id.as_str()], |row| {
        Ok(ListedAttempt {
            record: from_json(row, 0)?,
            excerpt: String::from_utf8_lossy(row.get_ref(1)?.as_blob()?).into_owned(),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn totals(connection: &Connection) -> Result<Totals, StoreError> {
    let count = |sql: &str| -> Result<u64, StoreError> {
        let count: i64 = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        Ok(u64::try_from(count).unwrap_or(0))
    };
    let phase =
        |name: &str| count(&format!("SELECT count(*) FROM deliveries WHERE phase = '{name}'"));
    Ok(Totals {
        events: count("SELECT count(*) FROM events")?,
        scheduled: phase("scheduled")?,
        in_flight: phase("in_flight")?,
        delivered: phase("delivered")?,
        dead: phase("dead")?,
        cancelled: phase("cancelled")?,
        unreadable: phase("unreadable")?,
        attempts: count("SELECT count(*) FROM attempts")?,
        notices_pending: count("SELECT count(*) FROM notices WHERE sent_at IS NULL")?,
    })
}
