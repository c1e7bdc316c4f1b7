//! What a suite found, for people and for programs.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use hookproof_core::time::Millis;
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_sim::checkers::Invariant;
use hookproof_sim::suite::{Plan, Report, Verdict};
use serde::Serialize;

use crate::output::Output;
use crate::output::number::{Counted, Grouped};
use crate::output::table::{Column, Table};

/// The most failing seeds that are told one by one.
const FAILURES_SHOWN: usize = 10;

/// Prints the report; its last line is the verdict.
pub(crate) fn print(plan: &Plan, report: &Report, output: &mut Output) -> io::Result<()> {
    let paint = output.paint;
    summary(report).write(output, paint)?;
    writeln!(output)?;
    faults_and_crashes(plan, report).write(output, paint)?;
    writeln!(output)?;
    invariants(report).write(output, paint)?;
    if !report.mutants.is_empty() {
        writeln!(output)?;
        mutants(report).write(output, paint)?;
    }
    problems(report, output)?;
    let verdict = report.verdict();
    writeln!(output)?;
    match verdict {
        Verdict::Proved { .. } | Verdict::Held { .. } => {
            writeln!(output, "verdict: {}", paint.good(verdict))
        }
        Verdict::Violated | Verdict::Invalid => writeln!(output, "verdict: {}", paint.bad(verdict)),
    }
}

fn summary(report: &Report) -> Table {
    let sum = &report.sum;
    let totals = sum.totals;
    let mut table = Table::of_facts();
    table.fact(
        "histories",
        format!(
            "{}; {} of them run twice and compared",
            Grouped(sum.histories),
            Grouped(report.run_twice)
        ),
    );
    table.fact("simulated time", Millis::from_secs(sum.simulated.get() / 1000).to_string());
    table.fact("events accepted", Grouped(totals.accepted).to_string());
    table.fact(
        "deliveries",
        format!(
            "{} delivered + {} dead = {}",
            Grouped(totals.delivered),
            Grouped(totals.dead),
            Grouped(totals.deliveries)
        ),
    );
    table.fact("requests sent", Grouped(totals.requests).to_string());
    table.fact("effects", Grouped(totals.effects).to_string());
    table
}

fn count<K: Ord>(counts: &BTreeMap<K, u64>, key: &K) -> u64 {
    counts.get(key).copied().unwrap_or(0)
}

/// Faults and crash points side by side: neither list depends on the other.
fn faults_and_crashes(plan: &Plan, report: &Report) -> Table {
    let counts = &report.sum.counts;
    let mut table = Table::new([
        Column::left("fault"),
        Column::right("fired"),
        Column::left("  crash point"),
        Column::right("passed"),
        Column::right("crashes"),
    ]);
    let faults = &plan.scenario.faults;
    for row in 0..faults.len().max(CrashPoint::ALL.len()) {
        let mut cells = match faults.get(row) {
            Some(fault) => {
                vec![fault.to_string(), Grouped(count(&counts.fired, fault)).to_string()]
            }
            None => vec![String::new(); 2],
        };
        cells.extend(match CrashPoint::ALL.get(row) {
            Some(point) => vec![
                format!("  {point}"),
                Grouped(count(&counts.passed, point)).to_string(),
                Grouped(count(&counts.crashed_at, point)).to_string(),
            ],
            None => vec![String::new(); 3],
        });
        table.row(cells);
    }
    table
}

fn invariants(report: &Report) -> Table {
    let mut table = Table::new([
        Column::left("invariant"),
        Column::left(""),
        Column::right("checked"),
        Column::left("holds"),
    ]);
    for invariant in Invariant::ALL {
        let broken = report.failures.iter().filter(|f| f.violation.invariant == *invariant).count();
        let holds = match broken {
            0 => "yes".to_owned(),
            1 => "NO, in 1 history".to_owned(),
            many => format!("NO, in {many} histories"),
        };
        table.row([
            invariant.id().to_owned(),
            invariant.name().to_owned(),
            Grouped(count(&report.sum.looks, invariant)).to_string(),
            holds,
        ]);
    }
    table
}

