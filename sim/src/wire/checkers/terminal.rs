//! I5: what is settled stays settled. No scenario replays deliveries yet, so there is no exception.

use std::collections::BTreeMap;

use hookproof_core::delivery::Phase;

use super::{Checker, Invariant, Look, View, count};

/// I5.
#[derive(Default)]
pub(super) struct Terminal {
    settled: BTreeMap<String, Phase>,
}

impl Checker for Terminal {
    fn invariant(&self) -> Invariant {
        Invariant::Terminal
    }

    fn look(&mut self, view: &View<'_>) -> Look {
        for delivery in &view.sender.deliveries {
            let before = self.settled.get(delivery.id.as_str());
            match (before, delivery.phase) {
                (Some(before), now) if *before != now => {
                    return Err(format!("{} was {before:?} and became {now:?}", delivery.id));
                }
                (Some(_), _) | (None, Phase::Scheduled { .. } | Phase::InFlight { .. }) => {}
                (None, settled) => {
                    self.settled.insert(delivery.id.as_str().to_owned(), settled);
                }
            }
        }
        Ok(count(self.settled.len()))
    }
}
