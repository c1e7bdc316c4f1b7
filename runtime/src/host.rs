//! The seam between a driver and the outside world.

use std::future::{Future, pending};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;

use hookproof_core::time::{Millis, Timestamp};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::crash_point::CrashPoint;
use crate::decision::Decision;

/// The machine that a driver runs on.
///
/// A driver is given a host and uses nothing else to reach the world: no ambient clock, randomness,
/// task or socket. Production's host is [`crate::tokio_host::TokioHost`].
pub trait Host: Clone + Send + Sync + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// A bound socket that accepts connections.
    type Listener: Send + 'static;

    /// Whether crash points can fire here and stores run inline instead of on a thread.
    const SIMULATED: bool;

    /// The time by which everything waits: what is due, leases, pauses. It never goes back while the
    /// process lives, and follows the wall clock forwards at once.
    fn now(&self) -> Timestamp;

    /// Makes [`now`](Host::now) show at least `at` from now on. A store calls it when it is opened, with
    /// the latest time at which it was written: a clock that was set back while no process ran must not
    /// prolong what was to happen soon. A host whose clock is never wrong has nothing to do.
    fn not_before(&self, _at: Timestamp) {}

    /// The wall clock, for timestamps that leave the process or come from outside, and nothing else:
    /// signing, tolerances, dates in header fields. It can be set in either direction at any time.
    fn wall(&self) -> Timestamp;

    /// 64 random bits.
    fn entropy(&self) -> u64;

    /// Starts a task that ends with the host.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);

    /// Waits, counted from the call and not from the first poll, by a clock that is never set.
    fn sleep(&self, span: Millis) -> impl Future<Output = ()> + Send;

    /// The addresses of a name, or of an address in text form.
    fn resolve(
        &self,
        name: &str,
        port: u16,
    ) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send;

    /// Opens a connection.
    fn connect(&self, to: SocketAddr) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Binds a socket.
    fn listen(&self, on: SocketAddr) -> impl Future<Output = io::Result<Self::Listener>> + Send;

    /// The address that a socket is bound to, with the port that was given for port 0.
    ///
    /// # Errors
    ///
    /// Whatever the operating system says.
    fn local_addr(listener: &Self::Listener) -> io::Result<SocketAddr>;

    /// Waits for a connection.
    fn accept(
        &self,
        listener: &mut Self::Listener,
    ) -> impl Future<Output = io::Result<(Self::Stream, SocketAddr)>> + Send;

    /// Passes a crash point. `true` means that the host has just ended: the caller must do nothing
    /// more. Prefer [`Host::at`] wherever it can be awaited.
    fn passes(&self, point: CrashPoint) -> bool;

    /// Whether the host has ended.
    fn has_ended(&self) -> bool;

    /// How long a store's commit takes beyond what it takes by itself: a slow disk, in simulation.
    fn commit_latency(&self) -> Millis;

    /// Whether a store refuses to commit what it has executed, as one that is busy or full does: in
    /// simulation.
    fn refuses_commit(&self) -> bool {
        false
    }

    /// Is told that nothing of a transaction is stored, whatever the reason. Nobody else knows yet.
    fn commit_failed(&self) {}

    /// Is told of each decision that a driver takes by core's machines, before anything is made of it:
    /// a simulation keeps them, to make them again.
    fn decided(&self, _decision: &Decision<'_>) {}

    /// Passes a crash point; never returns if the host ends there.
    fn at(&self, point: CrashPoint) -> impl Future<Output = ()> + Send {
        let ended = self.passes(point);
        async move {
            if ended {
                pending::<()>().await;
            }
        }
    }

    /// The result of `work`, or `None` if it takes longer than `limit`.
    fn within<T: Send>(
        &self,
        limit: Millis,
        work: impl Future<Output = T> + Send,
    ) -> impl Future<Output = Option<T>> + Send {
        async move {
            let mut work = pin!(work);
            let mut limit = pin!(self.sleep(limit));
            tokio::select! {
                biased;
                result = &mut work => Some(result),
                () = &mut limit => None,
            }
        }
    }
}
