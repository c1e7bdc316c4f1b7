//! What a received event brings about: the place where your own code goes.
//!
//! An effect is written within the transaction that marks its entry, so that there is never one
//! without the other. That holds for what is in the same database, and for nothing else: a call to
//! another service from here would happen again after a crash before the commit. What is to happen there
//! is called by [`crate::downstream`].
//!
//! ```
//! use hookproof_core::time::Timestamp;
//! use hookproof_receiver::effect::{Effect, EffectError};
//! use hookproof_receiver::store::Work;
//! use rusqlite::Connection;
//!
//! /// Counts what was paid, in a table that a user made in the receiver's database.
//! #[derive(Clone)]
//! struct Paid;
//!
//! impl Effect for Paid {
//!     fn apply(&self, t: &Connection, work: &Work, _now: Timestamp) -> Result<(), EffectError> {
//!         let event: serde_json::Value =
//!             serde_json::from_slice(&work.body).map_err(EffectError::new)?;
//!         let cents = event["data"]["cents"].as_i64().ok_or(EffectError::new("no amount"))?;
//!         t.execute("UPDATE account SET cents = cents + ?1", [cents])?;
//!         Ok(())
//!     }
//! }
//! ```
//!
//! [`crate::sqlite::SqliteInbox::open_with`] takes it in place of [`Ledger`].

use std::fmt;

use hookproof_core::time::Timestamp;
use rusqlite::Connection;
use serde::Deserialize;

use crate::sqlite::rows;
use crate::store::Work;

/// The longest summary, in characters.
pub const SUMMARY_CHARS_MAX: usize = 128;

/// A business effect.
pub trait Effect: Clone + Send + Sync + 'static {
    /// Applies the effect of `work` within `transaction`: neither commit nor roll back there, write
    /// nothing elsewhere. A panic undoes everything and counts as a failure of the store.
    ///
    /// # Errors
    ///
    /// [`EffectError`]: whatever was written here is undone, and the effect is tried again by the
    /// schedule of the inbox until that ends.
    fn apply(
        &self,
        transaction: &Connection,
        work: &Work,
        now: Timestamp,
    ) -> Result<(), EffectError>;
}

/// Why an effect failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EffectError(String);

impl EffectError {
    /// A failure, in words for the log.
    pub fn new(why: impl fmt::Display) -> Self {
        Self(why.to_string())
    }
}

impl fmt::Display for EffectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl std::error::Error for EffectError {}

impl From<rusqlite::Error> for EffectError {
    /// A store that cannot write at all refuses the record of this failure as well, and then the
    /// end of the lease brings the entry back without a verdict.
    fn from(error: rusqlite::Error) -> Self {
        Self::new(error)
    }
}

/// The effect of the reference receiver: one row in the ledger `effects`, where anybody can count
/// how often an event took effect.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ledger;

impl Effect for Ledger {
    fn apply(
        &self,
        transaction: &Connection,
        work: &Work,
        now: Timestamp,
    ) -> Result<(), EffectError> {
        let entry = &work.entry;
        let summary = summary(&work.body);
        rows::insert_effect(transaction, &entry.source, &entry.event_id, now, &summary)
            .map_err(EffectError::new)
    }
}

/// What an event was about, in at most [`SUMMARY_CHARS_MAX`] characters: the `type` of a JSON body
/// (as Standard Webhooks recommends one), else its size. A body that is no JSON is a body like any
/// other: its signature holds.
#[must_use]
pub fn summary(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Typed {
        r#type: String,
    }
    match serde_json::from_slice::<Typed>(body) {
        Ok(typed) => typed.r#type.chars().take(SUMMARY_CHARS_MAX).collect(),
        Err(_) => format!("{} bytes", body.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::{SUMMARY_CHARS_MAX, summary};

    #[test]
    fn a_summary_is_the_type_of_a_json_body_and_else_its_size() {
        let check = |body: &[u8], expected: &str| {
            assert_eq!(summary(body), expected, "{}", body.escape_ascii());
        };
        check(br#"{"type":"order.paid","data":{"id":1}}"#, "order.paid");
        check(br#"{"data":{"type":"inner"},"type":"outer"}"#, "outer");
        check(br#"{"type":7}"#, "10 bytes");
        check(br#"{"data":1}"#, "10 bytes");
        check(b"type=order.paid", "15 bytes");
        check(b"\xff\xfe", "2 bytes");
        check(b"", "0 bytes");
    }

    #[test]
    fn a_summary_is_bounded_and_survives_deep_nesting() {
        let long = format!(r#"{{"type":"{}"}}"#, "ä".repeat(1000));
        assert_eq!(summary(long.as_bytes()), "ä".repeat(SUMMARY_CHARS_MAX));
        let deep = format!(r#"{{"data":{}{},"type":"deep"}}"#, "[".repeat(9000), "]".repeat(9000));
        let summary = summary(deep.as_bytes());
        assert!(summary == "deep" || summary.ends_with(" bytes"), "{summary}");
    }
}
