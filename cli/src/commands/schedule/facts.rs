//! What a timeline comes down to, and how an outage goes.

use hookproof_core::policy::Policy;
use hookproof_core::time::Millis;
use serde::Serialize;

use super::burst::Burst;
use super::limits::Limits;
use super::timeline::{Count, Entry, Spread, Timeline};

/// The facts that matter about a policy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Facts {
    /// How many attempts a delivery gets.
    pub(super) attempts_made: Count,
    pub(super) last_attempt_since_event: Spread,
    /// How many of them fall into the first hour.
    pub(super) requests_first_hour: Count,
    /// The longest outage from the event on after which there is still an attempt.
    pub(super) survived_outage: Survived,
    pub(super) longest_wait_after_recovery_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) events: Option<Burst>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) outage: Option<Outage>,
    pub(super) afterwards: Afterwards,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Survived {
    pub(super) for_sure_ms: u64,
    pub(super) mean_ms: u64,
    pub(super) at_best_ms: u64,
}

/// What becomes of a delivery whose last attempt fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Afterwards {
    phase: &'static str,
    kept_for_replay: bool,
    owner_told: bool,
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
    pub(super) fn holds(self, entry: &Entry) -> Within {
        let Spread { lowest_ms, highest_ms, .. } = entry.since_event;
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
    /// The facts of a policy, and of `events` that fail at once, if any are asked about.
    pub(super) fn new(
        policy: &Policy,
        timeline: &Timeline,
        events: Option<u32>,
        limits: &Limits,
        outage: Option<Window>,
    ) -> Self {
        let last = timeline.last;
        Self {
            attempts_made: timeline.attempts,
            last_attempt_since_event: last,
            requests_first_hour: timeline.first_hour,
            survived_outage: Survived {
                for_sure_ms: last.lowest_ms,
                mean_ms: last.mean_ms,
                at_best_ms: last.highest_ms,
            },
            longest_wait_after_recovery_ms: timeline.longest_wait_ms(),
            events: events.map(|events| Burst::new(policy, events, limits)),
            outage: outage.map(|window| Outage::new(policy, timeline, window)),
            afterwards: Afterwards { phase: "dead", kept_for_replay: true, owner_told: true },
        }
    }
}

impl Outage {
    fn new(policy: &Policy, timeline: &Timeline, window: Window) -> Self {
        let age_max = policy.life.age_max.map_or(u64::MAX, Millis::get);
        let Window { start_ms, end_ms } = window;
        let count = |counted: &dyn Fn(Within) -> bool| {
            timeline.entries.iter().filter(|entry| counted(window.holds(entry))).count() as u64
        };
        let lives = &timeline.lives;
        let firsts = lives.firsts_from(end_ms, age_max);
        let sum: u128 = firsts.iter().map(|at| u128::from(*at)).sum();
        let first_after = (!firsts.is_empty()).then(|| Spread {
            lowest_ms: firsts[0],
            mean_ms: u64::try_from(sum / firsts.len() as u128).unwrap_or(u64::MAX),
            p50_ms: super::lives::percentile(&firsts, 50),
            p95_ms: super::lives::percentile(&firsts, 95),
            highest_ms: firsts[firsts.len() - 1],
        });
        Self {
            start_ms,
            end_ms,
            attempts_within: Count {
                lowest: count(&|within| within == Within::Yes),
                mean_thousandths: lives
                    .mean_thousandths(|at| at <= age_max && (start_ms..end_ms).contains(&at)),
                highest: count(&|within| within != Within::No),
            },
            survived_for_sure: timeline.last.lowest_ms >= end_ms,
            survived_at_best: timeline.last.highest_ms >= end_ms,
            survived_percent: (firsts.len() * 100 / lives.len().max(1)) as u64,
            first_after,
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
