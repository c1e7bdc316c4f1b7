//! One attempt: resolve, connect, send, read the answer. What comes back is data, never an error.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;

use bytes::Bytes;
use hookproof_core::address::Judgement;
use hookproof_core::delivery::Phase;
use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::retry_after;
use hookproof_core::signature::{self, ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER};
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::client::{ExchangeError, exchange};
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::host::Host;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, RETRY_AFTER, USER_AGENT,
};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::Shared;
use crate::store::Claimed;
use crate::url::Target;

/// For the logs of receivers: which delivery an attempt belongs to.
pub const DELIVERY_HEADER: &str = "hookproof-delivery";
/// For the logs of receivers: the number of the attempt.
pub const ATTEMPT_HEADER: &str = "hookproof-attempt";

const AGENT: &str = concat!("Hookproof/", env!("CARGO_PKG_VERSION"));

/// What came of an attempt, with what is kept of it.
pub(crate) struct Made {
    pub(crate) outcome: Outcome,
    pub(crate) excerpt: Vec<u8>,
}

impl From<Failure> for Made {
    fn from(failure: Failure) -> Self {
        Self { outcome: Outcome::Failed { failure }, excerpt: Vec::new() }
    }
}

/// Makes a claimed attempt, within the policy's total timeout.
pub(crate) async fn make<H: Host, S>(shared: &Shared<H, S>, claimed: &Claimed) -> Made
where
    S: Send + Sync,
{
    let host = &shared.host;
    let Phase::InFlight { started_at, .. } = claimed.delivery.phase else {
        return Failure::Blocked.into();
    };
    let total = shared.config.policy.total_timeout;
    // Counted from the claim, as its lease is: a claim whose commit took long leaves less time, and
    // an attempt never outlives it. This is the last look at the clock: one that leaps ahead in the
    // middle of the attempt changes nothing.
    let rest = started_at.plus(total).since(host.now()).min(total);
    let body_deadline = pin!(host.sleep(rest.minus(BODY_GRACE)));
    let made = host.within(rest, send(shared, claimed, body_deadline)).await;
    match made {
        Some(Ok(made)) => made,
        Some(Err(failure)) => failure.into(),
        None => Failure::Timeout.into(),
    }
}

async fn send<H: Host, S>(
    shared: &Shared<H, S>,
    claimed: &Claimed,
    body_deadline: impl Future<Output = ()> + Send,
) -> Result<Made, Failure>
where
    S: Send + Sync,
{
    let host = &shared.host;
    let target = Target::parse(&claimed.endpoint.url).map_err(|error| {
        tracing::warn!(endpoint = %claimed.endpoint.id, %error, "blocked");
        Failure::Blocked
    })?;
    // The policy may be another one than when the endpoint was registered.
    unless_denied(claimed, &target.judge(&shared.config.address))?;
    let request = request(claimed, &target, host.wall()).ok_or(Failure::Blocked)?;
    let stream = host
        .within(shared.config.policy.connect_timeout, connect(shared, claimed, &target))
        .await
        .ok_or(Failure::ConnectTimeout)??;
    host.at(CrashPoint::AttemptConnected).await;
    if target.is_tls {
        let name = target.host.to_string();
        let stream = shared.tls.connect(&name, stream).await.map_err(|error| {
            tracing::debug!(host = name, %error, "the TLS handshake failed");
            Failure::Tls
        })?;
        converse(shared, stream, request, body_deadline).await
    } else {
        converse(shared, stream, request, body_deadline).await
    }
}

