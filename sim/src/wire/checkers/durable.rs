//! I15: what was acknowledged is there, after every restart too.

use std::collections::BTreeMap;

use hookproof_core::delivery::Phase;

use super::{Checker, Invariant, Look, View, count};

/// I15.
#[derive(Default)]
pub(super) struct Durable {
    /// Delivery → the highest version and the most attempts ever seen committed.
    seen: BTreeMap<String, (u64, u64)>,
}

impl Checker for Durable {
    fn invariant(&self) -> Invariant {
        Invariant::Durable
    }

    fn look(&mut self, view: &View<'_>) -> Look {
        let facts = view.facts;
        if let Some(id) =
            facts.acknowledged.values().find(|id| !view.sender.events.contains_key(*id))
        {
            return Err(format!("{id} was acknowledged to the publisher and is not stored"));
        }
        if let Some((source, id)) =
            facts.taken.iter().find(|taken| !view.receiver.inbox.contains_key(*taken))
        {
            return Err(format!("{id} from {source} was answered with 2xx and is not stored"));
        }
        let mut now = BTreeMap::new();
        for delivery in &view.sender.deliveries {
            let id = delivery.id.as_str();
            let attempts = view.sender.attempts.get(id).copied().unwrap_or(0);
            let under_way = u64::from(matches!(delivery.phase, Phase::InFlight { .. }));
            if attempts + under_way != u64::from(delivery.attempts) {
                return Err(format!(
                    "{id} has begun {} attempts, {under_way} of them under way, and {attempts} records",
                    delivery.attempts
                ));
            }
            now.insert(id.to_owned(), (delivery.version, attempts));
        }
        for (id, (version, attempts)) in &self.seen {
            match now.get(id) {
                Some((v, a)) if v >= version && a >= attempts => {}
                found => {
                    return Err(format!(
                        "{id} had version {version} and {attempts} attempts; now there is {found:?}"
                    ));
                }
            }
        }
        self.seen = now;
        Ok(count(facts.acknowledged.len() + facts.taken.len()))
    }
}
