//! Which endpoints work: some stay broken for ever, and none does during an outage.

use hookproof_core::time::Timestamp;

use crate::choices::Choices;
use crate::fact::EndpointNo;
use crate::history::epoch;
use crate::scenario::{Break, Scenario};

/// The endpoints of one history, by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Population {
    /// How each fails for ever, if it does; the first never does.
    breaks: Vec<Option<Break>>,
    /// A time in which all fail, and how.
    outage: Option<(Timestamp, Timestamp, Break)>,
}

impl Population {
    /// Draws which of so many endpoints are broken.
    pub(super) fn draw(scenario: &Scenario, choices: &Choices, endpoints: usize) -> Self {
        let broken = |number: u32| {
            let who = ("endpoint", number);
            let is_broken = number > 0
                && scenario.broken_per_mille > 0
                && choices.chance(who, "broken", scenario.broken_per_mille);
            if !is_broken {
                return None;
            }
            let count = u64::try_from(scenario.breaks.len()).unwrap_or(1);
            let which = usize::try_from(choices.draw(who, "breaks", count)).unwrap_or(0);
            scenario.breaks.get(which).copied()
        };
        let outage = scenario.outage.map(|outage| {
            let from = epoch().plus(outage.from);
            (from, from.plus(outage.lasts), outage.fails)
        });
        Self { breaks: (0..).take(endpoints).map(broken).collect(), outage }
    }

    /// Whether an endpoint works once the faults have ended.
    pub(super) fn is_sound(&self, endpoint: EndpointNo) -> bool {
        self.broken(endpoint).is_none()
    }

    /// How an endpoint fails at this moment.
    pub(super) fn fails(&self, endpoint: EndpointNo, now: Timestamp) -> Option<Break> {
        let outage = self.outage.filter(|(from, to, _)| *from <= now && now < *to);
        self.broken(endpoint).or(outage.map(|(_, _, fails)| fails))
    }

    fn broken(&self, endpoint: EndpointNo) -> Option<Break> {
        let index = usize::try_from(endpoint.0).unwrap_or(usize::MAX);
        self.breaks.get(index).copied().flatten()
    }
}
