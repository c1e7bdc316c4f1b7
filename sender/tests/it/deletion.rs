//! Endpoints that are deleted, and what was on its way to them.

use hookproof_core::delivery::Phase;
use hookproof_core::time::Millis;
use hookproof_runtime::host::Host;
use hookproof_sender::store::Store;
use serde_json::{Value, json};

use crate::receiver::{Holder, Receiver};
use crate::running::{HOST, Home, Reply, Seen, Sender, config, eventually, request};

const HOUR: u64 = 3_600_000;

async fn delete(sender: &Sender, id: &impl std::fmt::Display) -> Reply {
    sender.send(request("DELETE", &format!("/endpoints/{id}"), "")).await
}

fn assert_cancelled(seen: &Seen, story: &[&str]) {
    assert!(matches!(seen.phase(), Phase::Cancelled { .. }), "{seen:?}");
    assert_eq!(seen.story(), story);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_an_endpoint_that_is_deleted_is_cancelled_and_nobody_else_notices() {
    let (gone, stays) = (Receiver::with(&[500, 200]).await, Receiver::with(&[500, 200]).await);
    let home = Home::new();
    let sender = home.start(config(&[400])).await;
    let deleted = sender.register(&gone.url("/hook")).await;
    let kept = sender.register(&stays.url("/hook")).await;
    let before = sender.publish("before").await;
    sender.attempted(&deleted.delivery_of(&before), 1).await;

    assert_eq!(delete(&sender, &deleted.id).await.status, 204);
    assert_cancelled(&sender.settled(&deleted.delivery_of(&before)).await, &["500"]);
    let after = sender.publish("after").await;
    for event in [&before, &after] {
        let seen = sender.settled(&kept.delivery_of(event)).await;
        assert!(matches!(seen.phase(), Phase::Delivered { .. }), "{seen:?}");
    }

    assert_eq!((gone.count(), stays.count()), (1, 3), "no attempt was made to the deleted one");
    let of_after = format!("/deliveries?event={after}");
    let listed: Vec<Value> = sender.get(&of_after).await.json();
    assert_eq!(listed.len(), 1, "what comes later is not for it: {listed:?}");
    let listed: Vec<Value> = sender.get("/endpoints").await.json();
    assert_eq!(listed.len(), 1, "it is not listed any more: {listed:?}");
    assert_eq!(home.count("SELECT count(*) FROM notices"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_under_way_comes_to_its_end_and_is_not_tried_again() {
    for (status, is_delivered) in [(200, true), (500, false)] {
        let holder = Holder::start().await;
        let home = Home::new();
        let sender = home.start(config(&[10, 10])).await;
        let endpoint = sender.register(&holder.url()).await;
        let id = endpoint.delivery_of(&sender.publish("{}").await);
        holder.arrived(1).await;

        assert_eq!(delete(&sender, &endpoint.id).await.status, 204);
        holder.answer([status]);
        let seen = sender.settled(&id).await;

        let phase = seen.phase();
        assert_eq!(matches!(phase, Phase::Delivered { .. }), is_delivered, "{status}: {seen:?}");
        assert_eq!(matches!(phase, Phase::Cancelled { .. }), !is_delivered, "{status}: {seen:?}");
        assert_eq!((seen.history.len(), holder.count()), (1, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_process_did_not_live_to_cancel_the_next_one_cancels() {
    let home = Home::new();
    let receiver = Receiver::with(&[500]).await;
    let sender = home.start(config(&[HOUR])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let id = endpoint.delivery_of(&sender.publish("{}").await);
    sender.attempted(&id, 1).await;
    sender.stop().await;
    let store = home.open().await;
    assert!(store.delete_endpoint(endpoint.id.clone()).await.expect("it is there"));
    drop(store);

    let sender = home.start(config(&[HOUR])).await;

    assert_cancelled(&sender.settled(&id).await, &["500"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_one_pass_can_cancel_is_cancelled_by_the_next_ones() {
    let home = Home::new();
    let receiver = Receiver::with(&[200]).await;
    let sender = home.start(config(&[])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    sender.post(&format!("/endpoints/{}/disable", endpoint.id), "").await;
    let events = 600;
    for number in 0..events {
        sender.publish(number.to_string()).await;
    }

    delete(&sender, &endpoint.id).await;

    eventually("all are cancelled", || async {
        (sender.totals().await["cancelled"] == events).then_some(())
    })
    .await;
    assert_eq!((sender.totals().await["scheduled"].clone(), receiver.count()), (json!(0), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_brings_a_deleted_endpoint_back() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let id = endpoint.delivery_of(&sender.publish("{}").await);
    sender.settled(&id).await;
    let secret = endpoint.secrets.iter().next().expect("a secret").reveal();
    let rows = format!("SELECT count(*) FROM endpoints WHERE secrets LIKE '%{secret}%'");
    assert_eq!(home.count(&rows), 1);

    assert_eq!(delete(&sender, &endpoint.id).await.status, 204);

    assert_eq!(home.count(&rows), 0, "its secrets are forgotten");
    let again = delete(&sender, &endpoint.id).await;
    assert_eq!(again.status, 404, "{}", again.text());
    for what in ["enable", "disable"] {
        let reply = sender.post(&format!("/endpoints/{}/{what}", endpoint.id), "").await;
        assert_eq!(reply.status, 404, "{what}: {}", reply.text());
    }
    let replay = sender.post(&format!("/deliveries/{id}/replay"), "").await;
    assert_eq!(replay.status, 409, "{}", replay.text());
    assert!(replay.problem().contains("is deleted"), "{}", replay.problem());
    HOST.sleep(Millis::new(100)).await;
    let seen = sender.seen(&id).await;
    assert!(matches!(seen.phase(), Phase::Delivered { .. }), "its history stays: {seen:?}");
    assert_eq!(receiver.count(), 1);
}
