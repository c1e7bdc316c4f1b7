//! What an endpoint can take: a circuit breaker and a concurrency limit, in front of every claim.
//!
//! A driver asks [`Gate::admit`] *before* it claims a row, so an open breaker costs no writes and
//! burns no attempts, and tells [`Gate::record`] how the permit ended, whichever way that was.
//!
//! The breaker counts failures in a row. While it is open or half-open, only the probe's outcome
//! moves it: attempts that were already under way when it opened say nothing new.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::classify::Signal;
use crate::time::{Millis, Timestamp};

/// The settings of a gate.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GateRule {
    /// The most attempts under way at once.
    pub concurrency_max: u32,
    /// When to pause; `None`, written `"off"`, never pauses.
    #[serde(with = "breaker_or_off")]
    pub breaker: Option<BreakerRule>,
}

impl Default for GateRule {
    fn default() -> Self {
        Self { concurrency_max: 10, breaker: Some(BreakerRule::default()) }
    }
}

/// The word for a breaker that never pauses: TOML has no null.
const OFF: &str = "off";

mod breaker_or_off {
    use std::fmt;

    use serde::de::value::MapAccessDeserializer;
    use serde::de::{Deserialize as _, Deserializer, Error, MapAccess, Visitor};
    use serde::{Serialize as _, Serializer};

    use super::{BreakerRule, OFF};

    #[expect(clippy::ref_option, reason = "serde hands out a reference to the field")]
    pub(super) fn serialize<S: Serializer>(
        rule: &Option<BreakerRule>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match rule {
            Some(rule) => rule.serialize(serializer),
            None => serializer.serialize_str(OFF),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<BreakerRule>, D::Error> {
        struct RuleOrOff;

        impl<'de> Visitor<'de> for RuleOrOff {
            type Value = Option<BreakerRule>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "the settings of a breaker, or \"{OFF}\"")
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<Self::Value, E> {
                if word == OFF {
                    Ok(None)
                } else {
                    Err(E::invalid_value(serde::de::Unexpected::Str(word), &self))
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                BreakerRule::deserialize(MapAccessDeserializer::new(map)).map(Some)
            }
        }

        deserializer.deserialize_any(RuleOrOff)
    }
}

/// The settings of a breaker.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BreakerRule {
    /// How many failures without a success in between open the breaker.
    pub failures_in_a_row: u32,
    /// The first pause. It doubles each time a probe fails.
    pub pause: Millis,
    /// The longest pause.
    pub pause_max: Millis,
}

impl Default for BreakerRule {
    fn default() -> Self {
        Self {
            failures_in_a_row: 20,
            pause: Millis::from_minutes(1),
            pause_max: Millis::from_hours(1),
        }
    }
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

/// The number of a permit, unique within one gate's life in memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PermitId(u64);

/// Leave to make one attempt. It ends by [`Gate::record`], or by itself at its deadline. It cannot be
/// copied, so that no attempt is counted twice.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "a permit that is not recorded holds its place until it expires"]
pub struct Permit {
    id: PermitId,
    /// When it ends by itself.
    pub expires: Timestamp,
    /// Whether it is the breaker's probe.
    pub probe: bool,
}

/// The answer to a request for a permit.
#[derive(PartialEq, Eq, Debug)]
#[must_use]
pub enum Admission {
    /// Go ahead.
    Go(Permit),
    /// Not now.
    Defer {
        /// When to ask again; a recorded outcome may make it worthwhile sooner.
        until: Timestamp,
        /// What stands in the way.
        why: DeferReason,
    },
}

/// What stands in the way of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeferReason {
    /// The breaker is open.
    BreakerOpen,
    /// The breaker's probe is under way.
    ProbeUnderWay,
    /// As many attempts as allowed are under way.
    ConcurrencyLimit,
}

/// How the breaker moved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transition {
    /// It opened, or a failed probe prolonged the pause.
    Opened {
        /// The end of the pause.
        until: Timestamp,
    },
    /// A probe succeeded.
    Closed,
}

/// What an endpoint can take, at this moment.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Gate {
    breaker: Breaker,
    permits: BTreeMap<PermitId, Timestamp>,
    next_permit: u64,
}

impl Gate {
    /// A gate whose breaker is in the state that was last stored. Permits do not outlive the
    /// process that held them, and neither does a probe.
    #[must_use]
    pub fn restored(breaker: Breaker) -> Self {
        let breaker = match breaker {
            Breaker::HalfOpen { pause, .. } => Breaker::HalfOpen { probe: None, pause },
            other => other,
        };
        Self { breaker, ..Self::default() }
    }

    /// The breaker's state, to be stored with each recorded attempt.
    #[must_use]
    pub fn breaker(&self) -> Breaker {
        self.breaker
    }

