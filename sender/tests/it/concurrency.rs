//! How many attempts are under way at once, and who waits for whom.

use hookproof_core::time::Millis;
use hookproof_runtime::host::Host;
use serde_json::json;

use crate::receiver::{Holder, Receiver};
use crate::running::{HOST, Home, Sender, config, eventually};

async fn delivered(sender: &Sender, count: u64) {
    eventually(&format!("{count} are delivered"), || async {
        (sender.totals().await["delivered"] == json!(count)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_never_holds_more_attempts_than_its_limit() {
    let holder = Holder::start().await;
    let home = Home::new();
    let mut config = config(&[]);
    config.policy.gate.concurrency_max = 3;
    let sender = home.start(config).await;
    sender.register(&holder.url()).await;
    for _ in 0..12 {
        sender.publish("{}").await;
    }

    holder.arrived(3).await;
    HOST.sleep(Millis::new(100)).await;
    assert_eq!(holder.count(), 3, "nine are due, and three are under way");
    let totals = sender.totals().await;
    assert_eq!((&totals["in_flight"], &totals["scheduled"]), (&json!(3), &json!(9)));

    holder.answer([200]);
    holder.arrived(4).await;
    HOST.sleep(Millis::new(50)).await;
    assert_eq!(holder.count(), 4, "one ended, so one more goes");
    holder.answer([200; 12]);
    delivered(&sender, 12).await;
    assert_eq!((holder.count(), holder.most()), (12, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_endpoint_does_not_delay_another() {
    let (slow, fast) = (Holder::start().await, Receiver::with(&[200]).await);
    let home = Home::new();
    let mut config = config(&[]);
    config.policy.gate.concurrency_max = 2;
    let sender = home.start(config).await;
    sender.register(&slow.url()).await;
    sender.register(&fast.url("/hook")).await;
    for _ in 0..20 {
        sender.publish("{}").await;
    }

    delivered(&sender, 20).await;
    assert_eq!((fast.count(), slow.count()), (20, 2), "all to one, none of the other answered");
    slow.answer([200; 20]);
    delivered(&sender, 40).await;
    assert_eq!(slow.most(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_endpoints_together_stay_within_the_senders_limit() {
    let (one, other) = (Holder::start().await, Holder::start().await);
    let home = Home::new();
    let mut config = config(&[]);
    config.attempts_max = 3;
    let sender = home.start(config).await;
    for url in [one.url(), other.url()] {
        sender.register(&url).await;
    }
    for _ in 0..5 {
        sender.publish("{}").await;
    }
    eventually("three are under way", || async {
        (one.count() + other.count() >= 3).then_some(())
    })
    .await;
    HOST.sleep(Millis::new(100)).await;
    assert_eq!(one.count() + other.count(), 3);
    one.answer([200; 5]);
    other.answer([200; 5]);
    delivered(&sender, 10).await;
    assert!(one.most() + other.most() <= 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_that_never_answer_cannot_take_every_place() {
    let silent = [Holder::start().await, Holder::start().await, Holder::start().await];
    let fast = Receiver::with(&[200]).await;
    let home = Home::new();
    let mut config = config(&[]);
    config.attempts_max = 8;
    config.policy.gate.concurrency_max = 8;
    let sender = home.start(config).await;
    for holder in &silent {
        sender.register(&holder.url()).await;
    }
    for _ in 0..10 {
        sender.publish("{}").await;
    }
    eventually("the silent ones have all that they can get", || async {
        // More, if one gave up and another took its place: a slow machine can do that.
        (silent.iter().map(Holder::count).sum::<usize>() >= 7).then_some(())
    })
    .await;
    // It comes last, when there would be no place left for it.
    sender.register(&fast.url("/hook")).await;
    for _ in 0..10 {
        sender.publish("{}").await;
    }
    delivered(&sender, 10).await;
    assert_eq!(fast.count(), 10);
    for holder in &silent {
        holder.answer([200; 20]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_an_attempt_makes_room_for_the_next_one_at_once() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let mut config = config(&[]);
    config.attempts_max = 1;
    let sender = home.start(config).await;
    sender.register(&receiver.url("/hook")).await;
    for _ in 0..60 {
        sender.publish("{}").await;
    }
    // No sweep comes to help: a single wake-up that finds no room ends the test.
    delivered(&sender, 60).await;
    assert_eq!(receiver.count(), 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_longest_due_goes_first() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let mut config = config(&[]);
    config.policy.gate.concurrency_max = 1;
    let sender = home.start(config).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    sender.post(&format!("/endpoints/{}/disable", endpoint.id), "").await;
    for n in 0..8 {
        sender.publish(n.to_string()).await;
    }
    sender.post(&format!("/endpoints/{}/enable", endpoint.id), "").await;
    delivered(&sender, 8).await;
    let order: Vec<_> = receiver.arrivals().into_iter().map(|arrival| arrival.body).collect();
    assert_eq!(order, (0..8).map(|n| n.to_string().into_bytes()).collect::<Vec<_>>());
}
