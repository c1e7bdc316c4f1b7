//! The loop that turns what is due into attempts.
//!
//! A pass asks the store which endpoints have something due, asks each endpoint's gate for permits
//! before it reads or claims a row, claims in one transaction, and starts an attempt per claim. It
//! then sleeps until the next thing can be due. Waking it is only a hint: the sweep interval bounds
//! what a lost wake-up costs.

use std::collections::BTreeSet;
use std::sync::Arc;

use hookproof_core::delivery::{Committed, Ctx, Delivery, Effect, Input, Phase, Rejected, Step};
use hookproof_core::dispatch::{Lesson, Places};
use hookproof_core::gate::{Cause, StoredGate, Transition};
use hookproof_core::id::EndpointId;
use hookproof_core::outcome::Outcome;
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::database::StoreError;
use hookproof_runtime::decision::Decision;
use hookproof_runtime::host::Host;
use tokio::sync::{mpsc, watch};

use crate::Shared;
use crate::attempt::{self, Made};
use crate::gates::{Held, Wanted};
use crate::store::{Beside, Claimed, DueEndpoint, EndpointReason, Store};
use crate::under_way::Number;

/// How many expired claims are settled in one pass, how many deliveries of an endpoint that are too
/// old, and how many of deleted endpoints.
const EXPIRED_MAX: u32 = 256;
/// How long to wait after the store refused.
const STORE_PAUSE: Millis = Millis::new(200);

pub(crate) struct Dispatcher<H, S> {
    shared: Arc<Shared<H, S>>,
    /// Each attempt holds a sender of this channel: its length is the number under way, and it
    /// closes when the last one has ended.
    places: mpsc::Sender<()>,
    all_ended: mpsc::Receiver<()>,
}

/// A claim that is wanted, with the permit for it.
struct Claim<H: Host> {
    step: Step,
    permit: Held<H>,
}

