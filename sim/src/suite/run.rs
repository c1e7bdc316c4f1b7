//! How a suite is run: independent pieces of work, on as many threads as wanted.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::gates::{self, Gate};
use super::sweep::Sweep;
use super::{Failure, MutantReport, Part, PartReport, Plan, Report, Sum, World};
use crate::checkers::Violation;
use crate::choices::Choices;
use crate::history::History;
use crate::model;
use crate::scenario::Scenario;
use crate::zoo::{HarnessMutant, Killer, Mutant};

/// Who is told how far it is, and asked whether to go on.
pub trait Progress: Sync {
    /// So many pieces of work of so many are done, from any thread.
    fn done(&self, done: usize, of: usize);

    /// Whether there is time left to begin another piece.
    fn goes_on(&self) -> bool {
        true
    }
}

impl<F: Fn(usize, usize) + Sync> Progress for F {
    fn done(&self, done: usize, of: usize) {
        self(done, of);
    }
}

/// How many seeds make one piece of work in the model world.
const PIECE: u64 = 50;

/// One piece of work; pieces are independent of each other.
pub(super) enum Piece {
    /// These seeds of a part, by its place.
    Histories { part: usize, from: u64, to: u64 },
    /// The crash sweep of one seed of a part.
    Sweep { part: usize, seed: u64 },
    /// A mutant, by its place.
    Mutant(usize),
}

/// What a piece of work leaves: no trace, or millions of histories would not fit into memory.
#[derive(Default)]
struct Found {
    sum: Sum,
    run_twice: u64,
    failures: Vec<Failure>,
    differences: Vec<String>,
    mutant: Option<MutantReport>,
}

/// Runs a suite.
#[must_use]
pub fn run(plan: &Plan, progress: &dyn Progress) -> Report {
    let pieces = pieces(plan);
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    let found: Mutex<Vec<Option<Found>>> = Mutex::new(pieces.iter().map(|_| None).collect());
    let work = || {
        while !is_over.load(Ordering::Relaxed) && progress.goes_on() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(index) else { return };
            let result = piece.run(plan);
            if plan.until_failure && !result.failures.is_empty() {
                is_over.store(true, Ordering::Relaxed);
            }
            found.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(result);
            progress.done(done.fetch_add(1, Ordering::Relaxed) + 1, pieces.len());
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..plan.jobs.max(1) {
            scope.spawn(work);
        }
        work();
    });
    report(plan, &pieces, found.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Mutants first: they take longest, and would otherwise keep one thread alone at the end.
pub(super) fn pieces(plan: &Plan) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = (0..plan.mutants.len()).map(Piece::Mutant).collect();
    let (shard, shards) = plan.shard;
    let mut number = 0;
    let mut is_mine = || {
        number += 1;
        (number - 1) % shards.max(1) == shard
    };
    pieces.retain(|_| is_mine());
    for (part, Part { world, seeds, sweeps, .. }) in plan.parts.iter().enumerate().rev() {
        let span = if *world == World::Model { PIECE } else { 1 };
        let mut from = seeds.start;
        while from < seeds.end {
            let to = (from + span).min(seeds.end);
            if is_mine() {
                pieces.push(Piece::Histories { part, from, to });
            }
            from = to;
        }
        for seed in seeds.clone().take(usize::try_from(*sweeps).unwrap_or(usize::MAX)) {
            if is_mine() {
                pieces.push(Piece::Sweep { part, seed });
            }
        }
    }
    pieces
}

impl Piece {
    fn run(&self, plan: &Plan) -> Found {
        let mut found = Found::default();
        match *self {
            Self::Histories { part, from, to } => {
                for seed in from..to {
                    found.history(plan, &plan.parts[part], seed);
                }
            }
            Self::Sweep { part, seed } => found.sweep(&plan.parts[part], seed),
            Self::Mutant(index) => {
                let (mutant, world) = plan.mutants[index];
                found.mutant = Some(judge(mutant, world, plan.mutant_seeds));
            }
        }
        found
    }
}

impl Found {
    fn history(&mut self, plan: &Plan, part: &Part, seed: u64) {
        let run = || part.world.run(&part.scenario, &Choices::seeded(seed), None);
        let run = || if plan.on_fresh_threads { on_a_fresh_thread(run) } else { run() };
        let history = run();
        if plan.twice_every > 0 && seed.is_multiple_of(plan.twice_every) {
            self.run_twice += 1;
            let again = run();
            if again.hash != history.hash {
                let first = first_difference(&history, &again);
                let Part { world, scenario, .. } = part;
                self.differences
                    .push(format!("seed {seed} of {} ({world}) differs in {first}", scenario.name));
            }
        }
        self.take(part, seed, None, &history);
    }

    /// Once without a crash, and once with a crash at each of the places that were passed.
    fn sweep(&mut self, part: &Part, seed: u64) {
        let (sweep, calm) = Sweep::new(part.world, &part.scenario, seed);
        self.take(part, seed, Some(0), &calm);
        for place in 1..=sweep.places() {
            if let Some(history) = sweep.run_at(place) {
                self.take(part, seed, Some(place), &history);
            }
        }
    }

    fn take(&mut self, part: &Part, seed: u64, crash_at: Option<u64>, history: &History) {
        self.sum.add(history);
        if let Some(violation) = &history.violation {
            self.failures.push(Failure {
                world: part.world,
                scenario: part.scenario.name.clone(),
                seed,
                crash_at,
                violation: violation.clone(),
            });
        }
    }
}

