//! The model world: a discrete-event simulation of senders, receivers and what lies between them.
//!
//! The machines are those of the core; the stores, the network and the processes around them are
//! modelled, so that a history of days takes less than a millisecond. What drives the machines here is
//! not the code of the real drivers: that is what the wire world is for.

mod application;
mod downstream;
mod endpoint;
mod hosts;
mod inbox;
mod network;
mod owner;
mod pace;
mod queue;
mod receiver;
mod record;
mod replica;
mod sender;
mod setup;
mod store;
mod trouble;
mod world;

use hookproof_core::time::Timestamp;

pub use pace::Pace;
pub(crate) use replica::Replica;

use crate::choices::Choices;
use crate::fault::Faults;
use crate::history::History;
use crate::scenario::Scenario;
use crate::zoo::{HarnessMutant, Mutant, ReceiverMutant};

/// Later than anything.
pub(crate) const FOREVER: Timestamp = Timestamp::from_millis(i64::MAX / 4);

/// How a history is run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Whether the trace is kept, line by line.
    pub is_traced: bool,
    /// The most crashes of all processes together; no limit but the scenario's unless given.
    pub crashes_in_all: Option<u64>,
    /// These faults instead of some of the scenario's.
    pub faults: Option<Faults>,
    /// Whether the network's faults meet the application's publishes, too.
    pub troubles_application: bool,
    /// How long things take that the scenario says nothing of.
    pub pace: Pace,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            is_traced: false,
            crashes_in_all: None,
            faults: None,
            troubles_application: true,
            pace: Pace::default(),
        }
    }
}

/// Runs one history of `scenario`, which the choices determine. With a mutant, that part of the
/// world is wrong.
#[must_use]
pub fn run(
    scenario: &Scenario,
    choices: &Choices,
    mutant: Option<Mutant>,
    options: Options,
) -> History {
    world::World::new(scenario, choices, world::Wrong::of(mutant), options).run()
}

/// Runs one history of a wrong receiver under a wrong harness, which may not see what is wrong.
pub(crate) fn run_under(
    scenario: &Scenario,
    choices: &Choices,
    receiver: ReceiverMutant,
    harness: HarnessMutant,
) -> History {
    let harness = Some(harness);
    let wrong = world::Wrong { receiver: Some(receiver), harness, ..world::Wrong::default() };
    world::World::new(scenario, choices, wrong, Options::default()).run()
}
