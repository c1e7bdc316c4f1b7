//! What of a scenario the wire world has.

use hookproof_core::policy::Policy;
use hookproof_core::time::Millis;

use super::Scenario;

/// How many steps its clock may make in one history. Idle time is not free there: so many take about
/// two seconds.
const TICKS_MAX: u64 = 600_000;

/// How long draining may take where everything works once the faults have ended.
const DRAINING: Millis = Millis::from_minutes(10);

impl Scenario {
    /// This scenario as the wire world has it: with one process on each side, since only one can have a
    /// file of SQLite, and with no more time to drain than it can need.
    #[must_use]
    pub fn on_wire(&self) -> Self {
        Self {
            senders: 1,
            receivers: 1,
            liveness_bound: self.liveness_bound.min(self.drains_within()),
            ..self.clone()
        }
    }

    /// Whether the wire world is fit for this scenario: there, a history of days would take minutes.
    #[must_use]
    pub fn is_for_wire(&self) -> bool {
        let longest = self.safety.plus(self.drains_within());
        longest.get() / self.tick.get().max(1) <= TICKS_MAX
    }

    /// How long draining can take at most: where endpoints stay broken, all their schedules must end.
    fn drains_within(&self) -> Millis {
        let longest = |policy| match self.broken_per_mille {
            0 => DRAINING.plus(waits(policy).max().unwrap_or(Millis::ZERO)),
            _ => DRAINING.plus(whole_schedules(policy, self.events.1)),
        };
        self.policies.iter().map(longest).max().unwrap_or(DRAINING)
    }
}

/// How long the schedules of so many deliveries can take, if every attempt times out, and the breaker
/// lets through one at a time.
fn whole_schedules(policy: &Policy, deliveries: u64) -> Millis {
    if let Some(age_max) = policy.life.age_max {
        return age_max.plus(policy.lease());
    }
    let breaker = policy.gate.breaker.as_ref().map_or(Millis::ZERO, |rule| rule.pause_max);
    let attempts = u64::from(policy.schedule.attempts_max()).saturating_mul(deliveries);
    let each = policy.total_timeout.plus(breaker);
    waits(policy).fold(each.times(attempts), Millis::plus)
}

/// The longest that the wait after each attempt can be.
fn waits(policy: &Policy) -> impl Iterator<Item = Millis> {
    let attempts_max = policy.schedule.attempts_max();
    (1..attempts_max).filter_map(|attempt| Some(policy.schedule.bounds(attempt)?.highest))
}
