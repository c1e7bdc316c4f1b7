//! What both receivers do first: find out whether a request is genuine.

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use hookproof_core::secret::Secrets;
use hookproof_core::signature::{
    ID_HEADER, SIGNATURE_HEADER, Signed, TIMESTAMP_HEADER, TOLERANCE, verify,
};
use hookproof_sim::receiver::Life;

/// The id of the event that a request carries, if the signature holds.
pub(crate) fn event_id<S>(
    life: &Life<S>,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<String, StatusCode> {
    let header = |name| headers.get(name).map(|value| value.as_bytes());
    let id = header(ID_HEADER);
    let signed = Signed {
        id,
        timestamp: header(TIMESTAMP_HEADER),
        signature: header(SIGNATURE_HEADER),
        body,
    };
    verify(&Secrets::one(life.secret().clone()), &signed, life.wall(), TOLERANCE)
        .map_err(|_| StatusCode::UNAUTHORIZED)?;
    Ok(String::from_utf8_lossy(id.unwrap_or_default()).into_owned())
}
