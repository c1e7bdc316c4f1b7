//! What the API shows of deliveries.

use hookproof_core::id::DeliveryId;
use serde_json::{Value, json};

use crate::receiver::Receiver;
use crate::running::{Home, Registered, Seen, Sender, config};

/// A sender with two endpoints, one of which takes events and one of which refuses them, and three
/// events that have been to both.
async fn with_history(home: &Home) -> (Sender, [Registered; 2], Vec<DeliveryId>) {
    let (takes, refuses) = (Receiver::with(&[200]).await, Receiver::with(&[404]).await);
    let sender = home.start(config(&[])).await;
    let endpoints =
        [sender.register(&takes.url("/")).await, sender.register(&refuses.url("/")).await];
    let mut deliveries = Vec::new();
    for kind in ["a", "b", "c"] {
        let event = sender.publish_as(kind, "{}").await;
        for endpoint in &endpoints {
            let id = endpoint.delivery_of(&event);
            sender.settled(&id).await;
            deliveries.push(id);
        }
    }
    (sender, endpoints, deliveries)
}

async fn list(sender: &Sender, query: &str) -> Vec<DeliveryId> {
    let reply = sender.get(&format!("/deliveries{query}")).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let listed: Vec<Seen> = reply.json();
    listed.into_iter().map(|seen| seen.delivery.id).collect()
}

fn sorted(mut ids: Vec<DeliveryId>) -> Vec<DeliveryId> {
    ids.sort_unstable();
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_filtered_by_event_endpoint_and_phase() {
    let home = Home::new();
    let (sender, [takes, refuses], all) = with_history(&home).await;
    let event = sender.seen(&all[2]).await.delivery.event_id;

    assert_eq!(sorted(list(&sender, "").await), sorted(all.clone()));
    let of_event = list(&sender, &format!("?event={event}")).await;
    assert_eq!(sorted(of_event), sorted(all[2..4].to_vec()));
    let to = list(&sender, &format!("?endpoint={}", takes.id)).await;
    assert_eq!(to, [all[0].clone(), all[2].clone(), all[4].clone()]);
    assert_eq!(list(&sender, "?phase=delivered").await, to);
    let dead = list(&sender, "?phase=dead").await;
    assert_eq!(dead, list(&sender, &format!("?endpoint={}", refuses.id)).await);
    assert_eq!(list(&sender, "?phase=scheduled").await, []);
    let both = list(&sender, &format!("?event={event}&phase=dead")).await;
    assert_eq!(both, [all[3].clone()]);
    assert_eq!(list(&sender, "?event=msg_none").await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_follow_each_other_without_gap_or_overlap() {
    let home = Home::new();
    let (sender, _, all) = with_history(&home).await;
    let whole = list(&sender, "").await;
    assert_eq!(whole.len(), all.len());
    let mut pages = list(&sender, "?limit=4").await;
    assert_eq!(pages.len(), 4);
    pages.extend(list(&sender, &format!("?limit=4&after={}", pages[3])).await);
    assert_eq!(pages, whole);
    assert_eq!(list(&sender, &format!("?limit=4&after={}", whole[5])).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_listed_with_its_type_and_last_outcome_and_shown_with_its_attempts() {
    let home = Home::new();
    let (sender, _, all) = with_history(&home).await;
    let listed: Vec<Seen> = sender.get("/deliveries?phase=dead&limit=1").await.json();
    assert_eq!(listed[0].event_type, "a");
    assert_eq!(listed[0].last_outcome.as_deref(), Some("404"));
    assert!(listed[0].history.is_empty(), "a list is short");
    let seen = sender.seen(&all[1]).await;
    assert_eq!(seen.delivery, listed[0].delivery);
    assert_eq!(seen.story(), ["404"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn totals_account_for_every_delivery() {
    let home = Home::new();
    let (sender, [takes, refuses], _) = with_history(&home).await;
    sender.post(&format!("/endpoints/{}/disable", takes.id), "").await;
    let event = sender.publish("{}").await;
    sender.settled(&refuses.delivery_of(&event)).await;

    let check = |mut totals: Value, scheduled: u64, cancelled: u64| {
        totals.as_object_mut().expect("an object").remove("notices_pending");
        let expected = json!({
            "events": 4, "scheduled": scheduled, "in_flight": 0, "delivered": 3, "dead": 4,
            "cancelled": cancelled, "unreadable": 0, "attempts": 7,
        });
        assert_eq!(totals, expected);
    };
    check(sender.totals().await, 1, 0);
    sender.post(&format!("/deliveries/{}/cancel", takes.delivery_of(&event)), "").await;
    check(sender.totals().await, 0, 1);
}
