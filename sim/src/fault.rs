//! The faults, and which of them a history suffers.
//!
//! "Swarm" (Groce et al. 2012): each seed switches a random part of the faults off and weighs the
//! rest, since a history in which everything fails all the time explores little.

use std::collections::BTreeMap;

use hookproof_core::named_enum;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::choices::{Choices, Who};

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
        /// The response takes seconds, within the timeout.
        SlowResponse = "slow response",
        /// The head of the response is larger than anybody reads.
        Oversize = "oversize response",
        /// A gateway redirects.
        Redirect = "redirect",
        /// A gateway answers with a 4xx that says nothing about trying again.
        ClientError = "4xx",
        /// A gateway answers 410.
        Gone = "410",
        /// A name does not resolve.
        DnsFailure = "dns failure",
        /// A name resolves to an address that is denied, alone, among others or the second time.
        DnsRebinding = "dns rebinding",
        /// A request that was recorded on the way is sent again later, as it was or with another
        /// timestamp.
        ReplayAttack = "replay attack",
        /// Somebody without the secret sends a request under the id of an event.
        Forgery = "forgery",
        /// A store refuses a write because it is busy.
        StoreBusy = "store busy",
        /// A store refuses every write for a while because it is full.
        StoreFull = "store full",
        /// The wall clock of a host is wrong by some minutes.
        ClockSkew = "clock skew",
        /// The wall clock of a host is set while it runs.
        ClockStep = "clock step",
        /// A process stands still for longer than its leases, and goes on.
        Pause = "pause",
        /// A worker takes longer than its lease.
        SlowWork = "slow work",
        /// The downstream service fails, or its answer is lost.
        DownstreamFailure = "downstream failure",
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Fault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::ALL.iter().copied().find(|fault| fault.as_str() == name).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|fault| fault.as_str()).collect();
            D::Error::custom(format!("there is no fault {name:?}: write {}", known.join(", ")))
        })
    }
}

/// What happens to one connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ConnectionFault {
    None,
    Kind(Fault),
}

/// The faults of one history, with their weights.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    per_mille: BTreeMap<Fault, u64>,
}

/// The faults that can meet a connection; at most one each. The last of them is the one that the
/// highest draw means, and so on down: 0 is none.
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
    Fault::SlowResponse,
    Fault::Redirect,
    Fault::ClientError,
    Fault::Gone,
    Fault::DnsFailure,
    Fault::DnsRebinding,
    Fault::Oversize,
];

/// The fault that this value of the draw "connection" stands for.
pub(crate) fn on_connection_by_index(value: u64) -> Option<Fault> {
    let index = usize::try_from(value).ok()?.checked_sub(1)?;
    ON_CONNECTION.get(index).copied()
}

impl Faults {
    /// No faults at all.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Draws which of `allowed` are on, and how often each strikes.
    pub(crate) fn swarm(choices: &Choices, allowed: &[Fault]) -> Self {
        let mut per_mille = BTreeMap::new();
        for fault in allowed {
            let weight = choices.draw("plan", fault.as_str(), 4);
            if weight > 0 {
                per_mille.insert(*fault, weight * base_weight(*fault));
            }
        }
        Self { per_mille }
    }

    /// Each of these, as often as is given in thousandths.
    #[must_use]
    pub fn fixed(per_mille: &[(Fault, u64)]) -> Self {
        Self { per_mille: per_mille.iter().copied().collect() }
    }

    /// How often a fault strikes where it can, in thousandths; 0 if it is off.
    pub(crate) fn per_mille(&self, fault: Fault) -> u64 {
        self.per_mille.get(&fault).copied().unwrap_or(0)
    }

    /// The faults that are on.
    pub fn on(&self) -> impl Iterator<Item = Fault> {
        self.per_mille.keys().copied()
    }

    /// Draws what happens to a connection that `who` opens.
    pub(crate) fn on_connection(&self, choices: &Choices, who: impl Into<Who>) -> ConnectionFault {
        let mut weights = [0; ON_CONNECTION.len() + 1];
        let mut sum = 0;
        for (weight, fault) in weights[1..].iter_mut().zip(ON_CONNECTION) {
            *weight = self.per_mille(*fault);
            sum += *weight;
        }
        weights[0] = 1000_u64.saturating_sub(sum).max(100);
        match choices.pick(who, "connection", &weights) {
            0 => ConnectionFault::None,
            index => ConnectionFault::Kind(ON_CONNECTION[index - 1]),
        }
    }
}

/// In thousandths, at the lowest weight: so that a history meets a few of each kind.
fn base_weight(fault: Fault) -> u64 {
    match fault {
        Fault::SenderCrash | Fault::ReceiverCrash => 12,
        Fault::ConnectRefused | Fault::ConnectTimeout | Fault::RequestLost => 20,
        Fault::ResponseLost | Fault::Duplicate | Fault::Reorder => 40,
        Fault::ConnectionReset | Fault::ServerError | Fault::TooManyRequests => 25,
        Fault::Redirect | Fault::DnsFailure | Fault::SlowResponse => 20,
        Fault::ClientError | Fault::Gone | Fault::DnsRebinding | Fault::Oversize => 8,
        Fault::Partition | Fault::ClockSkew | Fault::StoreFull | Fault::ClockStep => 250,
        Fault::ReplayAttack | Fault::Forgery => 120,
        Fault::StoreBusy => 30,
        Fault::Pause => 15,
        Fault::SlowCommit | Fault::SlowWork | Fault::DownstreamFailure => 60,
    }
}
