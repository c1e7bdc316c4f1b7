//! How far a run is: what its parts tell each other, and wait for.

use hookproof_core::time::Millis;
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use tokio::sync::watch;

use super::plan::{Plan, Side};

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counts {
    /// Events whose publish was acknowledged.
    pub(super) accepted: u64,
    /// Deliveries that the receiver took, when the sender was last asked.
    pub(super) delivered: u64,
    /// Effects, when the receiver was last asked.
    pub(super) effects: u64,
    /// Kills made.
    pub(super) kills: u64,
    /// Those of them at which the process had not done with all events yet.
    pub(super) kills_at_work: u64,
    /// Whether all kills are made and nothing is left to do.
    pub(super) is_drained: bool,
}

impl Counts {
    /// The events that a side has done with.
    fn done(self, side: Side) -> u64 {
        match side {
            Side::Sender => self.delivered,
            Side::Receiver => self.effects,
        }
    }
}

/// The board that all parts of a run look at.
#[derive(Debug)]
pub(super) struct Board {
    plan: Plan,
    events: u64,
    counts: watch::Sender<Counts>,
}

impl Board {
    pub(super) fn new(plan: Plan, events: u64) -> Self {
        Self { plan, events, counts: watch::Sender::new(Counts::default()) }
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(super) fn events(&self) -> u64 {
        self.events
    }

    pub(super) fn counts(&self) -> Counts {
        *self.counts.borrow()
    }

    /// One more event is accepted.
    pub(super) fn accepted(&self) {
        self.counts.send_modify(|counts| counts.accepted += 1);
    }

    /// So many deliveries and effects were seen.
    pub(super) fn seen(&self, delivered: u64, effects: u64) {
        self.counts.send_if_modified(|counts| {
            let before = *counts;
            *counts = Counts { delivered, effects, ..before };
            *counts != before
        });
    }

    /// A side was killed.
    pub(super) fn killed(&self, side: Side) {
        self.counts.send_modify(|counts| {
            counts.kills += 1;
            counts.kills_at_work += u64::from(counts.done(side) < self.events);
        });
    }

    /// Nothing is left to do.
    pub(super) fn drained(&self) {
        self.counts.send_modify(|counts| counts.is_drained = true);
    }

    /// Whether all has been published and all kills have been made.
    pub(super) fn is_all_done(&self) -> bool {
        let counts = self.counts();
        counts.accepted == self.events && counts.kills == self.plan.kills()
    }

    /// Waits for a side's progress.
    pub(super) async fn reached(&self, side: Side, progress: u64) {
        self.wait(|counts| counts.accepted + counts.done(side) >= progress).await;
    }

    /// Waits until the event of this index, from 0, may be published.
    pub(super) async fn may_publish(&self, index: u64) {
        self.wait(|counts| index < self.plan.may_publish(counts.kills)).await;
    }

    /// Waits until all has been published that may be.
    pub(super) async fn published(&self) {
        self.wait(|counts| counts.accepted >= self.plan.may_publish(counts.kills)).await;
    }

    /// Waits until nothing is left to do.
    pub(super) async fn is_drained(&self) {
        self.wait(|counts| counts.is_drained).await;
    }

    /// Resolves when nothing has moved for so long.
    pub(super) async fn stalled(&self, patience: Millis) {
        loop {
            let before = self.counts();
            if TokioHost.within(patience, self.wait(|counts| *counts != before)).await.is_none() {
                return;
            }
        }
    }

    async fn wait(&self, until: impl FnMut(&Counts) -> bool) {
        // It cannot close: the sender is ours.
        let _ = self.counts.subscribe().wait_for(until).await;
    }
}
