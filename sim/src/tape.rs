//! What a history of the wire world saw of core's machines: each decision with everything that it was
//! made from, what the stores held after each commit, and what the dispatcher read from its store.
//!
//! [`Tape::check`] plays it again. Each decision is made once more by a fresh machine, and must be the
//! same. What was committed must follow, without a gap, from decisions that were made from what was
//! committed before. And what the model world's store would have said must be what the real one said.
//! So what the model world is told of the machines holds for the programs, too.

mod chain;
mod replay;
mod shadow;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use hookproof_core::delivery::{self, Delivery};
use hookproof_core::dispatch::{Lesson, Wanted};
use hookproof_core::gate::{DeferReason, Gate, GateRule, PermitId, StoredGate, Transition};
use hookproof_core::id::{DeliveryId, EndpointId, EventId, SourceId};
use hookproof_core::inbox::{self, Entry, InboxRule, Receipt};
use hookproof_core::policy::Policy;
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::decision::{Asked, Decision};

/// What a history of the wire world saw of core's machines, in the order in which it happened.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tape {
    /// One after the other.
    pub events: Vec<Event>,
}

/// What a decision was judged by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct By<R> {
    /// The time.
    pub now: Timestamp,
    /// The entropy.
    pub entropy: u64,
    /// The policy or the rule.
    pub rule: R,
}

/// Something that was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::large_enum_variant, reason = "most events are of the large kinds")]
pub enum Event {
    /// A life of the sender begins: it knows no gate.
    SenderStarts,
    /// A decision about a delivery.
    Delivery {
        /// The state that it was made from.
        state: Delivery,
        /// What it was judged by.
        by: By<Policy>,
        /// What happened.
        input: delivery::Input,
        /// What that made of it.
        result: Result<delivery::Step, delivery::Rejected>,
    },
    /// A decision of an endpoint's gate.
    Gate {
        /// The endpoint.
        endpoint: EndpointId,
        /// What it was asked, and what it said.
        asked: AskedGate,
        /// The gate as it was then.
        gate: Gate,
    },
    /// A decision about a received event.
    Entry {
        /// The state that it was made from.
        state: Entry,
        /// What it was judged by.
        by: By<InboxRule>,
        /// What happened.
        input: inbox::Input,
        /// What that made of it.
        result: Result<inbox::Step, inbox::Rejected>,
    },
    /// What a verified request was.
    Receipt {
        /// What was stored of its event.
        stored: Option<Entry>,
        /// Where it came from.
        source: SourceId,
        /// Its event.
        event_id: EventId,
        /// When it was verified.
        now: Timestamp,
        /// What it was.
        receipt: Receipt,
    },
    /// The sender's store holds a delivery like this since a commit.
    DeliveryKept(Delivery),
    /// The receiver's store holds an entry like this since a commit.
    EntryKept(Entry),
    /// What the sender was told of a step that it had its store write.
    Answered {
        /// Of which delivery.
        id: DeliveryId,
        /// What is committed, or why not.
        answer: Result<Delivery, delivery::Rejected>,
    },
    /// The dispatcher asks its store, by the number of the question.
    Asks(u64, Question),
    /// What its store says to that, in order.
    Hears(u64, Vec<DeliveryId>),
    /// What both stores held when the history was over.
    Stock {
        /// The sender's.
        deliveries: Vec<Delivery>,
        /// The receiver's, if it is the reference receiver.
        entries: Option<Vec<Entry>>,
    },
}

/// What a gate was asked, and what it said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AskedGate {
    /// To be as it was stored.
    Restore(StoredGate),
    /// How many permits there are to be had.
    Room {
        /// The rule.
        rule: GateRule,
        /// The time.
        now: Timestamp,
        /// How many, or until when there are none and why.
        result: Result<u32, (Timestamp, DeferReason)>,
    },
    /// Whether a delivery that is due may be sent.
    Want {
        /// The delivery.
        state: Delivery,
        /// What it was judged by.
        by: By<Policy>,
        /// What becomes of it.
        result: Wants,
    },
    /// Whether a delivery that waits is too old.
    Expire {
        /// The delivery.
        state: Delivery,
        /// What it was judged by.
        by: By<Policy>,
        /// Its end, or why not.
        result: Result<delivery::Step, delivery::Rejected>,
    },
    /// To let the permits that are out go on.
    Renew {
        /// The time.
        now: Timestamp,
        /// For how long.
        lease: Millis,
    },
    /// To take a permit back.
    Learn {
        /// The rule.
        rule: GateRule,
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

/// What becomes of a delivery that is due: [`Wanted`], with the permit told instead of given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wants {
    /// An attempt is claimed.
    Claim {
        /// The claim.
        step: delivery::Step,
        /// The number of the permit.
        permit: PermitId,
        /// When that ends by itself.
        expires: Timestamp,
        /// Whether it is the breaker's probe.
        probe: bool,
    },
    /// It is too old.
    Ends(delivery::Step),
    /// It is no longer what it was.
    Stale(delivery::Rejected),
    /// The gate has no permit for it.
    Deferred {
        /// When to ask again.
        until: Timestamp,
        /// What stands in the way.
        why: DeferReason,
    },
}

impl Wants {
    /// The step, if there is one.
    fn step(&self) -> Option<&delivery::Step> {
        match self {
            Self::Claim { step, .. } | Self::Ends(step) => Some(step),
            Self::Stale(_) | Self::Deferred { .. } => None,
        }
    }
}

