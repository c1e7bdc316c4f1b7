//! A row that cannot be read holds up nobody else's.

use hookproof_core::delivery::{Ctx, Step};
use hookproof_core::id::EndpointId;
use hookproof_core::policy::Policy;
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::host::Host as _;
use hookproof_sender::sqlite::SqliteStore;
use hookproof_sender::store::{Publication, Store as _};
use serde_json::json;

use crate::receiver::Receiver;
use crate::running::{ADMITTED, HOST, Home, Registered, Sender, config, eventually};
use crate::store::event;

/// A home with one endpoint and the events `msg_0` to `msg_2`, of which nothing is sent yet.
async fn with_three_events(home: &Home, receiver: &Receiver) -> (SqliteStore, Registered) {
    let sender = home.start(config(&[])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    sender.stop().await;
    let store = home.open().await;
    publish(&store, 3).await;
    (store, endpoint)
}

async fn publish(store: &SqliteStore, count: u32) {
    for n in 0..count {
        let publication = Publication { event: event(n, HOST.now()), idempotency_key: None };
        store.publish(publication).await.expect("it is stored");
    }
}

async fn claim_all(store: &SqliteStore, endpoint: &EndpointId) {
    let now = HOST.now();
    let policy = Policy { lease_margin: Millis::from_hours(1), ..Policy::default() };
    let due = store.due_deliveries(endpoint.clone(), now, 9).await.expect("it is readable");
    let claim = |delivery: &hookproof_core::delivery::Delivery| -> Step {
        let ctx = Ctx { now, entropy: 0, policy: &policy };
        delivery.handle(ctx, ADMITTED).expect("it is due")
    };
    let steps = due.iter().map(claim).collect();
    store.claim(steps, Vec::new()).await.expect("it is committed");
}

async fn until(sender: &Sender, delivered: u64, unreadable: u64) {
    eventually(&format!("{delivered} delivered, {unreadable} set aside"), || async {
        let totals = sender.totals().await;
        let is = |name: &str, count: u64| totals[name] == json!(count);
        (is("delivered", delivered) && is("unreadable", unreadable) && is("in_flight", 0))
            .then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_cannot_be_read_is_set_aside_and_the_others_are_made() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let (store, endpoint) = with_three_events(&home, &receiver).await;
    drop(store);
    home.change("UPDATE deliveries SET state = '{\"id\":' WHERE event_id = 'msg_0'");
    let sender = home.start(config(&[])).await;
    until(&sender, 2, 1).await;
    assert_eq!(receiver.count(), 2);
    let kept = "SELECT count(*) FROM deliveries WHERE state = '{\"id\":' AND wake_at IS NULL";
    assert_eq!(home.count(kept), 1, "for whoever mends it");
    let listed = sender.get("/deliveries").await;
    assert_eq!(listed.status, 200, "{}", listed.text());
    sender.stop().await;

    // Mended, it is made.
    let state = format!(
        "UPDATE deliveries SET phase = 'scheduled', wake_at = 0,
         state = (SELECT replace(state, 'msg_1', 'msg_0') FROM deliveries
                  WHERE event_id = 'msg_1') WHERE id = '{}'",
        endpoint.delivery_of(&event(0, Timestamp::MAX).id)
    );
    home.change(&state);
    home.change(
        "UPDATE deliveries SET version = 0, attempts = 0, state = json_set(state, '$.version', 0,
         '$.attempts', 0, '$.scheduled_attempts', 0,
         '$.phase', json('{\"name\":\"scheduled\",\"due\":0,\"origin\":{\"by\":\"schedule\"}}'))
         WHERE event_id = 'msg_0'",
    );
    let sender = home.start(config(&[])).await;
    until(&sender, 3, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_nothing_but_unreadable_deliveries_does_not_hide_what_is_behind_it() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let (store, _) = with_three_events(&home, &receiver).await;
    drop(store);
    home.change("UPDATE deliveries SET state = '' WHERE event_id <> 'msg_2'");
    let mut config = config(&[]);
    config.policy.gate.concurrency_max = 1;
    let sender = home.start(config).await;
    until(&sender, 1, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_cannot_be_read_is_set_aside_and_the_others_are_settled() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let (store, endpoint) = with_three_events(&home, &receiver).await;
    claim_all(&store, &endpoint.id).await;
    drop(store);
    home.change("UPDATE deliveries SET state = '[]' WHERE event_id = 'msg_1'");
    let sender = home.start(config(&[5])).await;
    until(&sender, 2, 1).await;
    assert_eq!(sender.totals().await["attempts"], 4, "two unknown, two made again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_whose_event_cannot_be_read_is_set_aside() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let (store, _) = with_three_events(&home, &receiver).await;
    drop(store);
    home.change("UPDATE events SET event_type = 'no type' WHERE id = 'msg_1'");
    let sender = home.start(config(&[])).await;
    until(&sender, 2, 1).await;
}

/// Two endpoints in a store that nobody has open: the receiver and the id of the one that a test
/// breaks, and the receiver of the other.
async fn two_endpoints(home: &Home) -> (Receiver, EndpointId, Receiver) {
    let (broken, healthy) = (Receiver::with(&[200]).await, Receiver::with(&[200]).await);
    let sender = home.start(config(&[])).await;
    let broken_id = sender.register(&broken.url("/hook")).await.id;
    sender.register(&healthy.url("/hook")).await;
    sender.stop().await;
    (broken, broken_id, healthy)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_cannot_be_read_is_disabled_and_the_others_are_served() {
    for column in ["gate", "secrets"] {
        let home = Home::new();
        let (broken, broken_id, healthy) = two_endpoints(&home).await;
        let secrets =
            format!("SELECT json_array_length(secrets) FROM endpoints WHERE id = '{broken_id}'");
        assert_eq!(home.count(&secrets), 1);
        let store = home.open().await;
        publish(&store, 2).await;
        drop(store);
        home.change(&format!(
            "UPDATE endpoints SET event_types = '[]', {column} = concat('#', {column})
             WHERE id = '{broken_id}'"
        ));

        let sender = home.start(config(&[])).await;
        until(&sender, 2, 0).await;
        assert_eq!((broken.count(), healthy.count()), (0, 2), "{column}");
        let disabled = "SELECT count(*) FROM endpoints WHERE status = 'disabled'";
        eventually("it is disabled", || async { (home.count(disabled) == 1).then_some(()) }).await;
        assert_eq!(sender.totals().await["scheduled"], 2, "{column}: what waits is kept");

        if column == "gate" {
            // Whoever enables it says that it is well again.
            let reply = sender.post(&format!("/endpoints/{broken_id}/enable"), "").await;
            assert_eq!(reply.status, 204, "{}", reply.text());
            until(&sender, 4, 0).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_cannot_be_read_gets_its_deliveries_and_holds_up_nobody_elses() {
    for column in ["secrets", "event_types"] {
        let home = Home::new();
        let (broken, broken_id, healthy) = two_endpoints(&home).await;
        home.change(&format!(
            "UPDATE endpoints SET {column} = concat('#', {column}) WHERE id = '{broken_id}'"
        ));

        let store = home.open().await;
        publish(&store, 2).await;
        drop(store);
        assert_eq!(home.count("SELECT count(*) FROM deliveries"), 4, "{column}");
        let disabled = "SELECT count(*) FROM endpoints WHERE status = 'disabled'";
        let is_disabled = i64::from(column == "event_types");
        assert_eq!(
            home.count(disabled),
            is_disabled,
            "{column}: which events it wants is in doubt"
        );

        let sender = home.start(config(&[])).await;
        until(&sender, 2, 0).await;
        assert_eq!((broken.count(), healthy.count()), (0, 2), "{column}");
        sender.stop().await;

        // Mended and enabled, it gets what waited.
        home.change(&format!(
            "UPDATE endpoints SET status = 'enabled', {column} = substr({column}, 2)
             WHERE id = '{broken_id}'"
        ));
        let sender = home.start(config(&[])).await;
        until(&sender, 4, 0).await;
        assert_eq!(broken.count(), 2, "{column}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_whose_id_cannot_be_read_gets_nothing_and_holds_up_nobody_elses() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    sender.register(&receiver.url("/broken")).await;
    sender.stop().await;
    home.change("UPDATE endpoints SET id = 'no id'");
    let sender = home.start(config(&[])).await;
    sender.register(&receiver.url("/hook")).await;
    sender.stop().await;
    let store = home.open().await;
    publish(&store, 1).await;
    drop(store);
    assert_eq!(home.count("SELECT count(*) FROM deliveries"), 1);
    assert_eq!(home.count("SELECT count(*) FROM endpoints WHERE status = 'disabled'"), 1);
}
