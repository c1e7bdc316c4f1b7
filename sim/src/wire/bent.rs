//! What a wrong receiver, or a wrong sender, makes of a request or an answer: between the network and
//! the real code, which itself stays right.

use std::io;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hookproof_core::secret::{Secret, Secrets};
use hookproof_core::signature::{TOLERANCE, sign};
use hookproof_runtime::host::Host as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use turmoil::net::TcpStream;

use super::host::SimHost;
use super::request::RawRequest;
use super::verify::{is_signed, timestamp};
use crate::zoo::{Mutant, ReceiverMutant, SenderMutant};

/// A wrong receiver's side of a connection.
pub(super) struct Bent {
    inner: TcpStream,
    host: SimHost,
    mutant: ReceiverMutant,
    /// What was read, until it is a whole request.
    read: Vec<u8>,
    /// What the receiver is given instead.
    given: Option<Vec<u8>>,
}

impl Bent {
    /// `None` if that receiver is wrong elsewhere.
    pub(super) fn new(inner: TcpStream, host: &SimHost) -> Result<Self, TcpStream> {
        match host.stage.mutant {
            Some(Mutant::Receiver(
                mutant @ (ReceiverMutant::ConflictOnDuplicate
                | ReceiverMutant::VerifiesReserialised
                | ReceiverMutant::OneSidedTolerance
                | ReceiverMutant::TimestampNotSigned
                | ReceiverMutant::FirstSignatureOnly
                | ReceiverMutant::DedupByUnsignedHeader
                | ReceiverMutant::RecordsBeforeVerify
                | ReceiverMutant::CrashOnMalformed),
            )) => Ok(Self { inner, host: host.clone(), mutant, read: Vec::new(), given: None }),
            _ => Err(inner),
        }
    }

    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.given.is_none() {
            let mut bytes = [0; 4096];
            let mut part = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.inner).poll_read(cx, &mut part))?;
            self.read.extend_from_slice(part.filled());
            if let Some(request) = RawRequest::parse(&self.read) {
                self.given = Some(self.understood(request).to_bytes());
            } else if part.filled().is_empty() {
                self.given = Some(std::mem::take(&mut self.read));
            }
        }
        let Some(given) = self.given.as_mut().filter(|given| !given.is_empty()) else {
            return Pin::new(&mut self.inner).poll_read(cx, buf);
        };
        let count = given.len().min(buf.remaining());
        buf.put_slice(&given[..count]);
        given.drain(..count);
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.mutant == ReceiverMutant::ConflictOnDuplicate {
            return Pin::new(&mut self.inner).poll_write(cx, &refused(bytes));
        }
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    pub(super) fn inner(&mut self) -> Pin<&mut TcpStream> {
        Pin::new(&mut self.inner)
    }

    /// A request as the wrong receiver understands it.
    fn understood(&self, mut request: RawRequest) -> RawRequest {
        match self.mutant {
            ReceiverMutant::VerifiesReserialised => return reserialised(request),
            ReceiverMutant::FirstSignatureOnly => {
                let first = |list: &str| list.split(' ').next().unwrap_or_default().to_owned();
                return request.with("webhook-signature", first);
            }
            ReceiverMutant::OneSidedTolerance => self.pass_for_new(&mut request),
            ReceiverMutant::TimestampNotSigned => self.pass_for_signed(&mut request),
            ReceiverMutant::DedupByUnsignedHeader => {
                self.meet(&request, request.header("hookproof-attempt").unwrap_or_default());
            }
            ReceiverMutant::RecordsBeforeVerify => self.meet(&request, ""),
            ReceiverMutant::CrashOnMalformed => crash_on_malformed(&request),
            _ => {}
        }
        request
    }

    /// R07 and R23: a request is known from now on, verified or not.
    fn meet(&self, request: &RawRequest, name: &str) {
        let source = request.source();
        self.host.stage.meets(source, request.header("webhook-id").unwrap_or_default(), name);
    }

    /// The secret that a request is signed with, if it is.
    fn key_of(&self, request: &RawRequest) -> Option<Vec<u8>> {
        let source = request.source();
        let keys = self.host.stage.witness().known_to_receiver(source);
        keys.into_iter().find(|key| is_signed(request, key))
    }

    /// R14: however old it is, it passes for one of this moment.
    fn pass_for_new(&self, request: &mut RawRequest) {
        let wall = self.host.wall().as_secs();
        let tolerance = i64::try_from(TOLERANCE.get() / 1000).unwrap_or(i64::MAX);
        if timestamp(request) + tolerance >= wall {
            return;
        }
        if let Some(key) = self.key_of(request)
            && let Ok(secret) = Secret::from_bytes(key)
        {
            let id = request.header("webhook-id").unwrap_or_default().to_owned();
            let signature = sign(&Secrets::one(secret), &id, wall, request.body());
            let stamped = request.with("webhook-timestamp", |_| wall.to_string());
            *request = stamped.with("webhook-signature", |_| signature.clone());
        }
    }

    /// R15: a changed timestamp passes for the one that was signed.
    fn pass_for_signed(&self, request: &mut RawRequest) {
        const CHANGED_BY_MOST: i64 = 30;
        let shown = timestamp(request);
        for earlier in 0..=CHANGED_BY_MOST {
            let signed = request.with("webhook-timestamp", |_| (shown - earlier).to_string());
            if self.key_of(&signed).is_some() {
                *request = signed;
                return;
            }
        }
    }
}

/// R13: the body as a JSON library writes it.
fn reserialised(request: RawRequest) -> RawRequest {
    match serde_json::from_slice::<serde_json::Value>(request.body()) {
        Ok(value) => request.with_body(value.to_string().as_bytes()),
        Err(_) => request,
    }
}

/// R24: what is no list of signatures is a bug that nobody has met yet.
fn crash_on_malformed(request: &RawRequest) {
    const LENGTH: usize = "v1,".len() + 44;
    let list = request.header("webhook-signature").unwrap_or_default();
    if list.split(' ').any(|one| !one.starts_with("v1,") || one.len() != LENGTH) {
        // As a panic does, but without a word on standard error.
        resume_unwind(Box::new(format!("a signature has no {LENGTH} characters")));
    }
}

/// R11: the first line of what a server answers to a duplicate, changed.
fn refused(bytes: &[u8]) -> Vec<u8> {
    const OK: &[u8] = b"HTTP/1.1 200";
    let mut bytes = bytes.to_vec();
    if bytes.starts_with(OK) {
        bytes[..OK.len()].copy_from_slice(b"HTTP/1.1 409");
    }
    bytes
}

/// S07: the request of a retry has no signature. `None` if nothing is wrong with it.
pub(super) fn sent_instead(mutant: Option<Mutant>, request: &RawRequest) -> Option<RawRequest> {
    let is_retry = request.header("hookproof-attempt").is_some_and(|attempt| attempt != "1");
    if mutant != Some(Mutant::Sender(SenderMutant::UnsignedRetry)) || !is_retry {
        return None;
    }
    Some(request.without("webhook-signature"))
}
