//! When a delivery's time is over, and when a receiver says how long it wants to be left alone.

use hookproof_core::delivery::{DeadReason, Phase};
use hookproof_core::gate::RateRule;
use hookproof_core::time::Millis;
use hookproof_sender::config::SenderConfig;
use wiremock::ResponseTemplate;

use crate::clock::{Clock, SHORTEST, at};
use crate::failing::FailingStore;
use crate::receiver::Receiver;
use crate::running::{Home, Seen, config};

/// A sender that looks at what is due all the time, with these waits in seconds.
pub(crate) fn looking(waits: &[u64]) -> SenderConfig {
    let waits: Vec<_> = waits.iter().map(|secs| secs * 1000).collect();
    SenderConfig { sweep_interval: SHORTEST, ..config(&waits) }
}

/// When each attempt began, in milliseconds on the clock.
pub(crate) fn began(home: &Home) -> Vec<u64> {
    let sql = "SELECT json_extract(record, '$.started_at') AS at FROM attempts ORDER BY at";
    let since = |ms: i64| ms - at(0).as_millis();
    home.numbers(sql).into_iter().map(|ms| u64::try_from(since(ms)).expect("later")).collect()
}

fn assert_expired(seen: &Seen, ms: u64) {
    let dead = Phase::Dead { at: at(ms), reason: DeadReason::Expired };
    assert_eq!(seen.phase(), dead, "{seen:?}");
}

fn expiry_notices(home: &Home) -> i64 {
    home.count("SELECT count(*) FROM notices WHERE reason = '\"expired\"' AND NOT disables")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_whose_next_attempt_would_begin_too_late_is_expired_and_its_owner_told() {
    let receiver = Receiver::with(&[500]).await;
    let home = Home::new();
    let clock = Clock::new();
    let mut config = looking(&[30, 30, 30, 30]);
    config.policy.life.age_max = Some(Millis::from_secs(60));
    let store = FailingStore::new(home.open().await);
    let sender = home.start_store(clock.clone(), store, config).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let id = endpoint.delivery_of(&sender.publish("{}").await);
    sender.attempted(&id, 1).await;
    clock.to(30_000);
    sender.attempted(&id, 2).await;
    clock.to(60_000);

    let seen = sender.settled(&id).await;

    assert_expired(&seen, 60_000);
    assert_eq!(seen.story(), ["500"; 3]);
    assert_eq!(began(&home), [0, 30_000, 60_000], "the last one is exactly as old as allowed");
    assert_eq!((expiry_notices(&home), home.count("SELECT count(*) FROM notices")), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_was_held_back_for_too_long_is_expired_without_an_attempt() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let clock = Clock::new();
    let mut config = looking(&[]);
    config.policy.life.age_max = Some(Millis::from_secs(60));
    config.policy.gate.rate = Some(RateRule { attempts: 1, per: Millis::from_secs(120), burst: 0 });
    let store = FailingStore::new(home.open().await);
    let sender = home.start_store(clock.clone(), store, config).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let first = endpoint.delivery_of(&sender.publish("{}").await);
    sender.settled(&first).await;
    let second = endpoint.delivery_of(&sender.publish("{}").await);
    clock.to(120_000);

    let seen = sender.settled(&second).await;

    assert_expired(&seen, 120_000);
    assert_eq!((seen.history.len(), receiver.count()), (0, 1));
    assert_eq!(expiry_notices(&home), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_after_as_a_date_in_each_form_moves_the_next_attempt_to_that_second() {
    for date in [
        "Thu, 01 Jan 2026 00:02:00 GMT",
        "Thursday, 01-Jan-26 00:02:00 GMT",
        "Thu Jan  1 00:02:00 2026",
    ] {
        let busy = ResponseTemplate::new(503).insert_header("retry-after", date);
        let receiver = Receiver::answering([busy, ResponseTemplate::new(200)]).await;
        let home = Home::new();
        let clock = Clock::new();
        let store = FailingStore::new(home.open().await);
        let sender = home.start_store(clock.clone(), store.clone(), looking(&[1])).await;
        let endpoint = sender.register(&receiver.url("/hook")).await;
        let id = endpoint.delivery_of(&sender.publish("{}").await);

        let seen = sender.attempted(&id, 1).await;
        let Phase::Scheduled { due, .. } = seen.phase() else { panic!("{date}: {seen:?}") };
        assert_eq!(due, at(120_000), "{date}");

        clock.to(119_999);
        store.looked(at(119_999)).await;
        clock.to(120_000);
        assert_eq!(sender.settled(&id).await.story(), ["503, retry after 2m", "200"], "{date}");
        assert_eq!(began(&home), [0, 120_000], "{date}");
    }
}
