//! What the tests are given: a running receiver on a loopback socket and a file of its own, signed
//! requests to send to it, and hosts and effects that fail on demand.

use std::future::{Future, pending};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hookproof_core::id::{EventId, SourceId};
use hookproof_core::inbox::InboxRule;
use hookproof_core::schedule::{Backoff, Jitter, Schedule};
use hookproof_core::secret::{Secret, Secrets};
use hookproof_core::signature::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign};
use hookproof_core::time::{Millis, Timestamp};
use hookproof_receiver::config::{ReceiverConfig, Source};
use hookproof_receiver::effect::{Effect, EffectError, Ledger};
use hookproof_receiver::run;
use hookproof_receiver::sqlite::SqliteInbox;
use hookproof_receiver::store::{InboxStore, Moment, Totals, Verified, Work};
use hookproof_runtime::client::{Answer, exchange};
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::database::{DatabaseConfig, Durability, OpenError};
use hookproof_runtime::host::Host;
use hookproof_runtime::tokio_host::TokioHost;
use http_body_util::Full;
use hyper::Request;
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::sync::oneshot;

pub(crate) const BODY: &[u8] = br#"{"type":"order.paid","data":{"order":1}}"#;

/// Longer than anything here takes, unless it never comes.
const PATIENCE: Millis = Millis::from_secs(20);

pub(crate) fn ms(ms: u64) -> Millis {
    Millis::new(ms)
}

pub(crate) fn source_id(id: &str) -> SourceId {
    SourceId::new(id).expect("an id")
}

pub(crate) fn event(id: &str) -> EventId {
    EventId::new(id).expect("an id")
}

/// The secrets of a source follow from its name.
pub(crate) fn secrets(source: &str) -> Secrets {
    let key: Vec<u8> = source.bytes().cycle().take(32).collect();
    Secrets::one(Secret::from_bytes(key).expect("32 bytes"))
}

pub(crate) fn source(id: &str) -> Source {
    Source::new(source_id(id), &secrets(id))
}

/// Two sources, and a sweep that nobody has to wait for.
pub(crate) fn config() -> ReceiverConfig {
    let sources = vec![source("shop"), source("bank")];
    ReceiverConfig { sweep_interval: ms(50), ..ReceiverConfig::new(sources) }
}

/// A rule of so many attempts, one right after the other.
pub(crate) fn rule(attempts: usize, lease: Millis) -> InboxRule {
    let backoff = Backoff::List { waits: vec![ms(1); attempts - 1] };
    InboxRule { lease, schedule: Schedule::new(backoff, Jitter::None) }
}

/// The time as the store is told it, moved later by `span`.
pub(crate) fn moment_in(span: Millis, rule: &InboxRule) -> Moment {
    Moment { now: TokioHost.now().plus(span), entropy: 0, rule: Arc::new(rule.clone()) }
}

pub(crate) fn moment() -> Moment {
    moment_in(Millis::ZERO, &InboxRule::default())
}

/// A delivery as ingress records it.
pub(crate) fn verified(source: &str, id: &str) -> Verified {
    Verified {
        source: source_id(source),
        event_id: event(id),
        body: BODY.to_vec(),
        content_type: "application/json".to_owned(),
        received_at: TokioHost.now(),
    }
}

/// A directory with the database of one test.
pub(crate) struct Disk(TempDir);

impl Disk {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) async fn open(&self) -> SqliteInbox<TokioHost> {
        self.open_with(TokioHost, Ledger).await
    }

    /// Opens the database, as soon as the writer of a store that was just dropped has let go of it.
    pub(crate) async fn open_with<H: Host, E: Effect>(
        &self,
        host: H,
        effect: E,
    ) -> SqliteInbox<H, E> {
        let path = self.path().join("inbox.db");
        let config = DatabaseConfig { path, durability: Durability::PowerLoss };
        let opened = TokioHost.within(PATIENCE, async {
            loop {
                match SqliteInbox::open_with(&host, &config, effect.clone()) {
                    Err(OpenError::InUse { .. }) => TokioHost.sleep(ms(5)).await,
                    opened => return opened.expect("it opens"),
                }
            }
        });
        opened.await.expect("the store before was never closed")
    }
}

