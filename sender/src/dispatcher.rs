//! The loop that turns what is due into attempts.
//!
//! A pass asks the store which endpoints have something due, asks each endpoint's gate for permits
//! before it reads or claims a row, claims in one transaction, and starts an attempt per claim. It
//! then sleeps until the next thing can be due. Waking it is only a hint: the sweep interval bounds
//! what a lost wake-up costs.

use std::collections::BTreeSet;
use std::sync::Arc;

use hookproof_core::classify::Signal;
use hookproof_core::delivery::{Committed, Ctx, Delivery, Effect, Input, Phase, Rejected, Step};
use hookproof_core::gate::{Admission, Gate, Permit, StoredGate, Transition};
use hookproof_core::id::EndpointId;
use hookproof_core::outcome::Outcome;
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::database::StoreError;
use hookproof_runtime::host::Host;
use tokio::sync::{mpsc, watch};

use crate::Shared;
use crate::attempt::{self, Made};
use crate::store::{Beside, Claimed, DueEndpoint, Store};

/// How many expired claims are settled in one pass, how many deliveries of an endpoint that are too
/// old, and how many of deleted endpoints.
const EXPIRED_MAX: u32 = 256;
/// One place in so many is kept for endpoints that have no attempt under way.
const KEPT_PART: u32 = 8;
/// How long to wait after the store refused.
const STORE_PAUSE: Millis = Millis::new(200);

pub(crate) struct Dispatcher<H, S> {
    shared: Arc<Shared<H, S>>,
    /// Each attempt holds a sender of this channel: its length is the number under way, and it
    /// closes when the last one has ended.
    under_way: mpsc::Sender<()>,
    all_ended: mpsc::Receiver<()>,
}

/// A claim that is wanted, with the permit for it.
struct Wanted {
    step: Step,
    permit: Permit,
}

impl<H: Host, S: Store> Dispatcher<H, S> {
    pub(crate) fn new(shared: Arc<Shared<H, S>>) -> Self {
        let (under_way, all_ended) = mpsc::channel(1);
        Self { shared, under_way, all_ended }
    }

