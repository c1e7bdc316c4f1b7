//! The application whose events are delivered: it registers endpoints, publishes, and publishes
//! again under the same idempotency key until it is told that the event was accepted.

use bytes::Bytes;
use hookproof_core::secret::{Secret, Secrets};
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::client::{Answer, exchange};
use hookproof_runtime::host::Host as _;
use http_body_util::Full;
use hyper::header::{CONNECTION, HOST};
use hyper::{Method, Request};

use super::host::{PORT, RECEIVER_NAME, SENDER, SimHost};
use crate::sometimes::Sometimes;

/// One event to publish.
#[derive(Clone, Debug)]
pub(super) struct Publish {
    pub(super) at: Timestamp,
    pub(super) key: String,
    pub(super) body: Vec<u8>,
}

/// An endpoint to register.
#[derive(Clone, Debug)]
pub(crate) struct Integration {
    /// Where the receiver takes its requests.
    pub(crate) path: String,
    /// The secret's bytes.
    pub(crate) key: Vec<u8>,
}

impl Integration {
    /// The name by which the world knows it: the end of its path.
    pub(super) fn source(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// What the application does in one history.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) endpoints: Vec<Integration>,
    /// In the order of their times.
    pub(super) publishes: Vec<Publish>,
}

const PATIENCE: Millis = Millis::from_secs(5);

/// Where a body says which entity it is about, and which version of it.
pub(super) const ENTITY_AT: &str = "/data/id";
pub(super) const VERSION_AT: &str = "/data/version";

/// Registers the endpoints. No fault is on yet, but the sender may still be starting.
pub(super) async fn register(host: &SimHost, script: &Script) {
    for Integration { path, key } in &script.endpoints {
        let Ok(secret) = Secret::from_bytes(key.clone()) else { continue };
        let body = serde_json::json!({
            "url": format!("http://{RECEIVER_NAME}{path}"),
            "secrets": Secrets::one(secret),
        });
        loop {
            let request = post("/endpoints", None, body.to_string().into_bytes());
            match call(host, request).await {
                Some(answer) if answer.status == 201 => break,
                _ => host.sleep(Millis::new(100)).await,
            }
        }
        host.stage.witness().registered += 1;
    }
}

/// How long its owner takes to see to an endpoint that was disabled.
const SEEN_TO: Millis = Millis::from_secs(5);

/// The owner of the endpoints enables those again that were disabled.
pub(super) async fn own(host: SimHost) {
    loop {
        host.sleep(SEEN_TO).await;
        let disabled = host.stage.witness().disabled();
        for endpoint in disabled {
            // If it does not work, it is tried again the next time.
            let _ =
                call(&host, post(&format!("/endpoints/{endpoint}/enable"), None, Vec::new())).await;
        }
    }
}

/// Publishes everything; each publish is a task of its own, so that one that must wait holds up no
/// other.
pub(super) fn publish(host: &SimHost, script: Script) {
    for publish in script.publishes {
        let task_host = host.clone();
        host.spawn(async move {
            let host = task_host;
            host.sleep(publish.at.since(host.now())).await;
            host.stage.witness().wants(host.true_now(), &publish.key, &publish.body);
            until_accepted(&host, &publish).await;
        });
    }
}

async fn until_accepted(host: &SimHost, publish: &Publish) {
    loop {
        let request = post("/events?type=order.paid", Some(&publish.key), publish.body.clone());
        let answer = call(host, request).await;
        if let Some(answer) = answer.filter(|answer| answer.status == 202)
            && let Some(id) = id_of(&answer)
        {
            let (stage, now) = (&host.stage, host.true_now());
            stage.journal.line(now, host.name(), format!("{} accepted as {id}", publish.key));
            if answer.headers.contains_key("idempotency-replayed") {
                stage.journal.reached(Sometimes::PublishReplayed);
            }
            stage.witness().accepted(now, &publish.key, &id);
            return;
        }
        let pause = host.stage.choices.between(host.name(), "pause", 1, 10) * 100;
        host.sleep(Millis::new(pause)).await;
    }
}

/// One request without an idempotency key.
pub(super) async fn ask(
    host: &SimHost,
    method: Method,
    path: &str,
    body: Option<Vec<u8>>,
) -> Option<Answer> {
    call(host, request(method, path, None, body.unwrap_or_default())).await
}

/// Asks until it is done, or is known to be impossible: with which status. While the network is in trouble, a 404 may be a
/// gateway's.
pub(super) async fn ask_until(
    host: &SimHost,
    method: Method,
    path: &str,
    body: Option<Vec<u8>>,
) -> u16 {
    loop {
        let is_calm = !host.stage.are_faults_on();
        let status =
            ask(host, method.clone(), path, body.clone()).await.map(|answer| answer.status);
        match status {
            Some(status @ (200..=299 | 409)) => return status,
            Some(404) if is_calm => return 404,
            _ => host.sleep(Millis::new(500)).await,
        }
    }
}

fn post(path: &str, key: Option<&str>, body: Vec<u8>) -> Option<Request<Full<Bytes>>> {
    request(Method::POST, path, key, body)
}

fn request(
    method: Method,
    path: &str,
    key: Option<&str>,
    body: Vec<u8>,
) -> Option<Request<Full<Bytes>>> {
    let mut request = Request::builder().method(method).uri(path);
    request = request.header(HOST, SENDER).header(CONNECTION, "close");
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    request.body(Full::new(Bytes::from(body))).ok()
}

/// One request to the sender's API; `None` if no answer came.
async fn call(host: &SimHost, request: Option<Request<Full<Bytes>>>) -> Option<Answer> {
    let request = request?;
    let work = async {
        let address = host.resolve(SENDER, PORT).await.ok()?.into_iter().next()?;
        let stream = host.connect(address).await.ok()?;
        let exchange = exchange(host, stream, request, None).await.ok()?;
        Some(exchange.read(64 * 1024, host.sleep(PATIENCE)).await)
    };
    host.within(PATIENCE, work).await?
}

/// What an answer says.
pub(super) fn body_of(answer: &Answer) -> Option<serde_json::Value> {
    serde_json::from_slice(&answer.body).ok()
}

fn id_of(answer: &Answer) -> Option<String> {
    body_of(answer)?.get("id")?.as_str().map(ToOwned::to_owned)
}
