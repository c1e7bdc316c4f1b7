//! The wire world: its faults are seen to have an effect, and its facts reach the checkers.

use std::collections::{BTreeMap, BTreeSet};

use hookproof_runtime::crash_point::CrashPoint;
use hookproof_sim::checkers::Invariant;
use hookproof_sim::choices::Choices;
use hookproof_sim::fault::Fault;
use hookproof_sim::history::{History, Line, Totals};
use hookproof_sim::scenario::{Break, Scenario, shipped};
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
fn processes_that_stand_still_and_work_that_outlasts_its_lease_lose_nothing() {
    every_fault_is_seen(&shipped::lease_and_pause().on_wire(), 16);
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
fn every_invariant_is_looked_at() {
    let mut looks: BTreeMap<Invariant, u64> = BTreeMap::new();
    // Isolation is about endpoints that stay broken, order about entities.
    let scenarios =
        [(shipped::mixed(), 4), (shipped::crash_everywhere(), 8), (shipped::reorder(), 2)];
    for (scenario, seeds) in scenarios {
        for history in histories(&scenario.on_wire(), seeds, None) {
            for (invariant, count) in history.looks {
                *looks.entry(invariant).or_insert(0) += count;
            }
        }
    }
    assert_eq!(looks.len(), Invariant::ALL.len());
    for (invariant, count) in looks {
        assert!(count > 0, "{invariant}");
    }
}

#[test]
fn what_goes_to_an_endpoint_that_is_broken_for_good_ends_dead_and_nothing_else_does() {
    for fails in [Break::Answers500, Break::Answers404, Break::Hangs, Break::Refuses] {
        let scenario = Scenario {
            endpoints: (2, 2),
            broken_per_mille: 1000,
            breaks: vec![fails],
            policies: shipped::crash_everywhere().policies.split_off(1),
            ..Scenario::default()
        };
        for history in histories(&scenario.on_wire(), 2, None) {
            assert_eq!(history.violation, None, "{fails:?}");
            let Totals { accepted, deliveries, delivered, dead, effects, .. } = history.totals;
            assert_eq!((deliveries, delivered, dead), (2 * accepted, accepted, accepted));
            assert_eq!(effects, accepted, "{fails:?}");
        }
    }
}

#[test]
fn an_outage_is_outlived() {
    let scenario = shipped::probe_refused().on_wire();
    let calm = Scenario { faults: Vec::new(), ..scenario };
    for history in histories(&calm, 3, None) {
        assert_eq!(history.violation, None);
        assert_eq!(history.totals.delivered, history.totals.deliveries);
        let refused = |line: &&Line| line.text.contains("connect_refused");
        assert!(history.lines.iter().any(|line| refused(&line)), "there was an outage");
    }
}

/// What people did in some histories of a scenario, all of which hold.
fn people_did(scenario: &Scenario, seeds: u64) -> BTreeSet<String> {
    let mut did = BTreeSet::new();
    for history in histories(&scenario.on_wire(), seeds, None) {
        assert_eq!(history.violation, None, "{}", scenario.name);
        let theirs = history.lines.into_iter().filter(|line| line.who == "people");
        did.extend(theirs.filter_map(|line| Some(line.text.split(' ').next()?.to_owned())));
    }
    did
}

#[test]
fn people_do_what_the_scenario_says_and_break_nothing() {
    let check = |scenario: Scenario, seeds, verbs: &[&str]| {
        let wanted = verbs.iter().map(|verb| (*verb).to_owned()).collect();
        assert_eq!(people_did(&scenario, seeds), wanted, "{}", scenario.name);
    };
    check(shipped::steady(), 1, &[]);
    check(shipped::replay_and_recover(), 4, &["cancel", "replay"]);
    check(shipped::disable_and_delete(), 4, &["delete", "disable", "enable"]);
    check(shipped::rotation(), 4, &["restart", "rotate"]);
}

#[test]
fn what_takes_days_is_left_to_the_model() {
    let left: Vec<String> = shipped::all()
        .into_iter()
        .filter(|scenario| !scenario.is_for_wire())
        .map(|scenario| scenario.name)
        .collect();
    assert_eq!(left, ["receiver-outage-24h", "long-ladder"]);
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
