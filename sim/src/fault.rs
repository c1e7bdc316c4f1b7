//! The faults, and which of them a history suffers.
//!
//! "Swarm": each seed switches a random part of the faults off and weighs the rest, since a history
//! in which everything fails all the time explores little.

use std::collections::BTreeMap;

use hookproof_core::named_enum;

use crate::choices::Choices;

named_enum! {
    /// A kind of fault.
    pub enum Fault {
        /// The sender ends at a crash point and starts again later.
        SenderCrash = "sender crash",
        /// The receiver ends at a crash point and starts again later.
        ReceiverCrash = "receiver crash",
        /// A connection is refused.
        ConnectRefused = "connect refused",
        /// A connection is never established.
        ConnectTimeout = "connect timeout",
        /// The request is lost: it is never answered.
        RequestLost = "request lost",
        /// The response is lost after the receiver committed.
        ResponseLost = "response lost",
        /// The connection is reset instead of answered, after the receiver committed.
        ConnectionReset = "connection reset",
        /// Two hosts cannot reach each other for a while.
        Partition = "partition",
        /// The network delivers a request twice.
        Duplicate = "duplicated request",
        /// A request overtakes another.
        Reorder = "reordering",
        /// A gateway in front of the receiver answers 500, 502, 503 or 504.
        ServerError = "5xx",
        /// A gateway answers 429, with or without `Retry-After`.
        TooManyRequests = "429",
        /// A store takes long to commit.
        SlowCommit = "slow commit",
    }
}

/// What happens to one connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ConnectionFault {
    None,
    Kind(Fault),
}

/// The faults of one history, with their weights.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Faults {
    per_mille: BTreeMap<Fault, u64>,
}

/// The faults that can meet a connection; at most one each.
const ON_CONNECTION: &[Fault] = &[
    Fault::ConnectRefused,
    Fault::ConnectTimeout,
    Fault::RequestLost,
    Fault::ResponseLost,
    Fault::ConnectionReset,
    Fault::Duplicate,
    Fault::Reorder,
    Fault::ServerError,
    Fault::TooManyRequests,
];

impl Faults {
    /// No faults at all.
    #[must_use]
    pub fn none() -> Self {
        Self { per_mille: BTreeMap::new() }
    }

    /// Draws which of `allowed` are on, and how often each strikes.
    #[must_use]
    pub fn swarm(choices: &Choices, allowed: &[Fault]) -> Self {
        let mut per_mille = BTreeMap::new();
        for fault in allowed {
            let weight = choices.draw("plan", fault.as_str(), 4);
            if weight > 0 {
                per_mille.insert(*fault, weight * base_weight(*fault));
            }
        }
        Self { per_mille }
    }

    /// How often a fault strikes where it can, in thousandths; 0 if it is off.
    #[must_use]
    pub fn per_mille(&self, fault: Fault) -> u64 {
        self.per_mille.get(&fault).copied().unwrap_or(0)
    }

    /// The faults that are on.
    pub fn on(&self) -> impl Iterator<Item = Fault> {
        self.per_mille.keys().copied()
    }

    /// Draws what happens to a connection that `who` opens.
    pub(crate) fn on_connection(&self, choices: &Choices, who: &'static str) -> ConnectionFault {
        let roll = 999 - choices.draw(who, "connection", 1000);
        let mut sum = 0;
        for fault in ON_CONNECTION {
            sum += self.per_mille(*fault);
            if roll < sum {
                return ConnectionFault::Kind(*fault);
            }
        }
        ConnectionFault::None
    }
}

/// In thousandths, at the lowest weight: so that a history meets a few of each kind.
fn base_weight(fault: Fault) -> u64 {
    match fault {
        Fault::SenderCrash | Fault::ReceiverCrash => 12,
        Fault::ConnectRefused | Fault::ConnectTimeout | Fault::RequestLost => 20,
        Fault::ResponseLost | Fault::Duplicate | Fault::Reorder => 40,
        Fault::ConnectionReset | Fault::ServerError | Fault::TooManyRequests => 25,
        Fault::Partition => 250,
        Fault::SlowCommit => 60,
    }
}
