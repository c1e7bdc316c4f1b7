//! The one source of nondeterminism.
//!
//! Every decision that a simulation does not derive from its inputs is a *draw*: which fault, which
//! crash point, which latency, which identifier. A draw is keyed by who asks, what for, and how
//! often that was asked before, and its value depends on nothing else. So leaving one draw out does
//! not move the others, and a list of draws is a whole history.
//!
//! There are four sources: a seed ([`Choices::seeded`]), a recorded history ([`Choices::recorded`]),
//! the branches of a tree one after the other ([`crate::explore`]), and bytes from a fuzzer
//! ([`Choices::from_bytes`]). To all of them zero means the harmless alternative: no fault, no delay,
//! the first of a list.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who asks: a role, and which of several that play it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Who {
    /// A host, the network, the plan.
    pub role: &'static str,
    /// Which of them, from 0.
    pub number: u32,
}

impl From<&'static str> for Who {
    fn from(role: &'static str) -> Self {
        Self { role, number: 0 }
    }
}

impl From<(&'static str, u32)> for Who {
    fn from((role, number): (&'static str, u32)) -> Self {
        Self { role, number }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            0 => f.write_str(self.role),
            number => write!(f, "{} {number}", self.role),
        }
    }
}

/// What is asked, by whom, for the how manieth time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    /// Who asks.
    pub who: Who,
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

/// A branch taken in a tree of decisions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Branch {
    /// What is decided.
    pub key: Key,
    /// The alternative taken, counted from the harmless one.
    pub value: u64,
    /// How many there are.
    pub bound: u64,
}

/// What became of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Walk {
    /// The branches that it took.
    pub(crate) branches: Vec<Branch>,
    /// Whether it met other decisions than those it was made of: then what is searched is no tree.
    pub(crate) has_strayed: bool,
}

#[derive(Debug)]
enum Source {
    /// Random by a seed.
    Seeded(u64),
    /// Random by a seed, but for what is given; no host ends that is not told to.
    Swept { seed: u64, given: BTreeMap<Key, u64>, crashes: Vec<Key> },
    /// A recorded history; what is not in it is zero.
    Recorded(BTreeMap<Key, u64>),
    /// The branches of one path through a tree; beyond them the first alternative.
    Path(Vec<Branch>),
    /// Bytes, from the front; zero once they are used up.
    Bytes { bytes: Vec<u8>, next: usize },
}

#[derive(Debug)]
struct State {
    source: Source,
    /// Digest of (who, what) → how often it was asked.
    asked: BTreeMap<u64, u32>,
    draws: Vec<Draw>,
    /// How many real branches a path has met so far.
    depth: usize,
    /// Whether one of them was not the one that was expected.
    has_strayed: bool,
    /// A digest of all draws and of what was folded in between.
    digest: u64,
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

    /// The choices of a seed, but for those that are given. A host ends only where one of them says so.
    pub(crate) fn swept(seed: u64, given: &[Draw]) -> Self {
        let given = given.iter().map(|draw| (draw.key, draw.value)).collect();
        Self::new(Source::Swept { seed, given, crashes: Vec::new() })
    }

    /// The choices of an earlier run, in any order; whatever is missing is zero.
    #[must_use]
    pub fn recorded(draws: &[Draw]) -> Self {
        Self::new(Source::Recorded(draws.iter().map(|draw| (draw.key, draw.value)).collect()))
    }

