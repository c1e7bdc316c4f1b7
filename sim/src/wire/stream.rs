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

use super::attacker;
use super::bent::{self, Bent};
use super::host::{RECEIVER, SENDER, SimHost};
use super::request::{RawRequest, ResponseHead, status_of};
use super::witness::Moment;
use crate::asked;
use crate::fault::Fault;

/// What happens to the one request of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Plan {
    Clean,
    LoseRequest,
    LoseResponse,
    Reset,
    Duplicate(Millis),
    Hold(Millis),
    /// The response comes that much later.
    Slow(Millis),
    /// The head of the response comes, and its body does not.
    SlowBody,
    /// The head of the response is larger than anybody reads.
    Oversize,
    /// A gateway answers in the server's place.
    Answer {
        fault: Fault,
        status: u16,
    },
}

/// A simulated connection.
pub(crate) struct SimStream(Kind);

enum Kind {
    Plain(TcpStream),
    /// A wrong receiver's.
    Bent(Box<Bent>),
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
    /// Until when the response is kept back.
    slow: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// The beginning of the response, until its head is known.
    head: Vec<u8>,
    status: Option<u16>,
    /// Whether the receiver had to take the request when it left.
    was_valid: Option<bool>,
}

impl SimStream {
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
            slow: None,
            head: Vec::new(),
            status: None,
            was_valid: None,
        })))
    }

    /// A server's side of a connection, which may be a wrong receiver.
    pub(super) fn accepted(stream: TcpStream, host: &SimHost) -> Self {
        if host.name() != RECEIVER {
            return Self(Kind::Plain(stream));
        }
        match Bent::new(stream, host) {
            Ok(bent) => Self(Kind::Bent(Box::new(bent))),
            Err(stream) => Self(Kind::Plain(stream)),
        }
    }
}

impl Tapped {
    /// A whole request was written: it is on the wire.
    fn on_request(&mut self, mut request: RawRequest) {
        if self.is_sender() {
            if let Some(other) = bent::sent_instead(self.host.stage.mutant, &request) {
                self.written = other.to_bytes();
                request = other;
            }
            let at = self.host.moment();
            note_request(&self.host, &at, &request);
            self.was_valid = self.host.stage.is_valid_for_receiver(at.now, &request);
        }
        let bytes = std::mem::take(&mut self.written);
        match self.plan {
            Plan::LoseRequest if self.is_sender() => {
                self.host.stage.witness().track_of(&request).is_swallowed = true;
            }
            Plan::LoseRequest => {}
            Plan::Oversize => self.canned = Some(oversize()),
            Plan::Answer { fault, status } => {
                self.canned = Some(self.gateway(fault, status, &request));
            }
            Plan::Hold(span) => {
                self.hold = Some(self.wait(span));
                self.held_since = self.host.stage.forwarded.load(Ordering::Relaxed);
                self.outgoing = bytes;
            }
            Plan::Slow(span) => {
                self.slow = Some(self.wait(span));
                self.outgoing = bytes;
            }
            Plan::Duplicate(delay) => {
                self.duplicate(&request, bytes.clone(), delay);
                self.outgoing = bytes;
            }
            Plan::Clean | Plan::LoseResponse | Plan::Reset | Plan::SlowBody => {
                self.outgoing = bytes;
            }
        }
        self.request = Some(request);
    }

    /// Only the sender talks to the receiver; the application talks to the sender.
    fn is_sender(&self) -> bool {
        self.host.name() == SENDER
    }

