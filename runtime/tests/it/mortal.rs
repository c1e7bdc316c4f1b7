//! A host that can end: what has happened at each point, and that nothing follows it.

use std::collections::BTreeSet;
use std::future::{Future, pending};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::client::exchange;
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::database::Database;
use hookproof_runtime::host::Host;
use hookproof_runtime::server::{AfterResponse, ServerLimits, serve};
use hookproof_runtime::tokio_host::TokioHost;
use http_body_util::Full;
use hyper::{Request, Response};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot::error::TryRecvError;

use crate::given::{
    HOST, Home, LOOPBACK, NOTES, Wire, accepting, eventually, note, pause, soon, start,
};

/// The real host, but simulated as far as its end goes.
#[derive(Clone, Default)]
struct Mortal(Arc<Fate>);

#[derive(Default)]
struct Fate {
    ends_at: Option<CrashPoint>,
    commit_latency: Millis,
    ended: AtomicBool,
    passed: Mutex<BTreeSet<CrashPoint>>,
    /// What its clock was told to show at least.
    not_before: Mutex<Option<Timestamp>>,
}

impl Mortal {
    fn ending_at(point: CrashPoint) -> Self {
        Self(Arc::new(Fate { ends_at: Some(point), ..Fate::default() }))
    }

    fn has_passed(&self, point: CrashPoint) -> bool {
        self.0.passed.lock().expect("no test panics in here").contains(&point)
    }
}

impl Host for Mortal {
    type Stream = TcpStream;
    type Listener = TcpListener;

    const SIMULATED: bool = true;

    fn now(&self) -> Timestamp {
        HOST.now()
    }

    fn not_before(&self, at: Timestamp) {
        *self.0.not_before.lock().expect("no test panics in here") = Some(at);
    }

    fn wall(&self) -> Timestamp {
        HOST.wall()
    }

    fn entropy(&self) -> u64 {
        HOST.entropy()
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        HOST.spawn(task);
    }

