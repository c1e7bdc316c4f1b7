//! Endpoints: held, resumed, gone.

use hookproof_core::delivery::{DeadReason, Phase};
use hookproof_core::secret::Secrets;
use hookproof_core::time::Millis;
use hookproof_runtime::host::Host;
use serde_json::{Value, json};

use crate::receiver::{Holder, Receiver};
use crate::running::{HOST, Home, config, eventually, request};

#[tokio::test(flavor = "multi_thread")]
async fn a_410_ends_the_delivery_and_disables_the_endpoint_until_it_is_enabled() {
    let receiver = Receiver::with(&[410, 200]).await;
    let home = Home::new();
    let sender = home.start(config(&[10, 10])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;

    let gone = sender.publish("gone").await;
    let seen = sender.settled(&endpoint.delivery_of(&gone)).await;
    assert!(matches!(seen.phase(), Phase::Dead { reason: DeadReason::Gone, .. }), "{seen:?}");
    assert_eq!(seen.story(), ["410"]);
    let listed: Value = sender.get("/endpoints").await.json();
    assert_eq!(listed[0]["status"], "disabled");
    assert_eq!(home.count("SELECT count(*) FROM notices WHERE disables"), 1);
    assert_eq!(home.count("SELECT count(*) FROM notices"), 1);

    let held = sender.publish("held").await;
    HOST.sleep(Millis::new(150)).await;
    let seen = sender.seen(&endpoint.delivery_of(&held)).await;
    assert!(matches!(seen.phase(), Phase::Scheduled { .. }), "{seen:?}");
    assert_eq!((seen.delivery.attempts, receiver.count()), (0, 1));

    let enabled = sender.post(&format!("/endpoints/{}/enable", endpoint.id), "").await;
    assert_eq!((enabled.status, enabled.text().as_str()), (204, ""));
    let seen = sender.settled(&endpoint.delivery_of(&held)).await;
    assert!(matches!(seen.phase(), Phase::Delivered { .. }), "{seen:?}");
    let gone = sender.seen(&endpoint.delivery_of(&gone)).await;
    assert!(matches!(gone.phase(), Phase::Dead { .. }), "what is dead stays so: {gone:?}");
    assert_eq!(receiver.count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_is_sent_and_marked() {
    let receiver = Receiver::with(&[404]).await;
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let event = sender.publish("{}").await;
    sender.settled(&endpoint.delivery_of(&event)).await;
    eventually("the notice is sent", || async {
        (sender.totals().await["notices_pending"] == 0).then_some(())
    })
    .await;
    assert_eq!(home.count("SELECT count(*) FROM notices WHERE sent_at IS NOT NULL"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_endpoint_keeps_its_events_and_its_retries_until_it_is_enabled() {
    let holder = Holder::start().await;
    let home = Home::new();
    let sender = home.start(config(&[10])).await;
    let endpoint = sender.register(&holder.url()).await;
    let retried = sender.publish("retried").await;
    holder.arrived(1).await;

    let disabled = sender.post(&format!("/endpoints/{}/disable", endpoint.id), "").await;
    assert_eq!(disabled.status, 204);
    holder.answer([500, 200, 200]);
    sender.attempted(&endpoint.delivery_of(&retried), 1).await;
    let new = sender.publish("new").await;
    HOST.sleep(Millis::new(150)).await;
    assert_eq!(holder.count(), 1, "no attempt is begun while it is disabled");

    sender.post(&format!("/endpoints/{}/enable", endpoint.id), "").await;
    for event in [retried, new] {
        let seen = sender.settled(&endpoint.delivery_of(&event)).await;
        assert!(matches!(seen.phase(), Phase::Delivered { .. }), "{seen:?}");
    }
    assert_eq!(holder.count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_shown_once_and_listed_never() {
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let given = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
    let made = sender
        .post(
            "/endpoints",
            json!({ "url": "https://one.example/", "secrets": [given] }).to_string(),
        )
        .await;
    let generated = sender.post("/endpoints", r#"{"url": "https://two.example/"}"#).await;

    assert_eq!(made.json::<Value>()["secrets"], json!([given]));
    let generated = generated.json::<Value>()["secrets"][0].as_str().map(str::to_owned);
    let generated = generated.expect("one is generated");
    assert_ne!(generated, given);
    let listed = sender.get("/endpoints").await.text();
    assert!(listed.contains("https://one.example/") && listed.contains("https://two.example/"));
    assert!(!listed.contains("secret"), "{listed}");
    assert!(!listed.contains("whsec_"), "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_attempt_is_signed_with_each_secret_of_a_rotation() {
    let [new, old] =
        ["whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX", "whsec_CCCCAwQFBgcICQoLDA0ODxAREhMUFRYX"];
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let rotating = json!({ "url": receiver.url("/hook"), "secrets": [new, old] });
    let endpoint = sender.register_as(&rotating).await;

    let event = sender.publish("{}").await;
    sender.settled(&endpoint.delivery_of(&event)).await;

    let arrival = receiver.arrivals().remove(0);
    for secret in [new, old] {
        let alone = Secrets::one(secret.parse().expect("a secret"));
        arrival.verify(&alone).expect("a receiver that knows one of them accepts");
    }
    assert_eq!(arrival.header("webhook-signature").split(' ').count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_can_be_replaced_and_the_next_attempt_is_signed_with_the_new_ones() {
    let [new, old] =
        ["whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX", "whsec_CCCCAwQFBgcICQoLDA0ODxAREhMUFRYX"];
    let alone = |secret: &str| Secrets::one(secret.parse().expect("a secret"));
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let endpoint =
        sender.register_as(&json!({ "url": receiver.url("/hook"), "secrets": [old] })).await;
    let path = format!("/endpoints/{}/secrets", endpoint.id);
    let put = |path: String, body: Value| sender.send(request("PUT", &path, body.to_string()));
    for (secrets, accepted_by) in [(json!([new, old]), [true, true]), (json!([new]), [true, false])]
    {
        let reply = put(path.clone(), json!({ "secrets": secrets })).await;
        assert_eq!(reply.status, 204, "{}", reply.text());
        let event = sender.publish("{}").await;
        sender.settled(&endpoint.delivery_of(&event)).await;
        let arrival = receiver.arrivals().pop().expect("it arrived");
        let by = [new, old].map(|secret| arrival.verify(&alone(secret)).is_ok());
        assert_eq!(by, accepted_by, "{secrets}");
    }

    for (path, body, status, says) in [
        (path.clone(), json!({ "secrets": [] }), 400, "secret"),
        (path.clone(), json!({ "secrets": ["whsec_"] }), 400, "24"),
        (path, json!([new]), 400, "the newest first"),
        ("/endpoints/ep_none/secrets".to_owned(), json!({ "secrets": [new] }), 404, "ep_none"),
    ] {
        let reply = put(path, body).await;
        assert_eq!(reply.status, status, "{}", reply.text());
        assert!(reply.problem().contains(says), "{}", reply.problem());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn field_50_a_retry_carries_the_same_headers_as_the_first_attempt_signed_anew() {
    let receiver = Receiver::with(&[500, 500, 200]).await;
    let home = Home::new();
    let sender = home.start(config(&[1_100, 5])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let event = sender.publish("{}").await;
    sender.settled(&endpoint.delivery_of(&event)).await;

    let arrivals = receiver.arrivals();
    assert_eq!(arrivals.len(), 3);
    for arrival in &arrivals {
        assert_eq!(arrival.header_names(), arrivals[0].header_names());
        arrival.verify(&endpoint.secrets).expect("each attempt is signed");
    }
    assert!(arrivals[1].timestamp() > arrivals[0].timestamp(), "field case 57: a new timestamp");
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_are_listed_in_the_order_in_which_they_were_made() {
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let mut made = Vec::new();
    for n in 0..5 {
        made.push(sender.register(&format!("https://{n}.example/")).await.id);
        HOST.sleep(Millis::new(2)).await;
    }
    let listed: Vec<Value> = sender.get("/endpoints").await.json();
    let listed: Vec<_> = listed.iter().map(|endpoint| endpoint["id"].as_str()).collect();
    assert_eq!(listed, made.iter().map(|id| Some(id.as_str())).collect::<Vec<_>>());
}
