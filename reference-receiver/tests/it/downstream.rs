//! Effects that are calls to another service: whatever becomes of a call, the other service has each
//! event once.

use std::collections::BTreeMap;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use hookproof_core::inbox::InboxRule;
use hookproof_receiver::config::{ReceiverConfig, Source};
use hookproof_receiver::downstream::Downstream;
use hookproof_receiver::effect::Ledger;
use hookproof_receiver::run;
use hookproof_receiver::store::{InboxStore as _, Recorded, Totals};
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::host::Host;
use hookproof_runtime::tokio_host::TokioHost;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use crate::given::{BODY, Disk, Fused, config, ms, rule, source, start, verified};

/// What the other service does with a call.
#[derive(Clone, Copy)]
enum Act {
    /// Has the effect, and says so.
    Answers,
    /// Has the effect, and hangs up without a word.
    LosesAnswer,
    /// Has the effect, and never answers.
    Hangs,
    /// Has the effect, and answers this.
    Breaks(u16),
    /// Has no effect, and answers this.
    Refuses(u16),
}

/// Another service, which knows by its key what it has done.
#[derive(Clone, Default)]
struct Service {
    acts: Arc<Mutex<Vec<Act>>>,
    /// Key → how often it was called with it. What is here has had its effect once.
    ledger: Arc<Mutex<BTreeMap<String, u32>>>,
    calls: Arc<Mutex<Vec<Call>>>,
}

/// One call, as it arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Call {
    head: String,
    body: Vec<u8>,
}

impl Call {
    fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| *found == name).map_or("", |(_, value)| value)
    }
}

impl Service {
    /// A service that does these things one after the other, and the last of them from then on.
    async fn start(acts: &[Act]) -> (Self, SocketAddr) {
        let service = Self::default();
        *service.acts.lock().expect("a lock") = acts.iter().rev().copied().collect();
        let on = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut listener = TokioHost.listen(on).await.expect("a socket");
        let address = TokioHost::local_addr(&listener).expect("an address");
        let serving = service.clone();
        TokioHost.spawn(async move {
            loop {
                let (stream, _) = TokioHost.accept(&mut listener).await.expect("a connection");
                TokioHost.spawn(serving.clone().serve(stream));
            }
        });
        (service, address)
    }

    async fn serve(self, mut stream: <TokioHost as Host>::Stream) {
        let call = read(&mut stream).await;
        let act = {
            let mut acts = self.acts.lock().expect("a lock");
            if acts.len() > 1 { acts.pop() } else { acts.first().copied() }
        };
        let act = act.expect("an act");
        let key = call.header("idempotency-key").to_owned();
        self.calls.lock().expect("a lock").push(call);
        if !matches!(act, Act::Refuses(_)) {
            *self.ledger.lock().expect("a lock").entry(key).or_insert(0) += 1;
        }
        let status = match act {
            Act::Answers => 200,
            Act::LosesAnswer => return,
            Act::Hangs => pending().await,
            Act::Breaks(status) | Act::Refuses(status) => status,
        };
        let answer = format!("HTTP/1.1 {status} Said\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.expect("somebody listens");
    }

    /// The keys of what has had its effect.
    fn effects(&self) -> Vec<String> {
        self.ledger.lock().expect("a lock").keys().cloned().collect()
    }

    fn calls(&self) -> Vec<Call> {
        self.calls.lock().expect("a lock").clone()
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Call {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let call = Call { head: head.to_owned(), body: body.as_bytes().to_vec() };
            if call.header("content-length").parse() == Ok(call.body.len()) {
                return call;
            }
        }
        let read = stream.read_buf(&mut bytes).await.expect("a request");
        assert!(read > 0, "the request breaks off: {text}");
    }
}

fn downstream(address: SocketAddr) -> Downstream {
    let downstream = Downstream::new(&format!("http://{address}/entries")).expect("a URL");
    Downstream { timeout: ms(200), ..downstream }
}

/// Two sources that take effect at `address`.
fn calling(address: SocketAddr, inbox: InboxRule) -> ReceiverConfig {
    let called = |id| Source { downstream: Some(downstream(address)), ..source(id) };
    ReceiverConfig { sources: vec![called("shop"), called("bank")], inbox, ..config() }
}

/// An event is received, the other service does these things one after the other, and it ends so, after
/// so many calls.
async fn check(acts: &[Act], attempts: usize, expected: Totals, effects: &[&str], calls: usize) {
    let (service, address) = Service::start(acts).await;
    let disk = Disk::new();
    let receiver =
        start(TokioHost, disk.open().await, calling(address, rule(attempts, ms(2000)))).await;
    assert_eq!(receiver.deliver("shop", "msg_1").await.status, 202);
    let totals = receiver.until(|totals| totals.applied + totals.dead == 1).await;
    assert_eq!(totals, Totals { events: 1, ..expected });
    assert_eq!(service.effects(), effects);
    let made = service.calls();
    assert_eq!(made.len(), calls);
    for call in made {
        assert_eq!(call.header("idempotency-key"), "shop.msg_1");
        assert_eq!(call.body, BODY);
    }
    receiver.stop().await;
}

fn applied() -> Totals {
    Totals { applied: 1, ..Totals::default() }
}

fn dead() -> Totals {
    Totals { dead: 1, ..Totals::default() }
}

#[tokio::test]
async fn an_event_takes_effect_in_the_other_service_and_nowhere_else() {
    let (service, address) = Service::start(&[Act::Answers]).await;
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, calling(address, rule(3, ms(2000)))).await;
    receiver.deliver("shop", "msg_1").await;
    receiver.deliver("shop", "msg_1").await;
    receiver.deliver("bank", "msg_1").await;
    let totals = receiver.until(|totals| totals.applied == 2).await;
    assert_eq!(totals, Totals { events: 2, applied: 2, duplicates: 1, ..Totals::default() });
    assert_eq!(service.effects(), ["bank.msg_1", "shop.msg_1"], "one id, two sources");
    let call = &service.calls()[0];
    assert!(call.head.starts_with("POST /entries HTTP/1.1\r\n"), "{}", call.head);
    assert_eq!(call.header("content-type"), "application/json");
    assert_eq!(call.header("host"), address.to_string());
    receiver.stop().await;
}

