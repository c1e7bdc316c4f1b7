//! Many histories, the zoo, and a verdict.
//!
//! Nothing is shared between seeds, so the same suite gives the same report whatever the number of
//! threads and their order. A suite has parts: so many histories of one scenario in one world.

pub mod document;
mod gates;
mod run;
mod sum;
mod sweep;

use std::fmt;
use std::ops::Range;

use hookproof_core::named_enum;

use crate::checkers::Violation;
use crate::choices::Choices;
use crate::history::History;
use crate::scenario::{Scenario, shipped};
use crate::zoo::Mutant;
use crate::{model, wire};

pub use gates::{Gate, GateFailure};
pub use run::{Progress, run};
pub use sum::Sum;
pub use sweep::Sweep;

named_enum! {
    /// Where a history happens.
    pub enum World {
        /// The machines over modelled stores and a modelled network.
        Model = "model",
        /// The real sender and receiver on a simulated network.
        Wire = "wire",
    }
}

impl World {
    /// Runs one history in this world.
    #[must_use]
    pub fn run(self, scenario: &Scenario, choices: &Choices, mutant: Option<Mutant>) -> History {
        match self {
            Self::Model => model::run(scenario, choices, mutant, model::Options::default()),
            Self::Wire => wire::run(scenario, choices, mutant),
        }
    }

    /// The same history with its trace, line by line.
    #[must_use]
    pub fn trace(self, scenario: &Scenario, choices: &Choices, mutant: Option<Mutant>) -> History {
        match self {
            Self::Model => {
                let options = model::Options { is_traced: true, ..model::Options::default() };
                model::run(scenario, choices, mutant, options)
            }
            Self::Wire => wire::run(scenario, choices, mutant),
        }
    }
}

/// So many histories of one scenario in one world, one per seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// Where.
    pub world: World,
    /// What kind of history.
    pub scenario: Scenario,
    /// Which.
    pub seeds: Range<u64>,
    /// Each of so many seeds from the first is [swept](Sweep): run once without a crash, and then once
    /// with a crash at each place that it passed.
    pub sweeps: u64,
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The histories of the real code.
    pub parts: Vec<Part>,
    /// One history in so many is run twice and compared; 0 for none.
    pub twice_every: u64,
    /// Whether the two are run on threads of their own.
    pub on_fresh_threads: bool,
    /// The mutants to kill, and where.
    pub mutants: Vec<(Mutant, World)>,
    /// How many seeds a mutant may survive, and how many histories a wrong harness is judged by.
    pub mutant_seeds: u64,
    /// Whether everything must be reached: too much to ask of a few histories.
    pub demands_coverage: bool,
    /// Of so many shards this is the one of that number, from 0: it runs every so manieth seed.
    pub shard: (u64, u64),
    /// Whether the first failure ends it.
    pub until_failure: bool,
    /// How many threads.
    pub jobs: usize,
}

/// How many histories of each scenario the default suite has in the model world.
const MODEL_SEEDS: u64 = 600;
/// How many histories of everything at once the default suite has in the wire world.
const WIRE_SEEDS: u64 = 100;
/// How many of each scenario in which people do something, or effects are calls: that is little in one
/// history.
const WIRE_SEEDS_OF_FEW: u64 = 14;
/// And how many of each other scenario that the wire world has something of.
const WIRE_SEEDS_EACH: u64 = 3;
/// How many calm histories of the default suite are swept for crashes in the model world; of each other
/// scenario one is, unless its histories are large.
const SWEEPS: u64 = 2;
/// More deliveries than this make a history large: it has places by the thousand where a host can end, and for
/// each of them there is a large history.
const SWEPT_DELIVERIES_MAX: u64 = 100;
/// How many seeds a mutant may survive.
const MUTANT_SEEDS: u64 = 60;
/// One history in so many is run twice.
const TWICE_EVERY: u64 = 20;

impl Plan {
    /// The default suite: every shipped scenario in the model world and, if that has what it is about,
    /// in the wire world, and the zoo in both.
    #[must_use]
    pub fn whole(jobs: usize) -> Self {
        let model = shipped::all().into_iter().map(|scenario| Part {
            sweeps: model_sweeps(&scenario),
            world: World::Model,
            scenario,
            seeds: 0..MODEL_SEEDS,
        });
        let wire = shipped::all().into_iter().filter(Scenario::is_for_wire).map(|scenario| Part {
            seeds: 0..wire_seeds(&scenario),
            world: World::Wire,
            sweeps: u64::from(scenario.name == SWEPT_ON_WIRE),
            scenario: scenario.on_wire(),
        });
        Self {
            parts: model.chain(wire).collect(),
            demands_coverage: true,
            mutants: zoo(),
            ..Self::of(Vec::new(), jobs)
        }
    }

    /// How many pieces of work it has, by which progress is told.
    #[must_use]
    pub fn pieces(&self) -> usize {
        run::pieces(self).len()
    }

