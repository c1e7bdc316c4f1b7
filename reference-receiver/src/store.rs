//! What a receiver keeps, and the transactions in which it changes.
//!
//! The store executes what [`hookproof_core::inbox`] decides. Whoever wraps a store, to observe it
//! or to break it on purpose, wraps whole transactions: nothing of a receiver reaches the store
//! around this trait.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use hookproof_core::id::{EventId, SourceId};
use hookproof_core::inbox::{Ctx, Entry, InboxRule};
use hookproof_core::time::Timestamp;
use hookproof_runtime::database::StoreError;
use serde::Serialize;

use crate::effect::EffectError;
use crate::ordering::Versioned;

/// What a step is judged by. It owns its rule, so that it can enter a transaction; in there it is
/// the [`Ctx`] of the machine.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The time of the step.
    pub now: Timestamp,
    /// 64 random bits.
    pub entropy: u64,
    /// The rule.
    pub rule: Arc<InboxRule>,
}

impl Moment {
    /// The same, as the machine takes it.
    #[must_use]
    pub fn ctx(&self) -> Ctx<'_> {
        Ctx { now: self.now, entropy: self.entropy, rule: &self.rule }
    }
}

/// A request whose signature holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verified {
    /// The integration whose secret verified it.
    pub source: SourceId,
    /// The signed event id.
    pub event_id: EventId,
    /// The body, byte for byte as it was signed.
    pub body: Vec<u8>,
    /// The `content-type`; `application/octet-stream` if the request named none (RFC 9110, 8.3).
    pub content_type: String,
    /// When it was verified.
    pub received_at: Timestamp,
}

/// What a request turned out to be. Both are committed, and both are acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Recorded {
    /// Not seen before: event, body and state are stored now.
    New,
    /// Stored before; only that it came again is counted.
    Duplicate,
}

/// An entry that is committed as claimed, with what its effect needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Work {
    /// The entry as claimed. Its version is what fences a worker that comes too late.
    pub entry: Entry,
    /// The body, byte for byte as it was signed.
    pub body: Bytes,
    /// The `content-type` it came with.
    pub content_type: String,
}

impl Work {
    /// The number of the claim, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.entry.attempts
    }
}

/// What became of applying an effect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Applied {
    /// Effect and mark are committed together.
    Done,
    /// A newer version of the entity is applied already: the effect is left out, and the entry marked
    /// as superseded.
    Superseded,
    /// The effect failed, and nothing of it is stored; the claim still holds.
    Failed(EffectError),
    /// The claim is no longer this worker's; nothing is stored.
    TakenOver,
}

/// What became of a claim whose effect failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failed {
    /// It is tried again.
    Retried {
        /// Not before then.
        due: Timestamp,
    },
    /// That was the last attempt of the schedule; the entry stays available as a dead letter.
    Dead,
    /// The claim is no longer this worker's; nothing is stored.
    TakenOver,
}

/// How much there is of what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Totals {
    /// Events recorded. It is the sum of the next five.
    pub events: u64,
    /// Events that wait for a worker.
    pub pending: u64,
    /// Events that a worker has.
    pub claimed: u64,
    /// Events whose effect is applied.
    pub applied: u64,
    /// Events that came after a newer version of their entity, and have no effect.
    pub superseded: u64,
    /// Events whose effect failed for good.
    pub dead: u64,
    /// Rows of the ledger.
    pub effects: u64,
    /// Pairs of source and event id with more than one effect: each is a broken promise.
    pub effects_twice: u64,
    /// Superseded events whose entity is to be fetched again from its source.
    pub to_reconcile: u64,
    /// Requests that were duplicates of a recorded event.
    pub duplicates: u64,
}

/// The receiver's store. Every method is one transaction; an answer to a writing one means that it
/// is committed.
pub trait InboxStore: Clone + Send + Sync + 'static {
    /// Records a verified request: event, body and state in one insert under the unique key
    /// (source, event id), or that it was a duplicate.
    fn record(
        &self,
        delivery: Verified,
    ) -> impl Future<Output = Result<Recorded, StoreError>> + Send;

    /// Gives up every claim, for the process that made them is gone. Returns how many there were.
    /// To be called once, before the first claim of this process.
    fn recover(&self, moment: Moment) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Gives up the claims whose lease is over. Returns how many there were.
    fn release_expired(
        &self,
        moment: Moment,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Claims the pending entry that has been due longest, if one is due.
    fn claim(
        &self,
        moment: Moment,
    ) -> impl Future<Output = Result<Option<Work>, StoreError>> + Send;

    /// Applies the effect and marks the entry, in one transaction. If the event is about a version of
    /// an entity, that decides there as well whether the effect applies, and is remembered.
    fn apply(
        &self,
        work: &Work,
        versioned: Option<Versioned>,
        moment: Moment,
    ) -> impl Future<Output = Result<Applied, StoreError>> + Send;

    /// Marks an entry whose effect another service has had; nothing but the mark is stored.
    fn mark(
        &self,
        work: &Work,
        moment: Moment,
    ) -> impl Future<Output = Result<Applied, StoreError>> + Send;

    /// Records that the effect failed.
    fn fail(
        &self,
        work: &Work,
        moment: Moment,
    ) -> impl Future<Output = Result<Failed, StoreError>> + Send;

    /// When the next entry is due or the next claim ends; `None` if all are settled. It may lie in
    /// the past.
    fn next_wake(&self) -> impl Future<Output = Result<Option<Timestamp>, StoreError>> + Send;

    /// How many effects an event id has had: from one source, or over all of them.
    fn effects_of(
        &self,
        event_id: EventId,
        source: Option<SourceId>,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// How much there is of what.
    fn totals(&self) -> impl Future<Output = Result<Totals, StoreError>> + Send;
}
