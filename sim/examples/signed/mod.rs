//! What both senders write: a signed request.

use bytes::Bytes;
use hookproof_core::secret::Secrets;
use hookproof_core::signature::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign};
use hookproof_sim::sender::{Client, Life};
use hyper::Request;

/// The request of one attempt: the same id and body each time, signed anew.
pub(crate) fn request<S>(life: &Life<S>, client: &Client, id: &str, body: Bytes) -> Request<Bytes> {
    let now = life.wall().as_secs();
    let signature = sign(&Secrets::one(life.secret().clone()), id, now, &body);
    let mut request = Request::new(body);
    *request.method_mut() = hyper::Method::POST;
    *request.uri_mut() = client.url().parse().expect("the client's own is a URL");
    let fields = [
        (ID_HEADER, id.to_owned()),
        (TIMESTAMP_HEADER, now.to_string()),
        (SIGNATURE_HEADER, signature),
    ];
    for (name, value) in fields {
        request.headers_mut().insert(name, value.parse().expect("nothing but plain text"));
    }
    request
}