impl<H: Host, S: Store> Dispatcher<H, S> {
    pub(crate) fn new(shared: Arc<Shared<H, S>>) -> Self {
        let (places, all_ended) = mpsc::channel(1);
        Self { shared, places, all_ended }
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
        drop(self.places);
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

    /// Ends claims that are over, and says how many. Those of attempts that this process has under way
    /// are not: each ends within its own limit, by a clock that cannot be set, and says what came of it.
    async fn settle(&self, until: Timestamp, input: Input) -> Result<usize, StoreError> {
        let own = self.shared.under_way.numbers();
        let limit = EXPIRED_MAX.saturating_add(u32::try_from(own.len()).unwrap_or(u32::MAX));
        let mut overdue = self.shared.store.leased(until, limit).await?;
        overdue.retain(|delivery| !own.contains(&Number::of(delivery)));
        for delivery in &overdue {
            let step = self.shared.decide(delivery, input);
            self.shared.write(step, Beside::default()).await?;
        }
        Ok(overdue.len())
    }

    /// Claims and starts what is due and admitted; tells when the next thing can be due.
    async fn pass(&self) -> Result<Option<Timestamp>, StoreError> {
        let now = self.shared.host.now();
        let settled = self.settle(now, Input::LeaseExpired).await?;
        self.shared.cancel_orphans(EXPIRED_MAX).await?;
        let mut wake_at = match settled < EXPIRED_MAX as usize {
            true => self.shared.store.next_lease_end(now).await?,
            false => Some(now),
        };
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

    /// How many attempts an endpoint may begin.
    fn share(&self, endpoint: &DueEndpoint, now: Timestamp, wanted: usize, to_share: usize) -> u32 {
        // The dispatcher holds one sender itself.
        let taken = self.places.strong_count().saturating_sub(1).saturating_add(wanted);
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let places = Places {
            attempts_max: self.shared.config.attempts_max,
            taken: count(taken),
            to_share: count(to_share),
        };
        places.share(self.shared.gates.in_flight(&endpoint.id, now) > 0)
    }

    /// Adds the claims that one endpoint's gate admits; tells when to look at it again.
    async fn want(
        &self,
        endpoint: &DueEndpoint,
        now: Timestamp,
        share: u32,
        wanted: &mut Vec<Claim<H>>,
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
        let gates = &self.shared.gates;
        let ended = aged.deliveries.iter().filter_map(|delivery| {
            // What the breaker held back is younger than it looks, and goes on waiting.
            gates.expire(endpoint, delivery, self.shared.ctx()).ok()
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

    async fn want_due(
        &self,
        endpoint: &DueEndpoint,
        now: Timestamp,
        share: u32,
        wanted: &mut Vec<Claim<H>>,
    ) -> Result<Option<Timestamp>, StoreError> {
        if !endpoint.is_due {
            return Ok(endpoint.next_due);
        }
        let gates = &self.shared.gates;
        let room = match gates.room(endpoint) {
            Ok(room) => room.min(share),
            Err(until) => return Ok(Some(until)),
        };
        let due = self.shared.store.due_deliveries(endpoint.id.clone(), now, room).await?;
        for delivery in due {
            match gates.want(endpoint, &delivery, self.shared.ctx()) {
                Wanted::Claim(step, permit) => wanted.push(Claim { step, permit }),
                Wanted::Ends(step) => self.shared.write(Ok(step), Beside::default()).await?,
                Wanted::Stale(rejected) => tracing::debug!(%rejected, "a stale input"),
                Wanted::Deferred(until) => return Ok(Some(until)),
            }
        }
        // More may be due than there was room for: an attempt that ends wakes the dispatcher.
        Ok(endpoint.next_due)
    }

    /// Commits the claims; only those that are committed become attempts.
    async fn start(&self, wanted: Vec<Claim<H>>) -> Result<(), StoreError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let (steps, permits): (Vec<Step>, Vec<Held<H>>) =
            wanted.into_iter().map(|claim| (claim.step, claim.permit)).unzip();
        let claims = match self.shared.store.claim(steps, self.gates_of(&permits)).await {
            Ok(claims) => claims,
            Err(error) => {
                for permit in permits {
                    permit.give_back(Lesson::NOTHING);
                }
                return Err(error);
            }
        };
        for (permit, claim) in permits.into_iter().zip(claims) {
            match claim {
                Ok(claimed) => self.begin(claimed, permit),
                Err(_rejected) => {
                    permit.give_back(Lesson::NOTHING);
                    // There was room for another.
                    self.shared.due.notify_one();
                }
            }
        }
        Ok(())
    }

    /// Stored with the claims, so that a window of the rate limit holds what began in it even if this
    /// process does not live to record it.
    fn gates_of(&self, permits: &[Held<H>]) -> Vec<(EndpointId, StoredGate)> {
        let rule = &self.shared.config.policy.gate;
        if rule.rate.is_none() && rule.drain.is_none() {
            return Vec::new();
        }
        let endpoints: BTreeSet<_> = permits.iter().map(Held::endpoint).collect();
        endpoints.into_iter().map(|id| (id.clone(), self.shared.gates.stored(id))).collect()
    }

    fn begin(&self, claimed: Claimed, permit: Held<H>) {
        let place = self.places.clone();
        let entry = self.shared.under_way.enter(&claimed.delivery);
        let shared = self.shared.clone();
        let attempt = Attempt { shared: self.shared.clone(), claimed, permit };
        self.shared.host.spawn(async move {
            attempt.run().await;
            // The place first: whoever is woken must find it free.
            drop((entry, place));
            shared.due.notify_one();
        });
    }
}

/// One attempt under way.
struct Attempt<H: Host, S> {
    shared: Arc<Shared<H, S>>,
    claimed: Claimed,
    permit: Held<H>,
}

impl<H: Host, S: Store> Attempt<H, S> {
    async fn run(self) {
        let Phase::InFlight { attempt, lease_until, .. } = self.claimed.delivery.phase else {
            // No claim: the store took the step for another one.
            self.permit.give_back(Lesson::NOTHING);
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
        let transition = permit.give_back(judgement.into());
        let told = transition.and_then(reason_of);
        log_transition(endpoint, transition);
        let input = Input::Finished { attempt, outcome: made.outcome };
        loop {
            let step = shared.decide(&delivery, input);
            // As it is now: while this one waited, others may have moved it on.
            let gate = Some(shared.gates.stored(endpoint));
            let beside = Beside { excerpt: made.excerpt.clone(), gate, endpoint: told };
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

    /// What `input` makes of a delivery.
    pub(crate) fn decide(&self, state: &Delivery, input: Input) -> Result<Step, Rejected> {
        let ctx = self.ctx();
        let result = state.handle(ctx, input);
        self.host.decided(&Decision::Delivery { state, ctx, input, result: &result });
        result
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
        let is_told_of_endpoint = beside.endpoint.is_some();
        let committed = match self.store.commit(step, beside).await? {
            Ok(committed) => committed,
            Err(rejected) => {
                tracing::debug!(%rejected, "a stale step");
                return Ok(());
            }
        };
        self.perform(committed);
        if is_told_of_endpoint {
            self.notice.notify_one();
        }
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

/// What an owner is told of a breaker: that it opens, not that each failed probe keeps it open.
fn reason_of(transition: Transition) -> Option<EndpointReason> {
    match transition {
        Transition::Opened { why: Cause::ProbeFailed, .. } | Transition::Closed => None,
        Transition::Opened { .. } => Some(EndpointReason::Paused),
        Transition::Disabled { .. } => Some(EndpointReason::GivenUp),
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
