//! A schedule spread out over time: when each attempt is made at the earliest, on average, and at
//! the latest.

use hookproof_core::policy::Policy;
use hookproof_core::schedule::Jitter;
use hookproof_core::time::Millis;
use serde::Serialize;

use super::lives::{Drawn, Lives, spread};

/// The attempts of a policy whose receiver never takes the event; at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Timeline {
    pub(super) entries: Vec<Entry>,
    /// Those that are possible, and that no life came to; they follow the entries.
    pub(super) unreached: Vec<Bounds>,
    /// When the last attempt is made that the greatest age still allows.
    pub(super) last: Spread,
    /// How many attempts are made: fewest, in thousandths on average, most.
    pub(super) attempts: Count,
    /// The same, within the first hour.
    pub(super) first_hour: Count,
    /// The longest wait before an attempt that is possible; `None` where there is but one.
    pub(super) longest_wait_ms: Option<u64>,
    /// The shares of `OUTAGES` are told of these lives.
    pub(super) lives: Lives,
    is_spread: bool,
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub(super) struct Spread {
    pub(super) lowest_ms: u64,
    /// Halves are rounded down.
    pub(super) mean_ms: u64,
    pub(super) p50_ms: u64,
    pub(super) p95_ms: u64,
    pub(super) highest_ms: u64,
}

impl Spread {
    /// What is not left to chance.
    #[cfg(test)]
    pub(super) const fn exactly(ms: u64) -> Self {
        Self { lowest_ms: ms, mean_ms: ms, p50_ms: ms, p95_ms: ms, highest_ms: ms }
    }
}

/// When an attempt can be made at the earliest and at the latest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Bounds {
    pub(super) lowest_ms: u64,
    pub(super) highest_ms: u64,
}

/// How many there can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub(super) struct Count {
    pub(super) lowest: u64,
    pub(super) mean_thousandths: u64,
    pub(super) highest: u64,
}

const FIRST: Entry = Entry { attempt: 1, wait: NONE, since_event: NONE };
const NONE: Spread = Spread { lowest_ms: 0, mean_ms: 0, p50_ms: 0, p95_ms: 0, highest_ms: 0 };
pub(super) const HOUR_MS: u64 = 3_600_000;

impl Timeline {
    /// The timeline under a policy, whose receiver asks for `retry_after` each time.
    pub(super) fn new(policy: &Policy, retry_after: Option<Millis>) -> Self {
        let age_max = policy.life.age_max.map_or(u64::MAX, Millis::get);
        let mut lives = Lives::new(policy);
        let mut entries = vec![FIRST];
        let (mut lowest, mut mean_65536, mut highest) = (0_u64, 0_u128, 0_u64);
        let mut is_reached = true;
        for attempt in 1..policy.schedule.attempts_max() {
            let Some(draw) = policy.draw(attempt, None, retry_after) else { break };
            let bounds = draw.bounds();
            if lowest.saturating_add(bounds.lowest.get()) > age_max {
                break;
            }
            // Once each life is too old, nothing but the bounds is left to tell.
            is_reached = is_reached && lives.reach(attempt, age_max);
            let drawn = match is_reached {
                true => lives.go_on(policy, attempt, retry_after),
                false => Drawn::default(),
            };
            lowest = lowest.saturating_add(bounds.lowest.get());
            highest = highest.saturating_add(bounds.highest.get());
            // Decorrelated waits depend on the one before: there only the lives know the middle.
            let has_form = policy.schedule.jitter != Jitter::Decorrelated;
            let (mean, p50_ms, p95_ms) = if has_form && is_reached {
                (draw.mean_65536(), draw.percentile(50).get(), draw.percentile(95).get())
            } else {
                (drawn.mean_65536, drawn.p50_ms, drawn.p95_ms)
            };
            mean_65536 = mean_65536.saturating_add(mean);
            let wait = Spread {
                lowest_ms: bounds.lowest.get(),
                mean_ms: whole(mean),
                p50_ms,
                p95_ms,
                highest_ms: bounds.highest.get(),
            };
            let since_event = Spread {
                lowest_ms: lowest,
                mean_ms: whole(mean_65536),
                p50_ms: if is_reached { lives.percentile(50) } else { 0 },
                p95_ms: if is_reached { lives.percentile(95) } else { 0 },
                highest_ms: highest,
            };
            entries.push(Entry { attempt: attempt + 1, wait, since_event });
        }
        let made = |entry: &&Entry, by: u64| entry.since_event.highest_ms <= by;
        let count = |lowest: usize, mean_thousandths: u64, highest: usize| Count {
            lowest: lowest as u64,
            mean_thousandths,
            highest: highest as u64,
        };
        let sure = entries.iter().take_while(|entry| made(entry, age_max)).count();
        let hour = age_max.min(HOUR_MS - 1);
        let first_hour = count(
            entries.iter().take_while(|entry| made(entry, hour)).count(),
            lives.count(|at| at <= hour).mean_thousandths,
            entries.iter().take_while(|entry| entry.since_event.lowest_ms <= hour).count(),
        );
        let mean_thousandths = lives.count(|at| at <= age_max).mean_thousandths;
        let attempts = count(sure, mean_thousandths, entries.len());
        let last = last(&entries, &lives, age_max);
        let longest_wait_ms = entries.iter().skip(1).map(|entry| entry.wait.highest_ms).max();
        let is_spread = entries.iter().any(|entry| entry.wait.lowest_ms != entry.wait.highest_ms);
        // Each life has its first attempt.
        let reached = entries.partition_point(|entry| lives.reach(entry.attempt, age_max));
        let unreached = entries.split_off(reached.max(1)).into_iter();
        let unreached = unreached.map(|entry| bounds(entry, age_max)).collect();
        for entry in &mut entries {
            entry.since_event = up_to(entry, &lives, age_max);
        }
        Self { entries, unreached, last, attempts, first_hour, longest_wait_ms, lives, is_spread }
    }

