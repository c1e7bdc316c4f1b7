//! Exhaustive search: every history of a small world, one after the other.
//!
//! Random search meets what is likely; this meets everything that a search's bounds allow, and can
//! say that there was nothing else. The price is that the bounds are small: in the shipped searches
//! each wait has one length, so that nothing is decided but what becomes of each request and whether a
//! process crashes at each named point that it passes. What else could happen at the same moment in
//! another order is not branched on: the order is that in which things were planned.

mod shipped;
pub mod tree;

use std::ops::ControlFlow;

use crate::checkers::Violation;
use crate::choices::{Branch, Choices, Draw};
use crate::history::History;
use crate::model::{self, Options};
use crate::scenario::Scenario;
use crate::suite::Sum;
use crate::zoo::Mutant;
use tree::{End, Limits, Progress, Tally};

/// A search: which histories, and how many of them at most.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Search {
    /// Its name.
    pub name: &'static str,
    /// Which histories it goes through, in one line.
    pub about: &'static str,
    /// What they are about.
    pub scenario: Scenario,
    /// How they are run: with which faults, and how many crashes.
    pub options: Options,
    /// How many histories there are.
    pub histories: u64,
    /// After so many the search ends, whatever is left.
    pub histories_max: u64,
}

impl Search {
    /// Those that come with the project, the smallest first.
    #[must_use]
    pub fn shipped() -> Vec<Self> {
        shipped::all()
    }

    /// The one of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::shipped().into_iter().find(|search| search.name == name)
    }

    /// One of its histories, which the choices determine.
    #[must_use]
    pub fn history(&self, choices: &Choices, mutant: Option<Mutant>, is_traced: bool) -> History {
        let options = Options { is_traced, ..self.options.clone() };
        model::run(&self.scenario, choices, mutant, options)
    }
}

/// A history in which an invariant does not hold, the first that a search met.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The decisions that lead to it.
    pub path: Vec<Branch>,
    /// All its draws, by which it can be run again.
    pub draws: Vec<Draw>,
    /// What does not hold.
    pub violation: Violation,
}

/// The verdict on a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every invariant holds in every history that there is.
    Holds,
    /// Every invariant holds in the histories up to the bound; there are more.
    Unfinished,
    /// An invariant does not hold; the search ended there.
    Violated,
    /// The search cannot tell: a history was not determined by its choices.
    Invalid,
}

/// What a search came to.
#[derive(Clone, Debug)]
pub struct Report {
    /// The sum of its histories.
    pub sum: Sum,
    /// In how many of them a process crashed.
    pub crashed: u64,
    /// The most decisions in one history.
    pub depth: usize,
    /// The history in which an invariant does not hold.
    pub failure: Option<Failure>,
    /// The verdict.
    pub verdict: Verdict,
}

/// So many decisions from the top a search is shared among threads: deeper, and the parts would be so
/// small that finding where each begins costs more than it gains.
const SPLIT_DEPTH: usize = 16;

/// Goes through the histories of a search, in each of which that part of the world is wrong, if any.
/// It ends at the first violation. The report does not depend on the number of threads. `progress` is
/// called now and then, from any thread.
#[must_use]
pub fn run(
    search: &Search,
    mutant: Option<Mutant>,
    jobs: usize,
    progress: &(dyn Fn(Progress) + Sync),
) -> Report {
    let limits = Limits { leaves_max: search.histories_max, split_depth: SPLIT_DEPTH, jobs };
    let leaf = |choices: &Choices, found: &mut Found| {
        let history = search.history(choices, mutant, false);
        found.add(&history);
        match found.failed {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    };
    let walked = tree::walk(limits, &leaf, progress);
    let Found { sum, crashed, failed } = walked.tally;
    let verdict = match &walked.end {
        End::Finished => Verdict::Holds,
        End::Bound => Verdict::Unfinished,
        End::Stopped(_) => Verdict::Violated,
        End::Strayed(_) => Verdict::Invalid,
    };
    let failure = match (walked.end, failed) {
        (End::Stopped(path), Some((violation, draws))) => Some(Failure { path, draws, violation }),
        _ => None,
    };
    Report { sum, crashed, depth: walked.depth, failure, verdict }
}

/// What is found in some of the histories.
#[derive(Default)]
struct Found {
    sum: Sum,
    crashed: u64,
    failed: Option<(Violation, Vec<Draw>)>,
}

impl Found {
    fn add(&mut self, history: &History) {
        self.sum.add(history);
        self.crashed += u64::from(!history.counts.crashed_at.is_empty());
        if let Some(violation) = &history.violation {
            self.failed = Some((violation.clone(), history.draws.clone()));
        }
    }
}

impl Tally for Found {
    fn merge(&mut self, later: Self) {
        self.sum.merge(&later.sum);
        self.crashed += later.crashed;
        self.failed = self.failed.take().or(later.failed);
    }
}
