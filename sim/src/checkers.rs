//! The invariants, and how a history is held against them.
//!
//! A checker looks after every commit of either store, and once more at the end. It says how much it
//! looked at: a checker that never saw anything has proved nothing, and fails the suite.

mod accounting;
mod durable;
mod effects;
mod identity;
mod terminal;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use hookproof_core::time::Timestamp;

use crate::journal::Facts;
use crate::wire::{ReceiverSnapshot, SenderSnapshot};
use crate::zoo::HarnessMutant;

macro_rules! invariants {
    ($($(#[$doc:meta])* $variant:ident = $id:literal $name:literal,)*) => {
        /// An invariant of webhook delivery.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Invariant {
            $($(#[$doc])* $variant,)*
        }

        impl Invariant {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The permanent id, for example `I3`.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self {
                    $(Self::$variant => $id,)*
                }
            }

            /// The name, for example `exactly once`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

invariants! {
    /// Every event whose publish was acknowledged is, for each endpoint subscribed at that moment,
    /// in exactly one phase; nothing else is.
    NoLoss = "I1" "no loss",
    /// No delivery, request or effect without a published event.
    NoInvention = "I2" "no invention",
    /// Effects per (endpoint, event id) are at most one at every instant.
    ExactlyOnce = "I3" "exactly once",
    /// What is delivered has exactly one effect once the receiver's worker has drained.
    DoneMeansDone = "I4" "done means done",
    /// Delivered, dead and cancelled are final.
    Terminal = "I5" "terminal",
    /// No request on the wire without a committed in-flight row for that attempt.
    WriteAhead = "I6" "write-ahead",
    /// Event id, body bytes and header names are equal over all attempts; the timestamp is that of
    /// the attempt; an independent verifier accepts each signature.
    Identity = "I7" "identity",
    /// After the faults stop, everything drains within the bound.
    Liveness = "I13" "liveness",
    /// What a store holds includes everything it ever acknowledged.
    Durable = "I15" "durable",
    /// Neither host panics, logs an error or fails to start.
    Sound = "S0" "no breakdown",
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id(), self.name())
    }
}

/// An invariant that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// When it was seen.
    pub at: Timestamp,
    /// What was seen, and what should have been.
    pub what: String,
}

/// What can be looked at, at one moment.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
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

/// How much a look saw, or what was wrong.
type Look = Result<u64, String>;

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
