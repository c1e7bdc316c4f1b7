//! Plans as files and as tests.

use hookproof_sim::choices::Choices;
use hookproof_sim::minimise::minimise;
use hookproof_sim::model::{self, Options};
use hookproof_sim::plan::Plan;
use hookproof_sim::scenario::{Scenario, shipped};
use hookproof_sim::suite::World;
use hookproof_sim::wire;
use hookproof_sim::zoo::Mutant;

use crate::found;

/// How the file of what is printed begins.
const HEAD: &str = "//! Tests as `hookproof sim --replay FILE --format rust` prints them.\n";

fn small(id: &str) -> Plan {
    minimise(&found::plan(id), 5000, &mut || true).expect("it breaks its invariant").plan
}

#[test]
fn a_plan_survives_its_file_and_still_breaks_the_same() {
    for id in ["R03", "S21", "S22", "B03"] {
        let plan = found::plan(id);
        let text = plan.to_json().unwrap();
        let read = Plan::from_json(&text).unwrap_or_else(|error| panic!("{id}: {error}"));
        assert_eq!(read, plan, "{id}");
        assert!(read.is_broken_by(&read.run(false)), "{id}");
    }
}

#[test]
fn a_plan_of_the_wire_world_breaks_the_same_there() {
    let scenario = Scenario::mixed().on_wire();
    let found = |seed| Plan::of_seed(World::Wire, &scenario, Mutant::find("R04"), seed);
    let plan = (0..20).find_map(found).expect("some seed kills it");
    let read = Plan::from_json(&plan.to_json().unwrap()).unwrap_or_else(|error| panic!("{error}"));
    let small = minimise(&read, 60, &mut || true).expect("it breaks its invariant");
    assert!(small.plan.draws.len() < plan.draws.len());
    assert!(small.plan.is_broken_by(&small.history), "{:?}", small.history.violation);
}

#[test]
fn every_name_that_a_history_draws_can_be_read_back() {
    let check = |name: &str, draws: &[hookproof_sim::choices::Draw]| {
        let plan = Plan { draws: draws.to_vec(), ..found::plan("S14") };
        let text = plan.to_json().unwrap();
        if let Err(error) = Plan::from_json(&text) {
            panic!("{name}: {error}: add the name to sim/src/plan/labels.rs");
        }
    };
    for scenario in shipped::all() {
        for seed in 0..12 {
            let choices = Choices::seeded(seed);
            let history = model::run(&scenario, &choices, None, Options::default());
            check(&scenario.name, &history.draws);
        }
    }
    for mutant in Mutant::all() {
        let scenario = shipped::find(mutant.about().scenario).unwrap();
        let history = model::run(&scenario, &Choices::seeded(1), Some(mutant), Options::default());
        check(mutant.id(), &history.draws);
    }
    for seed in 0..3 {
        let history = wire::run(&Scenario::mixed().on_wire(), &Choices::seeded(seed), None);
        check("the wire world", &history.draws);
    }
}

#[test]
fn a_file_that_is_wrong_is_told_where_and_what_would_be_right() {
    let right = small("R01").to_json().unwrap();
    let check = |from: &str, to: &str, line_with: &str, told: &str, help: &str| {
        assert!(right.contains(from), "{from} is not in {right}");
        let wrong = right.replacen(from, to, 1);
        let error = Plan::from_json(&wrong).expect_err(told);
        let line = wrong.lines().position(|line| line.contains(line_with)).map(|at| at + 1);
        assert_eq!(Some(error.line), line, "{error}");
        assert!(error.to_string().contains(told), "{error}");
        assert!(error.help.contains(help), "{}", error.help);
    };
    let (version, draw) = ("\"version\": 1", "\"receiver crash\",0");
    check(version, "\"version\": 2", "version", "of version 2", "reads version 1");
    check("\"R01\"", "\"R99\"", "R99", "`mutant`: there is no mutant \"R99\"", "null");
    check("\"I4\"", "\"I44\"", "I44", "`violated`: there is no invariant", "I1, I2");
    check("\"model\"", "\"real\"", "real", "`world`: there is no world", "model or wire");
    check(draw, "\"receiver carsh\",0", "carsh", "`draws[0][2]`: there is no question", "jitter");
    check("[\"plan\"", "[\"plam\"", "plam", "`draws[0][0]`: there is no asker", "plan");
    check("\"violated\"", "\"broken\"", "\"broken\":", "unknown field `broken`", "`violated`");
    check("\"events\": [", "\"event\": [", "\"event\":", "unknown field `event`", "`events`");
    let end = Plan::from_json(&format!("{right}x")).expect_err("there is more");
    assert!(end.to_string().contains("trailing characters"), "{end}");
    let cut = Plan::from_json(&right[..right.len() / 2]).expect_err("it is cut");
    assert!(cut.to_string().contains("EOF"), "{cut}");
}

#[test]
fn a_scenario_that_cannot_be_is_refused() {
    let mut plan = found::plan("R01");
    plan.scenario.senders = 0;
    let error = Plan::from_json(&plan.to_json().unwrap()).expect_err("there is no sender");
    assert_eq!(error.field, "scenario");
    assert!(error.problem.contains("`senders` is 0"), "{error}");
    assert!(error.line > 1, "{error}");
}

#[test]
fn the_tests_that_are_printed_are_those_that_run_here() {
    let shipped = small("R01").to_rust().unwrap();
    let mut own = small("S01");
    own.scenario.name = "my own".to_owned();
    let own = own.to_rust().unwrap();
    let printed = format!("{HEAD}\n{shipped}\n{own}");
    assert!(include_str!("regressions.rs") == printed, "regressions.rs should be:\n{printed}");
}
