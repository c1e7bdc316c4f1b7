//! Many histories, the zoo, and a verdict.
//!
//! Nothing is shared between seeds, so the same suite gives the same report whatever the number of
//! threads and their order.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use hookproof_core::time::Millis;
use hookproof_runtime::crash_point::CrashPoint;

use crate::checkers::{Invariant, Violation};
use crate::choices::Choices;
use crate::fault::Fault;
use crate::history::{History, Totals};
use crate::journal::Counts;
use crate::scenario::Scenario;
use crate::wire;
use crate::zoo::{Killer, Mutant};

/// What must hold of a suite for its verdict to mean anything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Gate {
    /// Each fault that was decided often enough was seen to have an effect.
    FaultFired,
    /// Each checker looked at something.
    CheckerLooked,
    /// Each fault fired and a host crashed at each crash point.
    Coverage,
    /// A history that is run twice is the same history.
    Deterministic,
    /// Each mutant was killed by what must kill it.
    ZooKilled,
}

impl Gate {
    /// What it demands, in a few words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FaultFired => "each fault has an effect",
            Self::CheckerLooked => "each checker sees something",
            Self::Coverage => "each fault and crash point is reached",
            Self::Deterministic => "each history can be replayed",
            Self::ZooKilled => "each mutant is killed",
        }
    }
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The kind of history.
    pub scenario: Scenario,
    /// One history per seed.
    pub seeds: Range<u64>,
    /// One history in so many is run twice and compared; 0 for none.
    pub twice_every: u64,
    /// The mutants to kill.
    pub mutants: Vec<Mutant>,
    /// How many seeds a mutant may survive, and how many histories a wrong harness is judged by.
    pub mutant_seeds: u64,
    /// Whether every fault and crash point must be reached: too much to ask of a few histories.
    pub demands_coverage: bool,
    /// How many threads.
    pub jobs: usize,
}

/// A history in which an invariant does not hold.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// What does not hold.
    pub violation: Violation,
}

/// What became of a mutant.
#[derive(Clone, Debug)]
pub struct MutantReport {
    /// Which.
    pub mutant: Mutant,
    /// By what it was killed, in words; `None` if it survived.
    pub killed_by: Option<String>,
    /// Whether that is what must kill it.
    pub is_expected: bool,
    /// How many seeds it took.
    pub seeds: u64,
}

/// A gate that is not passed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GateFailure {
    /// Which.
    pub gate: Gate,
    /// What is missing.
    pub what: String,
}

/// The sum of many histories.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    /// How many.
    pub histories: u64,
    /// How much simulated time.
    pub simulated: Millis,
    /// How often what happened.
    pub counts: Counts,
    /// How much each checker looked at.
    pub looks: BTreeMap<Invariant, u64>,
    /// What came of them.
    pub totals: Totals,
}

/// What a suite found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The sum of the histories of the real code.
    pub sum: Sum,
    /// How many of them were run twice.
    pub run_twice: u64,
    /// Those in which an invariant does not hold.
    pub failures: Vec<Failure>,
    /// The mutants.
    pub mutants: Vec<MutantReport>,
    /// The gates that are not passed.
    pub gates: Vec<GateFailure>,
    /// Whether the suite had to reach everything and to find every known-bad variant.
    pub is_whole: bool,
}

/// The verdict on a suite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every invariant holds in every history, and the suite can tell.
    Proved {
        /// In how many histories.
        histories: u64,
    },
    /// Every invariant holds in every history, but the suite was not asked to show that it could
    /// tell: the zoo was left out, or there were too few histories to reach everything.
    Held {
        /// In how many histories.
        histories: u64,
    },
    /// An invariant does not hold in some history.
    Violated,
    /// The suite cannot tell: a gate is not passed.
    Invalid,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proved { histories } => write!(f, "proved for {histories} histories"),
            Self::Held { histories } => {
                write!(f, "no violation in {histories} histories; a proof takes the whole suite")
            }
            Self::Violated => f.write_str("violated"),
            Self::Invalid => f.write_str("invalid: the suite cannot tell"),
        }
    }
}

