//! The worker: effects that fail, stores that fail, claims that end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use hookproof_core::id::{EventId, SourceId};
use hookproof_core::inbox::{Entry, InboxRule, Phase};
use hookproof_core::time::{Millis, Timestamp};
use hookproof_receiver::config::ReceiverConfig;
use hookproof_receiver::effect::Ledger;
use hookproof_receiver::ordering::Versioned;
use hookproof_receiver::sqlite::{SqliteInbox, rows};
use hookproof_receiver::store::{
    Applied, Failed, InboxStore, Moment, Recorded, Totals, Verified, Work,
};
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::database::StoreError;
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;

use crate::given::{
    Disk, FailsFirst, Fused, config, event, moment, moment_in, ms, rule, source_id, start, verified,
};

#[tokio::test]
async fn an_effect_that_fails_is_tried_again_and_leaves_nothing_of_the_failure() {
    let config = ReceiverConfig { inbox: rule(3, Millis::from_secs(30)), ..config() };
    let disk = Disk::new();
    let store = disk.open_with(TokioHost, FailsFirst::new(2)).await;
    let receiver = start(TokioHost, store, config).await;
    receiver.deliver("shop", "msg_1").await;
    let totals = receiver.until(|totals| totals.applied + totals.dead == 1).await;
    assert_eq!(totals, Totals { events: 1, applied: 1, effects: 1, ..Totals::default() });
    receiver.stop().await;
}

#[tokio::test]
async fn an_event_is_dead_after_the_last_attempt_and_holds_up_no_other() {
    let config = ReceiverConfig { inbox: rule(3, Millis::from_secs(30)), ..config() };
    let disk = Disk::new();
    let store = disk.open_with(TokioHost, FailsFirst::new(3)).await;
    let receiver = start(TokioHost, store, config).await;
    receiver.deliver("shop", "msg_1").await;
    let totals = receiver.until(|totals| totals.applied + totals.dead == 1).await;
    assert_eq!(totals, Totals { events: 1, dead: 1, ..Totals::default() });

    receiver.deliver("shop", "msg_2").await;
    receiver.until(|totals| totals.applied == 1).await;
    assert_eq!(receiver.deliver("shop", "msg_1").await.status, 200, "a dead letter is received");
    receiver.stop().await;
    let store = disk.open().await;
    assert_eq!(store.next_wake().await.unwrap(), None);
}

#[tokio::test]
async fn a_claim_whose_lease_ends_is_taken_over() {
    let config = ReceiverConfig { inbox: rule(3, ms(100)), ..config() };
    let host = Fused::new(Some(CrashPoint::EffectApplied));
    let disk = Disk::new();
    let store = disk.open_with(host.clone(), Ledger).await;
    let receiver = start(host.clone(), store, config).await;
    receiver.deliver("shop", "msg_1").await;
    let totals = receiver.until(|totals| totals.applied == 1).await;
    assert_eq!((totals.effects, totals.effects_twice), (1, 0));
    let claims = host.passed().iter().filter(|p| **p == CrashPoint::WorkClaimed).count();
    assert_eq!(claims, 2);
    receiver.stop().await;
}

