//! Makes a failing history small: fewer events, fewer decisions, lower and earlier ones, as long as
//! the same invariant does not hold.
//!
//! What is removed is zero, and zero is harmless; since draws are keyed, nothing else moves. It is
//! delta debugging (Zeller and Hildebrandt 2002) on the list of draws: first all of one kind at
//! once, then chunks of half the size each time, at last one by one. A result that was not cut short
//! is 1-minimal: without any one of its decisions the invariant holds.

use std::collections::{BTreeMap, BTreeSet};

use crate::choices::{Draw, Key, Who};
use crate::history::History;
use crate::plan::Plan;
use crate::scenario::Scenario;

/// A history made small.
#[derive(Clone, Debug)]
pub struct Minimised {
    /// What it follows from now.
    pub plan: Plan,
    /// The history, with its trace.
    pub history: History,
    /// How many histories were run for it.
    pub runs: u64,
    /// Whether nothing more can be taken away; otherwise the search was cut short.
    pub is_minimal: bool,
}

/// Makes a plan small. At most `runs_max` histories are run, and none after `go_on` says `false`:
/// it is asked before each, and is where a caller looks at the clock. Unless it does, the same plan
/// gives the same result. `None` if the plan does not break its invariant.
#[must_use]
pub fn minimise(plan: &Plan, runs_max: u64, go_on: &mut dyn FnMut() -> bool) -> Option<Minimised> {
    minimise_by(&Plan::run, plan, runs_max, go_on)
}

/// The same for histories that are run by something else than the plan itself.
pub(crate) fn minimise_by(
    run: &dyn Fn(&Plan, bool) -> History,
    plan: &Plan,
    runs_max: u64,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<Minimised> {
    let mut search = Search { run, best: plan.clone(), runs: 0, runs_max, go_on, is_cut: false };
    let non_zero = plan.draws.iter().filter(|draw| draw.value != 0).copied().collect();
    if !search.holds(Plan { draws: non_zero, ..plan.clone() }) && !search.holds(plan.clone()) {
        return None;
    }
    loop {
        let before = search.best.clone();
        search.lower_population();
        search.remove_kinds();
        search.remove_chunks();
        search.lower_values();
        search.move_earlier();
        if search.best == before || search.is_cut {
            break;
        }
    }
    let history = run(&search.best, true);
    let Search { best: plan, runs, is_cut, .. } = search;
    Some(Minimised { plan, history, runs: runs + 1, is_minimal: !is_cut })
}

struct Search<'a> {
    /// Runs a plan; with its trace if that is wanted.
    run: &'a dyn Fn(&Plan, bool) -> History,
    /// The smallest plan so far that breaks the invariant.
    best: Plan,
    runs: u64,
    runs_max: u64,
    go_on: &'a mut dyn FnMut() -> bool,
    is_cut: bool,
}

/// One of the pairs of bounds of a scenario, and the draw that decides between them.
struct Population {
    what: &'static str,
    bounds: fn(&mut Scenario) -> &mut (u64, u64),
}

const POPULATIONS: [Population; 2] = [
    Population { what: "events", bounds: |scenario| &mut scenario.events },
    Population { what: "endpoints", bounds: |scenario| &mut scenario.endpoints },
];

