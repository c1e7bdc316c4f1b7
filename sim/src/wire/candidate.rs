//! A program of somebody else's, as the wire world starts and asks it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use hookproof_runtime::host::Host;

use super::application::Integration;
use super::host::SimHost;
use crate::{receiver, sender};

/// Serves for one life of the process; whatever it started ends with that.
pub(crate) type Start = Arc<dyn Fn(SimHost, Listener) -> Serving + Send + Sync>;
/// A life of the process.
pub(crate) type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;
/// The listener of a simulated host.
pub(crate) type Listener = <SimHost as Host>::Listener;

/// A program on trial, for one history.
pub(crate) struct Candidate {
    /// Where a receiver takes what, signed with which secret.
    pub(crate) integration: Integration,
    pub(crate) start: Start,
    pub(crate) ask: Ask,
}

/// Asks for the books, as they are committed; whose they are is who is on trial.
pub(crate) enum Ask {
    Receiver(Box<dyn Fn() -> receiver::Report + Send>),
    Sender(Box<dyn Fn() -> sender::Report + Send>),
}
