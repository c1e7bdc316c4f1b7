//! How fast events leave: the rate over every window, also over a restart, and restraint towards an
//! endpoint that has too much to do.

use hookproof_core::delivery::Ctx;
use hookproof_core::gate::{Admission, BreakerRule, DrainRule, Gate, RateRule};
use hookproof_core::id::DeliveryId;
use hookproof_core::time::Millis;
use hookproof_runtime::host::Host as _;
use hookproof_sender::config::SenderConfig;
use hookproof_sender::store::{Publication, Store as _};
use serde_json::json;
use wiremock::ResponseTemplate;

use crate::clock::{Clock, at};
use crate::expiry::{began, looking};
use crate::failing::FailingStore;
use crate::receiver::{Holder, Receiver};
use crate::running::{ADMITTED, Home, Sender, eventually};
use crate::store::event;

/// One attempt a minute.
fn one_a_minute(waits: &[u64]) -> SenderConfig {
    let mut config = looking(waits);
    config.policy.gate.rate = Some(RateRule { attempts: 1, per: Millis::from_secs(60), burst: 0 });
    config
}

async fn recorded(sender: &Sender, attempts: u64) {
    eventually(&format!("{attempts} attempts are recorded"), || async {
        let totals = sender.totals().await;
        (totals["attempts"] == json!(attempts) && totals["in_flight"] == json!(0)).then_some(())
    })
    .await;
}

/// Goes to a millisecond before that time, has the dispatcher look, and goes on.
async fn step_over(clock: &Clock, store: &FailingStore, ms: u64) {
    clock.to(ms - 1);
    store.looked(at(ms - 1)).await;
    clock.to(ms);
}

