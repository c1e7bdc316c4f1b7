//! I8 and I10: attempts begin when they are due, and not before.

use std::collections::{BTreeMap, BTreeSet};

use hookproof_core::classify::Verdict;
use hookproof_core::delivery::{DeadReason, Delivery, Origin, Phase};
use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::policy::Policy;
use hookproof_core::time::{Millis, Timestamp};

use super::{Checker, Invariant, Look, NOTHING, RIGHT};
use crate::fact::{EndpointNo, Fact, Life, Route, Written};

/// What is remembered of a delivery.
#[derive(Clone, Copy)]
struct Known {
    phase: Phase,
    attempts: u32,
    scheduled_attempts: u32,
    previous_wait: Option<Millis>,
}

impl Known {
    fn of(state: &Delivery) -> Self {
        let Delivery { phase, attempts, scheduled_attempts, previous_wait, .. } = *state;
        Self { phase, attempts, scheduled_attempts, previous_wait }
    }
}

/// I8, but for what is late: when attempts may begin, and how many there are.
#[derive(Default)]
pub(super) struct OnSchedule {
    policy: Option<Policy>,
    routes: BTreeMap<Route, Known>,
    dialled: BTreeSet<Route>,
}

impl OnSchedule {
    fn written(&mut self, written: &Written<'_>) -> Look {
        let route = written.route;
        let now = Known::of(written.state);
        let Some(before) = self.routes.insert(route, now) else { return NOTHING };
        let Some(policy) = &self.policy else { return NOTHING };
        if now.attempts < before.attempts || now.scheduled_attempts < before.scheduled_attempts {
            return Err(format!(
                "{route} has begun {} attempts, and counts {}",
                before.attempts, now.attempts
            ));
        }
        let attempts_max = policy.schedule.attempts_max();
        if now.scheduled_attempts > attempts_max {
            return Err(format!(
                "attempt {} of {route} begins, and {attempts_max} is the last",
                now.scheduled_attempts
            ));
        }
        match now.phase {
            Phase::InFlight { started_at, attempt, .. } => {
                self.dialled.remove(&route);
                begins(route, attempt, started_at, before)
            }
            Phase::Scheduled { due, origin: Origin::Schedule } => {
                self.has_dialled(written)?;
                is_due_by_policy(policy, written, before, now, due)
            }
            Phase::Dead { reason: DeadReason::Exhausted, .. }
                if now.scheduled_attempts != attempts_max && !written.is_asked =>
            {
                Err(format!(
                    "{route} is given up after {} attempts, and has {attempts_max}",
                    now.scheduled_attempts
                ))
            }
            _ => self.has_dialled(written),
        }
    }

    /// Each attempt that is used up was made: a connection was tried.
    fn has_dialled(&self, written: &Written<'_>) -> Look {
        let Some(record) = written.record else { return NOTHING };
        let needs_connection = match record.outcome {
            Outcome::Answered { .. } => true,
            Outcome::Failed { failure } => {
                !matches!(failure, Failure::Dns | Failure::Blocked | Failure::Timeout)
            }
            Outcome::Unknown => false,
        };
        if needs_connection && !self.dialled.contains(&written.route) {
            return Err(format!(
                "attempt {} of {} is used up, and no connection was tried",
                record.attempt, written.route
            ));
        }
        RIGHT
    }
}

fn begins(route: Route, attempt: u32, started_at: Timestamp, before: Known) -> Look {
    if attempt != before.attempts.saturating_add(1) {
        return Err(format!("attempt {attempt} of {route} follows attempt {}", before.attempts));
    }
    match before.phase {
        Phase::Scheduled { due, .. } if started_at < due => Err(format!(
            "attempt {attempt} of {route} begins {} before it is due",
            due.since(started_at)
        )),
        _ => RIGHT,
    }
}

/// After a failed attempt the next is due when the policy says, by its own bounds.
fn is_due_by_policy(
    policy: &Policy,
    written: &Written<'_>,
    before: Known,
    now: Known,
    due: Timestamp,
) -> Look {
    let Some(record) = written.record else { return NOTHING };
    if !matches!(before.phase, Phase::InFlight { origin: Origin::Schedule, .. }) {
        return NOTHING;
    }
    let route = written.route;
    let outcome = match record.outcome {
        Outcome::Answered { status, .. } => {
            Outcome::Answered { status, retry_after: written.asked }
        }
        outcome => outcome,
    };
    let Verdict::Retry { floor } = policy.classification.verdict(&outcome) else {
        return Err(format!("{route} is tried again after {outcome}, which is final"));
    };
    let Some(draw) = policy.draw(now.scheduled_attempts, before.previous_wait, floor) else {
        return Err(format!("{route} is tried again after its last attempt"));
    };
    let (bounds, wait) = (draw.bounds(), due.since(record.finished_at));
    let is_before = due < record.finished_at;
    if is_before || wait < bounds.lowest || wait > bounds.highest {
        return Err(format!(
            "attempt {} of {route} is due {}{wait} after {outcome}, and may be from {} to {}",
            now.attempts + 1,
            if is_before { "before, not " } else { "" },
            bounds.lowest,
            bounds.highest
        ));
    }
    RIGHT
}

