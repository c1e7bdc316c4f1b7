//! `hookproof sim`: run many histories and the zoo, one history again, or all of a small world.

mod exhaustive;
mod history;
mod junit;
mod merge;
pub(crate) mod replay;
mod report;
mod scenarios;
mod smallest;

use std::ops::Range;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use hookproof_sim::choices::Choices;
use hookproof_sim::scenario::Scenario;
use hookproof_sim::suite::document::Document;
use hookproof_sim::suite::{self, Part, Plan, Progress, Report, Sweep, Verdict, World};

use crate::args::Format;
use crate::failure::{EXIT_CODES, Ending, Failure};
use crate::output::number::{Counted, Grouped};
use crate::output::progress::Progress as Bar;
use crate::output::{Output, say};

/// The most histories of one suite.
const SEEDS_MAX: u64 = 1_000_000_000;
/// How many histories are run of a scenario if nothing is said.
const SEEDS_DEFAULT: Range<u64> = 0..500;
/// How many are swept.
const SEEDS_SWEPT: Range<u64> = 0..3;

/// What `hookproof sim` takes.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXIT_CODES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// Run this one history and print what happens in it; the same seed is the same history
    #[arg(long, value_name = "N", conflicts_with_all = [
        "seeds", "jobs", "no_zoo", "shard", "budget", "until_failure", "check_determinism", "junit",
        "full", "save",
    ])]
    seed: Option<u64>,

    /// Also print every step that a host takes
    #[arg(long, requires = "seed")]
    trace: bool,

    /// Run the history in this file again, and say whether it still breaks what it is recorded for
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "seed", "seeds", "jobs", "no_zoo", "world", "scenario", "scenario_file", "shard", "budget",
            "until_failure", "check_determinism", "junit", "full", "exhaustive", "save",
        ]
    )]
    replay: Option<PathBuf>,

    /// Where: over modelled stores and network, or with the real programs on a simulated network.
    /// One history is on the wire, a suite in both, unless given
    #[arg(long, value_name = "WORLD")]
    world: Option<WorldArg>,

    /// Run this kind of history: a name from --list, or all
    #[arg(long, value_name = "NAME", conflicts_with = "scenario_file")]
    scenario: Option<String>,

    /// Run the kind of history that this TOML file describes
    #[arg(long, value_name = "FILE")]
    scenario_file: Option<PathBuf>,

    /// List the kinds of history
    #[arg(long, conflicts_with_all = [
        "seed", "seeds", "sweep", "jobs", "no_zoo", "world", "scenario", "scenario_file", "shard",
        "budget", "until_failure", "check_determinism", "junit", "full", "exhaustive", "save", "replay",
    ])]
    list: bool,

    /// Run these histories, the end excluded
    #[arg(long, value_name = "A..B", value_parser = seeds)]
    seeds: Option<Range<u64>>,

    /// Run each history once without a crash and then once with a crash at each place where a host can
    /// end; 3 seeds unless given
    #[arg(long, conflicts_with_all = ["check_determinism", "seed"])]
    sweep: bool,

    /// In the history of --seed, end a host at the place of this number and nowhere else, as --sweep does
    #[arg(long, value_name = "K", requires = "seed")]
    crash_at: Option<u64>,

    /// Run each history twice on fresh threads, and name the first difference
    #[arg(long)]
    check_determinism: bool,

    /// Threads; as many as there are cores unless given. The result is the same
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,

    /// Run the part I of N of the suite; `sim merge` puts the reports together
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<(u64, u64)>,

    /// Begin nothing new after so long, as in 10m
    #[arg(long, value_name = "SPAN")]
    budget: Option<Millis>,

    /// Stop at the first history in which an invariant does not hold
    #[arg(long)]
    until_failure: bool,

    /// Leave out the known-bad variants that the suite must find
    #[arg(long)]
    no_zoo: bool,

    /// Also print every state that was reached, and every mutant
    #[arg(long)]
    full: bool,

    /// Save the first failing history, made small, for --replay
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,

    /// Also write the report as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Go through every history of a small world instead: one-crash, two-crashes, two-events, or all
    /// three
    #[arg(
        long,
        value_name = "NAME",
        value_parser = exhaustive::chosen,
        conflicts_with_all = [
            "seed", "seeds", "no_zoo", "world", "scenario", "scenario_file", "shard", "budget",
            "until_failure", "check_determinism", "junit", "full", "save",
        ]
    )]
    exhaustive: Option<exhaustive::Chosen>,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: replay::Form,
}

