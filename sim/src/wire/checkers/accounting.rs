//! I1 and I2: what is there is what was published, no less and no more.

use std::collections::{BTreeMap, BTreeSet};

use super::{Checker, Invariant, Look, View, count};

/// I1. All endpoints are registered before the first publish, so every event is owed to all of them.
pub(super) struct NoLoss;

impl Checker for NoLoss {
    fn invariant(&self) -> Invariant {
        Invariant::NoLoss
    }

    fn look(&mut self, view: &View<'_>) -> Look {
        let facts = view.facts;
        for (key, event_id) in &facts.acknowledged {
            match view.sender.events.get(event_id) {
                Some((stored_key, _)) if stored_key == key => {}
                Some((other, _)) => {
                    return Err(format!("{event_id} was acknowledged for {key}, but is {other}"));
                }
                None => return Err(format!("{key} was acknowledged as {event_id} and is gone")),
            }
        }
        let mut owed: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for event_id in view.sender.events.keys() {
            for endpoint in &facts.endpoints {
                owed.insert((event_id, &endpoint.endpoint_id), 0);
            }
        }
        for delivery in &view.sender.deliveries {
            let key = (delivery.event_id.as_str(), delivery.endpoint_id.as_str());
            match owed.get_mut(&key) {
                Some(found) => *found += 1,
                None => return Err(format!("delivery {} is owed to nobody", delivery.id)),
            }
        }
        if let Some(((event, endpoint), found)) = owed.iter().find(|(_, found)| **found != 1) {
            return Err(format!("{event} has {found} deliveries to {endpoint}, and should have 1"));
        }
        Ok(count(facts.acknowledged.len()))
    }
}

/// I2.
pub(super) struct NoInvention;

impl Checker for NoInvention {
    fn invariant(&self) -> Invariant {
        Invariant::NoInvention
    }

    fn look(&mut self, view: &View<'_>) -> Look {
        for (event_id, (key, body)) in &view.sender.events {
            if view.facts.wanted.get(key) != Some(body) {
                return Err(format!("{event_id} is stored, but nobody published it as {key}"));
            }
        }
        for request in &view.facts.requests {
            let event_id = request.header("webhook-id").unwrap_or_default();
            match view.sender.events.get(event_id) {
                Some((_, body)) if *body == request.body => {}
                Some(_) => return Err(format!("a request for {event_id} had another body")),
                None => return Err(format!("a request was sent for {event_id}, which is nothing")),
            }
        }
        let sources: BTreeSet<&str> =
            view.facts.endpoints.iter().map(|endpoint| endpoint.source.as_str()).collect();
        for (source, event_id) in view.receiver.effects.keys() {
            if !sources.contains(source.as_str()) || !view.sender.events.contains_key(event_id) {
                return Err(format!("{event_id} from {source} had an effect, but is nothing"));
            }
        }
        Ok(count(view.sender.events.len() + view.facts.requests.len()))
    }
}
