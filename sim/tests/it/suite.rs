//! Suites: their verdicts, their gates, their sums.

use hookproof_sim::choices::Choices;
use hookproof_sim::scenario::{Scenario, shipped};
use hookproof_sim::suite::document::{self, Document};
use hookproof_sim::suite::{self, Gate, Part, Plan, Progress, Sweep, Verdict, World};
use hookproof_sim::zoo::{Mutant, SenderMutant};

fn part(world: World, seeds: u64) -> Part {
    let scenario = match world {
        World::Model => Scenario::mixed(),
        World::Wire => Scenario::mixed().on_wire(),
    };
    Part { world, scenario, seeds: 0..seeds, sweeps: 0 }
}

fn plan(world: World, seeds: u64) -> Plan {
    Plan::of(vec![part(world, seeds)], 2)
}

const SILENT: fn(usize, usize) = |_, _| {};

#[test]
fn the_real_code_holds_over_forty_histories() {
    let report = suite::run(&plan(World::Wire, 40), &SILENT);
    assert_eq!(report.verdict(), Verdict::Held { histories: 40 }, "{:?}", report.failures);
    assert_eq!(report.gates, []);
    assert_eq!(report.run_twice, 2);
    let totals = report.sum().totals;
    assert_eq!(totals.deliveries, totals.delivered + totals.dead, "everything is settled");
    assert!(totals.effects >= totals.delivered, "a dead delivery may have had its effect");
    assert!(totals.requests > totals.deliveries, "there were retries");
}

#[test]
fn every_shipped_scenario_holds_in_the_model_world() {
    let parts = shipped::all().into_iter().map(|scenario| Part {
        world: World::Model,
        scenario,
        seeds: 0..40,
        sweeps: 0,
    });
    let report = suite::run(&Plan::of(parts.collect(), 2), &SILENT);
    assert_eq!(report.failures, []);
    assert_eq!(report.differences, [] as [String; 0]);
}

#[test]
fn a_crash_at_each_place_of_a_calm_history_breaks_nothing() {
    for (world, fewest) in [(World::Model, 100), (World::Wire, 20)] {
        let steady = shipped::find("steady").expect("it is shipped");
        let steady = match world {
            World::Model => steady,
            World::Wire => Scenario { events: (1, 1), endpoints: (1, 1), ..steady }.on_wire(),
        };
        let swept = Part { sweeps: 1, scenario: steady, seeds: 0..1, world };
        let report = suite::run(&Plan::of(vec![swept], 2), &SILENT);
        assert_eq!(report.failures, []);
        let sum = report.sum();
        let crashes: u64 = sum.counts.crashed_at.values().sum();
        // One plain history, one without a crash, and one for each place that this passed.
        assert_eq!(crashes, sum.histories - 2, "{world}");
        assert!(crashes > fewest, "{world}: {crashes}");
    }
}

#[test]
fn what_fails_in_a_sweep_follows_from_its_decisions_alone() {
    let scenario = shipped::find("steady").expect("it is shipped");
    // S02 loses an event if its sender ends between its two transactions.
    let mutant = Some(Mutant::Sender(SenderMutant::PersistThenFanOut));
    let (sweep, calm) = Sweep::new(World::Model, &scenario, 0);
    assert_eq!(calm.counts.crashed_at.len(), 0);
    let fails = |place: &u64| {
        let choices = sweep.choices_at(*place)?;
        let history = World::Model.run(sweep.scenario(), &choices, mutant);
        history.violation.is_some().then_some(history)
    };
    let failing = (1..=sweep.places()).find_map(|place| fails(&place));
    let failing = failing.expect("a crash at the worst place loses an event");
    assert_eq!(failing.counts.crashed_at.values().sum::<u64>(), 1);
    let choices = Choices::recorded(&failing.draws);
    let again = World::Model.run(sweep.scenario(), &choices, mutant);
    assert_eq!(again.violation, failing.violation);
    assert!(sweep.choices_at(sweep.places() + 1).is_none());
}

#[test]
fn a_report_does_not_depend_on_the_number_of_threads() {
    for world in [World::Model, World::Wire] {
        let report = |jobs| {
            let plan = Plan { jobs, ..plan(world, 8) };
            format!("{:?}", suite::run(&plan, &SILENT))
        };
        assert_eq!(report(1), report(3));
    }
}

#[test]
fn a_scenario_whose_faults_never_happen_does_not_pass_for_covered() {
    let demanding = Plan { demands_coverage: true, ..plan(World::Model, 2) };
    let report = suite::run(&demanding, &SILENT);
    assert_eq!(report.verdict(), Verdict::Invalid);
    assert!(report.gates.iter().any(|failure| failure.gate == Gate::Coverage));
}

#[test]
fn a_suite_without_histories_proves_nothing() {
    let report = suite::run(&plan(World::Wire, 0), &SILENT);
    assert_eq!(report.verdict(), Verdict::Invalid);
    assert!(report.gates.iter().all(|failure| failure.gate == Gate::CheckerLooked));
}

#[test]
fn progress_counts_every_piece_of_work() {
    let last = std::sync::Mutex::new((0, 0));
    let plan = plan(World::Wire, 3);
    let _ = suite::run(&plan, &|done, of| {
        let mut last = last.lock().unwrap();
        *last = (last.0.max(done), of);
    });
    assert_eq!(*last.lock().unwrap(), (plan.pieces(), plan.pieces()));
}

/// Has no time at all.
struct Hurried;

impl Progress for Hurried {
    fn done(&self, _done: usize, _of: usize) {}

    fn goes_on(&self) -> bool {
        false
    }
}

#[test]
fn a_suite_that_runs_out_of_time_says_so_and_proves_nothing() {
    let report = suite::run(&plan(World::Model, 100), &Hurried);
    assert!(report.is_cut_short);
    assert_ne!(report.verdict(), Verdict::Proved { histories: 0 });
}

#[test]
fn shards_put_together_are_the_whole() {
    let whole = Plan::of(vec![part(World::Model, 300), part(World::Wire, 6)], 2);
    let reports: Vec<_> = (0..3)
        .map(|shard| {
            let plan = Plan { shard: (shard, 3), ..whole.clone() };
            let text = serde_json::to_string(&Document::new(&plan, &suite::run(&plan, &SILENT)));
            serde_json::from_str::<Document>(&text.unwrap()).unwrap()
        })
        .collect();
    let merged = document::merge(&reports).unwrap();
    let once = suite::run(&whole, &SILENT);
    assert_eq!(merged.sum(), once.sum());
    assert_eq!(merged.run_twice, once.run_twice);
    assert_eq!(merged.verdict(), once.verdict());

    let missing = document::merge(&reports[..2]).unwrap_err();
    assert_eq!(missing, "shard 3 of 3 is missing");
    let twice = [reports[0].clone(), reports[0].clone(), reports[1].clone()];
    assert_eq!(document::merge(&twice).unwrap_err(), "shard 1 of 3 is there twice");
}
