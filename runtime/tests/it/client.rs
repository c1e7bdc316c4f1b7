//! One exchange: what is sent, what is read, and how it fails.

use std::future::pending;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hookproof_core::time::Millis;
use hookproof_runtime::client::{Answer, Exchange, ExchangeError, exchange};
use hookproof_runtime::host::Host;
use http_body_util::Full;
use hyper::Request;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::given::{HOST, accepting, soon};

#[derive(Clone, Copy)]
enum Then {
    Close,
    Reset,
    Hold,
}

fn post(body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::post("/hook").header("host", "a").body(Full::new(body.into())).expect("a request")
}

/// One exchange with a server that answers with bytes.
async fn ask(answer: impl Into<Vec<u8>>, then: Then) -> Result<Exchange<TcpStream>, ExchangeError> {
    let answer: Arc<[u8]> = answer.into().into();
    let address = accepting(move |mut stream| {
        let answer = answer.clone();
        async move {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\nthe body") {
                if !matches!(stream.read_buf(&mut request).await, Ok(1..)) {
                    return;
                }
            }
            let _ = stream.write_all(&answer).await;
            match then {
                Then::Close => {}
                Then::Reset => stream.set_zero_linger().expect("an open socket"),
                Then::Hold => HOST.sleep(Millis::from_secs(60)).await,
            }
        }
    })
    .await;
    let stream = HOST.connect(address).await.expect("a connection");
    soon("an exchange", exchange(&HOST, stream, post("the body"), None)).await
}

async fn read(answer: &str, then: Then, bytes_max: usize) -> Answer {
    let exchange = ask(answer, then).await.expect("a response");
    soon("the body", exchange.read(bytes_max, pending())).await
}

const HELLO: &str = "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nhello world";

#[tokio::test]
async fn no_more_of_a_body_is_kept_than_is_wanted() {
    for (bytes_max, kept, truncated) in
        [(99, "hello world", false), (11, "hello world", false), (5, "hello", true), (0, "", true)]
    {
        let answer = read(HELLO, Then::Hold, bytes_max).await;
        assert_eq!(answer.body, kept.as_bytes(), "{bytes_max}");
        assert_eq!(answer.truncated, truncated, "{bytes_max}");
    }
}

#[tokio::test]
async fn a_body_may_come_in_any_framing() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                   5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
    let to_the_end = "HTTP/1.1 200 OK\r\n\r\nhello world";
    let none = "HTTP/1.1 204 No Content\r\n\r\n";
    for (answer, then, body) in [
        (chunked, Then::Hold, "hello world"),
        (to_the_end, Then::Close, "hello world"),
        (none, Then::Hold, ""),
    ] {
        let read = read(answer, then, 99).await;
        assert_eq!((read.body.as_slice(), read.truncated), (body.as_bytes(), false), "{answer}");
    }
}

#[tokio::test]
async fn status_and_headers_are_known_before_the_body() {
    let head = "HTTP/1.1 429 Slow down\r\nretry-after: 7\r\ncontent-length: 99\r\n\r\n";
    let exchange = ask(head, Then::Hold).await.expect("a response");
    assert_eq!(exchange.status(), 429);
    assert_eq!(exchange.headers()["retry-after"], "7");
    let answer = soon("the body", exchange.read(99, HOST.sleep(Millis::new(10)))).await;
    assert_eq!((answer.status, &answer.headers["retry-after"]), (429, &"7".parse().expect("7")));
}

#[tokio::test]
async fn a_body_that_breaks_off_is_cut_and_no_error() {
    let short = "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nhello";
    let chunk = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n";
    let odd = format!("{chunk}nonsense\r\n");
    for (answer, then) in [(short, Then::Close), (chunk, Then::Close), (&odd, Then::Hold)] {
        let read = read(answer, then, 99).await;
        assert_eq!((read.status, read.body.as_slice()), (200, &b"hello"[..]), "{answer}");
        assert!(read.truncated, "{answer}");
    }
    // What a reset leaves of the body depends on when it arrives; the status stands.
    let read = read(short, Then::Reset, 99).await;
    assert_eq!((read.status, read.truncated), (200, true));
}