impl Search<'_> {
    /// Whether a candidate still breaks the invariant; then it is the best so far.
    fn holds(&mut self, candidate: Plan) -> bool {
        self.is_cut |= self.runs >= self.runs_max || !(self.go_on)();
        if self.is_cut {
            return false;
        }
        self.runs += 1;
        let history = (self.run)(&candidate, false);
        if !candidate.is_broken_by(&history) {
            return false;
        }
        let draws = asked(&candidate.draws, &history.draws);
        self.best = Plan { draws, ..candidate };
        true
    }

    /// Fewer events and endpoints, as few as one each; the scenario says so itself from then on.
    fn lower_population(&mut self) {
        for Population { what, bounds } in POPULATIONS {
            let key = Key { who: "plan".into(), what, nth: 0 };
            let drawn = self.best.draws.iter().find(|draw| draw.key == key);
            let drawn = drawn.map_or(0, |draw| draw.value);
            let (lowest, highest) = *bounds(&mut self.best.scenario.clone());
            let present = lowest + drawn;
            let fewer = (1..present).filter(|count| *count < 8 || count % 4 == 0);
            let same = (lowest != highest).then_some(present);
            for count in fewer.chain(same) {
                let mut candidate = self.best.clone();
                *bounds(&mut candidate.scenario) = (count, count);
                candidate.draws.retain(|draw| draw.key != key);
                if self.holds(candidate) {
                    break;
                }
            }
        }
    }

    /// All draws of a kind at once: most latencies, most waits and most names do not matter.
    fn remove_kinds(&mut self) {
        let questions: BTreeSet<_> = self.best.draws.iter().map(|draw| draw.key.what).collect();
        for question in questions {
            self.remove(|draw| draw.key.what == question);
        }
        let askers: BTreeSet<_> = self.best.draws.iter().map(|draw| draw.key.who).collect();
        for asker in askers {
            self.remove(|draw| draw.key.who == asker);
        }
    }

    /// Later decisions first: they depend on the earlier.
    fn remove_chunks(&mut self) {
        let mut size = (self.best.draws.len() / 2).max(1);
        loop {
            let mut is_smaller = false;
            let mut end = self.best.draws.len();
            while end > 0 {
                let start = end.saturating_sub(size);
                let chunk: BTreeSet<_> =
                    self.best.draws[start..end].iter().map(|draw| draw.key).collect();
                is_smaller |= self.remove(|draw| chunk.contains(&draw.key));
                end = start.min(self.best.draws.len());
            }
            if size == 1 && !is_smaller {
                break;
            }
            size = (size / 2).max(1);
        }
    }

    fn remove(&mut self, is_out: impl Fn(&Draw) -> bool) -> bool {
        let mut candidate = self.best.clone();
        candidate.draws.retain(|draw| !is_out(draw));
        candidate.draws.len() < self.best.draws.len() && self.holds(candidate)
    }

    /// Each value as low as halving finds it.
    fn lower_values(&mut self) {
        let keys: Vec<_> = self.best.draws.iter().map(|draw| draw.key).collect();
        for key in keys {
            // Zero is left out but for 64 random bits: of those, none and zero are two things.
            if self.value_of(key).is_none_or(|value| value == 0 || self.set(key, 0)) {
                continue;
            }
            let mut too_low = 0;
            while let Some(value) = self.value_of(key)
                && value - too_low > 1
            {
                let middle = too_low + (value - too_low) / 2;
                if !self.set(key, middle) {
                    too_low = middle;
                }
                if self.value_of(key).is_some_and(|value| value <= too_low) {
                    break;
                }
            }
        }
    }

    /// Each decision made the first time it can be, by the first who can: what fails at the tenth
    /// request to the third endpoint mostly fails at the first, and then fewer events suffice.
    fn move_earlier(&mut self) {
        let mut index = 0;
        while let Some(draw) = self.best.draws.get(index).copied() {
            let Key { who, what, nth } = draw.key;
            let same_asker = (0..nth).map(|nth| Key { who, what, nth });
            let other_askers =
                (0..who.number).map(|number| Key { who: Who { number, ..who }, what, nth });
            let _ = few(other_askers)
                .chain(few(same_asker))
                .any(|earlier| self.rename(draw.key, earlier));
            index += 1;
        }
    }

    /// What was decided there before is left out.
    fn rename(&mut self, from: Key, to: Key) -> bool {
        let mut candidate = self.best.clone();
        candidate.draws.retain(|draw| draw.key != to);
        for draw in &mut candidate.draws {
            if draw.key == from {
                draw.key = to;
            }
        }
        self.holds(candidate)
    }

    fn value_of(&self, key: Key) -> Option<u64> {
        self.best.draws.iter().find(|draw| draw.key == key).map(|draw| draw.value)
    }

    fn set(&mut self, key: Key, value: u64) -> bool {
        let mut candidate = self.best.clone();
        for draw in &mut candidate.draws {
            if draw.key == key {
                draw.value = value;
            }
        }
        self.holds(candidate)
    }
}

/// The first of many.
fn few(keys: impl Iterator<Item = Key>) -> impl Iterator<Item = Key> {
    keys.take(8)
}

/// Those of the given draws that were asked for, as they were answered, in the order in which they
/// were asked.
fn asked(given: &[Draw], answered: &[Draw]) -> Vec<Draw> {
    let given: BTreeMap<Key, u64> = given.iter().map(|draw| (draw.key, draw.value)).collect();
    let is_needed = |draw: &&Draw| match given.get(&draw.key) {
        Some(0) => draw.value == 0,
        Some(_) => draw.value != 0,
        None => false,
    };
    answered.iter().filter(is_needed).copied().collect()
}
