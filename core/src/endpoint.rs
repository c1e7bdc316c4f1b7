//! Who is told: an endpoint and what it subscribed to.

use serde::{Deserialize, Serialize};

use crate::event::EventType;
use crate::id::EndpointId;
use crate::secret::Secrets;
use crate::time::Timestamp;

/// An address that a consumer registered, with the event types it wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// Its identifier.
    pub id: EndpointId,
    /// Where attempts go; absolute, `http` or `https`.
    pub url: String,
    /// The signing secrets, the newest first; every attempt is signed with each of them.
    pub secrets: Secrets,
    /// The event types that are delivered; empty means all.
    pub event_types: Vec<EventType>,
    /// Whether attempts are made.
    pub status: EndpointStatus,
    /// When it was registered.
    pub created_at: Timestamp,
}

/// Whether attempts are made to an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndpointStatus {
    /// Attempts are made when due.
    Enabled,
    /// No attempt is made; its deliveries stay scheduled and visible until it is enabled again.
    Disabled,
}

impl Endpoint {
    /// Whether an event of this type is delivered to this endpoint.
    #[must_use]
    pub fn wants(&self, event_type: &EventType) -> bool {
        Self::is_wanted(&self.event_types, event_type)
    }

    /// Whether an endpoint of these event types is delivered one of this type.
    #[must_use]
    pub fn is_wanted(event_types: &[EventType], event_type: &EventType) -> bool {
        event_types.is_empty() || event_types.contains(event_type)
    }
}
