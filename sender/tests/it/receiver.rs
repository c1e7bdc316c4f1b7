//! Receivers: one that answers in turn, one that holds what it got, and one that speaks bytes.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hookproof_core::secret::Secrets;
use hookproof_core::signature::{
    ID_HEADER, SIGNATURE_HEADER, Signed, TIMESTAMP_HEADER, VerifyError, verify,
};
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::host::Host;
use hookproof_runtime::server::{self, ServerLimits};
use hookproof_runtime::tokio_host::TokioHost;
use http_body_util::Empty;
use hyper::Response;
use hyper::header::HeaderMap;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Notify;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::running::{HOST, eventually};

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Timestamp,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Arrival {
    pub(crate) fn header(&self, name: &str) -> &str {
        let mut lines = self.headers.get_all(name).iter();
        let value = lines.next().unwrap_or_else(|| panic!("no `{name}` in {self:?}"));
        assert!(lines.next().is_none(), "several `{name}` in {self:?}");
        value.to_str().expect("a header of the sender is ASCII")
    }

    pub(crate) fn header_names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// The time of the attempt in seconds, as it was signed.
    pub(crate) fn timestamp(&self) -> i64 {
        self.header(TIMESTAMP_HEADER).parse().expect("a number of seconds")
    }

    /// Verifies the signature as if it were the second of the attempt.
    pub(crate) fn verify(&self, secrets: &Secrets) -> Result<(), VerifyError> {
        let signed = Signed {
            id: Some(self.header(ID_HEADER).as_bytes()),
            timestamp: Some(self.header(TIMESTAMP_HEADER).as_bytes()),
            signature: Some(self.header(SIGNATURE_HEADER).as_bytes()),
            body: &self.body,
        };
        verify(secrets, &signed, Timestamp::from_secs(self.timestamp()), Millis::ZERO)
    }
}

/// Answers in turn, and remembers what arrived.
pub(crate) struct Receiver {
    server: MockServer,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
}

impl Receiver {
    /// Answers with each in turn, and with the last one from then on.
    pub(crate) async fn answering(answers: impl Into<Vec<ResponseTemplate>>) -> Self {
        let answers = answers.into();
        // Not from the pool: a sender that still runs would meet somebody else at this address.
        let server = MockServer::builder().start().await;
        let arrivals = Arc::new(Mutex::new(Vec::new()));
        let seen = arrivals.clone();
        let answer = move |request: &Request| {
            let mut seen = seen.lock().expect("no test panics in here");
            let answer = answers.get(seen.len()).or(answers.last()).expect("an answer").clone();
            seen.push(Arrival {
                at: HOST.now(),
                method: request.method.to_string(),
                path: request.url.path().to_owned(),
                headers: request.headers.clone(),
                body: request.body.clone(),
            });
            answer
        };
        Mock::given(any()).respond_with(answer).mount(&server).await;
        Self { server, arrivals }
    }

    /// Answers with each status in turn, and with the last one from then on.
    pub(crate) async fn with(statuses: &[u16]) -> Self {
        let answers: Vec<_> = statuses.iter().map(|s| ResponseTemplate::new(*s)).collect();
        Self::answering(answers).await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.uri())
    }

    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.arrivals.lock().expect("no test panics in here").clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.arrivals().len()
    }
}

/// Answers nothing until it is told to, and counts how many requests it holds.
#[derive(Clone)]
pub(crate) struct Holder {
    address: SocketAddr,
    held: Arc<Held>,
}

#[derive(Default)]
struct Held {
    arrivals: Mutex<Vec<Timestamp>>,
    now: AtomicUsize,
    most: AtomicUsize,
    answers: Mutex<VecDeque<u16>>,
    answered: Notify,
}

impl Holder {
    pub(crate) async fn start() -> Self {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = HOST.listen(loopback).await.expect("a port");
        let address = TokioHost::local_addr(&listener).expect("its number");
        let holder = Self { address, held: Arc::default() };
        let respond = {
            let holder = holder.clone();
            move |_request, _peer| {
                let holder = holder.clone();
                async move { holder.hold().await }
            }
        };
        HOST.spawn(server::serve(HOST, listener, ServerLimits::default(), respond, pending()));
        holder
    }

