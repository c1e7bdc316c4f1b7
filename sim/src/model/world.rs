//! The model world: what there is, and how one thing follows another.

use std::sync::Arc;

use hookproof_core::policy::Policy;
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::crash_point::CrashPoint;

use super::application::Application;
use super::endpoint::Endpoint;
use super::hosts::{Hosts, Process};
use super::inbox::Inbox;
use super::network::{Reply, Request};
use super::owner::Owner;
use super::queue::Queue;
use super::receiver::{self, Receiver};
use super::record::Record;
use super::sender::{self, Sender};
use super::store::Store;
use super::{Options, downstream::Downstream};
use crate::choices::Choices;
use crate::fact::{End, Fact, PublishNo};
use crate::fault::{Fault, Faults};
use crate::history::{History, epoch};
use crate::scenario::{Operation, Scenario};
use crate::sometimes::Sometimes;
use crate::zoo::{HarnessMutant, Mutant, ReceiverMutant, SeededBug, SenderMutant};

/// Something that is planned to happen.
#[derive(Debug)]
pub(super) enum Event {
    /// A step of a process, in that life of it.
    Step(Process, u32, Step),
    /// The same, with which a commit ends that began then.
    Commit { process: Process, life: u32, began: Timestamp, step: Step },
    /// Something that is no process's doing.
    Happens(Happening),
}

/// A step of a process.
#[derive(Debug)]
pub(super) enum Step {
    /// Of a sender.
    Sender(sender::Step),
    /// Of a receiver.
    Receiver(receiver::Step),
}

/// Something that no process does.
#[derive(Debug)]
pub(super) enum Happening {
    /// The application publishes, for the first time or again.
    Publish(PublishNo),
    /// A process starts again.
    Boots(Process),
    /// A process that stood still goes on.
    Wakes(Process),
    /// A request arrives at the receiver.
    Arrives(Box<Request>),
    /// An answer arrives at the sender.
    Answered(Reply),
    /// A host's wall clock is set, by so many milliseconds.
    ClockStep(Process, i64),
    /// Somebody does something.
    Operation(Operation),
    /// The receiver behind an endpoint changes to its new secret.
    ChangesOver(u32),
    /// The sender drops an endpoint's old secret.
    DropsOld(u32),
    /// An endpoint that was disabled is enabled.
    Enables(u32),
    /// The first phase ends: from now on nothing goes wrong.
    FaultsEnd,
}

/// Which behaviour is wrong, if any.
#[derive(Clone, Copy, Default)]
pub(super) struct Wrong {
    pub(super) sender: Option<SenderMutant>,
    pub(super) receiver: Option<ReceiverMutant>,
    pub(super) harness: Option<HarnessMutant>,
    pub(super) seeded: Option<SeededBug>,
    pub(super) idle: Option<Fault>,
}

impl Wrong {
    pub(super) fn of(mutant: Option<Mutant>) -> Self {
        match mutant {
            None => Self::default(),
            Some(Mutant::Sender(mutant)) => Self { sender: Some(mutant), ..Self::default() },
            Some(Mutant::Receiver(mutant)) => Self { receiver: Some(mutant), ..Self::default() },
            Some(Mutant::Harness(mutant)) => Self { harness: Some(mutant), ..Self::default() },
            Some(Mutant::Seeded(bug)) => Self { seeded: Some(bug), ..Self::default() },
            Some(Mutant::Idle(fault)) => Self { idle: Some(fault), ..Self::default() },
        }
    }

    /// Whether this fault does nothing, though it was decided.
    pub(super) fn idles(&self, fault: Fault) -> bool {
        self.idle == Some(fault) || self.harness.is_some_and(|harness| harness.idles(fault))
    }
}

/// One history while it happens.
pub(super) struct World<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) options: Options,
    pub(super) wrong: Wrong,
    pub(super) choices: Choices,
    pub(super) now: Timestamp,
    pub(super) queue: Queue<Event>,
    pub(super) record: Record,
    /// The policy as the owner wants it; what a wrong sender makes of it is its own affair.
    pub(super) policy: Arc<Policy>,
    /// The policy as the sender understands it.
    pub(super) understood: Arc<Policy>,
    pub(super) faults: Faults,
    pub(super) faults_on: bool,
    /// Times in which the network between sender and receiver is cut.
    pub(super) partitions: Vec<(Timestamp, Timestamp)>,
    /// Times in which a store refuses every write: the sender's, the receiver's.
    pub(super) full: [Option<(Timestamp, Timestamp)>; 2],
    pub(super) hosts: Hosts,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) application: Application,
    pub(super) store: Store,
    pub(super) senders: Vec<Sender>,
    pub(super) inbox: Inbox,
    pub(super) receivers: Vec<Receiver>,
    pub(super) downstream: Downstream,
    pub(super) owner: Owner,
    /// Requests that have arrived, by which overtaking is seen.
    pub(super) arrivals: u64,
}

