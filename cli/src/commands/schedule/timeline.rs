//! A schedule spread out over time: when each attempt is made at the earliest, on average, and at
//! the latest.

use hookproof_core::schedule::{Jitter, Schedule};
use serde::Serialize;

/// The attempts of a schedule, at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Timeline {
    pub(super) entries: Vec<Entry>,
}

/// One attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Entry {
    /// Its number, from 1.
    pub(super) attempt: u32,
    /// How long it waits for after the attempt before; the first does not wait.
    pub(super) wait: Spread,
    /// When it is made, if attempts take no time and fail at once.
    pub(super) since_event: Spread,
}

/// What a span of time can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Spread {
    pub(super) lowest_ms: u64,
    /// Halves are rounded down.
    pub(super) mean_ms: u64,
    pub(super) highest_ms: u64,
}

const AT_ONCE: Spread = Spread { lowest_ms: 0, mean_ms: 0, highest_ms: 0 };
const FIRST: Entry = Entry { attempt: 1, wait: AT_ONCE, since_event: AT_ONCE };

impl Timeline {
    pub(super) fn new(schedule: &Schedule) -> Self {
        let mut entries = vec![FIRST];
        let mut sum = Sum::default();
        for attempt in 1..schedule.attempts_max() {
            let Some(bounds) = schedule.bounds(attempt) else { break };
            let wait = Sum {
                lowest: bounds.lowest.get(),
                mean_twice: mean_twice(schedule.jitter, bounds.lowest.get(), bounds.highest.get()),
                highest: bounds.highest.get(),
            };
            sum = sum.plus(wait);
            entries.push(Entry {
                attempt: attempt + 1,
                wait: wait.spread(),
                since_event: sum.spread(),
            });
        }
        Self { entries }
    }

    pub(super) fn last(&self) -> Entry {
        self.entries.last().copied().unwrap_or(FIRST)
    }

    /// Whether any wait is left to chance.
    pub(super) fn is_spread(&self) -> bool {
        self.entries.iter().any(|entry| entry.wait.lowest_ms != entry.wait.highest_ms)
    }
}

/// Twice the mean of a wait: the mean itself may have a half.
fn mean_twice(jitter: Jitter, lowest: u64, highest: u64) -> u128 {
    match jitter {
        Jitter::None => 2 * u128::from(highest),
        // Uniform between the bounds.
        Jitter::Full => u128::from(lowest) + u128::from(highest),
    }
}

/// Waits added up, in milliseconds.
#[derive(Clone, Copy, Default)]
struct Sum {
    lowest: u64,
    mean_twice: u128,
    highest: u64,
}

impl Sum {
    fn plus(self, other: Self) -> Self {
        Self {
            lowest: self.lowest.saturating_add(other.lowest),
            mean_twice: self.mean_twice + other.mean_twice,
            highest: self.highest.saturating_add(other.highest),
        }
    }

    fn spread(self) -> Spread {
        Spread {
            lowest_ms: self.lowest,
            mean_ms: u64::try_from(self.mean_twice / 2).unwrap_or(u64::MAX),
            highest_ms: self.highest,
        }
    }
}

#[cfg(test)]
mod tests {
    use hookproof_core::preset;
    use hookproof_core::schedule::Backoff;
    use hookproof_core::time::Millis;

    use super::*;

    #[test]
    fn waits_add_up_to_the_time_since_the_event() {
        let timeline = Timeline::new(&preset::standard_webhooks().schedule);
        let ms = (75 * 3600 + 35 * 60 + 5) * 1000;
        let exact = Spread { lowest_ms: ms, mean_ms: ms, highest_ms: ms };
        assert_eq!(timeline.entries.len(), 10);
        assert_eq!(timeline.last().since_event, exact);
        assert!(!timeline.is_spread());
    }

    #[test]
    fn full_jitter_has_its_mean_in_the_middle_and_zero_as_its_lower_bound() {
        let timeline = Timeline::new(&preset::full_jitter_hour().schedule);
        // Without jitter, the second seed document has 510 s of waits before attempt 9.
        let ninth = timeline.entries[8].since_event;
        assert_eq!(ninth, Spread { lowest_ms: 0, mean_ms: 255_000, highest_ms: 510_000 });
        assert!(timeline.is_spread());
    }

    #[test]
    fn half_milliseconds_do_not_get_lost_in_a_sum() {
        let backoff = Backoff::List { waits: vec![Millis::new(1), Millis::new(1)] };
        let timeline = Timeline::new(&Schedule::new(backoff, Jitter::Full));
        assert_eq!(timeline.entries[1].since_event.mean_ms, 0);
        assert_eq!(timeline.entries[2].since_event.mean_ms, 1);
    }

    #[test]
    fn a_single_attempt_is_made_at_once() {
        let backoff = Backoff::List { waits: vec![] };
        let timeline = Timeline::new(&Schedule::new(backoff, Jitter::None));
        assert_eq!(timeline.entries.len(), 1);
        assert_eq!(timeline.last().since_event, AT_ONCE);
    }
}
