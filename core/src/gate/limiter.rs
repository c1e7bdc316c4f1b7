//! How many attempts may begin: a rate that is exact over every window, a slower one after a
//! recovery, and restraint towards an endpoint that says it has too much to do.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{DeferReason, GateRule};
use crate::time::{Millis, Timestamp};

/// The most attempts that a rate can allow in its period: each is remembered for as long.
pub const RATE_ATTEMPTS_MAX: u32 = 10_000;

/// At most `attempts` begin in any span of the length `per`, wherever it starts.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateRule {
    /// So many.
    pub attempts: u32,
    /// In any span of this length.
    pub per: Millis,
    /// The most of them that may begin at once: no more than that begin in their share of `per`. 0,
    /// if left out: all.
    #[serde(default)]
    pub burst: u32,
}

/// How the backlog leaves once a probe has succeeded.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainRule {
    /// So many attempts.
    pub attempts: u32,
    /// In any span of this length.
    pub per: Millis,
    /// For so long after the recovery.
    pub lasts: Millis,
}

/// At most so many in any span of this length.
type Limit = (u32, Millis);

impl RateRule {
    fn limits(&self) -> [Option<Limit>; 2] {
        let burst = (self.burst > 0 && self.burst < self.attempts).then(|| {
            let share = u128::from(self.per.get()) * u128::from(self.burst);
            let share = share.div_ceil(u128::from(self.attempts));
            (self.burst, Millis::new(u64::try_from(share).unwrap_or(u64::MAX)))
        });
        [Some((self.attempts, self.per)), burst]
    }
}

/// What a limiter remembers. It is stored with the gate, so that a rate is exact over a restart.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Limiter {
    /// When attempts began, in order.
    #[serde(with = "gaps", skip_serializing_if = "VecDeque::is_empty")]
    starts: VecDeque<Timestamp>,
    /// The endpoint asked to be left alone until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_until: Option<Timestamp>,
    /// How many of the places for attempts are withdrawn.
    #[serde(skip_serializing_if = "crate::is_default")]
    withdrawn: u32,
}

/// Times in order as the first one and the milliseconds between each two: they are written with
/// every claim, and there may be [`RATE_ATTEMPTS_MAX`] of them.
mod gaps {
    use std::collections::VecDeque;

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use crate::time::Timestamp;

    pub(super) fn serialize<S: Serializer>(
        times: &VecDeque<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut before = 0_i64;
        let gaps: Vec<i64> = times
            .iter()
            .map(|at| {
                let gap = at.as_millis().wrapping_sub(before);
                before = at.as_millis();
                gap
            })
            .collect();
        gaps.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<VecDeque<Timestamp>, D::Error> {
        let mut at = 0_i64;
        let gaps = Vec::<i64>::deserialize(deserializer)?;
        Ok(gaps
            .into_iter()
            .map(|gap| {
                at = at.wrapping_add(gap);
                Timestamp::from_millis(at)
            })
            .collect())
    }
}

impl Limiter {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// How many attempts may be under way at once.
    pub(super) fn concurrency_max(&self, rule: &GateRule) -> u32 {
        let floor = rule.concurrency_max.min(1);
        rule.concurrency_max.saturating_sub(self.withdrawn).max(floor)
    }

    /// Whether the endpoint asked to be left alone at `now`, and until when.
    pub(super) fn hold(&mut self, rule: &GateRule, now: Timestamp) -> Option<Timestamp> {
        // A clock that was set back must not prolong it.
        let until = self.held_until?.min(now.plus(rule.throttle_max));
        self.held_until = (now < until).then_some(until);
        self.held_until
    }

    /// How many attempts may begin at `now`.
    pub(super) fn room(
        &mut self,
        rule: &GateRule,
        now: Timestamp,
        recovered_at: Option<Timestamp>,
    ) -> Result<u32, (Timestamp, DeferReason)> {
        self.set_back(now);
        let rate = rule.rate.iter().flat_map(RateRule::limits).flatten();
        let rate = rate.map(|limit| (limit, None));
        let drain = rule.drain.iter().zip(recovered_at).filter_map(|(drain, recovered_at)| {
            let limit = (drain.attempts, drain.per);
            (now.since(recovered_at) < drain.lasts)
                .then(|| (limit, Some(recovered_at.plus(drain.lasts))))
        });
        let mut room = u32::MAX;
        let mut wait = None;
        for ((attempts, per), ends) in rate.chain(drain) {
            let before = self.starts.partition_point(|at| now.since(*at) >= per);
            let within = u32::try_from(self.starts.len() - before).unwrap_or(u32::MAX);
            room = room.min(attempts.saturating_sub(within));
            if within >= attempts {
                // The one that must leave the window first for there to be room.
                let nth = self.starts.len().saturating_sub(attempts as usize);
                let leaves = self.starts.get(nth).map(|at| at.plus(per));
                wait = wait.max(leaves.map(|at| ends.map_or(at, |ends| at.min(ends))));
            }
        }
        match wait {
            Some(until) => Err((until, DeferReason::RateLimit)),
            None => Ok(room),
        }
    }

    /// An attempt begins.
    pub(super) fn start(&mut self, rule: &GateRule, now: Timestamp) {
        let rate = rule.rate.as_ref().map(|rate| (rate.attempts, rate.per));
        let drain = rule.drain.as_ref().map(|drain| (drain.attempts, drain.per));
        let both = rate.into_iter().chain(drain);
        let Some((attempts, per)) = both.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1))) else {
            self.starts.clear();
            return;
        };
        self.set_back(now);
        self.starts.push_back(now);
        while self.starts.len() > attempts.min(RATE_ATTEMPTS_MAX) as usize
            || self.starts.front().is_some_and(|at| now.since(*at) >= per)
        {
            self.starts.pop_front();
        }
    }

    /// The endpoint has too much to do: half as many at once, and none for as long as it asks.
    pub(super) fn throttle(&mut self, rule: &GateRule, now: Timestamp, wait: Option<Millis>) {
        if rule.throttle_max == Millis::ZERO {
            return;
        }
        let half = (self.concurrency_max(rule) / 2).max(1);
        self.withdrawn = rule.concurrency_max.saturating_sub(half);
        let until = wait.map(|wait| now.plus(wait.min(rule.throttle_max)));
        self.held_until = self.held_until.max(until);
    }

    /// A success gives one place back.
    pub(super) fn ease(&mut self) {
        self.withdrawn = self.withdrawn.saturating_sub(1);
    }

    /// If the clock was set back, the spans between the starts are kept and the last one is now:
    /// otherwise nothing would begin for as long as it was set back.
    fn set_back(&mut self, now: Timestamp) {
        let Some(by) = self.starts.back().map(|last| last.since(now)) else { return };
        if by > Millis::ZERO {
            let by = i64::try_from(by.get()).unwrap_or(i64::MAX);
            for start in &mut self.starts {
                *start = Timestamp::from_millis(start.as_millis().saturating_sub(by));
            }
        }
    }
}
