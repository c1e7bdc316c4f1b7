//! A connection with a tap on it and, perhaps, a fault in it.
//!
//! The tap sees whole requests before the network does, and the first bytes of each response before
//! the client does. A fault is what the network, or a gateway in front of the server, does with them.

use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use hookproof_core::time::Millis;
use hookproof_runtime::host::Host as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use turmoil::net::TcpStream;

use super::host::{SENDER, SimHost};
use super::request::{RawRequest, status_of};
use crate::fault::Fault;
use crate::journal::WireRequest;

/// What happens to the one request of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Plan {
    Clean,
    LoseRequest,
    LoseResponse,
    Reset,
    Duplicate(Millis),
    Hold(Millis),
    Answer { fault: Fault, status: u16, retry_after: Option<u64> },
}

/// A simulated connection.
pub struct SimStream(Kind);

enum Kind {
    Plain(TcpStream),
    Tapped(Box<Tapped>),
}

struct Tapped {
    inner: TcpStream,
    /// The connection on which the network delivers the request once more.
    twin: Option<TcpStream>,
    host: SimHost,
    plan: Plan,
    /// What was written so far, until it is a whole request.
    written: Vec<u8>,
    request: Option<RawRequest>,
    /// What is to be forwarded, not before `hold` is over.
    outgoing: Vec<u8>,
    hold: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// How many requests had been forwarded when this one was held.
    held_since: u64,
    /// What a gateway answers instead of the server.
    canned: Option<Vec<u8>>,
    /// The beginning of the response, until its status is known.
    head: Vec<u8>,
    status: Option<u16>,
}

impl SimStream {
    pub(super) fn plain(stream: TcpStream) -> Self {
        Self(Kind::Plain(stream))
    }

    pub(super) fn tapped(
        stream: TcpStream,
        twin: Option<TcpStream>,
        host: SimHost,
        plan: Plan,
    ) -> Self {
        Self(Kind::Tapped(Box::new(Tapped {
            inner: stream,
            twin,
            host,
            plan,
            written: Vec::new(),
            request: None,
            outgoing: Vec::new(),
            hold: None,
            held_since: 0,
            canned: None,
            head: Vec::new(),
            status: None,
        })))
    }
}

impl Tapped {
    /// A whole request was written: it is on the wire.
    fn on_request(&mut self, request: RawRequest) {
        if self.host.name() == SENDER {
            note_request(&self.host, &request);
        }
        self.request = Some(request);
        let bytes = std::mem::take(&mut self.written);
        match self.plan {
            Plan::LoseRequest => self.fired(Fault::RequestLost, ""),
            Plan::Answer { fault, status, retry_after } => {
                self.fired(fault, &status.to_string());
                self.canned = Some(canned(status, retry_after));
            }
            Plan::Hold(span) => {
                let host = self.host.clone();
                self.hold = Some(Box::pin(async move { host.sleep(span).await }));
                self.held_since = self.host.stage.forwarded.load(Ordering::Relaxed);
                self.outgoing = bytes;
            }
            Plan::Duplicate(delay) => {
                self.duplicate(bytes.clone(), delay);
                self.outgoing = bytes;
            }
            Plan::Clean | Plan::LoseResponse | Plan::Reset => self.outgoing = bytes,
        }
    }

    /// The network delivers the same bytes once more.
    fn duplicate(&mut self, bytes: Vec<u8>, delay: Millis) {
        let Some(mut stream) = self.twin.take() else { return };
        let (host, request) = (self.host.clone(), self.request.clone());
        self.host.spawn(async move {
            host.sleep(delay).await;
            if stream.write_all(&bytes).await.is_err() {
                return;
            }
            let mut response = Vec::new();
            // The network looks at the answer only to know what the server took.
            let _ = stream.take(4096).read_to_end(&mut response).await;
            if let Some(status) = status_of(&response) {
                let detail = format!("answered {status}");
                host.stage.journal.fired(host.now(), host.name(), Fault::Duplicate, &detail);
                note_taken(&host, request.as_ref(), status);
            }
        });
    }

    fn fired(&self, fault: Fault, detail: &str) {
        self.host.stage.journal.fired(self.host.now(), self.host.name(), fault, detail);
    }

