//! Hunts the mutants in the model world: how many seeds each takes, by what it is killed, and how
//! little suffices.

use std::collections::BTreeMap;

use super::{HarnessMutant, Killer, Mutant, ReceiverMutant};
use crate::checkers::Invariant;
use crate::choices::Choices;
use crate::history::History;
use crate::minimise::{Minimised, minimise};
use crate::model::{self, Options};
use crate::plan::Plan;
use crate::scenario::{Scenario, shipped};
use crate::suite::{Gate, World};

/// How far apart the seeds of two runs begin.
const SEEDS_APART: u64 = 1_000_000;
/// How many histories a mutant may survive in one run.
const SEEDS_MAX: u64 = 2000;
/// How many histories a wrong harness is judged by.
const HARNESS_SEEDS: u64 = 60;
/// How many histories may be run to make one small.
const MINIMISE_RUNS: u64 = 4000;
/// How often a fault must have been decided before it must also have had an effect.
const CHOSEN_ENOUGH: u64 = 10;

/// What killed a mutant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Weapon {
    /// An invariant did not hold.
    Invariant(Invariant),
    /// A gate of the suite was not passed.
    Gate(Gate),
}

/// What became of a mutant.
#[derive(Clone, Debug)]
pub struct Trophy {
    /// Which.
    pub mutant: Mutant,
    /// What killed it, and in how many of the runs.
    pub killed_by: BTreeMap<Weapon, u64>,
    /// How many seeds each run that killed it took, in ascending order.
    pub seeds: Vec<u64>,
    /// How many runs it survived.
    pub survived: u64,
    /// Whether it was killed in every run, and only by what must kill it.
    pub is_expected: bool,
    /// The smallest of the histories that killed it, once they were made small; `None` for a wrong
    /// harness, which no history can convict.
    pub smallest: Option<Minimised>,
}

impl Trophy {
    /// How many seeds the run in the middle took.
    #[must_use]
    pub fn seeds_median(&self) -> Option<u64> {
        self.seeds.get(self.seeds.len().checked_sub(1)? / 2).copied()
    }

    /// How many seeds the longest run took.
    #[must_use]
    pub fn seeds_most(&self) -> Option<u64> {
        self.seeds.last().copied()
    }
}

/// Hunts one mutant so many times, each time with other seeds.
#[must_use]
pub fn hunt(mutant: Mutant, runs: u64) -> Trophy {
    let mut trophy = Trophy {
        mutant,
        killed_by: BTreeMap::new(),
        seeds: Vec::new(),
        survived: 0,
        is_expected: true,
        smallest: None,
    };
    let scenario = shipped::find(mutant.about().scenario).unwrap_or_else(shipped::mixed);
    for run in 0..runs {
        let first = run * SEEDS_APART;
        let killed = match mutant {
            Mutant::Harness(harness) => convict(harness, &scenario, first),
            Mutant::Idle(_) => {
                without_effect(&scenario, first..first + HARNESS_SEEDS, Some(mutant))
                    .map(|seed| (Weapon::Gate(Gate::FaultFired), seed))
            }
            Mutant::Receiver(_) | Mutant::Sender(_) | Mutant::Seeded(_) => {
                kill(mutant, &scenario, first)
            }
        };
        let Some((weapon, seed)) = killed else {
            trophy.survived += 1;
            trophy.is_expected = false;
            continue;
        };
        *trophy.killed_by.entry(weapon).or_insert(0) += 1;
        trophy.seeds.push(seed - first + 1);
        trophy.is_expected &= is_expected(mutant, weapon);
        let found = match weapon {
            Weapon::Invariant(_) => small(mutant, &scenario, seed),
            Weapon::Gate(_) => None,
        };
        // Of several that are equally small, the first.
        trophy.smallest = trophy.smallest.into_iter().chain(found).min_by_key(size);
    }
    trophy.seeds.sort_unstable();
    trophy
}

fn is_expected(mutant: Mutant, weapon: Weapon) -> bool {
    match (mutant.killer(), weapon) {
        (Killer::Invariants(expected), Weapon::Invariant(found)) => expected.contains(&found),
        (Killer::Gate(expected), Weapon::Gate(found)) => expected == found,
        (Killer::Invariants(_), Weapon::Gate(_)) | (Killer::Gate(_), Weapon::Invariant(_)) => false,
    }
}

/// How much there is to understand.
fn size(found: &Minimised) -> (u64, usize) {
    let Plan { scenario, draws, .. } = &found.plan;
    (scenario.events.1 * scenario.endpoints.1, draws.len())
}