    fn sleep(&self, span: Millis) -> impl Future<Output = ()> + Send {
        HOST.sleep(span)
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

    fn passes(&self, point: CrashPoint) -> bool {
        if self.has_ended() {
            return true;
        }
        self.0.passed.lock().expect("no test panics in here").insert(point);
        self.0.ended.store(self.0.ends_at == Some(point), SeqCst);
        self.has_ended()
    }

    fn has_ended(&self) -> bool {
        self.0.ended.load(SeqCst)
    }

    fn commit_latency(&self) -> Millis {
        self.0.commit_latency
    }
}

#[tokio::test]
async fn a_point_at_which_the_host_ends_is_never_left() {
    let host = Mortal::ending_at(CrashPoint::WorkMarked);
    soon("another point", host.at(CrashPoint::AckSent)).await;
    assert!(!host.has_ended());
    let point = host.at(CrashPoint::WorkMarked);
    assert!(host.has_ended(), "at once, and not only when somebody waits");
    assert_eq!(HOST.within(Millis::new(20), point).await, None);
}

#[tokio::test]
async fn a_simulated_store_writes_and_reads_like_a_real_one() {
    let home = Home::new();
    let host = Mortal::default();
    let database = Database::open(&host, &home.config(), &NOTES).expect("a database");
    database.write(note(1)).await.expect("it is committed");
    assert!(database.write(note(1)).await.is_err());
    database.write(note(2)).await.expect("it is committed");
    assert_eq!(home.numbers(), [1, 2]);
    let count = database.read(|connection| {
        let sql = "SELECT count(*) FROM notes";
        Ok(connection.query_row(sql, [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(count.await.expect("it is readable"), 2);
    assert!(host.has_passed(CrashPoint::StoreExecuted));
    assert!(host.has_passed(CrashPoint::StoreCommitted));
}

#[tokio::test]
async fn an_end_before_the_commit_leaves_nothing_and_answers_nobody() {
    check_store(CrashPoint::StoreExecuted, &[]).await;
}

#[tokio::test]
async fn an_end_after_the_commit_leaves_everything_and_answers_nobody() {
    check_store(CrashPoint::StoreCommitted, &[1]).await;
}

async fn check_store(point: CrashPoint, left: &[i64]) {
    let home = Home::new();
    let host = Mortal::ending_at(point);
    let database = Database::open(&host, &home.config(), &NOTES).expect("a database");
    let mut write = start(async move { database.write(note(1)).await });
    eventually("the host ends", || host.has_ended().then_some(())).await;
    pause().await;
    assert_eq!(write.try_recv().map(drop), Err(TryRecvError::Empty), "at {point}");
    assert_eq!(home.numbers(), left, "at {point}");
}

#[tokio::test]
async fn a_slow_disk_holds_the_answer_back() {
    let home = Home::new();
    let latency = Millis::new(100);
    let host = Mortal(Arc::new(Fate { commit_latency: latency, ..Fate::default() }));
    let database = Database::open(&host, &home.config(), &NOTES).expect("a database");
    let before = HOST.now();
    let mut write = start(async move { database.write(note(1)).await });
    eventually("it is executed", || host.has_passed(CrashPoint::StoreExecuted).then_some(())).await;
    assert_eq!(home.numbers(), [0_i64; 0], "not committed yet");
    soon("the write", &mut write).await.expect("no panic").expect("it is committed");
    assert!(HOST.now().since(before) >= Millis::new(99));
}

#[tokio::test]
async fn a_request_is_whole_on_the_wire_when_the_host_ends_after_it() {
    let (tell, told) = tokio::sync::oneshot::channel();
    let tell = Arc::new(Mutex::new(Some(tell)));
    let address = accepting(move |mut stream| {
        let tell = tell.lock().expect("no test panics in here").take();
        async move {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\nthe body") {
                assert_ne!(stream.read_buf(&mut request).await.expect("readable"), 0);
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
            let _ = tell.expect("one request").send(());
            pending::<()>().await;
        }
    })
    .await;
    let host = Mortal::ending_at(CrashPoint::AttemptSent);
    let stream = HOST.connect(address).await.expect("a connection");
    let request =
        Request::post("/").body(Full::new(Bytes::from_static(b"the body"))).expect("a request");
    let mut exchange = {
        let host = host.clone();
        start(async move {
            exchange(&host, stream, request, Some(CrashPoint::AttemptSent)).await.map(drop)
        })
    };
    soon("the request arrives", told).await.expect("it is answered");
    pause().await;
    assert!(host.has_ended());
    assert!(exchange.try_recv().is_err(), "nobody hears of the answer");
}

#[tokio::test]
async fn the_point_after_a_response_is_passed_once_it_is_written() {
    for ends in [false, true] {
        let point = CrashPoint::AckSent;
        let host = if ends { Mortal::ending_at(point) } else { Mortal::default() };
        let listener = HOST.listen(LOOPBACK).await.expect("a port");
        let address = TokioHost::local_addr(&listener).expect("its number");
        let respond = move |_, _| async move {
            let mut response = Response::new(Full::new(Bytes::from_static(b"taken")));
            response.extensions_mut().insert(AfterResponse(point));
            response
        };
        HOST.spawn(serve(host.clone(), listener, ServerLimits::default(), respond, pending()));
        let mut wire = Wire::to(address).await;
        assert!(!host.has_passed(point));
        wire.say("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        wire.hear("taken").await;
        eventually("the point is passed", || host.has_passed(point).then_some(())).await;
        assert_eq!(host.has_ended(), ends);
    }
}

#[tokio::test]
async fn a_database_tells_its_host_the_latest_time_at_which_it_was_written() {
    let home = Home::new();
    let told = |host: &Mortal| *host.0.not_before.lock().expect("no test panics in here");
    let open = |host: Mortal| {
        let config = home.config();
        eventually("the file is free", move || Database::open(&host, &config, &NOTES).ok())
    };
    let first = Mortal::default();
    let database = open(first.clone()).await;
    assert_eq!(told(&first), None, "nothing was written yet");
    database.read(|_| Ok(())).await.expect("it is read");
    drop(database);
    let second = Mortal::default();
    let database = open(second.clone()).await;
    assert_eq!(told(&second), None, "what changes nothing does not count");
    let before = HOST.now();
    database.write(note(1)).await.expect("it is committed");
    let after = HOST.now();
    drop(database);
    let third = Mortal::default();
    let database = open(third.clone()).await;
    let latest = told(&third).expect("it was written");
    assert!((before..=after).contains(&latest), "{latest:?} is not in {before:?} to {after:?}");
    // Within a second the row is not worth writing again; and never does it go back.
    home.beside().execute("UPDATE hookproof_clock SET latest = latest + 3600000", []).expect("SQL");
    database.write(note(2)).await.expect("it is committed");
    drop(database);
    let fourth = Mortal::default();
    let _database = open(fourth.clone()).await;
    assert_eq!(told(&fourth), Some(latest.plus(Millis::from_hours(1))));
}