#[tokio::test]
async fn a_body_that_does_not_come_is_cut_at_the_deadline() {
    let short = "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nhello";
    let exchange = ask(short, Then::Hold).await.expect("a response");
    let answer = soon("the body", exchange.read(99, HOST.sleep(Millis::new(100)))).await;
    assert_eq!((answer.body.as_slice(), answer.truncated), (&b"hello"[..], true));
}

#[tokio::test]
async fn a_connection_that_ends_before_a_response_is_a_reset() {
    for (answer, then) in [
        ("", Then::Close),
        ("", Then::Reset),
        ("HTTP/1.1 200 OK\r\nconte", Then::Close),
        ("HTTP/1.1 100 Continue\r\n\r\n", Then::Close),
    ] {
        let error = ask(answer, then).await.expect_err("no response");
        assert!(matches!(error, ExchangeError::Reset(_)), "{answer}: {error:?}");
        assert!(error.to_string().starts_with("the connection broke: "), "{error}");
    }
}

#[tokio::test]
async fn what_is_not_http_is_a_protocol_error() {
    let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "x".repeat(1024 * 1024));
    for answer in [
        "SSH-2.0-OpenSSH_9.9\r\n",
        "220 mail.example ESMTP\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
    ] {
        let shown = &answer[..answer.len().min(50)];
        let error = ask(answer, Then::Hold).await.expect_err(shown);
        assert!(matches!(error, ExchangeError::Protocol(_)), "{shown}: {error:?}");
        assert!(error.to_string().starts_with("the answer is not HTTP: "), "{error}");
    }
    let error = ask(endless.as_str(), Then::Hold).await.expect_err("its head never ends");
    assert!(matches!(error, ExchangeError::Oversize(_)), "{error:?}");
}

#[tokio::test]
async fn a_large_request_is_sent_whole() {
    let body: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let heard: Arc<Mutex<Vec<u8>>> = Arc::default();
    let seen = heard.clone();
    let length = body.len();
    let address = accepting(move |mut stream| {
        let seen = seen.clone();
        async move {
            let mut request = Vec::new();
            while request.len() < length || !request[request.len() - length..].starts_with(&[0, 1])
            {
                if !matches!(stream.read_buf(&mut request).await, Ok(1..)) {
                    return;
                }
            }
            *seen.lock().expect("no test panics in here") = request;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await;
    let stream = HOST.connect(address).await.expect("a connection");
    let exchange = exchange(&HOST, stream, post(body.clone()), None);
    assert_eq!(soon("an exchange", exchange).await.expect("a response").status(), 200);
    let heard = heard.lock().expect("no test panics in here");
    let head = heard.len() - length;
    assert_eq!(
        String::from_utf8_lossy(&heard[..head]),
        format!("POST /hook HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n")
    );
    assert!(heard[head..] == body, "the body arrives byte for byte");
}

#[tokio::test]
async fn the_connection_is_closed_when_the_exchange_is_dropped_or_read() {
    for is_read in [false, true] {
        let (tell, told) = oneshot::channel();
        let tell = Arc::new(Mutex::new(Some(tell)));
        let address = accepting(move |mut stream| {
            let tell = tell.lock().expect("no test panics in here").take();
            async move {
                let _ = stream.read(&mut [0; 1024]).await;
                let _ =
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello").await;
                while let Ok(1..) = stream.read(&mut [0; 1024]).await {}
                drop(tell);
            }
        })
        .await;
        let stream = HOST.connect(address).await.expect("a connection");
        let exchange = exchange(&HOST, stream, post(""), None).await.expect("a response");
        if is_read {
            let answer = exchange.read(3, pending()).await;
            assert_eq!(answer.body, b"hel");
        } else {
            drop(exchange);
        }
        let closed: Result<(), _> = soon("the server sees the end", told).await;
        assert!(closed.is_err(), "the sender of the message is gone with the connection");
    }
}
