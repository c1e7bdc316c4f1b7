//! `hookproof sim merge`: the reports of all shards as one.

use std::fs;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use hookproof_sim::suite::Plan;
use hookproof_sim::suite::document::{self, Document};

use super::{ending, report};
use crate::args::Format;
use crate::failure::{Ending, Failure};
use crate::output::Output;

/// What `hookproof sim merge` takes.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// What `hookproof sim --shard I/N --format json` printed, one file for each shard
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Also print every state that was reached, and every mutant
    #[arg(long)]
    full: bool,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &Args, output: &mut Output) -> Result<Ending, Failure> {
    let documents: Vec<Document> = args.files.iter().map(read).collect::<Result<_, _>>()?;
    let whole = document::merge(&documents).map_err(|problem| {
        Failure::usage(
            problem,
            "give the reports of all shards of one suite, run with the same arguments",
        )
    })?;
    match args.format {
        Format::Table => report::print(&whole, None, args.full, output)?,
        Format::Json => {
            let demands_coverage = documents.iter().all(|document| document.demands_coverage);
            let plan = Plan { demands_coverage, ..Plan::of(Vec::new(), 1) };
            output.json(&Document::new(&plan, &whole))?;
        }
    }
    Ok(ending(&whole))
}

fn read(path: &PathBuf) -> Result<Document, Failure> {
    let help = "give what `hookproof sim --format json` printed";
    let wrong = |what: &dyn std::fmt::Display| {
        Failure::usage(format_args!("{}: {what}", path.display()), help)
    };
    let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
    serde_json::from_str(&text).map_err(|error| wrong(&error))
}
