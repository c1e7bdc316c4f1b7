//! `hookproof breaker`: a breaker rule in words, and what it makes of a series of outcomes.

mod replay;
mod trace;

use std::io;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use hookproof_core::classify::{Classification, PRESETS, Signal};
use hookproof_core::gate::{BreakerRule, DisableRule, WindowRule, known_rules};
use hookproof_core::policy::Policy;
use hookproof_core::time::Millis;
use serde::Serialize;

use self::replay::{Row, replay};
use crate::args::Format;
use crate::config;
use crate::failure::{EXIT_CODES, Ending, Failure};
use crate::output::Output;
use crate::output::table::{Column, Table};

/// What `hookproof breaker` takes.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// Name of the rule: default, gitlab or svix
    #[arg(default_value = "default", value_parser = ["default", "gitlab", "svix"])]
    preset: String,

    /// A TOML or JSON file of your own rule: what stands in [sender.policy.gate.breaker]
    #[arg(long, value_name = "FILE", conflicts_with = "preset")]
    rule: Option<PathBuf>,

    /// A file of attempts to replay, one a line: when, and a status or a kind of failure, as in
    /// `5s 503`; `5s 503 after 2s` took 2 s, `5s never` did not end; `-` is standard input
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// When an attempt that never ends gives its permit back; as long as a claim of the sender holds
    /// unless given: total_timeout and lease_margin, 15s
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    deadline: Option<Millis>,

    /// What counts as a failure, by the agreement of this name; that of the preset unless given, and
    /// seed for a rule of your own
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(PRESETS))]
    agreement: Option<String>,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Prints a rule, or what it makes of a trace.
pub(crate) fn run(args: Args, output: &mut Output) -> Result<Ending, Failure> {
    let Args { preset, rule, trace, deadline, agreement, format } = args;
    let mut chosen = match rule {
        Some(path) => own(&path)?,
        None => known(&preset),
    };
    if let Some(deadline) = deadline {
        if deadline == Millis::ZERO {
            return Err(Failure::usage("--deadline is 0s", "give at least 1ms"));
        }
        chosen.probe_deadline = deadline;
    }
    chosen.agreement = agreement.unwrap_or(chosen.agreement);
    let Some(trace) = trace else {
        match format {
            Format::Table => {
                let paint = output.paint;
                facts(&chosen).write(output, paint)?;
            }
            Format::Json => output.json(&chosen)?,
        }
        return Ok(Ending::AsItShould);
    };
    let trace = trace::read(&trace, chosen.probe_deadline)?;
    let agreement = Classification::preset(&chosen.agreement).unwrap_or_default();
    let rows = replay(chosen.rule, &agreement, chosen.probe_deadline, &trace);
    match format {
        Format::Table => print(&rows, output)?,
        Format::Json => output.json(&rows)?,
    }
    Ok(Ending::AsItShould)
}

/// A rule, and what else a replay needs.
#[derive(Serialize)]
struct Chosen {
    source: String,
    agreement: String,
    /// Counted from the begin of the probe.
    probe_deadline: Millis,
    rule: BreakerRule,
}

fn own(path: &Path) -> Result<Chosen, Failure> {
    let file = config::read::<BreakerRule>(path, "docs/breaker.md")?;
    if let Some((field, problem)) = file.content.check() {
        let field = field.rsplit_once("breaker.").map_or(field, |(_, field)| field);
        return Err(file.invalid(field, problem));
    }
    Ok(Chosen::new(&path.display().to_string(), PRESETS[0], file.content))
}

fn known(preset: &str) -> Chosen {
    let known = known_rules().into_iter().find(|known| known.name == preset);
    let chosen = known.map(|known| Chosen::new(known.source, known.agreement, known.rule));
    chosen.unwrap_or_else(|| Chosen::new("project default", PRESETS[0], BreakerRule::default()))
}

impl Chosen {
    fn new(source: &str, agreement: &str, rule: BreakerRule) -> Self {
        Self {
            source: source.to_owned(),
            agreement: agreement.to_owned(),
            probe_deadline: Policy::default().lease(),
            rule,
        }
    }
}

fn facts(chosen: &Chosen) -> Table {
    let Chosen { source, agreement, probe_deadline, rule } = chosen;
    let mut facts = Table::of_facts();
    facts.fact("source", source);
    facts.fact("failures", format!("are what the agreement {agreement} calls so"));
    if rule.failures_in_a_row > 0 {
        facts.fact("pauses", format!("after {} failures in a row", rule.failures_in_a_row));
    }
    if let Some(window) = &rule.window {
        let WindowRule { within, failures, share_percent, attempts_min } = window;
        let share = match share_percent {
            // So many failures are so many attempts: without a share, fewer attempts ask for nothing.
            0 if attempts_min <= failures => String::new(),
            0 => format!(" of at least {attempts_min} attempts"),
            percent => format!(", {percent} % of at least {attempts_min} attempts"),
        };
        facts.fact(
            "pauses",
            format!("at a failure, if within {within} at least {failures} failed{share}"),
        );
    }
    if rule.failures_in_a_row > 0 || rule.window.is_some() {
        facts.fact(
            "for",
            format!(
                "{}, then {} times as long after each probe that fails, up to {}",
                rule.pause, rule.pause_factor, rule.pause_max
            ),
        );
        facts.fact(
            "then",
            format!(
                "one probe goes: its success resumes, its failure prolongs the pause; one that has \
                 not ended after {probe_deadline} makes room for the next"
            ),
        );
    } else {
        facts.fact("pauses", "never");
    }
    let disable = rule.disable.as_ref();
    let count = disable.map_or(0, |rule| rule.failures_in_a_row);
    if count > 0 {
        facts.fact("disables", format!("after {count} failures in a row, probes included"));
    }
    if let Some(rule) = disable
        && rule.failing_for > Millis::ZERO
    {
        facts.fact("disables", failing(rule));
    }
    if disable.is_none() {
        facts.fact("disables", "never");
    }
    facts
}

/// The condition of a time of nothing but failures, in words.
fn failing(rule: &DisableRule) -> String {
    let DisableRule { failing_for, failures_min, clock, .. } = rule;
    let least = match failures_min {
        0 | 1 => String::new(),
        least => format!(", at least {least}"),
    };
    let from = clock.as_ref().map_or(String::new(), |clock| {
        format!(
            "; the time begins with the first failure that comes at least {} after another, and at \
             most {}",
            clock.apart, clock.within
        )
    });
    format!("at a failure after {failing_for} of nothing but failures{least}{from}")
}

fn print(rows: &[Row], output: &mut Output) -> io::Result<()> {
    let mut table = Table::new([
        Column::right("since start"),
        Column::left("outcome"),
        Column::left("signal"),
        Column::left("breaker"),
        Column::left("why"),
    ]);
    for row in rows {
        let signal = match row.signal {
            None => "-",
            Some(Signal::Success) => "success",
            Some(Signal::Failure) => "failure",
            Some(Signal::Neither) => "neither",
        };
        table.row([
            Millis::new(row.since_start_ms).to_string(),
            row.outcome.clone(),
            signal.to_owned(),
            row.breaker.to_owned(),
            row.why.clone(),
        ]);
    }
    let paint = output.paint;
    table.write(output, paint)
}
