//! Events that fail at once before one gate, in as many runs as it takes to see what is left to chance.

use hookproof_core::policy::Policy;

use super::burst::{Burst, Run};
use super::limits::Limits;
use super::lives::{LIVES, Lives, spread};
use super::timeline::{Spread, Timeline};

/// The most requests that are made to see what is left to chance.
const REQUESTS_DRAWN_MAX: u64 = 200_000;

/// All runs of the same events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Crowd {
    /// The first run.
    pub(super) burst: Burst,
    /// The events of all runs.
    pub(super) lives: Lives,
    /// The longest time between a request and the next, in any run.
    pub(super) quiet_ms_max: u64,
    /// What becomes of the attempts, up to the last that any event comes to.
    attempts: Vec<Limited>,
    runs: u64,
    limits: Limits,
}

/// The attempts of one number, over all events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limited {
    /// How many events of a run come to this attempt; on average, rounded up.
    pub(super) events: u64,
    /// When they do.
    pub(super) made: Spread,
}

impl Crowd {
    /// `events` events under a policy, behind limits.
    pub(super) fn new(policy: &Policy, timeline: &Timeline, events: u32, limits: Limits) -> Self {
        let requests = u64::from(events) * timeline.entries.len() as u64;
        let is_drawn = timeline.is_spread() && limits.limit();
        let runs = if is_drawn {
            (LIVES / u64::from(events)).min(REQUESTS_DRAWN_MAX / requests).max(1)
        } else {
            1
        };
        let mut bursts = bursts(policy, events, runs, &limits, None);
        let lives =
            Lives::of(bursts.iter_mut().flat_map(|b| std::mem::take(&mut b.made)).collect());
        let quiet_ms_max = bursts.iter().map(|burst| burst.quiet_ms_max).max().unwrap_or(0);
        let mut burst = bursts.swap_remove(0);
        if events == 1 {
            // Of one event nothing is told but what holds in all runs.
            let held = bursts.iter().map(|burst| burst.held_ms_max);
            burst.held_ms_max = held.chain([burst.held_ms_max]).max().unwrap_or(0);
        }
        let attempts = (1..).map_while(|attempt| limited(&lives, attempt, runs)).collect();
        Self { burst, lives, quiet_ms_max, attempts, runs, limits }
    }

    /// The same events, whose receiver takes what it gets from some time on.
    pub(super) fn until(&self, policy: &Policy, recovery_ms: u64) -> Lives {
        let Self { burst, runs, limits, .. } = self;
        let bursts = bursts(policy, burst.events, *runs, limits, Some(recovery_ms));
        Lives::of(bursts.into_iter().flat_map(|burst| burst.made).collect())
    }

    /// The longest outage after which an event still has an attempt: none for one that never had any,
    /// since the endpoint was given up or the event too old.
    pub(super) fn survived(&self) -> Spread {
        let lasts = self.lives.lasts(u64::MAX);
        let never = vec![0; self.lives.len() - lasts.len()];
        spread(&[never, lasts].concat()).unwrap_or_default()
    }

    /// What becomes of an attempt, unless no event comes to it.
    pub(super) fn attempt(&self, attempt: u32) -> Option<Limited> {
        self.attempts.get(attempt as usize - 1).copied()
    }
}

fn limited(lives: &Lives, attempt: u32, runs: u64) -> Option<Limited> {
    let made = lives.nths(attempt);
    let events = (made.len() as u64).div_ceil(runs);
    Some(Limited { events, made: spread(&made)? })
}

fn bursts(
    policy: &Policy,
    events: u32,
    runs: u64,
    limits: &Limits,
    recovery_ms: Option<u64>,
) -> Vec<Burst> {
    let run = |run| Run { events, first_life: run * u64::from(events), recovery_ms };
    (0..runs).map(|nth| Burst::new(policy, run(nth), limits)).collect()
}
