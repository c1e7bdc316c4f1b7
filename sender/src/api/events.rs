//! Publishing.
//!
//! The request body is the event's body, byte for byte: nothing parses or re-encodes it on its way.

use axum::Json;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Response};
use hookproof_core::event::{Event, EventType};
use hookproof_core::id::EventId;
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::host::Host;
use hookproof_runtime::server::{AfterResponse, read_body};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Request, StatusCode};
use serde::{Deserialize, Serialize};

use super::Api;
use super::problem::Problem;
use crate::store::{Publication, Published, Store, shared as shared_bytes};

const KEY_HEADER: &str = "idempotency-key";
const REPLAYED_HEADER: &str = "idempotency-replayed";
/// The longest idempotency key, in bytes.
const KEY_BYTES_MAX: usize = 255;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    r#type: EventType,
}

#[derive(Serialize)]
struct Accepted {
    id: EventId,
    deliveries: usize,
}

pub(super) async fn publish<H: Host, S: Store>(
    State(shared): Api<H, S>,
    parameters: Result<Query<Parameters>, axum::extract::rejection::QueryRejection>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let Query(parameters) = parameters.map_err(|error| {
        Problem::bad_request(format!(
            "{}; name the event's type, as in POST /events?type=order.paid",
            error.body_text()
        ))
    })?;
    let host = &shared.host;
    let (head, body) = request.into_parts();
    let idempotency_key = key(&head.headers)?;
    let content_type = content_type(&head.headers)?;
    let bytes_max = shared.config.body_bytes_max;
    let body = read_body(host, body, bytes_max, shared.config.body_timeout)
        .await
        .map_err(|error| Problem::unreadable(error, bytes_max))?;
    host.at(CrashPoint::PublishReceived).await;
    let event = Event {
        id: EventId::from_entropy([host.entropy(), host.entropy()]),
        event_type: parameters.r#type,
        content_type,
        body: shared_bytes(body),
        created_at: host.now(),
    };
    let published = shared.store.publish(Publication { event, idempotency_key }).await?;
    host.at(CrashPoint::PublishCommitted).await;
    shared.due.notify_one();
    answer(published)
}

fn answer(published: Published) -> Result<Response, Problem> {
    let (accepted, replayed) = match published {
        Published::New { event_id, deliveries } => (Accepted { id: event_id, deliveries }, false),
        Published::Replayed { event_id, deliveries } => {
            (Accepted { id: event_id, deliveries }, true)
        }
        Published::Conflict { event_id } => {
            return Err(Problem::key_reused(format!(
                "it belongs to event {event_id}, which has another type, content type or body; a \
                 new event needs a key of its own"
            )));
        }
    };
    let mut response = (StatusCode::ACCEPTED, Json(accepted)).into_response();
    if replayed {
        response.headers_mut().insert(REPLAYED_HEADER, HeaderValue::from_static("true"));
    }
    response.extensions_mut().insert(AfterResponse(CrashPoint::PublishAcked));
    Ok(response)
}

fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut lines = headers.get_all(KEY_HEADER).iter();
    let Some(first) = lines.next() else { return Ok(None) };
    let text = first.to_str().unwrap_or_default().trim();
    if lines.next().is_some() || text.is_empty() || text.len() > KEY_BYTES_MAX {
        return Err(Problem::bad_request(format!(
            "`{KEY_HEADER}` must be one line of 1 to {KEY_BYTES_MAX} visible ASCII characters"
        )));
    }
    Ok(Some(text.to_owned()))
}

fn content_type(headers: &HeaderMap) -> Result<String, Problem> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return Ok("application/json".to_owned());
    };
    let text = value.to_str().map_err(|_| Problem::bad_request("`content-type` is not ASCII"))?;
    Ok(text.to_owned())
}
