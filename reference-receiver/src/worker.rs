//! The worker: takes what is due from the inbox, one entry at a time, and applies its effect.
//!
//! Progress never depends on a wake-up. Ingress wakes the worker to save time; a wake-up that was
//! lost, with the process or on the way, costs at most the sweep interval. Nor does it depend on
//! how the last turn ended: whatever a claim leads to, its lease ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use hookproof_core::id::SourceId;
use hookproof_core::inbox::InboxRule;
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::database::StoreError;
use hookproof_runtime::host::Host;
use tokio::sync::{Notify, watch};

use crate::config::{ReceiverConfig, Source};
use crate::downstream::{Called, Downstream, key};
use crate::effect::EffectError;
use crate::ordering::OrderingRule;
use crate::store::{Applied, Failed, InboxStore, Moment, Work};

/// Works off the inbox of `store`.
pub(crate) struct Worker<H, S> {
    host: H,
    store: S,
    rule: Arc<InboxRule>,
    /// The sources whose events are applied in order.
    ordering: BTreeMap<SourceId, OrderingRule>,
    /// The sources whose events take effect in another service.
    downstream: BTreeMap<SourceId, Downstream>,
    /// The longest that a row without a wake-up stays unseen, and the pause after a store's error.
    sweep_interval: Millis,
    wake: Arc<Notify>,
    is_recovered: bool,
}

/// What a turn found.
enum Turn {
    /// Something was done, so there may be more to do.
    Busy,
    /// Nothing is due for so long, as far as is known.
    Idle(Millis),
}

impl<H: Host, S: InboxStore> Worker<H, S> {
    pub(crate) fn new(host: H, store: S, config: &ReceiverConfig, wake: Arc<Notify>) -> Self {
        let rule = Arc::new(config.inbox.clone());
        let ordered = |source: &Source| Some((source.id.clone(), source.ordering.clone()?));
        let ordering = config.sources.iter().filter_map(ordered).collect();
        let called = |source: &Source| Some((source.id.clone(), source.downstream.clone()?));
        let downstream = config.sources.iter().filter_map(called).collect();
        let sweep_interval = config.sweep_interval;
        Self { host, store, rule, ordering, downstream, sweep_interval, wake, is_recovered: false }
    }

    /// Gives up what a former process had claimed, once in the life of this one.
    pub(crate) async fn recover(&mut self) -> Result<(), StoreError> {
        if !self.is_recovered {
            let claims = self.store.recover(self.moment()).await?;
            self.is_recovered = true;
            if claims > 0 {
                tracing::info!(claims, "claims of a former process were taken back");
            }
        }
        Ok(())
    }

    /// Works until `stopped` says so, then finishes the entry in hand and returns.
    pub(crate) async fn run(&mut self, mut stopped: watch::Receiver<bool>) {
        loop {
            let turn = self.turn().await;
            tokio::select! {
                biased;
                () = is_stopped(&mut stopped) => return,
                () = self.rest(turn) => {}
            }
        }
    }

    async fn rest(&self, turn: Result<Turn, StoreError>) {
        match turn {
            Ok(Turn::Busy) => {}
            Ok(Turn::Idle(span)) => tokio::select! {
                biased;
                () = self.wake.notified() => {}
                () = self.host.sleep(span) => {}
            },
            Err(error) => {
                tracing::warn!(%error, "the inbox could not be worked on; trying again");
                // No wake-up cuts this short: they come in as fast as requests do.
                self.host.sleep(self.sweep_interval).await;
            }
        }
    }