/// What else `hookproof sim` does.
#[derive(Subcommand, Debug)]
enum Command {
    /// Put the JSON reports of all shards of one suite together
    Merge(merge::Args),
}

/// A world as it is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum WorldArg {
    /// The machines over modelled stores and a modelled network
    Model,
    /// The real sender and receiver on a simulated network
    Wire,
}

impl From<WorldArg> for World {
    fn from(world: WorldArg) -> Self {
        match world {
            WorldArg::Model => Self::Model,
            WorldArg::Wire => Self::Wire,
        }
    }
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

/// Reads which shard of how many, from 1.
fn shard(text: &str) -> Result<(u64, u64), String> {
    let wrong = || "write which part of how many, as in 1/4".to_owned();
    let (which, of) = text.split_once('/').ok_or_else(wrong)?;
    match (which.parse::<u64>(), of.parse::<u64>()) {
        (Ok(which), Ok(of)) if 1 <= which && which <= of && of <= 10_000 => Ok((which - 1, of)),
        _ => Err(wrong()),
    }
}

/// Runs a suite or one history.
pub(crate) fn run(args: Args, output: &mut Output) -> Result<Ending, Failure> {
    if let Some(path) = &args.replay {
        return replay::run(path, args.format, output);
    }
    if let Some(Command::Merge(args)) = args.command {
        return merge::run(&args, output);
    }
    if args.list {
        return scenarios::list(args.format.plain()?, output);
    }
    if let Some(chosen) = &args.exhaustive {
        return exhaustive::run(chosen, args.jobs, args.format.plain()?, output);
    }
    match args.seed {
        Some(seed) => one(seed, &args, output),
        None => many(&args, output),
    }
}

fn one(seed: u64, args: &Args, output: &mut Output) -> Result<Ending, Failure> {
    let format = args.format.plain()?;
    let scenario = match scenarios::chosen(args.scenario.as_deref(), args.scenario_file.as_deref())?
    {
        scenarios::Chosen::One(scenario) => *scenario,
        scenarios::Chosen::All => {
            return Err(Failure::usage(
                "one history is of one kind",
                "name a scenario; `hookproof sim --list` lists them",
            ));
        }
    };
    let fit = if scenario.is_for_wire() { World::Wire } else { World::Model };
    let world = args.world.map_or(fit, World::from);
    check_fit(&scenario, world)?;
    let scenario = in_world(scenario, world);
    let (scenario, choices) = match args.crash_at {
        None => (scenario, Choices::seeded(seed)),
        Some(place) => with_crash(world, &scenario, seed, place)?,
    };
    let found = world.trace(&scenario, &choices, None);
    match format {
        Format::Table => history::print(seed, &scenario, &found, args.trace, output)?,
        Format::Json => output.json(&history::document(seed, &scenario, &found))?,
    }
    Ok(if found.violation.is_none() { Ending::AsItShould } else { Ending::Found })
}

/// What decides a history of a sweep.
fn with_crash(
    world: World,
    scenario: &Scenario,
    seed: u64,
    place: u64,
) -> Result<(Scenario, Choices), Failure> {
    let (sweep, _) = Sweep::new(world, scenario, seed);
    let choices = sweep.choices_at(place).ok_or_else(|| {
        Failure::usage(
            format!("no host can end at place {place}: the history passes {}", sweep.places()),
            "give a lower number; 0 is the history without a crash",
        )
    })?;
    Ok((sweep.scenario().clone(), choices))
}

/// In the wire world, a history of days takes minutes or hours.
fn check_fit(scenario: &Scenario, world: World) -> Result<(), Failure> {
    if world == World::Model || scenario.is_for_wire() {
        return Ok(());
    }
    Err(Failure::usage(
        format!("a history of `{}` lasts too long for the wire world", scenario.name),
        "give --world model, or a scenario whose safety phase and schedules are shorter, or a longer tick",
    ))
}

/// The wire world has one process on each side.
fn in_world(scenario: Scenario, world: World) -> Scenario {
    match world {
        World::Model => scenario,
        World::Wire => scenario.on_wire(),
    }
}

fn plan(args: &Args) -> Result<Plan, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or(cores, usize::from);
    let says_which = args.seeds.is_some()
        || args.world.is_some()
        || args.scenario.is_some()
        || args.scenario_file.is_some()
        || args.sweep;
    let mut plan = if says_which { chosen_plan(args, jobs)? } else { Plan::whole(jobs) };
    if args.no_zoo {
        plan.mutants.clear();
    }
    if args.check_determinism {
        plan.twice_every = 1;
        plan.on_fresh_threads = true;
    }
    plan.shard = args.shard.unwrap_or((0, 1));
    plan.until_failure = args.until_failure;
    Ok(plan)
}

