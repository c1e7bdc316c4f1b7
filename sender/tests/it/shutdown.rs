//! The end of a sender: what is under way is finished, and nothing is begun.

use hookproof_core::delivery::Phase;
use hookproof_core::time::Millis;
use hookproof_runtime::host::Host;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::receiver::Holder;
use crate::running::{HOST, Home, config, eventually, soon};

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_under_way_is_finished_and_recorded_and_no_other_is_begun() {
    let holder = Holder::start().await;
    let home = Home::new();
    let mut config = config(&[]);
    config.policy.gate.concurrency_max = 1;
    let mut sender = home.start(config.clone()).await;
    let endpoint = sender.register(&holder.url()).await;
    let first = endpoint.delivery_of(&sender.publish("first").await);
    holder.arrived(1).await;
    let second = endpoint.delivery_of(&sender.publish("second").await);

    sender.ask_to_stop();
    HOST.sleep(Millis::new(200)).await;
    assert!(!sender.has_ended(), "an attempt is under way");
    holder.answer([200, 200]);
    sender.stop().await;

    assert_eq!(holder.count(), 1);
    assert_eq!(home.count("SELECT count(*) FROM attempts"), 1);
    assert_eq!(home.count("SELECT count(*) FROM deliveries WHERE phase = 'in_flight'"), 0);

    let sender = home.start(config).await;
    let seen = sender.seen(&first).await;
    assert!(matches!(seen.phase(), Phase::Delivered { .. }), "{seen:?}");
    let seen = sender.settled(&second).await;
    assert_eq!(seen.story(), ["200"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_attempt_is_begun_while_requests_to_the_api_are_finished() {
    let holder = Holder::start().await;
    let home = Home::new();
    let mut sender = home.start(config(&[10])).await;
    sender.register(&holder.url()).await;
    sender.publish("first").await;
    holder.arrived(1).await;
    let mut slow = HOST.connect(sender.address).await.expect("a connection");
    slow.write_all(b"POST /events?type=a HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nha")
        .await
        .expect("it is written");
    // The request has been taken up once a later one has.
    sender.totals().await;

    sender.ask_to_stop();
    eventually("nobody new is let in", || async {
        HOST.connect(sender.address).await.is_err().then_some(())
    })
    .await;
    holder.answer([500]);
    HOST.sleep(Millis::new(200)).await;
    assert_eq!(holder.count(), 1, "the next attempt is due, and for the next process");
    assert!(!sender.has_ended(), "a publish is arriving");
    slow.write_all(b"lf").await.expect("the rest");
    let mut reply = String::new();
    soon("the reply", slow.read_to_string(&mut reply)).await.expect("it arrives");
    assert!(reply.starts_with("HTTP/1.1 202 "), "{reply}");
    sender.stop().await;
    assert_eq!(holder.count(), 1);

    holder.answer([200, 200]);
    let sender = home.start(config(&[10])).await;
    eventually("both are delivered", || async {
        (sender.totals().await["delivered"] == json!(2)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_sender_ends_at_once_and_takes_no_more_connections() {
    let home = Home::new();
    let mut sender = home.start(config(&[])).await;
    let _idle = HOST.connect(sender.address).await.expect("a connection");
    assert_eq!(sender.get("/health").await.text(), "ok\n");
    let address = sender.address;
    assert!(!sender.has_ended());
    sender.stop().await;
    assert!(HOST.connect(address).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_is_never_answered_holds_the_end_up_no_longer_than_its_timeout() {
    let holder = Holder::start().await;
    let home = Home::new();
    let mut config = config(&[]);
    config.policy.total_timeout = Millis::new(500);
    config.policy.connect_timeout = Millis::new(500);
    let sender = home.start(config).await;
    sender.register(&holder.url()).await;
    sender.publish("{}").await;
    holder.arrived(1).await;
    sender.stop().await;
    assert_eq!(home.count("SELECT count(*) FROM deliveries WHERE last_outcome = 'timeout'"), 1);
}
