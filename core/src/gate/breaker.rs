//! The circuit breaker: when to pause an endpoint, for how long, and when to give it up.
//!
//! While it is open or half-open, only the probe's outcome moves it: attempts that were already under
//! way when it opened say nothing new.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::PermitId;
use super::holds::Holds;
use crate::classify::Signal;
use crate::time::{Millis, Timestamp};

/// The most outcomes that a window looks at, the newest of them.
pub const WINDOW_OUTCOMES_MAX: u32 = 256;

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

/// Opens the breaker at a failure if, of the attempts that ended less than `within` ago, enough
/// failed. Looks at [`WINDOW_OUTCOMES_MAX`] of them at most.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowRule {
    /// The length of the window, which ends at the failure.
    pub within: Millis,
    /// So many failures, at least.
    #[serde(default = "one")]
    pub failures: u32,
    /// Such a share of the attempts, at least, in percent.
    #[serde(default)]
    pub share_percent: u8,
    /// Of so many attempts, at least.
    #[serde(default = "one")]
    pub attempts_min: u32,
}

fn one() -> u32 {
    1
}

impl WindowRule {
    /// Whether successes do not matter.
    fn only_failures(&self) -> bool {
        self.share_percent == 0 && self.attempts_min <= self.failures
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
    /// When the first of them was.
    #[serde(skip_serializing_if = "Option::is_none")]
    failing_since: Option<Timestamp>,
    /// When attempts ended, and whether they failed; the newest last.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    ended: VecDeque<(Timestamp, bool)>,
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
        } else if rule.disable.is_some() {
            self.streak = self.streak.saturating_add(1);
            self.failing_since.get_or_insert(now);
        }
        let Some(window) = &rule.window else { return };
        if !failed && window.only_failures() {
            return;
        }
        self.ended.push_back((now, failed));
        let wanted =
            if window.only_failures() { window.failures } else { WINDOW_OUTCOMES_MAX } as usize;
        while self.ended.len() > wanted.min(WINDOW_OUTCOMES_MAX as usize)
            || self.ended.front().is_some_and(|(at, _)| now.since(*at) >= window.within)
        {
            self.ended.pop_front();
        }
    }

    fn is_too_much(&self, window: &WindowRule, now: Timestamp) -> Option<Cause> {
        let (mut failures, mut attempts) = (0_u32, 0_u32);
        for (at, failed) in &self.ended {
            if now.since(*at) < window.within {
                attempts += 1;
                failures += u32::from(*failed);
            }
        }
        let share = u64::from(window.share_percent) * u64::from(attempts);
        (failures >= window.failures
            && attempts >= window.attempts_min
            && u64::from(failures) * 100 >= share)
            .then_some(Cause::Window { failures, attempts })
    }

    fn is_hopeless(&self, rule: &DisableRule, now: Timestamp) -> Option<Cause> {
        if rule.failures_in_a_row > 0 && self.streak >= rule.failures_in_a_row {
            return Some(Cause::FailuresInARow { failures: self.streak });
        }
        let span = now.since(self.failing_since?);
        (rule.failing_for > Millis::ZERO && span >= rule.failing_for)
            .then_some(Cause::FailingFor { span })
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
                let window = || self.history.is_too_much(rule.window.as_ref()?, now);
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
        self.history.ended.clear();
        Some(transition)
    }
}
