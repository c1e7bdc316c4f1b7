//! A fault that does nothing, though it is decided as ever, is noticed: each of them, in each world.

use hookproof_sim::choices::Choices;
use hookproof_sim::fault::Fault;
use hookproof_sim::suite::World;
use hookproof_sim::zoo::Mutant;

/// Histories of everything in which one fault does nothing, so many at most, until that was decided often
/// enough: it is never seen to have had an effect, whatever else happens.
fn is_noticed(world: World, fault: Fault, (enough, seeds): (u64, u64)) -> Result<(), String> {
    let mutant = Mutant::Idle(fault);
    let (scenario, mut chosen) = (mutant.ground(world), 0);
    for seed in 0..seeds {
        let counts = world.run(&scenario, &Choices::seeded(seed), Some(mutant)).counts;
        chosen += counts.chosen.get(&fault).copied().unwrap_or(0);
        if let Some(fired) = counts.fired.get(&fault) {
            return Err(format!("{fault}: said to have had {fired} effects on seed {seed}"));
        }
        if chosen >= enough {
            return Ok(());
        }
    }
    Err(format!("{fault}: decided {chosen} times in {seeds} histories"))
}

fn are_noticed(world: World, (enough, seeds): (u64, u64)) {
    let found: Vec<_> =
        Fault::ALL.iter().filter_map(|f| is_noticed(world, *f, (enough, seeds)).err()).collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn in_the_model_world_a_fault_that_does_nothing_is_never_said_to_have_had_an_effect() {
    are_noticed(World::Model, (100, 4000));
}

#[test]
fn in_the_wire_world_a_fault_that_does_nothing_is_never_said_to_have_had_an_effect() {
    are_noticed(World::Wire, (5, 400));
}
