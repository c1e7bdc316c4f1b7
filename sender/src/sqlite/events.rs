//! Rows of `events`, and the fan-out to deliveries in the same transaction.

use hookproof_core::delivery::Delivery;
use hookproof_core::event::Event;
use hookproof_core::id::{DeliveryId, EventId};
use hookproof_core::time::Timestamp;
use hookproof_runtime::database::StoreError;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{checked, deliveries, endpoints};
use crate::store::{Publication, Published, shared};

pub(super) fn publish(
    connection: &Connection,
    publication: &Publication,
) -> Result<Published, StoreError> {
    if let Some(key) = &publication.idempotency_key
        && let Some(earlier) = by_key(connection, key)?
    {
        return replay(connection, &publication.event, earlier);
    }
    let event = &publication.event;
    insert(connection, event, publication.idempotency_key.as_deref())?;
    let mut fan_out = 0;
    for endpoint in endpoints::wanting(connection, &event.event_type)? {
        let id = DeliveryId::of(&event.id, &endpoint);
        let delivery = Delivery::new(id, event.id.clone(), endpoint, event.created_at);
        deliveries::insert(connection, &delivery)?;
        fan_out += 1;
    }
    Ok(Published::New { event_id: event.id.clone(), deliveries: fan_out })
}

fn replay(connection: &Connection, asked: &Event, earlier: Event) -> Result<Published, StoreError> {
    let same = earlier.event_type == asked.event_type
        && earlier.content_type == asked.content_type
        && earlier.body == asked.body;
    if !same {
        return Ok(Published::Conflict { event_id: earlier.id });
    }
    let deliveries = connection
        .prepare_cached("SELECT count(*) FROM deliveries WHERE event_id = ?1")?
        .query_row([earlier.id.as_str()], |row| row.get::<_, u32>(0))?;
    Ok(Published::Replayed { event_id: earlier.id, deliveries: deliveries as usize })
}

fn insert(
    connection: &Connection,
    event: &Event,
    idempotency_key: Option<&str>,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO events (id, event_type, content_type, body, idempotency_key, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            event.id.as_str(),
            event.event_type.as_str(),
            event.content_type,
            &event.body[..],
            idempotency_key,
            event.created_at.as_millis(),
        ])?;
    Ok(())
}

fn by_key(connection: &Connection, key: &str) -> Result<Option<Event>, StoreError> {
    select(connection, "idempotency_key", key)
}

pub(super) fn find(connection: &Connection, id: &EventId) -> Result<Option<Event>, StoreError> {
    select(connection, "id", id.as_str())
}

/// The event of a delivery, which is there as long as the delivery is: the schema has it so.
pub(super) fn one(connection: &Connection, id: &EventId) -> Result<Event, StoreError> {
    find(connection, id)?
        .ok_or_else(|| StoreError::Corrupt(format!("event {id} of a delivery is missing")))
}

fn select(
    connection: &Connection,
    column: &'static str,
    value: &str,
) -> Result<Option<Event>, StoreError> {
    let sql = format!(
        "SELECT id, event_type, content_type, body, created_at FROM events WHERE {column} = ?1"
    );
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Event {
            id: checked(row, 0)?,
            event_type: checked(row, 1)?,
            content_type: row.get(2)?,
            body: shared(row.get(3)?),
            created_at: Timestamp::from_millis(row.get(4)?),
        })
    };
    Ok(connection.prepare_cached(&sql)?.query_row([value], read).optional()?)
}
