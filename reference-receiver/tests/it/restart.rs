//! Wherever a process ends, the next one brings each recorded event to one effect.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use hookproof_core::inbox::{Entry, Receipt};
use hookproof_core::time::{Millis, Timestamp};
use hookproof_receiver::config::ReceiverConfig;
use hookproof_receiver::effect::{Effect, EffectError, Ledger};
use hookproof_receiver::sqlite::rows;
use hookproof_receiver::store::{InboxStore as _, Totals, Work};
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use rusqlite::Connection;

use crate::given::{
    BODY, Disk, Fused, config, event, moment_in, ms, rule, send, signed, source_id, start, until,
    verified,
};

const ONE: Totals = Totals {
    events: 1,
    pending: 0,
    claimed: 0,
    applied: 1,
    superseded: 0,
    dead: 0,
    effects: 1,
    effects_twice: 0,
    to_reconcile: 0,
    duplicates: 0,
};

/// No lease ends within a test, so what was claimed can only have been recovered.
fn patient() -> ReceiverConfig {
    ReceiverConfig { inbox: rule(3, Millis::from_hours(1)), ..config() }
}

#[tokio::test]
async fn what_was_pending_when_a_process_ended_has_one_effect_after_a_restart() {
    let disk = Disk::new();
    let store = disk.open().await;
    store.record(verified("shop", "msg_1")).await.unwrap();
    drop(store);

    let receiver = start(TokioHost, disk.open().await, patient()).await;
    assert_eq!(receiver.until(|totals| totals.applied == 1).await, ONE);
    receiver.stop().await;
}

#[tokio::test]
async fn what_was_claimed_when_a_process_ended_has_one_effect_after_a_restart() {
    let disk = Disk::new();
    let store = disk.open().await;
    store.record(verified("shop", "msg_1")).await.unwrap();
    let claimed = store.claim(moment_in(ms(1), &patient().inbox)).await.unwrap();
    assert!(claimed.is_some());
    drop(store);

    let receiver = start(TokioHost, disk.open().await, patient()).await;
    assert_eq!(receiver.until(|totals| totals.applied == 1).await, ONE);
    receiver.stop().await;
}

#[tokio::test]
async fn what_was_applied_before_a_restart_is_not_applied_again() {
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, patient()).await;
    receiver.deliver("shop", "msg_1").await;
    receiver.until(|totals| totals.applied == 1).await;
    receiver.stop().await;

    let receiver = start(TokioHost, disk.open().await, patient()).await;
    assert_eq!(receiver.deliver("shop", "msg_1").await.status, 200);
    TokioHost.sleep(ms(200)).await;
    let totals = receiver.store.totals().await.unwrap();
    assert_eq!(totals, Totals { duplicates: 1, ..ONE });
    receiver.stop().await;
}

#[tokio::test]
async fn a_crash_after_the_effect_and_before_the_mark_leaves_no_effect() {
    let host = Fused::new(Some(CrashPoint::EffectApplied));
    let disk = Disk::new();
    let receiver = start(host.clone(), disk.open_with(host.clone(), Ledger).await, patient()).await;
    assert_eq!(receiver.deliver("shop", "msg_1").await.status, 202);
    host.blown().await;
    TokioHost.sleep(ms(200)).await;
    let totals = receiver.store.totals().await.unwrap();
    assert_eq!(totals, Totals { events: 1, claimed: 1, ..Totals::default() });
    receiver.stop().await;

    let receiver = start(TokioHost, disk.open().await, patient()).await;
    assert_eq!(receiver.until(|totals| totals.applied == 1).await, ONE);
    receiver.stop().await;
}

#[tokio::test]
async fn a_crash_between_commit_and_answer_is_one_effect_and_the_retry_a_duplicate() {
    let host = Fused::new(Some(CrashPoint::InboxCommitted));
    let disk = Disk::new();
    let store = disk.open_with(host.clone(), Ledger).await;
    let receiver = start(host.clone(), store, patient()).await;
    let address = receiver.address;
    TokioHost.spawn(async move {
        // No answer comes: this waits until the test is over.
        send(address, signed("shop", "msg_1")).await;
    });
    host.blown().await;
    assert_eq!(receiver.until(|totals| totals.applied == 1).await, ONE);
    assert_eq!(receiver.deliver("shop", "msg_1").await.status, 200);
    TokioHost.sleep(ms(100)).await;
    let totals = receiver.store.totals().await.unwrap();
    assert_eq!(totals, Totals { duplicates: 1, ..ONE });
}

#[tokio::test]
async fn a_crash_before_the_commit_leaves_nothing_and_the_retry_is_new() {
    for point in [CrashPoint::RequestAccepted, CrashPoint::RequestVerified] {
        let host = Fused::new(Some(point));
        let disk = Disk::new();
        let store = disk.open_with(host.clone(), Ledger).await;
        let receiver = start(host.clone(), store, patient()).await;
        let address = receiver.address;
        TokioHost.spawn(async move {
            send(address, signed("shop", "msg_1")).await;
        });
        host.blown().await;
        TokioHost.sleep(ms(100)).await;
        assert_eq!(receiver.store.totals().await.unwrap(), Totals::default(), "{point}");
        assert_eq!(receiver.deliver("shop", "msg_1").await.status, 202, "{point}");
        assert_eq!(receiver.until(|totals| totals.applied == 1).await, ONE, "{point}");
    }
}

#[tokio::test]
async fn a_row_whose_wake_up_was_lost_is_found_by_the_sweep() {
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, patient()).await;
    TokioHost.sleep(ms(120)).await;
    let insert = |connection: &Connection| {
        let now = TokioHost.now();
        let received = Entry::receive(None, source_id("shop"), event("msg_1"), now);
        let Receipt::New(entry) = received else { panic!("it is new") };
        rows::insert_entry(connection, &entry, BODY, "application/json")
    };
    receiver.store.database().write(insert).await.unwrap();
    assert_eq!(receiver.until(|totals| totals.applied == 1).await, ONE);
    receiver.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_waits_for_the_entry_in_hand() {
    let (started, starts) = mpsc::channel();
    let (go, gone) = mpsc::channel();
    let disk = Disk::new();
    let effect = Slow { started, go: Arc::new(Mutex::new(gone)) };
    let store = disk.open_with(TokioHost, effect).await;
    let receiver = start(TokioHost, store, patient()).await;
    receiver.deliver("shop", "msg_1").await;
    starts.recv_timeout(Duration::from_secs(20)).unwrap();

    let mut ended = receiver.ask_to_stop();
    assert!(TokioHost.within(ms(300), &mut ended).await.is_none(), "it left the entry behind");
    go.send(()).unwrap();
    TokioHost.within(Millis::from_secs(20), ended).await.unwrap().unwrap();
    let store = disk.open().await;
    assert_eq!(until(&store, |totals| totals.events == 1).await, ONE);
}

/// An effect that tells when it starts, and ends when it is told to.
#[derive(Clone)]
struct Slow {
    started: mpsc::Sender<()>,
    go: Arc<Mutex<mpsc::Receiver<()>>>,
}

impl Effect for Slow {
    fn apply(&self, t: &Connection, work: &Work, now: Timestamp) -> Result<(), EffectError> {
        self.started.send(()).map_err(EffectError::new)?;
        self.go
            .lock()
            .map_err(EffectError::new)?
            .recv_timeout(Duration::from_secs(20))
            .map_err(EffectError::new)?;
        Ledger.apply(t, work, now)
    }
}
