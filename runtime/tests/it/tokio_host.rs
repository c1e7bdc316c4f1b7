//! The real host.

use std::future::{pending, ready};
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use hookproof_core::time::Millis;
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::host::Host;
use hookproof_runtime::tokio_host::TokioHost;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

use crate::given::{HOST, LOOPBACK, result, soon, start};

#[tokio::test]
async fn work_that_ends_in_time_is_heard_of_and_other_work_is_not() {
    assert_eq!(HOST.within(Millis::from_secs(60), ready(7)).await, Some(7));
    assert_eq!(HOST.within(Millis::new(1), pending::<()>()).await, None);
    let slow = async {
        HOST.sleep(Millis::new(20)).await;
        7
    };
    assert_eq!(HOST.within(Millis::from_secs(60), slow).await, Some(7));
}

#[tokio::test]
async fn work_that_ends_with_the_limit_is_in_time() {
    for _ in 0..20 {
        let limit = Millis::new(3);
        assert_eq!(HOST.within(limit, HOST.sleep(limit)).await, Some(()));
    }
}

#[tokio::test]
async fn work_that_is_out_of_time_is_dropped() {
    let (told, tell) = tokio::sync::oneshot::channel::<()>();
    let work = async move {
        pending::<()>().await;
        drop(told);
    };
    assert_eq!(HOST.within(Millis::new(1), work).await, None);
    assert!(tell.await.is_err());
}

#[tokio::test]
async fn a_sleep_lasts_at_least_as_long_as_asked() {
    let before = HOST.now();
    HOST.sleep(Millis::new(50)).await;
    assert!(HOST.now().since(before) >= Millis::new(49), "rounding may take a part of one");
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the clock is what the host is compared with")]
async fn now_is_the_wall_clock_in_milliseconds() {
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    let before = clock();
    let now = u128::try_from(HOST.now().as_millis()).expect("after 1970");
    assert!((before..=clock()).contains(&now), "{now}");
    let before = clock();
    let wall = u128::try_from(HOST.wall().as_millis()).expect("after 1970");
    assert!((before..=clock()).contains(&wall), "{wall}");
}

#[tokio::test]
async fn entropy_differs_from_draw_to_draw_in_every_bit() {
    let draws: Vec<_> = (0..128).map(|_| HOST.entropy()).collect();
    let ever_set = draws.iter().fold(0, |bits, draw| bits | draw);
    let always_set = draws.iter().fold(u64::MAX, |bits, draw| bits & draw);
    assert_eq!((ever_set, always_set), (u64::MAX, 0));
}

#[tokio::test]
async fn a_spawned_task_runs_by_itself() {
    assert_eq!(result(start(async { 7 })).await, 7);
}

#[tokio::test]
async fn bytes_go_both_ways_between_listen_and_connect() {
    let mut listener = HOST.listen(LOOPBACK).await.expect("a port");
    let address = TokioHost::local_addr(&listener).expect("its number");
    assert_ne!(address.port(), 0);
    let server = start(async move {
        let (mut stream, peer) = HOST.accept(&mut listener).await.expect("a connection");
        let mut heard = [0; 4];
        stream.read_exact(&mut heard).await.expect("four bytes");
        stream.write_all(b"pong").await.expect("it is written");
        (heard, peer, stream.nodelay().expect("an option"))
    });
    let mut stream = HOST.connect(address).await.expect("a connection");
    assert!(stream.nodelay().expect("an option"), "small requests do not wait");
    let own = stream.local_addr().expect("an address");
    stream.write_all(b"ping").await.expect("it is written");
    let mut heard = [0; 4];
    soon("an answer", stream.read_exact(&mut heard)).await.expect("four bytes");
    assert_eq!(&heard, b"pong");
    assert_eq!(result(server).await, (*b"ping", own, true));
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_refuses() {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(LOOPBACK).expect("a port");
    let deserted = socket.local_addr().expect("its number");
    let error = HOST.connect(deserted).await.expect_err("nobody listens");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn addresses_resolve_to_themselves_with_or_without_brackets() {
    for (name, address) in [
        ("127.0.0.1", "127.0.0.1:80"),
        ("::1", "[::1]:80"),
        ("[::1]", "[::1]:80"),
        ("[2001:db8::7]", "[2001:db8::7]:80"),
    ] {
        let found = HOST.resolve(name, 80).await.expect("an address");
        assert_eq!(found, [address.parse::<SocketAddr>().expect("an address")], "{name}");
    }
    let found = HOST.resolve("localhost", 7).await.expect("an address");
    assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 7));
    // Longer than a label can be, so that no name server has to be asked.
    HOST.resolve(&"x".repeat(64), 80).await.expect_err("no such name can be");
}

#[tokio::test]
async fn the_real_host_ends_at_no_crash_point() {
    for point in CrashPoint::ALL {
        soon("it passes", HOST.at(*point)).await;
        assert!(!HOST.passes(*point));
    }
    assert!(!HOST.has_ended());
    assert_eq!(HOST.commit_latency(), Millis::ZERO);
    const { assert!(!TokioHost::SIMULATED) };
}