impl Report {
    /// The verdict.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if !self.failures.is_empty() {
            Verdict::Violated
        } else if !self.gates.is_empty() {
            Verdict::Invalid
        } else if self.is_whole {
            Verdict::Proved { histories: self.sum.histories }
        } else {
            Verdict::Held { histories: self.sum.histories }
        }
    }
}

impl Sum {
    pub(crate) fn add(&mut self, history: &History) {
        self.merge(&Self {
            histories: 1,
            simulated: history.simulated,
            counts: history.counts.clone(),
            looks: history.looks.clone(),
            totals: history.totals,
        });
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.histories += other.histories;
        self.simulated = self.simulated.plus(other.simulated);
        add_counts(&mut self.counts.chosen, &other.counts.chosen);
        add_counts(&mut self.counts.fired, &other.counts.fired);
        add_counts(&mut self.counts.passed, &other.counts.passed);
        add_counts(&mut self.counts.crashed_at, &other.counts.crashed_at);
        add_counts(&mut self.looks, &other.looks);
        add_counts(&mut self.counts.sometimes, &other.counts.sometimes);
        self.totals.add(&other.totals);
    }
}

fn add_counts<K: Ord + Copy>(sum: &mut BTreeMap<K, u64>, counts: &BTreeMap<K, u64>) {
    for (key, count) in counts {
        *sum.entry(*key).or_insert(0) += count;
    }
}

/// One piece of work; pieces are independent of each other.
enum Piece {
    History { seed: u64, is_twice: bool },
    Mutant(Mutant),
}

/// What a piece of work leaves: no trace, or millions of histories would not fit into memory.
enum Found {
    History { seed: u64, sum: Box<Sum>, violation: Option<Violation>, differs: Option<String> },
    Mutant(MutantReport),
}

/// Runs a suite. `progress` is called after each piece of work with how many are done and how many
/// there are, from any thread.
#[must_use]
pub fn run(plan: &Plan, progress: &(dyn Fn(usize, usize) + Sync)) -> Report {
    let pieces = pieces(plan);
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let found: Mutex<Vec<Option<Found>>> = Mutex::new(pieces.iter().map(|_| None).collect());
    let work = || {
        while let Some((index, piece)) = take(&pieces, &next) {
            let result = piece.run(plan);
            found.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(result);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, pieces.len());
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..plan.jobs.max(1) {
            scope.spawn(work);
        }
        work();
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    report(plan, found.into_iter().flatten())
}

fn take<'a>(pieces: &'a [Piece], next: &AtomicUsize) -> Option<(usize, &'a Piece)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    pieces.get(index).map(|piece| (index, piece))
}

/// Mutants first: they take longest, and would otherwise keep one thread alone at the end.
fn pieces(plan: &Plan) -> Vec<Piece> {
    let mutants = plan.mutants.iter().map(|mutant| Piece::Mutant(*mutant));
    let histories = plan.seeds.clone().map(|seed| Piece::History {
        seed,
        is_twice: plan.twice_every > 0 && seed % plan.twice_every == 0,
    });
    mutants.chain(histories).collect()
}

impl Piece {
    fn run(&self, plan: &Plan) -> Found {
        match *self {
            Self::History { seed, is_twice } => {
                let history = wire::run(&plan.scenario, &Choices::seeded(seed), None);
                let differs = is_twice
                    .then(|| wire::run(&plan.scenario, &Choices::seeded(seed), None))
                    .filter(|again| again.hash != history.hash)
                    .map(|again| first_difference(&history, &again));
                let mut sum = Box::<Sum>::default();
                sum.add(&history);
                Found::History { seed, sum, violation: history.violation, differs }
            }
            Self::Mutant(mutant) => Found::Mutant(judge(plan, mutant)),
        }
    }
}

fn first_difference(one: &History, other: &History) -> String {
    let index = one.lines.iter().zip(&other.lines).take_while(|(a, b)| a == b).count();
    format!(
        "line {} of the trace: {:?} or {:?}",
        index + 1,
        one.lines.get(index).map(|line| &line.text),
        other.lines.get(index).map(|line| &line.text),
    )
}

