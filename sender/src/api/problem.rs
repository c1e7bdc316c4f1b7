//! Problem details (RFC 9457).

use axum::Json;
use axum::response::{IntoResponse, Response};
use hookproof_runtime::database::StoreError;
use hookproof_runtime::server::BodyError;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use serde::Serialize;

/// An error as a client sees it: what was wrong, and what would be right.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Problem {
    #[serde(rename = "status", serialize_with = "number")]
    status: StatusCode,
    title: &'static str,
    detail: String,
}

fn number<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

impl Problem {
    fn new(status: StatusCode, title: &'static str, detail: impl Into<String>) -> Self {
        Self { status, title, detail: detail.into() }
    }

    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "the request is malformed", detail)
    }

    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not found", detail)
    }

    pub(super) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method not allowed",
            "the `allow` header lists the methods of this resource",
        )
    }

    pub(super) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "the state does not allow this", detail)
    }

    pub(super) fn key_reused(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "the idempotency key was used before", detail)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        tracing::warn!(%error, "a request failed in the store");
        if matches!(error, StoreError::Corrupt(_)) {
            return Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the store holds what cannot be understood",
                "nothing was changed; the log of the sender says what it is",
            );
        }
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the store is not available",
            "nothing was changed; send the request again, a publish with the same idempotency key",
        )
    }
}

impl Problem {
    /// Why a body of at most `bytes_max` bytes could not be read.
    pub(super) fn unreadable(error: BodyError, bytes_max: usize) -> Self {
        match error {
            BodyError::TooLarge => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "the body is too large",
                format!("at most {bytes_max} bytes are accepted"),
            ),
            BodyError::Timeout => Self::new(
                StatusCode::REQUEST_TIMEOUT,
                "the body did not arrive in time",
                "nothing was stored; send the request again",
            ),
            BodyError::Broken => Self::bad_request("the body broke off"),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status;
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