fn small(mutant: Mutant, scenario: &Scenario, seed: u64) -> Option<Minimised> {
    let plan = Plan::of_seed(World::Model, scenario, Some(mutant), seed)?;
    minimise(&plan, MINIMISE_RUNS, &mut || true)
}

fn history(scenario: &Scenario, seed: u64, mutant: Option<Mutant>) -> History {
    model::run(scenario, &Choices::seeded(seed), mutant, Options::default())
}

/// The first seed that kills a mutant, and by which invariant; seeds that the real code does not
/// survive do not count.
fn kill(mutant: Mutant, scenario: &Scenario, first: u64) -> Option<(Weapon, u64)> {
    (first..first + SEEDS_MAX).find_map(|seed| {
        let violation = history(scenario, seed, Some(mutant)).violation?;
        let is_right = history(scenario, seed, None).violation.is_none();
        is_right.then_some((Weapon::Invariant(violation.invariant), seed))
    })
}

/// The gate that convicts a wrong harness, and the seed by which it does.
fn convict(harness: HarnessMutant, scenario: &Scenario, first: u64) -> Option<(Weapon, u64)> {
    let seeds = first..first + HARNESS_SEEDS;
    let wrong = Some(Mutant::Harness(harness));
    let (gate, seed) = match harness {
        HarnessMutant::CrashesNothing | HarnessMutant::FaultNeverFires => {
            (Gate::FaultFired, without_effect(scenario, seeds, wrong)?)
        }
        HarnessMutant::EmptyLedger => (Gate::CheckerLooked, unseen(scenario, seeds, wrong)?),
        HarnessMutant::AtLeast => (Gate::ZooKilled, escaped(first)?),
        HarnessMutant::ForgetsDraws => {
            let differs = |seed: &u64| {
                let once = history(scenario, *seed, wrong);
                let choices = Choices::recorded(&once.draws);
                model::run(scenario, &choices, wrong, Options::default()).hash != once.hash
            };
            (Gate::Deterministic, { seeds }.find(differs)?)
        }
    };
    Some((Weapon::Gate(gate), seed))
}

/// The seed by which some fault was decided often enough, and none of them had an effect to the end.
fn without_effect(
    scenario: &Scenario,
    seeds: std::ops::Range<u64>,
    wrong: Option<Mutant>,
) -> Option<u64> {
    let mut enough_at = BTreeMap::new();
    let (mut chosen, mut fired) = (BTreeMap::new(), BTreeMap::new());
    for seed in seeds {
        let counts = history(scenario, seed, wrong).counts;
        for (fault, count) in counts.chosen {
            let sum = chosen.entry(fault).or_insert(0);
            *sum += count;
            if *sum >= CHOSEN_ENOUGH {
                enough_at.entry(fault).or_insert(seed);
            }
        }
        for (fault, count) in counts.fired {
            *fired.entry(fault).or_insert(0) += count;
        }
    }
    let is_idle = |fault: &crate::fault::Fault| fired.get(fault).copied().unwrap_or(0) == 0;
    enough_at.into_iter().filter(|(fault, _)| is_idle(fault)).map(|(_, seed)| seed).min()
}

/// The first seed, if the checker of exactly once looked at nothing in any history.
fn unseen(scenario: &Scenario, seeds: std::ops::Range<u64>, wrong: Option<Mutant>) -> Option<u64> {
    let first = seeds.start;
    let looks: u64 = seeds
        .filter_map(|seed| {
            history(scenario, seed, wrong).looks.get(&Invariant::ExactlyOnce).copied()
        })
        .sum();
    (looks == 0).then_some(first)
}

/// The first seed, if a mutant that the checker of exactly once must kill is not killed by it.
fn escaped(first: u64) -> Option<u64> {
    let only = Killer::Invariants(&[Invariant::ExactlyOnce]);
    let escapes = |victim: &ReceiverMutant| {
        let victim_of = Mutant::Receiver(*victim);
        let scenario = shipped::find(victim_of.about().scenario).unwrap_or_else(shipped::mixed);
        let violation = (first..first + HARNESS_SEEDS).find_map(|seed| {
            let choices = Choices::seeded(seed);
            model::run_under(&scenario, &choices, *victim, HarnessMutant::AtLeast).violation
        });
        violation.is_none_or(|found| found.invariant != Invariant::ExactlyOnce)
    };
    let mut victims = ReceiverMutant::ALL.iter().filter(|victim| victim.about().killer == only);
    victims.any(escapes).then_some(first)
}
