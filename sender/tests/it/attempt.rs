//! What comes of one attempt: whatever the other side does is an outcome.

use std::net::SocketAddr;

use hookproof_core::delivery::Phase;
use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::time::Millis;
use hookproof_runtime::host::Host;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use wiremock::ResponseTemplate;

use crate::receiver::{Deserted, Raw, Receiver, Then, accepting};
use crate::running::{HOST, Home, Seen, config};

/// What comes of a single attempt to `url`.
async fn attempt(url: &str, total_timeout: Millis) -> Seen {
    let mut config = config(&[]);
    config.policy.total_timeout = total_timeout;
    config.policy.connect_timeout = config.policy.connect_timeout.min(total_timeout);
    config.excerpt_bytes_max = 16;
    let home = Home::new();
    let sender = home.start(config).await;
    let endpoint = sender.register(url).await;
    let event = sender.publish("{}").await;
    sender.settled(&endpoint.delivery_of(&event)).await
}

fn answered(status: u16) -> Outcome {
    Outcome::Answered { status, retry_after: None }
}

fn failed(failure: Failure) -> Outcome {
    Outcome::Failed { failure }
}

const PLENTY: Millis = Millis::from_secs(15);

async fn check(answer: impl Into<Vec<u8>>, then: Then, expected: Outcome) {
    let answer = answer.into();
    let receiver = Raw::answering(answer.clone(), then).await;
    let seen = attempt(&receiver.url(), PLENTY).await;
    let shown = String::from_utf8_lossy(&answer[..answer.len().min(80)]);
    assert_eq!(seen.outcomes(), [expected], "to {shown:?}");
    assert_eq!(receiver.requests().len(), 1, "to {shown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_final_status_is_the_outcome() {
    check("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", Then::Hold, answered(200)).await;
    check("HTTP/1.1 200 OK\r\n\r\nto the end", Then::Close, answered(200)).await;
    check("HTTP/1.0 202 Accepted\r\n\r\n", Then::Close, answered(202)).await;
    check("HTTP/1.1 204\r\n\r\n", Then::Hold, answered(204)).await;
    check("HTTP/1.1 599 Odd\r\n\r\n", Then::Close, answered(599)).await;
    check("HTTP/1.1 999 Odder\r\n\r\n", Then::Close, answered(999)).await;
    let switch = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: a\r\n\r\n";
    check(switch, Then::Hold, answered(101)).await;
    let early = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
    check(early, Then::Hold, answered(204)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_answers_before_it_has_read_the_body_is_heard() {
    let address = accepting(|mut stream| async move {
        let mut head = [0; 64];
        let _ = stream.read(&mut head).await;
        let _ = stream.write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n").await;
        // With the rest unread, to close would be to reset, and to lose the answer.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let endpoint = sender.register(&format!("http://{address}/")).await;
    let event = sender.publish(vec![b'x'; 1_048_576]).await;
    let seen = sender.settled(&endpoint.delivery_of(&event)).await;
    assert_eq!(seen.outcomes(), [answered(413)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_breaks_off_leaves_the_status_as_it_was() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\ncut";
    check(cut, Then::Close, answered(200)).await;
    check(cut, Then::Reset, answered(200)).await;
    let chunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    check(chunks, Then::Close, answered(200)).await;
    check(format!("{chunks}nonsense\r\n"), Then::Hold, answered(200)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_http_is_a_protocol_failure() {
    let protocol = failed(Failure::Protocol);
    check("SSH-2.0-OpenSSH_9.9\r\n", Then::Hold, protocol).await;
    check(b"\x15\x03\x01\x00\x02\x02\x46".to_vec(), Then::Close, protocol).await;
    check("HTTP/1.1 20 OK\r\n\r\n", Then::Hold, protocol).await;
    check("HTTP/2 200\r\n\r\n", Then::Hold, protocol).await;
    let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "x".repeat(1024 * 1024));
    check(endless, Then::Hold, failed(Failure::Oversize)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_ends_after_the_request_is_a_reset() {
    let reset = failed(Failure::Reset);
    check("", Then::Close, reset).await;
    check("", Then::Reset, reset).await;
    check("HTTP/1.1 200 OK\r\ncontent-le", Then::Close, reset).await;
    check("HTTP/1.1 100 Continue\r\n\r\n", Then::Close, reset).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_nobody_listens_on_is_refused() {
    let deserted = Deserted::new();
    let seen = attempt(&deserted.url(), PLENTY).await;
    assert_eq!(seen.outcomes(), [failed(Failure::ConnectRefused)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_response_within_the_total_timeout_is_a_timeout() {
    let limit = Millis::new(300);
    for answer in ["", "HTTP/1.1 200 OK\r\ncontent-le"] {
        let receiver = Raw::answering(answer, Then::Hold).await;
        let seen = attempt(&receiver.url(), limit).await;
        assert_eq!(seen.outcomes(), [failed(Failure::Timeout)], "after {answer:?}");
        let record = &seen.history[0].record;
        assert!(record.finished_at.since(record.started_at) >= limit, "{record:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_connection_within_the_connect_timeout_is_a_connect_timeout() {
    let Some(full) = Full::fill().await else {
        assert!(std::env::var_os("HOOKPROOF_CI").is_none(), "a full backlog takes connections");
        return;
    };
    let mut config = config(&[]);
    config.policy.connect_timeout = Millis::new(200);
    config.policy.total_timeout = PLENTY;
    let home = Home::new();
    let sender = home.start(config).await;
    let endpoint = sender.register(&format!("http://{}/", full.address)).await;
    let event = sender.publish("{}").await;
    let seen = sender.settled(&endpoint.delivery_of(&event)).await;
    assert_eq!(seen.outcomes(), [failed(Failure::ConnectTimeout)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_long_body_no_more_than_the_excerpt_is_kept() {
    let long = ResponseTemplate::new(500).set_body_string("0123456789abcdefghij".repeat(50_000));
    let receiver = Receiver::answering([long]).await;
    let seen = attempt(&receiver.url("/hook"), PLENTY).await;
    assert_eq!(seen.outcomes(), [answered(500)]);
    assert_eq!(seen.history[0].excerpt, "0123456789abcdef");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_body_is_kept_whole_and_its_odd_bytes_are_replaced_when_shown() {
    let short = ResponseTemplate::new(500).set_body_bytes(b"no \xff way");
    let receiver = Receiver::answering([short]).await;
    let seen = attempt(&receiver.url("/hook"), PLENTY).await;
    assert_eq!(seen.history[0].excerpt, "no \u{fffd} way");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_without_an_end_is_delivered_and_cut() {
    let receiver = Raw::answering("HTTP/1.1 200 OK\r\n\r\n", Then::Flood).await;
    let seen = attempt(&receiver.url(), PLENTY).await;
    assert!(matches!(seen.phase(), Phase::Delivered { .. }), "{seen:?}");
    assert_eq!(seen.history[0].excerpt, ".".repeat(16));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_slow_is_delivered_and_cut() {
    let slow = Then::Drip(Millis::new(200));
    let receiver = Raw::answering("HTTP/1.1 200 OK\r\n\r\n", slow).await;
    let seen = attempt(&receiver.url(), Millis::from_secs(2)).await;
    assert!(matches!(seen.phase(), Phase::Delivered { .. }), "{seen:?}");
    let excerpt = &seen.history[0].excerpt;
    assert!((1..16).contains(&excerpt.len()), "{excerpt}");

    let receiver = Raw::answering("HTTP/1.1 200 OK\r\n\r\n", Then::Hold).await;
    let seen = attempt(&receiver.url(), Millis::from_secs(2)).await;
    assert!(matches!(seen.phase(), Phase::Delivered { .. }), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_request_is_one_http_message_with_the_headers_of_a_webhook() {
    let receiver = Raw::answering("HTTP/1.1 200 OK\r\n\r\n", Then::Close).await;
    let url = format!("{}?a=1&b=%20", receiver.url());
    let seen = attempt(&url, PLENTY).await;
    let request = receiver.requests().remove(0);
    let (head, body) = request.split_once("\r\n\r\n").expect("a head and a body");
    assert_eq!(body, "{}");
    let mut lines = head.split("\r\n");
    assert_eq!(lines.next(), Some("POST /hook?a=1&b=%20 HTTP/1.1"));
    let mut names: Vec<_> = lines.filter_map(|line| line.split(':').next()).collect();
    names.sort_unstable();
    let expected = [
        "connection",
        "content-length",
        "content-type",
        "hookproof-attempt",
        "hookproof-delivery",
        "host",
        "user-agent",
        "webhook-id",
        "webhook-signature",
        "webhook-timestamp",
    ];
    assert_eq!(names, expected);
    let authority = url.trim_start_matches("http://").split('/').next().expect("an authority");
    assert!(head.contains(&format!("\r\nhost: {authority}\r\n")), "{head}");
    assert!(head.contains(&format!("\r\nwebhook-id: {}\r\n", seen.delivery.event_id)), "{head}");
    assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
}

/// A listener whose backlog is full: to connect there takes for ever.
struct Full {
    address: SocketAddr,
    _listener: TcpListener,
    _waiting: Vec<TcpStream>,
}

impl Full {
    /// `None` where the system takes every connection.
    async fn fill() -> Option<Self> {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        let listener = socket.listen(1).expect("a listener");
        let address = listener.local_addr().expect("its number");
        let mut waiting = Vec::new();
        for _ in 0..16 {
            match HOST.within(Millis::new(300), HOST.connect(address)).await {
                Some(stream) => waiting.push(stream.expect("it is taken, or waits")),
                None => return Some(Self { address, _listener: listener, _waiting: waiting }),
            }
        }
        None
    }
}
