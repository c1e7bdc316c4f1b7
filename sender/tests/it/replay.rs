//! What an owner can do by hand: replay and cancel.

use hookproof_core::delivery::{DeadReason, Origin, Phase};
use hookproof_core::id::DeliveryId;
use hookproof_core::outcome::Outcome;
use hookproof_core::signature::ID_HEADER;
use hookproof_core::time::Millis;
use hookproof_runtime::host::Host;

use crate::receiver::{Holder, Receiver};
use crate::running::{HOST, Home, Reply, Sender, config, eventually};

async fn ask(sender: &Sender, id: &DeliveryId, what: &str) -> Reply {
    sender.post(&format!("/deliveries/{id}/{what}"), "").await
}

const HOUR: u64 = 3_600_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_of_what_is_delivered_sends_the_same_event_again() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let event = sender.publish("once more").await;
    let id = endpoint.delivery_of(&event);
    let before = sender.settled(&id).await;

    let reply = ask(&sender, &id, "replay").await;
    assert_eq!(reply.status, 202, "{}", reply.text());
    let after = sender.attempted(&id, 2).await;

    assert_eq!(after.phase(), before.phase(), "it was delivered then, and not only now");
    assert_eq!(after.story(), ["200", "200"]);
    assert_eq!((after.delivery.attempts, after.delivery.scheduled_attempts), (2, 1));
    let arrivals = receiver.arrivals();
    assert_eq!(arrivals.len(), 2);
    for arrival in arrivals {
        assert_eq!(arrival.header(ID_HEADER), event.as_str());
        assert_eq!(arrival.body, b"once more");
        arrival.verify(&endpoint.secrets).expect("it is signed anew");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_of_what_is_dead_can_deliver_it() {
    let receiver = Receiver::with(&[404, 500, 200]).await;
    let home = Home::new();
    let sender = home.start(config(&[10, 10])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let event = sender.publish("{}").await;
    let id = endpoint.delivery_of(&event);
    let dead = sender.settled(&id).await;
    assert!(matches!(dead.phase(), Phase::Dead { reason: DeadReason::Refused, .. }), "{dead:?}");

    ask(&sender, &id, "replay").await;
    let failed = sender.attempted(&id, 2).await;
    assert_eq!(failed.phase(), dead.phase(), "a replay that fails is one attempt, no schedule");
    assert_eq!(home.count("SELECT count(*) FROM notices"), 1, "the owner was told before");

    ask(&sender, &id, "replay").await;
    let delivered = sender.attempted(&id, 3).await;
    assert!(matches!(delivered.phase(), Phase::Delivered { .. }), "{delivered:?}");
    assert_eq!(delivered.story(), ["404", "500", "200"]);
    let arrivals = receiver.arrivals();
    assert!(arrivals.iter().all(|a| a.header(ID_HEADER) == event.as_str()), "{arrivals:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_fails_leaves_the_schedule_as_it_was() {
    let receiver = Receiver::with(&[500]).await;
    let home = Home::new();
    let sender = home.start(config(&[HOUR, HOUR])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let id = endpoint.delivery_of(&sender.publish("{}").await);
    let before = sender.attempted(&id, 1).await;

    ask(&sender, &id, "replay").await;
    let after = sender.attempted(&id, 2).await;

    assert!(matches!(before.phase(), Phase::Scheduled { origin: Origin::Schedule, .. }));
    assert_eq!(after.phase(), before.phase(), "due when it was due");
    assert_eq!((after.delivery.attempts, after.delivery.scheduled_attempts), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_delivery_is_not_attempted_again() {
    let holder = Holder::start().await;
    let home = Home::new();
    let sender = home.start(config(&[10, 10])).await;
    let endpoint = sender.register(&holder.url()).await;
    let id = endpoint.delivery_of(&sender.publish("{}").await);
    holder.arrived(1).await;
    // So that the retry waits until it is cancelled.
    sender.post(&format!("/endpoints/{}/disable", endpoint.id), "").await;
    holder.answer([500]);
    sender.attempted(&id, 1).await;

    let reply = ask(&sender, &id, "cancel").await;
    assert_eq!(reply.status, 202, "{}", reply.text());
    sender.post(&format!("/endpoints/{}/enable", endpoint.id), "").await;
    HOST.sleep(Millis::new(150)).await;

    let seen = sender.seen(&id).await;
    assert!(matches!(seen.phase(), Phase::Cancelled { .. }), "{seen:?}");
    assert_eq!(holder.count(), 1);
    assert_eq!(home.count("SELECT count(*) FROM notices"), 0, "the owner knows");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_under_an_attempt_stands_whatever_comes_of_the_attempt() {
    let holder = Holder::start().await;
    let home = Home::new();
    let sender = home.start(config(&[10])).await;
    let endpoint = sender.register(&holder.url()).await;
    let id = endpoint.delivery_of(&sender.publish("{}").await);
    holder.arrived(1).await;

    let reply = ask(&sender, &id, "cancel").await;
    assert_eq!(reply.status, 202, "{}", reply.text());
    holder.answer([200]);
    // The next attempt to this endpoint shows that the one before has ended.
    let other = endpoint.delivery_of(&sender.publish("{}").await);
    holder.answer([200]);
    sender.settled(&other).await;

    let seen = sender.seen(&id).await;
    assert!(matches!(seen.phase(), Phase::Cancelled { .. }), "{seen:?}");
    assert_eq!(seen.outcomes(), [Outcome::Unknown], "the receiver may have acted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_delivery_can_be_replayed() {
    let receiver = Receiver::with(&[500, 200]).await;
    let home = Home::new();
    let sender = home.start(config(&[HOUR])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let id = endpoint.delivery_of(&sender.publish("{}").await);
    sender.attempted(&id, 1).await;
    ask(&sender, &id, "cancel").await;

    ask(&sender, &id, "replay").await;
    let seen = sender.attempted(&id, 2).await;
    assert!(matches!(seen.phase(), Phase::Delivered { .. }), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_under_an_attempt_is_a_conflict() {
    let holder = Holder::start().await;
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let endpoint = sender.register(&holder.url()).await;
    let id = endpoint.delivery_of(&sender.publish("{}").await);
    holder.arrived(1).await;

    let reply = ask(&sender, &id, "replay").await;
    assert_eq!((reply.status, reply.problem().as_str()), (409, "an attempt is under way"));
    holder.answer([200]);
    let seen = sender.settled(&id).await;
    assert_eq!(seen.story(), ["200"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_of_what_is_settled_is_a_conflict() {
    let receiver = Receiver::with(&[200, 404]).await;
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    for _ in 0..2 {
        let id = endpoint.delivery_of(&sender.publish("{}").await);
        let before = sender.settled(&id).await;
        let reply = ask(&sender, &id, "cancel").await;
        let expected = (409, "the delivery is in a final state");
        assert_eq!((reply.status, reply.problem().as_str()), expected);
        assert_eq!(sender.seen(&id).await.phase(), before.phase());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_delivery_is_not_found() {
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    for path in ["/deliveries/none/replay", "/deliveries/none/cancel"] {
        let reply = sender.post(path, "").await;
        assert_eq!((reply.status, reply.problem().as_str()), (404, "there is no delivery `none`"));
    }
    let reply = sender.get("/deliveries/msg_1~ep_1").await;
    assert_eq!(reply.problem(), "there is no delivery `msg_1~ep_1`");
    let reply = sender.get("/deliveries/a.b").await;
    assert_eq!((reply.status, reply.problem().as_str()), (404, "there is no delivery `a.b`"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_goes_to_a_disabled_endpoint_only_once_it_is_enabled() {
    let receiver = Receiver::with(&[410, 200]).await;
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let id = endpoint.delivery_of(&sender.publish("{}").await);
    sender.settled(&id).await;

    ask(&sender, &id, "replay").await;
    HOST.sleep(Millis::new(100)).await;
    assert_eq!(receiver.count(), 1);
    sender.post(&format!("/endpoints/{}/enable", endpoint.id), "").await;
    let seen = eventually("it is delivered", || async {
        Some(sender.seen(&id).await).filter(|seen| matches!(seen.phase(), Phase::Delivered { .. }))
    })
    .await;
    assert_eq!(seen.story(), ["410", "200"]);
}
