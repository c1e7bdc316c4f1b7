//! A receiver of somebody else's, as the wire world starts and asks it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use hookproof_runtime::host::Host;

use super::application::Integration;
use super::host::SimHost;
use crate::receiver::Report;

/// Serves for one life of the process; whatever it started ends with that.
pub(crate) type Start = Arc<dyn Fn(SimHost, Listener) -> Serving + Send + Sync>;
/// A life of the process.
pub(crate) type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;
/// The listener of a simulated host.
pub(crate) type Listener = <SimHost as Host>::Listener;
/// Asks for the books, as they are committed.
pub(crate) type Ask = Box<dyn Fn() -> Report + Send>;

/// A receiver on trial, for one history.
pub(crate) struct Candidate {
    /// Where it takes what, signed with which secret.
    pub(crate) integration: Integration,
    pub(crate) start: Start,
    pub(crate) ask: Ask,
}
