//! What a sender keeps, and the transactions in which it changes.

mod pass_on;

use std::future::Future;
use std::sync::Arc;

use hookproof_core::delivery::{AttemptRecord, Committed, DeadReason, Delivery, Rejected, Step};
use hookproof_core::endpoint::{Endpoint, EndpointStatus};
use hookproof_core::event::{Event, EventType};
use hookproof_core::gate::StoredGate;
use hookproof_core::id::{DeliveryId, EndpointId, EventId};
use hookproof_core::secret::Secrets;
use hookproof_core::time::Timestamp;
use hookproof_runtime::database::StoreError;
use serde::{Deserialize, Serialize};

#[doc(hidden)]
pub use pass_on::types;

/// A publish as it was asked for.
#[derive(Clone, Debug)]
pub struct Publication {
    /// The event, under the id that it gets if the publish is new.
    pub event: Event,
    /// What the publisher calls this publish; the same key again is the same publish.
    pub idempotency_key: Option<String>,
}

/// What became of a publish.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Published {
    /// The event and one delivery for each subscribed endpoint are committed.
    New {
        /// The event's id.
        event_id: EventId,
        /// How many endpoints were subscribed.
        deliveries: usize,
    },
    /// The key was used before for the same event: this is that publish.
    Replayed {
        /// The id that the event got then.
        event_id: EventId,
        /// How many deliveries it has.
        deliveries: usize,
    },
    /// The key was used before for another type, content type or body.
    Conflict {
        /// The id of that other event.
        event_id: EventId,
    },
}

/// An attempt that is committed as under way, with what it needs.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The delivery, in flight.
    pub delivery: Delivery,
    /// The event, byte for byte.
    pub event: Event,
    /// The endpoint as it is now.
    pub endpoint: Endpoint,
}

/// What is written beside a step.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// The beginning of the response body.
    pub excerpt: Vec<u8>,
    /// The endpoint's gate after the attempt; not stored over a later one.
    pub gate: Option<StoredGate>,
    /// What the breaker did to the endpoint, of which its owner is told.
    pub endpoint: Option<EndpointReason>,
}

/// An endpoint that attempts may be made to, and when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DueEndpoint {
    /// The endpoint.
    pub id: EndpointId,
    /// Its gate as last stored.
    pub gate: StoredGate,
    /// Whether a delivery is due now.
    pub is_due: bool,
    /// When the next one after now is due.
    pub next_due: Option<Timestamp>,
}

/// What waits at an endpoint and was created before some time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Aged {
    /// The deliveries, replays left out, those first that were created first.
    pub deliveries: Vec<Delivery>,
    /// When the first of those that were not created before it was.
    pub next_created_at: Option<Timestamp>,
}

/// What is left of deleted endpoints.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Orphans {
    /// Deliveries that wait for an attempt that is not to be made.
    pub waiting: Vec<Delivery>,
    /// Whether there may be more: attempts are under way, whose deliveries may wait again afterwards,
    /// or not all that wait are here.
    pub is_more: bool,
}

/// Why an owner must be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NoticeReason {
    /// The delivery is dead.
    Dead(DeadReason),
    /// The endpoint gets nothing for now, or nothing more; the delivery was the last that failed there,
    /// and may wait.
    Endpoint(EndpointReason),
}

/// Why an endpoint gets nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndpointReason {
    /// The breaker has opened: what is due waits for its pause to end, and for a probe to succeed.
    Paused,
    /// The breaker's rule gives it up: it is disabled.
    GivenUp,
}

impl EndpointReason {
    /// Whether the endpoint is disabled.
    #[must_use]
    pub fn disables(self) -> bool {
        self == Self::GivenUp
    }
}

/// A notice that waits to be sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PendingNotice {
    /// Its number.
    pub id: i64,
    /// The delivery that it is about.
    pub delivery_id: DeliveryId,
    /// The endpoint.
    pub endpoint_id: EndpointId,
    /// Why.
    pub reason: NoticeReason,
    /// Whether the endpoint was disabled with it.
    pub disables_endpoint: bool,
}

/// Which deliveries to list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeliveryFilter {
    /// Only those of this event.
    pub event: Option<EventId>,
    /// Only those to this endpoint.
    pub endpoint: Option<EndpointId>,
    /// Only those in this phase, by its name.
    pub phase: Option<String>,
    /// Only those that were created after this one.
    pub after: Option<DeliveryId>,
    /// At most as many.
    pub limit: u32,
}

/// A delivery as it is listed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ListedDelivery {
    /// The machine's state.
    #[serde(flatten)]
    pub delivery: Delivery,
    /// The event's type.
    pub event_type: EventType,
    /// What came of the last attempt, in words.
    pub last_outcome: Option<String>,
}

/// One attempt as it is listed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ListedAttempt {
    /// What is remembered of it.
    #[serde(flatten)]
    pub record: AttemptRecord,
    /// The beginning of the response body, as text.
    pub excerpt: String,
}

/// A delivery with all that became of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct History {
    /// The delivery.
    #[serde(flatten)]
    pub listed: ListedDelivery,
    /// Its attempts, in order.
    pub history: Vec<ListedAttempt>,
}

/// How much there is of what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Totals {
    /// Events accepted.
    pub events: u64,
    /// Deliveries waiting for an attempt.
    pub scheduled: u64,
    /// Deliveries with an attempt under way.
    pub in_flight: u64,
    /// Deliveries that a receiver took.
    pub delivered: u64,
    /// Deliveries that are given up.
    pub dead: u64,
    /// Deliveries that were withdrawn.
    pub cancelled: u64,
    /// Deliveries whose rows cannot be read: no attempt is made until somebody has mended them.
    pub unreadable: u64,
    /// Attempts recorded.
    pub attempts: u64,
    /// Notices not sent yet.
    pub notices_pending: u64,
}

