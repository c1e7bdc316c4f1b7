//! What is known to have happened, as the checkers are told it.
//!
//! A world tells every fact once, at the moment at which it becomes one: a row when its transaction
//! commits, a request when its last byte is written. Events, endpoints and publishes are numbers
//! here; a world that knows them by names keeps the list.

use std::fmt;

use hookproof_core::classify::Signal;
use hookproof_core::delivery::{AttemptRecord, Delivery};
use hookproof_core::gate::GateRule;
use hookproof_core::policy::Policy;
use hookproof_core::time::{Millis, Timestamp};

/// The number of a publish that the application wants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct PublishNo(pub(crate) u32);

/// The number of an event id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct EventNo(pub(crate) u32);

/// The number of an endpoint, and of the receiver's integration behind it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct EndpointNo(pub(crate) u32);

impl fmt::Display for PublishNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "publish {}", self.0)
    }
}

impl fmt::Display for EventNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {}", self.0)
    }
}

impl fmt::Display for EndpointNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "endpoint {}", self.0)
    }
}

/// One event on its way to one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Route {
    /// The event.
    pub(crate) event: EventNo,
    /// The endpoint.
    pub(crate) endpoint: EndpointNo,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.event, self.endpoint)
    }
}

/// One life of one process: its host, and how often that started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Life {
    /// Which of the processes of its role.
    pub(crate) process: u32,
    /// The how manieth life, from 1.
    pub(crate) number: u32,
}

/// A request as it is on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SentRequest {
    /// The delivery that it belongs to, as the sender's headers say.
    pub(crate) route: Route,
    /// The number of the attempt.
    pub(crate) attempt: u32,
    /// The event id that it carries.
    pub(crate) event: EventNo,
    /// A digest of its body, and of the body that was published.
    pub(crate) body: (u64, u64),
    /// A digest of the names of its header fields.
    pub(crate) headers: u64,
    /// The signed timestamp, in seconds since the epoch.
    pub(crate) timestamp: i64,
    /// The sender's wall clock at that moment: the earliest and the latest that it can have shown, if it
    /// was set since the attempt began.
    pub(crate) wall: (Timestamp, Timestamp),
    /// How long the sender has stood still since the attempt began.
    pub(crate) stood_still: Millis,
    /// Whether an independent verifier with the endpoint's present secret accepts the signature.
    pub(crate) is_signed: bool,
    /// Whether the sender's store holds this attempt as in flight.
    pub(crate) is_claimed: bool,
    /// Who sends it.
    pub(crate) by: Life,
    /// When the attempt ends at the latest, by the true clock.
    pub(crate) ends_by: Timestamp,
}

/// A change of one delivery, as it was committed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written<'a> {
    /// The delivery.
    pub(crate) route: Route,
    /// The state.
    pub(crate) state: &'a Delivery,
    /// The attempt that ended with it.
    pub(crate) record: Option<&'a AttemptRecord>,
    /// What a valid `Retry-After` of that attempt asked for, by an independent reading.
    pub(crate) asked: Option<Millis>,
    /// Whether a notice to the owner was written with it.
    pub(crate) has_notice: bool,
    /// Who wrote it.
    pub(crate) by: Life,
    /// The epoch of the shard that the writer holds.
    pub(crate) epoch: u64,
    /// Whether a person asked for this: a replay or a cancellation.
    pub(crate) is_asked: bool,
    /// How far the writer's clock is ahead of the true one, in milliseconds.
    pub(crate) clock_ahead: i64,
}

/// How an entry of the receiver ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EntryEnd {
    /// Its effect is applied.
    Applied,
    /// Its entity had moved on.
    Superseded {
        /// The entity and the version that the event carries, if it is about one.
        version: Option<(u32, u64)>,
    },
    /// Its effect failed as often as the rule allows.
    GivenUp,
}

