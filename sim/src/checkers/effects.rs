//! I3 and I4: each event has its effect, once.

use std::collections::BTreeMap;

use hookproof_core::delivery::Phase;
use hookproof_core::time::Timestamp;

use super::{Checker, Invariant, Look, NOTHING, RIGHT};
use crate::fact::{End, EndpointNo, EntryEnd, EventNo, Fact};

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
    /// What is final at the receiver, and whether its effect is applied.
    worked_off: BTreeMap<(EndpointNo, EventNo), bool>,
    /// How often a worker has claimed an entry, and how often one may.
    claims: BTreeMap<(EndpointNo, EventNo), u32>,
    claims_max: u32,
    /// The version that each entity has.
    versions: BTreeMap<u32, u64>,
}

impl DoneMeansDone {
    pub(super) fn new(claims_max: u32, is_lax: bool) -> Self {
        Self {
            effects: Effects::new(),
            is_lax,
            delivered: BTreeMap::new(),
            worked_off: BTreeMap::new(),
            claims: BTreeMap::new(),
            claims_max,
            versions: BTreeMap::new(),
        }
    }

    /// An entry that ends without its effect needs a reason that the history explains.
    fn worked_off(&mut self, key: (EndpointNo, EventNo), end: EntryEnd) -> Look {
        self.worked_off.insert(key, end == EntryEnd::Applied);
        let (source, event) = key;
        match end {
            EntryEnd::Applied => NOTHING,
            EntryEnd::GivenUp => {
                let (claims, most) = (self.claims.get(&key).copied().unwrap_or(0), self.claims_max);
                if claims == most {
                    return RIGHT;
                }
                Err(format!("{event} is given up at {source} after {claims} claims, not {most}"))
            }
            EntryEnd::Superseded { version: None } => {
                Err(format!("{event} is superseded at {source}, and is about no entity"))
            }
            EntryEnd::Superseded { version: Some((entity, version)) } => {
                match self.versions.get(&entity) {
                    Some(has) if *has >= version => RIGHT,
                    has => Err(format!(
                        "{event} with version {version} is superseded at {source}, and entity \
                         {entity} has {has:?}"
                    )),
                }
            }
        }
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
            Fact::Claimed { source, event } => {
                *self.claims.entry((*source, *event)).or_insert(0) += 1;
            }
            Fact::Entity { entity, version } => {
                self.versions.insert(*entity, *version);
            }
            Fact::WorkedOff { source, event, end } => {
                return self.worked_off((*source, *event), *end);
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
