//! A host whose clock stands still until a test moves it. Sockets and files are real, so what happens
//! is awaited; when it happened is exact.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::host::Host;
use hookproof_runtime::tokio_host::TokioHost;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::running::{HOST, POLL};

/// When every clock begins: Thursday, 1 January 2026, midnight UTC.
pub(crate) const EPOCH: Timestamp = Timestamp::from_secs(1_767_225_600);

/// The shortest wait that there is.
pub(crate) const SHORTEST: Millis = Millis::new(1);

/// So many milliseconds after the [`EPOCH`].
pub(crate) fn at(ms: u64) -> Timestamp {
    EPOCH.plus(Millis::new(ms))
}

#[derive(Clone)]
pub(crate) struct Clock {
    /// How long it has run.
    elapsed: Arc<watch::Sender<Millis>>,
    /// By how much the time by which everything waits was set, in milliseconds. A real host never
    /// sets it back.
    set_by: Arc<AtomicI64>,
    /// By how much the wall clock is ahead of that, in milliseconds.
    wall_ahead: Arc<AtomicI64>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            elapsed: Arc::new(watch::Sender::new(Millis::ZERO)),
            set_by: Arc::default(),
            wall_ahead: Arc::default(),
        }
    }

    /// Goes on to that many milliseconds after the [`EPOCH`].
    pub(crate) fn to(&self, ms: u64) {
        self.elapsed.send_replace(Millis::new(ms));
    }

    /// Sets the wall clock alone.
    pub(crate) fn set_wall_ahead(&self, by_ms: i64) {
        self.wall_ahead.store(by_ms, SeqCst);
    }

    /// Sets both clocks forward, which no wait takes notice of.
    pub(crate) fn set_ahead(&self, by: Millis) {
        let by = i64::try_from(by.get()).expect("it is short");
        self.set_by.fetch_add(by, SeqCst);
    }

    /// Sets both clocks, which no wait takes notice of.
    pub(crate) fn set_back(&self, by: Millis) {
        let by = i64::try_from(by.get()).expect("it is short");
        self.set_by.fetch_sub(by, SeqCst);
    }
}

impl Host for Clock {
    type Stream = TcpStream;
    type Listener = TcpListener;

    const SIMULATED: bool = false;

    fn now(&self) -> Timestamp {
        let elapsed = i64::try_from(self.elapsed.borrow().get()).expect("it is short");
        Timestamp::from_millis(EPOCH.as_millis() + elapsed + self.set_by.load(SeqCst))
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(self.now().as_millis() + self.wall_ahead.load(SeqCst))
    }

    /// The shortest wait is over whether the clock moves or not: who waits so long wants to look again.
    fn sleep(&self, span: Millis) -> impl Future<Output = ()> + Send {
        let mut elapsed = self.elapsed.subscribe();
        let end = elapsed.borrow().plus(span);
        async move {
            if span <= SHORTEST {
                return HOST.sleep(POLL).await;
            }
            let reached = elapsed.wait_for(|elapsed| *elapsed >= end).await;
            reached.expect("whoever waits has the clock");
        }
    }

    fn entropy(&self) -> u64 {
        HOST.entropy()
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        HOST.spawn(task);
    }

    async fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        HOST.resolve(name, port).await
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<TcpStream> {
        HOST.connect(to).await
    }

    async fn listen(&self, on: SocketAddr) -> io::Result<TcpListener> {
        HOST.listen(on).await
    }

    fn local_addr(listener: &TcpListener) -> io::Result<SocketAddr> {
        TokioHost::local_addr(listener)
    }

    async fn accept(&self, listener: &mut TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
        HOST.accept(listener).await
    }

    fn passes(&self, _point: CrashPoint) -> bool {
        false
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn commit_latency(&self) -> Millis {
        Millis::ZERO
    }
}