#[tokio::test]
async fn a_call_whose_outcome_is_unknown_is_made_again_under_the_same_key() {
    let once = ["shop.msg_1"];
    check(&[Act::LosesAnswer, Act::Answers], 3, applied(), &once, 2).await;
    check(&[Act::Hangs, Act::Answers], 3, applied(), &once, 2).await;
    check(&[Act::Breaks(500), Act::Answers], 3, applied(), &once, 2).await;
    check(&[Act::Breaks(503), Act::Hangs, Act::Answers], 3, applied(), &once, 3).await;
    check(&[Act::Refuses(409), Act::Answers], 3, applied(), &once, 2).await;
}

#[tokio::test]
async fn a_call_that_is_refused_is_tried_as_often_as_the_schedule_says() {
    check(&[Act::Refuses(422), Act::Answers], 3, applied(), &["shop.msg_1"], 2).await;
    check(&[Act::Refuses(422)], 3, dead(), &[], 3).await;
}

#[tokio::test]
async fn where_nobody_listens_nothing_takes_effect() {
    let on = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = TokioHost.listen(on).await.unwrap();
    let address = TokioHost::local_addr(&listener).unwrap();
    drop(listener);
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, calling(address, rule(2, ms(2000)))).await;
    receiver.deliver("shop", "msg_1").await;
    let totals = receiver.until(|totals| totals.dead == 1).await;
    assert_eq!(totals, Totals { events: 1, dead: 1, ..Totals::default() });
    receiver.stop().await;
}

#[tokio::test]
async fn a_crash_around_the_call_has_it_made_again_under_the_same_key() {
    for (point, calls) in
        [(CrashPoint::WorkClaimed, 1), (CrashPoint::EffectApplied, 2), (CrashPoint::WorkMarked, 1)]
    {
        let (service, address) = Service::start(&[Act::Answers]).await;
        let config = calling(address, rule(4, ms(60_000)));
        let disk = Disk::new();
        let host = Fused::new(Some(point));
        let store = disk.open_with(host.clone(), Ledger).await;
        assert_eq!(store.record(verified("shop", "msg_1")).await.unwrap(), Recorded::New);
        let on = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = host.listen(on).await.expect("a socket");
        tokio::select! {
            biased;
            () = run(host.clone(), listener, config.clone(), store, pending()) => {}
            () = host.blown() => {}
        }
        let receiver = start(TokioHost, disk.open().await, config).await;
        let totals = receiver.until(|totals| totals.applied == 1).await;
        assert_eq!(totals, Totals { events: 1, ..applied() }, "{point}");
        assert_eq!(service.effects(), ["shop.msg_1"], "{point}");
        assert_eq!(service.calls().len(), calls, "{point}");
        receiver.stop().await;
    }
}