fn chosen_plan(args: &Args, jobs: usize) -> Result<Plan, Failure> {
    let default = if args.sweep { SEEDS_SWEPT } else { SEEDS_DEFAULT };
    let seeds = args.seeds.clone().unwrap_or(default);
    let worlds = match args.world {
        Some(world) => vec![World::from(world)],
        None => World::ALL.to_vec(),
    };
    let scenarios =
        match scenarios::chosen(args.scenario.as_deref(), args.scenario_file.as_deref())? {
            scenarios::Chosen::One(scenario) => vec![*scenario],
            scenarios::Chosen::All => hookproof_sim::scenario::shipped::all(),
        };
    if let ([World::Wire], [scenario]) = (&worlds[..], &scenarios[..]) {
        check_fit(scenario, World::Wire)?;
    }
    let is_fit =
        |world: World, scenario: &Scenario| world == World::Model || scenario.is_for_wire();
    let parts = worlds.iter().flat_map(|world| {
        let fit = scenarios.iter().filter(|scenario| is_fit(*world, scenario));
        fit.map(|scenario| Part {
            world: *world,
            scenario: in_world(scenario.clone(), *world),
            seeds: seeds.clone(),
            sweeps: if args.sweep { seeds.end - seeds.start } else { 0 },
        })
    });
    Ok(Plan::of(parts.collect(), jobs))
}

/// Shows how far a suite is, and ends it when its time is over.
struct Watched {
    bar: Bar,
    until: Option<Timestamp>,
}

impl Progress for Watched {
    fn done(&self, done: usize, _of: usize) {
        self.bar.show(u64::try_from(done).unwrap_or(u64::MAX), String::new());
    }

    fn goes_on(&self) -> bool {
        self.until.is_none_or(|until| TokioHost.now() < until)
    }
}

fn many(args: &Args, output: &mut Output) -> Result<Ending, Failure> {
    let format = args.format.plain()?;
    let plan = plan(args)?;
    let began = TokioHost.now();
    let watched = Watched {
        bar: Bar::new(u64::try_from(plan.pieces()).unwrap_or(u64::MAX), "pieces of work"),
        until: args.budget.map(|budget| began.plus(budget)),
    };
    let found = suite::run(&plan, &watched);
    watched.bar.clear();
    let took = TokioHost.now().since(began);
    let mutants = u64::try_from(found.mutants.len()).unwrap_or(u64::MAX);
    say(format_args!(
        "histories: {}, {}, in {took}",
        Grouped(found.sum().histories),
        Counted(mutants, "mutant")
    ));
    if let Some(path) = &args.junit {
        junit::write(path, &found, args.scenario_file.as_deref())?;
    }
    smallest::tell(&plan, &found, args.save.as_deref(), format, output)?;
    match format {
        Format::Table => report::print(&found, args.scenario_file.as_deref(), args.full, output)?,
        Format::Json => output.json(&Document::new(&plan, &found))?,
    }
    Ok(ending(&found))
}

fn ending(report: &Report) -> Ending {
    match report.verdict() {
        Verdict::Proved { .. } | Verdict::Held { .. } => Ending::AsItShould,
        Verdict::Violated | Verdict::Invalid => Ending::Found,
    }
}

#[cfg(test)]
mod tests {
    use super::{seeds, shard};

    #[test]
    fn a_range_of_seeds_has_two_ends_in_order() {
        assert_eq!(seeds("0..300"), Ok(0..300));
        assert_eq!(seeds("7..8"), Ok(7..8));
        for wrong in ["", "7", "8..7", "7..7", "a..b", "-1..5", "0..=5", "0..1000000001"] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_shard_is_one_of_so_many() {
        assert_eq!(shard("1/4"), Ok((0, 4)));
        assert_eq!(shard("4/4"), Ok((3, 4)));
        for wrong in ["", "0/4", "5/4", "1", "a/b", "1/0", "1/10001"] {
            assert!(shard(wrong).is_err(), "{wrong}");
        }
    }
}
