//! Many events that fail at once, on their way to one endpoint that stays down: a plain model of
//! what a rate limit and a breaker make of their attempts, which take no time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use hookproof_core::policy::Policy;
use hookproof_core::time::Millis;
use serde::Serialize;

use super::lives::entropy;

/// A breaker as `--breaker` gives it: after so many failures in a row it pauses, then lets one probe
/// through; each probe that fails doubles the pause, up to `pause_max`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Breaker {
    failures: u32,
    pause: Millis,
    pause_max: Millis,
}

/// Reads `FAILURES:PAUSE` or `FAILURES:PAUSE:LONGEST`.
pub(super) fn breaker(text: &str) -> Result<Breaker, String> {
    let read = || {
        let mut parts = text.split(':');
        let failures = parts.next()?.parse().ok().filter(|failures| *failures > 0)?;
        let pause: Millis = parts.next()?.parse().ok().filter(|pause| *pause > Millis::ZERO)?;
        let pause_max = match parts.next() {
            Some(longest) => longest.parse().ok().filter(|longest| *longest >= pause)?,
            None => pause,
        };
        parts.next().is_none().then_some(Breaker { failures, pause, pause_max })
    };
    read().ok_or_else(|| {
        "write failures in a row, the first pause and perhaps the longest, as in 20:1m or 20:1m:1h"
            .to_owned()
    })
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Burst {
    pub(super) events: u32,
    /// Requests in all.
    pub(super) requests: u64,
    pub(super) requests_first_hour: u64,
    /// The most retries within one second of the clock, counted from the event.
    pub(super) retries_per_second_max: u64,
    /// When the last attempt of any event was made.
    pub(super) last_attempt_ms: u64,
    /// By how much a limit or a breaker held an attempt back at most.
    pub(super) held_ms_max: u64,
}

/// What limits the attempts of all events together.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Limits {
    pub(super) breaker: Option<Breaker>,
    /// Requests a second.
    pub(super) rate: Option<u32>,
    pub(super) retry_after: Option<Millis>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at_ms: u64,
    event: u32,
    attempt: u32,
    /// When the schedule wanted it.
    wanted_ms: u64,
    previous: Option<Millis>,
}

impl Burst {
    /// Lives through all attempts of `events` events.
    pub(super) fn new(policy: &Policy, events: u32, limits: Limits) -> Self {
        let age_max = policy.life.age_max.map_or(u64::MAX, Millis::get);
        let first = |event| Due { at_ms: 0, event, attempt: 1, wanted_ms: 0, previous: None };
        let mut queue: BinaryHeap<_> = (0..events).map(|event| Reverse(first(event))).collect();
        let mut burst = Self {
            events,
            requests: 0,
            requests_first_hour: 0,
            retries_per_second_max: 0,
            last_attempt_ms: 0,
            held_ms_max: 0,
        };
        let mut next_slot_us = 0_u128;
        let (mut in_a_row, mut open) = (0_u32, None::<(u64, Millis)>);
        let (mut second, mut in_second) = (0, 0);
        // In the order in which they came: whoever was held back first goes first.
        let mut held: VecDeque<Due> = VecDeque::new();
        loop {
            let slot_ms = u64::try_from(next_slot_us.div_ceil(1000)).unwrap_or(u64::MAX);
            let opens = limits.rate.map_or(0, |_| slot_ms).max(open.map_or(0, |(until, _)| until));
            let next_is_later = queue.peek().is_none_or(|Reverse(due)| due.at_ms >= opens);
            let due = match held.pop_front() {
                Some(due) if next_is_later => Due { at_ms: opens.max(due.at_ms), ..due },
                waits => {
                    waits.into_iter().for_each(|due| held.push_front(due));
                    let Some(Reverse(due)) = queue.pop() else { break };
                    if due.at_ms < opens {
                        held.push_back(due);
                        continue;
                    }
                    due
                }
            };
            if due.at_ms > age_max {
                continue;
            }
            if let Some(rate) = limits.rate {
                let now_us = u128::from(due.at_ms) * 1000;
                // What was not used up before does not add up to a burst later.
                next_slot_us = next_slot_us.max(now_us.saturating_sub(999))
                    + 1_000_000 / u128::from(rate.max(1));
            }
            burst.requests += 1;
            burst.requests_first_hour += u64::from(due.at_ms < 3_600_000);
            burst.last_attempt_ms = due.at_ms;
            burst.held_ms_max = burst.held_ms_max.max(due.at_ms - due.wanted_ms);
            if due.at_ms / 1000 != second {
                (second, in_second) = (due.at_ms / 1000, 0);
            }
            in_second += u64::from(due.attempt > 1);
            burst.retries_per_second_max = burst.retries_per_second_max.max(in_second);
            in_a_row = in_a_row.saturating_add(1);
            if let Some(breaker) = limits.breaker
                && in_a_row >= breaker.failures
            {
                let pause = match open {
                    Some((_, pause)) => pause.times(2).min(breaker.pause_max),
                    None => breaker.pause,
                };
                open = Some((due.at_ms.saturating_add(pause.get()), pause));
            }
            let entropy = entropy(u64::from(due.event), due.attempt);
            let draw = policy.draw(due.attempt, due.previous, limits.retry_after);
            let Some(draw) = draw else { continue };
            let drawn = policy.schedule.draw(due.attempt, due.previous);
            let at_ms = due.at_ms.saturating_add(draw.at(entropy).get());
            if at_ms <= age_max {
                queue.push(Reverse(Due {
                    at_ms,
                    wanted_ms: at_ms,
                    attempt: due.attempt + 1,
                    previous: drawn.map(|draw| draw.at(entropy)),
                    ..due
                }));
            }
        }
        burst
    }
}

