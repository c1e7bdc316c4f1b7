//! A store that fails at the worst moment: nothing is lost, nothing hangs, nothing is sent twice that
//! need not be.

use hookproof_core::delivery::Phase;
use hookproof_core::signature::ID_HEADER;
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::host::Host as _;
use hookproof_sender::store::{Publication, Store as _};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::watch;

use crate::clock::{Clock, EPOCH, at};
use crate::failing::FailingStore;
use crate::receiver::{Arrival, Receiver, accepting, read_request};
use crate::running::{HOST, Home, config, eventually};
use crate::store::event;

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_could_not_be_recorded_in_time_is_unknown_at_the_end_of_its_lease() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let clock = Clock::new();
    let store = FailingStore::new(home.open().await).failing("record 1", 1..=usize::MAX);
    let config = config(&[50]);
    let lease_end = config.policy.lease().get();
    let sender = home.start_store(clock.clone(), store.clone(), config).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let id = endpoint.delivery_of(&sender.publish("{}").await);
    store.called("record 1", 1).await;
    let seen = sender.seen(&id).await;
    assert!(matches!(seen.phase(), Phase::InFlight { .. }), "{seen:?}");

    clock.to(lease_end);
    let seen = sender.attempted(&id, 1).await;
    assert_eq!(seen.story(), ["unknown"]);
    assert_eq!(store.count("settle"), 1);

    clock.to(lease_end + 50);
    let seen = sender.settled(&id).await;
    assert_eq!(seen.story(), ["unknown", "200"]);
    let arrivals = receiver.arrivals();
    assert_eq!(arrivals.len(), 2);
    assert_eq!(arrivals[0].header(ID_HEADER), arrivals[1].header(ID_HEADER));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_fails_gives_its_permits_back() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let mut config = config(&[]);
    // A permit that is kept would stand in the way for an hour.
    config.policy.gate.concurrency_max = 1;
    config.policy.lease_margin = Millis::from_hours(1);
    let store = FailingStore::new(home.open().await).failing("claim", 1..=2);
    let sender = home.start_store(HOST, store.clone(), config).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let id = endpoint.delivery_of(&sender.publish("{}").await);
    assert_eq!(sender.settled(&id).await.story(), ["200"]);
    assert_eq!((store.count("claim"), receiver.count()), (3, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_is_recorded_as_soon_as_the_store_takes_it_and_nothing_is_sent_again() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let store = FailingStore::new(home.open().await).failing("record 1", 1..=2);
    let sender = home.start_store(HOST, store.clone(), config(&[5])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    let id = endpoint.delivery_of(&sender.publish("{}").await);
    assert_eq!(sender.settled(&id).await.story(), ["200"]);
    assert_eq!((store.count("record 1"), receiver.count()), (3, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_at_what_is_due_that_fails_is_taken_again() {
    for name in ["leased", "next_lease_end", "due_endpoints", "due_deliveries"] {
        let receiver = Receiver::with(&[200]).await;
        let home = Home::new();
        let store = FailingStore::new(home.open().await).failing(name, 1..=2);
        let sender = home.start_store(HOST, store.clone(), config(&[])).await;
        let endpoint = sender.register(&receiver.url("/hook")).await;
        let id = endpoint.delivery_of(&sender.publish("{}").await);
        assert_eq!(sender.settled(&id).await.story(), ["200"], "{name}");
        assert!(store.count(name) > 2, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_was_woken_for_is_found_by_the_sweep() {
    let receiver = Receiver::with(&[200]).await;
    let home = Home::new();
    let clock = Clock::new();
    let store = FailingStore::new(home.open().await);
    let config = config(&[]);
    let sweep = config.sweep_interval.get();
    let sender = home.start_store(clock.clone(), store.clone(), config).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    // Past the API, and so past the wake-up.
    let event = event(0, clock.now());
    let id = endpoint.delivery_of(&event.id);
    store.publish(Publication { event, idempotency_key: None }).await.expect("it is stored");

    let seen = sender.seen(&id).await;
    assert!(matches!(seen.phase(), Phase::Scheduled { .. }), "{seen:?}");

    // Again and again, since the dispatcher may lie down to sleep only after the first.
    let mut elapsed = 0;
    let seen = eventually("the sweep finds it", || {
        elapsed += sweep;
        clock.to(elapsed);
        let (sender, id) = (&sender, &id);
        async move { Some(sender.seen(id).await).filter(|seen| !seen.history.is_empty()) }
    });
    assert_eq!(seen.await.history.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wall_clock_set_back_during_an_attempt_does_not_turn_an_answer_into_a_timeout() {
    let clock = Clock::new();
    let set_back = clock.clone();
    let address = accepting(move |mut stream| {
        let clock = set_back.clone();
        async move {
            read_request(&mut stream).await;
            clock.set_back(Millis::from_hours(1));
            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nand then nothing";
            stream.write_all(head).await.expect("the sender reads");
            std::future::pending::<()>().await;
        }
    })
    .await;
    let home = Home::new();
    let config = config(&[]);
    let total = config.policy.total_timeout.get();
    let store = FailingStore::new(home.open().await);
    let sender = home.start_store(clock.clone(), store, config).await;
    let endpoint = sender.register(&format!("http://{address}/hook")).await;
    let id = endpoint.delivery_of(&sender.publish("{}").await);
    eventually("the request arrives", || async { (clock.now() < EPOCH).then_some(()) }).await;
    clock.to(total - 100);
    assert_eq!(sender.settled(&id).await.story(), ["200"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_signed_is_the_wall_clock_and_what_is_waited_for_is_not() {
    let receiver = Receiver::with(&[500, 200]).await;
    let home = Home::new();
    let clock = Clock::new();
    let sender = home.start_on_clock(&clock, config(&[1_000])).await;
    let endpoint = sender.register(&receiver.url("/hook")).await;
    clock.set_wall_ahead(-3_600_000);
    let id = endpoint.delivery_of(&sender.publish("{}").await);
    sender.attempted(&id, 1).await;
    clock.to(1_000);
    assert_eq!(sender.settled(&id).await.story(), ["500", "200"]);
    let stamped: Vec<i64> = receiver.arrivals().iter().map(Arrival::timestamp).collect();
    let an_hour_before = |now: Timestamp| now.as_secs() - 3_600;
    assert_eq!(stamped, [an_hour_before(at(0)), an_hour_before(at(1_000))]);
}

/// An hour is more than the lease: by the clock, the attempt is over.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_set_forward_during_an_attempt_lets_no_other_begin_beside_it() {
    let (arrived, arrivals) = watch::channel(0);
    let (answer, answers) = watch::channel(false);
    let address = accepting(move |mut stream| {
        let (arrived, mut answers) = (arrived.clone(), answers.clone());
        async move {
            read_request(&mut stream).await;
            arrived.send_modify(|count| *count += 1);
            answers.wait_for(|answers| *answers).await.expect("the test goes on");
            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(head).await.expect("the sender reads");
        }
    })
    .await;
    let (home, clock) = (Home::new(), Clock::new());
    let mut config = config(&[50]);
    config.policy.gate.concurrency_max = 1;
    let store = FailingStore::new(home.open().await);
    let sender = home.start_store(clock.clone(), store.clone(), config).await;
    let endpoint = sender.register(&format!("http://{address}/hook")).await;
    let mut ids = vec![endpoint.delivery_of(&sender.publish("{}").await)];
    eventually("the request arrives", || async { (*arrivals.borrow() == 1).then_some(()) }).await;

    clock.set_ahead(Millis::from_hours(1));
    // Once the second pass begins, the first one is over.
    for _ in 0..2 {
        let passes = store.count("due_endpoints");
        ids.push(endpoint.delivery_of(&sender.publish("{}").await));
        store.called("due_endpoints", passes + 1).await;
    }
    assert_eq!(store.count("settle"), 0, "whoever is at work has not lost its claim");
    assert_eq!(*arrivals.borrow(), 1, "nor its place");

    answer.send_replace(true);
    for id in ids {
        assert_eq!(sender.settled(&id).await.story(), ["200"]);
    }
}
