//! An HTTP/1.1 server over the seam: bounded connections, bounded waits, a graceful end.

mod stalling;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hookproof_core::time::Millis;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, mpsc, watch};

use crate::crash_point::CrashPoint;
use crate::host::Host;
use stalling::Stalling;

/// What a server allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerLimits {
    /// The most connections at once; further ones wait to be accepted.
    pub connections_max: usize,
    /// The longest wait for a request's headers, and so for an idle connection's next request.
    pub header_timeout: Millis,
    /// The longest wait for a client to take more of its response.
    pub write_timeout: Millis,
    /// How long open requests may go on after the end was asked for.
    pub drain_timeout: Millis,
}

/// The most connections at once that can be allowed.
pub const CONNECTIONS_MAX_HIGHEST: usize = 1_000_000;

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections_max: 1024,
            header_timeout: Millis::from_secs(10),
            write_timeout: Millis::from_secs(10),
            drain_timeout: Millis::from_secs(10),
        }
    }
}

/// Put into a response's extensions: the crash point to pass once the response is written.
#[derive(Clone, Copy, Debug)]
pub struct AfterResponse(pub CrashPoint);

/// Serves until `shutdown` resolves; then accepts nothing more, lets open requests finish within
/// the drain timeout, and returns.
///
/// `respond` is called for each request with the peer's address.
pub async fn serve<H, S, F, B>(
    host: H,
    mut listener: H::Listener,
    limits: ServerLimits,
    respond: S,
    shutdown: impl Future<Output = ()> + Send,
) where
    H: Host,
    S: Fn(Request<Incoming>, SocketAddr) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::error::Error + Send + Sync,
{
    let (stop, stopped) = watch::channel(false);
    let (open, mut all_closed) = mpsc::channel::<()>(1);
    let places = Arc::new(Semaphore::new(limits.connections_max));
    let mut shutdown = pin!(shutdown);
    loop {
        let place = tokio::select! {
            biased;
            () = &mut shutdown => break,
            place = places.clone().acquire_owned() => place,
        };
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = host.accept(&mut listener) => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, or the peer is gone already: go on, but do not spin.
                tracing::warn!(%error, "a connection could not be accepted");
                host.sleep(Millis::new(50)).await;
                continue;
            }
        };
        let connection = Connection {
            host: host.clone(),
            peer,
            limits,
            respond: respond.clone(),
            stopped: stopped.clone(),
        };
        let open = open.clone();
        host.spawn(async move {
            connection.run(stream).await;
            drop((place, open));
        });
    }
    drop((listener, open));
    stop.send_replace(true);
    if host.within(limits.drain_timeout, all_closed.recv()).await.is_none() {
        tracing::warn!(after = %limits.drain_timeout, "requests were still open at the end");
    }
}

struct Connection<H, S> {
    host: H,
    peer: SocketAddr,
    limits: ServerLimits,
    respond: S,
    stopped: watch::Receiver<bool>,
}

impl<H: Host, S> Connection<H, S> {
    async fn run<F, B>(mut self, stream: H::Stream)
    where
        S: Fn(Request<Incoming>, SocketAddr) -> F,
        F: Future<Output = Response<B>>,
        B: Body<Data = Bytes> + Unpin + 'static,
        B::Error: std::error::Error + Send + Sync,
    {
        let service = service_fn(|request| {
            let response = (self.respond)(request, self.peer);
            let host = &self.host;
            async move {
                let mut response = response.await;
                let point = response.extensions_mut().remove::<AfterResponse>();
                let after = point.map(|AfterResponse(point)| (host.clone(), point));
                Ok::<_, std::convert::Infallible>(response.map(|body| Written { body, after }))
            }
        });
        let stream = Stalling::new(self.host.clone(), stream, self.limits.write_timeout);
        let connection = hyper::server::conn::http1::Builder::new()
            // A date that the simulator could not replay, and that no client here reads.
            .auto_date_header(false)
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.header_timeout.to_duration())
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let mut ended = tokio::select! {
            biased;
            ended = connection.as_mut() => Some(ended),
            () = is_stopped(&mut self.stopped) => None,
        };
        if ended.is_none() {
            connection.as_mut().graceful_shutdown();
            ended = Some(connection.await);
        }
        if let Some(Err(error)) = ended {
            tracing::debug!(peer = %self.peer, %error, "a connection ended early");
        }
    }
}

async fn is_stopped(stopped: &mut watch::Receiver<bool>) {
    // An error means that the server is gone, which is a stop as well.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// A response body that passes a crash point once it has been written. hyper drops the body when it
/// has put all of it into the connection, and flushes in the same poll; the task that this starts
/// runs after that poll.
struct Written<H: Host, B> {
    body: B,
    after: Option<(H, CrashPoint)>,
}

impl<H: Host, B: Body<Data = Bytes> + Unpin> Body for Written<H, B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<H: Host, B> Unpin for Written<H, B> {}

impl<H: Host, B> Drop for Written<H, B> {
    fn drop(&mut self) {
        if !H::SIMULATED {
            return;
        }
        if let Some((host, point)) = self.after.take()
            && !host.has_ended()
        {
            let task_host = host.clone();
            host.spawn(async move { task_host.at(point).await });
        }
    }
}

/// Why a request body could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyError {
    /// It is longer than allowed; nothing beyond the limit was read.
    TooLarge,
    /// It did not arrive in time.
    Timeout,
    /// The connection broke, or the framing is invalid.
    Broken,
}

/// Reads a whole request body, bounded in bytes and time. A declared length above the limit is
/// refused before anything is read.
///
/// # Errors
///
/// [`BodyError`].
pub async fn read_body<H, B>(
    host: &H,
    body: B,
    bytes_max: usize,
    timeout: Millis,
) -> Result<Vec<u8>, BodyError>
where
    H: Host,
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Send,
{
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(BodyError::TooLarge);
    }
    let read = async {
        let mut body = body;
        let mut whole = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| BodyError::Broken)?;
            if let Some(data) = frame.data_ref() {
                if whole.len() + data.len() > bytes_max {
                    return Err(BodyError::TooLarge);
                }
                whole.extend_from_slice(data);
            }
        }
        Ok(whole)
    };
    host.within(timeout, read).await.unwrap_or(Err(BodyError::Timeout))
}
