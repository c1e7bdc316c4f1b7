//! A decision of one of core's machines, as a driver took it: what it was made from, and what it is.
//!
//! A driver tells its host of each with [`Host::decided`](crate::host::Host::decided). Nothing is
//! copied, so this costs production nothing; a simulation keeps them, and makes them again.

use hookproof_core::delivery::{self, Delivery};
use hookproof_core::dispatch::{Lesson, Wanted};
use hookproof_core::gate::{DeferReason, Gate, GateRule, PermitId, StoredGate, Transition};
use hookproof_core::id::{EndpointId, EventId, SourceId};
use hookproof_core::inbox::{self, Entry, Receipt};
use hookproof_core::time::{Millis, Timestamp};

/// A decision of one of core's machines.
#[derive(Clone, Copy, Debug)]
pub enum Decision<'a> {
    /// About a delivery.
    Delivery {
        /// The state that it was made from.
        state: &'a Delivery,
        /// What it was judged by.
        ctx: delivery::Ctx<'a>,
        /// What happened.
        input: delivery::Input,
        /// What that makes of it.
        result: &'a Result<delivery::Step, delivery::Rejected>,
    },
    /// Of an endpoint's gate.
    Gate {
        /// The endpoint.
        endpoint: &'a EndpointId,
        /// What it was asked, and what it said.
        asked: Asked<'a>,
        /// The gate as it is now.
        gate: &'a Gate,
    },
    /// About a received event.
    Entry {
        /// The state that it was made from.
        state: &'a Entry,
        /// What it was judged by.
        ctx: inbox::Ctx<'a>,
        /// What happened.
        input: inbox::Input,
        /// What that makes of it.
        result: &'a Result<inbox::Step, inbox::Rejected>,
    },
    /// About a verified request.
    Receipt {
        /// What is stored of its event.
        stored: Option<&'a Entry>,
        /// Where it came from.
        source: &'a SourceId,
        /// Its event.
        event_id: &'a EventId,
        /// When it was verified.
        now: Timestamp,
        /// What it is.
        receipt: &'a Receipt,
    },
}

/// What a gate was asked, and what it said.
#[derive(Clone, Copy, Debug)]
pub enum Asked<'a> {
    /// To be as it was stored: its first use in the life of a process.
    Restore(&'a StoredGate),
    /// How many permits there are to be had.
    Room {
        /// The rule.
        rule: &'a GateRule,
        /// The time.
        now: Timestamp,
        /// How many, or until when there are none and why.
        result: &'a Result<u32, (Timestamp, DeferReason)>,
    },
    /// Whether a delivery that is due may be sent ([`hookproof_core::dispatch::want`]).
    Want {
        /// The delivery as it was read.
        state: &'a Delivery,
        /// What it was judged by.
        ctx: delivery::Ctx<'a>,
        /// What becomes of it.
        result: &'a Wanted,
    },
    /// Whether a delivery that waits is too old ([`hookproof_core::dispatch::expire`]).
    Expire {
        /// The delivery as it was read.
        state: &'a Delivery,
        /// What it was judged by.
        ctx: delivery::Ctx<'a>,
        /// Its end, or why not.
        result: &'a Result<delivery::Step, delivery::Rejected>,
    },
    /// To let the permits that are out go on.
    Renew {
        /// The time.
        now: Timestamp,
        /// For how long.
        lease: Millis,
    },
    /// To take a permit back ([`hookproof_core::dispatch::learn`]).
    Learn {
        /// The rule.
        rule: &'a GateRule,
        /// The time.
        now: Timestamp,
        /// Which permit.
        permit: PermitId,
        /// How it ended.
        lesson: Lesson,
        /// What that did to the breaker.
        result: Option<Transition>,
    },
    /// To forget every failure.
    Reset,
}
