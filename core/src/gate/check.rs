//! What the types of a gate's settings cannot rule out.

use super::{BreakerRule, DisableRule, GateRule, RATE_ATTEMPTS_MAX};
use crate::time::Millis;

impl GateRule {
    /// The first field that is wrong, as a path below the policy, and what is wrong with it.
    #[must_use]
    pub fn check(&self) -> Option<(&'static str, &'static str)> {
        let mut found = self.breaker.as_ref().and_then(BreakerRule::check);
        if let Some(rate) = &self.rate {
            let attempts = (1..=RATE_ATTEMPTS_MAX).contains(&rate.attempts);
            found = found
                .or((!attempts).then_some(("gate.rate.attempts", "is not from 1 to 10000")))
                .or((rate.per == Millis::ZERO).then_some(("gate.rate.per", "is 0s")));
        }
        if let Some(drain) = &self.drain {
            let attempts = (1..=RATE_ATTEMPTS_MAX).contains(&drain.attempts);
            found = found
                .or((!attempts).then_some(("gate.drain.attempts", "is not from 1 to 10000")))
                .or((drain.per == Millis::ZERO).then_some(("gate.drain.per", "is 0s")))
                .or((drain.lasts == Millis::ZERO).then_some(("gate.drain.lasts", "is 0s")));
        }
        found
    }
}

impl BreakerRule {
    /// The first field that is wrong, as a path below the policy, and what is wrong with it.
    #[must_use]
    pub fn check(&self) -> Option<(&'static str, &'static str)> {
        if self.failures_in_a_row == 0 && self.window.is_none() && self.disable.is_none() {
            return Some((
                "gate.breaker.failures_in_a_row",
                "is 0; give at least 1, or switch the breaker off with `breaker = \"off\"`",
            ));
        }
        if self.pause == Millis::ZERO {
            return Some(("gate.breaker.pause", "is 0s; give at least 1ms"));
        }
        if self.pause_max < self.pause {
            return Some(("gate.breaker.pause_max", "is shorter than the first pause"));
        }
        if self.pause_factor == 0 {
            return Some(("gate.breaker.pause_factor", "is 0; give 1 for pauses that do not grow"));
        }
        if let Some(window) = &self.window {
            if window.within == Millis::ZERO {
                return Some(("gate.breaker.window.within", "is 0s; give at least 1ms"));
            }
            if window.failures == 0 {
                return Some(("gate.breaker.window.failures", "is 0; give at least 1"));
            }
            if window.attempts_min == 0 {
                return Some(("gate.breaker.window.attempts_min", "is 0; give at least 1"));
            }
            if window.share_percent > 100 {
                return Some(("gate.breaker.window.share_percent", "is more than 100"));
            }
        }
        self.disable.as_ref().and_then(DisableRule::check)
    }
}

impl DisableRule {
    fn check(&self) -> Option<(&'static str, &'static str)> {
        if self.failing_for == Millis::ZERO {
            if self.failures_in_a_row == 0 {
                return Some(("gate.breaker.disable", "has no condition"));
            }
            if self.failures_min > 0 {
                return Some((
                    "gate.breaker.disable.failures_min",
                    "is of no use without `failing_for`; give that, or `failures_in_a_row` instead",
                ));
            }
            if self.clock.is_some() {
                return Some((
                    "gate.breaker.disable.clock",
                    "is of no use without `failing_for`: give that, too",
                ));
            }
        }
        let clock = self.clock.as_ref()?;
        if clock.apart == Millis::ZERO {
            return Some((
                "gate.breaker.disable.clock.apart",
                "is 0s; give at least 1ms, or leave `clock` out to count from the first failure",
            ));
        }
        (clock.within < clock.apart.times(2))
            .then_some(("gate.breaker.disable.clock.within", "is shorter than twice `apart`"))
    }
}
