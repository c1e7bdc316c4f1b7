//! A connection whose peer may not stop reading for long.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hookproof_core::time::Millis;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::host::Host;

/// A stream that fails a write which the peer lets wait for longer than the limit. Without it a client
/// that asks and never reads keeps its place, and the response's memory, for as long as it likes.
pub(super) struct Stalling<H: Host> {
    host: H,
    stream: H::Stream,
    limit: Millis,
    /// The end of the wait that is under way.
    wait: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<H: Host> Stalling<H> {
    pub(super) fn new(host: H, stream: H::Stream, limit: Millis) -> Self {
        Self { host, stream, limit, wait: None }
    }

    /// Anything that gets on ends the wait; what does not, begins it.
    fn bounded<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.wait = None;
            return written;
        }
        let (host, limit) = (&self.host, self.limit);
        let wait = self.wait.get_or_insert_with(|| {
            let host = host.clone();
            Box::pin(async move { host.sleep(limit).await })
        });
        ready!(wait.as_mut().poll(cx));
        self.wait = None;
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<H: Host> AsyncRead for Stalling<H> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<H: Host> AsyncWrite for Stalling<H> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.bounded(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.bounded(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.bounded(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.bounded(cx, ended)
    }
}

impl<H: Host> Unpin for Stalling<H> {}
