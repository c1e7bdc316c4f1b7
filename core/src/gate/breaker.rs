//! The circuit breaker: when to pause an endpoint, for how long, and when to give it up.
//!
//! While it is open or half-open, only the probe's outcome moves it: attempts that were already under
//! way when it opened say nothing new.

use serde::{Deserialize, Serialize};

use super::PermitId;
use super::holds::Holds;
use super::window::{Outcomes, WindowRule};
use crate::classify::Signal;
use crate::time::{Millis, Timestamp};

/// The settings of a breaker.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BreakerRule {
    /// How many failures without a success in between open the breaker; 0 does not count them, and
    /// is allowed beside another condition.
    pub failures_in_a_row: u32,
    /// The first pause. It grows each time a probe fails.
    pub pause: Millis,
    /// By how much a pause is longer than the one before: 2 doubles it, 1 leaves it.
    pub pause_factor: u32,
    /// The longest pause.
    pub pause_max: Millis,
    /// Failures within a span of time that open the breaker, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowRule>,
    /// When the endpoint is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable: Option<DisableRule>,
}

impl Default for BreakerRule {
    fn default() -> Self {
        Self {
            failures_in_a_row: 20,
            pause: Millis::from_minutes(1),
            pause_factor: 2,
            pause_max: Millis::from_hours(1),
            window: None,
            disable: None,
        }
    }
}

/// Gives an endpoint up at a failure if one of the conditions holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DisableRule {
    /// So many failures without a success in between, probes included; 0 is no condition.
    pub failures_in_a_row: u32,
    /// Nothing but failures for so long; `0s` is no condition.
    pub failing_for: Millis,
    /// And of these at least so many, so that two failures with nothing in between but a quiet week
    /// are not enough. It belongs to `failing_for` and is no condition of its own.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub failures_min: u32,
    /// When `failing_for` begins; without it, at the first failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockRule>,
}

/// When `failing_for` begins: at the first failure before which, without a success in between, there
/// was one at most `within` and at least `apart` ago. A short outage starts no clock, however many
/// attempts fail in it.
///
/// `within` is at least twice as long as `apart`: then the first and the last failure so far are all
/// that has to be remembered (see [`History`]).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockRule {
    /// The longest time between two failures of one outage.
    pub within: Millis,
    /// The shortest time between the two that start the clock.
    pub apart: Millis,
}

/// The breaker's state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Breaker {
    /// Attempts pass.
    Closed {
        /// Failures since the last success.
        failures: u32,
    },
    /// Nothing passes until the pause is over.
    Open {
        /// The end of the pause.
        until: Timestamp,
        /// How long this pause is.
        pause: Millis,
    },
    /// One probe at a time passes.
    HalfOpen {
        /// The probe that is under way, if any.
        probe: Option<PermitId>,
        /// How long the last pause was.
        pause: Millis,
    },
}

impl Default for Breaker {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

/// A breaker as it is stored: its state, and what its rules look back on.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct StoredBreaker {
    /// Its state.
    #[serde(flatten)]
    pub state: Breaker,
    /// What its rules look back on.
    #[serde(default, skip_serializing_if = "History::is_empty")]
    pub history: History,
    /// When it held back what was due.
    #[serde(default, skip_serializing_if = "Holds::is_empty")]
    pub(super) holds: Holds,
}

impl From<Breaker> for StoredBreaker {
    fn from(state: Breaker) -> Self {
        Self { state, ..Self::default() }
    }
}

/// What the rules of a breaker look back on; nothing is kept that no rule needs.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    /// Failures since the last success, over all pauses.
    #[serde(skip_serializing_if = "crate::is_default")]
    streak: u32,
    /// Since when the endpoint counts as failing: the first of them, or the one that started the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    failing_since: Option<Timestamp>,
    /// As long as the clock has not started: the first failure of the outage, and the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    before_clock: Option<(Timestamp, Timestamp)>,
    /// How attempts ended, for the window.
    #[serde(skip_serializing_if = "Outcomes::is_empty")]
    ended: Outcomes,
    /// When a probe last succeeded, as long as the backlog is drained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) recovered_at: Option<Timestamp>,
}

