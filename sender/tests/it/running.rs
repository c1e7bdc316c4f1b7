//! A sender that runs, and what can be asked of it.

use std::future::{Future, pending};
use std::net::SocketAddr;
use std::path::PathBuf;

use bytes::Bytes;
use hookproof_core::address::AddressPolicy;
use hookproof_core::delivery::{AttemptRecord, Delivery, Input, Phase};
use hookproof_core::id::{DeliveryId, EndpointId, EventId};
use hookproof_core::outcome::Outcome;
use hookproof_core::policy::Policy;
use hookproof_core::schedule::{Backoff, Jitter, Schedule};
use hookproof_core::secret::Secrets;
use hookproof_core::time::Millis;
use hookproof_runtime::client::exchange;
use hookproof_runtime::database::{DatabaseConfig, Durability, OpenError};
use hookproof_runtime::host::Host;
use hookproof_runtime::tokio_host::TokioHost;
use hookproof_sender::config::SenderConfig;
use hookproof_sender::sqlite::SqliteStore;
use hookproof_sender::store::Store;
use hookproof_sender::tls::Tls;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::clock::Clock;

pub(crate) const HOST: TokioHost = TokioHost;

/// It is due, and the gate never held it back.
pub(crate) const ADMITTED: Input = Input::Admitted { held: Millis::ZERO };

/// How long a test waits for what must happen. None is meant to come near it.
pub(crate) const PATIENCE: Millis = Millis::from_secs(20);
/// How often a test looks whether it has happened.
pub(crate) const POLL: Millis = Millis::new(10);

/// What the tests need: this machine, and names that never are anybody's.
pub(crate) fn address_policy() -> AddressPolicy {
    let mut policy = AddressPolicy::default().with_loopback();
    policy.allow_hosts.push("*.example".parse().expect("names"));
    policy
}

/// A sender with these waits between attempts, in milliseconds, and without a sweep.
pub(crate) fn config(waits: &[u64]) -> SenderConfig {
    let waits = waits.iter().copied().map(Millis::new).collect();
    let schedule = Schedule::new(Backoff::List { waits }, Jitter::None);
    SenderConfig {
        policy: Policy { schedule, ..Policy::default() },
        address: address_policy(),
        sweep_interval: Millis::from_hours(1),
        ..SenderConfig::default()
    }
}

/// What `work` results in; it must do so in time.
pub(crate) async fn soon<T: Send>(what: &str, work: impl Future<Output = T> + Send) -> T {
    match HOST.within(PATIENCE, work).await {
        Some(result) => result,
        None => panic!("{what}: not within {PATIENCE}"),
    }
}

/// Looks again and again until `look` finds something.
pub(crate) async fn eventually<T, F>(what: &str, mut look: impl FnMut() -> F + Send) -> T
where
    T: Send,
    F: Future<Output = Option<T>> + Send,
{
    let found = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            HOST.sleep(POLL).await;
        }
    };
    soon(what, found).await
}

/// Does all at the same time, and yields the results in the order of the work.
pub(crate) async fn together<T, F>(work: impl IntoIterator<Item = F>) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let started: Vec<_> = work
        .into_iter()
        .map(|work| {
            let (tell, told) = oneshot::channel();
            HOST.spawn(async move {
                let _ = tell.send(work.await);
            });
            told
        })
        .collect();
    let mut results = Vec::new();
    for told in started {
        results.push(soon("work at the same time", told).await.expect("no work panics"));
    }
    results
}

