//! The real host: tokio, the operating system's clock, randomness and sockets.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use hookproof_core::time::{Millis, Timestamp};
use tokio::net::{TcpListener, TcpStream};

use crate::clock::{Apart, Reading, SteadyClock, to_millis};
use crate::crash_point::CrashPoint;
use crate::host::Host;

/// The clock of the process, with the moment from which its monotonic readings count.
static CLOCK: Mutex<Option<(Instant, SteadyClock)>> = Mutex::new(None);

/// The machine that the process runs on. Crash points cost nothing here.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioHost;

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one production implementation of the seam"
)]
impl Host for TokioHost {
    type Stream = TcpStream;
    type Listener = TcpListener;

    const SIMULATED: bool = false;

    fn now(&self) -> Timestamp {
        let (now, apart) = with_clock(SteadyClock::read);
        match apart {
            None => {}
            Some(Apart::Leapt(by)) => {
                tracing::warn!(%by, "the wall clock leapt ahead: what was due then is due now");
            }
            Some(Apart::Behind(by)) => tracing::warn!(
                %by,
                "the wall clock is behind the time that has passed: waits go on without it, and \
                 signatures carry what it shows"
            ),
        }
        now
    }

    fn not_before(&self, at: Timestamp) {
        with_clock(|clock, _| clock.not_before(at));
    }

    fn wall(&self) -> Timestamp {
        to_millis(wall_ns())
    }

    #[expect(
        clippy::expect_used,
        reason = "without randomness no identifier or secret is safe: ending is right"
    )]
    fn entropy(&self) -> u64 {
        getrandom::u64().expect("the operating system provides randomness")
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(task);
    }

    fn sleep(&self, span: Millis) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(span.to_duration())
    }

    async fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        // A literal IPv6 address stands in brackets in a URL and without them in a look-up.
        let name = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name);
        Ok(tokio::net::lookup_host((name, port)).await?.collect())
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    async fn listen(&self, on: SocketAddr) -> io::Result<TcpListener> {
        TcpListener::bind(on).await
    }

    fn local_addr(listener: &TcpListener) -> io::Result<SocketAddr> {
        listener.local_addr()
    }

    async fn accept(&self, listener: &mut TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = listener.accept().await?;
        stream.set_nodelay(true)?;
        Ok((stream, peer))
    }

    fn passes(&self, _point: CrashPoint) -> bool {
        false
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn commit_latency(&self) -> Millis {
        Millis::ZERO
    }
}

/// Does something with the clock of the process, given what both clocks of the machine show.
#[expect(clippy::disallowed_methods, reason = "this is the one production reading of the clock")]
fn with_clock<T>(work: impl FnOnce(&mut SteadyClock, Reading) -> T) -> T {
    let mut clock = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let wall_ns = wall_ns();
    let at = Instant::now();
    let (began, clock) =
        clock.get_or_insert_with(|| (at, SteadyClock::new(Reading { wall_ns, monotonic_ns: 0 })));
    let passed = at.saturating_duration_since(*began).as_nanos();
    let monotonic_ns = i64::try_from(passed).unwrap_or(i64::MAX);
    work(clock, Reading { wall_ns, monotonic_ns })
}

/// What the operating system's clock shows, in nanoseconds since the epoch.
#[expect(clippy::disallowed_methods, reason = "this is the one production reading of the clock")]
fn wall_ns() -> i64 {
    let clamp = |ns: u128| i64::try_from(ns).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => clamp(after.as_nanos()),
        Err(before) => -clamp(before.duration().as_nanos()),
    }
}
