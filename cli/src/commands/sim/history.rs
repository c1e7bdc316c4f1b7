//! One history, told from its trace.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use hookproof_sim::history::Line;
use hookproof_sim::history::{History, epoch};
use hookproof_sim::scenario::Scenario;
use serde::Serialize;

use crate::output::Output;
use crate::output::number::Grouped;
use crate::output::table::{Column, Table};

/// Prints what happened; its last line is the verdict.
pub(super) fn print(
    seed: u64,
    scenario: &Scenario,
    history: &History,
    with_steps: bool,
    output: &mut Output,
) -> io::Result<()> {
    let paint = output.paint;
    let mut head = Table::of_facts();
    head.fact("seed", seed.to_string());
    head.fact("scenario", scenario.name.clone());
    head.fact("faults on", faults(history).join(", "));
    head.write(output, paint)?;
    writeln!(output)?;
    timeline(history, with_steps).write(output, paint)?;
    writeln!(output)?;
    sums(history).write(output, paint)?;
    writeln!(output)?;
    match &history.violation {
        None => writeln!(output, "verdict: {}", paint.good("every invariant holds")),
        Some(violation) => writeln!(
            output,
            "verdict: {} {}: {}",
            paint.bad("violated"),
            violation.invariant,
            violation.what
        ),
    }
}

fn faults(history: &History) -> Vec<&'static str> {
    history.faults.on().map(hookproof_sim::fault::Fault::as_str).collect()
}

/// Time downwards; without the steps that every host takes all the time.
pub(super) fn timeline(history: &History, with_steps: bool) -> Table {
    let mut table =
        Table::new([Column::right("ms"), Column::left("host"), Column::left("what happened")]);
    for line in history.lines.iter().filter(|line| with_steps || !line.is_step()) {
        table.row([
            line.at.since(epoch()).get().to_string(),
            line.who.to_owned(),
            line.text.to_string(),
        ]);
    }
    table
}

fn sums(history: &History) -> Table {
    let totals = history.totals;
    let mut table = Table::of_facts();
    table.fact("simulated time", history.simulated.to_string());
    table.fact("events accepted", Grouped(totals.accepted).to_string());
    table.fact(
        "deliveries",
        format!("{} delivered + {} dead of {}", totals.delivered, totals.dead, totals.deliveries),
    );
    table.fact("requests sent", totals.requests.to_string());
    table.fact("effects", totals.effects.to_string());
    let crashes: u64 = history.counts.crashed_at.values().sum();
    table.fact("crashes", crashes.to_string());
    let looks: u64 = history.looks.values().sum();
    table.fact("checks", Grouped(looks).to_string());
    table.fact("trace", format!("{} lines, hash {}", history.lines.len(), history.hash));
    table
}

/// A history as programs read it.
#[derive(Serialize)]
pub(super) struct Document {
    seed: u64,
    scenario: String,
    faults_on: Vec<&'static str>,
    verdict: &'static str,
    violation: Option<ViolationDocument>,
    simulated_ms: u64,
    accepted: u64,
    deliveries: u64,
    delivered: u64,
    dead: u64,
    requests: u64,
    effects: u64,
    invariants_checked: BTreeMap<&'static str, u64>,
    trace_hash: String,
    trace: Vec<LineDocument>,
}

#[derive(Serialize)]
struct ViolationDocument {
    invariant: &'static str,
    at_ms: u64,
    what: String,
}

#[derive(Serialize)]
struct LineDocument {
    ms: u64,
    host: &'static str,
    what: String,
}

pub(super) fn document(seed: u64, scenario: &Scenario, history: &History) -> Document {
    let totals = history.totals;
    let line = |line: &Line| LineDocument {
        ms: line.at.since(epoch()).get(),
        host: line.who,
        what: line.text.to_string(),
    };
    Document {
        seed,
        scenario: scenario.name.clone(),
        faults_on: faults(history),
        verdict: if history.violation.is_none() { "holds" } else { "violated" },
        violation: history.violation.as_ref().map(|violation| ViolationDocument {
            invariant: violation.invariant.id(),
            at_ms: violation.at.since(epoch()).get(),
            what: violation.what.clone(),
        }),
        simulated_ms: history.simulated.get(),
        accepted: totals.accepted,
        deliveries: totals.deliveries,
        delivered: totals.delivered,
        dead: totals.dead,
        requests: totals.requests,
        effects: totals.effects,
        invariants_checked: history.looks.iter().map(|(i, looks)| (i.id(), *looks)).collect(),
        trace_hash: history.hash.clone(),
        trace: history.lines.iter().map(line).collect(),
    }
}
