//! Identifiers, and why they are spelled as they are.
//!
//! An event id is part of the signed bytes `id.timestamp.body` (Standard Webhooks 1.0.0), so it may
//! hold no full stop: otherwise an attacker could move the boundary between id and timestamp.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest identifier of an event, an endpoint or a source, in bytes.
pub const ID_BYTES_MAX: usize = 128;
/// The longest identifier of a delivery, in bytes: that of an event, a `~`, that of an endpoint.
pub const DELIVERY_ID_BYTES_MAX: usize = 2 * ID_BYTES_MAX + 1;

/// Why a text cannot be an identifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdError {
    /// It is empty.
    Empty,
    /// It is longer than this, in bytes.
    TooLong(usize),
    /// It holds a character other than `A–Z a–z 0–9 _ - :`.
    ForbiddenCharacter,
    /// It is to name a delivery, and has no `~` between an event's identifier and an endpoint's.
    NoDelivery,
}

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("an identifier may not be empty"),
            Self::TooLong(most) => write!(f, "an identifier may have at most {most} bytes"),
            Self::ForbiddenCharacter => f.write_str(
                "an identifier may hold only letters, digits, `_`, `-` and `:` \
                 (a `.` would blur the signed boundary between id and timestamp)",
            ),
            Self::NoDelivery => f.write_str(
                "a delivery is named by its event and its endpoint, joined by `~`: msg_…~ep_…",
            ),
        }
    }
}

impl std::error::Error for IdError {}

fn check(text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty);
    }
    if text.len() > ID_BYTES_MAX {
        return Err(IdError::TooLong(ID_BYTES_MAX));
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b':');
    if text.bytes().all(allowed) { Ok(()) } else { Err(IdError::ForbiddenCharacter) }
}

/// An event's id and an endpoint's, joined by a character that neither can hold.
fn check_delivery(text: &str) -> Result<(), IdError> {
    if text.len() > DELIVERY_ID_BYTES_MAX {
        return Err(IdError::TooLong(DELIVERY_ID_BYTES_MAX));
    }
    let (event, endpoint) = text.split_once('~').ok_or(IdError::NoDelivery)?;
    check(event).and_then(|()| check(endpoint))
}

/// Lower-case Crockford base 32: 26 characters for 128 bits, none of which look alike.
fn from_bits(prefix: &str, bits: [u64; 2]) -> String {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut value = (u128::from(bits[0]) << 64) | u128::from(bits[1]);
    let mut digits = [0_u8; 26];
    for digit in digits.iter_mut().rev() {
        *digit = ALPHABET[(value & 31) as usize];
        value >>= 5;
    }
    let mut id = String::with_capacity(prefix.len() + digits.len());
    id.push_str(prefix);
    id.extend(digits.iter().map(|b| char::from(*b)));
    id
}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident, $check:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Takes a text as an identifier.
            ///
            /// # Errors
            ///
            /// [`IdError`] if the text is empty, too long, or holds a forbidden character.
            pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
                let text = text.into();
                $check(&text)?;
                Ok(Self(text))
            }

            /// The identifier as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }
    };
}

identifier! {
    /// One event, the same in every attempt to every endpoint: `webhook-id`.
    EventId, check
}
identifier! {
    /// One endpoint: an address that a consumer registered.
    EndpointId, check
}
identifier! {
    /// One event on its way to one endpoint: their identifiers, joined by `~`.
    DeliveryId, check_delivery
}
impl EventId {
    /// A fresh identifier, `msg_…`, from 128 bits of entropy.
    #[must_use]
    pub fn from_entropy(bits: [u64; 2]) -> Self {
        Self(from_bits("msg_", bits))
    }
}

impl EndpointId {
    /// A fresh identifier, `ep_…`, from 128 bits of entropy.
    #[must_use]
    pub fn from_entropy(bits: [u64; 2]) -> Self {
        Self(from_bits("ep_", bits))
    }
}

impl DeliveryId {
    /// The delivery of `event` to `endpoint`. It follows from the two, so a fan-out that is made
    /// again makes the same deliveries.
    #[must_use]
    pub fn of(event: &EventId, endpoint: &EndpointId) -> Self {
        Self(format!("{event}~{endpoint}"))
    }
}

identifier! {
    /// One verified integration at the receiver. Two sources may use the same event id for
    /// different events, so a receiver deduplicates by (source, event id).
    SourceId, check
}
