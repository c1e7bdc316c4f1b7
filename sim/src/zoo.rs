//! Known-bad variants. A harness is only as good as the bugs it kills: each of these changes one
//! behaviour at a seam, and the suite must find it by the invariant that it names.

pub(crate) mod receivers;
pub(crate) mod senders;

use std::fmt;

use hookproof_core::named_enum;

use crate::checkers::Invariant;
use crate::suite::Gate;

named_enum! {
    /// A wrong receiver.
    pub enum ReceiverMutant {
        /// The id is inserted, then the event is processed, each by itself: a crash in between
        /// loses the event.
        InsertThenProcess = "R01",
        /// The id is looked for, then inserted: two copies at once both find nothing.
        CheckThenInsert = "R03",
        /// 2xx before the commit.
        AckBeforeCommit = "R04",
        /// Effect and mark in two transactions, the effect first.
        ApplyThenMark = "R05",
        /// Duplicates are known in memory only.
        DedupInMemory = "R08",
    }
}

named_enum! {
    /// A wrong sender.
    pub enum SenderMutant {
        /// A publish is acknowledged before the commit.
        AckBeforeCommit = "S01",
        /// Each retry has a new event id.
        NewIdOnRetry = "S04",
        /// A timeout counts as a success.
        TimeoutIsSuccess = "S08",
        /// A request is sent before its in-flight row is committed.
        SendBeforeClaim = "S14",
    }
}

named_enum! {
    /// A wrong harness.
    pub enum HarnessMutant {
        /// A crash fault that crashes nothing.
        CrashesNothing = "H01",
        /// A checker that looks at an empty ledger.
        EmptyLedger = "H03",
    }
}

/// Any of the known-bad variants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mutant {
    /// A wrong receiver.
    Receiver(ReceiverMutant),
    /// A wrong sender.
    Sender(SenderMutant),
    /// A wrong harness.
    Harness(HarnessMutant),
}

/// What must find a mutant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Killer {
    /// One of these invariants is violated.
    Invariants(&'static [Invariant]),
    /// The suite is found to be invalid by this gate.
    Gate(Gate),
}

impl Mutant {
    /// All of them.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let receivers = ReceiverMutant::ALL.iter().map(|mutant| Self::Receiver(*mutant));
        let senders = SenderMutant::ALL.iter().map(|mutant| Self::Sender(*mutant));
        let harnesses = HarnessMutant::ALL.iter().map(|mutant| Self::Harness(*mutant));
        receivers.chain(senders).chain(harnesses).collect()
    }

    /// The permanent id, for example `R04`.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Receiver(mutant) => mutant.as_str(),
            Self::Sender(mutant) => mutant.as_str(),
            Self::Harness(mutant) => mutant.as_str(),
        }
    }

    /// What it does wrong.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::Receiver(ReceiverMutant::InsertThenProcess) => "inserts the id, then processes",
            Self::Receiver(ReceiverMutant::CheckThenInsert) => "looks for the id, then inserts it",
            Self::Receiver(ReceiverMutant::AckBeforeCommit) => "answers 2xx before the commit",
            Self::Receiver(ReceiverMutant::ApplyThenMark) => "applies, then marks, separately",
            Self::Receiver(ReceiverMutant::DedupInMemory) => "knows duplicates in memory only",
            Self::Sender(SenderMutant::AckBeforeCommit) => "accepts before the commit",
            Self::Sender(SenderMutant::NewIdOnRetry) => "gives each retry a new event id",
            Self::Sender(SenderMutant::TimeoutIsSuccess) => "counts a timeout as success",
            Self::Sender(SenderMutant::SendBeforeClaim) => "sends before the claim is committed",
            Self::Harness(HarnessMutant::CrashesNothing) => "a crash fault that crashes nothing",
            Self::Harness(HarnessMutant::EmptyLedger) => "a checker that sees an empty ledger",
        }
    }

    /// What must find it.
    #[must_use]
    pub fn killer(self) -> Killer {
        use Invariant::{
            DoneMeansDone, Durable, ExactlyOnce, Identity, NoInvention, NoLoss, WriteAhead,
        };
        match self {
            Self::Receiver(ReceiverMutant::InsertThenProcess) => {
                Killer::Invariants(&[DoneMeansDone])
            }
            Self::Receiver(
                ReceiverMutant::CheckThenInsert
                | ReceiverMutant::ApplyThenMark
                | ReceiverMutant::DedupInMemory,
            ) => Killer::Invariants(&[ExactlyOnce]),
            Self::Receiver(ReceiverMutant::AckBeforeCommit) => {
                Killer::Invariants(&[DoneMeansDone, Durable])
            }
            Self::Sender(SenderMutant::AckBeforeCommit) => Killer::Invariants(&[NoLoss, Durable]),
            // A new id is an event that nobody published, and once it is delivered a second effect.
            Self::Sender(SenderMutant::NewIdOnRetry) => {
                Killer::Invariants(&[Identity, ExactlyOnce, NoInvention])
            }
            Self::Sender(SenderMutant::TimeoutIsSuccess) => Killer::Invariants(&[DoneMeansDone]),
            Self::Sender(SenderMutant::SendBeforeClaim) => Killer::Invariants(&[WriteAhead]),
            Self::Harness(HarnessMutant::CrashesNothing) => Killer::Gate(Gate::FaultFired),
            Self::Harness(HarnessMutant::EmptyLedger) => Killer::Gate(Gate::CheckerLooked),
        }
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id(), self.what())
    }
}
