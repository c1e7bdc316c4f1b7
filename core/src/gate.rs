//! What an endpoint can take: a circuit breaker and limits, in front of every claim.
//!
//! A driver asks [`Gate::admit`] *before* it claims a row, so an open breaker costs no writes and
//! burns no attempts, and tells [`Gate::record`] how the permit ended, whichever way that was.

mod breaker;
mod check;
mod holds;
mod known;
mod limiter;
mod stored;
mod window;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::classify::{Signal, Throttle};
use crate::time::{Millis, Timestamp};
pub use breaker::{
    Breaker, BreakerRule, Cause, ClockRule, DisableRule, History, StoredBreaker, Transition,
};
pub use known::{KnownRule, known_rules};
use limiter::Limiter;
pub use limiter::{DrainRule, RATE_ATTEMPTS_MAX, RateRule};
pub use stored::StoredGate;
pub use window::{WINDOW_INSTANTS_MAX, WindowRule};

/// The settings of a gate.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GateRule {
    /// The most attempts under way at once.
    pub concurrency_max: u32,
    /// The longest that an endpoint is left alone because it asked for it with 429, 502, 503 or 504;
    /// `0s` takes no notice of these.
    pub throttle_max: Millis,
    /// When to pause; `None`, written `"off"`, never pauses.
    #[serde(with = "breaker_or_off")]
    pub breaker: Option<BreakerRule>,
    /// How many attempts begin in a span of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateRule>,
    /// How the backlog leaves after a recovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainRule>,
}

impl Default for GateRule {
    fn default() -> Self {
        Self {
            concurrency_max: 10,
            throttle_max: Millis::from_minutes(5),
            breaker: Some(BreakerRule::default()),
            rate: None,
            drain: None,
        }
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

impl Permit {
    /// Its number.
    #[must_use]
    pub fn id(&self) -> PermitId {
        self.id
    }
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
    /// The endpoint asked to be left alone.
    Throttled,
    /// As many attempts as allowed are under way.
    ConcurrencyLimit,
    /// As many attempts as allowed began of late.
    RateLimit,
}

/// What an endpoint can take, at this moment.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Gate {
    breaker: StoredBreaker,
    limiter: Limiter,
    permits: BTreeMap<PermitId, Timestamp>,
    next_permit: u64,
    /// Grows with every change that is to be stored.
    sequence: u64,
}

impl Gate {
    /// A gate in the state that was last stored. Permits do not outlive the process that held them,
    /// and neither does a probe.
    #[must_use]
    pub fn restored(stored: impl Into<StoredGate>) -> Self {
        let StoredGate { breaker, sequence, limiter } = stored.into().without_probe();
        Self { breaker, limiter, sequence, ..Self::default() }
    }

    /// The breaker's state.
    #[must_use]
    pub fn breaker(&self) -> Breaker {
        self.breaker.state
    }

    /// The gate as it is to be stored with each claim, before anything is sent, and with each
    /// recorded attempt.
    #[must_use]
    pub fn stored(&self) -> StoredGate {
        StoredGate {
            breaker: self.breaker.clone(),
            sequence: self.sequence,
            limiter: self.limiter.clone(),
        }
    }

    /// Forgets every failure: whoever enables an endpoint says that it works again. What its limits
    /// remember stays.
    pub fn reset(&mut self) {
        self.sequence += 1;
        self.breaker = StoredBreaker::default();
    }

    /// For how long of the time from `from` until `now` the breaker held back whatever was due: while
    /// it paused, and while its probe was under way. Limits are no part of it, nor is a time in which
    /// nobody asked for a permit.
    #[must_use]
    pub fn held(&self, from: Timestamp, now: Timestamp) -> Millis {
        let probes = matches!(self.breaker.state, Breaker::HalfOpen { probe: Some(_), .. });
        self.breaker.holds.within(from, now, probes)
    }

    /// How many permits are out at `now`.
    #[must_use]
    pub fn in_flight(&self, now: Timestamp) -> usize {
        self.permits.values().filter(|expires| **expires > now).count()
    }

