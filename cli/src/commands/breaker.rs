//! `hookproof breaker`: a breaker rule in words, and what it makes of a series of outcomes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use hookproof_core::classify::{Classification, Signal};
use hookproof_core::gate::{
    Admission, Breaker, BreakerRule, Cause, DisableRule, Gate, GateRule, Transition, known_rules,
};
use hookproof_core::outcome::Outcome;
use hookproof_core::time::{Millis, Timestamp};
use serde::Serialize;

use super::classify::read_outcome;
use crate::args::{Format, Instant, instant};
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

    /// A TOML file of your own rule: what stands in [sender.policy.gate.breaker]
    #[arg(long, value_name = "FILE", conflicts_with = "preset")]
    rule: Option<PathBuf>,

    /// A file of outcomes to replay, one a line: when, and a status or a kind of failure
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Prints a rule, or what it makes of a trace.
pub(crate) fn run(args: Args, output: &mut Output) -> Result<Ending, Failure> {
    let Args { preset, rule, trace, format } = args;
    let (source, rule) = match rule {
        Some(path) => {
            let file = config::read::<BreakerRule>(&path, "docs/breaker.md")?;
            if let Some((field, problem)) = file.content.check() {
                let field = field.rsplit_once("breaker.").map_or(field, |(_, field)| field);
                return Err(file.invalid(field, problem));
            }
            (path.display().to_string(), file.content)
        }
        None => known_rules()
            .into_iter()
            .find(|known| known.name == preset)
            .map(|known| (known.source.to_owned(), known.rule))
            .unwrap_or_default(),
    };
    let Some(trace) = trace else {
        match format {
            Format::Table => {
                let paint = output.paint;
                facts(&rule, &source).write(output, paint)?;
            }
            Format::Json => output.json(&Printed { source, rule })?,
        }
        return Ok(Ending::AsItShould);
    };
    let rows = replay(rule, &read_trace(&trace)?);
    match format {
        Format::Table => print(&rows, output)?,
        Format::Json => output.json(&rows)?,
    }
    Ok(Ending::AsItShould)
}

#[derive(Serialize)]
struct Printed {
    source: String,
    rule: BreakerRule,
}

fn facts(rule: &BreakerRule, source: &str) -> Table {
    let mut facts = Table::of_facts();
    facts.fact("source", source);
    if rule.failures_in_a_row > 0 {
        facts.fact("pauses", format!("after {} failures in a row", rule.failures_in_a_row));
    }
    if let Some(window) = &rule.window {
        facts.fact(
            "pauses",
            format!(
                "at a failure, if within {} at least {} failed, {} % of at least {} attempts",
                window.within, window.failures, window.share_percent, window.attempts_min
            ),
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
        facts.fact("then", "one probe goes: its success resumes, its failure prolongs the pause");
    } else {
        facts.fact("pauses", "never");
    }
    let disable = rule.disable.as_ref();
    let count = disable.map_or(0, |rule| rule.failures_in_a_row);
    if count > 0 {
        facts.fact("disables", format!("after {count} failures in a row, probes included"));
    }
    if let Some(DisableRule { failing_for, failures_min, .. }) = disable
        && *failing_for > Millis::ZERO
    {
        let least = match failures_min {
            0 | 1 => String::new(),
            least => format!(", at least {least}"),
        };
        let span = format!("at a failure after {failing_for} of nothing but failures{least}");
        facts.fact("disables", span);
    }
    if disable.is_none() {
        facts.fact("disables", "never");
    }
    facts
}

/// One line of a trace.
struct Ended {
    line: usize,
    at: Timestamp,
    outcome: Outcome,
}

fn read_trace(path: &Path) -> Result<Vec<Ended>, Failure> {
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::usage(
            format!("cannot read the trace {}: {error}", path.display()),
            "give the path of a file with a time and an outcome a line, as in `5s 503`",
        )
    })?;
    let mut trace: Vec<Ended> = Vec::new();
    for (index, text) in text.lines().enumerate() {
        let line = index + 1;
        let content = text.split('#').next().unwrap_or_default();
        let mut words = content.split_whitespace();
        let Some(time) = words.next() else { continue };
        let wrong = |what: &str, help: &str| {
            Failure::usage(format!("{}, line {line}: {what}", path.display()), help)
        };
        let at = time_of(time).ok_or_else(|| {
            wrong(
                &format!("`{}` is no time", time.escape_debug()),
                "write a span since the beginning, as in 1h30m, or a date and time as RFC 3339 has them",
            )
        })?;
        let (Some(outcome), None) = (words.next(), words.next()) else {
            return Err(wrong("a line is a time and an outcome", "write them as in `5s 503`"));
        };
        let outcome = read_outcome(outcome)
            .map_err(|help| wrong(&format!("`{}` is no outcome", outcome.escape_debug()), &help))?;
        if trace.last().is_some_and(|last| last.at > at) {
            return Err(wrong("it is earlier than the line before", "sort the lines by time"));
        }
        trace.push(Ended { line, at, outcome });
    }
    if trace.is_empty() {
        return Err(Failure::usage(
            format!("{} holds no outcome", path.display()),
            "give it a line for each attempt, as in `5s 503`",
        ));
    }
    Ok(trace)
}

