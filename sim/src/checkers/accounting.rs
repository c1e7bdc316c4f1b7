//! I1 and I2: what is there is what was published, no less and no more.

use std::collections::{BTreeMap, BTreeSet};

use hookproof_core::time::Timestamp;

use super::{Checker, Invariant, Look, NOTHING, RIGHT};
use crate::fact::{End, EndpointNo, EventNo, Fact, PublishNo, Route};

/// I1. An event is owed to the endpoints that are registered when it is stored.
#[derive(Default)]
pub(super) struct NoLoss {
    endpoints: BTreeSet<EndpointNo>,
    stored: BTreeMap<EventNo, (PublishNo, Vec<EndpointNo>)>,
    waiting: BTreeSet<EventNo>,
    routes: BTreeSet<Route>,
    accepted: BTreeMap<PublishNo, EventNo>,
}

impl NoLoss {
    /// Whether an accepted event is where it is owed, or waits to be sent there.
    fn check(&self, publish: PublishNo, event: EventNo) -> Look {
        let Some((as_publish, owed)) = self.stored.get(&event) else {
            return Err(format!("{publish} was accepted as {event}, which is not stored"));
        };
        if *as_publish != publish {
            return Err(format!("{publish} was accepted as {event}, which is {as_publish}"));
        }
        if self.waiting.contains(&event) {
            return RIGHT;
        }
        let is_there =
            |endpoint: &&EndpointNo| !self.routes.contains(&Route { event, endpoint: **endpoint });
        match owed.iter().find(is_there) {
            Some(endpoint) => {
                Err(format!("{event} is accepted, and has no delivery to {endpoint}"))
            }
            None => RIGHT,
        }
    }
}

impl Checker for NoLoss {
    fn invariant(&self) -> Invariant {
        Invariant::NoLoss
    }

    fn see(&mut self, _now: Timestamp, fact: &Fact<'_>) -> Look {
        match fact {
            Fact::Registered { endpoint, .. } => {
                self.endpoints.insert(*endpoint);
                NOTHING
            }
            Fact::Deleted { endpoint } => {
                self.endpoints.remove(endpoint);
                NOTHING
            }
            Fact::Stored { event, publish } => {
                let owed = self.endpoints.iter().copied().collect();
                match self.stored.insert(*event, (*publish, owed)) {
                    None => NOTHING,
                    Some(_) => Err(format!("{event} was stored twice")),
                }
            }
            Fact::Queued { event, waits: true } => {
                self.waiting.insert(*event);
                NOTHING
            }
            Fact::Queued { event, waits: false } => {
                self.waiting.remove(event);
                let accepted = self.accepted.iter().find(|(_, as_event)| *as_event == event);
                accepted.map_or(NOTHING, |(publish, event)| self.check(*publish, *event))
            }
            Fact::Accepted { publish, event } => {
                if let Some(before) = self.accepted.insert(*publish, *event)
                    && before != *event
                {
                    return Err(format!("{publish} was accepted as {before} and as {event}"));
                }
                self.check(*publish, *event)
            }
            Fact::Written(written) => {
                if !self.stored.contains_key(&written.route.event) {
                    return Err(format!("{} is a delivery of nothing", written.route));
                }
                self.routes.insert(written.route);
                NOTHING
            }
            Fact::Doubled { route } => Err(format!("{route} has two deliveries, and is owed one")),
            _ => NOTHING,
        }
    }

    fn end(&mut self, _end: &End) -> Look {
        let mut looked = 0;
        for (publish, event) in &self.accepted {
            looked += self.check(*publish, *event)?;
        }
        Ok(looked)
    }
}

/// I2.
#[derive(Default)]
pub(super) struct NoInvention {
    wanted: BTreeSet<PublishNo>,
    stored: BTreeSet<EventNo>,
}

impl NoInvention {
    fn check(&self, event: EventNo, what: &str) -> Look {
        if self.stored.contains(&event) {
            return RIGHT;
        }
        Err(format!("{what} {event}, which nobody published"))
    }
}

impl Checker for NoInvention {
    fn invariant(&self) -> Invariant {
        Invariant::NoInvention
    }

    fn see(&mut self, _now: Timestamp, fact: &Fact<'_>) -> Look {
        match fact {
            Fact::Wanted { publish } => {
                self.wanted.insert(*publish);
                NOTHING
            }
            Fact::Stored { event, publish } => {
                self.stored.insert(*event);
                if self.wanted.contains(publish) {
                    return RIGHT;
                }
                Err(format!("{event} is stored for {publish}, which nobody wanted"))
            }
            Fact::Sent(request) => self.check(request.event, "a request was sent for"),
            Fact::Effect { event, .. } => self.check(*event, "there is an effect of"),
            _ => NOTHING,
        }
    }
}
