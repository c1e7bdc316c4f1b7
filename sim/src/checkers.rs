//! The invariants, and how a history is held against them.
//!
//! A world tells the checkers every fact as it becomes one, and at last that the history is over.
//! A checker knows nothing but that, and says how much it looked at: one that never saw anything has
//! proved nothing, and fails the suite.

mod accounting;
mod address;
mod durable;
mod effects;
mod fencing;
mod gate;
mod identity;
mod liveness;
mod order;
mod punctual;
mod reference;
mod schedule;
mod terminal;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use hookproof_core::time::{Millis, Timestamp};

use crate::fact::{End, Fact};
use crate::zoo::HarnessMutant;

pub(crate) use reference::attempts_max;

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
    /// Delivered, dead and cancelled are final, except through an explicit replay, which leaves the
    /// automatic schedule as it is.
    Terminal = "I5" "terminal",
    /// No request on the wire without a committed in-flight row for that attempt.
    WriteAhead = "I6" "write-ahead",
    /// Event id, body bytes and header names are equal over all attempts; the timestamp is that of
    /// the attempt; an independent verifier accepts each signature. A receiver takes what that
    /// verifier accepts, and nothing else.
    Identity = "I7" "identity",
    /// No attempt before it is due, none after the last, none overdue while the gate admits.
    OnSchedule = "I8" "schedule",
    /// Limits hold over every window; an open breaker lets one probe at a time through.
    WithinGate = "I9" "gate",
    /// One endpoint's failure delays no other endpoint beyond a bound.
    Isolation = "I10" "isolation",
    /// Each entity ends at its highest version, and never goes back.
    Order = "I11" "order",
    /// No connection to a denied address, at any attempt.
    Address = "I12" "address",
    /// After the faults stop, everything drains within the bound; what is broken for good ends dead
    /// after exactly the configured attempts, with exactly one notice.
    Liveness = "I13" "liveness",
    /// Per shard and epoch one writer; at most one attempt of a delivery under way.
    Fencing = "I14" "fencing",
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

/// How much a look saw, or what was wrong.
pub(crate) type Look = Result<u64, String>;

/// Nothing in this fact concerns the checker.
const NOTHING: Look = Ok(0);
/// It looked at one thing, and that is right.
const RIGHT: Look = Ok(1);

/// One invariant's checker, with what it remembers.
trait Checker: Send {
    fn invariant(&self) -> Invariant;

    /// Is told what happened; tells how many things it looked at.
    fn see(&mut self, now: Timestamp, fact: &Fact<'_>) -> Look;

    /// Is told that the history is over.
    fn end(&mut self, _end: &End) -> Look {
        NOTHING
    }
}

/// The settings that some invariants speak of, beside the policy of the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bounds {
    /// How long after it is due and admitted an attempt may begin.
    pub(crate) overdue: Millis,
    /// The same for an endpoint that works while another does not.
    pub(crate) isolation: Millis,
    /// After how many claims the receiver gives an event up whose effect fails.
    pub(crate) claims: u32,
}

/// All checkers of one history.
pub(crate) struct Checkers {
    checkers: Vec<Box<dyn Checker>>,
    looks: Vec<u64>,
    harness: Option<HarnessMutant>,
}

impl Checkers {
    pub(crate) fn new(bounds: Bounds, harness: Option<HarnessMutant>) -> Self {
        let is_lax = harness == Some(HarnessMutant::AtLeast);
        // Where several invariants see the same fact, the more precise stands first.
        let checkers: Vec<Box<dyn Checker>> = vec![
            Box::new(durable::Sound),
            Box::new(durable::Durable::default()),
            Box::new(accounting::NoLoss::default()),
            Box::new(identity::Identity::default()),
            Box::new(accounting::NoInvention::default()),
            Box::new(effects::ExactlyOnce::new(is_lax)),
            Box::new(effects::DoneMeansDone::new(bounds.claims, is_lax)),
            Box::new(fencing::Fencing::default()),
            Box::new(terminal::Terminal::default()),
            Box::new(identity::WriteAhead),
            Box::new(schedule::OnSchedule::default()),
            Box::new(punctual::Punctual::overdue(bounds.overdue)),
            Box::new(punctual::Punctual::isolation(bounds.isolation)),
            Box::new(gate::WithinGate::default()),
            Box::new(order::Order::default()),
            Box::new(address::Address),
            Box::new(liveness::Liveness::default()),
        ];
        let looks = vec![0; checkers.len()];
        Self { checkers, looks, harness }
    }

    /// Tells every checker what happened.
    pub(crate) fn see(&mut self, now: Timestamp, fact: &Fact<'_>) -> Result<(), Violation> {
        for (checker, looks) in self.checkers.iter_mut().zip(&mut self.looks) {
            let is_blind = self.harness == Some(HarnessMutant::EmptyLedger)
                && checker.invariant() == Invariant::ExactlyOnce;
            if is_blind {
                // A broken harness: this checker is shown a ledger that nobody writes.
                continue;
            }
            match checker.see(now, fact) {
                Ok(count) => *looks += count,
                Err(what) => {
                    return Err(Violation { invariant: checker.invariant(), at: now, what });
                }
            }
        }
        Ok(())
    }

    /// Tells every checker that the history is over.
    pub(crate) fn end(&mut self, now: Timestamp, end: &End) -> Result<(), Violation> {
        for (checker, looks) in self.checkers.iter_mut().zip(&mut self.looks) {
            match checker.end(end) {
                Ok(count) => *looks += count,
                Err(what) => {
                    return Err(Violation { invariant: checker.invariant(), at: now, what });
                }
            }
        }
        Ok(())
    }

    /// How much each invariant's checkers have looked at.
    pub(crate) fn looks(&self) -> BTreeMap<Invariant, u64> {
        let mut sum = BTreeMap::new();
        for (checker, looks) in self.checkers.iter().zip(&self.looks) {
            *sum.entry(checker.invariant()).or_insert(0) += looks;
        }
        sum
    }
}
