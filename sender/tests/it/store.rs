//! What the dispatcher relies on in a store: each method is one transaction.

use std::sync::Arc;

use hookproof_core::delivery::{Ctx, Delivery, Input, Phase, Rejected, Step};
use hookproof_core::endpoint::{Endpoint, EndpointStatus};
use hookproof_core::event::{Event, EventType};
use hookproof_core::gate::{Admission, Breaker, DeferReason, Gate, GateRule, RateRule, StoredGate};
use hookproof_core::id::{EndpointId, EventId};
use hookproof_core::outcome::Outcome;
use hookproof_core::policy::Policy;
use hookproof_core::secret::{Secret, Secrets};
use hookproof_core::time::{Millis, Timestamp};
use hookproof_sender::sqlite::SqliteStore;
use hookproof_sender::store::{Beside, EndpointReason, NoticeReason, Publication, Store};

use crate::running::{ADMITTED, Home};

const NOON: Timestamp = Timestamp::from_secs(43_200);

fn ep(name: &str) -> EndpointId {
    EndpointId::new(name).expect("an id")
}

/// The event `msg_N`, with a body that is no text.
pub(crate) fn event(n: u32, created_at: Timestamp) -> Event {
    Event {
        id: EventId::new(format!("msg_{n}")).expect("an id"),
        event_type: EventType::new("a").expect("a type"),
        content_type: "text/plain".to_owned(),
        body: Arc::from(vec![0xff, u8::try_from(n).expect("few")]),
        created_at,
    }
}

/// A store with the endpoint `ep`, and this many events that are due to it at noon and each a
/// millisecond later than the one before.
async fn with_events(home: &Home, count: u32) -> SqliteStore {
    let store = home.open().await;
    let endpoint = Endpoint {
        id: ep("ep"),
        url: "https://example.com/".to_owned(),
        secrets: Secrets::one(Secret::from_entropy([1, 2, 3, 4])),
        event_types: Vec::new(),
        status: EndpointStatus::Enabled,
        created_at: NOON,
    };
    store.create_endpoint(endpoint).await.expect("an endpoint");
    for n in 0..count {
        let event = event(n, NOON.plus(Millis::new(n.into())));
        store.publish(Publication { event, idempotency_key: None }).await.expect("an event");
    }
    store
}

fn snapshot(sequence: u64, failures: u32) -> StoredGate {
    let mut gate = StoredGate::from(Breaker::Closed { failures });
    gate.sequence = sequence;
    gate
}

fn step(delivery: &Delivery, now: Timestamp, input: Input) -> Step {
    let policy = Policy::default();
    delivery.handle(Ctx { now, entropy: 0, policy: &policy }, input).expect("it fits the state")
}

fn finished(status: u16) -> Input {
    Input::Finished { attempt: 1, outcome: Outcome::Answered { status, retry_after: None } }
}

async fn due(store: &SqliteStore, now: Timestamp, limit: u32) -> Vec<Delivery> {
    store.due_deliveries(ep("ep"), now, limit).await.expect("it is readable")
}

