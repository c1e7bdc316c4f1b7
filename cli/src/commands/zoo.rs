//! `hookproof zoo`: hunts the known-bad variants, or explains one.

mod report;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use clap::Args as ClapArgs;
use hookproof_sim::zoo::Mutant;
use hookproof_sim::zoo::hunt::{Trophy, hunt};

use super::sim::replay;
use crate::args::Format;
use crate::failure::{EXIT_CODES, Ending, Failure};
use crate::output::Output;
use crate::output::progress::Progress;

/// What `hookproof zoo` takes.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// Explain this mutant: what it does wrong, and the smallest history that shows it
    #[arg(long, value_name = "ID")]
    only: Option<String>,

    /// Write that history to a file, for `hookproof sim --replay`
    #[arg(long, value_name = "FILE", requires = "only")]
    save: Option<PathBuf>,

    /// How often each mutant is hunted, each time with other seeds
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: u16,

    /// Threads; as many as there are cores unless given. The result is the same
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Hunts all mutants or one.
pub(crate) fn run(args: Args, output: &mut Output) -> Result<Ending, Failure> {
    let Args { only, save, runs, jobs, format } = args;
    let runs = u64::from(runs);
    let trophies = match &only {
        Some(id) => vec![hunt(named(id)?, runs)],
        None => hunt_all(runs, jobs),
    };
    if let (Some(path), [trophy]) = (save, trophies.as_slice()) {
        write_plan(&path, trophy)?;
    }
    match (format, only) {
        (Format::Json, _) => output.json(&report::document(runs, &trophies))?,
        (Format::Table, None) => report::print(&trophies, output)?,
        (Format::Table, Some(_)) => {
            for trophy in &trophies {
                report::explain(runs, trophy, output)?;
            }
        }
    }
    let is_right = trophies.iter().all(|trophy| trophy.is_expected);
    Ok(if is_right { Ending::AsItShould } else { Ending::Found })
}

fn named(id: &str) -> Result<Mutant, Failure> {
    Mutant::find(id).ok_or_else(|| {
        let ids: Vec<_> = Mutant::all().into_iter().map(Mutant::id).collect();
        Failure::unknown("mutant", id, &ids)
    })
}

fn write_plan(path: &Path, trophy: &Trophy) -> Result<(), Failure> {
    let Some(smallest) = &trophy.smallest else {
        return Err(Failure::usage(
            format!("{} is killed by no history that could be saved", trophy.mutant.id()),
            "leave out --save",
        ));
    };
    replay::write(path, &smallest.plan)
}

/// Each mutant on its own: the result does not depend on the number of threads.
fn hunt_all(runs: u64, jobs: Option<u16>) -> Vec<Trophy> {
    let mutants = Mutant::all();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = jobs.map_or(cores, usize::from);
    let count = u64::try_from(mutants.len()).unwrap_or(u64::MAX);
    let progress = Progress::new(count, "mutants");
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let trophies: Mutex<Vec<Option<Trophy>>> = Mutex::new(mutants.iter().map(|_| None).collect());
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(mutant) = mutants.get(index) else { break };
            let trophy = hunt(*mutant, runs);
            trophies.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(trophy);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            progress.show(u64::try_from(done).unwrap_or(u64::MAX), String::new());
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs.max(1) {
            scope.spawn(work);
        }
        work();
    });
    progress.clear();
    let trophies = trophies.into_inner().unwrap_or_else(PoisonError::into_inner);
    trophies.into_iter().flatten().collect()
}
