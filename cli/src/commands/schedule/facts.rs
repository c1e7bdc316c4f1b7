//! What a timeline comes down to, and how an outage goes.

use hookproof_core::policy::Policy;
use hookproof_core::time::Millis;
use serde::Serialize;

use super::burst::Burst;
use super::crowd::Crowd;
use super::lives::{Lives, spread};
use super::source::{Afterwards, Source};
use super::timeline::{Bounds, Count, HOUR_MS, Spread, Timeline};

/// The facts that matter about a policy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Facts {
    /// Whether all but the waits are told of what limits let through.
    pub(super) with_limits: bool,
    /// How many attempts a delivery gets.
    pub(super) attempts_made: Count,
    pub(super) last_attempt_since_event: Spread,
    /// The attempts that are possible, and that no sampled life came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) attempts_unreached: Option<Unreached>,
    /// How many of them fall into the first hour.
    pub(super) requests_first_hour: Count,
    /// The longest outage from the event on after which there is still an attempt.
    pub(super) survived_outage: Survived,
    /// How long it can be from a recovery until the next attempt of a delivery is due; `None` where
    /// there is no attempt but the first.
    pub(super) longest_wait_after_recovery_ms: Option<u64>,
    /// How long it can be from a recovery until the next request to the endpoint, behind limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) longest_quiet_after_recovery_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) events: Option<Burst>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) outage: Option<Outage>,
    pub(super) afterwards: Afterwards,
}

/// Attempts at the end of a schedule of which nothing is known but that they can be made. They are
/// those without limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Unreached {
    pub(super) first: u32,
    pub(super) last: u32,
    /// How many lives were drawn.
    pub(super) lives: u64,
    /// When the last of them can be made.
    pub(super) last_since_event: Bounds,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Survived {
    pub(super) for_sure_ms: u64,
    pub(super) mean_ms: u64,
    pub(super) at_best_ms: u64,
}

/// An outage from one time after the event to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Window {
    pub(super) start_ms: u64,
    pub(super) end_ms: u64,
}

/// How a delivery gets through an outage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Outage {
    pub(super) start_ms: u64,
    pub(super) end_ms: u64,
    /// Attempts that fall into it.
    pub(super) attempts_within: Count,
    /// Whether each delivery has an attempt after it, whatever is drawn.
    pub(super) survived_for_sure: bool,
    /// Whether a delivery can have one.
    pub(super) survived_at_best: bool,
    /// The share of deliveries that have one, in hundredths, rounded down.
    pub(super) survived_percent: u64,
    /// When the first attempt after it comes, for those that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_after: Option<Spread>,
}

/// Whether an attempt falls into a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Within {
    Yes,
    Maybe,
    No,
}

impl Window {
    /// Whether an attempt falls into it that is made at this time.
    pub(super) fn holds(self, made: Spread) -> Within {
        let Spread { lowest_ms, highest_ms, .. } = made;
        self.holds_within(Bounds { lowest_ms, highest_ms })
    }

    fn holds_within(self, Bounds { lowest_ms, highest_ms }: Bounds) -> Within {
        if lowest_ms >= self.start_ms && highest_ms < self.end_ms {
            Within::Yes
        } else if highest_ms < self.start_ms || lowest_ms >= self.end_ms {
            Within::No
        } else {
            Within::Maybe
        }
    }
}

impl Facts {
    /// The facts of a policy and its timeline, and of what its limits make of that.
    pub(super) fn new(
        source: &Source,
        timeline: &Timeline,
        crowd: Option<&Crowd>,
        outage: Option<Window>,
    ) -> Self {
        let policy = &source.policy;
        let limited = crowd.filter(|crowd| crowd.burst.limited);
        let (attempts_made, last, requests_first_hour) = match limited {
            Some(Crowd { lives, .. }) => {
                let last = spread(&lives.lasts(u64::MAX)).unwrap_or_default();
                (lives.count(|_| true), last, lives.count(|at| at < HOUR_MS))
            }
            None => (timeline.attempts, timeline.last, timeline.first_hour),
        };
        let survived = limited.map_or(last, |crowd| crowd.survived());
        let outage = outage.map(|window| match limited {
            Some(crowd) => Outage::behind_limits(crowd, policy, window),
            None => Outage::new(policy, timeline, window),
        });
        Self {
            with_limits: limited.is_some(),
            attempts_made,
            last_attempt_since_event: last,
            attempts_unreached: Unreached::of(timeline),
            requests_first_hour,
            survived_outage: Survived {
                for_sure_ms: survived.lowest_ms,
                mean_ms: survived.mean_ms,
                at_best_ms: survived.highest_ms,
            },
            longest_wait_after_recovery_ms: timeline.longest_wait_ms,
            longest_quiet_after_recovery_ms: limited.map(|crowd| crowd.quiet_ms_max),
            events: crowd.map(|crowd| crowd.burst.clone()),
            outage,
            afterwards: source.afterwards,
        }
    }
}

