//! What a history is about: how many events and endpoints, which policies, which faults, how long.
//!
//! A scenario is a plain value. Shipped ones are in [`shipped`]; others are built with the methods
//! here, or read from TOML.

pub mod shipped;
mod wire;

use std::fmt;

use hookproof_core::classify::Classification;
use hookproof_core::gate::{BreakerRule, GateRule};
use hookproof_core::inbox::InboxRule;
use hookproof_core::policy::Policy;
use hookproof_core::schedule::{Backoff, Jitter, Schedule};
use hookproof_core::time::Millis;
use serde::{Deserialize, Serialize};

use crate::checkers::{self, Bounds};
use crate::choices::Choices;
use crate::fault::Fault;

/// A kind of history. Pairs are bounds, both included; what lies between them is drawn per history.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// What it is about, in one line.
    pub about: String,
    /// How many events are published.
    pub events: (u64, u64),
    /// How many endpoints each of them goes to.
    pub endpoints: (u64, u64),
    /// Of a thousand endpoints, how many stay broken for ever; the first never does.
    pub broken_per_mille: u64,
    /// How the broken ones fail.
    pub breaks: Vec<Break>,
    /// A time during which endpoints cannot be reached.
    pub outage: Option<Outage>,
    /// The policies of the sender, one of which is drawn.
    pub policies: Vec<Policy>,
    /// The faults that can be on.
    pub faults: Vec<Fault>,
    /// How long events are published, from the start.
    pub publishing: Millis,
    /// How long faults are on, from the start; afterwards everything must drain.
    pub safety: Millis,
    /// How long draining may take before it counts as a failure.
    pub liveness_bound: Millis,
    /// The most crashes of one process.
    pub crashes_max: u64,
    /// How many processes of the sender share one store.
    pub senders: u32,
    /// How many processes of the receiver share one store.
    pub receivers: u32,
    /// The most attempts under way in one process of the sender.
    pub places: u32,
    /// How long a process of the sender holds an endpoint before it must renew.
    pub shard_lease: Millis,
    /// How many entities the events are about; 0: they are about none.
    pub entities: u64,
    /// Whether an effect is a call to a downstream service.
    pub downstream: bool,
    /// What people do meanwhile.
    pub operations: Vec<Operation>,
    /// How long the network takes for one way.
    pub latency: (Millis, Millis),
    /// How long a commit takes.
    pub commit: (Millis, Millis),
    /// How long after it is due and admitted an attempt may begin.
    pub overdue_max: Millis,
    /// The same for an endpoint that works while another does not.
    pub isolation_max: Millis,
    /// The simulated time of one tick of the wire world's network: 1 ms to a tenth of the shortest connect
    /// timeout.
    pub tick: Millis,
}

/// How an endpoint that is broken fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Break {
    /// It answers 500.
    Answers500,
    /// It never answers.
    Hangs,
    /// It refuses connections.
    Refuses,
    /// It answers 404.
    Answers404,
}

/// A time during which endpoints cannot be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// When it begins, from the start.
    pub from: Millis,
    /// How long it lasts.
    pub lasts: Millis,
    /// How the endpoints fail meanwhile.
    pub fails: Break,
}

/// What people do to endpoints and deliveries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Disable an endpoint, and enable it again later.
    Disable,
    /// Delete an endpoint.
    Delete,
    /// Replay a delivery.
    Replay,
    /// Cancel a delivery.
    Cancel,
    /// Rotate an endpoint's secret.
    Rotate,
}

impl Default for Scenario {
    /// Three to ten events to one or two endpoints, nothing goes wrong.
    fn default() -> Self {
        Self {
            name: "unnamed".to_owned(),
            about: String::new(),
            events: (3, 10),
            endpoints: (1, 2),
            broken_per_mille: 0,
            breaks: vec![Break::Answers500, Break::Hangs, Break::Refuses],
            outage: None,
            policies: vec![brisk(40)],
            faults: Vec::new(),
            publishing: Millis::from_secs(20),
            safety: Millis::from_secs(40),
            liveness_bound: Millis::from_hours(6),
            crashes_max: 6,
            senders: 1,
            receivers: 1,
            places: 64,
            shard_lease: Millis::from_secs(10),
            entities: 0,
            downstream: false,
            operations: Vec::new(),
            latency: (Millis::new(1), Millis::new(30)),
            commit: (Millis::new(1), Millis::new(3)),
            overdue_max: Millis::from_secs(15),
            isolation_max: Millis::from_secs(15),
            tick: Millis::new(10),
        }
    }
}

impl Scenario {
    /// Everything at once: the default.
    #[must_use]
    pub fn mixed() -> Self {
        shipped::mixed()
    }

