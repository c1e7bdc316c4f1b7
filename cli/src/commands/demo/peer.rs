//! Asking a process over HTTP that may be dead at any moment.

use std::net::SocketAddr;

use bytes::Bytes;
use hookproof_core::time::Millis;
use hookproof_runtime::client::{Answer, exchange};
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use http::Request;
use http::header::{CONTENT_TYPE, HOST};
use http::request::Builder;
use http_body_util::Full;
use serde::de::DeserializeOwned;

/// The longest wait for a whole answer.
const TIMEOUT: Millis = Millis::from_secs(5);
/// The longest answer that is read, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// A process that answers on a loopback address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Peer {
    address: SocketAddr,
}

impl Peer {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self { address }
    }

    /// What stands at `path` now; `None` if the process did not say.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        let answer = self.ask(Request::get(path), Bytes::new()).await?;
        if answer.status != 200 {
            return None;
        }
        serde_json::from_slice(&answer.body).ok()
    }

    /// The answer to a POST, whatever its status; `None` if no whole one came.
    pub(super) async fn post(&self, request: Builder, body: Bytes) -> Option<Answer> {
        self.ask(request.header(CONTENT_TYPE, "application/json"), body).await
    }

    async fn ask(&self, request: Builder, body: Bytes) -> Option<Answer> {
        let request = request.header(HOST, self.address.to_string()).body(Full::new(body)).ok()?;
        let answer = TokioHost.within(TIMEOUT, async {
            let stream = TokioHost.connect(self.address).await.ok()?;
            let answer = exchange(&TokioHost, stream, request, None).await.ok()?;
            // The timeout around all of this bounds the body, too.
            Some(answer.read(BODY_BYTES_MAX, std::future::pending()).await)
        });
        answer.await.flatten().filter(|answer| !answer.truncated)
    }
}
