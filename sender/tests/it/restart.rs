//! What a restart finds: nothing that was acknowledged is lost, and no file is opened by mistake.

use std::fs;
use std::sync::Arc;

use hookproof_core::delivery::{Ctx, Phase};
use hookproof_core::endpoint::{Endpoint, EndpointStatus};
use hookproof_core::event::{Event, EventType};
use hookproof_core::id::{DeliveryId, EndpointId, EventId};
use hookproof_core::outcome::Outcome;
use hookproof_core::policy::Policy;
use hookproof_core::secret::{Secret, Secrets};
use hookproof_core::signature::ID_HEADER;
use hookproof_core::time::Millis;
use hookproof_runtime::database::{Database, OpenError, Schema};
use hookproof_runtime::host::Host;
use hookproof_sender::sqlite::SqliteStore;
use hookproof_sender::store::{Publication, Published, Store};

use crate::receiver::Receiver;
use crate::running::{ADMITTED, HOST, Home, config};

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_is_scheduled_at_the_stop_is_made_after_the_restart() {
    let receiver = Receiver::with(&[500, 200]).await;
    let home = Home::new();
    let sender = home.start(config(&[300])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let event = sender.publish("kept").await;
    let id = endpoint.delivery_of(&event);
    let before = sender.attempted(&id, 1).await;
    sender.stop().await;

    let sender = home.start(config(&[300])).await;
    let after = sender.settled(&id).await;

    assert!(matches!(after.phase(), Phase::Delivered { .. }), "{after:?}");
    assert_eq!(after.story(), ["500", "200"]);
    let Phase::Scheduled { due, .. } = before.phase() else { panic!("{before:?}") };
    assert!(after.history[1].record.started_at >= due, "not before it was due");
    let arrivals = receiver.arrivals();
    assert_eq!(arrivals.len(), 2);
    for arrival in arrivals {
        assert_eq!(arrival.header(ID_HEADER), event.as_str());
        assert_eq!(arrival.body, b"kept");
        arrival.verify(&endpoint.secrets).expect("the secret is kept too");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_published_and_never_attempted_is_attempted_after_the_restart() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let store = home.open().await;
    let event = publish(&store, &receiver.url("/hook")).await;
    drop(store);

    let sender = home.start(config(&[])).await;
    let seen = sender.settled(&delivery_of(&event)).await;
    assert_eq!(seen.story(), ["200"]);
    assert_eq!(receiver.arrivals()[0].header(ID_HEADER), event.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_of_a_former_process_is_unknown_and_retried_under_the_same_event_id() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let store = home.open().await;
    let event = publish(&store, &receiver.url("/hook")).await;
    claim(&store).await;
    drop(store);

    let sender = home.start(config(&[50])).await;
    let seen = sender.settled(&delivery_of(&event)).await;

    assert_eq!(seen.story(), ["unknown", "200"]);
    assert_eq!(seen.outcomes()[0], Outcome::Unknown);
    let arrivals = receiver.arrivals();
    assert_eq!(arrivals.len(), 1);
    assert_eq!(arrivals[0].header(ID_HEADER), event.as_str());
    assert_eq!(arrivals[0].header("hookproof-attempt"), "2", "the first may have arrived");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_of_a_former_process_that_was_the_last_attempt_is_exhausted() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let store = home.open().await;
    let event = publish(&store, &receiver.url("/hook")).await;
    claim(&store).await;
    drop(store);

    let sender = home.start(config(&[])).await;
    let seen = sender.settled(&delivery_of(&event)).await;
    assert!(matches!(seen.phase(), Phase::Dead { .. }), "{seen:?}");
    assert_eq!(receiver.count(), 0);
    assert_eq!(home.count("SELECT count(*) FROM notices"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_opened_by_one_sender_at_a_time() {
    let home = Home::new();
    let sender = home.start(config(&[])).await;

    let second = SqliteStore::open(&HOST, &home.database()).expect_err("it is in use");
    assert!(matches!(second, OpenError::InUse { .. }), "{second:?}");
    let message = format!(
        "{} is in use by another process; stop it, or give another --database",
        home.path().display()
    );
    assert_eq!(second.to_string(), message);

    sender.stop().await;
    home.open().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_another_kind_is_refused() {
    let home = Home::new();
    let receiver = Schema {
        name: "receiver",
        application_id: 0x686b_7272,
        migrations: &["CREATE TABLE inbox (id TEXT) STRICT;"],
    };
    Database::open(&HOST, &home.database(), &receiver).expect("a receiver's database");
    refused_as_foreign(&home).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_another_program_is_refused() {
    let home = Home::new();
    let connection = rusqlite::Connection::open(home.path()).expect("a file");
    connection.execute_batch("CREATE TABLE notes (text TEXT)").expect("somebody else's table");
    drop(connection);
    refused_as_foreign(&home).await;
}

async fn refused_as_foreign(home: &Home) {
    let error = loop {
        match SqliteStore::open(&HOST, &home.database()) {
            Err(OpenError::InUse { .. }) => HOST.sleep(Millis::new(5)).await,
            opened => break opened.expect_err("it is not a sender's"),
        }
    };
    let message = format!(
        "{} is not a hookproof sender database; give another --database",
        home.path().display()
    );
    assert!(matches!(error, OpenError::Foreign { .. }), "{error:?}");
    assert_eq!(error.to_string(), message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_database_is_refused() {
    let home = Home::new();
    fs::write(home.path(), "to whom it may concern\n".repeat(100)).expect("a file");
    let error = SqliteStore::open(&HOST, &home.database()).expect_err("it is a letter");
    assert_eq!(
        error.to_string(),
        format!("cannot open {}: file is not a database", home.path().display())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_a_newer_version_is_refused() {
    let home = Home::new();
    drop(home.open().await);
    let connection = rusqlite::Connection::open(home.path()).expect("the file");
    connection.pragma_update(None, "user_version", 7).expect("a version");
    drop(connection);
    let error = loop {
        match SqliteStore::open(&HOST, &home.database()) {
            Err(OpenError::InUse { .. }) => HOST.sleep(Millis::new(5)).await,
            opened => break opened.expect_err("it is newer"),
        }
    };
    assert!(matches!(error, OpenError::Newer { found: 7, known: 4, .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        format!(
            "{} has schema version 7, and this build knows versions up to 4; use the newer build \
             that wrote it",
            home.path().display()
        )
    );
}

fn endpoint_id() -> EndpointId {
    EndpointId::new("ep_1").expect("an id")
}

fn delivery_of(event: &EventId) -> DeliveryId {
    DeliveryId::of(event, &endpoint_id())
}

/// Publishes one event to one endpoint, through the store alone.
async fn publish(store: &SqliteStore, url: &str) -> EventId {
    let endpoint = Endpoint {
        id: endpoint_id(),
        url: url.to_owned(),
        secrets: Secrets::one(Secret::from_entropy([1, 2, 3, 4])),
        event_types: Vec::new(),
        status: EndpointStatus::Enabled,
        created_at: HOST.now(),
    };
    store.create_endpoint(endpoint).await.expect("an endpoint");
    let event = Event {
        id: EventId::new("msg_1").expect("an id"),
        event_type: EventType::new("order.paid").expect("a type"),
        content_type: "application/json".to_owned(),
        body: Arc::from(&b"{}"[..]),
        created_at: HOST.now(),
    };
    let id = event.id.clone();
    let publication = Publication { event, idempotency_key: None };
    let published = store.publish(publication).await.expect("it is stored");
    assert_eq!(published, Published::New { event_id: id.clone(), deliveries: 1 });
    id
}

/// Claims the delivery for an hour, as a process does that then ends.
async fn claim(store: &SqliteStore) {
    let now = HOST.now();
    let due = store.due_deliveries(endpoint_id(), now, 10).await.expect("it is readable");
    let policy = Policy { lease_margin: Millis::from_hours(1), ..Policy::default() };
    let step = due[0].handle(Ctx { now, entropy: 0, policy: &policy }, ADMITTED);
    let claims =
        store.claim(vec![step.expect("it is due")], Vec::new()).await.expect("it is committed");
    claims[0].as_ref().expect("nobody else claimed it");
}