    /// Dispatches until told to stop, then waits for the attempts under way.
    pub(crate) async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        self.recover(&stopped).await;
        while !*stopped.borrow() {
            let wake_at = match self.pass().await {
                Ok(wake_at) => wake_at,
                Err(error) => {
                    tracing::warn!(%error, "a pass over what is due failed; it is made again");
                    Some(self.shared.host.now().plus(STORE_PAUSE))
                }
            };
            self.wait(wake_at, &mut stopped).await;
        }
        drop(self.under_way);
        self.all_ended.recv().await;
    }

    async fn wait(&self, wake_at: Option<Timestamp>, stopped: &mut watch::Receiver<bool>) {
        let host = &self.shared.host;
        let sweep = self.shared.config.sweep_interval;
        let span = wake_at.map_or(sweep, |at| at.since(host.now()).min(sweep));
        tokio::select! {
            biased;
            _ = stopped.changed() => {}
            () = self.shared.due.notified() => {}
            () = host.sleep(span.max(Millis::new(1))) => {}
        }
    }

    /// The file is held by one process, so whatever is in flight at the start belongs to a process
    /// that is gone, whatever is left of its lease.
    async fn recover(&self, stopped: &watch::Receiver<bool>) {
        while !*stopped.borrow() {
            match self.settle(Timestamp::MAX, Input::OwnerLost).await {
                Ok(0) => return,
                Ok(count) => tracing::info!(count, "attempts of a former process are unknown"),
                Err(error) => {
                    tracing::warn!(%error, "recovery failed; it is tried again");
                    self.shared.host.sleep(STORE_PAUSE).await;
                }
            }
        }
    }

    /// Ends claims that are over, and says how many.
    async fn settle(&self, until: Timestamp, input: Input) -> Result<usize, StoreError> {
        let overdue = self.shared.store.leased(until, EXPIRED_MAX).await?;
        for delivery in &overdue {
            let step = delivery.handle(self.shared.ctx(), input);
            self.shared.write(step, Beside::default()).await?;
        }
        Ok(overdue.len())
    }

    /// Claims and starts what is due and admitted; tells when the next thing can be due.
    async fn pass(&self) -> Result<Option<Timestamp>, StoreError> {
        let now = self.shared.host.now();
        self.settle(now, Input::LeaseExpired).await?;
        self.shared.cancel_orphans(EXPIRED_MAX).await?;
        let mut wake_at = self.shared.store.next_lease_end().await?;
        let mut endpoints = self.shared.store.due_endpoints(now).await?;
        self.fewest_under_way_first(&mut endpoints, now);
        let mut to_share = endpoints.iter().filter(|endpoint| endpoint.is_due).count();
        let mut wanted = Vec::new();
        for endpoint in &endpoints {
            let share = self.share(endpoint, now, wanted.len(), to_share);
            to_share = to_share.saturating_sub(usize::from(endpoint.is_due));
            // One endpoint's trouble is its own: the others are served.
            let next = self.want(endpoint, now, share, &mut wanted).await.unwrap_or_else(|error| {
                tracing::warn!(endpoint = %endpoint.id, %error, "what is due cannot be read");
                Some(now.plus(STORE_PAUSE))
            });
            wake_at = wake_at.into_iter().chain(next).min();
        }
        self.start(wanted).await?;
        Ok(wake_at)
    }

    /// When places are scarce, an endpoint that holds none comes before one that holds many.
    fn fewest_under_way_first(&self, endpoints: &mut [DueEndpoint], now: Timestamp) {
        let gates = &self.shared.gates;
        endpoints.sort_by_key(|endpoint| gates.in_flight(&endpoint.id, now));
    }

    /// An equal part of the places that are left, and some are kept for endpoints that hold none: so
    /// endpoints that never answer cannot take them all.
    fn share(&self, endpoint: &DueEndpoint, now: Timestamp, wanted: usize, to_share: usize) -> u32 {
        let is_served = self.shared.gates.in_flight(&endpoint.id, now) > 0;
        let kept = if is_served { self.shared.config.attempts_max / KEPT_PART } else { 0 };
        let left = self.places_left(wanted).saturating_sub(kept);
        let to_share = u32::try_from(to_share).unwrap_or(u32::MAX).max(1);
        (left / to_share).max(1).min(left)
    }

    /// Adds the claims that one endpoint's gate admits; tells when to look at it again.
    async fn want(
        &self,
        endpoint: &DueEndpoint,
        now: Timestamp,
        share: u32,
        wanted: &mut Vec<Wanted>,
    ) -> Result<Option<Timestamp>, StoreError> {
        let expiry = self.expire(endpoint, now).await?;
        let next = self.want_due(endpoint, now, share, wanted).await?;
        Ok(next.into_iter().chain(expiry).min())
    }

    /// Ends what became too old while it waited, whatever the gate says; tells when the next one may.
    async fn expire(
        &self,
        endpoint: &DueEndpoint,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        let Some(age_max) = self.shared.config.policy.life.age_max else { return Ok(None) };
        let before = now.minus(age_max);
        let store = &self.shared.store;
        let aged = store.aged_deliveries(endpoint.id.clone(), before, EXPIRED_MAX).await?;
        let is_all = aged.deliveries.len() < EXPIRED_MAX as usize;
        let ended = aged.deliveries.iter().filter_map(|delivery| {
            let held = self.held(endpoint, delivery, now);
            // What the breaker held back is younger than it looks, and goes on waiting.
            delivery.handle(self.shared.ctx(), Input::LifeExpired { held }).ok()
        });
        let ended: Vec<Step> = ended.collect();
        let is_busy = !is_all && !ended.is_empty();
        if !ended.is_empty() {
            for committed in store.commit_each(ended).await?.into_iter().flatten() {
                self.shared.perform(committed);
            }
        }
        // An age is too great a millisecond after it is the greatest.
        let next = aged.next_created_at.map(|at| at.plus(age_max).plus(Millis::new(1)));
        Ok(if is_busy { Some(now) } else { next })
    }

    /// For how long of the time since it was due the breaker held a delivery back.
    fn held(&self, endpoint: &DueEndpoint, delivery: &Delivery, now: Timestamp) -> Millis {
        let Phase::Scheduled { due, .. } = delivery.phase else { return Millis::ZERO };
        self.with_gate(endpoint, |gate| gate.held(due, now))
    }

    /// Works with the gate of an endpoint, which is restored if this is the first time.
    fn with_gate<T>(&self, endpoint: &DueEndpoint, work: impl FnOnce(&mut Gate) -> T) -> T {
        self.shared.gates.with(&endpoint.id, || endpoint.gate.clone(), work)
    }

    async fn want_due(
        &self,
        endpoint: &DueEndpoint,
        now: Timestamp,
        share: u32,
        wanted: &mut Vec<Wanted>,
    ) -> Result<Option<Timestamp>, StoreError> {
        if !endpoint.is_due {
            return Ok(endpoint.next_due);
        }
        let policy = &self.shared.config.policy;
        let room = match self.with_gate(endpoint, |gate| gate.room(&policy.gate, now)) {
            Ok(room) => room.min(share),
            Err((until, _why)) => return Ok(Some(until)),
        };
        let due = self.shared.store.due_deliveries(endpoint.id.clone(), now, room).await?;
        for delivery in due {
            let held = self.held(endpoint, &delivery, now);
            let admitted = Input::Admitted { held };
            let Ok(step) = delivery.handle(self.shared.ctx(), admitted) else { continue };
            if !matches!(step.next().phase, Phase::InFlight { .. }) {
                // It became too old while it waited: there is nothing to send.
                self.shared.write(Ok(step), Beside::default()).await?;
                continue;
            }
            match self.admit(&delivery, now) {
                Admission::Go(permit) => wanted.push(Wanted { step, permit }),
                Admission::Defer { until, .. } => return Ok(Some(until)),
            }
        }
        // More may be due than there was room for: an attempt that ends wakes the dispatcher.
        Ok(endpoint.next_due)
    }

    fn admit(&self, delivery: &Delivery, now: Timestamp) -> Admission {
        let policy = &self.shared.config.policy;
        let gates = &self.shared.gates;
        gates.known(&delivery.endpoint_id, |gate| gate.admit(&policy.gate, now, policy.lease()))
    }

    fn places_left(&self, wanted: usize) -> u32 {
        // The dispatcher holds one sender itself.
        let taken = self.under_way.strong_count().saturating_sub(1).saturating_add(wanted);
        let taken = u32::try_from(taken).unwrap_or(u32::MAX);
        self.shared.config.attempts_max.saturating_sub(taken)
    }

    /// Commits the claims; only those that are committed become attempts.
    async fn start(&self, wanted: Vec<Wanted>) -> Result<(), StoreError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let (steps, permits): (Vec<Step>, Vec<(EndpointId, Permit)>) = wanted
            .into_iter()
            .map(|w| {
                let endpoint = w.step.next().endpoint_id.clone();
                (w.step, (endpoint, w.permit))
            })
            .unzip();
        let claims = match self.shared.store.claim(steps, self.gates_of(&permits)).await {
            Ok(claims) => claims,
            Err(error) => {
                for (endpoint, permit) in permits {
                    self.release(&endpoint, permit, Signal::Neither);
                }
                return Err(error);
            }
        };
        for ((endpoint, permit), claim) in permits.into_iter().zip(claims) {
            match claim {
                Ok(claimed) => self.begin(claimed, permit),
                Err(_rejected) => {
                    self.release(&endpoint, permit, Signal::Neither);
                }
            }
        }
        Ok(())
    }

    /// Stored with the claims, so that a window of the rate limit holds what began in it even if this
    /// process does not live to record it.
    fn gates_of(&self, permits: &[(EndpointId, Permit)]) -> Vec<(EndpointId, StoredGate)> {
        let rule = &self.shared.config.policy.gate;
        if rule.rate.is_none() && rule.drain.is_none() {
            return Vec::new();
        }
        let endpoints: BTreeSet<_> = permits.iter().map(|(endpoint, _)| endpoint).collect();
        endpoints.into_iter().map(|id| (id.clone(), self.shared.gates.stored(id))).collect()
    }

    fn release(&self, endpoint: &EndpointId, permit: Permit, signal: Signal) {
        let policy = &self.shared.config.policy;
        let now = self.shared.host.now();
        self.shared.gates.known(endpoint, |gate| gate.record(&policy.gate, now, permit, signal));
    }

    fn begin(&self, claimed: Claimed, permit: Permit) {
        let attempt = Attempt { shared: self.shared.clone(), claimed, permit };
        let under_way = self.under_way.clone();
        let shared = self.shared.clone();
        self.shared.host.spawn(async move {
            attempt.run().await;
            // The place first: whoever is woken must find it free.
            drop(under_way);
            shared.due.notify_one();
        });
    }
}