    /// Whether any wait is left to chance.
    pub(super) fn is_spread(&self) -> bool {
        self.is_spread
    }
}

/// When the last attempt is made. Where the age can cut a delivery off, the last one before that is
/// no earlier than the greatest age less the wait that led beyond it.
fn last(entries: &[Entry], lives: &Lives, age_max: u64) -> Spread {
    let end = entries.last().unwrap_or(&FIRST).since_event;
    if end.highest_ms <= age_max {
        return end;
    }
    let cut = entries.windows(2).filter_map(|pair| {
        let (at, next) = (pair[0].since_event, pair[1]);
        let earliest = age_max.saturating_add(1).saturating_sub(next.wait.highest_ms);
        let earliest = at.lowest_ms.max(earliest);
        (next.since_event.highest_ms > age_max && earliest <= at.highest_ms.min(age_max))
            .then_some(earliest)
    });
    // Each life has its first attempt.
    let drawn = spread(&lives.lasts(age_max)).unwrap_or(NONE);
    Spread {
        lowest_ms: cut
            .chain((end.lowest_ms <= age_max).then_some(end.lowest_ms))
            .min()
            .unwrap_or(0),
        highest_ms: entries
            .iter()
            .take_while(|entry| entry.since_event.lowest_ms <= age_max)
            .last()
            .map_or(0, |entry| entry.since_event.highest_ms.min(age_max)),
        ..drawn
    }
}

/// When an attempt is made, by the lives that make it: beyond the greatest age none does.
fn up_to(entry: &Entry, lives: &Lives, age_max: u64) -> Spread {
    let all = entry.since_event;
    if all.highest_ms <= age_max {
        return all;
    }
    let mut made = lives.nths(entry.attempt);
    made.retain(|at| *at <= age_max);
    let drawn = spread(&made).unwrap_or(NONE);
    Spread { lowest_ms: all.lowest_ms, highest_ms: age_max, ..drawn }
}

/// When an attempt can be made: beyond the greatest age none is.
fn bounds(entry: Entry, age_max: u64) -> Bounds {
    let Spread { lowest_ms, highest_ms, .. } = entry.since_event;
    Bounds { lowest_ms, highest_ms: highest_ms.min(age_max) }
}