#[tokio::test]
async fn a_worker_that_comes_after_its_lease_changes_nothing() {
    let disk = Disk::new();
    let store = disk.open().await;
    let rule = rule(9, Millis::from_secs(30));
    assert_eq!(store.record(verified("shop", "msg_1")).await.unwrap(), Recorded::New);
    assert_eq!(store.claim(moment_in(ms(1), &rule)).await.unwrap().map(|w| w.attempt()), Some(1));
    assert_eq!(store.claim(moment_in(ms(1), &rule)).await.unwrap(), None, "it is claimed");
    let within = moment_in(Millis::from_secs(20), &rule);
    assert_eq!(store.release_expired(within).await.unwrap(), 0, "the lease holds");
    assert_eq!(store.release_expired(moment_in(Millis::from_secs(40), &rule)).await.unwrap(), 1);

    let late = claimed_again(&store, Millis::from_secs(41), &rule).await;
    let later = Millis::from_secs(80);
    assert_eq!(store.release_expired(moment_in(later, &rule)).await.unwrap(), 1);
    let now = moment_in(later.plus(ms(1)), &rule);
    assert_eq!(
        store.apply(&late, None, now.clone()).await.unwrap(),
        Applied::TakenOver,
        "released"
    );
    let fresh = claimed_again(&store, later.plus(ms(2)), &rule).await;
    assert_eq!(fresh.attempt(), 3);
    assert_eq!(
        store.apply(&late, None, now.clone()).await.unwrap(),
        Applied::TakenOver,
        "taken over"
    );
    assert_eq!(store.fail(&late, now.clone()).await.unwrap(), Failed::TakenOver);
    assert_eq!(store.totals().await.unwrap().effects, 0);
    assert_eq!(store.apply(&fresh, None, now.clone()).await.unwrap(), Applied::Done);
    assert_eq!(
        store.apply(&fresh, None, now.clone()).await.unwrap(),
        Applied::TakenOver,
        "applied"
    );
    assert_eq!(store.apply(&late, None, now).await.unwrap(), Applied::TakenOver, "applied");
    let totals = store.totals().await.unwrap();
    assert_eq!(totals, Totals { events: 1, applied: 1, effects: 1, ..Totals::default() });
}

async fn claimed_again(store: &impl InboxStore, after: Millis, rule: &InboxRule) -> Work {
    let claimed = store.claim(moment_in(after, rule)).await;
    claimed.expect("the store works").expect("it is due")
}

#[tokio::test]
async fn a_row_gives_way_to_its_next_version_only() {
    let disk = Disk::new();
    let store = disk.open().await;
    store.record(verified("shop", "msg_1")).await.unwrap();
    let entry = store.claim(moment_in(ms(1), &rule(9, ms(1)))).await.unwrap().unwrap().entry;
    for (version, accepted) in [(0, false), (1, false), (3, false), (2, true), (2, false)] {
        let entry = Entry { version, ..entry.clone() };
        let updated = store.database().write(move |c| rows::update_entry(c, &entry)).await;
        assert_eq!(
            updated.is_ok(),
            accepted,
            "version {version} after {}",
            entry_version(&store).await
        );
    }
}

async fn entry_version(store: &SqliteInbox<TokioHost>) -> u64 {
    let (source, id) = (source_id("shop"), event("msg_1"));
    let stored = store.database().read(move |c| rows::load_entry(c, &source, &id)).await;
    stored.expect("the store works").expect("it is recorded").version
}

#[tokio::test]
async fn what_is_due_longest_is_claimed_first_and_what_is_not_due_is_not() {
    let disk = Disk::new();
    let store = disk.open().await;
    for (id, received_at) in [("b", 2000), ("a", 1000), ("c", 2000), ("d", 9000)] {
        let received_at = Timestamp::from_millis(received_at);
        store.record(Verified { received_at, ..verified("shop", id) }).await.unwrap();
    }
    assert_eq!(store.next_wake().await.unwrap(), Some(Timestamp::from_millis(1000)));
    let at = |now| Moment { now: Timestamp::from_millis(now), ..moment() };
    let mut order = Vec::new();
    while let Some(work) = store.claim(at(5000)).await.unwrap() {
        let lease_until = Timestamp::from_millis(5000).plus(InboxRule::default().lease);
        assert_eq!(work.entry.phase, Phase::Claimed { attempt: 1, lease_until });
        order.push(work.entry.event_id.to_string());
    }
    assert_eq!(order, ["a", "b", "c"]);
    assert_eq!(store.next_wake().await.unwrap(), Some(Timestamp::from_millis(9000)));
    assert!(store.claim(at(9000)).await.unwrap().is_some());
    assert_eq!(store.next_wake().await.unwrap(), Some(Timestamp::from_millis(35_000)));
}

