//! A report as CI servers read it.

use std::fs;
use std::path::Path;

use hookproof_sim::suite::Report;
use quick_junit::{NonSuccessKind, Report as JunitReport, TestCase, TestCaseStatus, TestSuite};

use super::report::replay;
use crate::failure::Failure;

/// Writes it: a case for each part, each mutant and the gates.
///
/// A scenario that is not a shipped one is in the file `scenario`.
pub(super) fn write(path: &Path, report: &Report, scenario: Option<&Path>) -> Result<(), Failure> {
    let mut junit = JunitReport::new("hookproof sim");
    junit.add_test_suite(histories(report, scenario));
    junit.add_test_suite(zoo(report));
    junit.add_test_suite(gates(report));
    let wrong = |what: &dyn std::fmt::Display| {
        Failure::environment(
            format_args!("{}: the report cannot be written: {what}", path.display()),
            "give a file in a folder that is there and can be written to",
        )
    };
    let text = junit.to_string().map_err(|error| wrong(&error))?;
    fs::write(path, text).map_err(|error| wrong(&error))
}

fn failed(what: impl Into<String>) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_message(what.into());
    status
}

fn histories(report: &Report, scenario: Option<&Path>) -> TestSuite {
    let mut suite = TestSuite::new("histories");
    for part in &report.parts {
        let name = &part.scenario.name;
        let mut failures = report
            .failures
            .iter()
            .filter(|failure| failure.world == part.world && failure.scenario == *name);
        let status = match failures.next() {
            None => TestCaseStatus::success(),
            Some(first) => {
                let more = failures.count();
                failed(format!(
                    "seed {}: {}: {}; and {more} more; replay: {}",
                    first.seed,
                    first.violation.invariant,
                    first.violation.what,
                    replay(first, scenario)
                ))
            }
        };
        let histories = part.sum.histories;
        let mut case = TestCase::new(format!("{name}: {histories} histories"), status);
        case.set_classname(format!("hookproof.sim.{}", part.world));
        suite.add_test_case(case);
    }
    suite
}

fn zoo(report: &Report) -> TestSuite {
    let mut suite = TestSuite::new("zoo");
    for mutant in &report.mutants {
        let status = match (&mutant.killed_by, mutant.is_expected) {
            (Some(_), true) => TestCaseStatus::success(),
            (Some(other), false) => failed(format!("killed by {other}")),
            (None, _) => failed(format!("survived {} seeds", mutant.seeds)),
        };
        let mut case = TestCase::new(mutant.mutant.to_string(), status);
        case.set_classname(format!("hookproof.zoo.{}", mutant.world));
        suite.add_test_case(case);
    }
    suite
}

fn gates(report: &Report) -> TestSuite {
    let mut suite = TestSuite::new("gates");
    for gate in hookproof_sim::suite::Gate::ALL {
        let missing: Vec<&str> = report
            .gates
            .iter()
            .filter(|failure| failure.gate == *gate)
            .map(|failure| failure.what.as_str())
            .collect();
        let status = match missing[..] {
            [] => TestCaseStatus::success(),
            _ => failed(missing.join("; ")),
        };
        let mut case = TestCase::new(gate.as_str(), status);
        case.set_classname("hookproof.sim.gates");
        suite.add_test_case(case);
    }
    suite
}