/// One attempt under way.
struct Attempt<H, S> {
    shared: Arc<Shared<H, S>>,
    claimed: Claimed,
    permit: Permit,
}

impl<H: Host, S: Store> Attempt<H, S> {
    async fn run(self) {
        let Phase::InFlight { attempt, lease_until, .. } = self.claimed.delivery.phase else {
            return;
        };
        self.shared.host.at(CrashPoint::AttemptClaimed).await;
        let made = attempt::make(&self.shared, &self.claimed).await;
        if let Outcome::Answered { .. } = made.outcome {
            self.shared.host.at(CrashPoint::AttemptAnswered).await;
        }
        self.record(attempt, lease_until, made).await;
    }

    /// Ends the permit and writes what came of the attempt. The outcome is known only here, so a
    /// store that refuses is asked again for as long as the claim holds. It is asked at least once: if
    /// the claim is over, the version says so.
    async fn record(self, attempt: u32, lease_until: Timestamp, made: Made) {
        let Self { shared, claimed, permit } = self;
        let delivery = claimed.delivery;
        let policy = &shared.config.policy;
        let judgement = policy.classification.judge(&made.outcome);
        let endpoint = &delivery.endpoint_id;
        let transition = shared.gates.known(endpoint, |gate| {
            let now = shared.host.now();
            if let Some(throttle) = judgement.throttle {
                gate.throttle(&policy.gate, now, throttle);
            }
            gate.record(&policy.gate, now, permit, judgement.signal)
        });
        let gives_up = matches!(transition, Some(Transition::Disabled { .. }));
        log_transition(endpoint, transition);
        let input = Input::Finished { attempt, outcome: made.outcome };
        loop {
            let step = delivery.handle(shared.ctx(), input);
            // As it is now: while this one waited, others may have moved it on.
            let gate = Some(shared.gates.stored(endpoint));
            let beside = Beside { excerpt: made.excerpt.clone(), gate, gives_up };
            match shared.write(step, beside).await {
                Ok(()) => {
                    shared.host.at(CrashPoint::AttemptRecorded).await;
                    return;
                }
                Err(error) => {
                    tracing::warn!(delivery = %delivery.id, %error, "an outcome waits for the store");
                }
            }
            if shared.host.now() >= lease_until {
                break;
            }
            shared.host.sleep(STORE_PAUSE).await;
        }
        tracing::warn!(delivery = %delivery.id, attempt, "an outcome could not be recorded in time");
    }
}

