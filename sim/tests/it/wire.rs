//! The wire world: its faults are seen to have an effect, and its facts reach the checkers.

use std::collections::{BTreeMap, BTreeSet};

use hookproof_runtime::crash_point::CrashPoint;
use hookproof_sim::checkers::Invariant;
use hookproof_sim::choices::Choices;
use hookproof_sim::fault::Fault;
use hookproof_sim::history::History;
use hookproof_sim::scenario::{Scenario, shipped};
use hookproof_sim::wire;
use hookproof_sim::zoo::{HarnessMutant, Mutant};

fn histories(scenario: &Scenario, seeds: u64, mutant: Option<Mutant>) -> Vec<History> {
    (0..seeds).map(|seed| wire::run(scenario, &Choices::seeded(seed), mutant)).collect()
}

/// Runs histories, all of which hold, and compares the faults that were seen with those of the
/// scenario.
fn every_fault_is_seen(scenario: &Scenario, seeds: u64) {
    let histories = histories(scenario, seeds, None);
    for (seed, history) in histories.iter().enumerate() {
        assert_eq!(history.violation, None, "seed {seed} of {}", scenario.name);
    }
    let fired: BTreeSet<Fault> =
        histories.iter().flat_map(|history| history.counts.fired.keys().copied()).collect();
    assert_eq!(fired, scenario.faults.iter().copied().collect());
}

#[test]
fn every_fault_of_the_default_suite_is_seen_to_have_an_effect() {
    every_fault_is_seen(&Scenario::mixed().on_wire(), 60);
}

#[test]
fn clocks_that_are_wrong_and_clocks_that_are_set_lose_nothing() {
    every_fault_is_seen(&shipped::clock_trouble().on_wire(), 12);
}

#[test]
fn calls_to_another_service_take_effect_once_though_it_fails_and_answers_are_lost() {
    let scenario = shipped::downstream_unknown().on_wire();
    every_fault_is_seen(&scenario, 20);
    let crashes = |history: &History| history.counts.crashed_at.clone();
    let histories = histories(&scenario, 40, None);
    let points: BTreeSet<_> =
        histories.iter().flat_map(|history| crashes(history).into_keys()).collect();
    assert!(points.contains(&CrashPoint::WorkClaimed), "before a call: {points:?}");
    assert!(points.contains(&CrashPoint::EffectApplied), "after a call: {points:?}");
    let (effects, delivered) = histories.iter().fold((0, 0), |(effects, delivered), history| {
        (effects + history.totals.effects, delivered + history.totals.delivered)
    });
    assert!(effects >= delivered && delivered > 0, "{effects} effects of {delivered} delivered");
}

#[test]
fn every_invariant_that_the_wire_speaks_of_is_looked_at() {
    let mut looks: BTreeMap<Invariant, u64> = BTreeMap::new();
    for history in histories(&Scenario::mixed().on_wire(), 6, None) {
        for (invariant, count) in history.looks {
            *looks.entry(invariant).or_insert(0) += count;
        }
    }
    for (invariant, count) in looks {
        assert_eq!(count > 0, invariant.is_on_wire(), "{invariant}");
    }
}

#[test]
fn a_fault_that_does_nothing_is_not_said_to_have_had_an_effect() {
    let mutant = Some(Mutant::Harness(HarnessMutant::FaultNeverFires));
    let histories = histories(&Scenario::mixed().on_wire(), 12, mutant);
    let sum = |counts: fn(&History) -> &BTreeMap<Fault, u64>| -> u64 {
        histories.iter().filter_map(|history| counts(history).get(&Fault::ResponseLost)).sum()
    };
    assert!(sum(|history| &history.counts.chosen) > 10);
    assert_eq!(sum(|history| &history.counts.fired), 0);
}
