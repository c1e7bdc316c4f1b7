//! How a history on the wire is held against the invariants: by what both stores hold.
//!
//! A checker looks after every commit of either store, and once more at the end.

mod accounting;
mod durable;
mod effects;
mod identity;
mod terminal;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use hookproof_core::time::Timestamp;

use crate::checkers::{Invariant, Look, Violation};
use crate::journal::Facts;
use crate::wire::{ReceiverSnapshot, SenderSnapshot};
use crate::zoo::HarnessMutant;

/// What can be looked at, at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    /// The simulated time.
    pub now: Timestamp,
    /// What is known to have happened.
    pub facts: &'a Facts,
    /// The sender's store.
    pub sender: &'a SenderSnapshot,
    /// The receiver's store.
    pub receiver: &'a ReceiverSnapshot,
    /// Whether the history is over and everything has drained.
    pub is_drained: bool,
}

/// One invariant's checker, with what it remembers between looks.
trait Checker {
    fn invariant(&self) -> Invariant;

    /// Looks; tells how many things it looked at.
    fn look(&mut self, view: &View<'_>) -> Look;
}

/// All checkers of one history.
pub(crate) struct Checkers {
    checkers: Vec<Box<dyn Checker>>,
    looks: BTreeMap<Invariant, u64>,
    harness: Option<HarnessMutant>,
}

impl Checkers {
    pub(crate) fn new(harness: Option<HarnessMutant>) -> Self {
        let checkers: Vec<Box<dyn Checker>> = vec![
            Box::new(accounting::NoLoss),
            Box::new(accounting::NoInvention),
            Box::new(effects::ExactlyOnce),
            Box::new(effects::DoneMeansDone),
            Box::new(terminal::Terminal::default()),
            Box::new(identity::WriteAhead::default()),
            Box::new(identity::Identity::default()),
            Box::new(durable::Durable::default()),
        ];
        Self { checkers, looks: BTreeMap::new(), harness }
    }

    /// Holds every invariant against what is there now.
    pub(crate) fn look(&mut self, view: &View<'_>) -> Result<(), Violation> {
        let empty = ReceiverSnapshot::default();
        for checker in &mut self.checkers {
            let invariant = checker.invariant();
            let mut view = *view;
            let is_blind = self.harness == Some(HarnessMutant::EmptyLedger);
            if is_blind && invariant == Invariant::ExactlyOnce {
                // A broken harness: this checker is shown a ledger that nobody writes.
                view.receiver = &empty;
            }
            match checker.look(&view) {
                Ok(count) => *self.looks.entry(invariant).or_insert(0) += count,
                Err(what) => return Err(Violation { invariant, at: view.now, what }),
            }
        }
        Ok(())
    }

    /// Notes one look at an invariant that the world itself holds.
    pub(crate) fn note(&mut self, invariant: Invariant) {
        *self.looks.entry(invariant).or_insert(0) += 1;
    }

    /// How much each checker has looked at.
    pub(crate) fn looks(&self) -> &BTreeMap<Invariant, u64> {
        &self.looks
    }
}

/// The number of things in a collection, as a count of looks.
fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
