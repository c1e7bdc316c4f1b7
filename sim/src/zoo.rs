//! Known-bad variants. A harness is only as good as the bugs it kills: each of these changes one
//! behaviour at a seam, and the suite must find it by the invariant that it names.

pub(crate) mod catalogue;
pub mod hunt;
pub(crate) mod receivers;
pub(crate) mod senders;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::checkers::Invariant;
use crate::choices::Choices;
use crate::fault::Fault;
use crate::scenario::{Scenario, shipped};
use crate::suite::{Gate, World};

pub use catalogue::{HarnessMutant, ReceiverMutant, SeededBug, SenderMutant};

/// How many histories this process has run, which only a broken harness asks.
static RUNS: AtomicU64 = AtomicU64::new(0);

impl HarnessMutant {
    /// The choices that a history makes. H05: not those that it was given.
    pub(crate) fn choices_under(harness: Option<Self>, choices: &Choices) -> Choices {
        match harness {
            Some(Self::ForgetsDraws) => Choices::seeded(RUNS.fetch_add(1, Ordering::Relaxed)),
            _ => choices.clone(),
        }
    }

    /// H01 and H02: whether this fault does nothing, though it was decided.
    pub(crate) fn idles(self, fault: Fault) -> bool {
        match self {
            Self::CrashesNothing => matches!(fault, Fault::SenderCrash | Fault::ReceiverCrash),
            Self::FaultNeverFires => fault == Fault::ResponseLost,
            Self::EmptyLedger | Self::AtLeast | Self::ForgetsDraws => false,
        }
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
    /// A bug that is not of the zoo: it shows that what is found can be understood.
    Seeded(SeededBug),
    /// A harness whose fault does nothing, though it is decided as ever. It is not of the zoo, which has
    /// the two best-known cases: it shows of each fault that the gates would notice.
    Idle(Fault),
}

/// What must find a mutant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Killer {
    /// One of these invariants is violated.
    Invariants(&'static [Invariant]),
    /// The suite is found to be invalid by this gate.
    Gate(Gate),
}

/// What is known of a mutant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct About {
    /// The permanent id, for example `R04`.
    pub id: &'static str,
    /// What it does wrong, in a few words.
    pub what: &'static str,
    /// How that goes wrong.
    pub why: &'static str,
    /// Where it was seen.
    pub seen: &'static str,
    /// What must find it.
    pub killer: Killer,
    /// The scenario that brings it to light soonest, in the model world.
    pub scenario: &'static str,
    /// The scenario that brings it to light in the wire world, if that has it, too.
    pub wire_scenario: Option<&'static str>,
}

impl Mutant {
    /// All of the zoo.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let receivers = ReceiverMutant::ALL.iter().map(|mutant| Self::Receiver(*mutant));
        let senders = SenderMutant::ALL.iter().map(|mutant| Self::Sender(*mutant));
        let harnesses = HarnessMutant::ALL.iter().map(|mutant| Self::Harness(*mutant));
        receivers.chain(senders).chain(harnesses).collect()
    }

    /// Those that the wire world has.
    #[must_use]
    pub fn on_wire() -> Vec<Self> {
        Self::all().into_iter().filter(|mutant| mutant.about().wire_scenario.is_some()).collect()
    }

    /// The mutant of this id, in any case; the seeded bugs are found, too.
    #[must_use]
    pub fn find(id: &str) -> Option<Self> {
        let seeded = SeededBug::ALL.iter().map(|bug| Self::Seeded(*bug));
        let mut known = Self::all().into_iter().chain(seeded);
        known.find(|mutant| mutant.id().eq_ignore_ascii_case(id))
    }

    /// Whether under it this fault does nothing, though it was decided.
    pub(crate) fn idles(self, fault: Fault) -> bool {
        match self {
            Self::Idle(idle) => idle == fault,
            Self::Harness(harness) => harness.idles(fault),
            Self::Receiver(_) | Self::Sender(_) | Self::Seeded(_) => false,
        }
    }

    /// What is known of it.
    #[must_use]
    pub fn about(self) -> About {
        match self {
            Self::Receiver(mutant) => mutant.about(),
            Self::Sender(mutant) => mutant.about(),
            Self::Harness(mutant) => mutant.about(),
            Self::Seeded(bug) => bug.about(),
            Self::Idle(fault) => About {
                id: "idle",
                what: fault.as_str(),
                why: "what was to be survived never happened",
                seen: "any harness whose fault outlived a change of what it strikes",
                killer: Killer::Gate(Gate::FaultFired),
                scenario: "everything",
                wire_scenario: Some("everything"),
            },
        }
    }

    /// The scenario in which a world hunts it.
    #[must_use]
    pub fn ground(self, world: World) -> Scenario {
        let about = self.about();
        let found = |name| shipped::find(name).unwrap_or_else(Scenario::mixed);
        match world {
            World::Model => found(about.scenario),
            World::Wire => found(about.wire_scenario.unwrap_or(about.scenario)).on_wire(),
        }
    }

    /// The permanent id, for example `R04`.
    #[must_use]
    pub fn id(self) -> &'static str {
        self.about().id
    }

    /// What it does wrong.
    #[must_use]
    pub fn what(self) -> &'static str {
        self.about().what
    }

    /// What must find it.
    #[must_use]
    pub fn killer(self) -> Killer {
        self.about().killer
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id(), self.what())
    }
}
