//! The real host: tokio, the operating system's clock, randomness and sockets.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use hookproof_core::time::{Millis, Timestamp};
use tokio::net::{TcpListener, TcpStream};

use crate::crash_point::CrashPoint;
use crate::host::Host;

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
        let ms = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
        };
        Timestamp::from_millis(ms)
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