    fn wait(&self, span: Millis) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let host = self.host.clone();
        Box::pin(async move { host.sleep(span).await })
    }

    /// What a gateway answers, perhaps with a `Retry-After` in one of its forms.
    fn gateway(&self, fault: Fault, status: u16, request: &RawRequest) -> Vec<u8> {
        let host = &self.host;
        let may_ask = matches!(fault, Fault::TooManyRequests | Fault::ServerError) && status != 500;
        let field = match may_ask {
            true => asked::draw(&host.stage.choices, host.name(), host.wall()),
            false => None,
        };
        if let Some(what) = field.as_ref().and_then(|field| field.sometimes) {
            host.stage.journal.reached(what);
        }
        if self.is_sender() {
            let asked = field.as_ref().and_then(|field| field.asked);
            host.stage.witness().asks(request, asked);
        }
        let line = match field {
            Some(field) => format!("retry-after: {}\r\n", field.value),
            None if fault == Fault::Redirect => format!("location: {ELSEWHERE}\r\n"),
            None => String::new(),
        };
        let head = "content-length: 0\r\nconnection: close\r\n";
        format!("HTTP/1.1 {status} Gateway\r\n{head}{line}\r\n").into_bytes()
    }

    /// The network delivers the same bytes once more.
    fn duplicate(&mut self, request: &RawRequest, bytes: Vec<u8>, delay: Millis) {
        let Some(mut stream) = self.twin.take() else { return };
        let (host, request) = (self.host.clone(), request.clone());
        let is_sender = self.is_sender();
        self.host.spawn(async move {
            host.sleep(delay).await;
            let was_valid = host.stage.is_valid_for_receiver(host.true_now(), &request);
            if stream.write_all(&bytes).await.is_err() {
                return;
            }
            let mut response = Vec::new();
            // The network looks at the answer only to know what the server took.
            let _ = stream.take(4096).read_to_end(&mut response).await;
            if let Some(status) = status_of(&response) {
                let (stage, now) = (&host.stage, host.true_now());
                let detail = format!("answered {status}");
                stage.journal.fired(now, host.name(), Fault::Duplicate, &detail);
                if is_sender {
                    stage.judged(now, &request, was_valid, status);
                }
            }
        });
    }

    fn fired(&self, fault: Fault, detail: &str) {
        self.host.stage.journal.fired(self.host.true_now(), self.host.name(), fault, detail);
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

    /// Looks at what came in; the first time that the head is whole, notes it.
    fn on_response(&mut self, bytes: &[u8]) {
        if self.status.is_some() {
            return;
        }
        self.head.extend_from_slice(bytes);
        let Some(head) = ResponseHead::parse(&self.head) else { return };
        self.status = Some(head.status);
        let Some(request) = self.request.as_ref().filter(|_| self.is_sender()) else { return };
        let stage = &self.host.stage;
        stage.judged(self.host.true_now(), request, self.was_valid, head.status);
        let asked = head.retry_after.map(Millis::from_secs);
        stage.witness().answered(request, asked);
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        ready!(self.pump(cx))?;
        if matches!(self.plan, Plan::Answer { .. } | Plan::Oversize) {
            return self.read_canned(buf);
        }
        if self.plan == Plan::LoseRequest {
            return Poll::Pending;
        }
        if let Some(slow) = &mut self.slow {
            ready!(slow.as_mut().poll(cx));
            self.slow = None;
            self.is_kept_back();
        }
        let had_head = self.status.is_some();
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let incoming = buf.filled().len() - before;
        let is_end = incoming == 0;
        self.on_response(&buf.filled()[before..]);
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
            Plan::SlowBody if had_head => {
                buf.set_filled(before);
                Poll::Pending
            }
            Plan::SlowBody => {
                self.is_kept_back();
                // What came of the body with the head comes never.
                let end = ResponseHead::parse(&self.head).map_or(self.head.len(), |head| head.end);
                let rest = self.head.len() - end;
                let kept = incoming.saturating_sub(rest);
                buf.set_filled(before + kept);
                Poll::Ready(Ok(()))
            }
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Something of the response reaches the sender late, or never.
    fn is_kept_back(&self) {
        if let Some(request) = self.request.as_ref().filter(|_| self.is_sender()) {
            self.host.stage.witness().track_of(request).was_kept_back = true;
        }
    }

    fn read_canned(&mut self, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Some(mut canned) = self.canned.take() else {
            return if self.request.is_some() { Poll::Ready(Ok(())) } else { Poll::Pending };
        };
        let rest = canned.split_off(canned.len().min(buf.remaining()));
        buf.put_slice(&canned);
        self.canned = (!rest.is_empty()).then_some(rest);
        Poll::Ready(Ok(()))
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        self.written.extend_from_slice(bytes);
        if let Some(request) = RawRequest::parse(&self.written) {
            self.on_request(request);
        }
        bytes.len()
    }
}

impl Drop for Tapped {
    fn drop(&mut self) {
        if let Some(request) = self.request.as_ref().filter(|_| self.is_sender()) {
            self.host.stage.witness().ended(request);
        }
    }
}

/// Where gateways redirect to.
const ELSEWHERE: &str = "http://elsewhere.sim/hooks/shop-0";

/// A response whose head has more lines than clients read.
fn oversize() -> Vec<u8> {
    let lines: String = (0..400).map(|n| format!("x-{n}: {}\r\n", "x".repeat(100))).collect();
    format!("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n{lines}\r\n").into_bytes()
}

fn note_request(host: &SimHost, at: &Moment, request: &RawRequest) {
    let stage = &host.stage;
    let attempt = request.header("hookproof-attempt").unwrap_or_default();
    let event = request.header("webhook-id").unwrap_or_default();
    let text = format!("POST {} {event} attempt {attempt}", request.path());
    stage.journal.line(at.now, host.name(), text);
    stage.witness().sent(at, request);
    stage.add_attacks(attacker::plan(host, at.now, request));
}

impl AsyncRead for SimStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Kind::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Kind::Bent(bent) => bent.poll_read(cx, buf),
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
            Kind::Bent(bent) => bent.poll_write(cx, buf),
            Kind::Tapped(tapped) => Poll::Ready(Ok(tapped.write(buf))),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Kind::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Kind::Bent(bent) => bent.inner().poll_flush(cx),
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
            Kind::Bent(bent) => bent.inner().poll_shutdown(cx),
            Kind::Tapped(tapped) => Pin::new(&mut tapped.inner).poll_shutdown(cx),
        }
    }
}
