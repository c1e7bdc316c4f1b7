//! `hookproof sim`: run many histories and the zoo, one history again, or all of a small world.

mod exhaustive;
mod history;
mod report;

use std::ops::Range;

use clap::Args as ClapArgs;
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use hookproof_sim::choices::Choices;
use hookproof_sim::scenario::Scenario;
use hookproof_sim::suite::{self, Plan, Verdict};
use hookproof_sim::wire;
use hookproof_sim::zoo::Mutant;

use crate::args::Format;
use crate::failure::{EXIT_CODES, Ending, Failure};
use crate::output::number::Counted;
use crate::output::progress::Progress;
use crate::output::{Output, say};

/// The default suite: well within a minute on two cores.
const SEEDS_DEFAULT: Range<u64> = 0..500;
/// From so many histories on, every fault and crash point must have been reached.
const COVERAGE_FROM: u64 = 200;
/// One history in so many is run twice.
const TWICE_EVERY: u64 = 10;
/// How many seeds a mutant may survive.
const MUTANT_SEEDS: u64 = 60;
/// The most histories of one suite.
const SEEDS_MAX: u64 = 10_000_000;

/// What `hookproof sim` takes.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// Run this one history and print what happens in it; the same seed is the same history
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "jobs", "no_zoo"])]
    seed: Option<u64>,

    /// Also print every step that a host takes
    #[arg(long, requires = "seed")]
    trace: bool,

    /// Run these histories, the end excluded
    #[arg(long, value_name = "A..B", value_parser = seeds)]
    seeds: Option<Range<u64>>,

    /// Threads; as many as there are cores unless given. The result is the same
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,

    /// Leave out the known-bad variants that the suite must find
    #[arg(long)]
    no_zoo: bool,

    /// Go through every history of a small world instead: one-crash, two-crashes, two-events, or all
    /// three
    #[arg(
        long,
        value_name = "NAME",
        value_parser = exhaustive::chosen,
        conflicts_with_all = ["seed", "seeds", "no_zoo"]
    )]
    exhaustive: Option<exhaustive::Chosen>,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Reads a range of seeds.
fn seeds(text: &str) -> Result<Range<u64>, String> {
    let wrong = || {
        format!(
            "write two numbers, the first the smaller, as in 0..1000; at most {SEEDS_MAX} seeds"
        )
    };
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let (from, to): (u64, u64) = match (from.parse(), to.parse()) {
        (Ok(from), Ok(to)) => (from, to),
        _ => return Err(wrong()),
    };
    if from < to && to - from <= SEEDS_MAX { Ok(from..to) } else { Err(wrong()) }
}

/// Runs a suite or one history.
pub(crate) fn run(args: Args, output: &mut Output) -> Result<Ending, Failure> {
    if let Some(chosen) = &args.exhaustive {
        return exhaustive::run(chosen, args.jobs, args.format, output);
    }
    match args.seed {
        Some(seed) => one(seed, &args, output),
        None => many(args, output),
    }
}

fn one(seed: u64, args: &Args, output: &mut Output) -> Result<Ending, Failure> {
    let scenario = Scenario::mixed().on_wire();
    let found = wire::run(&scenario, &Choices::seeded(seed), None);
    match args.format {
        Format::Table => history::print(seed, &scenario, &found, args.trace, output)?,
        Format::Json => output.json(&history::document(seed, &scenario, &found))?,
    }
    Ok(if found.violation.is_none() { Ending::AsItShould } else { Ending::Found })
}

fn many(args: Args, output: &mut Output) -> Result<Ending, Failure> {
    let seeds = args.seeds.unwrap_or(SEEDS_DEFAULT);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let plan = Plan {
        scenario: Scenario::mixed().on_wire(),
        demands_coverage: seeds.end - seeds.start >= COVERAGE_FROM,
        seeds,
        twice_every: TWICE_EVERY,
        mutants: if args.no_zoo { Vec::new() } else { Mutant::on_wire() },
        mutant_seeds: MUTANT_SEEDS,
        jobs: args.jobs.map_or(cores, usize::from),
    };
    let began = TokioHost.now();
    let histories = plan.seeds.end - plan.seeds.start;
    let mutants = u64::try_from(plan.mutants.len()).unwrap_or(u64::MAX);
    let progress = Progress::new(histories.saturating_add(mutants), "histories and mutants");
    let found = suite::run(&plan, &|done, _| {
        progress.show(u64::try_from(done).unwrap_or(u64::MAX), String::new());
    });
    progress.clear();
    let took = TokioHost.now().since(began);
    say(format_args!(
        "{} and {} in {took}",
        Counted(histories, "seed"),
        Counted(mutants, "mutant")
    ));
    match args.format {
        Format::Table => report::print(&plan, &found, output)?,
        Format::Json => output.json(&report::document(&plan, &found))?,
    }
    Ok(match found.verdict() {
        Verdict::Proved { .. } | Verdict::Held { .. } => Ending::AsItShould,
        Verdict::Violated | Verdict::Invalid => Ending::Found,
    })
}

#[cfg(test)]
mod tests {
    use super::seeds;

    #[test]
    fn a_range_of_seeds_has_two_ends_in_order() {
        assert_eq!(seeds("0..300"), Ok(0..300));
        assert_eq!(seeds("7..8"), Ok(7..8));
        for wrong in ["", "7", "8..7", "7..7", "a..b", "-1..5", "0..=5", "0..10000001"] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }
}