/// A receiver that runs.
pub(crate) struct Running<S> {
    pub(crate) address: SocketAddr,
    pub(crate) store: S,
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

pub(crate) async fn start<H: Host, S: InboxStore>(
    host: H,
    store: S,
    config: ReceiverConfig,
) -> Running<S> {
    config.validate().expect("a valid configuration");
    let listener = host.listen(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a socket");
    let address = H::local_addr(&listener).expect("an address");
    let (stop, stopped) = oneshot::channel();
    let (tell, ended) = oneshot::channel();
    let running = run(host.clone(), listener, config, store.clone(), async {
        let _ = stopped.await;
    });
    host.spawn(async move {
        running.await;
        let _ = tell.send(());
    });
    Running { address, store, stop, ended }
}

impl<S: InboxStore> Running<S> {
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        send(self.address, request).await
    }

    /// Sends a signed event with [`BODY`].
    pub(crate) async fn deliver(&self, source: &str, id: &str) -> Answer {
        self.send(signed(source, id)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Full::default()).expect("a request")).await
    }

    /// The totals, once they are as wanted.
    pub(crate) async fn until(&self, wanted: impl Fn(&Totals) -> bool) -> Totals {
        until(&self.store, wanted).await
    }

    pub(crate) async fn effects(&self, id: &str) -> u64 {
        self.store.effects_of(event(id), None).await.expect("a count")
    }

    /// Asks it to end without waiting for that.
    pub(crate) fn ask_to_stop(self) -> oneshot::Receiver<()> {
        self.stop.send(()).expect("it runs");
        self.ended
    }

    pub(crate) async fn stop(self) {
        let ended = TokioHost.within(PATIENCE, self.ask_to_stop()).await;
        ended.expect("it never ended").expect("it did not panic");
    }
}

pub(crate) async fn until<S: InboxStore>(store: &S, wanted: impl Fn(&Totals) -> bool) -> Totals {
    let deadline = TokioHost.now().plus(PATIENCE);
    loop {
        let totals = store.totals().await.expect("totals");
        if wanted(&totals) {
            return totals;
        }
        assert!(TokioHost.now() < deadline, "it never came to that: {totals:?}");
        TokioHost.sleep(ms(5)).await;
    }
}

pub(crate) async fn send(address: SocketAddr, request: Request<Full<Bytes>>) -> Answer {
    let exchanged = async {
        let stream = TokioHost.connect(address).await.expect("a connection");
        let exchange = exchange(&TokioHost, stream, request, None).await.expect("an answer");
        exchange.read(1 << 20, pending()).await
    };
    TokioHost.within(PATIENCE, exchanged).await.expect("no answer came")
}

/// A request with the three headers of a signature, each of which may be absent.
#[derive(Clone)]
pub(crate) struct Post {
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

impl Post {
    /// A well signed event, sent now.
    pub(crate) fn new(source: &str, id: &str, body: &[u8]) -> Self {
        Self::at(source, id, TokioHost.now(), body)
    }

