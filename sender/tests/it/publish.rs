//! Publishing: what is accepted, how often, and for whom.

use hookproof_core::delivery::Phase;
use hookproof_core::id::EventId;
use hookproof_core::signature::ID_HEADER;
use serde_json::json;

use crate::receiver::Receiver;
use crate::running::{Accepted, Home, Reply, Sender, call, config, request, together};

async fn publish_once(sender: &Sender, event_type: &str, key: &str, body: &str) -> Reply {
    let mut request = request("POST", &format!("/events?type={event_type}"), body.to_owned());
    request.headers_mut().insert("idempotency-key", key.parse().expect("a header value"));
    sender.send(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_with_the_same_body_is_the_same_publish() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;

    let first = publish_once(&sender, "order.paid", "key-1", "{}").await;
    let again = publish_once(&sender, "order.paid", "key-1", "{}").await;

    assert_eq!((first.status, again.status), (202, 202));
    assert_eq!(first.header("idempotency-replayed"), None);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let (first, again): (Accepted, Accepted) = (first.json(), again.json());
    assert_eq!((&again.id, again.deliveries), (&first.id, first.deliveries));
    assert_eq!(first.deliveries, 1);
    sender.settled(&endpoint.delivery_of(&first.id)).await;
    let totals = sender.totals().await;
    assert_eq!((&totals["events"], &totals["delivered"]), (&json!(1), &json!(1)));
    assert_eq!(receiver.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_with_another_body_type_or_content_type_is_refused() {
    let home = Home::new();
    let sender = home.start(config(&[])).await;

    let first: Accepted = publish_once(&sender, "order.paid", "key-1", "{}").await.json();
    let body = publish_once(&sender, "order.paid", "key-1", "{ }").await;
    let kind = publish_once(&sender, "order.sent", "key-1", "{}").await;

    let mut as_text = request("POST", "/events?type=order.paid", "{}");
    for (name, value) in [("idempotency-key", "key-1"), ("content-type", "text/plain")] {
        as_text.headers_mut().insert(name, value.parse().expect("a header value"));
    }
    let content_type = sender.send(as_text).await;

    let detail = format!(
        "it belongs to event {}, which has another type, content type or body; a new event needs a \
         key of its own",
        first.id
    );
    for reply in [body, kind, content_type] {
        assert_eq!((reply.status, reply.problem()), (422, detail.clone()));
    }
    assert_eq!(sender.totals().await["events"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_publishes_at_once_with_one_key_are_one_event() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;

    let replies = together((0..16).map(|_| {
        let mut request = request("POST", "/events?type=order.paid", "{}");
        request.headers_mut().insert("idempotency-key", "key-1".parse().expect("a header value"));
        call(sender.address, request)
    }))
    .await;

    assert!(replies.iter().all(|reply| reply.status == 202), "{replies:?}");
    let new = replies.iter().filter(|reply| reply.header("idempotency-replayed").is_none());
    assert_eq!(new.count(), 1);
    let ids: Vec<EventId> = replies.iter().map(|reply| reply.json::<Accepted>().id).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    sender.settled(&endpoint.delivery_of(&ids[0])).await;
    assert_eq!(sender.totals().await["events"], 1);
    assert_eq!(receiver.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_still_counts_after_a_restart() {
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let first: Accepted = publish_once(&sender, "order.paid", "key-1", "{}").await.json();
    sender.stop().await;

    let sender = home.start(config(&[])).await;
    let again = publish_once(&sender, "order.paid", "key-1", "{}").await;

    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.json::<Accepted>().id, first.id);
}

#[tokio::test(flavor = "multi_thread")]
async fn publishes_without_a_key_are_events_of_their_own() {
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let (one, other) = (sender.publish("{}").await, sender.publish("{}").await);
    assert_ne!(one, other);
    assert_eq!(sender.totals().await["events"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_goes_to_those_who_subscribed_to_its_type() {
    let (all, paid, sent) =
        (Receiver::with(&[200]).await, Receiver::with(&[200]).await, Receiver::with(&[200]).await);
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let all_id = sender.register(&all.url("/")).await;
    let wants = |url: String, kind: &str| json!({ "url": url, "event_types": [kind] });
    let paid_id = sender.register_as(&wants(paid.url("/"), "order.paid")).await;
    sender.register_as(&wants(sent.url("/"), "order")).await;

    let reply = sender.post("/events?type=order.paid", "{}").await;
    let accepted: Accepted = reply.json();

    assert_eq!(accepted.deliveries, 2);
    sender.settled(&all_id.delivery_of(&accepted.id)).await;
    sender.settled(&paid_id.delivery_of(&accepted.id)).await;
    assert_eq!((all.count(), paid.count(), sent.count()), (1, 1, 0));
    let ids = [all.arrivals(), paid.arrivals()].map(|a| a[0].header(ID_HEADER).to_owned());
    assert_eq!(ids[0], ids[1], "one event, one id");
    all.arrivals()[0].verify(&all_id.secrets).expect("each is signed with its own secret");
    paid.arrivals()[0].verify(&paid_id.secrets).expect("each is signed with its own secret");
    assert!(all.arrivals()[0].verify(&paid_id.secrets).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_nobody_wants_is_accepted_and_kept() {
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let accepted: Accepted = sender.post("/events?type=order.paid", "{}").await.json();
    assert_eq!(accepted.deliveries, 0);
    assert_eq!(sender.totals().await["events"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_comes_later_gets_only_later_events() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    sender.publish("before").await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let event = sender.publish("after").await;
    sender.settled(&endpoint.delivery_of(&event)).await;
    assert_eq!(receiver.arrivals().iter().map(|a| a.body.clone()).collect::<Vec<_>>(), [b"after"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_content_type_arrives_as_it_was_published_and_is_json_by_default() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;

    let event = sender.publish("{}").await;
    sender.settled(&endpoint.delivery_of(&event)).await;
    let mut request = request("POST", "/events?type=order.paid", "<a/>");
    let odd = "Text/XML;  charset=\"utf-8\"";
    request.headers_mut().insert("content-type", odd.parse().expect("a header value"));
    let event = sender.send(request).await.json::<Accepted>().id;
    let seen = sender.settled(&endpoint.delivery_of(&event)).await;

    assert!(matches!(seen.phase(), Phase::Delivered { .. }), "{seen:?}");
    let arrivals = receiver.arrivals();
    assert_eq!(arrivals[0].header("content-type"), "application/json");
    assert_eq!(arrivals[1].header("content-type"), odd);
}