    /// Asks for leave to make one attempt that will be over `lease` from now at the latest.
    pub fn admit(&mut self, rule: &GateRule, now: Timestamp, lease: Millis) -> Admission {
        match self.room(rule, now) {
            Ok(_) => {
                self.sequence += 1;
                self.limiter.start(rule, now);
                Admission::Go(self.grant(now, lease))
            }
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
            self.breaker = StoredBreaker::default();
        }
        if let Breaker::Open { until, pause } = self.breaker.state {
            // A clock that was set back must not prolong it.
            let until = until.min(now.plus(pause));
            if now < until {
                self.breaker.state = Breaker::Open { until, pause };
                return Err((until, DeferReason::BreakerOpen));
            }
            self.breaker.state = Breaker::HalfOpen { probe: None, pause };
        }
        if let Breaker::HalfOpen { probe: Some(probe), .. } = self.breaker.state {
            let until = self.permits.get(&probe).copied().unwrap_or(now);
            return Err((until, DeferReason::ProbeUnderWay));
        }
        if let Some(until) = self.limiter.hold(rule, now) {
            return Err((until, DeferReason::Throttled));
        }
        let out = u32::try_from(self.permits.len()).unwrap_or(u32::MAX);
        let room = self.limiter.concurrency_max(rule).saturating_sub(out);
        if room == 0 {
            let until = self.permits.values().min().copied().unwrap_or(now);
            return Err((until, DeferReason::ConcurrencyLimit));
        }
        let room = room.min(self.limiter.room(rule, now, self.breaker.history.recovered_at)?);
        Ok(if matches!(self.breaker.state, Breaker::HalfOpen { .. }) { 1 } else { room })
    }

    fn grant(&mut self, now: Timestamp, lease: Millis) -> Permit {
        let expires = now.plus(lease);
        let id = PermitId(self.next_permit);
        self.next_permit += 1;
        self.permits.insert(id, expires);
        let probe = match &mut self.breaker.state {
            Breaker::HalfOpen { probe, .. } => {
                *probe = Some(id);
                self.breaker.holds.add(now, now);
                true
            }
            Breaker::Closed { .. } | Breaker::Open { .. } => false,
        };
        Permit { id, expires, probe }
    }

    /// Lets every permit that is out go on for `lease` from now, if it would be over by then; says whether
    /// one would. For a driver that knows of each whether its holder is still at work, and takes back
    /// those of the others: a clock that was set forward ends no attempt, and neither does a process
    /// that stood still. To be told before anything else is asked at `now`.
    pub fn renew(&mut self, now: Timestamp, lease: Millis) -> bool {
        let overdue = self.permits.values_mut().filter(|expires| **expires <= now);
        overdue.map(|expires| *expires = now.plus(lease)).count() > 0
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
        self.sequence += 1;
        self.permits.remove(&permit.id);
        if signal == Signal::Success {
            self.limiter.ease();
        }
        let transition = self.breaker.record(rule.breaker.as_ref()?, now, permit.id, signal);
        if transition == Some(Transition::Closed) && rule.drain.is_some() {
            self.breaker.history.recovered_at = Some(now);
        }
        transition
    }

    /// The endpoint answered that it has too much to do, and perhaps for how long: fewer attempts go
    /// at once until successes give the places back, and none before that time, within
    /// [`GateRule::throttle_max`].
    pub fn throttle(&mut self, rule: &GateRule, now: Timestamp, throttle: Throttle) {
        self.sequence += 1;
        self.limiter.throttle(rule, now, throttle.wait);
    }

    /// Permits end by themselves at their deadline; a probe among them makes room for the next.
    fn expire(&mut self, now: Timestamp) {
        self.permits.retain(|_, expires| *expires > now);
        if let Breaker::HalfOpen { probe: Some(probe), pause } = self.breaker.state
            && !self.permits.contains_key(&probe)
        {
            self.breaker.holds.prolong(now);
            self.breaker.state = Breaker::HalfOpen { probe: None, pause };
        }
    }
}
