//! What a suite found, for people: in short, or in full.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;

use hookproof_core::time::Millis;
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_sim::checkers::Invariant;
use hookproof_sim::fault::Fault;
use hookproof_sim::history::Sometimes;
use hookproof_sim::scenario::shipped;
use hookproof_sim::suite::{Failure, MutantReport, Report, Sum, Verdict, World};

use crate::output::number::{Counted, Grouped};
use crate::output::shell;
use crate::output::table::{Column, Table};
use crate::output::{Output, WIDTH_MAX, wrapped};

/// The most failing seeds that are told one by one.
const FAILURES_SHOWN: usize = 10;
/// What stands before each of them.
const FAILED: &str = "violated:";

/// Prints the report; its last line is the verdict.
pub(super) fn print(
    report: &Report,
    file: Option<&Path>,
    is_full: bool,
    output: &mut Output,
) -> io::Result<()> {
    let paint = output.paint;
    parts(report).write(output, paint)?;
    writeln!(output)?;
    invariants(report).write(output, paint)?;
    writeln!(output)?;
    if is_full {
        faults(report).write(output, paint)?;
        writeln!(output)?;
        crash_points(report).write(output, paint)?;
        writeln!(output)?;
        states(report).write(output, paint)?;
        writeln!(output)?;
        if !report.mutants.is_empty() {
            mutants(report).write(output, paint)?;
            writeln!(output)?;
        }
    }
    summary(report).write(output, paint)?;
    problems(report, file, output)?;
    let verdict = report.verdict();
    writeln!(output)?;
    match verdict {
        Verdict::Proved { .. } | Verdict::Held { .. } => {
            writeln!(output, "verdict: {}", paint.good(verdict))
        }
        Verdict::Violated | Verdict::Invalid => writeln!(output, "verdict: {}", paint.bad(verdict)),
    }
}

fn count<K: Ord>(counts: &BTreeMap<K, u64>, key: &K) -> u64 {
    counts.get(key).copied().unwrap_or(0)
}

/// The worlds that have histories, with their sums.
fn worlds(report: &Report) -> Vec<(World, Sum)> {
    let sums = World::ALL.iter().map(|world| (*world, report.sum_in(*world)));
    sums.filter(|(_, sum)| sum.histories > 0).collect()
}

fn parts(report: &Report) -> Table {
    let mut table = Table::new([
        Column::left("world"),
        Column::left("scenario"),
        Column::right("histories"),
        Column::right("simulated"),
        Column::right("deliveries"),
        Column::right("requests"),
        Column::right("effects"),
        Column::right("crashes"),
    ]);
    for part in &report.parts {
        let sum = &part.sum;
        table.row([
            part.world.to_string(),
            part.scenario.name.clone(),
            Grouped(sum.histories).to_string(),
            roughly(sum.simulated),
            Grouped(sum.totals.deliveries).to_string(),
            Grouped(sum.totals.requests).to_string(),
            Grouped(sum.totals.effects).to_string(),
            Grouped(sum.counts.crashed_at.values().sum()).to_string(),
        ]);
    }
    table
}

/// A long time in its largest units.
fn roughly(span: Millis) -> String {
    let hours = span.get() / 3_600_000;
    match hours {
        0 => format!("{} min", span.get() / 60_000),
        1..48 => format!("{hours} h"),
        _ => format!("{} d", Grouped(hours / 24)),
    }
}

fn invariants(report: &Report) -> Table {
    let worlds = worlds(report);
    let mut columns = vec![Column::left("invariant"), Column::left("")];
    for (world, _) in &worlds {
        columns.push(Column::right(match world {
            World::Model => "checked (model)",
            World::Wire => "checked (wire)",
        }));
    }
    columns.push(Column::left("holds"));
    let mut table = Table::new(columns);
    for invariant in Invariant::ALL {
        let broken = report.failures.iter().filter(|f| f.violation.invariant == *invariant).count();
        let mut row = vec![invariant.id().to_owned(), invariant.name().to_owned()];
        let looks: Vec<u64> = worlds.iter().map(|(_, sum)| count(&sum.looks, invariant)).collect();
        row.extend(looks.iter().map(|looks| Grouped(*looks).to_string()));
        row.push(match (broken, looks.iter().sum::<u64>()) {
            (0, 0) => "not looked at".to_owned(),
            (0, _) => "yes".to_owned(),
            (1, _) => "NO, in 1 history".to_owned(),
            (many, _) => format!("NO, in {many} histories"),
        });
        table.row(row);
    }
    table
}

fn faults(report: &Report) -> Table {
    let worlds = worlds(report);
    let mut columns = vec![Column::left("fault")];
    columns.extend(worlds.iter().map(|(world, _)| {
        Column::right(match world {
            World::Model => "fired (model)",
            World::Wire => "fired (wire)",
        })
    }));
    let mut table = Table::new(columns);
    for fault in Fault::ALL {
        let mut row = vec![fault.to_string()];
        row.extend(
            worlds.iter().map(|(_, sum)| Grouped(count(&sum.counts.fired, fault)).to_string()),
        );
        table.row(row);
    }
    table
}

fn crash_points(report: &Report) -> Table {
    let worlds = worlds(report);
    let mut columns = vec![Column::left("crash point")];
    for (world, _) in &worlds {
        let group = world.as_str();
        columns.push(Column::right("passed").within(group));
        columns.push(Column::right("crashes").within(group));
    }
    let mut table = Table::new(columns);
    for point in CrashPoint::ALL {
        let mut row = vec![point.to_string()];
        for (_, sum) in &worlds {
            row.push(Grouped(count(&sum.counts.passed, point)).to_string());
            row.push(Grouped(count(&sum.counts.crashed_at, point)).to_string());
        }
        table.row(row);
    }
    table
}

