//! The server: bounded connections, bounded waits, a graceful end.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use bytes::Bytes;
use hookproof_core::time::Millis;
use hookproof_runtime::host::Host;
use hookproof_runtime::server::{BodyError, ServerLimits, read_body, serve};
use hookproof_runtime::tokio_host::TokioHost;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response};
use tokio::sync::{Semaphore, oneshot};

use crate::given::{HOST, LOOPBACK, Wire, eventually, pause, result, soon, start};

const GENEROUS: ServerLimits = ServerLimits {
    connections_max: 100,
    header_timeout: Millis::from_secs(60),
    write_timeout: Millis::from_secs(60),
    drain_timeout: Millis::from_secs(60),
};

/// A server that is asked to stop when the first part is dropped, and then tells its end.
type Running = (oneshot::Sender<()>, oneshot::Receiver<()>);

async fn run<F>(
    limits: ServerLimits,
    respond: impl Fn(Request<Incoming>, SocketAddr) -> F + Clone + Send + Sync + 'static,
) -> (SocketAddr, Running)
where
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let listener = HOST.listen(LOOPBACK).await.expect("a port");
    let address = TokioHost::local_addr(&listener).expect("its number");
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async move {
        let _ = stopped.await;
    };
    let ended = start(serve(HOST, listener, limits, respond, shutdown));
    (address, (stop, ended))
}

fn reply(text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    Response::new(Full::new(text.into()))
}

/// Answers `done` once there is leave to.
#[derive(Clone)]
struct Gate {
    leave: Arc<Semaphore>,
    arrived: Arc<AtomicUsize>,
}

impl Gate {
    async fn run(limits: ServerLimits) -> (Self, SocketAddr, Running) {
        let gate =
            Self { leave: Arc::new(Semaphore::new(0)), arrived: Arc::new(AtomicUsize::new(0)) };
        let waiting = gate.clone();
        let (address, running) = run(limits, move |_, _| {
            let gate = waiting.clone();
            async move {
                gate.arrived.fetch_add(1, SeqCst);
                gate.leave.acquire().await.expect("it stays open").forget();
                reply("done")
            }
        })
        .await;
        (gate, address, running)
    }

    async fn arrived(&self, count: usize) {
        eventually("requests arrive", || (self.arrived.load(SeqCst) >= count).then_some(())).await;
    }
}

const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

