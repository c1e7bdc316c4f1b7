//! HTTP answers: small JSON bodies, and problems as RFC 9457 has them.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

/// A response with its whole body at hand.
pub(crate) type Answer = Response<Full<Bytes>>;

/// A JSON answer.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Answer {
    match serde_json::to_vec(body) {
        Ok(text) => answer(status, "application/json", text),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// A problem of the general kind that its status names, with what was wrong and what would be right.
pub(crate) fn problem(status: StatusCode, detail: &str) -> Answer {
    let body = serde_json::json!({
        "type": "about:blank",
        "title": status.canonical_reason().unwrap_or("Error"),
        "status": status.as_u16(),
        "detail": detail,
    });
    answer(status, "application/problem+json", body.to_string().into_bytes())
}

/// The path exists, but not for this method.
pub(crate) fn method_not_allowed(allowed: &'static str) -> Answer {
    let detail = format!("this path takes {allowed}");
    with(problem(StatusCode::METHOD_NOT_ALLOWED, &detail), header::ALLOW, allowed)
}

/// The same answer with one more header.
pub(crate) fn with(mut answer: Answer, name: HeaderName, value: &'static str) -> Answer {
    answer.headers_mut().insert(name, HeaderValue::from_static(value));
    answer
}

fn answer(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    with(answer, header::CONTENT_TYPE, content_type)
}