fn states(report: &Report) -> Table {
    let sum = report.sum();
    let mut table = Table::new([Column::left("sometimes"), Column::right("times")]);
    for state in Sometimes::ALL {
        table.row([state.to_string(), Grouped(count(&sum.counts.sometimes, state)).to_string()]);
    }
    table
}

fn mutants(report: &Report) -> Table {
    let mut table = Table::new([
        Column::left("mutant"),
        Column::left("world"),
        Column::left("which"),
        Column::left("killed by"),
        Column::right("seeds"),
    ]);
    for found in &report.mutants {
        let killed_by = match &found.killed_by {
            Some(killer) if found.is_expected => killer.clone(),
            Some(killer) => format!("{killer} (not as expected)"),
            None => "SURVIVED".to_owned(),
        };
        table.row([
            found.mutant.id().to_owned(),
            found.world.to_string(),
            found.mutant.what().to_owned(),
            killed_by,
            found.seeds.to_string(),
        ]);
    }
    table
}

fn summary(report: &Report) -> Table {
    let sum = report.sum();
    let totals = sum.totals;
    let mut table = Table::of_facts();
    let run_twice = Counted(report.run_twice, "history");
    table.fact("run twice", format!("{run_twice}, {} differ", report.differences.len()));
    table.fact(
        "deliveries",
        format!(
            "{} delivered + {} dead + {} cancelled or waiting at a disabled endpoint",
            Grouped(totals.delivered),
            Grouped(totals.dead),
            Grouped(totals.deliveries - totals.delivered - totals.dead),
        ),
    );
    table.fact("faults that had an effect", reached(Fault::ALL, &sum.counts.fired));
    table.fact("crash points with a crash", reached(CrashPoint::ALL, &sum.counts.crashed_at));
    if report.sum_in(World::Model).histories > 0 {
        table.fact("states that were reached", reached(Sometimes::ALL, &sum.counts.sometimes));
    }
    for world in World::ALL {
        let mutants: Vec<&MutantReport> =
            report.mutants.iter().filter(|mutant| mutant.world == *world).collect();
        if !mutants.is_empty() {
            table.fact(&format!("mutants killed ({world})"), killed(&mutants));
        }
    }
    if report.is_cut_short {
        table.fact("cut short", "the time was over before every history was run");
    }
    table
}

fn reached<K: Ord + Copy + std::fmt::Display>(all: &[K], counts: &BTreeMap<K, u64>) -> String {
    let found: Vec<(u64, K)> =
        all.iter().map(|key| (count(counts, key), *key)).filter(|(times, _)| *times > 0).collect();
    let rarest = found.iter().min();
    let rarest = rarest.map(|(times, key)| format!("; the rarest {times} times: {key}"));
    format!("{} of {}{}", found.len(), all.len(), rarest.unwrap_or_default())
}

fn killed(mutants: &[&MutantReport]) -> String {
    let as_expected = mutants.iter().filter(|mutant| mutant.is_expected).count();
    // What a harness is judged by is no search.
    let mut seeds: Vec<u64> = mutants
        .iter()
        .filter(|mutant| !matches!(mutant.mutant, hookproof_sim::zoo::Mutant::Harness(_)))
        .map(|mutant| mutant.seeds)
        .collect();
    seeds.sort_unstable();
    let median = seeds.get(seeds.len() / 2).copied().unwrap_or(0);
    let most = seeds.last().copied().unwrap_or(0);
    format!("{as_expected} of {}; seeds that took: median {median}, at most {most}", mutants.len())
}

/// The command that shows a failing history again; the scenario is in `file`, if it is not a shipped one.
pub(super) fn replay(failure: &Failure, file: Option<&Path>) -> String {
    let Failure { world, scenario, seed, crash_at, .. } = failure;
    let which = match (file, shipped::find(scenario)) {
        (Some(file), _) => format!("--scenario-file {}", shell::word(&file.display().to_string())),
        (None, Some(_)) => format!("--scenario {scenario}"),
        // Other machines ran it, each from a file of its own.
        (None, None) => "--scenario-file FILE".to_owned(),
    };
    let crash = crash_at.map(|at| format!(" --crash-at {at}")).unwrap_or_default();
    format!("hookproof sim --world {world} {which} --seed {seed}{crash}")
}

/// What went wrong, each with the command that shows it again.
fn problems(report: &Report, file: Option<&Path>, output: &mut Output) -> io::Result<()> {
    let paint = output.paint;
    if !report.failures.is_empty() || !report.gates.is_empty() {
        writeln!(output)?;
    }
    for failure in report.failures.iter().take(FAILURES_SHOWN) {
        let violation = &failure.violation;
        let crash = failure.crash_at.map(|at| format!(", crash at place {at}"));
        let told = format!(
            "{} ({}), seed {}{}: {}: {}",
            failure.scenario,
            failure.world,
            failure.seed,
            crash.unwrap_or_default(),
            violation.invariant,
            violation.what
        );
        let mut lines = wrapped(&told, WIDTH_MAX - FAILED.len() - 1).into_iter();
        let first = lines.next().unwrap_or_default();
        writeln!(output, "{} {first}", paint.bad(FAILED))?;
        for line in lines {
            writeln!(output, "{:width$} {line}", "", width = FAILED.len())?;
        }
        writeln!(output, "  {} {}", paint.hint("replay:"), replay(failure, file))?;
    }
    let more = report.failures.len().saturating_sub(FAILURES_SHOWN);
    if more > 0 {
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        writeln!(output, "and {}", Counted(more, "more failing seed"))?;
    }
    for gate in &report.gates {
        writeln!(output, "{} {}: {}", paint.bad("invalid:"), gate.gate, gate.what)?;
    }
    Ok(())
}
