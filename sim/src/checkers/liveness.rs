//! I13: everything ends where it belongs.

use std::collections::{BTreeMap, BTreeSet};

use hookproof_core::delivery::{DeadReason, Phase};
use hookproof_core::time::Timestamp;

use super::{Checker, Invariant, Look, NOTHING, reference};
use crate::fact::{End, EndpointNo, Fact, Route};

/// I13.
#[derive(Default)]
pub(super) struct Liveness {
    attempts_max: u32,
    broken: BTreeSet<EndpointNo>,
    /// Endpoints that were disabled or deleted, or whose policy says more than attempts.
    touched: BTreeSet<EndpointNo>,
    disabled: BTreeSet<EndpointNo>,
    deleted: BTreeSet<EndpointNo>,
    accepted: BTreeSet<u32>,
    wanted: BTreeSet<u32>,
    routes: BTreeMap<Route, State>,
    waits_at_receiver: BTreeSet<Route>,
}

#[derive(Default)]
struct State {
    phase: Option<Phase>,
    scheduled_attempts: u32,
    notices_owed: u32,
    notices: u32,
    /// Somebody replayed it or cancelled it.
    is_asked: bool,
    /// Somebody cancelled it.
    is_withdrawn: bool,
}

impl Checker for Liveness {
    fn invariant(&self) -> Invariant {
        Invariant::Liveness
    }

    fn see(&mut self, _now: Timestamp, fact: &Fact<'_>) -> Look {
        match fact {
            Fact::Served { policy } => {
                self.attempts_max = reference::attempts_max(&policy.schedule);
            }
            Fact::Registered { endpoint, is_sound: false } => {
                self.broken.insert(*endpoint);
            }
            Fact::Disabled { endpoint, has_cause } => {
                self.touched.insert(*endpoint);
                self.disabled.insert(*endpoint);
                if !has_cause {
                    return Err(format!("{endpoint} was disabled for no reason"));
                }
            }
            Fact::Enabled { endpoint } => {
                self.disabled.remove(endpoint);
            }
            Fact::Deleted { endpoint } => {
                self.touched.insert(*endpoint);
                self.deleted.insert(*endpoint);
            }
            Fact::Wanted { publish } => {
                self.wanted.insert(publish.0);
            }
            Fact::Accepted { publish, .. } => {
                self.accepted.insert(publish.0);
            }
            Fact::Written(written) => {
                let state = self.routes.entry(written.route).or_default();
                // It is written first by whoever takes the publish, which is nobody's wish for it.
                let is_asked = written.is_asked && state.phase.is_some();
                let phase = written.state.phase;
                state.is_asked |= is_asked;
                state.is_withdrawn |= is_asked && matches!(phase, Phase::Cancelled { .. });
                state.phase = Some(phase);
                state.scheduled_attempts = written.state.scheduled_attempts;
                state.notices_owed += u32::from(written.has_notice);
            }
            Fact::Noticed { route } => self.routes.entry(*route).or_default().notices += 1,
            Fact::Recorded { source, event } => {
                self.waits_at_receiver.insert(Route { event: *event, endpoint: *source });
            }
            Fact::WorkedOff { source, event, .. } | Fact::Forgotten { source, event } => {
                self.waits_at_receiver.remove(&Route { event: *event, endpoint: *source });
            }
            _ => {}
        }
        NOTHING
    }

    fn end(&mut self, end: &End) -> Look {
        let left = self.what_is_left(end.is_drained);
        if !end.is_drained || !left.is_empty() {
            let what = if left.is_empty() { "something is still under way" } else { &left };
            return Err(format!("the bound is over: {what}"));
        }
        let mut looked = 1;
        for (route, state) in &self.routes {
            if state.notices != state.notices_owed {
                return Err(format!(
                    "{route} owes its owner {} notices, and {} arrived",
                    state.notices_owed, state.notices
                ));
            }
            let is_cancelled = matches!(state.phase, Some(Phase::Cancelled { .. }));
            if is_cancelled && !state.is_withdrawn && !self.deleted.contains(&route.endpoint) {
                return Err(format!("{route} is cancelled, and nobody asked for that"));
            }
            if self.broken.contains(&route.endpoint) && !self.touched.contains(&route.endpoint) {
                self.ends_dead(*route, state)?;
            }
            looked += 1;
        }
        Ok(looked)
    }
}

impl Liveness {
    /// What goes to an endpoint that is broken for good ends dead after exactly the configured attempts,
    /// and its owner is told so exactly once.
    fn ends_dead(&self, route: Route, state: &State) -> Look {
        match state.phase {
            Some(Phase::Dead { reason: DeadReason::Exhausted, .. })
                if state.scheduled_attempts != self.attempts_max =>
            {
                Err(format!(
                    "{route} ended after {} attempts, and should after {}",
                    state.scheduled_attempts, self.attempts_max
                ))
            }
            Some(Phase::Dead { .. }) if state.notices != 1 && !state.is_asked => {
                Err(format!("{route} is dead, and its owner was told {} times", state.notices))
            }
            Some(Phase::Delivered { .. }) => {
                Err(format!("{route} is delivered, and {} never works", route.endpoint))
            }
            _ => NOTHING,
        }
    }

    /// What should have ended and has not; nothing if all has. A receiver on trial that has drained
    /// owes no effect of what it never acknowledged.
    fn what_is_left(&self, is_drained: bool) -> String {
        let is_open = |phase: &Option<Phase>| {
            matches!(phase, Some(Phase::Scheduled { .. } | Phase::InFlight { .. }))
        };
        let mut left = Vec::new();
        let publishes = self.wanted.difference(&self.accepted).count();
        if publishes > 0 {
            left.push(format!("{publishes} publishes are not accepted"));
        }
        let open: Vec<_> = self
            .routes
            .iter()
            .filter(|(route, state)| {
                is_open(&state.phase) && !self.disabled.contains(&route.endpoint)
            })
            .map(|(route, _)| route)
            .collect();
        if let Some(first) = open.first() {
            left.push(format!("{} deliveries are open, first {first}", open.len()));
        }
        if let Some(first) = self.waits_at_receiver.first().filter(|_| !is_drained) {
            let count = self.waits_at_receiver.len();
            left.push(format!("{count} received events are not worked off, first {first}"));
        }
        left.join("; ")
    }
}
