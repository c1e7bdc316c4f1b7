//! `hookproof sim --replay`: a recorded plan again, in several forms.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use clap::ValueEnum;
use hookproof_sim::history::History;
use hookproof_sim::plan::Plan;
use hookproof_sim::timeline;

use crate::args::Format;
use crate::failure::{Ending, Failure};
use crate::output::Output;
use crate::output::number::Counted;
use crate::output::table::Table;

/// How a history is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum Form {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
    /// A page with a picture of the timeline, for --replay
    Html,
    /// A regression test, for --replay
    Rust,
}

impl Form {
    /// The form of a suite or of a seed's history, which are told in two only.
    pub(crate) fn plain(self) -> Result<Format, Failure> {
        match self {
            Self::Table => Ok(Format::Table),
            Self::Json => Ok(Format::Json),
            Self::Html | Self::Rust => Err(Failure::usage(
                "--format html and rust tell a plan, and there is none",
                "give --replay FILE, or --format table or json",
            )),
        }
    }
}

/// Runs the plan in a file, and says whether it breaks what it is recorded to break.
pub(crate) fn run(path: &Path, form: Form, output: &mut Output) -> Result<Ending, Failure> {
    let plan = read(path)?;
    let history = plan.run(true);
    match form {
        Form::Table => print(path, &plan, &history, output)?,
        Form::Json => output.json(&timeline::document(&plan, &history))?,
        Form::Html => {
            let page = timeline::page(&plan, &history).map_err(|error| unwritten(&error))?;
            write!(output, "{page}")?;
        }
        Form::Rust => {
            let test = plan.to_rust().map_err(|error| unwritten(&error))?;
            write!(output, "{test}")?;
        }
    }
    Ok(if history.violation.is_some() { Ending::Found } else { Ending::AsItShould })
}

/// Saves a plan.
pub(crate) fn write(path: &Path, plan: &Plan) -> Result<(), Failure> {
    let text = plan.to_json().map_err(|error| unwritten(&error))?;
    fs::write(path, text).map_err(|error| {
        Failure::environment(
            format!("cannot write {}: {error}", path.display()),
            "give the path of a file that may be written",
        )
    })
}

/// The failure to write a plan.
fn unwritten(error: &serde_json::Error) -> Failure {
    Failure::environment(
        format!("cannot write the plan: {error}"),
        "its scenario holds a value that JSON has no form for",
    )
}

fn read(path: &Path) -> Result<Plan, Failure> {
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::usage(
            format!("cannot read the plan {}: {error}", path.display()),
            "give the path of a file that --save of `hookproof sim` or `hookproof zoo` wrote",
        )
    })?;
    Plan::from_json(&text)
        .map_err(|error| Failure::usage(format!("{}, {error}", path.display()), &error.help))
}

fn print(path: &Path, plan: &Plan, history: &History, output: &mut Output) -> Result<(), Failure> {
    let paint = output.paint;
    let mut head = Table::of_facts();
    let decisions = u64::try_from(plan.draws.len()).unwrap_or(u64::MAX);
    head.fact("plan", format!("{}, {}", path.display(), Counted(decisions, "decision")));
    head.fact("scenario", format!("{}: {}", plan.scenario.name, plan.scenario.about));
    if let Some(mutant) = plan.mutant {
        head.fact("mutant", mutant.to_string());
    }
    head.fact("recorded", format!("violates {}", plan.invariant));
    head.write(output, paint)?;
    let told = timeline::story(plan, history, &|tone, text| paint.tone(tone, text));
    write!(output, "\n{told}\nverdict: ")?;
    match &history.violation {
        None => writeln!(output, "{}", paint.good("every invariant holds; it is mended"))?,
        Some(found) if found.invariant == plan.invariant => {
            writeln!(output, "{} {}, as recorded", paint.bad("violated"), found.invariant)?;
        }
        Some(found) => writeln!(
            output,
            "{} {}, not {} as recorded",
            paint.bad("violated"),
            found.invariant,
            plan.invariant
        )?,
    }
    Ok(())
}