    /// These histories, without the zoo.
    #[must_use]
    pub fn of(parts: Vec<Part>, jobs: usize) -> Self {
        Self {
            parts,
            twice_every: TWICE_EVERY,
            on_fresh_threads: false,
            mutants: Vec::new(),
            mutant_seeds: MUTANT_SEEDS,
            demands_coverage: false,
            shard: (0, 1),
            until_failure: false,
            jobs,
        }
    }
}

/// The scenario that most histories of the wire world are of.
const MOST: &str = "mixed";

/// The scenario that is swept most: without faults of its own, so that the one crash is all that happens.
const SWEPT: &str = "steady";

/// The one of which a history is swept in the wire world: with lost answers, and short.
const SWEPT_ON_WIRE: &str = "unanswered";

/// How many of its histories the default suite sweeps in the model world.
fn model_sweeps(scenario: &Scenario) -> u64 {
    match scenario.name.as_str() {
        SWEPT => SWEEPS,
        _ => u64::from(scenario.events.1 * scenario.endpoints.1 <= SWEPT_DELIVERIES_MAX),
    }
}

/// How many histories of a scenario the default suite has in the wire world.
fn wire_seeds(scenario: &Scenario) -> u64 {
    match scenario.name.as_str() {
        MOST => WIRE_SEEDS,
        _ if scenario.operations.is_empty() && !scenario.downstream => WIRE_SEEDS_EACH,
        _ => WIRE_SEEDS_OF_FEW,
    }
}

/// Every mutant in every world that has it.
#[must_use]
pub fn zoo() -> Vec<(Mutant, World)> {
    let model = Mutant::all().into_iter().map(|mutant| (mutant, World::Model));
    let wire = Mutant::on_wire().into_iter().map(|mutant| (mutant, World::Wire));
    model.chain(wire).collect()
}

/// A history in which an invariant does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Where.
    pub world: World,
    /// The name of the scenario.
    pub scenario: String,
    /// Its seed.
    pub seed: u64,
    /// In a sweep, at which place its one crash was, counted from 1; 0 if it had none.
    pub crash_at: Option<u64>,
    /// What does not hold.
    pub violation: Violation,
}

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutantReport {
    /// Which.
    pub mutant: Mutant,
    /// Where.
    pub world: World,
    /// By what it was killed, in words; `None` if it survived.
    pub killed_by: Option<String>,
    /// Whether that is what must kill it.
    pub is_expected: bool,
    /// How many seeds it took.
    pub seeds: u64,
}

/// What one part found.
#[derive(Clone, Debug)]
pub struct PartReport {
    /// Where.
    pub world: World,
    /// The scenario.
    pub scenario: Scenario,
    /// The sum of its histories.
    pub sum: Sum,
}

/// What a suite found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The sums of the histories of the real code, part by part.
    pub parts: Vec<PartReport>,
    /// How many of them were run twice.
    pub run_twice: u64,
    /// Those in which an invariant does not hold.
    pub failures: Vec<Failure>,
    /// The mutants.
    pub mutants: Vec<MutantReport>,
    /// Histories that were not the same the second time.
    pub differences: Vec<String>,
    /// The gates that are not passed.
    pub gates: Vec<GateFailure>,
    /// Whether the suite had to reach everything and to find every known-bad variant.
    pub is_whole: bool,
    /// Whether it ran out of time before all its histories were run.
    pub is_cut_short: bool,
}

/// The verdict on a suite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every invariant holds in every history, and the suite can tell.
    Proved {
        /// In how many histories.
        histories: u64,
    },
    /// Every invariant holds in every history, but the suite was not asked to show that it could
    /// tell: the zoo was left out, or there were too few histories to reach everything.
    Held {
        /// In how many histories.
        histories: u64,
    },
    /// An invariant does not hold in some history.
    Violated,
    /// The suite cannot tell: a gate is not passed.
    Invalid,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proved { histories } => write!(f, "proved for {histories} histories"),
            Self::Held { histories } => {
                write!(f, "no violation in {histories} histories; a proof takes the whole suite")
            }
            Self::Violated => f.write_str("violated"),
            Self::Invalid => f.write_str("invalid: the suite cannot tell"),
        }
    }
}

impl Report {
    /// The sum over all parts.
    #[must_use]
    pub fn sum(&self) -> Sum {
        self.sum_of(|_| true)
    }

    /// The sum over the parts in one world.
    #[must_use]
    pub fn sum_in(&self, world: World) -> Sum {
        self.sum_of(|part| part.world == world)
    }

    fn sum_of(&self, which: impl Fn(&PartReport) -> bool) -> Sum {
        let mut sum = Sum::default();
        for part in self.parts.iter().filter(|part| which(part)) {
            sum.merge(&part.sum);
        }
        sum
    }

    /// The verdict.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let histories = self.sum().histories;
        if !self.failures.is_empty() {
            Verdict::Violated
        } else if !self.gates.is_empty() {
            Verdict::Invalid
        } else if self.is_whole && !self.is_cut_short {
            Verdict::Proved { histories }
        } else {
            Verdict::Held { histories }
        }
    }
}