    /// Forwards what may be forwarded now.
    fn pump(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(hold) = &mut self.hold {
            ready!(hold.as_mut().poll(cx));
            self.hold = None;
            if self.host.stage.forwarded.load(Ordering::Relaxed) > self.held_since {
                self.fired(Fault::Reorder, "overtaken");
            }
        }
        if self.outgoing.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while !self.outgoing.is_empty() {
            let count = ready!(Pin::new(&mut self.inner).poll_write(cx, &self.outgoing))?;
            self.outgoing.drain(..count);
        }
        self.host.stage.forwarded.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }

    /// Looks at what came in; the first time that the status is known, notes it.
    fn on_response(&mut self, bytes: &[u8]) {
        if self.status.is_some() {
            return;
        }
        self.head.extend_from_slice(bytes);
        let Some(status) = status_of(&self.head) else { return };
        self.status = Some(status);
        note_taken(&self.host, self.request.as_ref(), status);
        match self.plan {
            Plan::LoseResponse => self.fired(Fault::ResponseLost, &status.to_string()),
            Plan::Reset => self.fired(Fault::ConnectionReset, &status.to_string()),
            _ => {}
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        ready!(self.pump(cx))?;
        if let Plan::Answer { .. } = self.plan {
            let Some(mut canned) = self.canned.take() else {
                return if self.request.is_some() { Poll::Ready(Ok(())) } else { Poll::Pending };
            };
            let rest = canned.split_off(canned.len().min(buf.remaining()));
            buf.put_slice(&canned);
            self.canned = (!rest.is_empty()).then_some(rest);
            return Poll::Ready(Ok(()));
        }
        if self.plan == Plan::LoseRequest {
            return Poll::Pending;
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let incoming = buf.filled()[before..].to_vec();
        let is_end = incoming.is_empty();
        self.on_response(&incoming);
        match self.plan {
            Plan::LoseResponse => {
                buf.set_filled(before);
                if !is_end {
                    // There may be more to lose: look again.
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            }
            Plan::Reset if !is_end => {
                buf.set_filled(before);
                Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
            }
            _ => Poll::Ready(Ok(())),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        self.written.extend_from_slice(bytes);
        if let Some(request) = RawRequest::parse(&self.written) {
            self.on_request(request);
        }
        bytes.len()
    }
}

fn canned(status: u16, retry_after: Option<u64>) -> Vec<u8> {
    let retry_after = retry_after.map(|secs| format!("retry-after: {secs}\r\n"));
    format!(
        "HTTP/1.1 {status} Gateway\r\ncontent-length: 0\r\nconnection: close\r\n{}\r\n",
        retry_after.unwrap_or_default()
    )
    .into_bytes()
}

fn note_request(host: &SimHost, request: &RawRequest) {
    let stage = &host.stage;
    let delivery = request.header("hookproof-delivery").unwrap_or_default();
    let attempt = request.header("hookproof-attempt").unwrap_or_default();
    let event = request.header("webhook-id").unwrap_or_default();
    let is_claimed = stage.is_claimed(delivery, attempt);
    stage.journal.line(
        host.now(),
        host.name(),
        format!("POST {} {event} attempt {attempt}", request.path),
    );
    let seen = WireRequest {
        at: host.now(),
        path: request.path.clone(),
        headers: request.headers.clone(),
        body: request.body.clone(),
        is_claimed,
    };
    stage.journal.facts(|facts| facts.requests.push(seen));
}

/// A 2xx to a delivery makes the receiver responsible, whether or not the sender hears of it.
fn note_taken(host: &SimHost, request: Option<&RawRequest>, status: u16) {
    let Some(request) = request.filter(|_| host.name() == SENDER) else { return };
    let event = request.header("webhook-id").unwrap_or_default().to_owned();
    let journal = &host.stage.journal;
    journal.line(host.now(), "receiver", format!("answers {status} to {event}"));
    if (200..300).contains(&status) {
        let source = request.path.rsplit('/').next().unwrap_or_default().to_owned();
        journal.facts(|facts| facts.taken.insert((source, event)));
    }
}

impl AsyncRead for SimStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Kind::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Kind::Tapped(tapped) => tapped.poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for SimStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Kind::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Kind::Tapped(tapped) => Poll::Ready(Ok(tapped.write(buf))),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Kind::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Kind::Tapped(tapped) => match tapped.pump(cx) {
                // A held request is in the network's hands: to the writer it is flushed.
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(())),
            },
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Kind::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Kind::Tapped(tapped) => Pin::new(&mut tapped.inner).poll_shutdown(cx),
        }
    }
}