    /// How many permits are out at `now`.
    #[must_use]
    pub fn in_flight(&self, now: Timestamp) -> usize {
        self.permits.values().filter(|expires| **expires > now).count()
    }

    /// Asks for leave to make one attempt that will be over `lease` from now at the latest.
    pub fn admit(&mut self, rule: &GateRule, now: Timestamp, lease: Millis) -> Admission {
        match self.room(rule, now) {
            Ok(_) => Admission::Go(self.grant(now.plus(lease))),
            Err((until, why)) => Admission::Defer { until, why },
        }
    }

    /// How many permits there are to be had at `now`: at least one. A driver reads no more due rows
    /// than that.
    ///
    /// # Errors
    ///
    /// When to ask again and what stands in the way, if there are none.
    pub fn room(
        &mut self,
        rule: &GateRule,
        now: Timestamp,
    ) -> Result<u32, (Timestamp, DeferReason)> {
        self.expire(now);
        if rule.breaker.is_none() {
            // Switched off while it was open: there is no pause any more, and no probe.
            self.breaker = Breaker::default();
        }
        if let Breaker::Open { until, pause } = self.breaker {
            if now < until {
                return Err((until, DeferReason::BreakerOpen));
            }
            self.breaker = Breaker::HalfOpen { probe: None, pause };
        }
        if let Breaker::HalfOpen { probe: Some(probe), .. } = self.breaker {
            let until = self.permits.get(&probe).copied().unwrap_or(now);
            return Err((until, DeferReason::ProbeUnderWay));
        }
        let out = u32::try_from(self.permits.len()).unwrap_or(u32::MAX);
        let room = rule.concurrency_max.saturating_sub(out);
        if room == 0 {
            let until = self.permits.values().min().copied().unwrap_or(now);
            return Err((until, DeferReason::ConcurrencyLimit));
        }
        Ok(if matches!(self.breaker, Breaker::HalfOpen { .. }) { 1 } else { room })
    }

    fn grant(&mut self, expires: Timestamp) -> Permit {
        let id = PermitId(self.next_permit);
        self.next_permit += 1;
        self.permits.insert(id, expires);
        let probe = match &mut self.breaker {
            Breaker::HalfOpen { probe, .. } => {
                *probe = Some(id);
                true
            }
            Breaker::Closed { .. } | Breaker::Open { .. } => false,
        };
        Permit { id, expires, probe }
    }

    /// Takes a permit back and learns from how it ended. Every way that an attempt can end comes
    /// here: a success, a failure, a refusal, a claim that was never made ([`Signal::Neither`]).
    #[expect(clippy::needless_pass_by_value, reason = "a permit ends here")]
    pub fn record(
        &mut self,
        rule: &GateRule,
        now: Timestamp,
        permit: Permit,
        signal: Signal,
    ) -> Option<Transition> {
        self.permits.remove(&permit.id);
        let breaker_rule = rule.breaker.as_ref()?;
        match self.breaker {
            Breaker::Closed { failures } => self.count(breaker_rule, now, failures, signal),
            Breaker::HalfOpen { probe, pause } if probe == Some(permit.id) => match signal {
                Signal::Success => {
                    self.breaker = Breaker::default();
                    Some(Transition::Closed)
                }
                Signal::Failure => Some(self.open(now, pause.times(2).min(breaker_rule.pause_max))),
                Signal::Neither => {
                    self.breaker = Breaker::HalfOpen { probe: None, pause };
                    None
                }
            },
            Breaker::HalfOpen { .. } | Breaker::Open { .. } => None,
        }
    }

    fn count(
        &mut self,
        rule: &BreakerRule,
        now: Timestamp,
        failures: u32,
        signal: Signal,
    ) -> Option<Transition> {
        let failures = match signal {
            Signal::Success => 0,
            Signal::Failure if failures.saturating_add(1) >= rule.failures_in_a_row => {
                return Some(self.open(now, rule.pause));
            }
            Signal::Failure => failures.saturating_add(1),
            Signal::Neither => failures,
        };
        self.breaker = Breaker::Closed { failures };
        None
    }

    fn open(&mut self, now: Timestamp, pause: Millis) -> Transition {
        let until = now.plus(pause);
        self.breaker = Breaker::Open { until, pause };
        Transition::Opened { until }
    }

    /// Permits end by themselves at their deadline; a probe among them makes room for the next.
    fn expire(&mut self, now: Timestamp) {
        self.permits.retain(|_, expires| *expires > now);
        if let Breaker::HalfOpen { probe: Some(probe), pause } = self.breaker
            && !self.permits.contains_key(&probe)
        {
            self.breaker = Breaker::HalfOpen { probe: None, pause };
        }
    }
}
