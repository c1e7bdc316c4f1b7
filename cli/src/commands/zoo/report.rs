//! What became of the mutants, for people and for programs.

use std::io::{self, Write as _};

use hookproof_sim::plan::Plan;
use hookproof_sim::timeline;
use hookproof_sim::zoo::hunt::{Trophy, Weapon};
use hookproof_sim::zoo::{About, Killer};
use serde::Serialize;

use crate::output::Output;
use crate::output::number::{Counted, Grouped};
use crate::output::table::{Column, Table};

/// Prints all mutants, and at last how many were killed.
pub(crate) fn print(trophies: &[Trophy], output: &mut Output) -> io::Result<()> {
    let paint = output.paint;
    let mut table = Table::new([
        Column::left("mutant"),
        Column::left("what it does wrong"),
        Column::left("killed by"),
        Column::right("median").within("seeds to kill"),
        Column::right("most").within("seeds to kill"),
        Column::right("decisions"),
    ]);
    for trophy in trophies {
        let decisions = trophy.smallest.as_ref().map(|found| found.plan.draws.len());
        table.row([
            trophy.mutant.id().to_owned(),
            trophy.mutant.what().to_owned(),
            killers(trophy),
            number(trophy.seeds_median()),
            number(trophy.seeds_most()),
            decisions.map_or("-".to_owned(), |count| count.to_string()),
        ]);
    }
    table.write(output, paint)?;
    writeln!(output)?;
    for trophy in trophies.iter().filter(|trophy| !trophy.is_expected) {
        writeln!(output, "{} {}: {}", paint.bad("wrong:"), trophy.mutant, problem(trophy))?;
    }
    let killed = trophies.iter().filter(|trophy| trophy.is_expected).count();
    let summary = format!(
        "killed {killed} of {}; the median of the medians is {}",
        trophies.len(),
        median_of_medians(trophies).map_or("none".to_owned(), |m| Counted(m, "seed").to_string())
    );
    if killed == trophies.len() {
        writeln!(output, "verdict: {}", paint.good(summary))
    } else {
        writeln!(output, "verdict: {}", paint.bad(summary))
    }
}

fn number(count: Option<u64>) -> String {
    count.map_or("-".to_owned(), |count| Grouped(count).to_string())
}

fn median_of_medians(trophies: &[Trophy]) -> Option<u64> {
    let mut medians: Vec<_> = trophies.iter().filter_map(Trophy::seeds_median).collect();
    medians.sort_unstable();
    medians.get(medians.len().checked_sub(1)? / 2).copied()
}

/// The invariants or the gate, those first that killed most often.
fn killers(trophy: &Trophy) -> String {
    let mut weapons: Vec<_> = trophy.killed_by.iter().collect();
    weapons.sort_by_key(|(weapon, count)| (std::cmp::Reverse(**count), **weapon));
    let names: Vec<_> = weapons.iter().map(|(weapon, _)| short(**weapon)).collect();
    match names.is_empty() {
        true => "SURVIVED".to_owned(),
        false => names.join(", "),
    }
}

/// One alone with its name would fit, several would not.
fn short(weapon: Weapon) -> String {
    match weapon {
        Weapon::Invariant(invariant) => invariant.id().to_owned(),
        Weapon::Gate(_) => "a gate".to_owned(),
    }
}

fn problem(trophy: &Trophy) -> String {
    if trophy.survived > 0 {
        return format!("it survived {}", Counted(trophy.survived, "run"));
    }
    format!("{} found it, which is not what must find it", killers(trophy))
}

