//! A plan: all that one failing history follows from, as a value, as a file and as a test.

pub(crate) mod decision;
mod file;
pub(crate) mod labels;
mod regression;

use crate::checkers::Invariant;
use crate::choices::{Choices, Draw, Key, Who};
use crate::history::History;
use crate::scenario::Scenario;
use crate::suite::{Failure, Sweep, World};
use crate::zoo::Mutant;

pub use file::PlanError;

/// All that a failing history follows from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Where it happens.
    pub world: World,
    /// What it is about.
    pub scenario: Scenario,
    /// What is wrong on purpose, if anything is.
    pub mutant: Option<Mutant>,
    /// The invariant that does not hold in it.
    pub invariant: Invariant,
    /// The decisions; each that is not here is zero, which is harmless.
    pub draws: Vec<Draw>,
}

impl Plan {
    /// The plan of a seed's history, if an invariant does not hold in it.
    #[must_use]
    pub fn of_seed(
        world: World,
        scenario: &Scenario,
        mutant: Option<Mutant>,
        seed: u64,
    ) -> Option<Self> {
        Self::of_choices(world, scenario, mutant, &Choices::seeded(seed))
    }

    /// The plan of a history that a suite has found to fail; `scenario` is the one of that name.
    #[must_use]
    pub fn of_failure(scenario: &Scenario, failure: &Failure) -> Option<Self> {
        let Failure { world, seed, crash_at, .. } = *failure;
        let Some(place) = crash_at else { return Self::of_seed(world, scenario, None, seed) };
        let (sweep, _) = Sweep::new(world, scenario, seed);
        Self::of_choices(world, sweep.scenario(), None, &sweep.choices_at(place)?)
    }

    fn of_choices(
        world: World,
        scenario: &Scenario,
        mutant: Option<Mutant>,
        choices: &Choices,
    ) -> Option<Self> {
        let history = world.run(scenario, choices, mutant);
        let invariant = history.violation?.invariant;
        let scenario = scenario.clone();
        Some(Self { world, scenario, mutant, invariant, draws: history.draws })
    }

    /// Runs the history; with its trace if that is wanted.
    #[must_use]
    pub fn run(&self, is_traced: bool) -> History {
        let choices = Choices::recorded(&self.draws);
        match is_traced {
            true => self.world.trace(&self.scenario, &choices, self.mutant),
            false => self.world.run(&self.scenario, &choices, self.mutant),
        }
    }

    /// Whether a history breaks the invariant that this plan is to break.
    #[must_use]
    pub fn is_broken_by(&self, history: &History) -> bool {
        history.violation.as_ref().is_some_and(|found| found.invariant == self.invariant)
    }
}

/// The decisions of a plan as a test writes them: who asks, which of several, what, for the how
/// manieth time from 0, and the answer.
#[must_use]
pub fn draws(list: &[(&'static str, u32, &'static str, u32, u64)]) -> Vec<Draw> {
    let draw = |&(role, number, what, nth, value)| {
        let key = Key { who: Who { role, number }, what, nth };
        Draw { key, value }
    };
    list.iter().map(draw).collect()
}
