//! I3 and I4: each event has its effect, once.

use std::collections::BTreeMap;

use hookproof_core::delivery::Phase;
use hookproof_core::time::Timestamp;

use super::{Checker, Invariant, Look, NOTHING, RIGHT};
use crate::fact::{End, EndpointNo, EventNo, Fact};

type Effects = BTreeMap<(EndpointNo, EventNo), u32>;

/// I3.
pub(super) struct ExactlyOnce {
    effects: Effects,
    /// A broken harness: "at least once" will do.
    is_lax: bool,
}

impl ExactlyOnce {
    pub(super) fn new(is_lax: bool) -> Self {
        Self { effects: Effects::new(), is_lax }
    }
}

impl Checker for ExactlyOnce {
    fn invariant(&self) -> Invariant {
        Invariant::ExactlyOnce
    }

    fn see(&mut self, _now: Timestamp, fact: &Fact<'_>) -> Look {
        let Fact::Effect { source, event } = fact else { return NOTHING };
        let times = self.effects.entry((*source, *event)).or_insert(0);
        *times += 1;
        if *times > 1 && !self.is_lax {
            return Err(format!("{event} had its effect at {source} {times} times"));
        }
        RIGHT
    }
}

/// I4, an equality: it is judged once everything has drained.
pub(super) struct DoneMeansDone {
    effects: Effects,
    is_lax: bool,
    delivered: BTreeMap<(EndpointNo, EventNo), bool>,
    worked_off: BTreeMap<(EndpointNo, EventNo), bool>,
}

impl DoneMeansDone {
    pub(super) fn new(is_lax: bool) -> Self {
        let (delivered, worked_off) = (BTreeMap::new(), BTreeMap::new());
        Self { effects: Effects::new(), is_lax, delivered, worked_off }
    }

    /// Whether there are as many effects as there should be.
    fn is_right(&self, key: &(EndpointNo, EventNo), wanted: u32) -> bool {
        let times = self.times(key);
        times == wanted || (self.is_lax && times > wanted)
    }

    fn times(&self, key: &(EndpointNo, EventNo)) -> u32 {
        self.effects.get(key).copied().unwrap_or(0)
    }
}

impl Checker for DoneMeansDone {
    fn invariant(&self) -> Invariant {
        Invariant::DoneMeansDone
    }

    fn see(&mut self, _now: Timestamp, fact: &Fact<'_>) -> Look {
        match fact {
            Fact::Effect { source, event } => {
                *self.effects.entry((*source, *event)).or_insert(0) += 1;
            }
            Fact::WorkedOff { source, event, is_applied } => {
                self.worked_off.insert((*source, *event), *is_applied);
            }
            Fact::Written(written) => {
                let key = (written.route.endpoint, written.route.event);
                let is_delivered = matches!(written.state.phase, Phase::Delivered { .. });
                self.delivered.insert(key, is_delivered);
            }
            _ => {}
        }
        NOTHING
    }

    fn end(&mut self, end: &End) -> Look {
        if !end.is_drained {
            return NOTHING;
        }
        let mut looked = 0;
        for (key, is_applied) in &self.worked_off {
            let (source, event) = key;
            if !self.is_right(key, u32::from(*is_applied)) {
                let is = if *is_applied { "applied" } else { "given up or superseded" };
                let times = self.times(key);
                return Err(format!(
                    "{event} is {is} at {source}, and had its effect {times} times"
                ));
            }
            looked += 1;
        }
        for (key, _) in self.delivered.iter().filter(|(_, is_delivered)| **is_delivered) {
            let (source, event) = key;
            if !self.is_right(key, 1) && self.worked_off.get(key) != Some(&false) {
                let times = self.times(key);
                return Err(format!(
                    "{event} is delivered to {source}, and had its effect {times} times"
                ));
            }
            looked += 1;
        }
        Ok(looked)
    }
}