impl History {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, rule: &BreakerRule, now: Timestamp, failed: bool) {
        if !failed {
            self.streak = 0;
            self.failing_since = None;
            self.before_clock = None;
        } else if let Some(disable) = &rule.disable {
            self.streak = self.streak.saturating_add(1);
            if self.failing_since.is_none() && self.starts_clock(disable.clock.as_ref(), now) {
                self.failing_since = Some(now);
                self.before_clock = None;
            }
        }
        if let Some(window) = &rule.window {
            self.ended.add(window, now, failed);
        }
    }

    /// Whether the clock starts with a failure at `now`.
    ///
    /// As long as it has not, the failures that are at most `within` old lie less than `apart` from
    /// each other. So if the first of them is too old by now, the last one is more than
    /// `within - apart` old, which is at least `apart`: no other needs to be asked.
    fn starts_clock(&mut self, clock: Option<&ClockRule>, now: Timestamp) -> bool {
        let Some(clock) = clock else { return true };
        let (first, last) = self.before_clock.unwrap_or((now, now));
        // A clock that was set back keeps the span between the two.
        let by = last.since(now);
        let is_near = |at: &Timestamp| now.since(*at) <= clock.within;
        let first = [first.minus(by), last.minus(by)].into_iter().find(is_near).unwrap_or(now);
        self.before_clock = Some((first, now));
        now.since(first) >= clock.apart
    }

    fn is_hopeless(&self, rule: &DisableRule, now: Timestamp) -> Option<Cause> {
        if rule.failures_in_a_row > 0 && self.streak >= rule.failures_in_a_row {
            return Some(Cause::FailuresInARow { failures: self.streak });
        }
        let span = now.since(self.failing_since?);
        let is_long = rule.failing_for > Millis::ZERO && span >= rule.failing_for;
        (is_long && self.streak >= rule.failures_min).then_some(Cause::FailingFor { span })
    }
}

/// How the breaker moved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "to", rename_all = "snake_case")]
pub enum Transition {
    /// It opened, or a failed probe prolonged the pause.
    Opened {
        /// The end of the pause.
        until: Timestamp,
        /// What made it open.
        why: Cause,
    },
    /// A probe succeeded.
    Closed,
    /// The endpoint is given up: whoever drives the gate disables it. The breaker itself is open, and
    /// says so again with the next failure, should the disabling get lost.
    Disabled {
        /// What made it so.
        why: Cause,
    },
}

/// What moved a breaker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Cause {
    /// So many failures without a success in between.
    FailuresInARow {
        /// How many.
        failures: u32,
    },
    /// Too many failures within the window.
    Window {
        /// How many failed.
        failures: u32,
        /// Of how many.
        attempts: u32,
    },
    /// The probe failed.
    ProbeFailed,
    /// Nothing but failures for so long.
    FailingFor {
        /// How long.
        span: Millis,
    },
}

impl StoredBreaker {
    /// Learns how an attempt ended.
    pub(super) fn record(
        &mut self,
        rule: &BreakerRule,
        now: Timestamp,
        permit: PermitId,
        signal: Signal,
    ) -> Option<Transition> {
        match (self.state, signal) {
            (Breaker::Closed { .. }, Signal::Success) => {
                self.history.add(rule, now, false);
                self.state = Breaker::default();
                None
            }
            (Breaker::Closed { failures }, Signal::Failure) => {
                self.history.add(rule, now, true);
                let failures = failures.saturating_add(1);
                self.state = Breaker::Closed { failures };
                let in_a_row = (rule.failures_in_a_row > 0 && failures >= rule.failures_in_a_row)
                    .then_some(Cause::FailuresInARow { failures });
                let window = || self.history.ended.is_too_much(rule.window.as_ref()?);
                self.after_failure(rule, now, rule.pause, in_a_row.or_else(window))
            }
            (Breaker::HalfOpen { probe, pause }, signal) if probe == Some(permit) => {
                self.holds.prolong(now);
                self.after_probe(rule, now, pause, signal)
            }
            _ => None,
        }
    }

    fn after_probe(
        &mut self,
        rule: &BreakerRule,
        now: Timestamp,
        pause: Millis,
        signal: Signal,
    ) -> Option<Transition> {
        match signal {
            Signal::Success => {
                self.state = Breaker::default();
                self.history = History::default();
                Some(Transition::Closed)
            }
            Signal::Failure => {
                self.history.add(rule, now, true);
                let pause = pause.times(u64::from(rule.pause_factor)).min(rule.pause_max);
                self.after_failure(rule, now, pause, Some(Cause::ProbeFailed))
            }
            Signal::Neither => {
                self.state = Breaker::HalfOpen { probe: None, pause };
                None
            }
        }
    }

    fn after_failure(
        &mut self,
        rule: &BreakerRule,
        now: Timestamp,
        pause: Millis,
        opens: Option<Cause>,
    ) -> Option<Transition> {
        let disables = rule.disable.as_ref().and_then(|rule| self.history.is_hopeless(rule, now));
        let until = now.plus(pause);
        let transition = match (disables, opens) {
            (Some(why), _) => Transition::Disabled { why },
            (None, Some(why)) => Transition::Opened { until, why },
            (None, None) => return None,
        };
        self.state = Breaker::Open { until, pause };
        self.holds.add(now, until);
        self.history.ended = Outcomes::default();
        Some(transition)
    }
}