/// The sender's store. Every method is one transaction; an answer to a writing one means that it is
/// committed.
pub trait Store: Clone + Send + Sync + 'static {
    /// Registers an endpoint.
    fn create_endpoint(
        &self,
        endpoint: Endpoint,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// All endpoints, the oldest first.
    fn endpoints(&self) -> impl Future<Output = Result<Vec<Endpoint>, StoreError>> + Send;

    /// An endpoint's gate as last stored; `None` if there is no endpoint of that id. If it cannot be
    /// read, it is as new but for its number.
    fn gate(
        &self,
        id: EndpointId,
    ) -> impl Future<Output = Result<Option<StoredGate>, StoreError>> + Send;

    /// Enables or disables an endpoint, and stores its gate unless a later one is stored; `false` if
    /// there is no endpoint of that id.
    fn set_endpoint_status(
        &self,
        id: EndpointId,
        status: EndpointStatus,
        gate: Option<StoredGate>,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Replaces an endpoint's secrets; `false` if there is no endpoint of that id.
    fn set_secrets(
        &self,
        id: EndpointId,
        secrets: Secrets,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Deletes an endpoint with its secrets: nothing finds it any more, no claim to it is accepted, and
    /// its deliveries are left for [`orphans`](Store::orphans); `false` if there is no endpoint of that
    /// id.
    fn delete_endpoint(
        &self,
        id: EndpointId,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// What is left of deleted endpoints; at most `limit` deliveries. One that cannot be read is set
    /// aside, with an error in the log.
    fn orphans(&self, limit: u32) -> impl Future<Output = Result<Orphans, StoreError>> + Send;

    /// Stores an event together with a delivery for every endpoint that wants it. If it cannot be read
    /// what an endpoint wants, it is disabled, with an error in the log, and its delivery waits.
    fn publish(
        &self,
        publication: Publication,
    ) -> impl Future<Output = Result<Published, StoreError>> + Send;

    /// One event.
    fn event(&self, id: EventId) -> impl Future<Output = Result<Option<Event>, StoreError>> + Send;

    /// The endpoints that are enabled, and when something is due to them. One whose row cannot be
    /// read is disabled, with an error in the log: it must not hold up the others.
    fn due_endpoints(
        &self,
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<DueEndpoint>, StoreError>> + Send;

    /// The deliveries to an endpoint that are due, the longest due first. One that cannot be read is
    /// set aside, with an error in the log: it must not hold up the others.
    fn due_deliveries(
        &self,
        endpoint: EndpointId,
        now: Timestamp,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<Delivery>, StoreError>> + Send;

    /// What waits at an endpoint, due or not, and was created before then; at most `limit` of it.
    fn aged_deliveries(
        &self,
        endpoint: EndpointId,
        before: Timestamp,
        limit: u32,
    ) -> impl Future<Output = Result<Aged, StoreError>> + Send;

    /// Writes claims, each by itself accepted or rejected, and the gates of their endpoints as they
    /// are with them, unless later ones are stored.
    fn claim(
        &self,
        steps: Vec<Step>,
        gates: Vec<(EndpointId, StoredGate)>,
    ) -> impl Future<Output = Result<Vec<Result<Claimed, Rejected>>, StoreError>> + Send;

    /// Writes a step with its record, its notice and what stands beside them.
    fn commit(
        &self,
        step: Step,
        beside: Beside,
    ) -> impl Future<Output = Result<Result<Committed, Rejected>, StoreError>> + Send;

    /// Writes steps that have nothing beside them, each by itself accepted or rejected.
    fn commit_each(
        &self,
        steps: Vec<Step>,
    ) -> impl Future<Output = Result<Vec<Result<Committed, Rejected>>, StoreError>> + Send;

    /// The deliveries in flight whose lease ends at `until` or before, those first that end first.
    /// One that cannot be read is set aside, with an error in the log.
    fn leased(
        &self,
        until: Timestamp,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<Delivery>, StoreError>> + Send;

    /// When the first lease ends of those that end after then.
    fn next_lease_end(
        &self,
        after: Timestamp,
    ) -> impl Future<Output = Result<Option<Timestamp>, StoreError>> + Send;

    /// One delivery.
    fn delivery(
        &self,
        id: DeliveryId,
    ) -> impl Future<Output = Result<Option<ListedDelivery>, StoreError>> + Send;

    /// Deliveries in the order in which they were created; none if the filter names one to begin
    /// after that there is not.
    fn deliveries(
        &self,
        filter: DeliveryFilter,
    ) -> impl Future<Output = Result<Vec<ListedDelivery>, StoreError>> + Send;

    /// One delivery with its attempts, in order, as they were at one moment.
    fn history(
        &self,
        id: DeliveryId,
    ) -> impl Future<Output = Result<Option<History>, StoreError>> + Send;

    /// How much there is of what.
    fn totals(&self) -> impl Future<Output = Result<Totals, StoreError>> + Send;

    /// Notices that wait to be sent, the oldest first.
    fn pending_notices(
        &self,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<PendingNotice>, StoreError>> + Send;

    /// Records that a notice was sent.
    fn notice_sent(
        &self,
        id: i64,
        now: Timestamp,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Bytes as shared, immutable event bodies.
pub(crate) fn shared(bytes: Vec<u8>) -> Arc<[u8]> {
    Arc::from(bytes)
}
