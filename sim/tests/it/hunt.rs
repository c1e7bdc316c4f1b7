//! Every mutant is hunted in the model world, and killed by what must kill it.

use hookproof_sim::choices::Choices;
use hookproof_sim::model::{self, Options};
use hookproof_sim::scenario::shipped;
use hookproof_sim::zoo::hunt::{Weapon, hunt};
use hookproof_sim::zoo::{HarnessMutant, Killer, Mutant};

#[test]
fn a_mutant_is_killed_in_each_of_its_runs() {
    let trophy = hunt(Mutant::find("R05").unwrap(), 3);
    assert!(trophy.is_expected, "{trophy:?}");
    assert_eq!(trophy.survived, 0);
    assert_eq!(trophy.seeds.len(), 3);
    assert!(trophy.seeds_median() <= trophy.seeds_most());
    let smallest = trophy.smallest.expect("a history kills it");
    assert!(smallest.plan.is_broken_by(&smallest.history));
}

#[test]
fn each_wrong_harness_is_convicted_by_its_gate() {
    for harness in HarnessMutant::ALL {
        let mutant = Mutant::Harness(*harness);
        let trophy = hunt(mutant, 1);
        let Killer::Gate(gate) = mutant.killer() else { panic!("{mutant} names no gate") };
        let killed_by: Vec<_> = trophy.killed_by.keys().copied().collect();
        assert_eq!(killed_by, [Weapon::Gate(gate)], "{mutant}");
        assert!(trophy.is_expected, "{mutant}");
    }
}

#[test]
fn the_right_harness_records_all_that_it_replays() {
    for scenario in [shipped::mixed(), shipped::crash_everywhere()] {
        for seed in 0..20 {
            let once = model::run(&scenario, &Choices::seeded(seed), None, Options::default());
            let choices = Choices::recorded(&once.draws);
            let again = model::run(&scenario, &choices, None, Options::default());
            assert_eq!(again.hash, once.hash, "{} seed {seed}", scenario.name);
        }
    }
}

#[test]
fn a_hunt_gives_the_same_trophy_each_time() {
    let hunted = || format!("{:?}", hunt(Mutant::find("S22").unwrap(), 2));
    assert_eq!(hunted(), hunted());
}
