//! The way of an event: what arrives, how often, and how it ends.

use hookproof_core::classify::ClientError;
use hookproof_core::delivery::{DeadReason, Phase};
use hookproof_core::outcome::Outcome;
use hookproof_core::signature::ID_HEADER;
use hookproof_core::time::Millis;
use hookproof_runtime::host::Host;
use wiremock::ResponseTemplate;

use crate::receiver::Receiver;
use crate::running::{HOST, Home, Seen, config};

#[tokio::test(flavor = "multi_thread")]
async fn a_500_then_a_429_with_retry_after_then_a_200_is_delivered_after_three_attempts() {
    let receiver = Receiver::answering([
        ResponseTemplate::new(500),
        ResponseTemplate::new(429).insert_header("retry-after", "2"),
        ResponseTemplate::new(200),
    ])
    .await;
    let home = Home::new();
    let sender = home.start(config(&[20, 20, 20, 20])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;

    let event = sender.publish(r#"{"n": 1.0}"#).await;
    let seen = sender.settled(&endpoint.delivery_of(&event)).await;

    assert!(matches!(seen.phase(), Phase::Delivered { .. }), "{seen:?}");
    assert_eq!(seen.story(), ["500", "429, retry after 2s", "200"]);
    assert_eq!((seen.delivery.attempts, seen.delivery.scheduled_attempts), (3, 3));
    assert_eq!(seen.last_outcome.as_deref(), Some("200"));

    let arrivals = receiver.arrivals();
    assert_eq!(arrivals.len(), 3);
    for (arrival, past) in arrivals.iter().zip(&seen.history) {
        assert_eq!((arrival.method.as_str(), arrival.path.as_str()), ("POST", "/hook"));
        assert_eq!(arrival.header(ID_HEADER), event.as_str());
        assert_eq!(arrival.body, br#"{"n": 1.0}"#);
        assert_eq!(arrival.header_names(), arrivals[0].header_names());
        arrival.verify(&endpoint.secrets).expect("the signature holds at the attempt's time");
        let attempt = past.record.started_at.as_secs()..=past.record.finished_at.as_secs();
        assert!(attempt.contains(&arrival.timestamp()), "{attempt:?} {arrival:?}");
        assert_eq!(arrival.header("hookproof-delivery"), seen.delivery.id.as_str());
        assert_eq!(arrival.header("hookproof-attempt"), past.record.attempt.to_string());
    }
    // The schedule alone would have waited for 20 ms.
    assert!(arrivals[2].at.since(arrivals[1].at) >= Millis::from_secs(2), "{arrivals:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_body_arrives_byte_for_byte() {
    let bodies: [&[u8]; 8] = [
        b"  {\t\"a\" :1.0,\r\n\"a\":1e2 }\n",
        br#"{"escape":"\u00e9\/","order":{"z":1,"a":2},"n":12345678901234567890}"#,
        "{\"smile\":\"😀\",\"é\":\"\u{2028}\"}".as_bytes(),
        b"\xff\xfe\x00\x01 not UTF-8 \xc3\x28",
        b"\xef\xbb\xbf{}",
        b"not JSON at all",
        b"\r\n\r\n0\r\n\r\n",
        b"",
    ];
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;

    for body in bodies {
        let event = sender.publish(body).await;
        let seen = sender.settled(&endpoint.delivery_of(&event)).await;
        assert!(matches!(seen.phase(), Phase::Delivered { .. }), "{seen:?}");
        let arrival = receiver.arrivals().pop().expect("it arrived");
        assert_eq!(arrival.body, body);
        assert_eq!(arrival.header("content-length"), body.len().to_string());
        arrival.verify(&endpoint.secrets).expect("these bytes are signed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_body_arrives_whole() {
    let body: Vec<u8> = (0..1_048_576_u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;

    let event = sender.publish(body.clone()).await;
    sender.settled(&endpoint.delivery_of(&event)).await;

    assert!(receiver.arrivals()[0].body == body, "the largest body allowed is sent as it is");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_of_n_attempts_makes_n_requests_and_one_notice() {
    let receiver = Receiver::with(&[503]).await;
    let home = Home::new();
    let sender = home.start(config(&[10, 40, 80])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;

    let event = sender.publish("{}").await;
    let seen = sender.settled(&endpoint.delivery_of(&event)).await;

    assert_dead(&seen, DeadReason::Exhausted);
    assert_eq!(seen.story(), ["503", "503", "503", "503"]);
    for (before, wait) in seen.history.windows(2).zip([10, 40, 80]) {
        let waited = before[1].record.started_at.since(before[0].record.finished_at);
        assert!(waited >= Millis::new(wait), "{waited} instead of {wait} ms: {seen:?}");
    }
    HOST.sleep(Millis::new(150)).await;
    assert_eq!(receiver.count(), 4);
    assert_eq!(home.count("SELECT count(*) FROM notices"), 1);
    assert_eq!(home.count("SELECT count(*) FROM notices WHERE disables"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_without_waits_makes_one_request() {
    let receiver = Receiver::with(&[500]).await;
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;

    let event = sender.publish("{}").await;
    let seen = sender.settled(&endpoint.delivery_of(&event)).await;

    assert_dead(&seen, DeadReason::Exhausted);
    assert_eq!(seen.story(), ["500"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_404_is_final() {
    let receiver = Receiver::with(&[404]).await;
    let home = Home::new();
    let sender = home.start(config(&[10, 10])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;

    let event = sender.publish("{}").await;
    let seen = sender.settled(&endpoint.delivery_of(&event)).await;

    assert_dead(&seen, DeadReason::Refused);
    assert_eq!(seen.story(), ["404"]);
    HOST.sleep(Millis::new(100)).await;
    assert_eq!(receiver.count(), 1);
    assert_eq!(home.count("SELECT count(*) FROM notices WHERE NOT disables"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_404_is_retried_where_the_agreement_says_so() {
    let receiver = Receiver::with(&[404, 422, 200]).await;
    let home = Home::new();
    let mut config = config(&[10, 10]);
    config.policy.classification.client_error = ClientError::Retry;
    let sender = home.start(config).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;

    let event = sender.publish("{}").await;
    let seen = sender.settled(&endpoint.delivery_of(&event)).await;

    assert!(matches!(seen.phase(), Phase::Delivered { .. }), "{seen:?}");
    assert_eq!(seen.story(), ["404", "422", "200"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_above_599_is_recorded_as_it_came_and_retried() {
    let receiver = Receiver::with(&[600, 999, 200]).await;
    let home = Home::new();
    let sender = home.start(config(&[10, 10])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;

    let event = sender.publish("{}").await;
    let seen = sender.settled(&endpoint.delivery_of(&event)).await;

    assert!(matches!(seen.phase(), Phase::Delivered { .. }), "{seen:?}");
    assert_eq!(seen.story(), ["600", "999", "200"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed() {
    let elsewhere = Receiver::with(&[200]).await;
    let mut answers: Vec<_> = [301, 302, 303, 307, 308]
        .into_iter()
        .map(|status| ResponseTemplate::new(status).insert_header("location", elsewhere.url("/")))
        .collect();
    answers.push(ResponseTemplate::new(200));
    let receiver = Receiver::answering(answers).await;
    let home = Home::new();
    let sender = home.start(config(&[5, 5, 5, 5, 5])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;

    let event = sender.publish("{}").await;
    let seen = sender.settled(&endpoint.delivery_of(&event)).await;

    assert_eq!(seen.story(), ["301", "302", "303", "307", "308", "200"]);
    assert_eq!(elsewhere.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_after_that_cannot_be_read_leaves_the_schedule_as_it_is() {
    let busy = || ResponseTemplate::new(503);
    let receiver = Receiver::answering([
        busy().insert_header("retry-after", "soon"),
        busy().insert_header("retry-after", "-1"),
        busy().append_header("retry-after", "7").append_header("retry-after", "9"),
        ResponseTemplate::new(200).insert_header("retry-after", "7"),
    ])
    .await;
    let home = Home::new();
    let sender = home.start(config(&[5, 5, 5])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;

    let event = sender.publish("{}").await;
    let seen = sender.settled(&endpoint.delivery_of(&event)).await;

    let without = |status| Outcome::Answered { status, retry_after: None };
    assert_eq!(seen.outcomes()[..3], [without(503), without(503), without(503)]);
    assert!(matches!(seen.phase(), Phase::Delivered { .. }), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_after_is_cut_to_the_longest_that_is_granted() {
    let receiver = Receiver::answering([
        ResponseTemplate::new(503).insert_header("retry-after", "99999999999999999999"),
        ResponseTemplate::new(200),
    ])
    .await;
    let home = Home::new();
    let mut config = config(&[5]);
    config.policy.classification.retry_after_max = Millis::new(300);
    let sender = home.start(config).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;

    let event = sender.publish("{}").await;
    let seen = sender.settled(&endpoint.delivery_of(&event)).await;

    assert!(matches!(seen.phase(), Phase::Delivered { .. }), "{seen:?}");
    let arrivals = receiver.arrivals();
    assert!(arrivals[1].at.since(arrivals[0].at) >= Millis::new(300), "{arrivals:?}");
}

fn assert_dead(seen: &Seen, why: DeadReason) {
    assert!(matches!(seen.phase(), Phase::Dead { reason, .. } if reason == why), "{seen:?}");
}
