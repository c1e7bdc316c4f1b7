//! I3 and I4: each event has its effect, once.

use std::collections::BTreeMap;

use hookproof_core::delivery::Phase;

use super::{Checker, Invariant, Look, View, count};

/// I3.
pub(super) struct ExactlyOnce;

impl Checker for ExactlyOnce {
    fn invariant(&self) -> Invariant {
        Invariant::ExactlyOnce
    }

    fn look(&mut self, view: &View<'_>) -> Look {
        let effects = &view.receiver.effects;
        match effects.iter().find(|(_, times)| **times > 1) {
            Some(((source, event_id), times)) => {
                Err(format!("{event_id} from {source} had its effect {times} times"))
            }
            None => Ok(count(effects.len())),
        }
    }
}

/// I4, an equality: it looks once everything has drained.
pub(super) struct DoneMeansDone;

impl Checker for DoneMeansDone {
    fn invariant(&self) -> Invariant {
        Invariant::DoneMeansDone
    }

    fn look(&mut self, view: &View<'_>) -> Look {
        if !view.is_drained {
            return Ok(0);
        }
        let sources: BTreeMap<&str, &str> = view
            .facts
            .endpoints
            .iter()
            .map(|endpoint| (endpoint.endpoint_id.as_str(), endpoint.source.as_str()))
            .collect();
        let mut looked = 0;
        for delivery in &view.sender.deliveries {
            if !matches!(delivery.phase, Phase::Delivered { .. }) {
                continue;
            }
            let source = sources.get(delivery.endpoint_id.as_str()).copied().unwrap_or_default();
            let event_id = delivery.event_id.as_str();
            let key = (source.to_owned(), event_id.to_owned());
            let times = view.receiver.effects.get(&key).copied().unwrap_or(0);
            if times != 1 {
                return Err(format!(
                    "{event_id} to {source} is delivered, and had its effect {times} times"
                ));
            }
            looked += 1;
        }
        for (key, phase) in &view.receiver.inbox {
            let times = view.receiver.effects.get(key).copied().unwrap_or(0);
            if times != u64::from(phase == "applied") {
                let (source, event_id) = key;
                return Err(format!(
                    "{event_id} from {source} is {phase} in the inbox, and had its effect {times} times"
                ));
            }
            looked += 1;
        }
        Ok(looked)
    }
}