/// What runs here meets no state that another history left on its thread.
fn on_a_fresh_thread(run: impl FnOnce() -> History + Send) -> History {
    std::thread::scope(|scope| match scope.spawn(run).join() {
        Ok(history) => history,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Names the first draw, or the first line, in which two histories of one seed differ.
pub(super) fn first_difference(one: &History, other: &History) -> String {
    let same = one.draws.iter().zip(&other.draws).take_while(|(a, b)| a == b).count();
    let told = |history: &History| {
        let draw = history.draws.get(same)?;
        Some(format!("{} {} = {}", draw.key.who, draw.key.what, draw.value))
    };
    let (a, b) = (told(one), told(other));
    if a != b {
        let told = |draw: Option<String>| draw.unwrap_or_else(|| "none".to_owned());
        return format!("draw {}: {} or {}", same + 1, told(a), told(b));
    }
    let index = one.lines.iter().zip(&other.lines).take_while(|(a, b)| a == b).count();
    format!(
        "line {} of the trace: {:?} or {:?}",
        index + 1,
        one.lines.get(index).map(|line| &line.text),
        other.lines.get(index).map(|line| &line.text),
    )
}

/// Runs a mutant until it is killed or has survived all its seeds.
fn judge(mutant: Mutant, world: World, seeds: u64) -> MutantReport {
    let scenario = mutant.ground(world);
    if matches!(mutant, Mutant::Harness(_) | Mutant::Idle(_)) {
        return judge_harness(mutant, world, &scenario, seeds);
    }
    for seed in 0..seeds {
        let history = world.run(&scenario, &Choices::seeded(seed), Some(mutant));
        if let Some(Violation { invariant, .. }) = history.violation {
            let is_expected = match mutant.killer() {
                Killer::Invariants(expected) => expected.contains(&invariant),
                Killer::Gate(_) => false,
            };
            let killed_by = Some(invariant.to_string());
            return MutantReport { mutant, world, killed_by, is_expected, seeds: seed + 1 };
        }
    }
    MutantReport { mutant, world, killed_by: None, is_expected: false, seeds }
}

/// Runs as many histories of a wrong harness, and looks which gate they do not pass.
fn judge_harness(mutant: Mutant, world: World, scenario: &Scenario, seeds: u64) -> MutantReport {
    let is = |harness| mutant == Mutant::Harness(harness);
    let mut sum = Sum::default();
    let mut differs = false;
    for seed in 0..seeds {
        let run = || world.run(scenario, &Choices::seeded(seed), Some(mutant));
        let history = run();
        differs |= is(HarnessMutant::ForgetsDraws) && run().hash != history.hash;
        sum.add(&history);
    }
    let faults = match mutant {
        Mutant::Idle(fault) => [fault].into(),
        _ => scenario.faults.iter().copied().collect(),
    };
    let mut failed: Vec<Gate> = gates::faults_fired(&sum, &faults, world, false)
        .into_iter()
        .chain(gates::checkers_looked(&sum, world, false))
        .map(|failure| failure.gate)
        .collect();
    if differs {
        failed.push(Gate::Deterministic);
    }
    if is(HarnessMutant::AtLeast) && lets_a_mutant_live(HarnessMutant::AtLeast, world, seeds) {
        failed.push(Gate::ZooKilled);
    }
    let expected = |gate: &Gate| matches!(mutant.killer(), Killer::Gate(wanted) if wanted == *gate);
    let killed_by = failed.into_iter().find(expected);
    MutantReport {
        mutant,
        world,
        killed_by: killed_by.map(|gate| format!("gate: {gate}")),
        is_expected: killed_by.is_some(),
        seeds,
    }
}

/// Whether, under this harness, a receiver survives that only the checker of exactly once finds.
fn lets_a_mutant_live(harness: HarnessMutant, world: World, seeds: u64) -> bool {
    use crate::zoo::ReceiverMutant::CheckThenInsert;
    let scenario = Mutant::Receiver(CheckThenInsert).ground(world);
    (0..seeds).all(|seed| {
        let run = model::run_under(&scenario, &Choices::seeded(seed), CheckThenInsert, harness);
        run.violation.is_none()
    })
}

fn report(plan: &Plan, pieces: &[Piece], found: Vec<Option<Found>>) -> Report {
    let has_zoo = super::zoo().iter().all(|mutant| plan.mutants.contains(mutant));
    let mut report = Report {
        is_whole: plan.demands_coverage && has_zoo && plan.shard.1 <= 1,
        is_cut_short: found.iter().any(Option::is_none),
        parts: plan
            .parts
            .iter()
            .map(|Part { world, scenario, .. }| PartReport {
                world: *world,
                scenario: scenario.clone(),
                sum: Sum::default(),
            })
            .collect(),
        ..Report::default()
    };
    let mut by_part: Vec<(usize, Found)> = Vec::new();
    for (piece, found) in pieces.iter().zip(found) {
        let Some(found) = found else { continue };
        match piece {
            Piece::Mutant(_) => report.mutants.extend(found.mutant),
            Piece::Histories { part, .. } | Piece::Sweep { part, .. } => {
                by_part.push((*part, found));
            }
        }
    }
    // In the order of the plan, whatever the order of the work.
    by_part.sort_by_key(|(part, _)| *part);
    for (part, found) in by_part {
        report.parts[part].sum.merge(&found.sum);
        report.run_twice += found.run_twice;
        report.failures.extend(found.failures);
        report.differences.extend(found.differences);
    }
    let demands = plan.demands_coverage && plan.shard.1 <= 1 && !report.is_cut_short;
    report.gates = gates::gates(&report, demands);
    report
}