impl From<&Wanted> for Wants {
    fn from(wanted: &Wanted) -> Self {
        match wanted {
            Wanted::Claim(step, permit) => Self::Claim {
                step: step.clone(),
                permit: permit.id(),
                expires: permit.expires,
                probe: permit.probe,
            },
            Wanted::Ends(step) => Self::Ends(step.clone()),
            Wanted::Stale(rejected) => Self::Stale(*rejected),
            Wanted::Deferred { until, why } => Self::Deferred { until: *until, why: *why },
        }
    }
}

/// What the dispatcher asks its store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Question {
    /// What is due to an endpoint.
    Due {
        /// The endpoint.
        endpoint: EndpointId,
        /// By then.
        now: Timestamp,
        /// No more than that.
        limit: u32,
    },
    /// Whose lease has ended.
    Leased {
        /// By then.
        until: Timestamp,
        /// No more than that.
        limit: u32,
    },
}

/// How much of a tape was compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Compared {
    /// Decisions about deliveries, made again.
    pub deliveries: u64,
    /// Decisions of gates, made again.
    pub gates: u64,
    /// Decisions about received events, made again.
    pub entries: u64,
    /// Commits that followed from a decision.
    pub commits: u64,
    /// Answers of stores, given again by the model's.
    pub reads: u64,
}

impl Compared {
    /// Adds another tape's.
    pub fn add(&mut self, other: &Self) {
        self.deliveries += other.deliveries;
        self.gates += other.gates;
        self.entries += other.entries;
        self.commits += other.commits;
        self.reads += other.reads;
    }
}

/// Where a tape does not say what it should.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The event, from 0.
    pub place: usize,
    /// What it says, and what it should.
    pub what: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {} of the tape: {}", self.place, self.what)
    }
}

impl std::error::Error for Mismatch {}

impl Tape {
    /// Plays the tape again; tells how much was compared.
    ///
    /// # Errors
    ///
    /// [`Mismatch`] with the first event that does not follow from those before it.
    pub fn check(&self) -> Result<Compared, Mismatch> {
        let mut compared = Compared::default();
        let mut replay = replay::Replay::default();
        let mut chains = chain::Chains::default();
        let mut shadow = shadow::Shadow::default();
        for (place, event) in self.events.iter().enumerate() {
            replay
                .see(event, &mut compared)
                .and_then(|()| chains.see(event, &mut compared))
                .and_then(|()| shadow.see(event, &mut compared))
                .map_err(|what| Mismatch { place, what })?;
        }
        Ok(compared)
    }
}

/// The tape of one history while it runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    tape: Tape,
    questions: u64,
}

impl Recorder {
    pub(crate) fn see(&self, event: Event) {
        self.with(|recorded| recorded.tape.events.push(event));
    }

    /// The dispatcher asks its store; tells the number of the question.
    pub(crate) fn asks(&self, question: Question) -> u64 {
        self.with(|recorded| {
            recorded.questions += 1;
            recorded.tape.events.push(Event::Asks(recorded.questions, question));
            recorded.questions
        })
    }

    /// A driver has decided something.
    pub(crate) fn decided(&self, decision: &Decision<'_>) {
        self.see(decision.into());
    }

    /// Plays the tape so far again.
    pub(crate) fn check(&self) -> Result<Compared, Mismatch> {
        self.with(|recorded| recorded.tape.check())
    }

    /// The tape, which is then empty.
    pub(crate) fn take(&self) -> Tape {
        self.with(|recorded| std::mem::take(&mut recorded.tape))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Recorded) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl From<&delivery::Ctx<'_>> for By<Policy> {
    fn from(ctx: &delivery::Ctx<'_>) -> Self {
        Self { now: ctx.now, entropy: ctx.entropy, rule: ctx.policy.clone() }
    }
}

impl From<&inbox::Ctx<'_>> for By<InboxRule> {
    fn from(ctx: &inbox::Ctx<'_>) -> Self {
        Self { now: ctx.now, entropy: ctx.entropy, rule: ctx.rule.clone() }
    }
}

impl From<&Decision<'_>> for Event {
    fn from(decision: &Decision<'_>) -> Self {
        match *decision {
            Decision::Delivery { state, ref ctx, input, result } => Self::Delivery {
                state: state.clone(),
                by: ctx.into(),
                input,
                result: result.clone(),
            },
            Decision::Gate { endpoint, ref asked, gate } => {
                Self::Gate { endpoint: endpoint.clone(), asked: asked.into(), gate: gate.clone() }
            }
            Decision::Entry { state, ref ctx, input, result } => {
                Self::Entry { state: state.clone(), by: ctx.into(), input, result: result.clone() }
            }
            Decision::Receipt { stored, source, event_id, now, receipt } => Self::Receipt {
                stored: stored.cloned(),
                source: source.clone(),
                event_id: event_id.clone(),
                now,
                receipt: receipt.clone(),
            },
        }
    }
}

impl From<&Asked<'_>> for AskedGate {
    fn from(asked: &Asked<'_>) -> Self {
        match *asked {
            Asked::Restore(stored) => Self::Restore(stored.clone()),
            Asked::Room { rule, now, result } => {
                Self::Room { rule: rule.clone(), now, result: *result }
            }
            Asked::Want { state, ref ctx, result } => {
                Self::Want { state: state.clone(), by: ctx.into(), result: result.into() }
            }
            Asked::Expire { state, ref ctx, result } => {
                Self::Expire { state: state.clone(), by: ctx.into(), result: result.clone() }
            }
            Asked::Renew { now, lease } => Self::Renew { now, lease },
            Asked::Learn { rule, now, permit, lesson, result } => {
                Self::Learn { rule: rule.clone(), now, permit, lesson, result }
            }
            Asked::Reset => Self::Reset,
        }
    }
}
