//! Plans that were found, for tests of what becomes of them.

use hookproof_sim::plan::Plan;
use hookproof_sim::scenario::shipped;
use hookproof_sim::suite::World;
use hookproof_sim::zoo::Mutant;

/// The first history of the model world that kills this mutant in its scenario.
pub(crate) fn plan(id: &str) -> Plan {
    let mutant = Mutant::find(id).expect("there is such a mutant");
    let scenario = shipped::find(mutant.about().scenario).expect("it names its scenario");
    (0..1000)
        .find_map(|seed| Plan::of_seed(World::Model, &scenario, Some(mutant), seed))
        .expect("some seed kills it")
}
