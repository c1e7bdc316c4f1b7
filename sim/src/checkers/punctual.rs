//! The part of I8 and I10 that is about what is late.

use std::collections::{BTreeMap, BTreeSet};

use hookproof_core::delivery::Phase;
use hookproof_core::policy::Policy;
use hookproof_core::time::{Millis, Timestamp};

use super::{Checker, Invariant, Look, NOTHING, RIGHT, reference};
use crate::fact::{EndpointNo, Fact, Life, Route, Written};

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
    let holds = [Some(reference::lease(policy)), Some(gate.throttle_max), pause, rate, drain];
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
