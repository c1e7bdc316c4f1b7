//! I5: what is settled stays settled.

use std::collections::{BTreeMap, BTreeSet};

use hookproof_core::delivery::{DeadReason, Origin, Phase};
use hookproof_core::time::Timestamp;

use super::{Checker, Invariant, Look, NOTHING, RIGHT};
use crate::fact::{EndpointNo, Fact, Route, Written};

/// I5.
#[derive(Default)]
pub(super) struct Terminal {
    routes: BTreeMap<Route, Known>,
    deleted: BTreeSet<EndpointNo>,
}

#[derive(Clone, Copy)]
struct Known {
    phase: Phase,
    /// What the delivery was before the replay that is under way.
    before_replay: Option<Phase>,
}

fn is_replay(phase: Phase) -> bool {
    match phase {
        Phase::Scheduled { origin, .. } | Phase::InFlight { origin, .. } => {
            matches!(origin, Origin::Replay { .. })
        }
        Phase::Delivered { .. } | Phase::Dead { .. } | Phase::Cancelled { .. } => false,
    }
}

fn is_settled(phase: Phase) -> bool {
    matches!(phase, Phase::Delivered { .. } | Phase::Dead { .. } | Phase::Cancelled { .. })
}

impl Checker for Terminal {
    fn invariant(&self) -> Invariant {
        Invariant::Terminal
    }

    fn see(&mut self, _now: Timestamp, fact: &Fact<'_>) -> Look {
        if let Fact::Deleted { endpoint } = fact {
            self.deleted.insert(*endpoint);
        }
        let Fact::Written(written) = fact else { return NOTHING };
        let phase = written.state.phase;
        let before = self.routes.get(&written.route).copied();
        let before_replay = match before {
            Some(known) if is_replay(phase) => Some(known.before_replay.unwrap_or(known.phase)),
            _ => None,
        };
        self.routes.insert(written.route, Known { phase, before_replay });
        let Some(before) = before else { return NOTHING };
        if written.is_asked {
            return RIGHT;
        }
        match before.before_replay {
            Some(settled) if !is_replay(phase) => {
                let is_deleted = self.deleted.contains(&written.route.endpoint);
                after_replay(written, settled, is_deleted)
            }
            Some(_) => RIGHT,
            None if is_settled(before.phase) && before.phase != phase => Err(format!(
                "{} was {} and became {}",
                written.route,
                name(before.phase),
                name(phase)
            )),
            None => RIGHT,
        }
    }
}

/// A replay that is over leaves a success, or what was there before.
fn after_replay(written: &Written<'_>, before: Phase, is_deleted: bool) -> Look {
    let now = written.state.phase;
    let is_right = match (now, before) {
        (Phase::Delivered { .. }, _) => true,
        (Phase::Dead { reason: DeadReason::Gone, .. }, Phase::Scheduled { .. }) => true,
        // What had not been settled goes with its endpoint.
        (Phase::Cancelled { .. }, Phase::Scheduled { .. }) if is_deleted => true,
        (now, before) => now == before,
    };
    if is_right {
        return RIGHT;
    }
    Err(format!(
        "{} was {} before a replay, and is {} after it",
        written.route,
        name(before),
        name(now)
    ))
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Scheduled { .. } => "scheduled",
        Phase::InFlight { .. } => "in flight",
        Phase::Delivered { .. } => "delivered",
        Phase::Dead { .. } => "dead",
        Phase::Cancelled { .. } => "cancelled",
    }
}