impl Unreached {
    fn of(timeline: &Timeline) -> Option<Self> {
        let last_since_event = *timeline.unreached.last()?;
        let reached = timeline.entries.last()?.attempt;
        let count = u32::try_from(timeline.unreached.len()).unwrap_or(u32::MAX);
        let (first, last) = (reached + 1, reached.saturating_add(count));
        let lives = timeline.lives.len() as u64;
        Some(Self { first, last, lives, last_since_event })
    }
}

impl Outage {
    /// How one delivery gets through it that nothing but its schedule holds back.
    fn new(policy: &Policy, timeline: &Timeline, window: Window) -> Self {
        let age_max = policy.life.age_max.map_or(u64::MAX, Millis::get);
        let Window { start_ms, end_ms } = window;
        let count = |counted: &dyn Fn(Within) -> bool| {
            let made = timeline.entries.iter().map(|entry| window.holds(entry.since_event));
            let made =
                made.chain(timeline.unreached.iter().map(|bounds| window.holds_within(*bounds)));
            made.filter(|within| counted(*within)).count() as u64
        };
        let within = |at| at <= age_max && (start_ms..end_ms).contains(&at);
        Self {
            attempts_within: Count {
                lowest: count(&|within| within == Within::Yes),
                highest: count(&|within| within != Within::No),
                ..timeline.lives.count(within)
            },
            survived_for_sure: timeline.last.lowest_ms >= end_ms,
            survived_at_best: timeline.last.highest_ms >= end_ms,
            ..Self::of_lives(&timeline.lives, age_max, window)
        }
    }

    /// How the deliveries get through it that stand before the same gate, whose breaker closes and
    /// whose backlog leaves once the receiver is back.
    fn behind_limits(crowd: &Crowd, policy: &Policy, window: Window) -> Self {
        Self::of_lives(&crowd.until(policy, window.end_ms), u64::MAX, window)
    }

    fn of_lives(lives: &Lives, age_max: u64, window: Window) -> Self {
        let Window { start_ms, end_ms } = window;
        let firsts = lives.firsts_from(end_ms, age_max);
        Self {
            start_ms,
            end_ms,
            attempts_within: lives.count(|at| at <= age_max && (start_ms..end_ms).contains(&at)),
            survived_for_sure: firsts.len() == lives.len(),
            survived_at_best: !firsts.is_empty(),
            survived_percent: (firsts.len() * 100 / lives.len().max(1)) as u64,
            first_after: spread(&firsts),
        }
    }
}

#[cfg(test)]
mod tests {
    use hookproof_core::preset;

    use super::*;

    fn outage(name: &str, end: Millis) -> Outage {
        let schedule = preset::find(name).unwrap().schedule;
        let policy = Policy { schedule, ..Policy::default() };
        let timeline = Timeline::new(&policy, None);
        Outage::new(&policy, &timeline, Window { start_ms: 0, end_ms: end.get() })
    }

    #[test]
    fn a_day_is_survived_by_standard_webhooks_and_not_by_seed_2() {
        let day = Millis::from_hours(24);
        let standard = outage("standard-webhooks", day);
        assert_eq!((standard.survived_percent, standard.attempts_within.highest), (100, 7));
        let first = standard.first_after.expect("it is survived");
        assert_eq!(first, Spread::exactly((31 * 3600 + 35 * 60 + 5) * 1000));
        let seed_2 = outage("seed-2", day);
        assert_eq!((seed_2.survived_percent, seed_2.first_after), (0, None));
    }

    #[test]
    fn an_attempt_at_the_very_end_of_an_outage_is_after_it() {
        let end = Millis::from_secs(5);
        let standard = outage("standard-webhooks", end);
        assert_eq!(standard.first_after, Some(Spread::exactly(5000)));
        assert_eq!(standard.attempts_within.lowest, 1);
    }

    #[test]
    fn jitter_leaves_to_chance_whether_an_outage_is_survived() {
        let seed_2 = outage("seed-2", Millis::from_minutes(17));
        assert!((40..60).contains(&seed_2.survived_percent), "{seed_2:?}");
        assert!(seed_2.survived_at_best && !seed_2.survived_for_sure);
        // 34m6s is the very longest that all waits together can be: rarer than one life in 4,096.
        let hardly = outage("seed-2", Millis::from_minutes(34));
        assert!(hardly.survived_at_best && hardly.first_after.is_none(), "{hardly:?}");
        assert!(!outage("seed-2", Millis::from_minutes(35)).survived_at_best);
    }
}