impl<'a> World<'a> {
    pub(super) fn new(
        scenario: &'a Scenario,
        choices: &Choices,
        wrong: Wrong,
        options: Options,
    ) -> Self {
        let choices = &HarnessMutant::choices_under(wrong.harness, choices);
        let faults = match &options.faults {
            Some(faults) => faults.clone(),
            None => Faults::swarm(choices, &scenario.faults),
        };
        let record = Record::new(scenario.bounds(), wrong.harness, options.is_traced);
        let policy = Arc::new(scenario.policy(choices));
        let mut world = Self {
            scenario,
            wrong,
            choices: choices.clone(),
            now: epoch(),
            queue: Queue::default(),
            record,
            understood: policy.clone(),
            policy,
            faults,
            faults_on: true,
            partitions: Vec::new(),
            full: [None, None],
            hosts: Hosts::default(),
            endpoints: Vec::new(),
            application: Application::default(),
            store: Store::default(),
            senders: Vec::new(),
            inbox: Inbox::default(),
            receivers: Vec::new(),
            downstream: Downstream::default(),
            owner: Owner::default(),
            arrivals: 0,
            options,
        };
        world.set_up();
        world
    }

    /// Lets everything happen, in its order, until it is over.
    pub(super) fn run(mut self) -> History {
        let limit = epoch().plus(self.scenario.safety).plus(self.scenario.liveness_bound);
        let mut is_drained = false;
        while self.record.violation.is_none() {
            let Some((at, event)) = self.queue.next() else {
                is_drained = self.is_drained();
                break;
            };
            if at > limit {
                break;
            }
            self.now = at;
            self.choices.fold(at.as_millis().unsigned_abs());
            match event {
                Event::Happens(happening) => self.happen(happening),
                Event::Step(process, life, step) => self.step(process, life, step, None),
                Event::Commit { process, life, began, step } => {
                    self.step(process, life, step, Some(began));
                }
            }
            if !self.faults_on && self.is_drained() {
                is_drained = true;
                break;
            }
        }
        self.end(is_drained)
    }

    fn end(mut self, is_drained: bool) -> History {
        self.record.end(self.now, &End { is_drained });
        if let Some(violation) = self.record.violation.clone() {
            self.record.line(violation.at, "checker", || {
                format!("VIOLATION {}: {}", violation.invariant, violation.what)
            });
        }
        let (deliveries, delivered, dead) = self.store.totals();
        let totals = crate::history::Totals { deliveries, delivered, dead, ..self.record.totals };
        self.record.counts.sometimes = std::mem::take(&mut self.record.sometimes);
        History {
            faults: self.faults,
            violation: self.record.violation.clone(),
            looks: self.record.checkers.looks(),
            lines: self.record.take_lines(),
            hash: format!("{:016x}", self.choices.digest()),
            simulated: self.now.since(epoch()),
            draws: self.choices.draws(),
            counts: self.record.counts,
            totals,
        }
    }

    /// A process takes a step, with which perhaps a commit ends that began then.
    fn step(&mut self, process: Process, life: u32, step: Step, began: Option<Timestamp>) {
        let host = self.hosts.get_mut(process);
        if host.life != life || !host.is_up {
            return;
        }
        if let Some(until) = host.paused_until.filter(|until| *until > self.now) {
            host.held_up += 1;
            self.queue.plan(until, Event::Step(process, life, step));
            return;
        }
        if let Some(began) = began {
            self.note_commit(began);
        }
        match step {
            Step::Sender(step) => self.sender_step(process.number(), step),
            Step::Receiver(step) => self.receiver_step(process.number(), step),
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Publish(publish) => self.publish(publish),
            Happening::Boots(process) => self.boot(process),
            Happening::Wakes(process) => self.wake(process),
            Happening::Arrives(request) => self.arrive(*request),
            Happening::Answered(reply) => self.answered(reply),
            Happening::ClockStep(process, by) => self.step_clock(process, by),
            Happening::Operation(operation) => self.operate(operation),
            Happening::ChangesOver(endpoint) => self.change_over(endpoint),
            Happening::DropsOld(endpoint) => self.drop_old_secret(endpoint),
            Happening::Enables(endpoint) => self.enable(endpoint),
            Happening::FaultsEnd => self.end_faults(),
        }
    }