/// A directory with a sender's database, which outlives the sender.
pub(crate) struct Home {
    directory: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { directory: TempDir::new().expect("a temporary directory") }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("sender.db")
    }

    pub(crate) fn database(&self) -> DatabaseConfig {
        DatabaseConfig { path: self.path(), durability: Durability::PowerLoss }
    }

    /// Opens the store. Whoever had it before may still be letting go of it.
    pub(crate) async fn open(&self) -> SqliteStore {
        eventually("the store is free", || async {
            match SqliteStore::open(&HOST, &self.database()) {
                Err(OpenError::InUse { .. }) => None,
                opened => Some(opened.expect("the store opens")),
            }
        })
        .await
    }

    /// A number that SQL finds in the database, beside the sender's own connections.
    pub(crate) fn count(&self, sql: &str) -> i64 {
        let connection = rusqlite::Connection::open(self.path()).expect("the file opens");
        connection.query_row(sql, [], |row| row.get(0)).expect("a number")
    }

    /// The numbers that SQL finds, in their order.
    pub(crate) fn numbers(&self, sql: &str) -> Vec<i64> {
        let connection = rusqlite::Connection::open(self.path()).expect("the file opens");
        let mut statement = connection.prepare(sql).expect("it is SQL");
        let rows = statement.query_map([], |row| row.get(0)).expect("it can be asked");
        rows.map(|number| number.expect("a number")).collect()
    }

    /// Changes rows behind the sender's back.
    pub(crate) fn change(&self, sql: &str) {
        let connection = rusqlite::Connection::open(self.path()).expect("the file opens");
        assert!(connection.execute(sql, []).expect("it is SQL") > 0, "no row: {sql}");
    }

    pub(crate) async fn start(&self, config: SenderConfig) -> Sender {
        self.start_with(config, Tls::new(None).expect("the usual roots")).await
    }

    pub(crate) async fn start_with(&self, config: SenderConfig, tls: Tls) -> Sender {
        self.start_on(HOST, config, tls).await
    }

    /// Starts a sender that reaches the world through `host`.
    pub(crate) async fn start_on<H: Host<Listener = TcpListener>>(
        &self,
        host: H,
        config: SenderConfig,
        tls: Tls,
    ) -> Sender {
        let store = self.open().await;
        self.start_all(host, store, config, tls).await
    }

    /// Starts a sender on a store of this home, perhaps within another.
    pub(crate) async fn start_store<H: Host<Listener = TcpListener>>(
        &self,
        host: H,
        store: impl Store,
        config: SenderConfig,
    ) -> Sender {
        self.start_all(host, store, config, Tls::new(None).expect("the usual roots")).await
    }

    /// Starts a sender on a clock that stands still.
    pub(crate) async fn start_on_clock(&self, clock: &Clock, config: SenderConfig) -> Sender {
        let store = self.open().await;
        self.start_store(clock.clone(), store, config).await
    }

    async fn start_all<H: Host<Listener = TcpListener>>(
        &self,
        host: H,
        store: impl Store,
        config: SenderConfig,
        tls: Tls,
    ) -> Sender {
        config.validate().expect("a valid configuration");
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = HOST.listen(loopback).await.expect("a port");
        let address = TokioHost::local_addr(&listener).expect("its number");
        let (stop, stopped) = oneshot::channel::<()>();
        let (end, ended) = oneshot::channel();
        HOST.spawn(async move {
            let shutdown = async move {
                let _ = stopped.await;
            };
            hookproof_sender::run(host, listener, config, tls, store, shutdown).await;
            let _ = end.send(());
        });
        Sender { address, stop: Some(stop), ended }
    }
}

/// A running sender. It stops when it is told to, or is dropped.
pub(crate) struct Sender {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    ended: oneshot::Receiver<()>,
}

impl Sender {
    /// Asks for the end without waiting for it.
    pub(crate) fn ask_to_stop(&mut self) {
        self.stop = None;
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.ended.try_recv().is_ok()
    }

