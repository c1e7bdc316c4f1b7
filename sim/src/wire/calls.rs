//! The way of a sender on trial to the receiver: what it dials and sends meets the faults of the
//! history, and is seen.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;

use bytes::Bytes;
use hookproof_core::classify::Verdict;
use hookproof_core::delivery::AttemptRecord;
use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::client::{ExchangeError, exchange};
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::host::Host as _;
use http_body_util::Full;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue};
use hyper::{Request, Response};

use super::host::{PORT, RECEIVER, RECEIVER_NAME, SimHost};
use super::queue::delivery_of;
use super::witness::AttemptName;

/// The most of a response body that is read, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// The longest wait for a connection.
const CONNECT_MAX: Millis = Millis::from_secs(3);
/// How long before the timeout the reading of a body ends: the status is known by then.
const BODY_GRACE: Millis = Millis::new(100);

/// The way to the receiver.
#[derive(Clone)]
pub struct Client {
    host: SimHost,
    url: String,
}

impl Client {
    pub(crate) fn new(host: SimHost, path: &str) -> Self {
        Self { host, url: url(path) }
    }

    /// Where the receiver takes events.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The receiver's address: the only one that a policy may allow here.
    #[must_use]
    pub fn receiver(&self) -> IpAddr {
        turmoil::lookup(RECEIVER)
    }

    /// Begins an attempt to send an event: looks the receiver's name up. Whoever judges the addresses
    /// by a policy of its own then chooses one of them; [`Client::send`] does both.
    ///
    /// # Errors
    ///
    /// [`Failure::Dns`].
    pub async fn resolve(&self, event_id: &str) -> Result<Attempt, Failure> {
        let host = self.host.clone();
        let name = host.stage.witness().calls(event_id);
        let event_id = event_id.to_owned();
        let attempt = Attempt { began: host.now(), host, name, event_id, addresses: Vec::new() };
        let look_up = attempt.host.resolve(RECEIVER_NAME, PORT);
        match attempt.host.in_attempt(attempt.name, look_up).await {
            Ok(found) => {
                let addresses = found.iter().map(SocketAddr::ip).collect();
                Ok(Attempt { addresses, ..attempt })
            }
            Err(_) => Err(attempt.failed(Failure::Dns)),
        }
    }

    /// Sends a request on a connection of its own, and waits for the response at most so long. The
    /// event is the one that its `webhook-id` names. `host`, `connection` and `content-length` are
    /// added. No address but the receiver's is dialled.
    ///
    /// # Errors
    ///
    /// [`Failure`] if no response came.
    pub async fn send(
        &self,
        request: Request<Bytes>,
        timeout: Millis,
    ) -> Result<Response<Bytes>, Failure> {
        let id = request.headers().get("webhook-id").map(|id| id.as_bytes().to_vec());
        let attempt = self.resolve(&String::from_utf8_lossy(&id.unwrap_or_default())).await?;
        let receiver = self.receiver();
        if attempt.addresses.iter().any(|address| *address != receiver) {
            return Err(attempt.failed(Failure::Blocked));
        }
        attempt.send(receiver, request, timeout).await
    }
}

/// Where the receiver takes events.
pub(super) fn url(path: &str) -> String {
    format!("http://{RECEIVER_NAME}{path}")
}

/// An attempt to send an event, of which the receiver's name is looked up.
pub struct Attempt {
    host: SimHost,
    name: AttemptName,
    event_id: String,
    began: Timestamp,
    addresses: Vec<IpAddr>,
}

impl Attempt {
    /// What the name resolves to. A resolver may lie.
    #[must_use]
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Sends a request to an address, as [`Client::send`] does.
    ///
    /// # Errors
    ///
    /// [`Failure`] if no response came.
    pub async fn send(
        self,
        to: IpAddr,
        request: Request<Bytes>,
        timeout: Millis,
    ) -> Result<Response<Bytes>, Failure> {
        let host = &self.host;
        let work = host.within(timeout, self.exchange(to, request, timeout));
        let sent = host.in_attempt(self.name, work).await;
        match sent.unwrap_or(Err(Failure::Timeout)) {
            Ok(response) => {
                let status = response.status().as_u16();
                self.ends(Outcome::Answered { status, retry_after: None });
                self.host.at(CrashPoint::AttemptAnswered).await;
                Ok(response)
            }
            Err(failure) => Err(self.failed(failure)),
        }
    }

    async fn exchange(
        &self,
        to: IpAddr,
        request: Request<Bytes>,
        timeout: Millis,
    ) -> Result<Response<Bytes>, Failure> {
        let host = &self.host;
        let deadline = pin!(host.sleep(timeout.minus(BODY_GRACE)));
        let connect = host.connect(SocketAddr::new(to, PORT));
        let stream = match host.within(CONNECT_MAX, connect).await {
            None => return Err(Failure::ConnectTimeout),
            Some(Err(_)) => return Err(Failure::ConnectRefused),
            Some(Ok(stream)) => stream,
        };
        host.at(CrashPoint::AttemptConnected).await;
        let request = self.whole(request);
        let sent = exchange(host, stream, request, Some(CrashPoint::AttemptSent)).await;
        let exchange = sent.map_err(|error| match error {
            ExchangeError::Reset(_) => Failure::Reset,
            ExchangeError::Protocol(_) => Failure::Protocol,
            ExchangeError::Oversize(_) => Failure::Oversize,
        })?;
        let answer = exchange.read(BODY_BYTES_MAX, deadline).await;
        let mut response = Response::new(Bytes::from(answer.body));
        *response.status_mut() =
            hyper::StatusCode::from_u16(answer.status).map_err(|_| Failure::Protocol)?;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }

    /// The request as it goes over the wire: in the form of one of the reference sender's, by which
    /// the tap knows the attempt.
    fn whole(&self, request: Request<Bytes>) -> Request<Full<Bytes>> {
        let (mut head, body) = request.into_parts();
        if let Some(path) = head.uri.path_and_query().cloned() {
            head.uri = path.into();
        }
        let fields = [
            (HOST, RECEIVER_NAME.to_owned()),
            (CONNECTION, "close".to_owned()),
            (CONTENT_LENGTH, body.len().to_string()),
            (HeaderName::from_static("hookproof-delivery"), delivery_of(&self.event_id).0),
            (HeaderName::from_static("hookproof-attempt"), self.name.number.to_string()),
        ];
        for (name, value) in fields {
            // An id that cannot stand in a header field was in none before.
            if let Ok(value) = HeaderValue::from_str(&value) {
                head.headers.insert(name, value);
            }
        }
        Request::from_parts(head, Full::new(body))
    }

    fn failed(&self, failure: Failure) -> Failure {
        self.ends(Outcome::Failed { failure });
        failure
    }

    /// Whether a fault had its effect shows in what came of the attempt.
    fn ends(&self, outcome: Outcome) {
        let AttemptName { number, .. } = self.name;
        self.host.says(format!("{}: attempt {number}: {outcome}", self.event_id));
        let record = AttemptRecord {
            attempt: number,
            started_at: self.began,
            finished_at: self.host.now(),
            outcome,
            verdict: Verdict::Retry { floor: None },
        };
        let now = self.host.true_now();
        let (delivery, _) = delivery_of(&self.event_id);
        self.host.stage.witness().judge_fault(now, &delivery, &record);
    }
}
