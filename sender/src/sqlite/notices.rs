//! Rows of `notices`: what owners must be told.

use hookproof_core::delivery::Committed;
use hookproof_core::time::Timestamp;
use hookproof_runtime::database::StoreError;
use rusqlite::{Connection, params};

use super::{checked, from_json, to_json};
use crate::store::{NoticeReason, PendingNotice};

pub(super) fn insert(
    connection: &Connection,
    committed: &Committed,
    reason: NoticeReason,
    disables: bool,
    now: Timestamp,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO notices (delivery_id, endpoint_id, reason, disables, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            committed.delivery.id.as_str(),
            committed.delivery.endpoint_id.as_str(),
            to_json(&reason)?,
            disables,
            now.as_millis(),
        ])?;
    Ok(())
}

pub(super) fn pending(
    connection: &Connection,
    limit: u32,
) -> Result<Vec<PendingNotice>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT id, delivery_id, endpoint_id, reason, disables FROM notices
         WHERE sent_at IS NULL ORDER BY id LIMIT ?1",
    )?;
    let rows = statement.query_map([limit], |row| {
        Ok(PendingNotice {
            id: row.get(0)?,
            delivery_id: checked(row, 1)?,
            endpoint_id: checked(row, 2)?,
            reason: from_json(row, 3)?,
            disables_endpoint: row.get(4)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn sent(connection: &Connection, id: i64, now: Timestamp) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE notices SET sent_at = ?2 WHERE id = ?1 AND sent_at IS NULL")?
        .execute(params![id, now.as_millis()])?;
    Ok(())
}
