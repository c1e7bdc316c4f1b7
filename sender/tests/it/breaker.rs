//! The breaker at work: a pause after failures in a row, then one probe.

use hookproof_core::delivery::{DeadReason, Phase};
use hookproof_core::gate::{BreakerRule, DisableRule};
use hookproof_core::id::DeliveryId;
use hookproof_core::life::WhileHeld;
use hookproof_core::time::Millis;
use hookproof_runtime::host::Host;
use hookproof_sender::config::SenderConfig;
use serde_json::json;

use crate::clock::{Clock, at};
use crate::expiry::{began, looking};
use crate::failing::FailingStore;
use crate::receiver::{Arrival, Holder, Receiver};
use crate::running::{HOST, Home, Registered, Sender, config, eventually};

/// A sender that pauses after three failures in a row.
fn pausing(waits: &[u64], pause: u64) -> SenderConfig {
    let mut config = config(waits);
    config.policy.gate.breaker = Some(BreakerRule {
        failures_in_a_row: 3,
        pause: Millis::new(pause),
        pause_max: Millis::from_hours(1),
        ..BreakerRule::default()
    });
    config
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
    let holder = Holder::start().await;
    holder.answer([500, 500, 500]);
    let home = Home::new();
    let sender = home.start(pausing(&[5, 5, 5, 5], 500)).await;
    let endpoint = sender.register(&holder.url()).await;
    let first = publish(&sender, &endpoint, 1).await.remove(0);
    sender.attempted(&first, 3).await;
    publish(&sender, &endpoint, 9).await;

    holder.arrived(4).await;
    HOST.sleep(Millis::new(150)).await;
    assert_eq!(holder.count(), 4, "ten are due, and the probe is under way");
    let arrivals = holder.arrivals();
    assert!(arrivals[3].since(arrivals[2]) >= Millis::new(500), "{arrivals:?}");
    assert_eq!(sender.totals().await["attempts"], 3, "who waits for the breaker attempts nothing");

    holder.answer([200]);
    holder.arrived(4 + 9).await;
    assert_eq!(holder.most(), 9, "all that are left go at once");
    holder.answer([200; 9]);
    delivered(&sender, 10).await;
    assert_eq!(sender.totals().await["attempts"], 13);
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
async fn what_grows_too_old_behind_an_open_breaker_is_dead_at_its_age_without_an_attempt() {
    let receiver = Receiver::with(&[500]).await;
    let home = Home::new();
    let mut config = pausing(&[5, 5, 5_000], 3_600_000);
    config.policy.life.age_max = Some(Millis::from_secs(1));
    let sender = home.start(config).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let first = publish(&sender, &endpoint, 1).await.remove(0);
    sender.settled(&first).await;
    let waiting = publish(&sender, &endpoint, 3).await;
    for id in &waiting {
        let seen = sender.settled(id).await;
        let Phase::Dead { at, reason: DeadReason::Expired } = seen.phase() else {
            panic!("{seen:?}");
        };
        assert!(at.since(seen.delivery.created_at) > Millis::from_secs(1), "{seen:?}");
        assert_eq!(seen.delivery.attempts, 0);
    }
    assert_eq!(receiver.count(), 3, "the breaker is open for an hour");
    eventually("each death is told", || async {
        let deaths = home.count("SELECT count(*) FROM notices WHERE reason <> '\"paused\"'");
        (deaths == 4).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_age_stops_what_a_breaker_holds_back_outlives_its_age() {
    let receiver = Receiver::with(&[500, 500, 500, 200]).await;
    let home = Home::new();
    let mut config = pausing(&[5, 5, 5, 5], 3_000);
    config.policy.life.age_max = Some(Millis::from_secs(2));
    config.policy.life.while_held = WhileHeld::Stops;
    let sender = home.start(config).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let first = publish(&sender, &endpoint, 1).await.remove(0);
    sender.attempted(&first, 3).await;
    publish(&sender, &endpoint, 3).await;
    delivered(&sender, 4).await;
    let seen = sender.seen(&first).await;
    assert!(seen.delivery.held > Millis::from_secs(2), "{seen:?}");
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

#[tokio::test(flavor = "multi_thread")]
async fn field_37_an_endpoint_that_is_given_up_is_disabled_and_its_delivery_waits() {
    let receiver = Receiver::with(&[500, 500]).await;
    let home = Home::new();
    let mut config = pausing(&[5, 5, 5, 5, 5], 200);
    config.policy.gate.breaker = Some(BreakerRule {
        disable: Some(DisableRule { failures_in_a_row: 2, ..DisableRule::default() }),
        ..BreakerRule::default()
    });
    let sender = home.start(config).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let delivery = publish(&sender, &endpoint, 1).await.remove(0);
    sender.attempted(&delivery, 2).await;
    HOST.sleep(Millis::new(150)).await;
    assert_eq!(receiver.arrivals().len(), 2, "nothing goes to a disabled endpoint");
    assert_eq!(sender.totals().await["scheduled"], 1, "what waits there is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_is_told_once_that_the_breaker_opens_and_can_see_until_when() {
    let receiver = Receiver::with(&[500, 500, 500, 200]).await;
    let home = Home::new();
    let clock = Clock::new();
    let mut config = looking(&[1, 1, 1, 1]);
    config.policy.gate.breaker =
        Some(BreakerRule { failures_in_a_row: 2, pause: Millis::new(5_000), ..rule() });
    let store = FailingStore::new(home.open().await);
    let sender = home.start_store(clock.clone(), store, config).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let path = format!("/endpoints/{}", endpoint.id);
    let breaker = async || {
        let shown = sender.get(&path).await;
        assert_eq!(shown.status, 200, "{}", shown.text());
        shown.json::<serde_json::Value>()["breaker"].clone()
    };
    assert_eq!(breaker().await, json!({ "state": "closed", "failures": 0 }));
    let delivery = publish(&sender, &endpoint, 1).await.remove(0);
    sender.attempted(&delivery, 1).await;
    assert_eq!(breaker().await, json!({ "state": "closed", "failures": 1 }));
    clock.to(1_000);
    sender.attempted(&delivery, 2).await;
    let until = at(6_000).as_millis();
    let open = json!({ "state": "open", "until": until, "pause": "5s" });
    assert_eq!(breaker().await, open);
    let told = "SELECT count(*) FROM notices WHERE reason = '\"paused\"' AND NOT disables";
    assert_eq!(home.count(told), 1);
    eventually("its owner is told", || async {
        let sent = home.count("SELECT count(*) FROM notices WHERE sent_at IS NOT NULL");
        (sent == 1).then_some(())
    })
    .await;

    // A failed probe prolongs the pause, of which nobody need be told again.
    clock.to(6_000);
    sender.attempted(&delivery, 3).await;
    assert_eq!(breaker().await["state"], "open");
    assert_eq!(home.count("SELECT count(*) FROM notices"), 1);
    clock.to(60_000);
    assert_eq!(sender.settled(&delivery).await.story(), ["500", "500", "500", "200"]);
    assert_eq!(breaker().await, json!({ "state": "closed", "failures": 0 }));

    let gone = sender.get("/endpoints/ep_unknown").await;
    assert_eq!(gone.status, 404, "{}", gone.text());
}

/// A breaker's rule with room for a test's own pause.
fn rule() -> BreakerRule {
    BreakerRule { pause_max: Millis::from_hours(1), ..BreakerRule::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_given_up_goes_on_with_a_clean_record_once_it_is_enabled() {
    let receiver = Receiver::with(&[500, 500, 500, 200]).await;
    let home = Home::new();
    let clock = Clock::new();
    let mut config = looking(&[1, 1, 1, 1]);
    config.policy.gate.breaker = Some(BreakerRule {
        disable: Some(DisableRule { failures_in_a_row: 2, ..DisableRule::default() }),
        ..BreakerRule::default()
    });
    let store = FailingStore::new(home.open().await);
    let sender = home.start_store(clock.clone(), store.clone(), config).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let delivery = publish(&sender, &endpoint, 1).await.remove(0);
    sender.attempted(&delivery, 1).await;
    clock.to(1_000);
    sender.attempted(&delivery, 2).await;
    assert_eq!(statuses(&sender).await, ["disabled"]);
    let told = "SELECT count(*) FROM notices WHERE reason = '\"given_up\"' AND disables";
    assert_eq!(home.count(told), 1);
    clock.to(10_000);
    store.looked(at(10_000)).await;

    let reply = sender.post(&format!("/endpoints/{}/enable", endpoint.id), "").await;
    assert_eq!(reply.status, 204, "{}", reply.text());
    sender.attempted(&delivery, 3).await;
    assert_eq!(statuses(&sender).await, ["enabled"], "one failure, and not three in a row");
    clock.to(11_000);
    assert_eq!(sender.settled(&delivery).await.story(), ["500", "500", "500", "200"]);
    assert_eq!(began(&home), [0, 1_000, 10_000, 11_000]);
    assert_eq!(home.count("SELECT count(*) FROM notices"), 1);
}

async fn statuses(sender: &Sender) -> Vec<String> {
    let endpoints: Vec<serde_json::Value> = sender.get("/endpoints").await.json();
    endpoints.iter().map(|e| e["status"].as_str().expect("a status").to_owned()).collect()
}
