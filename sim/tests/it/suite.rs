//! Suites: their verdicts, their gates, their sums.

use hookproof_sim::scenario::Scenario;
use hookproof_sim::suite::{self, Gate, Plan, Verdict};

fn plan(seeds: u64) -> Plan {
    Plan {
        scenario: Scenario::mixed().on_wire(),
        seeds: 0..seeds,
        twice_every: 10,
        mutants: Vec::new(),
        mutant_seeds: 0,
        demands_coverage: false,
        jobs: 2,
    }
}

#[test]
fn the_real_code_holds_over_forty_histories() {
    let report = suite::run(&plan(40), &|_, _| {});
    assert_eq!(report.verdict(), Verdict::Held { histories: 40 }, "{:?}", report.failures);
    assert_eq!(report.gates, []);
    assert_eq!(report.run_twice, 4);
    let totals = report.sum.totals;
    assert_eq!(totals.deliveries, totals.delivered + totals.dead, "everything is settled");
    assert!(totals.effects >= totals.delivered, "a dead delivery may have had its effect");
    assert!(totals.requests > totals.deliveries, "there were retries");
}

#[test]
fn a_report_does_not_depend_on_the_number_of_threads() {
    let report = |jobs| format!("{:?}", suite::run(&Plan { jobs, ..plan(8) }, &|_, _| {}));
    assert_eq!(report(1), report(3));
}

#[test]
fn a_scenario_whose_faults_never_happen_does_not_pass_for_covered() {
    let demanding = Plan { demands_coverage: true, ..plan(2) };
    let report = suite::run(&demanding, &|_, _| {});
    assert_eq!(report.verdict(), Verdict::Invalid);
    assert!(report.gates.iter().any(|failure| failure.gate == Gate::Coverage));
}

#[test]
fn a_suite_without_histories_proves_nothing() {
    let report = suite::run(&plan(0), &|_, _| {});
    assert_eq!(report.verdict(), Verdict::Invalid);
    assert!(report.gates.iter().all(|failure| failure.gate == Gate::CheckerLooked));
}

#[test]
fn progress_counts_every_piece_of_work() {
    let last = std::sync::Mutex::new((0, 0));
    let _ = suite::run(&plan(3), &|done, of| {
        let mut last = last.lock().unwrap();
        *last = (last.0.max(done), of);
    });
    assert_eq!(*last.lock().unwrap(), (3, 3));
}
