//! The one source of nondeterminism.
//!
//! Every decision that a simulation does not derive from its inputs is a *draw*: which fault, which
//! crash point, which latency, which identifier. A draw is keyed by who asks, what for, and how
//! often that was asked before, and its value depends on nothing else. So leaving one draw out does
//! not move the others, and a list of draws is a whole history.
//!
//! Zero always means the harmless alternative: no fault, no delay, the first of a list.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is asked, by whom, for the how manieth time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    /// Who asks: a host, the network, the plan.
    pub who: &'static str,
    /// What is decided.
    pub what: &'static str,
    /// How often the same was asked before.
    pub nth: u32,
}

/// One decision.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Draw {
    /// What was asked.
    pub key: Key,
    /// The answer.
    pub value: u64,
}

#[derive(Debug)]
enum Source {
    /// Random by a seed.
    Seeded(u64),
    /// A recorded history; what is not in it is zero.
    Recorded(BTreeMap<Key, u64>),
}

#[derive(Debug)]
struct State {
    source: Source,
    asked: BTreeMap<(&'static str, &'static str), u32>,
    draws: Vec<Draw>,
}

/// A source of choices, shared by all parts of one simulation.
#[derive(Clone, Debug)]
pub struct Choices {
    state: Arc<Mutex<State>>,
}

impl Choices {
    /// Random choices: the same seed gives the same value for the same key, on every machine.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self::new(Source::Seeded(seed))
    }

    /// The choices of an earlier run, in any order; whatever is missing is zero.
    #[must_use]
    pub fn recorded(draws: &[Draw]) -> Self {
        Self::new(Source::Recorded(draws.iter().map(|draw| (draw.key, draw.value)).collect()))
    }

    fn new(source: Source) -> Self {
        let state = State { source, asked: BTreeMap::new(), draws: Vec::new() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// A value in `0..bound`; 0 if the bound is 0.
    pub fn draw(&self, who: &'static str, what: &'static str, bound: u64) -> u64 {
        self.ask(
            who,
            what,
            |raw| scale(raw, bound),
            |found, _| found.unwrap_or(0).min(bound.saturating_sub(1)),
        )
    }

    /// A value in `lowest..=highest`.
    pub fn between(&self, who: &'static str, what: &'static str, lowest: u64, highest: u64) -> u64 {
        lowest + self.draw(who, what, highest - lowest + 1)
    }

    /// `true` in `per_mille` of a thousand cases. Drawn even when the answer is certain, so that a
    /// changed weight does not move other draws.
    pub fn chance(&self, who: &'static str, what: &'static str, per_mille: u64) -> bool {
        let value = self.draw(who, what, 1000);
        value >= 1000 - per_mille.min(1000)
    }

    /// 64 random bits. These make names rather than decisions: where a recording is silent they are
    /// not zero but still all different, since two events of one name would be one event.
    pub fn bits(&self, who: &'static str, what: &'static str) -> u64 {
        self.ask(who, what, |raw| raw, |found, key| found.unwrap_or_else(|| mix(0, key)))
    }

    /// All draws so far, in the order in which they were asked.
    #[must_use]
    pub fn draws(&self) -> Vec<Draw> {
        self.lock().draws.clone()
    }

    fn ask(
        &self,
        who: &'static str,
        what: &'static str,
        of_random: impl Fn(u64) -> u64,
        of_recorded: impl Fn(Option<u64>, Key) -> u64,
    ) -> u64 {
        let mut state = self.lock();
        let count = state.asked.entry((who, what)).or_insert(0);
        let key = Key { who, what, nth: *count };
        *count += 1;
        let value = match &state.source {
            Source::Seeded(seed) => of_random(mix(*seed, key)),
            Source::Recorded(values) => of_recorded(values.get(&key).copied(), key),
        };
        state.draws.push(Draw { key, value });
        value
    }

    /// A panic elsewhere ends the run; what was drawn until then is still wanted.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `raw / 2⁶⁴ · bound`, without modulo bias.
fn scale(raw: u64, bound: u64) -> u64 {
    let scaled = (u128::from(raw) * u128::from(bound)) >> 64;
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// A well-mixed function of seed and key: SplitMix64's finaliser (Steele, Lea and Flood 2014) after
/// each word. Its output is part of what a seed means and must never change.
fn mix(seed: u64, key: Key) -> u64 {
    let mut hash = finalise(seed.wrapping_add(GOLDEN));
    for text in [key.who, key.what] {
        for chunk in text.as_bytes().chunks(8) {
            let mut word = [0_u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = finalise(hash ^ u64::from_le_bytes(word));
        }
        hash = finalise(hash ^ text.len() as u64);
    }
    finalise(hash ^ u64::from(key.nth).wrapping_add(GOLDEN))
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn finalise(mut z: u64) -> u64 {
    z = z.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
