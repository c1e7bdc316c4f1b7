//! I14: one writer, and one attempt at a time.

use std::collections::BTreeMap;

use hookproof_core::delivery::Phase;
use hookproof_core::time::Timestamp;

use super::{Checker, Invariant, Look, NOTHING, RIGHT};
use crate::fact::{EndpointNo, Fact, Life, Route, SentRequest, Written};

/// I14. A shard is an endpoint here.
#[derive(Default)]
pub(super) struct Fencing {
    /// What was last written of each delivery: its version, and whether an attempt held it.
    written: BTreeMap<Route, (u64, bool)>,
    /// The highest epoch of each shard, and who wrote in it.
    epochs: BTreeMap<EndpointNo, (u64, Life)>,
    under_way: BTreeMap<Route, SentRequest>,
}

impl Fencing {
    fn written(&mut self, written: &Written<'_>) -> Look {
        let Written { route, state, by, epoch, .. } = *written;
        let is_held = matches!(state.phase, Phase::InFlight { .. });
        let before = self.written.insert(route, (state.version, is_held));
        let expected = before.map_or(0, |(version, _)| version + 1);
        if state.version != expected {
            return Err(format!(
                "{route} was written from version {}, and {} was stored",
                state.version.wrapping_sub(1),
                expected.wrapping_sub(1)
            ));
        }
        if written.is_asked {
            // A person's wish is not made by the owner of the shard; the version guards it. It may
            // end what is under way, but not let a second attempt begin beside the first.
            let begins_again = matches!(state.phase, Phase::Scheduled { .. });
            return match before {
                Some((_, true)) if begins_again => Err(format!(
                    "an attempt of {route} is under way, and somebody clears its claim"
                )),
                _ => RIGHT,
            };
        }
        match self.epochs.get(&route.endpoint) {
            Some((highest, _)) if *highest > epoch => Err(format!(
                "{route} was written in epoch {epoch}, after {} began epoch {highest}",
                route.endpoint
            )),
            Some((highest, writer)) if *highest == epoch && *writer != by => Err(format!(
                "epoch {epoch} of {} has two writers: {} and {}",
                route.endpoint,
                told(*writer),
                told(by)
            )),
            _ => {
                self.epochs.insert(route.endpoint, (epoch, by));
                RIGHT
            }
        }
    }

    fn sent(&mut self, now: Timestamp, request: &SentRequest) -> Look {
        let before = self.under_way.insert(request.route, *request);
        match before.filter(|before| now < before.ends_by) {
            Some(before) => Err(format!(
                "attempt {} of {} is under way, and attempt {} begins beside it",
                before.attempt, request.route, request.attempt
            )),
            None => RIGHT,
        }
    }
}

fn told(life: Life) -> String {
    format!("sender {} in its life {}", life.process, life.number)
}

impl Checker for Fencing {
    fn invariant(&self) -> Invariant {
        Invariant::Fencing
    }

    fn see(&mut self, now: Timestamp, fact: &Fact<'_>) -> Look {
        match fact {
            Fact::Written(written) => self.written(written),
            Fact::Sent(request) => self.sent(now, request),
            Fact::Ended { route, attempt } => {
                if self.under_way.get(route).is_some_and(|request| request.attempt == *attempt) {
                    self.under_way.remove(route);
                }
                NOTHING
            }
            _ => NOTHING,
        }
    }
}