/// Something that has happened.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fact<'a> {
    /// How the endpoints are served.
    Served {
        /// The policy.
        policy: &'a Policy,
    },
    /// An endpoint is registered; events are owed to it from now on.
    Registered {
        /// Which.
        endpoint: EndpointNo,
        /// Whether it works again once the faults have ended.
        is_sound: bool,
    },
    /// An endpoint is disabled.
    Disabled {
        /// Which.
        endpoint: EndpointNo,
        /// Whether there is a cause: a 410, the breaker's rule, its owner.
        has_cause: bool,
    },
    /// An endpoint is enabled again.
    Enabled {
        /// Which.
        endpoint: EndpointNo,
    },
    /// An endpoint is deleted, and with it what was on its way there.
    Deleted {
        /// Which.
        endpoint: EndpointNo,
    },
    /// The application asks for a publish.
    Wanted {
        /// Which.
        publish: PublishNo,
    },
    /// An event is committed at the sender.
    Stored {
        /// Which.
        event: EventNo,
        /// What it was published as.
        publish: PublishNo,
    },
    /// An event waits for its fan-out, or no longer does.
    Queued {
        /// Which.
        event: EventNo,
        /// Whether it waits.
        waits: bool,
    },
    /// The application was told that its publish is accepted.
    Accepted {
        /// Which.
        publish: PublishNo,
        /// As which event.
        event: EventNo,
    },
    /// A delivery was written.
    Written(Written<'a>),
    /// A delivery was written a second time under another id.
    Doubled {
        /// Which.
        route: Route,
    },
    /// Something that the sender's store had of an event is no longer in it: the event, a delivery or
    /// an attempt.
    Lost {
        /// The event.
        event: EventNo,
    },
    /// The dispatcher finds an endpoint's gate closed.
    Deferred {
        /// The endpoint.
        endpoint: EndpointNo,
        /// Until then.
        until: Timestamp,
    },
    /// Until then no process of the sender can do its work: it is down, stands still or cannot write.
    Hindered {
        /// By the true clock.
        until: Timestamp,
    },
    /// A connection to an address.
    Dialled {
        /// For which delivery.
        route: Route,
        /// Whether the policy denies the address.
        is_denied: bool,
    },
    /// A request is on the wire.
    Sent(SentRequest),
    /// The sender no longer waits for an attempt.
    Ended {
        /// The delivery.
        route: Route,
        /// The number of the attempt.
        attempt: u32,
    },
    /// The breaker learned how an attempt ended.
    Signalled {
        /// The endpoint.
        endpoint: EndpointNo,
        /// Whether it was a success; `None` for neither.
        is_success: Option<bool>,
        /// Whether it was the breaker's probe.
        is_probe: bool,
        /// When the permit would have ended by itself, by the sender's clock.
        expires: Timestamp,
        /// By the sender's clock.
        local: Timestamp,
    },
    /// A gate let an attempt begin.
    Admitted {
        /// The endpoint.
        endpoint: EndpointNo,
        /// By the sender's clock.
        local: Timestamp,
        /// When the permit ends by itself, by the sender's clock.
        expires: Timestamp,
        /// The gate's rule.
        rule: &'a GateRule,
        /// The epoch of the shard: a new owner starts with a gate of its own.
        epoch: u64,
    },
    /// A gate forgot every failure, for somebody says that the endpoint works.
    Forgiven {
        /// The endpoint.
        endpoint: EndpointNo,
    },
    /// A request arrived at the receiver and was answered.
    Judged {
        /// The integration.
        source: EndpointNo,
        /// The event id that it carries.
        event: EventNo,
        /// Whether an independent verifier accepts it, at this moment.
        is_valid: bool,
        /// The status that the receiver answers with.
        status: u16,
    },
    /// An event is committed at the receiver.
    Recorded {
        /// The integration.
        source: EndpointNo,
        /// The event.
        event: EventNo,
    },
    /// The receiver's entry of an event is gone.
    Forgotten {
        /// The integration.
        source: EndpointNo,
        /// The event.
        event: EventNo,
    },
    /// A worker of the receiver claims an entry.
    Claimed {
        /// The integration.
        source: EndpointNo,
        /// The event.
        event: EventNo,
    },
    /// The receiver's entry of an event is final.
    WorkedOff {
        /// The integration.
        source: EndpointNo,
        /// The event.
        event: EventNo,
        /// How.
        end: EntryEnd,
    },
    /// A business effect is committed.
    Effect {
        /// The integration.
        source: EndpointNo,
        /// The event.
        event: EventNo,
    },
    /// An entity at the receiver has another version.
    Entity {
        /// Which.
        entity: u32,
        /// The version that it has now.
        version: u64,
    },
    /// An event about an entity was worked off.
    Seen {
        /// The entity.
        entity: u32,
        /// The version that the event carries.
        version: u64,
    },
    /// The owner got a notice.
    Noticed {
        /// About which delivery.
        route: Route,
    },
    /// A host broke down without a fault: a panic, an error in its log.
    Broke {
        /// What happened.
        what: &'a str,
    },
}

/// What is there when a history is over and everything has drained.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct End {
    /// Whether everything drained within the bound.
    pub(crate) is_drained: bool,
}

/// Whether a signal is a success; `None` for neither.
pub(crate) fn is_success(signal: Signal) -> Option<bool> {
    match signal {
        Signal::Success => Some(true),
        Signal::Failure => Some(false),
        Signal::Neither => None,
    }
}
