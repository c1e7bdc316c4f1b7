//! A crash at each place where one can be.

use super::World;
use crate::choices::{Choices, Draw, Key, Who};
use crate::fault::Fault;
use crate::history::History;
use crate::scenario::Scenario;

/// The faults that end a process.
const CRASHES: [Fault; 2] = [Fault::SenderCrash, Fault::ReceiverCrash];

/// One seed's history without a crash, and the same with one at each place that it passes: whatever else
/// the seed decides stays as it is until then.
#[derive(Clone, Debug)]
pub struct Sweep {
    world: World,
    scenario: Scenario,
    seed: u64,
    places: Vec<Key>,
}

impl Sweep {
    /// Runs the history without a crash, to learn the places.
    #[must_use]
    pub fn new(world: World, scenario: &Scenario, seed: u64) -> (Self, History) {
        let mut scenario = scenario.clone();
        // A plan of what fails must be able to have the crash, too.
        let missing = CRASHES.into_iter().filter(|crash| !scenario.faults.contains(crash));
        let missing: Vec<_> = missing.collect();
        scenario.faults.extend(missing);
        scenario.crashes_max = scenario.crashes_max.max(1);
        let mut sweep = Self { world, scenario, seed, places: Vec::new() };
        let choices = sweep.choices(None);
        let calm = world.run(&sweep.scenario, &choices, None);
        sweep.places = choices.crashes();
        (sweep, calm)
    }

    /// How many places there are.
    #[must_use]
    pub fn places(&self) -> u64 {
        u64::try_from(self.places.len()).unwrap_or(u64::MAX)
    }

    /// The scenario, with crashes among its faults.
    #[must_use]
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// What decides the history with a crash at the place of this number, from 1; 0 is the one without.
    /// `None` if it has fewer.
    #[must_use]
    pub fn choices_at(&self, place: u64) -> Option<Choices> {
        let Some(index) = place.checked_sub(1) else { return Some(self.choices(None)) };
        let index = usize::try_from(index).ok()?;
        self.places.get(index).map(|key| self.choices(Some(*key)))
    }

    /// Runs that history.
    #[must_use]
    pub fn run_at(&self, place: u64) -> Option<History> {
        let choices = self.choices_at(place)?;
        Some(self.world.run(&self.scenario, &choices, None))
    }

    fn choices(&self, crash: Option<Key>) -> Choices {
        let is_on = |fault: Fault| {
            let key = Key { who: Who::from("plan"), what: fault.as_str(), nth: 0 };
            Draw { key, value: 1 }
        };
        let mut given: Vec<Draw> = CRASHES.map(is_on).into();
        given.extend(crash.map(|key| Draw { key, value: 1 }));
        Choices::swept(self.seed, &given)
    }
}