    /// Stops it, and waits until it has.
    pub(crate) async fn stop(mut self) {
        self.ask_to_stop();
        soon("the sender ends", self.ended).await.expect("it does not panic");
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Reply {
        call(self.address, request).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(request("GET", path, "")).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Reply {
        self.send(request("POST", path, body)).await
    }

    /// Registers an endpoint that wants everything.
    pub(crate) async fn register(&self, url: &str) -> Registered {
        self.register_as(&json!({ "url": url })).await
    }

    pub(crate) async fn register_as(&self, endpoint: &Value) -> Registered {
        let reply = self.post("/endpoints", endpoint.to_string()).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        reply.json()
    }

    /// Publishes an event of the type `thing.happened`.
    pub(crate) async fn publish(&self, body: impl Into<Bytes>) -> EventId {
        self.publish_as("thing.happened", body).await
    }

    pub(crate) async fn publish_as(&self, event_type: &str, body: impl Into<Bytes>) -> EventId {
        let reply = self.post(&format!("/events?type={event_type}"), body).await;
        assert_eq!(reply.status, 202, "{}", reply.text());
        reply.json::<Accepted>().id
    }

    pub(crate) async fn seen(&self, id: &DeliveryId) -> Seen {
        let reply = self.get(&format!("/deliveries/{id}")).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    /// The delivery, once it is as wanted.
    pub(crate) async fn until(&self, id: &DeliveryId, is_wanted: fn(&Seen) -> bool) -> Seen {
        eventually(&format!("{id} becomes as wanted"), || async {
            Some(self.seen(id).await).filter(is_wanted)
        })
        .await
    }

    /// The delivery, once it is delivered, dead or cancelled.
    pub(crate) async fn settled(&self, id: &DeliveryId) -> Seen {
        self.until(id, |seen| seen.delivery.wake_at().is_none()).await
    }

    /// The delivery, once this many attempts are recorded and none is under way.
    pub(crate) async fn attempted(&self, id: &DeliveryId, attempts: usize) -> Seen {
        // The API reads the history after the state, so it can be ahead of it.
        let is_recorded = |seen: &Seen| {
            seen.history.len() == attempts
                && seen.delivery.attempts as usize == attempts
                && !matches!(seen.phase(), Phase::InFlight { .. })
        };
        eventually(&format!("{id} is attempted {attempts} times"), || async {
            Some(self.seen(id).await).filter(is_recorded)
        })
        .await
    }

    pub(crate) async fn totals(&self) -> Value {
        self.get("/totals").await.json()
    }
}

/// An endpoint as the API shows it when it is made.
#[derive(Deserialize, Debug)]
pub(crate) struct Registered {
    pub(crate) id: EndpointId,
    pub(crate) secrets: Secrets,
}

impl Registered {
    /// The id of an event's delivery to this endpoint.
    pub(crate) fn delivery_of(&self, event: &EventId) -> DeliveryId {
        DeliveryId::of(event, &self.id)
    }
}

/// What the API answers to a publish.
#[derive(Deserialize, Debug)]
pub(crate) struct Accepted {
    pub(crate) id: EventId,
    pub(crate) deliveries: usize,
}

/// A delivery as the API shows it.
#[derive(Deserialize, Debug)]
pub(crate) struct Seen {
    #[serde(flatten)]
    pub(crate) delivery: Delivery,
    pub(crate) event_type: String,
    pub(crate) last_outcome: Option<String>,
    #[serde(default)]
    pub(crate) history: Vec<Past>,
}

impl Seen {
    pub(crate) fn phase(&self) -> Phase {
        self.delivery.phase
    }

    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        self.history.iter().map(|past| past.record.outcome).collect()
    }

    /// The outcomes in words.
    pub(crate) fn story(&self) -> Vec<String> {
        self.outcomes().iter().map(ToString::to_string).collect()
    }
}

/// An attempt as the API shows it.
#[derive(Deserialize, Debug)]
pub(crate) struct Past {
    #[serde(flatten)]
    pub(crate) record: AttemptRecord,
    pub(crate) excerpt: String,
}

/// What an HTTP server answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json<T: DeserializeOwned>(&self) -> T {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{}: {error}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("it is text"))
    }

    /// The detail of a problem (RFC 9457).
    pub(crate) fn problem(&self) -> String {
        let media_type = self.header(CONTENT_TYPE.as_str());
        assert_eq!(media_type, Some("application/problem+json"), "{}", self.text());
        let problem: Value = self.json();
        assert_eq!(problem["status"], self.status, "{problem}");
        assert!(problem["title"].is_string(), "{problem}");
        problem["detail"].as_str().expect("a detail").to_owned()
    }
}

pub(crate) fn request(method: &str, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "sender.test")
        .body(Full::new(body.into()))
        .expect("a request")
}

/// One exchange on a connection of its own.
pub(crate) async fn call(address: SocketAddr, request: Request<Full<Bytes>>) -> Reply {
    let answer = async {
        let stream = HOST.connect(address).await.expect("the server takes connections");
        let exchange = exchange(&HOST, stream, request, None).await.expect("the server answers");
        exchange.read(16 * 1024 * 1024, pending()).await
    };
    let answer = soon("an answer of the API", answer).await;
    assert!(!answer.truncated, "the whole answer arrives");
    Reply { status: answer.status, headers: answer.headers, body: answer.body }
}
