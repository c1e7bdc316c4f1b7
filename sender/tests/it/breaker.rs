//! The breaker at work: a pause after failures in a row, then one probe.

use hookproof_core::gate::BreakerRule;
use hookproof_core::id::DeliveryId;
use hookproof_core::time::Millis;
use hookproof_runtime::host::Host;
use hookproof_sender::config::SenderConfig;
use serde_json::json;
use wiremock::ResponseTemplate;

use crate::receiver::{Arrival, Receiver};
use crate::running::{HOST, Home, Registered, Sender, config, eventually};

/// A sender that pauses after three failures in a row.
fn pausing(waits: &[u64], pause: u64) -> SenderConfig {
    let mut config = config(waits);
    config.policy.gate.breaker = Some(BreakerRule {
        failures_in_a_row: 3,
        pause: Millis::new(pause),
        pause_max: Millis::from_hours(1),
    });
    config
}

fn ok_after(delay_ms: u64) -> ResponseTemplate {
    ResponseTemplate::new(200).set_delay(Millis::new(delay_ms).to_duration())
}

fn waited(arrivals: &[Arrival], later: usize) -> Millis {
    arrivals[later].at.since(arrivals[later - 1].at)
}

async fn publish(sender: &Sender, endpoint: &Registered, count: usize) -> Vec<DeliveryId> {
    let mut deliveries = Vec::new();
    for _ in 0..count {
        deliveries.push(endpoint.delivery_of(&sender.publish("{}").await));
    }
    deliveries
}

async fn delivered(sender: &Sender, count: u64) {
    eventually(&format!("{count} are delivered"), || async {
        (sender.totals().await["delivered"] == json!(count)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_failures_in_a_row_one_probe_goes_once_the_pause_is_over_and_its_success_resumes() {
    let failure = || ResponseTemplate::new(500);
    let receiver =
        Receiver::answering([failure(), failure(), failure(), ok_after(300), ok_after(0)]).await;
    let home = Home::new();
    let sender = home.start(pausing(&[5, 5, 5, 5], 800)).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let first = publish(&sender, &endpoint, 1).await.remove(0);
    sender.attempted(&first, 3).await;

    publish(&sender, &endpoint, 9).await;
    HOST.sleep(Millis::new(200)).await;
    assert_eq!(receiver.count(), 3, "ten are due, and the breaker is open");

    receiver.arrived(4).await;
    HOST.sleep(Millis::new(100)).await;
    assert_eq!(receiver.count(), 4, "the probe is under way");
    delivered(&sender, 10).await;

    let arrivals = receiver.arrivals();
    assert_eq!(arrivals.len(), 3 + 10);
    assert!(waited(&arrivals, 3) >= Millis::new(800), "{:?}", waited(&arrivals, 3));
    assert!(waited(&arrivals, 4) >= Millis::new(300), "{:?}", waited(&arrivals, 4));
    let deferred = sender.totals().await;
    assert_eq!(deferred["attempts"], 13, "what waits for the breaker makes no attempt");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_that_fails_doubles_the_pause() {
    let receiver = Receiver::with(&[500, 500, 500, 503, 500, 200]).await;
    let home = Home::new();
    let sender = home.start(pausing(&[5, 5, 5, 5, 5], 200)).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    publish(&sender, &endpoint, 1).await;
    delivered(&sender, 1).await;
    let arrivals = receiver.arrivals();
    assert_eq!(arrivals.len(), 6);
    for (probe, pause) in [(3, 200), (4, 400), (5, 800)] {
        assert!(waited(&arrivals, probe) >= Millis::new(pause), "{probe}: {arrivals:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_breaker_stays_open_over_a_restart() {
    let receiver = Receiver::with(&[500, 500, 500, 200]).await;
    let home = Home::new();
    let sender = home.start(pausing(&[5, 5, 5], 1000)).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let id = publish(&sender, &endpoint, 1).await.remove(0);
    sender.attempted(&id, 3).await;
    sender.stop().await;

    let sender = home.start(pausing(&[5, 5, 5], 1000)).await;
    delivered(&sender, 1).await;
    let arrivals = receiver.arrivals();
    assert!(waited(&arrivals, 3) >= Millis::new(1000), "{:?}", waited(&arrivals, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_event_says_nothing_about_the_endpoint() {
    let receiver = Receiver::with(&[400]).await;
    let home = Home::new();
    let mut config = pausing(&[], 3_600_000);
    config.policy.gate.concurrency_max = 1;
    let sender = home.start(config).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    for id in publish(&sender, &endpoint, 5).await {
        sender.settled(&id).await;
    }
    assert_eq!(receiver.count(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_success_in_between_starts_the_count_anew() {
    let receiver = Receiver::with(&[500, 500, 200, 500, 500, 200]).await;
    let home = Home::new();
    let mut config = pausing(&[5, 5], 3_600_000);
    config.policy.gate.concurrency_max = 1;
    let sender = home.start(config).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    for _ in 0..2 {
        let id = publish(&sender, &endpoint, 1).await.remove(0);
        assert_eq!(sender.settled(&id).await.story(), ["500", "500", "200"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_breaker_of_one_endpoint_does_not_pause_another() {
    let (broken, healthy) = (Receiver::with(&[500]).await, Receiver::with(&[200]).await);
    let home = Home::new();
    let sender = home.start(pausing(&[5, 5, 5, 5, 5, 5], 3_600_000)).await;
    let broken_id = sender.register(&broken.url("/hook")).await;
    sender.register(&healthy.url("/hook")).await;
    let first = publish(&sender, &broken_id, 1).await.remove(0);
    sender.attempted(&first, 3).await;
    publish(&sender, &broken_id, 4).await;
    delivered(&sender, 5).await;
    assert_eq!((broken.count(), healthy.count()), (3, 5));
}