    async fn hold(&self) -> Response<Empty<Bytes>> {
        let held = &self.held;
        held.arrivals.lock().expect("no test panics in here").push(HOST.now());
        let now = held.now.fetch_add(1, SeqCst) + 1;
        held.most.fetch_max(now, SeqCst);
        // Also when the sender gives up first, and this is dropped.
        let _leaving = Leaving(held);
        loop {
            let answered = held.answered.notified();
            let answer = held.answers.lock().expect("no test panics in here").pop_front();
            if let Some(status) = answer {
                let response = Response::builder().status(status).body(Empty::new());
                return response.expect("a status");
            }
            answered.await;
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Answers to as many requests, those that are held first.
    pub(crate) fn answer(&self, statuses: impl IntoIterator<Item = u16>) {
        self.held.answers.lock().expect("no test panics in here").extend(statuses);
        self.held.answered.notify_waiters();
    }

    /// When each request arrived.
    pub(crate) fn arrivals(&self) -> Vec<Timestamp> {
        self.held.arrivals.lock().expect("no test panics in here").clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.arrivals().len()
    }

    /// The most requests that were held at once.
    pub(crate) fn most(&self) -> usize {
        self.held.most.load(SeqCst)
    }

    pub(crate) async fn arrived(&self, count: usize) {
        eventually(&format!("{count} requests arrive"), || async {
            (self.count() >= count).then_some(())
        })
        .await;
    }
}

struct Leaving<'a>(&'a Held);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, SeqCst);
    }
}

/// What becomes of a connection after the answer.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    /// It is closed in order.
    Close,
    /// It is reset.
    Reset,
    /// It stays open, and silent.
    Hold,
    /// It stays open, and a byte follows every so often.
    Drip(Millis),
    /// It stays open, and as many bytes follow as it takes.
    Flood,
}

/// Answers with bytes, well-formed or not.
pub(crate) struct Raw {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Raw {
    pub(crate) async fn answering(answer: impl Into<Vec<u8>>, then: Then) -> Self {
        let answer: Arc<[u8]> = answer.into().into();
        let requests: Arc<Mutex<Vec<_>>> = Arc::default();
        let seen = requests.clone();
        let address = accepting(move |mut stream| {
            let (answer, seen) = (answer.clone(), seen.clone());
            async move {
                let request = read_request(&mut stream).await;
                seen.lock().expect("no test panics in here").push(request);
                let _ = stream.write_all(&answer).await;
                finish(stream, then).await;
            }
        })
        .await;
        Self { address, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// The requests, byte for byte.
    pub(crate) fn requests(&self) -> Vec<String> {
        let requests = self.requests.lock().expect("no test panics in here");
        requests.iter().map(|request| String::from_utf8_lossy(request).into_owned()).collect()
    }
}

async fn finish(mut stream: TcpStream, then: Then) {
    match then {
        Then::Close => {}
        Then::Reset => stream.set_zero_linger().expect("an open socket"),
        Then::Hold => pending().await,
        Then::Drip(pause) => {
            while stream.write_all(b".").await.is_ok() {
                HOST.sleep(pause).await;
            }
        }
        Then::Flood => while stream.write_all(&[b'.'; 16 * 1024]).await.is_ok() {},
    }
}

/// Gives each connection to `serve`.
pub(crate) async fn accepting<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut listener = HOST.listen(loopback).await.expect("a port");
    let address = TokioHost::local_addr(&listener).expect("its number");
    HOST.spawn(async move {
        while let Ok((stream, _)) = HOST.accept(&mut listener).await {
            HOST.spawn(serve(stream));
        }
    });
    address
}

/// Reads one request with a declared length.
pub(crate) async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> Vec<u8> {
    let mut request = Vec::new();
    while !is_whole(&request) {
        match stream.read_buf(&mut request).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    request
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, _)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.and_then(|digits| digits.parse().ok()).unwrap_or(0);
    request.len() >= head.len() + "\r\n\r\n".len() + length
}

/// A port that is taken, so that nobody else gets it, and that nobody listens on.
pub(crate) struct Deserted {
    socket: TcpSocket,
}

impl Deserted {
    pub(crate) fn new() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        Self { socket }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.socket.local_addr().expect("its number"))
    }
}