fn mutants(report: &Report) -> Table {
    let mut table = Table::new([
        Column::left("mutant"),
        Column::left("which"),
        Column::left("killed by"),
        Column::right("seeds"),
    ]);
    for mutant in &report.mutants {
        let killed_by = match &mutant.killed_by {
            Some(killer) if mutant.is_expected => killer.clone(),
            Some(killer) => format!("{killer} (not as expected)"),
            None => "SURVIVED".to_owned(),
        };
        table.row([
            mutant.mutant.id().to_owned(),
            mutant.mutant.what().to_owned(),
            killed_by,
            mutant.seeds.to_string(),
        ]);
    }
    table
}

/// What went wrong, each with the command that shows it again.
fn problems(report: &Report, output: &mut Output) -> io::Result<()> {
    let paint = output.paint;
    if !report.failures.is_empty() || !report.gates.is_empty() {
        writeln!(output)?;
    }
    for failure in report.failures.iter().take(FAILURES_SHOWN) {
        let violation = &failure.violation;
        writeln!(
            output,
            "{} seed {}: {}: {}",
            paint.bad("violated:"),
            failure.seed,
            violation.invariant,
            violation.what
        )?;
        writeln!(output, "  {} hookproof sim --seed {}", paint.hint("replay:"), failure.seed)?;
    }
    let more = report.failures.len().saturating_sub(FAILURES_SHOWN);
    if more > 0 {
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        writeln!(output, "and {}", Counted(more, "more failing seed"))?;
    }
    for gate in &report.gates {
        writeln!(output, "{} {}: {}", paint.bad("invalid:"), gate.gate.as_str(), gate.what)?;
    }
    Ok(())
}

/// The report as programs read it.
#[derive(Serialize)]
pub(crate) struct Document {
    verdict: &'static str,
    scenario: String,
    first_seed: u64,
    histories: u64,
    run_twice: u64,
    simulated_ms: u64,
    accepted: u64,
    deliveries: u64,
    delivered: u64,
    dead: u64,
    requests: u64,
    effects: u64,
    faults_fired: BTreeMap<&'static str, u64>,
    crash_points_passed: BTreeMap<&'static str, u64>,
    crashes: BTreeMap<&'static str, u64>,
    invariants_checked: BTreeMap<&'static str, u64>,
    failures: Vec<FailureDocument>,
    mutants: Vec<MutantDocument>,
    gates_failed: Vec<String>,
}

#[derive(Serialize)]
struct FailureDocument {
    seed: u64,
    invariant: &'static str,
    what: String,
    replay: String,
}

#[derive(Serialize)]
struct MutantDocument {
    id: &'static str,
    what: &'static str,
    killed_by: Option<String>,
    is_expected: bool,
    seeds: u64,
}

pub(crate) fn document(plan: &Plan, report: &Report) -> Document {
    let sum = &report.sum;
    let points = |counts: &BTreeMap<CrashPoint, u64>| {
        counts.iter().map(|(point, count)| (point.as_str(), *count)).collect()
    };
    Document {
        verdict: match report.verdict() {
            Verdict::Proved { .. } => "proved",
            Verdict::Held { .. } => "held",
            Verdict::Violated => "violated",
            Verdict::Invalid => "invalid",
        },
        scenario: plan.scenario.name.clone(),
        first_seed: plan.seeds.start,
        histories: sum.histories,
        run_twice: report.run_twice,
        simulated_ms: sum.simulated.get(),
        accepted: sum.totals.accepted,
        deliveries: sum.totals.deliveries,
        delivered: sum.totals.delivered,
        dead: sum.totals.dead,
        requests: sum.totals.requests,
        effects: sum.totals.effects,
        faults_fired: sum.counts.fired.iter().map(|(f, count)| (f.as_str(), *count)).collect(),
        crash_points_passed: points(&sum.counts.passed),
        crashes: points(&sum.counts.crashed_at),
        invariants_checked: sum.looks.iter().map(|(i, looks)| (i.id(), *looks)).collect(),
        failures: report
            .failures
            .iter()
            .map(|failure| FailureDocument {
                seed: failure.seed,
                invariant: failure.violation.invariant.id(),
                what: failure.violation.what.clone(),
                replay: format!("hookproof sim --seed {}", failure.seed),
            })
            .collect(),
        mutants: report
            .mutants
            .iter()
            .map(|mutant| MutantDocument {
                id: mutant.mutant.id(),
                what: mutant.mutant.what(),
                killed_by: mutant.killed_by.clone(),
                is_expected: mutant.is_expected,
                seeds: mutant.seeds,
            })
            .collect(),
        gates_failed: report.gates.iter().map(|gate| gate.what.clone()).collect(),
    }
}