    /// One look at the inbox, and at most one entry of it.
    async fn turn(&mut self) -> Result<Turn, StoreError> {
        self.recover().await?;
        let next = self.store.next_wake().await?;
        let now = self.host.now();
        if let Some(idle) = self.idle(now, next) {
            return Ok(Turn::Idle(idle));
        }
        let released = self.store.release_expired(self.moment()).await?;
        if released > 0 {
            tracing::info!(claims = released, "claims were given up at the end of their lease");
        }
        match self.store.claim(self.moment()).await? {
            Some(work) => {
                self.host.at(CrashPoint::WorkClaimed).await;
                self.finish(&work).await?;
                Ok(Turn::Busy)
            }
            None if released > 0 => Ok(Turn::Busy),
            // What was due is gone, or the clock was set back: no reason to look again at once.
            None => Ok(Turn::Idle(self.sweep_interval)),
        }
    }

    /// How long there is nothing to do, if there is nothing now. The sweep bounds it, so that
    /// neither a row without a wake-up nor a clock that is set forward has to wait longer.
    fn idle(&self, now: Timestamp, next: Option<Timestamp>) -> Option<Millis> {
        match next {
            Some(at) if at <= now => None,
            Some(at) => Some(at.since(now).min(self.sweep_interval)),
            None => Some(self.sweep_interval),
        }
    }

    async fn finish(&self, work: &Work) -> Result<(), StoreError> {
        if let Some(downstream) = self.downstream.get(&work.entry.source) {
            return self.call(work, downstream).await;
        }
        let rule = self.ordering.get(&work.entry.source);
        let versioned = match rule.map_or(Ok(None), |rule| rule.read(&work.body)) {
            Ok(versioned) => versioned,
            Err(problem) => return self.fail(work, &EffectError::new(problem)).await,
        };
        match self.store.apply(work, versioned, self.moment()).await? {
            Applied::Done => self.host.at(CrashPoint::WorkMarked).await,
            Applied::Superseded => tracing::info!(
                source = %work.entry.source, event_id = %work.entry.event_id,
                "a newer version of the entity is applied: the event has no effect"
            ),
            Applied::Failed(error) => self.fail(work, &error).await?,
            Applied::TakenOver => taken_over(work),
        }
        Ok(())
    }

    /// The effect is a call. Until it is marked, whatever ends this process or this claim lets it be
    /// made again under the same key.
    async fn call(&self, work: &Work, downstream: &Downstream) -> Result<(), StoreError> {
        match downstream.call(&self.host, work).await {
            Called::Done => {}
            Called::Failed(error) => return self.fail(work, &error).await,
            Called::Unknown(error) => {
                tracing::info!(
                    key = key(work), %error,
                    "it is not known whether a call took effect: the same key will tell"
                );
                return self.fail(work, &error).await;
            }
        }
        self.host.at(CrashPoint::EffectApplied).await;
        match self.store.mark(work, self.moment()).await? {
            Applied::TakenOver => taken_over(work),
            Applied::Done | Applied::Superseded | Applied::Failed(_) => {
                self.host.at(CrashPoint::WorkMarked).await;
            }
        }
        Ok(())
    }

    async fn fail(&self, work: &Work, error: &EffectError) -> Result<(), StoreError> {
        let (source, event_id) = (&work.entry.source, &work.entry.event_id);
        let attempt = work.attempt();
        match self.store.fail(work, self.moment()).await? {
            Failed::Retried { due } => tracing::info!(
                %source, %event_id, attempt, %error, due_ms = due.as_millis(),
                "an effect failed and will be tried again"
            ),
            Failed::Dead => tracing::warn!(
                %source, %event_id, attempt, %error,
                "an effect failed for the last time: the event is a dead letter"
            ),
            Failed::TakenOver => taken_over(work),
        }
        Ok(())
    }

    fn moment(&self) -> Moment {
        Moment { now: self.host.now(), entropy: self.host.entropy(), rule: self.rule.clone() }
    }
}

fn taken_over(work: &Work) {
    tracing::info!(
        source = %work.entry.source, event_id = %work.entry.event_id, attempt = work.attempt(),
        "a claim was taken over before its effect: nothing of this attempt is stored"
    );
}

async fn is_stopped(stopped: &mut watch::Receiver<bool>) {
    // An error means that nobody is left to say so, which is a stop as well.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}
