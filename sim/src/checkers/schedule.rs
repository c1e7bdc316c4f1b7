//! I8, but for what is late: when attempts may begin, how many there are, and what an outcome leads to.

use std::collections::{BTreeMap, BTreeSet};

use hookproof_core::classify::Verdict;
use hookproof_core::delivery::{AttemptRecord, DeadReason, Delivery, Origin, Phase, Settled};
use hookproof_core::life::WhileHeld;
use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::policy::Policy;
use hookproof_core::schedule::Jitter;
use hookproof_core::time::{Millis, Timestamp};

use super::{Checker, Invariant, Look, NOTHING, RIGHT, reference};
use crate::fact::{Fact, Route, Written};

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

/// I8, but for what is late.
#[derive(Default)]
pub(super) struct OnSchedule {
    policy: Option<Policy>,
    routes: BTreeMap<Route, Known>,
    dialled: BTreeSet<Route>,
}

impl OnSchedule {
    fn written(&mut self, at: Timestamp, written: &Written<'_>) -> Look {
        let route = written.route;
        let now = Known::of(written.state);
        let before = self.routes.insert(route, now);
        let Some(policy) = &self.policy else { return NOTHING };
        let clock = Timestamp::from_millis(at.as_millis() + written.clock_ahead);
        let Some(before) = before else { return is_due_at_once(written, clock) };
        if now.attempts < before.attempts || now.scheduled_attempts < before.scheduled_attempts {
            return Err(format!(
                "{route} has begun {} attempts, and counts {}",
                before.attempts, now.attempts
            ));
        }
        let attempts_max = reference::attempts_max(&policy.schedule);
        if now.scheduled_attempts > attempts_max {
            return Err(format!(
                "attempt {} of {route} begins, and {attempts_max} is the last",
                now.scheduled_attempts
            ));
        }
        match now.phase {
            Phase::InFlight { started_at, attempt, .. } => {
                self.dialled.remove(&route);
                begins(route, attempt, started_at, before)?;
            }
            Phase::Dead { reason: DeadReason::Exhausted, .. }
                if now.scheduled_attempts != attempts_max && !written.is_asked =>
            {
                return Err(format!(
                    "{route} is given up after {} attempts, and has {attempts_max}",
                    now.scheduled_attempts
                ));
            }
            _ => {
                self.has_dialled(written)?;
            }
        }
        is_young_enough(policy, written)?;
        match written.record {
            _ if written.is_asked => is_asked_for(written, clock),
            Some(record) => follows(policy, written, record, before),
            None => moves_by_itself(policy, written, before),
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

/// A new delivery has made no attempt, and its first is due when its event was accepted. The clock is
/// that of whoever writes it; it does not go back while its process lives.
fn is_due_at_once(written: &Written<'_>, clock: Timestamp) -> Look {
    let Delivery { created_at, attempts, scheduled_attempts, phase, .. } = *written.state;
    let route = written.route;
    if attempts > 0 || scheduled_attempts > 0 {
        return Err(format!("{route} is new, and counts {attempts} attempts"));
    }
    match phase {
        Phase::Scheduled { due, origin: Origin::Schedule } if due == created_at && due <= clock => {
            RIGHT
        }
        Phase::Scheduled { due, .. } => Err(format!(
            "{route} is new, accepted at {} ms, written at {} ms and due at {} ms, not at once",
            created_at.as_millis(),
            clock.as_millis(),
            due.as_millis()
        )),
        phase => Err(format!("{route} is new, and {}", now_is(phase))),
    }
}

/// What somebody asked to be sent again is due at once.
fn is_asked_for(written: &Written<'_>, clock: Timestamp) -> Look {
    match written.state.phase {
        Phase::Scheduled { due, origin: Origin::Replay { .. } } if due > clock => {
            Err(format!("{} is replayed, and waits for {}", written.route, due.since(clock)))
        }
        _ => RIGHT,
    }
}

/// A change that ends no attempt, and that nobody asked for: an attempt begins, or none can any more.
fn moves_by_itself(policy: &Policy, written: &Written<'_>, before: Known) -> Look {
    let (route, phase) = (written.route, written.state.phase);
    match (before.phase, phase) {
        (Phase::Scheduled { .. }, Phase::InFlight { .. }) | (_, Phase::Cancelled { .. }) => RIGHT,
        (
            Phase::Scheduled { due, origin: Origin::Schedule },
            Phase::Dead { reason: DeadReason::Expired, at },
        ) => is_too_old(policy, written, at.max(due)),
        // I5 knows what may become of what is settled.
        (Phase::Delivered { .. } | Phase::Dead { .. } | Phase::Cancelled { .. }, _) => NOTHING,
        (Phase::Scheduled { .. } | Phase::InFlight { .. }, _) => {
            Err(format!("{route} {} without an attempt that ended", now_is(phase)))
        }
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

/// How old a delivery is at a time, as its policy counts it.
fn age(policy: &Policy, state: &Delivery, at: Timestamp) -> i128 {
    let held = match policy.life.while_held {
        WhileHeld::Runs => 0,
        WhileHeld::Stops => i128::from(state.held.get()),
    };
    i128::from(at.as_millis()) - i128::from(state.created_at.as_millis()) - held
}

/// No attempt of the schedule begins, or is planned, for what is too old by then.
fn is_young_enough(policy: &Policy, written: &Written<'_>) -> Look {
    let Some(age_max) = policy.life.age_max else { return NOTHING };
    let at = match written.state.phase {
        Phase::InFlight { started_at: at, origin: Origin::Schedule, .. }
        | Phase::Scheduled { due: at, origin: Origin::Schedule } => at,
        _ => return NOTHING,
    };
    let (route, age) = (written.route, age(policy, written.state, at));
    if age > i128::from(age_max.get()) {
        return Err(format!("{route} may become {age_max} old, and is to be tried at {age} ms"));
    }
    RIGHT
}

/// Only what is too old for its next attempt, at that time, ends for its age.
fn is_too_old(policy: &Policy, written: &Written<'_>, at: Timestamp) -> Look {
    let age = age(policy, written.state, at);
    match policy.life.age_max {
        Some(age_max) if age > i128::from(age_max.get()) => RIGHT,
        _ => Err(format!("{} is given up for its age, which is {age} ms", written.route)),
    }
}

/// The outcome of an attempt decides where its delivery goes, by the rules and by nothing else.
fn follows(policy: &Policy, written: &Written<'_>, record: &AttemptRecord, before: Known) -> Look {
    let (route, outcome) = (written.route, as_asked(record.outcome, written.asked));
    let Phase::InFlight { origin, .. } = before.phase else { return NOTHING };
    if matches!(written.state.phase, Phase::Cancelled { .. }) {
        // It went with its endpoint, whatever came of the attempt.
        return NOTHING;
    }
    let verdict = reference::verdict(&policy.classification, &outcome);
    let floor = match (verdict, origin) {
        (Verdict::Retry { floor }, Origin::Schedule) => floor,
        _ => return settles(written, outcome, verdict, origin),
    };
    let attempt = written.state.scheduled_attempts;
    let Some(bounds) = reference::waits(policy, attempt, before.previous_wait, floor) else {
        return match written.state.phase {
            Phase::Dead { reason: DeadReason::Exhausted, .. } => RIGHT,
            Phase::Scheduled { .. } => {
                Err(format!("{route} is tried again after its last attempt"))
            }
            phase => Err(leads_elsewhere(route, outcome, phase)),
        };
    };
    match written.state.phase {
        Phase::Scheduled { due, origin: Origin::Schedule } => {
            is_due_within(written, record, due, bounds)?;
            remembers(policy, written, before, due.since(record.finished_at), floor)
        }
        Phase::Dead { reason: DeadReason::Expired, .. } => {
            is_too_old(policy, written, record.finished_at.plus(bounds.1))
        }
        phase => Err(leads_elsewhere(route, outcome, phase)),
    }
}

/// An outcome, with what was really asked for.
fn as_asked(outcome: Outcome, asked: Option<Millis>) -> Outcome {
    match outcome {
        Outcome::Answered { status, .. } => Outcome::Answered { status, retry_after: asked },
        outcome => outcome,
    }
}

fn now_is(phase: Phase) -> &'static str {
    match phase {
        Phase::Scheduled { .. } => "is tried again",
        Phase::InFlight { .. } => "is under way",
        Phase::Delivered { .. } => "counts as delivered",
        Phase::Dead { reason: DeadReason::Exhausted, .. } => "ends after its last attempt",
        Phase::Dead { reason: DeadReason::Expired, .. } => "ends for its age",
        Phase::Dead { reason: DeadReason::Refused, .. } => "ends as refused",
        Phase::Dead { reason: DeadReason::Gone, .. } => "ends with its endpoint",
        Phase::Cancelled { .. } => "is cancelled",
    }
}

fn leads_elsewhere(route: Route, outcome: Outcome, phase: Phase) -> String {
    format!("{route} {} after {outcome}, which means something else", now_is(phase))
}

/// An attempt after which the schedule goes no further: what its outcome means, or a replay.
fn settles(written: &Written<'_>, outcome: Outcome, verdict: Verdict, origin: Origin) -> Look {
    let phase = written.state.phase;
    let is_right = match (origin, verdict) {
        (_, Verdict::Delivered) => matches!(phase, Phase::Delivered { .. }),
        (Origin::Schedule, Verdict::Final) => {
            matches!(phase, Phase::Dead { reason: DeadReason::Refused, .. })
        }
        (
            Origin::Schedule | Origin::Replay { settled: Settled::Scheduled { .. } },
            Verdict::Gone,
        ) => {
            matches!(phase, Phase::Dead { reason: DeadReason::Gone, .. })
        }
        // What a replay leaves that fails is I5's; but only what was delivered is so afterwards.
        (Origin::Replay { settled }, _) => {
            matches!(settled, Settled::Delivered { .. }) == matches!(phase, Phase::Delivered { .. })
        }
        (Origin::Schedule, Verdict::Retry { .. }) => true,
    };
    if is_right { RIGHT } else { Err(leads_elsewhere(written.route, outcome, phase)) }
}

/// After a failed attempt the next is due when the policy says.
fn is_due_within(
    written: &Written<'_>,
    record: &AttemptRecord,
    due: Timestamp,
    (lowest, highest): (Millis, Millis),
) -> Look {
    let wait = due.since(record.finished_at);
    let is_before = due < record.finished_at;
    if is_before || wait < lowest || wait > highest {
        return Err(format!(
            "attempt {} of {} is due {}{wait} after {}, and may be from {lowest} to {highest}",
            written.state.attempts + 1,
            written.route,
            if is_before { "before, not " } else { "" },
            as_asked(record.outcome, written.asked)
        ));
    }
    RIGHT
}

/// A wait on which the next depends is remembered as it was drawn, without what the receiver asked for.
fn remembers(
    policy: &Policy,
    written: &Written<'_>,
    before: Known,
    wait: Millis,
    floor: Option<Millis>,
) -> Look {
    if policy.schedule.jitter != Jitter::Decorrelated {
        return NOTHING;
    }
    let Delivery { scheduled_attempts, previous_wait, .. } = *written.state;
    let drawn = reference::waits(policy, scheduled_attempts, before.previous_wait, None);
    let is_right = match (previous_wait, drawn) {
        (Some(kept), Some((lowest, highest))) => match floor {
            None => kept == wait,
            Some(_) => kept >= lowest && kept <= highest && kept <= wait,
        },
        _ => false,
    };
    if is_right {
        return RIGHT;
    }
    Err(format!("{} waits {wait}, and remembers {previous_wait:?}", written.route))
}

impl Checker for OnSchedule {
    fn invariant(&self) -> Invariant {
        Invariant::OnSchedule
    }

    fn see(&mut self, now: Timestamp, fact: &Fact<'_>) -> Look {
        match fact {
            Fact::Served { policy } => {
                self.policy = Some((*policy).clone());
                NOTHING
            }
            Fact::Dialled { route, .. } => {
                self.dialled.insert(*route);
                NOTHING
            }
            Fact::Written(written) => self.written(now, written),
            _ => NOTHING,
        }
    }
}
