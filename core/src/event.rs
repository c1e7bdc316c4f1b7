//! What was published: an event and its exact bytes.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::EventId;
use crate::time::Timestamp;

/// The longest event type, in bytes.
pub const EVENT_TYPE_BYTES_MAX: usize = 128;

/// An event as it was accepted.
///
/// The body is kept as bytes, exactly as signed and sent: a store that re-serialises JSON changes
/// numbers and escapes, and the signature with them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Event {
    /// Stable over all attempts and endpoints.
    pub id: EventId,
    /// For example `order.paid`.
    pub event_type: EventType,
    /// The `content-type` under which the body is sent.
    pub content_type: String,
    /// The body, byte for byte.
    pub body: Arc<[u8]>,
    /// When the publish was accepted.
    pub created_at: Timestamp,
}

/// The type of an event: groups of `A–Z a–z 0–9 _ -` separated by full stops, as Standard Webhooks
/// recommends (`user.created`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EventType(String);

/// Why a text is not an event type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventTypeError {
    text: String,
}

impl fmt::Display for EventTypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not an event type: write groups of letters, digits, `_` and `-` separated by \
             full stops, as in `order.paid`, at most {EVENT_TYPE_BYTES_MAX} bytes",
            self.text.escape_debug()
        )
    }
}

impl std::error::Error for EventTypeError {}

impl EventType {
    /// Takes a text as an event type.
    ///
    /// # Errors
    ///
    /// [`EventTypeError`] if the text does not have that form.
    pub fn new(text: impl Into<String>) -> Result<Self, EventTypeError> {
        let text = text.into();
        let group = |group: &str| {
            !group.is_empty()
                && group.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
        };
        if text.len() <= EVENT_TYPE_BYTES_MAX && text.split('.').all(group) {
            Ok(Self(text))
        } else {
            Err(EventTypeError { text })
        }
    }

    /// The type as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for EventType {
    type Error = EventTypeError;

    fn try_from(text: String) -> Result<Self, EventTypeError> {
        Self::new(text)
    }
}

impl From<EventType> for String {
    fn from(event_type: EventType) -> Self {
        event_type.0
    }
}