#[tokio::test]
async fn requests_on_one_connection_are_answered_one_after_the_other() {
    let (address, _running) = run(GENEROUS, |request, peer| async move {
        assert!(peer.ip().is_loopback());
        reply(format!("you asked for {}", request.uri()))
    })
    .await;
    let mut wire = Wire::to(address).await;
    for path in ["/a", "/b?c"] {
        wire.say(&format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")).await;
        let heard = wire.hear(path).await;
        let length = format!("you asked for {path}").len();
        let expected =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\nyou asked for {path}");
        assert_eq!(heard, expected, "no clock shows in it");
    }
}

#[tokio::test]
async fn a_connection_beyond_the_limit_waits_for_its_turn() {
    let (gate, address, _running) =
        Gate::run(ServerLimits { connections_max: 2, ..GENEROUS }).await;
    let mut wires = Vec::new();
    for _ in 0..3 {
        let mut wire = Wire::to(address).await;
        wire.say("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
        wires.push(wire);
    }
    gate.arrived(2).await;
    pause().await;
    assert_eq!(gate.arrived.load(SeqCst), 2);
    gate.leave.add_permits(1);
    gate.arrived(3).await;
    gate.leave.add_permits(2);
    for mut wire in wires {
        assert!(wire.hear_all().await.ends_with("done"));
    }
}

#[tokio::test]
async fn an_answer_that_panics_costs_its_connection_and_no_other() {
    let limits = ServerLimits { connections_max: 1, ..GENEROUS };
    let (address, _running) = run(limits, |request, _| async move {
        assert_ne!(request.uri().path(), "/panic");
        reply("done")
    })
    .await;
    let mut wire = Wire::to(address).await;
    wire.say("GET /panic HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(wire.hear_all().await, "");
    let mut wire = Wire::to(address).await;
    wire.say(GET).await;
    wire.hear("done").await;
}

#[tokio::test]
async fn who_does_not_send_a_whole_head_in_time_is_cut_off() {
    let limits = ServerLimits { header_timeout: Millis::new(100), ..GENEROUS };
    let (address, _running) = run(limits, |_, _| async { reply("done") }).await;
    for beginning in ["", "GET / HTTP/1.1\r\nhost: a\r\n"] {
        let before = HOST.now();
        let mut wire = Wire::to(address).await;
        wire.say(beginning).await;
        wire.hear_all().await;
        assert!(HOST.now().since(before) >= Millis::new(99), "after {beginning:?}");
    }
}

#[tokio::test]
async fn an_idle_connection_is_cut_off_after_its_last_answer() {
    let limits = ServerLimits { header_timeout: Millis::new(500), ..GENEROUS };
    let (address, _running) = run(limits, |_, _| async { reply("done") }).await;
    let mut wire = Wire::to(address).await;
    for _ in 0..2 {
        wire.say(GET).await;
        wire.hear("done").await;
    }
    wire.hear_all().await;
}

#[tokio::test]
async fn the_time_for_the_head_does_not_run_while_an_answer_is_made() {
    let limits = ServerLimits { header_timeout: Millis::new(200), ..GENEROUS };
    let (address, _running) = run(limits, |_, _| async {
        HOST.sleep(Millis::new(400)).await;
        reply("done")
    })
    .await;
    let mut wire = Wire::to(address).await;
    wire.say(GET).await;
    wire.hear("done").await;
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_loses_its_place() {
    let limits = ServerLimits { connections_max: 1, write_timeout: Millis::new(100), ..GENEROUS };
    // More than the buffers of both sides take.
    let (address, _running) = run(limits, |request, _| async move {
        reply(if request.uri().path() == "/long" { vec![b'.'; 64 << 20] } else { b"done".to_vec() })
    })
    .await;
    let mut deaf = Wire::to(address).await;
    deaf.say("GET /long HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let mut next = Wire::to(address).await;
    next.say(GET).await;
    next.hear("done").await;
}

#[tokio::test]
async fn a_client_that_reads_slowly_gets_all_of_its_answer() {
    let limits = ServerLimits { write_timeout: Millis::from_secs(5), ..GENEROUS };
    let (address, _running) = run(limits, |_, _| async { reply(vec![b'.'; 16 << 20]) }).await;
    let mut wire = Wire::to(address).await;
    wire.say("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    pause().await;
    let heard = wire.hear_all().await;
    assert_eq!(heard.matches('.').count() - "HTTP/1.1".matches('.').count(), 16 << 20);
}

#[tokio::test]
async fn an_open_request_is_finished_before_the_end() {
    let (gate, address, (stop, mut ended)) = Gate::run(GENEROUS).await;
    let mut wire = Wire::to(address).await;
    wire.say(GET).await;
    gate.arrived(1).await;
    drop(stop);
    pause().await;
    assert!(ended.try_recv().is_err(), "a request is open");
    assert!(HOST.connect(address).await.is_err(), "nobody new is let in");
    gate.leave.add_permits(1);
    let heard = wire.hear_all().await;
    assert!(heard.contains("\r\nconnection: close\r\n") && heard.ends_with("done"), "{heard}");
    result(ended).await;
}

#[tokio::test]
async fn an_idle_connection_does_not_hold_up_the_end() {
    let (address, (stop, ended)) = run(GENEROUS, |_, _| async { reply("done") }).await;
    let mut fresh = Wire::to(address).await;
    let mut used = Wire::to(address).await;
    used.say(GET).await;
    used.hear("done").await;
    drop(stop);
    result(ended).await;
    assert_eq!((fresh.hear_all().await, used.hear_all().await), (String::new(), String::new()));
}

#[tokio::test]
async fn a_request_that_never_ends_holds_up_the_end_for_the_drain_timeout() {
    let limits = ServerLimits { drain_timeout: Millis::new(200), ..GENEROUS };
    let (gate, address, (stop, ended)) = Gate::run(limits).await;
    let mut wire = Wire::to(address).await;
    wire.say(GET).await;
    gate.arrived(1).await;
    let before = HOST.now();
    drop(stop);
    result(ended).await;
    assert!(HOST.now().since(before) >= Millis::new(199));
}

#[tokio::test]
async fn the_end_comes_also_while_every_place_is_taken() {
    let limits = ServerLimits { connections_max: 1, drain_timeout: Millis::new(10), ..GENEROUS };
    let (gate, address, (stop, ended)) = Gate::run(limits).await;
    let mut wire = Wire::to(address).await;
    wire.say(GET).await;
    gate.arrived(1).await;
    let mut waiting = Wire::to(address).await;
    waiting.say(GET).await;
    drop(stop);
    result(ended).await;
    assert_eq!(waiting.hear_all().await, "");
    assert_eq!(gate.arrived.load(SeqCst), 1);
}

/// What a server that takes at most ten bytes, within 100 ms, makes of this request.
async fn taken(request: &str) -> String {
    let (address, _running) = run(GENEROUS, |request: Request<Incoming>, _| async move {
        let body = read_body(&HOST, request.into_body(), 10, Millis::new(100)).await;
        reply(format!("<{:?}>", body.map(String::from_utf8)))
    })
    .await;
    let mut wire = Wire::to(address).await;
    wire.say(request).await;
    let heard = wire.hear(">").await;
    heard.split_once("\r\n\r\n").expect("a head and a body").1.to_owned()
}

#[tokio::test]
async fn a_body_is_read_whole_or_not_at_all() {
    let sized = |length: usize, body: &str| {
        format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{body}")
    };
    let chunked = |chunks: &str| {
        format!("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n{chunks}")
    };
    assert_eq!(taken(GET).await, "<Ok(Ok(\"\"))>");
    let whole = "<Ok(Ok(\"0123456789\"))>";
    assert_eq!(taken(&sized(10, "0123456789")).await, whole);
    assert_eq!(taken(&chunked("5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n")).await, whole);
    let too_large = "<Err(TooLarge)>";
    assert_eq!(taken(&sized(11, "")).await, too_large, "before anything of it arrives");
    assert_eq!(taken(&chunked("5\r\n01234\r\n6\r\n567890\r\n")).await, too_large);
    assert_eq!(taken(&sized(10, "012345678")).await, "<Err(Timeout)>");
    assert_eq!(taken(&chunked("5\r\n01234\r\n")).await, "<Err(Timeout)>");
    assert_eq!(taken(&chunked("nonsense\r\n")).await, "<Err(Broken)>");
}

#[tokio::test]
async fn a_body_without_a_network_is_read_the_same_way() {
    let body = || Full::new(Bytes::from_static(b"0123456789"));
    let read = |bytes_max| read_body(&HOST, body(), bytes_max, Millis::from_secs(1));
    assert_eq!(soon("a body", read(10)).await.as_deref(), Ok(&b"0123456789"[..]));
    assert_eq!(soon("a body", read(9)).await, Err(BodyError::TooLarge));
}
