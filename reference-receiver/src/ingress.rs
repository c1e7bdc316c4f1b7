//! The way in: read, verify, record, commit, and only then acknowledge.
//!
//! A 2xx means that the receiver has taken over the responsibility for the event, so it is answered
//! after the commit and never otherwise. The signature is checked over the raw bytes before anything
//! is parsed, and what is recorded comes from the signed bytes and from the source whose secret
//! verified them.

use std::net::SocketAddr;
use std::sync::Arc;

use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::host::Host;
use hookproof_runtime::server::{AfterResponse, BodyError, read_body};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap};
use hyper::http::request::Parts;
use hyper::{Request, StatusCode};
use serde_json::json;
use tokio::sync::Notify;

use crate::answer::{Answer, json, problem, with};
use crate::config::{ReceiverConfig, Source};
use crate::store::{InboxStore, Recorded, Verified};
use crate::verifier::Refusal;

/// Takes in events.
#[derive(Clone)]
pub(crate) struct Ingress<H, S> {
    pub(crate) host: H,
    pub(crate) store: S,
    pub(crate) config: Arc<ReceiverConfig>,
    pub(crate) wake: Arc<Notify>,
}

impl<H: Host, S: InboxStore> Ingress<H, S> {
    /// The source that a path names.
    pub(crate) fn source(&self, id: &str) -> Option<&Source> {
        self.config.sources.iter().find(|source| source.id.as_str() == id)
    }

    /// Answers `POST /hooks/{source}`.
    pub(crate) async fn receive(
        &self,
        source: &Source,
        request: Request<Incoming>,
        peer: SocketAddr,
    ) -> Answer {
        let (head, body) = request.into_parts();
        let (bytes_max, timeout) = (self.config.body_bytes_max, self.config.body_timeout);
        let body = match read_body(&self.host, body, bytes_max, timeout).await {
            Ok(body) => body,
            Err(error) => return self.unread(error),
        };
        self.host.at(CrashPoint::RequestAccepted).await;
        match self.verified(source, &head, body) {
            Ok(delivery) => {
                self.host.at(CrashPoint::RequestVerified).await;
                self.record(delivery).await
            }
            Err(Refusal::Unauthorized(reason)) => {
                tracing::info!(source = %source.id, %peer, %reason, "a request was refused");
                unauthorized()
            }
            Err(Refusal::EventId(problem)) => {
                tracing::warn!(source = %source.id, %problem, "a signed event id is unusable");
                answer_event_id(&problem)
            }
        }
    }

    fn verified(&self, source: &Source, head: &Parts, body: Vec<u8>) -> Result<Verified, Refusal> {
        let now = self.host.wall();
        let event_id = source.verifier.verify(&head.headers, head.uri.query(), &body, now)?;
        Ok(Verified {
            source: source.id.clone(),
            event_id,
            body,
            content_type: content_type(&head.headers),
            received_at: self.host.now(),
        })
    }

    async fn record(&self, delivery: Verified) -> Answer {
        let (source, event_id) = (delivery.source.clone(), delivery.event_id.clone());
        let recorded = match self.store.record(delivery).await {
            Ok(recorded) => recorded,
            Err(error) => {
                tracing::warn!(%source, %event_id, %error, "an event could not be recorded");
                return unavailable();
            }
        };
        self.host.at(CrashPoint::InboxCommitted).await;
        let mut answer = match recorded {
            Recorded::New => {
                // If the sender hangs up before this line, the sweep finds the row.
                self.wake.notify_one();
                json(StatusCode::ACCEPTED, &json!({ "status": "accepted" }))
            }
            Recorded::Duplicate => json(StatusCode::OK, &json!({ "status": "duplicate" })),
        };
        answer.extensions_mut().insert(AfterResponse(CrashPoint::AckSent));
        answer
    }

    /// What is left of the body is not read, so the connection cannot be used again.
    fn unread(&self, error: BodyError) -> Answer {
        let answer = match error {
            BodyError::TooLarge => problem(
                StatusCode::PAYLOAD_TOO_LARGE,
                &format!("a body may have at most {} bytes here", self.config.body_bytes_max),
            ),
            BodyError::Timeout => problem(
                StatusCode::REQUEST_TIMEOUT,
                &format!("a whole body must arrive within {}", self.config.body_timeout),
            ),
            BodyError::Broken => problem(StatusCode::BAD_REQUEST, "the body breaks off"),
        };
        with(answer, header::CONNECTION, "close")
    }
}

fn content_type(headers: &HeaderMap) -> String {
    let named = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    named.unwrap_or("application/octet-stream").to_owned()
}

/// The same for every reason: which check failed is a hint to a forger, and the log has it for
/// whoever runs the receiver. A 401 must name a scheme to authenticate by (RFC 9110, 15.5.2).
fn unauthorized() -> Answer {
    let answer = problem(StatusCode::UNAUTHORIZED, "the request has no valid signature");
    with(answer, header::WWW_AUTHENTICATE, "Webhook-Signature")
}

fn answer_event_id(problem_with_it: &str) -> Answer {
    problem(StatusCode::BAD_REQUEST, &format!("the event's id: {problem_with_it}"))
}

fn unavailable() -> Answer {
    let detail = "the event could not be stored; send it again";
    with(problem(StatusCode::SERVICE_UNAVAILABLE, detail), header::RETRY_AFTER, "1")
}
