//! Where attempts may go: what was registered is judged, and so is every address that it leads to.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use hookproof_core::address::AddressPolicy;
use hookproof_core::delivery::{DeadReason, Phase};
use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::host::Host;
use hookproof_sender::config::SenderConfig;
use hookproof_sender::tls::Tls;
use hookproof_sender::url::Target;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use crate::receiver::{Raw, Then};
use crate::running::{HOST, Home, Seen, Sender, address_policy, config};

/// The real host with a resolver whose answers are laid down, and which notes who is called.
#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    /// The answers to come, one a look-up. After the last there are none.
    answers: VecDeque<Vec<IpAddr>>,
    asked: Vec<String>,
    called: Vec<IpAddr>,
}

impl Scripted {
    fn answering(answers: &[&[&str]]) -> Self {
        let ip = |text: &&str| text.parse().expect("an address");
        let answers = answers.iter().map(|answer| answer.iter().map(ip).collect()).collect();
        Self(Arc::new(Mutex::new(Script { answers, ..Script::default() })))
    }

    fn asked(&self) -> Vec<String> {
        self.0.lock().expect("nothing panics with it").asked.clone()
    }

    fn called(&self) -> Vec<IpAddr> {
        self.0.lock().expect("nothing panics with it").called.clone()
    }
}

impl Host for Scripted {
    type Stream = TcpStream;
    type Listener = TcpListener;

    const SIMULATED: bool = false;

    fn now(&self) -> Timestamp {
        HOST.now()
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
        let mut script = self.0.lock().expect("nothing panics with it");
        script.asked.push(name.to_owned());
        let answer = script.answers.pop_front().ok_or(io::ErrorKind::NotFound)?;
        Ok(answer.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<TcpStream> {
        self.0.lock().expect("nothing panics with it").called.push(to.ip());
        HOST.connect(to).await
    }

    async fn listen(&self, on: SocketAddr) -> io::Result<TcpListener> {
        HOST.listen(on).await
    }

    fn local_addr(listener: &TcpListener) -> io::Result<SocketAddr> {
        listener.local_addr()
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

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const REBINDING: &str = "rebind.example.com";

/// This machine by its addresses, and no special name.
fn by_address(waits: &[u64]) -> SenderConfig {
    let address = AddressPolicy { allow_hosts: Vec::new(), ..address_policy() };
    SenderConfig { address, ..config(waits) }
}

async fn start(home: &Home, host: &Scripted, config: SenderConfig) -> Sender {
    home.start_on(host.clone(), config, Tls::new(None).expect("the usual roots")).await
}

/// What comes of one event to this name and port.
async fn delivered(host: &Scripted, config: SenderConfig, port: u16) -> Seen {
    let home = Home::new();
    let sender = start(&home, host, config).await;
    let endpoint = sender.register(&format!("http://{REBINDING}:{port}/hooks")).await;
    let event = sender.publish("{}").await;
    sender.settled(&endpoint.delivery_of(&event)).await
}

fn failed(failure: Failure) -> Outcome {
    Outcome::Failed { failure }
}

fn port_of(receiver: &Raw) -> u16 {
    let url = receiver.url();
    Target::parse(&url).expect("it is a URL").port
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_may_not_be_reached_is_refused_with_the_row_that_says_so() {
    let home = Home::new();
    let sender =
        home.start(SenderConfig { address: AddressPolicy::default(), ..config(&[]) }).await;
    for (url, part) in [
        ("http://127.0.0.1:80/", "127.0.0.0/8, Loopback (RFC 1122"),
        ("http://[::ffff:169.254.169.254]/", "169.254.169.254, embedded as IPv4-mapped, is in"),
        ("http://localhost./", "the domain localhost (RFC 6761"),
        ("http://receiver/", "a name of one label"),
        ("http://2130706433/", "ends in a number"),
        ("http://a:b@example.com/", "carries a user name or password"),
    ] {
        let reply = sender.post("/endpoints", json!({ "url": url }).to_string()).await;
        assert_eq!(reply.status, 400, "{url}: {}", reply.text());
        assert!(reply.text().contains(part), "{url}: {}", reply.text());
    }
    sender.register("https://hooks.example.com/in").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn field_110_each_attempt_looks_up_once_and_calls_what_it_judged() {
    let receiver =
        Raw::answering("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n", Then::Close).await;
    // The name leads to the receiver once, and then to the metadata of a cloud.
    let host = Scripted::answering(&[&["127.0.0.1"], &["169.254.169.254"]]);
    let seen = delivered(&host, by_address(&[1, 1, 1]), port_of(&receiver)).await;
    let answered = Outcome::Answered { status: 503, retry_after: None };
    assert_eq!(seen.outcomes(), [answered, failed(Failure::Blocked)]);
    assert_eq!(host.asked(), [REBINDING, REBINDING], "one look-up an attempt");
    assert_eq!(host.called(), ["127.0.0.1".parse::<IpAddr>().expect("an address")]);
    let request = receiver.requests().join("");
    let host_line = format!("host: {REBINDING}:{}\r\n", port_of(&receiver));
    assert!(request.contains(&host_line), "the name stays the name: {request}");
}

#[tokio::test(flavor = "multi_thread")]
async fn field_111_one_denied_answer_denies_all_and_nothing_is_called() {
    let receiver = Raw::answering(OK, Then::Close).await;
    for answers in [&["127.0.0.1", "10.0.0.1"][..], &["10.0.0.1", "127.0.0.1"], &["fe80::1"]] {
        let host = Scripted::answering(&[answers]);
        let seen = delivered(&host, by_address(&[1, 1]), port_of(&receiver)).await;
        assert_eq!(seen.outcomes(), [failed(Failure::Blocked)], "{answers:?}");
        assert_eq!(host.called(), [] as [IpAddr; 0], "{answers:?}");
        let is_refused =
            matches!(seen.delivery.phase, Phase::Dead { reason: DeadReason::Refused, .. });
        assert!(is_refused, "it is final at once: {:?}", seen.delivery.phase);
    }
    assert_eq!(receiver.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn field_113_a_redirect_to_a_denied_address_is_not_followed() {
    let answer =
        "HTTP/1.1 301 Moved\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n";
    let receiver = Raw::answering(answer, Then::Close).await;
    let host = Scripted::answering(&[&["127.0.0.1"]]);
    let seen = delivered(&host, by_address(&[]), port_of(&receiver)).await;
    assert_eq!(seen.outcomes(), [Outcome::Answered { status: 301, retry_after: None }]);
    assert_eq!((host.asked().len(), host.called().len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_no_longer_allowed_is_blocked_at_its_next_attempt() {
    let receiver = Raw::answering(OK, Then::Close).await;
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let endpoint = sender.register(&receiver.url()).await;
    sender.stop().await;
    let sender =
        home.start(SenderConfig { address: AddressPolicy::default(), ..config(&[]) }).await;
    let event = sender.publish("{}").await;
    let seen = sender.settled(&endpoint.delivery_of(&event)).await;
    assert_eq!(seen.outcomes(), [failed(Failure::Blocked)]);
    assert_eq!(receiver.requests().len(), 0);
    assert_eq!(home.count("SELECT count(*) FROM notices"), 1, "its owner is told");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_cannot_resolve_is_a_dns_failure() {
    for answers in [&[][..], &[&[][..]]] {
        let host = Scripted::answering(answers);
        let seen = delivered(&host, by_address(&[]), 80).await;
        assert_eq!(seen.outcomes(), [failed(Failure::Dns)]);
    }
}
