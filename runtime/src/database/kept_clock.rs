//! The latest time at which a database was written.
//!
//! What is due is stored as a time. If the clock is set back while no process runs, whoever starts next
//! would wait until that time comes again. It begins with this one instead: see
//! [`Host::not_before`](crate::host::Host::not_before).

use hookproof_core::time::{Millis, Timestamp};
use rusqlite::Connection;

/// How much later it must be before the time is stored again: by so much, at most, a wait can be
/// prolonged, and a busy writer has one row more to write once a second.
const PRECISION: Millis = Millis::from_secs(1);

/// What is stored of the clock.
#[derive(Clone, Copy, Default)]
pub(super) struct KeptClock {
    /// `None` until this process has written it.
    kept: Option<Timestamp>,
    /// How many rows the connection had changed then.
    changes: u64,
}

impl KeptClock {
    /// Creates its table, which belongs to no schema.
    pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS hookproof_clock (
                 only   INTEGER PRIMARY KEY CHECK (only = 0),
                 latest INTEGER NOT NULL               -- milliseconds since the epoch, UTC
             ) STRICT",
        )
    }

    /// What is stored.
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Option<Timestamp>> {
        let latest: Option<i64> =
            connection
                .query_row("SELECT max(latest) FROM hookproof_clock", [], |row| row.get(0))?;
        Ok(latest.map(Timestamp::from_millis))
    }

    /// Stores the time with what a transaction changed, if it changed anything. It is kept once that is
    /// committed.
    pub(super) fn keep(self, connection: &Connection, now: Timestamp) -> rusqlite::Result<Self> {
        let changes = connection.total_changes();
        let is_kept = self.kept.is_some_and(|kept| now.since(kept) < PRECISION);
        if changes == self.changes || is_kept {
            return Ok(Self { changes, ..self });
        }
        connection
            .prepare_cached(
                "INSERT INTO hookproof_clock (only, latest) VALUES (0, ?1)
                 ON CONFLICT DO UPDATE SET latest = max(latest, excluded.latest)",
            )?
            .execute([now.as_millis()])?;
        Ok(Self { kept: Some(now), changes: connection.total_changes() })
    }
}
