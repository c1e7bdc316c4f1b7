//! What a trial ends with.

use std::collections::BTreeMap;
use std::fmt;

use super::Role;
use crate::checkers::Invariant;
use crate::fault::Fault;
use crate::history::{History, Totals};
use crate::plan::Plan;
use crate::timeline::{self, Timeline};

/// A program held in every history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    role: Role,
    /// How many histories there were.
    pub histories: u64,
    /// What came of them.
    pub totals: Totals,
    /// How often each fault had an effect.
    pub fired: BTreeMap<Fault, u64>,
}

impl Held {
    pub(super) fn new(role: Role) -> Self {
        Self { role, histories: 0, totals: Totals::default(), fired: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, history: &History) {
        self.histories += 1;
        self.totals.add(&history.totals);
        for (fault, times) in &history.counts.fired {
            *self.fired.entry(*fault).or_insert(0) += times;
        }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let crash = match self.role {
            Role::Receiver => Fault::ReceiverCrash,
            Role::Sender => Fault::SenderCrash,
        };
        let crashes = self.fired.get(&crash).copied().unwrap_or(0);
        write!(
            f,
            "it holds in {} histories: {} events, {} requests, {} effects;\n{} kinds of fault had an \
             effect, {crashes} crashes of the {} among them",
            self.histories,
            self.totals.accepted,
            self.totals.requests,
            self.totals.effects,
            self.fired.len(),
            self.role,
        )
    }
}

/// Why a trial failed, for people to read.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    seed: Option<u64>,
    invariant: Option<Invariant>,
    text: String,
}

impl Failure {
    /// The seed of the history that shows it, if one does.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// The invariant that does not hold, if one does not.
    #[must_use]
    pub fn invariant(&self) -> Option<Invariant> {
        self.invariant
    }

    /// Nothing can be run like that.
    pub(super) fn setup(text: String) -> Self {
        Self { seed: None, invariant: None, text }
    }

    /// Not everything is delivered although nothing is wrong.
    pub(super) fn calm(role: Role, seed: u64, history: &History) -> Self {
        let Totals { deliveries, delivered, .. } = history.totals;
        let question = match role {
            Role::Receiver => "does the receiver answer 2xx?",
            Role::Sender => "does the sender take and send them, and report what is delivered?",
        };
        let text = format!(
            "nothing went wrong, and {delivered} of {deliveries} events were delivered; {question}\n\n{}",
            timeline::text(&Timeline::new(history), &|_, text| text.to_owned())
        );
        Self { seed: Some(seed), invariant: None, text }
    }

    /// One seed was two histories.
    pub(super) fn differs(role: Role, seed: u64) -> Self {
        let text = format!(
            "seed {seed} was two histories: the {role} does not depend on its inputs alone. Take \
             time, randomness and\ntasks from its `Life`, iterate over no `HashMap`, share nothing \
             between lives but the disk"
        );
        Self { seed: Some(seed), invariant: None, text }
    }

    /// An invariant does not hold; the history is made small.
    pub(super) fn broken(seed: u64, plan: &Plan, history: &History) -> Self {
        let what = history.violation.as_ref().map_or("", |violation| violation.what.as_str());
        let text = format!(
            "{} does not hold: {what}\n\nSeed {seed} shows it; this is the smallest history that was found. \
             What must be decided:\n\n{}\nAgain: the same trial over the seeds {seed}..{}",
            plan.invariant,
            timeline::story(plan, history, &|_, text| text.to_owned()),
            seed.saturating_add(1),
        );
        Self { seed: Some(seed), invariant: Some(plan.invariant), text }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}