    /// A well signed event, sent then.
    pub(crate) fn at(source: &str, id: &str, then: Timestamp, body: &[u8]) -> Self {
        let timestamp = then.as_secs();
        let signature = sign(&secrets(source), id, timestamp, body);
        Self {
            path: format!("/hooks/{source}"),
            headers: vec![
                (ID_HEADER, id.to_owned()),
                (TIMESTAMP_HEADER, timestamp.to_string()),
                (SIGNATURE_HEADER, signature),
                ("content-type", "application/json".to_owned()),
            ],
            body: body.to_vec(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        &self.headers.iter().find(|(found, _)| *found == name).expect("it has that header").1
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(found, _)| *found != name);
        self
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn replacing(self, name: &'static str, value: impl Into<String>) -> Self {
        self.without(name).with(name, value)
    }

    pub(crate) fn request(self) -> Request<Full<Bytes>> {
        let mut request = Request::post(self.path);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        request.body(Full::from(self.body)).expect("a request")
    }
}

/// A well signed event with [`BODY`].
pub(crate) fn signed(source: &str, id: &str) -> Request<Full<Bytes>> {
    Post::new(source, id, BODY).request()
}

pub(crate) fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.clone()).expect("UTF-8")
}

/// The real host, which ends once at a point, though only for the task that passes it, and remembers
/// which points were passed.
#[derive(Clone)]
pub(crate) struct Fused {
    fuse: Arc<Mutex<Option<CrashPoint>>>,
    passed: Arc<Mutex<Vec<CrashPoint>>>,
    /// By how much the wall clock is ahead of the time by which everything waits.
    wall_ahead_ms: Arc<AtomicI64>,
}

impl Fused {
    pub(crate) fn new(fuse: Option<CrashPoint>) -> Self {
        let fuse = Arc::new(Mutex::new(fuse));
        Self { fuse, passed: Arc::default(), wall_ahead_ms: Arc::default() }
    }

    pub(crate) fn set_wall_ahead(&self, by_ms: i64) {
        self.wall_ahead_ms.store(by_ms, SeqCst);
    }

    pub(crate) fn passed(&self) -> Vec<CrashPoint> {
        self.passed.lock().expect("no test has panicked here").clone()
    }

    /// Waits until the host has ended at its point.
    pub(crate) async fn blown(&self) {
        let blown = async {
            while self.fuse.lock().expect("no test has panicked here").is_some() {
                TokioHost.sleep(ms(5)).await;
            }
        };
        TokioHost.within(PATIENCE, blown).await.expect("the point was never passed");
    }
}

impl Host for Fused {
    type Stream = <TokioHost as Host>::Stream;
    type Listener = <TokioHost as Host>::Listener;

    const SIMULATED: bool = false;

    fn passes(&self, point: CrashPoint) -> bool {
        self.passed.lock().expect("no test has panicked here").push(point);
        let mut fuse = self.fuse.lock().expect("no test has panicked here");
        let blows = *fuse == Some(point);
        if blows {
            *fuse = None;
        }
        blows
    }

    fn now(&self) -> Timestamp {
        TokioHost.now()
    }

    fn wall(&self) -> Timestamp {
        let ahead = self.wall_ahead_ms.load(SeqCst);
        Timestamp::from_millis(TokioHost.wall().as_millis() + ahead)
    }

    fn entropy(&self) -> u64 {
        TokioHost.entropy()
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        TokioHost.spawn(task);
    }

    fn sleep(&self, span: Millis) -> impl Future<Output = ()> + Send {
        TokioHost.sleep(span)
    }

    async fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        TokioHost.resolve(name, port).await
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<Self::Stream> {
        TokioHost.connect(to).await
    }

    async fn listen(&self, on: SocketAddr) -> io::Result<Self::Listener> {
        TokioHost.listen(on).await
    }

    fn local_addr(listener: &Self::Listener) -> io::Result<SocketAddr> {
        TokioHost::local_addr(listener)
    }

    async fn accept(&self, on: &mut Self::Listener) -> io::Result<(Self::Stream, SocketAddr)> {
        TokioHost.accept(on).await
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn commit_latency(&self) -> Millis {
        Millis::ZERO
    }
}

/// The ledger, except that the effect is written and then fails so many times.
#[derive(Clone)]
pub(crate) struct FailsFirst {
    left: Arc<AtomicU32>,
}

impl FailsFirst {
    pub(crate) fn new(times: u32) -> Self {
        Self { left: Arc::new(AtomicU32::new(times)) }
    }
}

impl Effect for FailsFirst {
    fn apply(
        &self,
        transaction: &Connection,
        work: &Work,
        now: Timestamp,
    ) -> Result<(), EffectError> {
        Ledger.apply(transaction, work, now)?;
        let left = self.left.load(Ordering::SeqCst);
        if left == 0 {
            return Ok(());
        }
        self.left.store(left - 1, Ordering::SeqCst);
        Err(EffectError::new("not now"))
    }
}