#[tokio::test]
async fn a_store_that_fails_for_a_while_costs_time_and_nothing_else() {
    let disk = Disk::new();
    let store = Moody::new(disk.open().await);
    store.inner.record(verified("shop", "msg_1")).await.unwrap();
    store.refuse(true);
    let receiver = start(TokioHost, store.clone(), config()).await;
    assert_unhurried(&store, "at the start").await;
    store.refuse(false);
    receiver.until(|totals| totals.applied == 1).await;

    store.refuse(true);
    assert_unhurried(&store, "at work").await;
    store.refuse(false);
    assert_eq!(receiver.deliver("shop", "msg_2").await.status, 202);
    receiver.until(|totals| totals.applied == 2).await;
    receiver.stop().await;
}

#[tokio::test]
async fn an_idle_worker_looks_no_more_often_than_the_sweep() {
    let disk = Disk::new();
    let store = Moody::new(disk.open().await);
    let receiver = start(TokioHost, store.clone(), config()).await;
    assert_unhurried(&store, "idle").await;
    receiver.stop().await;
}

/// The store is asked, and about once a sweep.
async fn assert_unhurried<S: InboxStore>(store: &Moody<S>, when: &str) {
    let (begin, before) = (TokioHost.now(), store.calls());
    TokioHost.sleep(ms(400)).await;
    let calls = u64::from(store.calls() - before);
    let sweeps = TokioHost.now().since(begin).get() / config().sweep_interval.get();
    assert!((1..=sweeps + 2).contains(&calls), "{when}: {calls} calls in {sweeps} sweeps");
}

/// A store that refuses everything while it is told to, and counts what it is asked.
#[derive(Clone)]
pub(crate) struct Moody<S> {
    inner: S,
    refuses: Arc<AtomicBool>,
    calls: Arc<AtomicU32>,
}

impl<S: InboxStore> Moody<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, refuses: Arc::default(), calls: Arc::default() }
    }

    pub(crate) fn refuse(&self, refuses: bool) {
        self.refuses.store(refuses, Ordering::SeqCst);
    }

    fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    fn mood(&self) -> Result<&S, StoreError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if self.refuses.load(Ordering::SeqCst) { Err(StoreError::Closed) } else { Ok(&self.inner) }
    }
}

impl<S: InboxStore> InboxStore for Moody<S> {
    async fn record(&self, delivery: Verified) -> Result<Recorded, StoreError> {
        self.mood()?.record(delivery).await
    }

    async fn recover(&self, moment: Moment) -> Result<u64, StoreError> {
        self.mood()?.recover(moment).await
    }

    async fn release_expired(&self, moment: Moment) -> Result<u64, StoreError> {
        self.mood()?.release_expired(moment).await
    }

    async fn claim(&self, moment: Moment) -> Result<Option<Work>, StoreError> {
        self.mood()?.claim(moment).await
    }

    async fn apply(
        &self,
        work: &Work,
        versioned: Option<Versioned>,
        moment: Moment,
    ) -> Result<Applied, StoreError> {
        self.mood()?.apply(work, versioned, moment).await
    }

    async fn mark(&self, work: &Work, moment: Moment) -> Result<Applied, StoreError> {
        self.mood()?.mark(work, moment).await
    }

    async fn fail(&self, work: &Work, moment: Moment) -> Result<Failed, StoreError> {
        self.mood()?.fail(work, moment).await
    }

    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError> {
        self.mood()?.next_wake().await
    }

    async fn effects_of(
        &self,
        event_id: EventId,
        source: Option<SourceId>,
    ) -> Result<u64, StoreError> {
        self.mood()?.effects_of(event_id, source).await
    }

    async fn totals(&self) -> Result<Totals, StoreError> {
        self.mood()?.totals().await
    }
}