#[tokio::test(flavor = "multi_thread")]
async fn case_93_of_five_events_at_one_a_minute_one_goes_now_and_the_rest_a_minute_apart() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let clock = Clock::new();
    let store = FailingStore::new(home.open().await);
    let sender = home.start_store(clock.clone(), store.clone(), one_a_minute(&[])).await;
    sender.register(&receiver.url("/hook")).await;
    for _ in 0..5 {
        sender.publish("{}").await;
    }
    for minute in 1..5 {
        recorded(&sender, minute).await;
        step_over(&clock, &store, minute * 60_000).await;
    }
    recorded(&sender, 5).await;
    assert_eq!(began(&home), [0, 60_000, 120_000, 180_000, 240_000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_was_begun_before_a_restart_is_exact_after_it() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let clock = Clock::new();
    let sender = home.start_on_clock(&clock, one_a_minute(&[])).await;
    sender.register(&receiver.url("/hook")).await;
    sender.publish("{}").await;
    recorded(&sender, 1).await;
    clock.to(30_000);
    sender.publish("{}").await;
    sender.stop().await;

    let store = FailingStore::new(home.open().await);
    let sender = home.start_store(clock.clone(), store.clone(), one_a_minute(&[])).await;
    store.looked(at(30_000)).await;
    step_over(&clock, &store, 60_000).await;
    recorded(&sender, 2).await;
    assert_eq!(began(&home), [0, 60_000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_whose_process_died_counts_in_the_window_of_the_next() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let clock = Clock::new();
    let config = one_a_minute(&[1]);
    let store = home.open().await;
    let sender = home.start_store(clock.clone(), store.clone(), config.clone()).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    sender.stop().await;
    let event = event(0, clock.now());
    store.publish(Publication { event, idempotency_key: None }).await.expect("it is stored");
    let due = store.due_deliveries(endpoint.id.clone(), at(0), 1).await.expect("it is readable");
    let ctx = Ctx { now: at(0), entropy: 0, policy: &config.policy };
    let claim = due[0].handle(ctx, ADMITTED).expect("it is due");
    let mut gate = Gate::default();
    let admission = gate.admit(&config.policy.gate, at(0), config.policy.lease());
    assert!(matches!(admission, Admission::Go(_)));
    store.claim(vec![claim], vec![(endpoint.id, gate.stored())]).await.expect("it is claimed");
    drop(store);

    clock.to(10_000);
    let store = FailingStore::new(home.open().await);
    let sender = home.start_store(clock.clone(), store.clone(), config).await;
    store.looked(at(10_000)).await;
    step_over(&clock, &store, 60_000).await;
    recorded(&sender, 2).await;
    assert_eq!(began(&home), [0, 60_000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_asked_to_be_left_alone_is_left_alone_over_a_restart() {
    let busy = ResponseTemplate::new(503).insert_header("retry-after", "120");
    let receiver = Receiver::answering([busy, ResponseTemplate::new(200)]).await;
    let home = Home::new();
    let clock = Clock::new();
    let sender = home.start_on_clock(&clock, looking(&[1])).await;
    sender.register(&receiver.url("/hook")).await;
    sender.publish("{}").await;
    recorded(&sender, 1).await;
    sender.stop().await;

    clock.to(10_000);
    let store = FailingStore::new(home.open().await);
    let sender = home.start_store(clock.clone(), store.clone(), looking(&[1])).await;
    sender.publish("another, which is due at once").await;
    store.looked(at(10_000)).await;
    step_over(&clock, &store, 120_000).await;
    recorded(&sender, 3).await;
    assert_eq!(began(&home), [0, 120_000, 120_000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_recovery_the_backlog_leaves_at_the_rate_of_the_drain() {
    let receiver = Receiver::with(&[500, 200]).await;
    let home = Home::new();
    let clock = Clock::new();
    let mut config = looking(&[1]);
    config.policy.gate.breaker = Some(BreakerRule { failures_in_a_row: 1, ..Default::default() });
    let per = Millis::from_secs(10);
    config.policy.gate.drain = Some(DrainRule { attempts: 1, per, lasts: Millis::from_secs(30) });
    let store = FailingStore::new(home.open().await);
    let sender = home.start_store(clock.clone(), store.clone(), config).await;
    sender.register(&receiver.url("/hook")).await;
    sender.publish("{}").await;
    recorded(&sender, 1).await;
    for _ in 0..4 {
        sender.publish("{}").await;
    }
    // The probe, one every ten seconds, and the rest at once when that is over.
    for (before, secs) in [(1, 60), (2, 70), (3, 80), (4, 90)] {
        recorded(&sender, before).await;
        step_over(&clock, &store, secs * 1000).await;
    }
    recorded(&sender, 6).await;
    assert_eq!(began(&home), [0, 60_000, 70_000, 80_000, 90_000, 90_000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_has_too_much_to_do_gets_half_at_once_and_each_success_gives_one_back() {
    for status in [429, 502, 503, 504] {
        let holder = Holder::start().await;
        let home = Home::new();
        let clock = Clock::new();
        let mut config = looking(&[3600]);
        config.policy.gate.concurrency_max = 4;
        let store = FailingStore::new(home.open().await);
        let sender = home.start_store(clock.clone(), store.clone(), config).await;
        let endpoint = sender.register(&holder.url()).await;
        let first: DeliveryId = endpoint.delivery_of(&sender.publish("{}").await);
        holder.answer([status]);
        sender.attempted(&first, 1).await;
        for _ in 0..6 {
            sender.publish("{}").await;
        }

        // So many have arrived in all, and so many are held; a further look changes nothing.
        for (step, (arrived, held)) in [(3, 2), (5, 3), (7, 4)].into_iter().enumerate() {
            holder.arrived(arrived).await;
            let next_look = (u64::try_from(step).expect("few") + 1) * 1000;
            clock.to(next_look);
            store.looked(at(next_look)).await;
            assert_eq!((holder.count(), holder.most()), (arrived, held), "{status}: step {step}");
            holder.answer([200]);
        }
        holder.answer([200; 3]);
        recorded(&sender, 7).await;
    }
}