    /// Choices made of bytes, so that a coverage-guided fuzzer can drive a simulation: a decision
    /// takes as many as it needs, and once they are used up everything is harmless.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self::new(Source::Bytes { bytes: bytes.to_vec(), next: 0 })
    }

    /// One path through the tree of decisions.
    pub(crate) fn path(branches: Vec<Branch>) -> Self {
        Self::new(Source::Path(branches))
    }

    fn new(source: Source) -> Self {
        let state = State {
            source,
            asked: BTreeMap::new(),
            draws: Vec::new(),
            depth: 0,
            has_strayed: false,
            digest: GOLDEN,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// A value in `0..bound`; 0 if the bound is 0.
    pub fn draw(&self, who: impl Into<Who>, what: &'static str, bound: u64) -> u64 {
        self.ask(who.into(), what, &Question::Below(bound))
    }

    /// A value in `lowest..=highest`.
    pub fn between(
        &self,
        who: impl Into<Who>,
        what: &'static str,
        lowest: u64,
        highest: u64,
    ) -> u64 {
        lowest + self.draw(who, what, highest - lowest + 1)
    }

    /// `true` in `per_mille` of a thousand cases. Drawn even when the answer is certain, so that a
    /// changed weight does not move other draws.
    pub fn chance(&self, who: impl Into<Who>, what: &'static str, per_mille: u64) -> bool {
        let harmful = per_mille.min(1000);
        self.pick(who, what, &[1000 - harmful, harmful]) == 1
    }

    /// Whether a host ends here, which happens in `per_mille` of a thousand cases.
    pub(crate) fn crash(&self, who: impl Into<Who>, what: &'static str, per_mille: u64) -> bool {
        let harmful = per_mille.min(1000);
        self.ask(who.into(), what, &Question::Crash([1000 - harmful, harmful])) == 1
    }

    /// The index of an alternative, each as likely as its weight says; one of weight 0 never.
    pub fn pick(&self, who: impl Into<Who>, what: &'static str, weights: &[u64]) -> usize {
        let value = self.ask(who.into(), what, &Question::Weighted(weights));
        usize::try_from(value).unwrap_or(0)
    }

    /// 64 random bits. These make names rather than decisions: where a recording is silent they are
    /// not zero but still all different, since two events of one name would be one event.
    pub fn bits(&self, who: impl Into<Who>, what: &'static str) -> u64 {
        self.ask(who.into(), what, &Question::Bits)
    }

    /// All draws so far, in the order in which they were asked.
    #[must_use]
    pub fn draws(&self) -> Vec<Draw> {
        self.lock().draws.clone()
    }

    /// Where a host could have ended so far, in a sweep.
    pub(crate) fn crashes(&self) -> Vec<Key> {
        match &self.lock().source {
            Source::Swept { crashes, .. } => crashes.clone(),
            Source::Seeded(_) | Source::Recorded(_) | Source::Path(_) | Source::Bytes { .. } => {
                Vec::new()
            }
        }
    }

    /// What became of this path, for the search to go on from.
    pub(crate) fn walk(&self) -> Walk {
        let state = self.lock();
        let branches = match &state.source {
            Source::Path(branches) => branches.clone(),
            Source::Seeded(_)
            | Source::Swept { .. }
            | Source::Recorded(_)
            | Source::Bytes { .. } => Vec::new(),
        };
        let has_strayed = state.has_strayed || state.depth < branches.len();
        Walk { branches, has_strayed }
    }

    /// Folds something that happened into the digest.
    pub(crate) fn fold(&self, word: u64) {
        let mut state = self.lock();
        state.digest = finalise(state.digest ^ word);
    }

    /// A digest of all draws and of what was folded in between: equal for equal histories and, but
    /// for collisions, only for these.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.lock().digest
    }

    fn ask(&self, who: Who, what: &'static str, question: &Question<'_>) -> u64 {
        let mut state = self.lock();
        let name = digest_of(who, what);
        let count = state.asked.entry(name).or_insert(0);
        let key = Key { who, what, nth: *count };
        *count += 1;
        let value = state.answer(key, name, question);
        state.draws.push(Draw { key, value });
        state.digest = finalise(state.digest ^ name ^ value.rotate_left(17));
        value
    }

    /// A panic elsewhere ends the run; what was drawn until then is still wanted.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What kind of answer is wanted.
enum Question<'a> {
    Below(u64),
    Weighted(&'a [u64]),
    /// Whether a host ends; weighted, too.
    Crash([u64; 2]),
    Bits,
}

impl State {
    fn answer(&mut self, key: Key, name: u64, question: &Question<'_>) -> u64 {
        match (&mut self.source, question) {
            (Source::Seeded(seed), question) => random(*seed, key, name, question),
            (Source::Swept { given, crashes, .. }, Question::Crash(_)) => {
                crashes.push(key);
                given.get(&key).copied().unwrap_or(0)
            }
            (Source::Swept { seed, given, .. }, question) => match given.get(&key) {
                Some(value) => allowed(question, *value),
                None => random(*seed, key, name, question),
            },
            (Source::Recorded(values), Question::Bits) => {
                values.get(&key).copied().unwrap_or_else(|| mix(0, name, key.nth))
            }
            (Source::Recorded(values), question) => {
                allowed(question, values.get(&key).copied().unwrap_or(0))
            }
            // Names are no decisions: nothing branches on them.
            (Source::Path(_), Question::Bits) => mix(0, name, key.nth),
            (Source::Path(branches), question) => {
                let bound = alternatives(question);
                if bound <= 1 {
                    return nth_allowed(question, 0);
                }
                if self.depth == branches.len() {
                    branches.push(Branch { key, value: 0, bound });
                }
                let branch = branches[self.depth];
                self.depth += 1;
                self.has_strayed |= branch.key != key || branch.bound != bound;
                nth_allowed(question, branch.value.min(bound - 1))
            }
            (Source::Bytes { .. }, Question::Bits) => mix(0, name, key.nth),
            (Source::Bytes { bytes, next }, question) => {
                let bound = alternatives(question);
                let wanted = (u64::BITS - bound.saturating_sub(1).leading_zeros()).div_ceil(8);
                let mut value = 0;
                for _ in 0..wanted {
                    value = (value << 8) | u64::from(bytes.get(*next).copied().unwrap_or(0));
                    *next += 1;
                }
                nth_allowed(question, value.checked_rem(bound).unwrap_or(0))
            }
        }
    }
}

/// What a seed answers.
fn random(seed: u64, key: Key, name: u64, question: &Question<'_>) -> u64 {
    let raw = mix(seed, name, key.nth);
    let by_weight = |weights: &[u64]| weighted(weights, scale(raw, weights.iter().sum()));
    match question {
        Question::Bits => raw,
        Question::Below(bound) => scale(raw, *bound),
        Question::Weighted(weights) => by_weight(weights),
        Question::Crash(weights) => by_weight(weights),
    }
}

/// The weights of the answers, if they have any.
fn weights<'a>(question: &'a Question<'_>) -> Option<&'a [u64]> {
    match question {
        Question::Weighted(weights) => Some(weights),
        Question::Crash(weights) => Some(weights),
        Question::Below(_) | Question::Bits => None,
    }
}

/// How many answers there are.
fn alternatives(question: &Question<'_>) -> u64 {
    match (question, weights(question)) {
        (_, Some(weights)) => {
            u64::try_from(weights.iter().filter(|weight| **weight > 0).count()).unwrap_or(u64::MAX)
        }
        (Question::Below(bound), None) => *bound,
        (_, None) => u64::MAX,
    }
}

/// The nth possible answer, counted from the harmless one.
fn nth_allowed(question: &Question<'_>, nth: u64) -> u64 {
    match weights(question) {
        Some(weights) => {
            let nth = usize::try_from(nth).unwrap_or(usize::MAX);
            let found = weights.iter().enumerate().filter(|(_, weight)| **weight > 0).nth(nth);
            found.map_or(0, |(index, _)| u64::try_from(index).unwrap_or(0))
        }
        None => nth,
    }
}

/// The recorded answer, or the nearest possible one.
fn allowed(question: &Question<'_>, value: u64) -> u64 {
    match (question, weights(question)) {
        (_, Some(weights)) => {
            let index = usize::try_from(value).unwrap_or(usize::MAX);
            match weights.get(index) {
                Some(weight) if *weight > 0 => value,
                _ => nth_allowed(question, 0),
            }
        }
        (Question::Below(bound), None) => value.min(bound.saturating_sub(1)),
        (_, None) => value,
    }
}

/// The index in whose share `point` lies.
fn weighted(weights: &[u64], mut point: u64) -> u64 {
    for (index, weight) in weights.iter().enumerate() {
        if point < *weight {
            return u64::try_from(index).unwrap_or(0);
        }
        point -= weight;
    }
    0
}

/// `raw / 2⁶⁴ · bound`, without modulo bias.
fn scale(raw: u64, bound: u64) -> u64 {
    let scaled = (u128::from(raw) * u128::from(bound)) >> 64;
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// A well-mixed function of who asks and what for: SplitMix64's finaliser (Steele, Lea and Flood
/// 2014) after each word. It is part of what a seed means and must never change.
fn digest_of(who: Who, what: &str) -> u64 {
    let mut hash = GOLDEN ^ u64::from(who.number);
    for text in [who.role, what] {
        for chunk in text.as_bytes().chunks(8) {
            let mut word = [0_u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = finalise(hash ^ u64::from_le_bytes(word));
        }
        hash = finalise(hash ^ text.len() as u64);
    }
    hash
}

/// A well-mixed function of seed, question and count; part of what a seed means, too.
fn mix(seed: u64, name: u64, nth: u32) -> u64 {
    finalise(
        finalise(seed.wrapping_add(GOLDEN)) ^ finalise(name ^ u64::from(nth).wrapping_mul(GOLDEN)),
    )
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn finalise(mut z: u64) -> u64 {
    z = z.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
