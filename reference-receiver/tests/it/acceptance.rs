//! What is accepted has exactly one effect, however often and from wherever it comes.

use std::sync::{Arc, Mutex};

use hookproof_core::secret::Secrets;
use hookproof_core::time::Millis;
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use rusqlite::Connection;
use tokio::sync::mpsc;

use crate::given::{
    BODY, Disk, Fused, Post, config, event, ms, secrets, send, signed, source_id, start, text,
};
use hookproof_core::time::Timestamp;
use hookproof_receiver::config::{ReceiverConfig, Source};
use hookproof_receiver::effect::{Effect, EffectError, Ledger};
use hookproof_receiver::store::{InboxStore as _, Totals, Work};

#[tokio::test]
async fn a_signed_event_is_accepted_and_has_exactly_one_effect() {
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, config()).await;

    let answer = receiver.deliver("shop", "msg_1").await;
    assert_eq!((answer.status, text(&answer).as_str()), (202, r#"{"status":"accepted"}"#));
    assert_eq!(answer.headers["content-type"], "application/json");

    let totals = receiver.until(|totals| totals.applied == 1).await;
    assert_eq!(totals, Totals { events: 1, applied: 1, effects: 1, ..Totals::default() });
    assert_eq!(receiver.effects("msg_1").await, 1);
    receiver.stop().await;
}

#[tokio::test]
async fn an_event_does_not_wait_for_the_sweep() {
    let disk = Disk::new();
    let config = ReceiverConfig { sweep_interval: Millis::from_hours(1), ..config() };
    let receiver = start(TokioHost, disk.open().await, config).await;
    for n in 1..=5 {
        assert_eq!(receiver.deliver("shop", &format!("msg_{n}")).await.status, 202);
        receiver.until(|totals| totals.effects == n).await;
    }
    receiver.stop().await;
}

#[tokio::test]
async fn a_duplicate_is_answered_200_and_changes_nothing() {
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, config()).await;
    assert_eq!(receiver.deliver("shop", "msg_1").await.status, 202);
    receiver.until(|totals| totals.applied == 1).await;

    let later = TokioHost.now().plus(Millis::from_secs(60));
    for again in [Post::new("shop", "msg_1", BODY), Post::at("shop", "msg_1", later, BODY)] {
        let answer = receiver.send(again.request()).await;
        assert_eq!((answer.status, text(&answer).as_str()), (200, r#"{"status":"duplicate"}"#));
    }
    TokioHost.sleep(ms(200)).await;
    let totals = receiver.store.totals().await.unwrap();
    let expected = Totals { events: 1, applied: 1, effects: 1, duplicates: 2, ..Totals::default() };
    assert_eq!(totals, expected);
    receiver.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_32_copies_at_once_one_is_new_and_there_is_one_effect() {
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, config()).await;
    let (tell, mut told) = mpsc::unbounded_channel();
    for _ in 0..32 {
        let (tell, address) = (tell.clone(), receiver.address);
        TokioHost.spawn(async move {
            let answer = send(address, signed("shop", "msg_1")).await;
            tell.send(answer.status).unwrap();
        });
    }
    drop(tell);
    let mut statuses = Vec::new();
    while let Some(status) = told.recv().await {
        statuses.push(status);
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![200; 31], vec![202]].concat());

    receiver.until(|totals| totals.applied == 1).await;
    TokioHost.sleep(ms(200)).await;
    let totals = receiver.store.totals().await.unwrap();
    assert_eq!((totals.effects, totals.effects_twice, totals.duplicates), (1, 0, 31));
    receiver.stop().await;
}

#[tokio::test]
async fn the_same_id_from_two_sources_is_two_events() {
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, config()).await;
    assert_eq!(receiver.deliver("shop", "msg_1").await.status, 202);
    assert_eq!(receiver.deliver("bank", "msg_1").await.status, 202);
    let totals = receiver.until(|totals| totals.applied == 2).await;
    assert_eq!((totals.effects, totals.effects_twice, totals.duplicates), (2, 0, 0));
    for source in ["shop", "bank"] {
        let count = receiver.store.effects_of(event("msg_1"), Some(source_id(source))).await;
        assert_eq!(count.unwrap(), 1, "{source}");
    }
    receiver.stop().await;
}

#[tokio::test]
async fn a_body_is_kept_byte_for_byte_and_need_not_be_json() {
    #[derive(Clone, Default)]
    struct Seen(Arc<Mutex<Vec<Work>>>);
    impl Effect for Seen {
        fn apply(&self, t: &Connection, work: &Work, now: Timestamp) -> Result<(), EffectError> {
            self.0.lock().unwrap().push(work.clone());
            Ledger.apply(t, work, now)
        }
    }
    let bodies: [&[u8]; 5] =
        [b"", b"{ \"b\":1,\r\n \"a\": 1.0 }\r\n", b"\xff\x00\xfe", b"\xef\xbb\xbf{}", b"false"];
    let seen = Seen::default();
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open_with(TokioHost, seen.clone()).await, config()).await;
    for (n, body) in bodies.iter().enumerate() {
        let post = Post::new("shop", &format!("msg_{n}"), body);
        let post = if n == 2 { post.without("content-type") } else { post };
        assert_eq!(receiver.send(post.request()).await.status, 202, "{}", body.escape_ascii());
    }
    receiver.until(|totals| totals.effects == 5).await;
    let seen = seen.0.lock().unwrap().clone();
    for (n, body) in bodies.iter().enumerate() {
        assert_eq!(seen[n].body, *body);
        let content_type = if n == 2 { "application/octet-stream" } else { "application/json" };
        assert_eq!(seen[n].content_type, content_type);
    }
    receiver.stop().await;
}

#[tokio::test]
async fn during_a_rotation_the_old_secret_and_the_new_one_are_accepted() {
    let both: Vec<_> = ["new", "old"]
        .iter()
        .flat_map(|s| secrets(s).iter().cloned().collect::<Vec<_>>())
        .collect();
    let source = Source::new(source_id("shop"), &Secrets::new(both).unwrap());
    let config = ReceiverConfig { sources: vec![source], ..config() };
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, config).await;
    for (signer, status) in [("new", 202), ("old", 202), ("older", 401)] {
        let post = Post { path: "/hooks/shop".to_owned(), ..Post::new(signer, signer, BODY) };
        assert_eq!(receiver.send(post.request()).await.status, status, "{signer}");
    }
    receiver.stop().await;
}

#[tokio::test]
async fn the_named_points_are_passed_in_order() {
    let host = Fused::new(None);
    let disk = Disk::new();
    let store = disk.open_with(host.clone(), Ledger).await;
    let receiver = start(host.clone(), store, config()).await;
    assert_eq!(receiver.deliver("shop", "msg_1").await.status, 202);
    receiver.until(|totals| totals.applied == 1).await;
    receiver.stop().await;
    let expected = [
        CrashPoint::RequestAccepted,
        CrashPoint::RequestVerified,
        CrashPoint::InboxCommitted,
        CrashPoint::WorkClaimed,
        CrashPoint::EffectApplied,
        CrashPoint::WorkMarked,
    ];
    assert_eq!(host.passed(), expected);
}
