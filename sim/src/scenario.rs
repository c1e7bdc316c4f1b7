//! What a history is about: how many events and endpoints, which policies, which faults, how long.

use hookproof_core::classify::Classification;
use hookproof_core::gate::{BreakerRule, GateRule};
use hookproof_core::inbox::InboxRule;
use hookproof_core::policy::Policy;
use hookproof_core::schedule::{Backoff, Jitter, Schedule};
use hookproof_core::time::Millis;

use crate::choices::Choices;
use crate::fault::Fault;

/// A kind of history. Bounds are inclusive; what lies between them is drawn per history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// How many events are published.
    pub events: (u64, u64),
    /// How many endpoints each of them goes to.
    pub endpoints: (u64, u64),
    /// The faults that can be on.
    pub faults: Vec<Fault>,
    /// How long events are published, from the start.
    pub publishing: Millis,
    /// How long faults are on, from the start; afterwards everything must drain.
    pub safety: Millis,
    /// How long draining may take before it counts as a failure.
    pub liveness_bound: Millis,
    /// The most crashes of one host.
    pub crashes_max: u64,
    /// The limits on attempts, one of which is drawn: few, so that deliveries die, or many.
    pub attempts_max: [u32; 2],
    /// The simulated time of one tick of the network; well below the smallest timeout.
    pub tick: Millis,
}

impl Scenario {
    /// Everything at once: the default.
    #[must_use]
    pub fn mixed() -> Self {
        Self {
            name: "mixed",
            events: (3, 10),
            endpoints: (1, 2),
            faults: Fault::ALL.to_vec(),
            publishing: Millis::from_secs(20),
            safety: Millis::from_secs(40),
            liveness_bound: Millis::from_minutes(10),
            crashes_max: 6,
            attempts_max: [40, 4],
            tick: Millis::new(10),
        }
    }

    /// The policy of the sender in one history.
    pub(crate) fn policy(&self, choices: &Choices) -> Policy {
        let few = usize::from(choices.chance("plan", "few attempts", 300));
        Policy {
            schedule: Schedule::new(
                Backoff::Exponential {
                    base: Millis::new(500),
                    factor: 2,
                    cap: Millis::from_secs(20),
                    attempts_max: self.attempts_max[few],
                },
                Jitter::Full,
            ),
            classification: Classification::default(),
            gate: GateRule {
                concurrency_max: 4,
                breaker: Some(BreakerRule {
                    failures_in_a_row: 6,
                    pause: Millis::from_secs(5),
                    pause_max: Millis::from_secs(20),
                    ..BreakerRule::default()
                }),
                // The schedules of these scenarios are short: what is throttled would outlast them.
                throttle_max: Millis::ZERO,
                ..GateRule::default()
            },
            ..Policy::default()
        }
    }

    /// How the receiver works off its inbox.
    pub(crate) fn inbox_rule() -> InboxRule {
        InboxRule { lease: Millis::from_secs(5), ..InboxRule::default() }
    }
}