/// Prints what is known of one mutant, and the smallest history that shows it.
pub(crate) fn explain(runs: u64, trophy: &Trophy, output: &mut Output) -> io::Result<()> {
    let paint = output.paint;
    let About { id, what, why, seen, killer, scenario, .. } = trophy.mutant.about();
    let mut facts = Table::of_facts();
    facts.fact("mutant", id);
    facts.fact("does", what);
    facts.fact("so that", why);
    facts.fact("seen in", if seen.is_empty() { "no system that is named here" } else { seen });
    facts.fact("must be found by", expected(killer));
    facts.fact("scenario", scenario);
    facts.fact("found by", found(trophy));
    facts.fact(
        "seeds to kill",
        format!(
            "{} (median), {} (most) in {}",
            number(trophy.seeds_median()),
            number(trophy.seeds_most()),
            Counted(runs, "run")
        ),
    );
    if let Some(smallest) = &trophy.smallest {
        let Plan { scenario, draws, .. } = &smallest.plan;
        let decisions = u64::try_from(draws.len()).unwrap_or(u64::MAX);
        facts.fact(
            "smallest",
            format!(
                "{}, {} and {}, found in {}",
                Counted(scenario.events.1, "event"),
                Counted(scenario.endpoints.1, "endpoint"),
                Counted(decisions, "decision"),
                histories(smallest.runs),
            ),
        );
    }
    facts.write(output, paint)?;
    writeln!(output)?;
    if let Some(smallest) = &trophy.smallest {
        let tone = |tone, text: &str| paint.tone(tone, text);
        writeln!(output, "{}", timeline::story(&smallest.plan, &smallest.history, &tone))?;
    }
    match trophy.is_expected {
        true => writeln!(output, "verdict: {}", paint.good("killed")),
        false => writeln!(output, "verdict: {}", paint.bad(problem(trophy))),
    }
}

fn histories(count: u64) -> String {
    match count {
        1 => "1 history".to_owned(),
        many => format!("{} histories", Grouped(many)),
    }
}

fn expected(killer: Killer) -> String {
    match killer {
        Killer::Invariants(invariants) => {
            invariants.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
        }
        Killer::Gate(gate) => format!("the gate \"{}\"", gate.as_str()),
    }
}

fn found(trophy: &Trophy) -> String {
    let name = |weapon: &Weapon| match weapon {
        Weapon::Invariant(invariant) => invariant.to_string(),
        Weapon::Gate(gate) => format!("the gate \"{}\"", gate.as_str()),
    };
    let each: Vec<_> = trophy
        .killed_by
        .iter()
        .map(|(weapon, count)| format!("{} (in {})", name(weapon), Counted(*count, "run")))
        .collect();
    if each.is_empty() { "nothing".to_owned() } else { each.join(", ") }
}

/// The hunt as programs read it.
#[derive(Serialize)]
pub(crate) struct Document {
    runs: u64,
    killed: usize,
    of: usize,
    median_of_medians: Option<u64>,
    mutants: Vec<MutantDocument>,
}

#[derive(Serialize)]
struct MutantDocument {
    id: &'static str,
    what: &'static str,
    why: &'static str,
    seen: &'static str,
    scenario: &'static str,
    killed_by: Vec<KilledBy>,
    is_expected: bool,
    runs_survived: u64,
    seeds_median: Option<u64>,
    seeds_most: Option<u64>,
    smallest: Option<timeline::Document>,
}

#[derive(Serialize)]
struct KilledBy {
    invariant: Option<&'static str>,
    gate: Option<&'static str>,
    runs: u64,
}

pub(crate) fn document(runs: u64, trophies: &[Trophy]) -> Document {
    Document {
        runs,
        killed: trophies.iter().filter(|trophy| trophy.is_expected).count(),
        of: trophies.len(),
        median_of_medians: median_of_medians(trophies),
        mutants: trophies.iter().map(mutant).collect(),
    }
}

fn mutant(trophy: &Trophy) -> MutantDocument {
    let About { id, what, why, seen, scenario, .. } = trophy.mutant.about();
    let killed_by = |(weapon, runs): (&Weapon, &u64)| match *weapon {
        Weapon::Invariant(invariant) => {
            KilledBy { invariant: Some(invariant.id()), gate: None, runs: *runs }
        }
        Weapon::Gate(gate) => KilledBy { invariant: None, gate: Some(gate.as_str()), runs: *runs },
    };
    let document = |found: &hookproof_sim::minimise::Minimised| {
        timeline::document(&found.plan, &found.history)
    };
    MutantDocument {
        id,
        what,
        why,
        seen,
        scenario,
        killed_by: trophy.killed_by.iter().map(killed_by).collect(),
        is_expected: trophy.is_expected,
        runs_survived: trophy.survived,
        seeds_median: trophy.seeds_median(),
        seeds_most: trophy.seeds_most(),
        smallest: trophy.smallest.as_ref().map(document),
    }
}