/// Runs a mutant until it is killed or has survived all its seeds.
fn judge(plan: &Plan, mutant: Mutant) -> MutantReport {
    let mut sum = Sum::default();
    for seed in 0..plan.mutant_seeds {
        let history = wire::run(&plan.scenario, &Choices::seeded(seed), Some(mutant));
        sum.add(&history);
        if let Some(violation) = history.violation {
            let is_expected = match mutant.killer() {
                Killer::Invariants(expected) => expected.contains(&violation.invariant),
                Killer::Gate(_) => false,
            };
            let killed_by = Some(violation.invariant.to_string());
            return MutantReport { mutant, killed_by, is_expected, seeds: seed + 1 };
        }
    }
    let failed = gates(&sum, &plan.scenario, false);
    let killed_by = failed
        .iter()
        .map(|failure| failure.gate)
        .find(|gate| matches!(mutant.killer(), Killer::Gate(expected) if expected == *gate));
    MutantReport {
        mutant,
        killed_by: killed_by.map(|gate| format!("gate: {}", gate.as_str())),
        is_expected: killed_by.is_some(),
        seeds: plan.mutant_seeds,
    }
}

fn report(plan: &Plan, found: impl Iterator<Item = Found>) -> Report {
    let has_zoo = Mutant::on_wire().iter().all(|mutant| plan.mutants.contains(mutant));
    let mut report = Report { is_whole: plan.demands_coverage && has_zoo, ..Report::default() };
    for found in found {
        match found {
            Found::Mutant(mutant) => report.mutants.push(mutant),
            Found::History { seed, sum, violation, differs } => {
                report.sum.merge(&sum);
                report.run_twice +=
                    u64::from(plan.twice_every > 0 && seed.is_multiple_of(plan.twice_every));
                if let Some(violation) = violation {
                    report.failures.push(Failure { seed, violation });
                }
                if let Some(difference) = differs {
                    let what = format!("seed {seed} differs in {difference}");
                    report.gates.push(GateFailure { gate: Gate::Deterministic, what });
                }
            }
        }
    }
    report.gates.extend(gates(&report.sum, &plan.scenario, plan.demands_coverage));
    for mutant in report.mutants.iter().filter(|mutant| !mutant.is_expected) {
        let what = match &mutant.killed_by {
            None => format!("{} survived {} seeds", mutant.mutant, mutant.seeds),
            Some(other) => format!("{} was killed by {other}", mutant.mutant),
        };
        report.gates.push(GateFailure { gate: Gate::ZooKilled, what });
    }
    report
}

/// How often a fault must have been decided before it must also have had an effect.
const CHOSEN_ENOUGH: u64 = 10;

fn gates(sum: &Sum, scenario: &Scenario, demands_coverage: bool) -> Vec<GateFailure> {
    let mut failures = Vec::new();
    let mut fail = |gate, what: String| failures.push(GateFailure { gate, what });
    for fault in &scenario.faults {
        let count = |counts: &BTreeMap<Fault, u64>| counts.get(fault).copied().unwrap_or(0);
        let (chosen, fired) = (count(&sum.counts.chosen), count(&sum.counts.fired));
        if fired == 0 && chosen >= CHOSEN_ENOUGH {
            fail(Gate::FaultFired, format!("{fault} was decided {chosen} times, to no effect"));
        } else if fired == 0 && demands_coverage {
            fail(Gate::Coverage, format!("{fault} never happened"));
        }
    }
    for invariant in CHECKED {
        if sum.looks.get(invariant).copied().unwrap_or(0) == 0 {
            fail(Gate::CheckerLooked, format!("the checker of {invariant} saw nothing"));
        }
    }
    if demands_coverage {
        for point in CrashPoint::ALL {
            if sum.counts.crashed_at.get(point).copied().unwrap_or(0) == 0 {
                fail(Gate::Coverage, format!("no host crashed at {point}"));
            }
        }
    }
    failures
}

/// The invariants whose checkers count what they look at.
const CHECKED: &[Invariant] = &[
    Invariant::NoLoss,
    Invariant::NoInvention,
    Invariant::ExactlyOnce,
    Invariant::DoneMeansDone,
    Invariant::Terminal,
    Invariant::WriteAhead,
    Invariant::Identity,
    Invariant::Durable,
];