#[tokio::test]
async fn what_is_due_is_the_longest_due_first_within_the_limit() {
    let home = Home::new();
    let store = with_events(&home, 5).await;
    let ids = |due: Vec<Delivery>| {
        due.into_iter().map(|d| d.event_id.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(due(&store, NOON.plus(Millis::new(2)), 9).await), ["msg_0", "msg_1", "msg_2"]);
    assert_eq!(ids(due(&store, NOON.plus(Millis::new(9)), 2).await), ["msg_0", "msg_1"]);
    assert!(due(&store, Timestamp::from_millis(0), 9).await.is_empty());
    assert!(due(&store, Timestamp::MAX, 0).await.is_empty());
}

#[tokio::test]
async fn an_endpoint_says_whether_something_is_due_and_when_the_next_will_be() {
    let home = Home::new();
    let store = with_events(&home, 2).await;
    let at = |ms| NOON.plus(Millis::new(ms));
    for (now, is_due, next_due) in [
        (Timestamp::from_millis(0), false, Some(NOON)),
        (NOON, true, Some(at(1))),
        (at(1), true, None),
        (at(99), true, None),
    ] {
        let endpoints = store.due_endpoints(now).await.expect("it is readable");
        assert_eq!(endpoints.len(), 1);
        assert_eq!((endpoints[0].is_due, endpoints[0].next_due), (is_due, next_due), "{now:?}");
        assert_eq!(endpoints[0].gate.breaker.state, Breaker::default());
    }
    store
        .set_endpoint_status(ep("ep"), EndpointStatus::Disabled, None)
        .await
        .expect("it is stored");
    assert!(store.due_endpoints(at(99)).await.expect("it is readable").is_empty());
    let unknown = store.set_endpoint_status(ep("none"), EndpointStatus::Enabled, None).await;
    assert!(!unknown.expect("it is answered"));
}

#[tokio::test]
async fn of_two_steps_from_one_state_the_second_is_rejected() {
    let home = Home::new();
    let store = with_events(&home, 1).await;
    let delivery = due(&store, NOON, 1).await.remove(0);
    let first = step(&delivery, NOON, ADMITTED);
    let second = step(&delivery, NOON, Input::Cancel);
    store.commit(first, Beside::default()).await.expect("a commit").expect("the first");
    let second = store.commit(second, Beside::default()).await.expect("an answer");
    assert_eq!(second, Err(Rejected::Stale { expected: 0, stored: 1 }));
    let stored = store.delivery(delivery.id).await.expect("it is readable").expect("it is there");
    assert!(matches!(stored.delivery.phase, Phase::InFlight { .. }), "{stored:?}");
}

#[tokio::test]
async fn a_stale_claim_does_not_spoil_those_beside_it() {
    let home = Home::new();
    let store = with_events(&home, 3).await;
    let now = NOON.plus(Millis::new(9));
    let deliveries = due(&store, now, 3).await;
    let cancel = step(&deliveries[1], now, Input::Cancel);
    store.commit(cancel, Beside::default()).await.expect("a commit").expect("the first");

    let steps = deliveries.iter().map(|delivery| step(delivery, now, ADMITTED)).collect();
    let claims = store.claim(steps, Vec::new()).await.expect("an answer");

    let claimed: Vec<_> = claims.iter().map(Result::is_ok).collect();
    assert_eq!(claimed, [true, false, true]);
    let third = claims[2].as_ref().expect("it is claimed");
    assert_eq!(&third.event.body[..], [0xff, 2]);
    assert_eq!(third.event.content_type, "text/plain");
    assert_eq!(third.endpoint.url, "https://example.com/");
    assert!(matches!(third.delivery.phase, Phase::InFlight { attempt: 1, .. }));
    let totals = store.totals().await.expect("it is readable");
    assert_eq!((totals.in_flight, totals.cancelled, totals.scheduled), (2, 1, 0));
}

#[tokio::test]
async fn no_attempt_is_claimed_to_an_endpoint_that_was_disabled_meanwhile() {
    let home = Home::new();
    let store = with_events(&home, 1).await;
    let now = NOON.plus(Millis::new(9));
    let delivery = due(&store, now, 1).await.remove(0);
    let endpoint = delivery.endpoint_id.clone();
    let disabled = store.set_endpoint_status(endpoint, EndpointStatus::Disabled, None).await;
    assert!(disabled.expect("a commit"));

    let claims =
        store.claim(vec![step(&delivery, now, ADMITTED)], Vec::new()).await.expect("an answer");

    assert!(matches!(claims[..], [Err(Rejected::EndpointDisabled)]), "{claims:?}");
    assert_eq!(store.totals().await.expect("it is readable").scheduled, 1);
}

#[tokio::test]
async fn claims_are_listed_by_the_end_of_their_lease() {
    let home = Home::new();
    let store = with_events(&home, 2).await;
    assert_eq!(store.next_lease_end(NOON).await.expect("it is readable"), None);
    for (n, delivery) in due(&store, Timestamp::MAX, 2).await.iter().enumerate() {
        let now = NOON.plus(Millis::from_secs(u64::try_from(n).expect("few") * 10));
        let claim = step(delivery, now, ADMITTED);
        store.claim(vec![claim], Vec::new()).await.expect("a commit")[0]
            .as_ref()
            .expect("it is claimed");
    }
    let first = NOON.plus(Policy::default().lease());
    let second = first.plus(Millis::from_secs(10));
    for (after, next) in [(NOON, Some(first)), (first, Some(second)), (second, None)] {
        assert_eq!(store.next_lease_end(after).await.expect("it is readable"), next, "{after:?}");
    }
    for (until, limit, expected) in [(first, 9, 1), (second, 9, 2), (second, 1, 1), (NOON, 9, 0)] {
        let leased = store.leased(until, limit).await.expect("it is readable");
        assert_eq!(leased.len(), expected, "{until:?} {limit}");
        assert!(leased.first().is_none_or(|d| d.event_id.as_str() == "msg_0"), "{leased:?}");
    }
}

#[tokio::test]
async fn what_waits_is_found_by_when_it_was_created_and_replays_are_left_out() {
    let home = Home::new();
    let store = with_events(&home, 4).await;
    let at = |ms| NOON.plus(Millis::new(ms));
    let replayed = due(&store, at(9), 1).await.remove(0);
    let replay = step(&replayed, at(9), Input::Replay);
    store.commit(replay, Beside::default()).await.expect("a commit").expect("the first");
    for (before, limit, expected, next) in [
        (NOON, 9, 0, Some(NOON)),
        (at(2), 9, 1, Some(at(2))),
        (at(9), 9, 3, None),
        (at(9), 2, 2, None),
    ] {
        let aged = store.aged_deliveries(ep("ep"), before, limit).await.expect("it is readable");
        assert_eq!((aged.deliveries.len(), aged.next_created_at), (expected, next), "{before:?}");
        let first = aged.deliveries.first();
        assert!(first.is_none_or(|d| d.event_id.as_str() == "msg_1"), "{aged:?}");
    }
    let aged = store.aged_deliveries(ep("other"), at(9), 9).await.expect("it is readable");
    assert!(aged.deliveries.is_empty());
}

#[tokio::test]
async fn of_steps_that_are_written_together_a_stale_one_does_not_spoil_the_rest() {
    let home = Home::new();
    let store = with_events(&home, 3).await;
    let now = NOON.plus(Millis::from_hours(1));
    let deliveries = due(&store, now, 3).await;
    let cancel = step(&deliveries[1], now, Input::Cancel);
    store.commit(cancel, Beside::default()).await.expect("a commit").expect("the first");
    let mut policy = Policy::default();
    policy.life.age_max = Some(Millis::from_secs(1));
    let ctx = Ctx { now, entropy: 0, policy: &policy };
    let over = Input::LifeExpired { held: Millis::ZERO };
    let steps = deliveries.iter().map(|delivery| delivery.handle(ctx, over).expect("it is old"));

    let written = store.commit_each(steps.collect()).await.expect("an answer");

    assert_eq!(written.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    let totals = store.totals().await.expect("it is readable");
    assert_eq!((totals.dead, totals.cancelled, totals.notices_pending), (2, 1, 2));
    let told = home.count("SELECT created_at FROM notices LIMIT 1");
    assert_eq!(told, now.as_millis(), "the owner is told of it as of when it died");
}

#[tokio::test]
async fn an_attempt_its_breaker_and_its_notice_are_written_with_the_step() {
    let home = Home::new();
    let store = with_events(&home, 1).await;
    let delivery = due(&store, NOON, 1).await.remove(0);
    let claim = vec![step(&delivery, NOON, ADMITTED)];
    let claimed =
        store.claim(claim, Vec::new()).await.expect("a commit").remove(0).expect("it is claimed");
    let gate = snapshot(1, 7);
    let beside = Beside { excerpt: b"gone\xff".to_vec(), gate: Some(gate.clone()), endpoint: None };
    let gone = step(&claimed.delivery, NOON, finished(410));
    store.commit(gone, beside).await.expect("a commit").expect("it is the next");

    let history = store.history(delivery.id.clone()).await.expect("it is readable");
    let attempts = history.expect("it is there").history;
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].excerpt, "gone\u{fffd}");
    assert_eq!((attempts[0].record.attempt, attempts[0].record.started_at), (1, NOON));
    let endpoints = store.endpoints().await.expect("it is readable");
    assert_eq!(endpoints[0].status, EndpointStatus::Disabled);
    store.set_endpoint_status(ep("ep"), EndpointStatus::Enabled, None).await.expect("it is stored");
    let endpoints = store.due_endpoints(NOON).await.expect("it is readable");
    assert_eq!(endpoints[0].gate, gate);

    let notices = store.pending_notices(9).await.expect("it is readable");
    assert_eq!(notices.len(), 1);
    assert_eq!((&notices[0].delivery_id, notices[0].disables_endpoint), (&delivery.id, true));
    for _ in 0..2 {
        store.notice_sent(notices[0].id, NOON).await.expect("marked, and marked again");
        assert!(store.pending_notices(9).await.expect("it is readable").is_empty());
    }
}