impl<H: Host, S: Store> Shared<H, S> {
    /// What a step is judged by, now.
    pub(crate) fn ctx(&self) -> Ctx<'_> {
        Ctx { now: self.host.now(), entropy: self.host.entropy(), policy: &self.config.policy }
    }

    /// Commits a step, then performs its effects. A stale step is thrown away: somebody else
    /// decided first, and what is stored is right.
    async fn write(&self, step: Result<Step, Rejected>, beside: Beside) -> Result<(), StoreError> {
        let step = match step {
            Ok(step) => step,
            Err(rejected) => {
                tracing::debug!(%rejected, "a stale input");
                return Ok(());
            }
        };
        let committed = match self.store.commit(step, beside).await? {
            Ok(committed) => committed,
            Err(rejected) => {
                tracing::debug!(%rejected, "a stale step");
                return Ok(());
            }
        };
        self.perform(committed);
        Ok(())
    }

    /// What follows from a step, once it is committed.
    pub(crate) fn perform(&self, committed: Committed) {
        log_record(&committed.delivery, committed.record.as_ref());
        for effect in committed.effects {
            match effect {
                // A send follows only from a claim, which the dispatcher commits by itself.
                Effect::Send { .. } => {}
                Effect::WakeAt { .. } => self.due.notify_one(),
                Effect::NoticePending => self.notice.notify_one(),
            }
        }
    }
}

fn log_record(delivery: &Delivery, record: Option<&hookproof_core::delivery::AttemptRecord>) {
    if let Some(record) = record {
        tracing::info!(
            event = %delivery.event_id,
            endpoint = %delivery.endpoint_id,
            attempt = record.attempt,
            outcome = %record.outcome,
            took_ms = record.finished_at.since(record.started_at).get(),
            next_at_ms = delivery.wake_at().map(|(at, _)| at.as_millis()),
            "attempt"
        );
    }
}

fn log_transition(endpoint: &EndpointId, transition: Option<Transition>) {
    match transition {
        Some(Transition::Opened { until, why }) => {
            tracing::warn!(%endpoint, until_ms = until.as_millis(), ?why, "the breaker is open");
        }
        Some(Transition::Disabled { why }) => {
            tracing::warn!(%endpoint, ?why, "the breaker's rule gives the endpoint up");
        }
        Some(Transition::Closed) => tracing::info!(%endpoint, "the breaker is closed"),
        None => {}
    }
}