/// The first address that accepts, in the order in which the resolver gave them. The name is looked
/// up once, all answers are judged, and nothing but these very answers is dialled: a second look-up
/// could answer otherwise.
async fn connect<H: Host, S>(
    shared: &Shared<H, S>,
    claimed: &Claimed,
    target: &Target,
) -> Result<H::Stream, Failure>
where
    S: Send + Sync,
{
    let host = &shared.host;
    let name = target.host.to_string();
    let addresses = host.resolve(&name, target.port).await.map_err(|_| Failure::Dns)?;
    if addresses.is_empty() {
        return Err(Failure::Dns);
    }
    let judged: Vec<IpAddr> = addresses.iter().map(SocketAddr::ip).collect();
    unless_denied(claimed, &shared.config.address.judge_resolved(&target.host, &judged))?;
    let mut failure = Failure::Dns;
    for address in addresses {
        match host.connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = connect_failure(&error),
        }
    }
    Err(failure)
}

fn unless_denied(claimed: &Claimed, judgement: &Judgement) -> Result<(), Failure> {
    if judgement.allowed {
        return Ok(());
    }
    let endpoint = &claimed.endpoint;
    tracing::warn!(endpoint = %endpoint.id, url = endpoint.url, "blocked: the target {judgement}");
    Err(Failure::Blocked)
}

fn connect_failure(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::TimedOut => Failure::ConnectTimeout,
        _ => Failure::ConnectRefused,
    }
}

/// Sends the request and reads the head of the answer, whose status decides; then as much of the
/// body as is kept, and no more.
async fn converse<H: Host, S, T>(
    shared: &Shared<H, S>,
    stream: T,
    request: Request<Full<Bytes>>,
    body_deadline: impl Future<Output = ()> + Send,
) -> Result<Made, Failure>
where
    S: Send + Sync,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let host = &shared.host;
    let exchange =
        exchange(host, stream, request, Some(CrashPoint::AttemptSent)).await.map_err(|error| {
            tracing::debug!(%error, "no response");
            match error {
                ExchangeError::Reset(_) => Failure::Reset,
                ExchangeError::Protocol(_) => Failure::Protocol,
                ExchangeError::Oversize(_) => Failure::Oversize,
            }
        })?;
    let status = exchange.status();
    let retry_after = read_retry_after(exchange.headers(), host.wall());
    // The status is known: a body that never ends must not turn it into a timeout.
    let answer = exchange.read(shared.config.excerpt_bytes_max, body_deadline).await;
    Ok(Made { outcome: Outcome::Answered { status, retry_after }, excerpt: answer.body })
}

/// How long before the total timeout the reading of a body ends.
const BODY_GRACE: Millis = Millis::new(100);

/// Repeated lines contradict each other: then, as for a malformed one, the field is ignored.
/// `arrived` is the wall clock, from which a date counts.
fn read_retry_after(headers: &HeaderMap, arrived: Timestamp) -> Option<Millis> {
    let mut lines = headers.get_all(RETRY_AFTER).iter();
    let first = lines.next()?;
    lines.next().is_none().then(|| retry_after::parse(first.as_bytes(), arrived)).flatten()
}

/// The request of an attempt: the same id, body and header names each time; the timestamp and the
/// signature are those of this attempt, by the wall clock.
fn request(claimed: &Claimed, target: &Target, wall: Timestamp) -> Option<Request<Full<Bytes>>> {
    let Claimed { delivery, event, endpoint } = claimed;
    let Phase::InFlight { attempt, .. } = delivery.phase else { return None };
    let timestamp = wall.as_secs();
    let signature = signature::sign(&endpoint.secrets, event.id.as_str(), timestamp, &event.body);
    Request::post(target.path.as_str())
        .header(HOST, target.authority.as_str())
        .header(CONNECTION, "close")
        .header(CONTENT_TYPE, event.content_type.as_str())
        // hyper leaves a length of 0 out, which receivers may answer with 411 (RFC 9110 §8.6).
        .header(CONTENT_LENGTH, event.body.len())
        .header(USER_AGENT, AGENT)
        .header(ID_HEADER, event.id.as_str())
        .header(TIMESTAMP_HEADER, timestamp)
        .header(SIGNATURE_HEADER, signature)
        .header(DELIVERY_HEADER, delivery.id.as_str())
        .header(ATTEMPT_HEADER, attempt)
        .body(Full::new(Bytes::from_owner(event.body.clone())))
        .ok()
}