    fn end_faults(&mut self) {
        self.faults_on = false;
        self.record.line(self.now, "plan", || "faults end".to_owned());
    }

    /// Whether nothing is left to do.
    fn is_drained(&self) -> bool {
        self.application.is_done()
            && self.store.is_settled()
            && self.inbox.is_settled()
            && self.owner.is_told(&self.store)
            && self.hosts.are_up()
    }

    /// Plans a step of a process, in its present life.
    pub(super) fn after(&mut self, span: Millis, process: Process, step: Step) {
        self.at(self.now.plus(span), process, step);
    }

    pub(super) fn at(&mut self, at: Timestamp, process: Process, step: Step) {
        let life = self.hosts.get(process).life;
        self.queue.plan(at.max(self.now), Event::Step(process, life, step));
    }

    pub(super) fn happens(&mut self, at: Timestamp, happening: Happening) {
        self.queue.plan(at.max(self.now), Event::Happens(happening));
    }

    pub(super) fn fact(&mut self, fact: &Fact<'_>) {
        self.record.fact(self.now, fact);
    }

    pub(super) fn sometimes(&mut self, what: Sometimes) {
        self.record.sometimes(what);
    }

    pub(super) fn is_sender(&self, mutant: SenderMutant) -> bool {
        self.wrong.sender == Some(mutant)
    }

    pub(super) fn is_receiver(&self, mutant: ReceiverMutant) -> bool {
        self.wrong.receiver == Some(mutant)
    }

    pub(super) fn has_bug(&self, bug: SeededBug) -> bool {
        self.wrong.seeded == Some(bug)
    }

    /// A wait within bounds.
    pub(super) fn span(
        &self,
        who: (&'static str, u32),
        what: &'static str,
        (lowest, highest): (Millis, Millis),
    ) -> Millis {
        Millis::new(self.choices.between(who, what, lowest.get(), highest.get()))
    }

    /// The same in steps of 100 ms.
    pub(super) fn tenths(
        &self,
        who: (&'static str, u32),
        what: &'static str,
        (lowest, highest): (Millis, Millis),
    ) -> Millis {
        let (lowest, highest) = (lowest.get() / 100, highest.get() / 100);
        Millis::new(self.choices.between(who, what, lowest, highest) * 100)
    }

    /// Passes a crash point; `true` if the process has ended there.
    pub(super) fn passes(&mut self, process: Process, point: CrashPoint) -> bool {
        self.record.passed(point);
        if !self.is_struck_at(process, point) || !self.does(process.crash_fault()) {
            return false;
        }
        self.record.crashed(point);
        self.record.line(self.now, process.name(), || format!("CRASH at {point}"));
        self.crash(process);
        true
    }

    fn is_struck_at(&mut self, process: Process, point: CrashPoint) -> bool {
        let fault = process.crash_fault();
        let per_mille = self.faults.per_mille(fault);
        if !self.faults_on || per_mille == 0 {
            return false;
        }
        let is_spent = self.options.crashes_in_all.is_some_and(|most| self.hosts.crashes() >= most);
        if is_spent || self.hosts.get(process).crashes >= self.scenario.crashes_max {
            return false;
        }
        let per_mille = (per_mille * frequency(point) / 4).clamp(1, 1000);
        if !self.choices.crash(process.who(), point.as_str(), per_mille) {
            return false;
        }
        self.record.chose(fault);
        true
    }

    /// How much is planned, by which an operation finds what it is about.
    pub(super) fn number(
        &self,
        who: (&'static str, u32),
        what: &'static str,
        below: usize,
    ) -> usize {
        let below = u64::try_from(below).unwrap_or(u64::MAX);
        usize::try_from(self.choices.draw(who, what, below)).unwrap_or(0)
    }
}

/// How often a crash strikes at a point compared with others, in quarters: points that are passed
/// all the time would otherwise take every crash, and those that are rarely passed none.
fn frequency(point: CrashPoint) -> u64 {
    match point {
        CrashPoint::StoreExecuted | CrashPoint::StoreCommitted => 1,
        CrashPoint::NoticeSent => 32,
        _ => 4,
    }
}
