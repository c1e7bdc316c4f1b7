//! The pure machines and rules of webhook delivery.
//!
//! Everything that decides lives here, as values in and values out. This crate never reads a
//! clock, never draws a random number, never does I/O and never starts a thread: time and
//! randomness are arguments (`now: Timestamp`, `entropy: u64`), so that a simulator can enumerate
//! every decision and a driver can replay it.
//!
//! Three machines carry an event from publish to exactly one effect:
//!
//! - [`delivery::Delivery`]: one event on its way to one endpoint;
//! - [`gate::Gate`]: what an endpoint can take: its circuit breaker and its concurrency limit;
//! - [`inbox::Entry`]: one event at the receiver, from the verified request to the applied effect.
//!
//! A machine's `handle` returns a `#[must_use]` step: the next state, what to record, and effects.
//! A driver writes the state and the record in one transaction guarded by the version it read,
//! commits, and only then performs the effects.

pub mod address;
pub mod classify;
mod date;
pub mod delivery;
pub mod dispatch;
pub mod endpoint;
pub mod event;
pub mod gate;
pub mod http_date;
pub mod id;
pub mod inbox;
pub mod life;
mod named;
pub mod ordering;
pub mod outcome;
pub mod policy;
pub mod preset;
pub mod retry_after;
pub mod rule;
pub mod schedule;
pub mod scheme;
pub mod secret;
pub mod signature;
pub mod time;

/// Whether a field has nothing to tell, so that it is left out where it is written.
fn is_default<T: Default + PartialEq>(field: &T) -> bool {
    *field == T::default()
}