    /// The policy of the sender in one history.
    pub(crate) fn policy(&self, choices: &Choices) -> Policy {
        let count = u64::try_from(self.policies.len()).unwrap_or(1);
        let index = usize::try_from(choices.draw("plan", "policy", count)).unwrap_or(0);
        self.policies.get(index).cloned().unwrap_or_default()
    }

    /// How the receiver works off its inbox.
    pub(crate) fn inbox_rule() -> InboxRule {
        InboxRule { lease: Millis::from_secs(5), ..InboxRule::default() }
    }

    /// The bounds that invariants speak of.
    pub(crate) fn bounds(&self) -> Bounds {
        // With several senders, what one leaves behind waits until its lease has ended.
        let wait = if self.senders > 1 { self.shard_lease } else { Millis::ZERO };
        Bounds {
            overdue: self.overdue_max.plus(wait),
            isolation: self.isolation_max.plus(wait),
            claims: checkers::attempts_max(&Self::inbox_rule().schedule),
        }
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`] with the field that is wrong.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        let wrong =
            |field: &str, problem: String| Err(ScenarioError { field: field.to_owned(), problem });
        for (field, (lowest, highest)) in [("events", self.events), ("endpoints", self.endpoints)] {
            if lowest == 0 || lowest > highest || highest > POPULATION_MAX {
                let most = POPULATION_MAX;
                return wrong(
                    field,
                    format!(
                        "is [{lowest}, {highest}]; give two numbers from 1 to {most}, in order"
                    ),
                );
            }
        }
        for (field, (lowest, highest)) in [("latency", self.latency), ("commit", self.commit)] {
            if lowest == Millis::ZERO || lowest > highest {
                let problem =
                    format!("is [{lowest}, {highest}]; give two spans from 1ms, in order");
                return wrong(field, problem);
            }
        }
        if self.policies.is_empty() {
            return wrong("policies", "is empty; give at least one".to_owned());
        }
        for policy in &self.policies {
            if let Err(error) = policy.validate() {
                return wrong("policies", format!("has one that cannot be: {error}"));
            }
        }
        let shortest = self.policies.iter().map(|policy| policy.connect_timeout).min();
        let tick_max =
            Millis::new(shortest.unwrap_or_default().get() / TICKS_IN_A_TIMEOUT).max(TICK_MIN);
        if self.tick < TICK_MIN || self.tick > tick_max {
            let problem = format!(
                "is {}; give {TICK_MIN} to {tick_max}, a tenth of the shortest connect timeout",
                self.tick
            );
            return wrong("tick", problem);
        }
        if self.shard_lease == Millis::ZERO {
            return wrong(
                "shard_lease",
                "is 0s: nobody could hold an endpoint; give 1ms or more".to_owned(),
            );
        }
        if self.broken_per_mille > 0 && self.breaks.is_empty() {
            return wrong("breaks", "is empty, and endpoints are to be broken".to_owned());
        }
        for (field, value) in
            [("senders", self.senders), ("receivers", self.receivers), ("places", self.places)]
        {
            if value == 0 {
                return wrong(field, "is 0; give at least 1".to_owned());
            }
            if u64::from(value) > POPULATION_MAX {
                return wrong(field, format!("is {value}; give at most {POPULATION_MAX}"));
            }
        }
        if self.entities > 0 && self.downstream {
            let problem = "cannot be together with `downstream`: a call cannot be taken back when a \
                           newer version was applied meanwhile";
            return wrong("entities", problem.to_owned());
        }
        Ok(())
    }
}

/// The shortest tick of the wire world.
const TICK_MIN: Millis = Millis::new(1);
/// How many ticks the shortest timeout must have at least: otherwise it is over before anything was tried.
const TICKS_IN_A_TIMEOUT: u64 = 10;

/// The most events and endpoints of one history.
const POPULATION_MAX: u64 = 10_000;

/// What is wrong with a scenario, and with which field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioError {
    /// The field.
    pub field: String,
    /// What is wrong with it, and what would be right.
    pub problem: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.field, self.problem)
    }
}

impl std::error::Error for ScenarioError {}

/// Half a second, doubling to 20 s, full jitter: whole schedules pass within minutes.
pub(crate) fn brisk(attempts_max: u32) -> Policy {
    Policy {
        schedule: Schedule::new(
            Backoff::Exponential {
                base: Millis::new(500),
                factor: 2,
                cap: Millis::from_secs(20),
                attempts_max,
            },
            Jitter::Full,
        ),
        gate: GateRule {
            concurrency_max: 4,
            breaker: Some(BreakerRule {
                failures_in_a_row: 6,
                pause: Millis::from_secs(5),
                pause_max: Millis::from_secs(20),
                ..BreakerRule::default()
            }),
            // These schedules are short: what is throttled would outlast them.
            throttle_max: Millis::ZERO,
            ..GateRule::default()
        },
        classification: Classification {
            retry_after_max: Millis::from_minutes(2),
            ..Classification::default()
        },
        ..Policy::default()
    }
}