impl Checker for OnSchedule {
    fn invariant(&self) -> Invariant {
        Invariant::OnSchedule
    }

    fn see(&mut self, _now: Timestamp, fact: &Fact<'_>) -> Look {
        match fact {
            Fact::Served { policy } => {
                self.policy = Some((*policy).clone());
                NOTHING
            }
            Fact::Dialled { route, .. } => {
                self.dialled.insert(*route);
                NOTHING
            }
            Fact::Written(written) => self.written(written),
            _ => NOTHING,
        }
    }
}

/// What is late: no attempt begins longer after it is due than a bound, while its sender is up and
/// its gate admits it. For I8 this concerns every endpoint, for I10 those that work.
pub(super) struct Punctual {
    invariant: Invariant,
    bound: Millis,
    sound: BTreeSet<EndpointNo>,
    /// When a waiting delivery is due, by the clock of whoever wrote it, who that was, and how far
    /// that clock was ahead.
    due: BTreeMap<Route, (Timestamp, Life, i64)>,
    /// Until when an endpoint was held back by its gate, or disabled.
    held: BTreeMap<EndpointNo, Timestamp>,
    /// Since when its gate has said nothing but "not now".
    closed_since: BTreeMap<EndpointNo, Timestamp>,
    hindered: Timestamp,
    /// The longest that a gate may hold back at one time.
    hold_max: Millis,
}

impl Punctual {
    pub(super) fn overdue(bound: Millis) -> Self {
        Self::new(Invariant::OnSchedule, bound)
    }

    pub(super) fn isolation(bound: Millis) -> Self {
        Self::new(Invariant::Isolation, bound)
    }

    fn new(invariant: Invariant, bound: Millis) -> Self {
        Self {
            invariant,
            bound,
            sound: BTreeSet::new(),
            due: BTreeMap::new(),
            held: BTreeMap::new(),
            closed_since: BTreeMap::new(),
            hindered: Timestamp::from_millis(0),
            hold_max: Millis::ZERO,
        }
    }

    fn hold(&mut self, endpoint: EndpointNo, until: Timestamp) {
        let held = self.held.entry(endpoint).or_insert(until);
        *held = (*held).max(until);
    }

    fn written(&mut self, now: Timestamp, written: &Written<'_>) -> Look {
        let route = written.route;
        let before = match written.state.phase {
            Phase::Scheduled { due, .. } => {
                self.due.insert(route, (due, written.by, written.clock_ahead));
                return NOTHING;
            }
            _ => self.due.remove(&route),
        };
        let begins = matches!(written.state.phase, Phase::InFlight { .. });
        let concerns = self.invariant == Invariant::OnSchedule
            || self.sound.contains(&route.endpoint) && self.sound.len() < self.held.len();
        let Some((due, by, ahead)) = before.filter(|_| begins && concerns) else { return NOTHING };
        // Another life may have another clock, and cannot know that the first was wrong.
        let ahead = if by == written.by { ahead } else { ahead.min(written.clock_ahead) };
        let due = Timestamp::from_millis(due.as_millis() - ahead);
        let held = self.held.get(&route.endpoint).copied().unwrap_or(due);
        let late = now.since(due.max(held).max(self.hindered));
        if late > self.bound {
            return Err(format!(
                "attempt {} of {route} begins {late} late, and {} is the most",
                written.state.attempts, self.bound
            ));
        }
        RIGHT
    }
}

/// The longest of the times for which a gate can say "not now".
fn hold_max(policy: &Policy) -> Millis {
    let gate = &policy.gate;
    let pause = gate.breaker.as_ref().map(|breaker| breaker.pause_max);
    let rate = gate.rate.as_ref().map(|rate| rate.per);
    let drain = gate.drain.as_ref().map(|drain| drain.per);
    let holds = [Some(policy.lease()), Some(gate.throttle_max), pause, rate, drain];
    holds.into_iter().flatten().max().unwrap_or(Millis::ZERO)
}

impl Checker for Punctual {
    fn invariant(&self) -> Invariant {
        self.invariant
    }

    fn see(&mut self, now: Timestamp, fact: &Fact<'_>) -> Look {
        match fact {
            Fact::Registered { endpoint, is_sound } => {
                self.hold(*endpoint, now);
                if *is_sound {
                    self.sound.insert(*endpoint);
                }
                NOTHING
            }
            Fact::Enabled { endpoint } => {
                self.hold(*endpoint, now);
                NOTHING
            }
            Fact::Served { policy } => {
                self.hold_max = hold_max(policy);
                NOTHING
            }
            Fact::Deferred { endpoint, until } => {
                // A gate that says so for longer than its rule allows is no excuse.
                let since = *self.closed_since.entry(*endpoint).or_insert(now);
                self.hold(*endpoint, (*until).min(since.plus(self.hold_max)));
                NOTHING
            }
            Fact::Admitted { endpoint, .. } | Fact::Signalled { endpoint, .. } => {
                self.closed_since.remove(endpoint);
                NOTHING
            }
            Fact::Hindered { until } => {
                self.hindered = self.hindered.max(*until);
                self.closed_since.clear();
                NOTHING
            }
            Fact::Written(written) => self.written(now, written),
            _ => NOTHING,
        }
    }
}