fn whole(mean_65536: u128) -> u64 {
    u64::try_from(mean_65536 >> 16).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use hookproof_core::life::Life;
    use hookproof_core::preset;
    use hookproof_core::schedule::{Backoff, Schedule};

    use super::*;

    fn timeline(schedule: Schedule) -> Timeline {
        Timeline::new(&Policy { schedule, ..Policy::default() }, None)
    }

    #[test]
    fn waits_add_up_to_the_time_since_the_event() {
        let timeline = timeline(preset::standard_webhooks().schedule);
        assert_eq!(timeline.entries.len(), 10);
        assert_eq!(timeline.last, Spread::exactly((75 * 3600 + 35 * 60 + 5) * 1000));
        assert!(!timeline.is_spread());
    }

    #[test]
    fn full_jitter_has_its_mean_in_the_middle_and_zero_as_its_lower_bound() {
        let timeline = timeline(preset::full_jitter_hour().schedule);
        // Without jitter, the second seed document has 510 s of waits before attempt 9.
        let ninth = timeline.entries[8].since_event;
        assert_eq!((ninth.lowest_ms, ninth.mean_ms, ninth.highest_ms), (0, 255_000, 510_000));
        assert!(timeline.is_spread());
        assert!(timeline.last.highest_ms < 86_400_000, "a day's outage is not survived");
    }

    #[test]
    fn half_milliseconds_do_not_get_lost_in_a_sum() {
        let backoff = Backoff::List { waits: vec![Millis::new(1), Millis::new(1)] };
        let timeline = timeline(Schedule::new(backoff, Jitter::Full));
        assert_eq!(timeline.entries[1].since_event.mean_ms, 0);
        assert_eq!(timeline.entries[2].since_event.mean_ms, 1);
    }

    #[test]
    fn no_attempt_is_shown_beyond_the_greatest_age() {
        let waits = vec![Millis::from_secs(10); 3];
        let schedule = Schedule::new(Backoff::List { waits }, Jitter::Full);
        let life = Life { age_max: Some(Millis::from_secs(15)), ..Life::default() };
        let timeline = Timeline::new(&Policy { schedule, life, ..Policy::default() }, None);
        let ends = timeline.entries.iter().map(|entry| entry.since_event.highest_ms);
        assert_eq!(ends.collect::<Vec<_>>(), [0, 10_000, 15_000, 15_000]);
        for entry in &timeline.entries {
            let Spread { lowest_ms, mean_ms, p50_ms, p95_ms, highest_ms } = entry.since_event;
            assert!(lowest_ms <= mean_ms && mean_ms <= highest_ms, "{entry:?}");
            assert!(p50_ms <= p95_ms && p95_ms <= highest_ms, "{entry:?}");
        }
        // Of the sums below 15 s of two waits, the middle is where half of 7/8 lies below: 9.354 s.
        assert!(timeline.entries[2].since_event.p50_ms.abs_diff(9_354) < 300);
    }

    #[test]
    fn a_single_attempt_is_made_at_once() {
        let timeline = timeline(Schedule::new(Backoff::List { waits: vec![] }, Jitter::None));
        assert_eq!(timeline.entries.len(), 1);
        assert_eq!(timeline.last, NONE);
    }

    #[test]
    fn percentiles_since_the_event_are_near_those_of_a_known_distribution() {
        // Two waits of 0 to 10 s each: the sum is triangular, its median 10 s, and 95 % lie below
        // 20 s − √(2 · 0.05) · 10 s.
        let waits = vec![Millis::from_secs(10); 2];
        let timeline = timeline(Schedule::new(Backoff::List { waits }, Jitter::Full));
        let sum = timeline.entries[2].since_event;
        assert!(sum.p50_ms.abs_diff(10_000) < 250, "{sum:?}");
        assert!(sum.p95_ms.abs_diff(16_838) < 250, "{sum:?}");
    }

    #[test]
    fn the_greatest_age_cuts_the_timeline_off() {
        let mut policy =
            Policy { schedule: preset::standard_webhooks().schedule, ..Policy::default() };
        policy.life = Life { age_max: Some(Millis::from_hours(24)), ..Life::default() };
        let timeline = Timeline::new(&policy, None);
        assert_eq!(timeline.entries.len(), 7);
        assert_eq!(timeline.last.highest_ms, (17 * 3600 + 35 * 60 + 5) * 1000);
        let full = preset::full_jitter_hour().schedule;
        let life = Life { age_max: Some(Millis::from_minutes(5)), ..Life::default() };
        let timeline = Timeline::new(&Policy { schedule: full, life, ..Policy::default() }, None);
        assert_eq!((timeline.last.lowest_ms, timeline.last.highest_ms), (0, 300_000));
    }

    #[test]
    fn a_retry_after_raises_each_wait_to_itself() {
        let policy = Policy { schedule: preset::full_jitter_hour().schedule, ..Policy::default() };
        let timeline = Timeline::new(&policy, Some(Millis::from_minutes(1)));
        assert!(timeline.entries[1..].iter().all(|entry| entry.wait.lowest_ms == 60_000));
        assert_eq!(timeline.entries[1].wait, Spread::exactly(60_000));
        assert_eq!(timeline.entries[10].wait.highest_ms, 1_024_000);
    }
}