#[cfg(test)]
mod tests {
    use hookproof_core::preset;

    use super::*;

    fn standard(events: u32, limits: Limits) -> Burst {
        Burst::new(&Policy::default(), events, limits)
    }

    #[test]
    fn without_jitter_all_events_come_back_in_the_same_second() {
        let burst = standard(1_000, Limits::default());
        assert_eq!((burst.requests, burst.requests_first_hour), (10_000, 4_000));
        assert_eq!(burst.retries_per_second_max, 1_000);
        assert_eq!(burst.last_attempt_ms, 272_105_000);
    }

    #[test]
    fn jitter_spreads_them() {
        let schedule = preset::full_jitter_hour().schedule;
        let burst = Burst::new(&Policy { schedule, ..Policy::default() }, 1_000, Limits::default());
        assert!((500..800).contains(&burst.retries_per_second_max), "{burst:?}");
    }

    #[test]
    fn a_rate_is_never_exceeded_and_moves_the_last_attempt() {
        let burst = standard(1_000, Limits { rate: Some(10), ..Limits::default() });
        assert!(burst.retries_per_second_max <= 10, "{burst:?}");
        assert!(burst.last_attempt_ms > 272_105_000 && burst.held_ms_max > 90_000, "{burst:?}");
        assert_eq!(burst.requests, 10_000);
    }

    #[test]
    fn an_open_breaker_lets_one_probe_through_at_each_pause() {
        let breaker = breaker("20:1m").unwrap();
        let limits = Limits { breaker: Some(breaker), ..Limits::default() };
        let burst = standard(1_000, limits);
        // 20 until it opens, then one a minute.
        assert_eq!(burst.requests_first_hour, 20 + 59);
    }

    #[test]
    fn a_breaker_is_read_from_two_or_three_parts() {
        let read = |text| breaker(text).ok().map(|b| (b.failures, b.pause_max.to_string()));
        assert_eq!(read("20:1m"), Some((20, "1m".to_owned())));
        assert_eq!(read("20:1m:1h"), Some((20, "1h".to_owned())));
        for wrong in ["", "20", "0:1m", "20:0s", "20:1h:1m", "20:1m:1h:1", "x:1m"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