#[tokio::test]
async fn an_endpoint_that_is_given_up_is_disabled_with_a_notice_in_the_same_transaction() {
    let home = Home::new();
    let store = with_events(&home, 1).await;
    let delivery = due(&store, NOON, 1).await.remove(0);
    let claim = vec![step(&delivery, NOON, ADMITTED)];
    let claimed =
        store.claim(claim, Vec::new()).await.expect("a commit").remove(0).expect("it is claimed");
    let failed = step(&claimed.delivery, NOON, finished(500));
    let beside = Beside { endpoint: Some(EndpointReason::GivenUp), ..Beside::default() };
    store.commit(failed, beside).await.expect("a commit").expect("it is the next");

    let endpoints = store.endpoints().await.expect("it is readable");
    assert_eq!(endpoints[0].status, EndpointStatus::Disabled);
    let notices = store.pending_notices(9).await.expect("it is readable");
    assert_eq!(notices.len(), 1);
    assert!(notices[0].disables_endpoint);
    assert_eq!(notices[0].reason, NoticeReason::Endpoint(EndpointReason::GivenUp));
    let totals = store.totals().await.expect("it is readable");
    assert_eq!((totals.scheduled, totals.dead), (1, 0), "the delivery waits");
}

#[tokio::test]
async fn of_two_snapshots_of_a_gate_the_later_stays_in_whatever_order_they_come() {
    let home = Home::new();
    let store = with_events(&home, 2).await;
    let now = NOON.plus(Millis::new(9));
    let steps = due(&store, now, 2).await.iter().map(|d| step(d, now, ADMITTED)).collect();
    let claims = store.claim(steps, vec![(ep("ep"), snapshot(1, 0))]).await.expect("a commit");
    for (claim, gate) in claims.into_iter().zip([snapshot(3, 2), snapshot(2, 1)]) {
        let failed = step(&claim.expect("it is claimed").delivery, now, finished(500));
        let beside = Beside { gate: Some(gate), ..Beside::default() };
        store.commit(failed, beside).await.expect("a commit").expect("it is the next");
    }
    let stored = store.gate(ep("ep")).await.expect("it is readable").expect("it is there");
    assert_eq!(stored, snapshot(3, 2));
    let enabled =
        store.set_endpoint_status(ep("ep"), EndpointStatus::Enabled, Some(snapshot(4, 0)));
    assert!(enabled.await.expect("a commit"));
    let endpoints = store.due_endpoints(now).await.expect("it is readable");
    assert_eq!(endpoints[0].gate, snapshot(4, 0));
    assert_eq!(store.gate(ep("none")).await.expect("it is readable"), None);
}

#[tokio::test]
async fn a_gate_is_stored_with_the_claims_that_it_admitted() {
    let home = Home::new();
    let store = with_events(&home, 1).await;
    let claim = step(&due(&store, NOON, 1).await[0], NOON, ADMITTED);
    let rule = GateRule {
        rate: Some(RateRule { attempts: 1, per: Millis::from_secs(60), burst: 0 }),
        ..GateRule::default()
    };
    let mut gate = Gate::default();
    assert!(matches!(gate.admit(&rule, NOON, Millis::from_secs(1)), Admission::Go(_)));
    store.claim(vec![claim], vec![(ep("ep"), gate.stored())]).await.expect("a commit");
    drop(store);

    let store = home.open().await;
    let stored = store.gate(ep("ep")).await.expect("it is readable").expect("it is there");
    let room = Gate::restored(stored).room(&rule, NOON.plus(Millis::from_secs(59)));
    assert_eq!(room, Err((NOON.plus(Millis::from_secs(60)), DeferReason::RateLimit)));
}
