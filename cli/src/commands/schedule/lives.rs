//! A fixed number of deliveries, drawn once and for all: for what has no closed form. The entropy of
//! each wait comes from its place (which life, which attempt), so that each run draws the same.

use hookproof_core::policy::Policy;
use hookproof_core::schedule::Draw;
use hookproof_core::time::Millis;

use super::timeline::{Count, Spread};

/// How many lives are drawn where anything is left to chance: 1 % of them are 41.
pub(super) const LIVES: u64 = 4_096;
/// How many at least, however many attempts each of them has.
const LIVES_MIN: u64 = 100;
/// How many attempts are drawn in all, about. Of lives with many attempts fewer are needed: what they are in
/// all varies the less.
const DRAWN_MAX: u64 = 8_000_000;

/// Deliveries that fail again and again, all at the same attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Lives {
    lives: Vec<Life>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Life {
    previous: Option<Millis>,
    /// When each attempt was made, after the event.
    attempts_ms: Vec<u64>,
}

/// What was drawn for one attempt.
#[derive(Default)]
pub(super) struct Drawn {
    pub(super) mean_65536: u128,
    pub(super) p50_ms: u64,
    pub(super) p95_ms: u64,
}

impl Lives {
    /// As many lives as there can be different ones, before their first retry.
    pub(super) fn new(policy: &Policy) -> Self {
        let is_sure = (1..policy.schedule.attempts_max())
            .filter_map(|attempt| policy.schedule.bounds(attempt))
            .all(|bounds| bounds.lowest == bounds.highest)
            && policy.retry_after_spread == Millis::ZERO;
        let count = match is_sure {
            true => 1,
            false => (DRAWN_MAX / attempts(policy)).clamp(LIVES_MIN, LIVES),
        };
        let life = Life { previous: None, attempts_ms: vec![0] };
        Self { lives: (0..count).map(|_| life.clone()).collect() }
    }

    /// Deliveries whose attempts were made at these times after their event, earliest first.
    pub(super) fn of(attempts: Vec<Vec<u64>>) -> Self {
        let life = |attempts_ms| Life { previous: None, attempts_ms };
        Self { lives: attempts.into_iter().map(life).collect() }
    }

    /// Makes the attempt after attempt number `attempt` of every life.
    pub(super) fn go_on(
        &mut self,
        policy: &Policy,
        attempt: u32,
        retry_after: Option<Millis>,
    ) -> Drawn {
        let mut waits = Vec::with_capacity(self.lives.len());
        for (number, life) in (0..).zip(&mut self.lives) {
            let entropy = entropy(number, attempt);
            let Some(draw) = policy.draw(attempt, life.previous, retry_after) else { continue };
            let drawn = policy.schedule.draw(attempt, life.previous);
            life.previous = drawn.map(|draw| draw.at(entropy));
            let wait = draw.at(entropy).get();
            let before = life.attempts_ms.last().copied().unwrap_or(0);
            life.attempts_ms.push(before.saturating_add(wait));
            waits.push(wait);
        }
        waits.sort_unstable();
        let sum: u128 = waits.iter().map(|wait| u128::from(*wait)).sum();
        Drawn {
            mean_65536: (sum << 16) / (waits.len() as u128).max(1),
            p50_ms: percentile(&waits, 50),
            p95_ms: percentile(&waits, 95),
        }
    }

    /// The percentile of when the newest attempts were made.
    pub(super) fn percentile(&self, percent: usize) -> u64 {
        let newest = self.lives.iter().filter_map(|life| life.attempts_ms.last().copied());
        let mut newest: Vec<_> = newest.collect();
        newest.sort_unstable();
        percentile(&newest, percent)
    }

    /// Whether any life made the attempt of this number, and no older than that.
    pub(super) fn reach(&self, attempt: u32, age_max: u64) -> bool {
        let at = attempt as usize - 1;
        self.lives.iter().any(|life| life.attempts_ms.get(at).is_some_and(|at| *at <= age_max))
    }

    /// When each life made its last attempt of at most that age, earliest first.
    pub(super) fn lasts(&self, age_max: u64) -> Vec<u64> {
        let last = |life: &Life| life.attempts_ms.iter().copied().filter(|at| *at <= age_max).max();
        let mut lasts: Vec<_> = self.lives.iter().filter_map(last).collect();
        lasts.sort_unstable();
        lasts
    }

    /// The first attempt of each life from `from` on and at most that old, earliest first; a life
    /// without one is left out.
    pub(super) fn firsts_from(&self, from: u64, age_max: u64) -> Vec<u64> {
        let first =
            |life: &Life| life.attempts_ms.iter().copied().find(|at| (from..=age_max).contains(at));
        let mut firsts: Vec<_> = self.lives.iter().filter_map(first).collect();
        firsts.sort_unstable();
        firsts
    }

    /// How many lives there are.
    pub(super) fn len(&self) -> usize {
        self.lives.len()
    }

    /// How many attempts of a life `counts` takes: fewest, on average, most.
    pub(super) fn count(&self, counts: impl Fn(u64) -> bool) -> Count {
        let count = |life: &Life| life.attempts_ms.iter().filter(|at| counts(**at)).count() as u64;
        let each: Vec<_> = self.lives.iter().map(count).collect();
        Count {
            lowest: each.iter().min().copied().unwrap_or(0),
            mean_thousandths: each.iter().sum::<u64>() * 1000 / (each.len() as u64).max(1),
            highest: each.iter().max().copied().unwrap_or(0),
        }
    }

    /// When the lives made the attempt of this number, earliest first; fewer of them may come to it.
    pub(super) fn nths(&self, attempt: u32) -> Vec<u64> {
        let at = attempt as usize - 1;
        let nths = self.lives.iter().filter_map(|life| life.attempts_ms.get(at).copied());
        let mut nths: Vec<_> = nths.collect();
        nths.sort_unstable();
        nths
    }
}

/// How many attempts a life has in the mean, about.
fn attempts(policy: &Policy) -> u64 {
    let attempts_max = policy.schedule.attempts_max();
    let age_max = policy.life.age_max.map_or(u128::MAX, |age| u128::from(age.get()) << 16);
    let mut sum: u128 = 0;
    for attempt in 1..attempts_max {
        sum = sum.saturating_add(policy.schedule.draw(attempt, None).map_or(0, Draw::mean_65536));
        if sum > age_max {
            return u64::from(attempt);
        }
    }
    u64::from(attempts_max)
}

/// What the values are, sorted from the lowest up; `None` if there is none.
pub(super) fn spread(sorted: &[u64]) -> Option<Spread> {
    let (lowest_ms, highest_ms) = (*sorted.first()?, *sorted.last()?);
    let sum: u128 = sorted.iter().map(|value| u128::from(*value)).sum();
    Some(Spread {
        lowest_ms,
        mean_ms: u64::try_from(sum / sorted.len() as u128).unwrap_or(u64::MAX),
        p50_ms: percentile(sorted, 50),
        p95_ms: percentile(sorted, 95),
        highest_ms,
    })
}

/// The value that so many of a hundred do not exceed.
pub(super) fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}

/// 64 bits for one wait of one life: SplitMix64's output function over its place.
pub(super) fn entropy(life: u64, attempt: u32) -> u64 {
    let place = life.wrapping_mul(10_007).wrapping_add(u64::from(attempt));
    let mut z = place.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