fn time_of(text: &str) -> Option<Timestamp> {
    if let Ok(span) = text.parse::<Millis>() {
        return Some(Timestamp::from_millis(0).plus(span));
    }
    match instant(text) {
        Ok(Instant::At(at)) => Some(at),
        _ => None,
    }
}

/// What one line of a trace did.
#[derive(Serialize)]
struct Row {
    line: usize,
    since_start_ms: u64,
    outcome: String,
    /// `None` if the attempt would not have been made.
    signal: Option<Signal>,
    breaker: &'static str,
    transition: Option<Transition>,
    why: String,
}

fn replay(rule: BreakerRule, trace: &[Ended]) -> Vec<Row> {
    let rule = GateRule { breaker: Some(rule), ..GateRule::default() };
    let agreement = Classification::default();
    let mut gate = Gate::default();
    let mut is_disabled = false;
    let start = trace.first().map_or(Timestamp::from_millis(0), |ended| ended.at);
    let since = |at: Timestamp| at.since(start);
    let mut rows = Vec::new();
    for Ended { line, at, outcome } in trace {
        let mut row = Row {
            line: *line,
            since_start_ms: since(*at).get(),
            outcome: outcome.to_string(),
            signal: None,
            breaker: "disabled",
            transition: None,
            why: "the endpoint is disabled: no attempt is made".to_owned(),
        };
        if is_disabled {
            rows.push(row);
            continue;
        }
        match gate.admit(&rule, *at, Millis::new(1)) {
            Admission::Defer { until, .. } => {
                row.why = format!("no attempt is made before {}", since(until));
            }
            Admission::Go(permit) => {
                let signal = agreement.signal(outcome);
                let probe = permit.probe;
                row.signal = Some(signal);
                row.transition = gate.record(&rule, *at, permit, signal);
                row.why = row.transition.map_or_else(
                    || if probe { "the probe tells nothing" } else { "" }.to_owned(),
                    |transition| told(transition, since),
                );
                is_disabled = matches!(row.transition, Some(Transition::Disabled { .. }));
            }
        }
        if !is_disabled {
            row.breaker = match gate.breaker() {
                Breaker::Closed { .. } => "closed",
                Breaker::Open { .. } => "open",
                Breaker::HalfOpen { .. } => "half-open",
            };
        }
        rows.push(row);
    }
    rows
}

fn told(transition: Transition, since: impl Fn(Timestamp) -> Millis) -> String {
    match transition {
        Transition::Opened { until, why } => {
            format!("{}: pauses until {}", cause(why), since(until))
        }
        Transition::Closed => "the probe succeeded: resumes".to_owned(),
        Transition::Disabled { why } => format!("{}: disabled, its owner is told", cause(why)),
    }
}

fn cause(why: Cause) -> String {
    match why {
        Cause::FailuresInARow { failures } => format!("{failures} failures in a row"),
        Cause::Window { failures, attempts } => {
            format!("{failures} of {attempts} in the window failed")
        }
        Cause::ProbeFailed => "the probe failed".to_owned(),
        Cause::FailingFor { span } => format!("nothing but failures for {span}"),
    }
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
