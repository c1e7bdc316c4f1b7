//! What is on the wire, as symbols: who signed what with which secret (Dolev and Yao 1983).

use hookproof_core::time::{Millis, Timestamp};

use super::hosts::Process;
use super::receiver;
use super::world::{Happening, Step, World};
use crate::fact::{EndpointNo, EventNo, PublishNo};
use crate::fault::Fault;
use crate::scenario::Operation;
use crate::sometimes::Sometimes;

/// The bytes of a body: those of a publish, as it was written or encoded again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Body {
    pub(super) publish: PublishNo,
    pub(super) is_reencoded: bool,
}

impl Body {
    pub(super) fn of(publish: PublishNo) -> Self {
        Self { publish, is_reencoded: false }
    }

    /// What a JSON library makes of it. Every other body happens to be written as it would write it.
    pub(super) fn reencoded(self) -> Self {
        Self { is_reencoded: self.publish.0.is_multiple_of(2), ..self }
    }

    pub(super) fn digest(self) -> u64 {
        u64::from(self.publish.0) * 2 + u64::from(self.is_reencoded)
    }
}

/// A signature: with this key over that content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Signature {
    pub(super) key: u32,
    pub(super) event: EventNo,
    pub(super) timestamp: i64,
    pub(super) body: Body,
}

/// Where the answer to a request goes: to an attempt of one life of a sender's process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ReplyTo {
    pub(super) process: Process,
    pub(super) life: u32,
    pub(super) attempt: u64,
    /// What happens to the answer on its way.
    pub(super) fault: Option<Fault>,
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) source: EndpointNo,
    pub(super) event: EventNo,
    /// A header that is not signed, another one in each attempt.
    pub(super) unsigned_id: u64,
    pub(super) body: Body,
    pub(super) timestamp: i64,
    pub(super) signatures: [Option<Signature>; 2],
    /// The signature header is no list of signatures.
    pub(super) is_malformed: bool,
    /// Whether an independent verifier accepted it when the receiver verified it.
    pub(super) is_valid: bool,
    /// `None`: nobody waits for the answer.
    pub(super) reply_to: Option<ReplyTo>,
    /// Why it exists, if not because the sender sent it.
    pub(super) made_by: Option<Fault>,
    /// How many requests had arrived when it was sent, if it is held back.
    pub(super) held_since: Option<u64>,
}

/// An answer on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply {
    pub(super) to: ReplyTo,
    pub(super) status: u16,
}

impl World<'_> {
    /// A line of the trace about what happens on the way.
    pub(super) fn tell(&mut self, text: impl FnOnce() -> String) {
        self.record.line(self.now, "network", text);
    }

    pub(super) fn is_partitioned(&self) -> bool {
        self.faults_on
            && self.partitions.iter().any(|(from, to)| *from <= self.now && self.now < *to)
    }

    /// The network takes a request from the sender, and does with it what the attempt's fault says.
    pub(super) fn carry(&mut self, request: Request, fault: Option<Fault>) {
        let who = ("network", request.source.0);
        let latency = self.span(who, "latency", self.scenario.latency);
        let event = request.event;
        match fault {
            Some(Fault::RequestLost) => self.tell(|| format!("loses the request of {event}")),
            Some(Fault::Reorder) => {
                let held = Millis::new(self.choices.between(who, "held for", 1, 30) * 100);
                self.tell(|| format!("holds the request of {event} back for {held}"));
                let request = Request { held_since: Some(self.arrivals), ..request };
                self.happens(self.now.plus(held), Happening::Arrives(Box::new(request)));
            }
            Some(Fault::Duplicate) => {
                let delays = self.options.pace.duplicates;
                let delay = delays[self.number(who, "duplicate delay", delays.len())];
                self.tell(|| format!("carries the request of {event} twice, {delay} apart"));
                let copy = Request { reply_to: None, made_by: Some(Fault::Duplicate), ..request };
                self.happens(self.now.plus(latency), Happening::Arrives(Box::new(request)));
                let at = self.now.plus(latency).plus(delay);
                self.happens(at, Happening::Arrives(Box::new(copy)));
            }
            _ => self.happens(self.now.plus(latency), Happening::Arrives(Box::new(request))),
        }
        self.attack(&request);
    }

    /// Others can send requests, too: again, with another timestamp, or without the secret.
    fn attack(&mut self, request: &Request) {
        let who = ("attacker", request.source.0);
        if self.strikes(who, Fault::ReplayAttack) {
            let seconds = [1, 30, 290, 310, 580][self.number(who, "replayed after", 5)];
            let at = self.now.plus(Millis::from_secs(seconds));
            let alters = self.choices.chance(who, "alters the timestamp", 300);
            let shift = i64::try_from(seconds).unwrap_or(0);
            let timestamp = if alters { request.timestamp + shift } else { request.timestamp };
            let event = request.event;
            self.tell(|| {
                let how = if alters { "under a new timestamp" } else { "as it was" };
                format!("somebody sends the request of {event} again in {seconds}s, {how}")
            });
            let copy = Request {
                timestamp,
                reply_to: None,
                made_by: Some(Fault::ReplayAttack),
                held_since: None,
                ..*request
            };
            if self.does(Fault::ReplayAttack) {
                self.happens(at, Happening::Arrives(Box::new(copy)));
            }
        }
        if self.strikes(who, Fault::Forgery) {
            let is_malformed = self.choices.chance(who, "malformed", 400);
            let event = request.event;
            self.tell(|| {
                let how = if is_malformed { "a malformed" } else { "no right" };
                format!("somebody without the secret sends {event}, with {how} signature")
            });
            let forged = Request {
                signatures: [None, None],
                is_malformed,
                reply_to: None,
                made_by: Some(Fault::Forgery),
                held_since: None,
                ..*request
            };
            if self.does(Fault::Forgery) {
                // Before the real one arrives, if possible: it has a body of its own.
                self.happens(self.now, Happening::Arrives(Box::new(forged)));
            }
        }
    }

    /// A request reaches the receiver's side.
    pub(super) fn arrive(&mut self, request: Request) {
        self.arrivals += 1;
        if let Some(to) = request.reply_to
            && let Some(track) = self.track(to.process, to.attempt)
        {
            track.has_arrived = true;
        }
        if request.held_since.is_some_and(|since| self.arrivals > since + 1) {
            self.record.fired(Fault::Reorder);
        }
        let who = ("network", request.source.0);
        let count = self.receivers.len();
        let number = u32::try_from(self.number(who, "which receiver", count)).unwrap_or(0);
        let process = Process::Receiver(number);
        if !self.hosts.get(process).is_up {
            // Nobody listens there any more.
            self.tell(|| format!("finds no receiver for {}", request.event));
            if let Some(to) = request.reply_to {
                self.reply(Reply { to, status: RESET });
            }
            return;
        }
        self.after(Millis::ZERO, process, Step::Receiver(receiver::Step::Judge(Box::new(request))));
    }

    /// The receiver's answer goes back.
    pub(super) fn answer(&mut self, request: &Request, status: u16) {
        let Some(to) = request.reply_to else { return };
        let now = self.now;
        if let Some(track) = self.track(to.process, to.attempt) {
            track.answered_at = Some(now);
        }
        self.reply(Reply { to, status });
    }

    fn reply(&mut self, reply: Reply) {
        let who = ("network", 0);
        let mut latency = self.span(who, "latency back", self.scenario.latency);
        let is_success = (200..300).contains(&reply.status);
        match reply.to.fault {
            Some(Fault::ResponseLost) if reply.status != RESET => {
                if is_success {
                    self.sometimes(Sometimes::CommittedButUnanswered);
                }
                self.tell(|| format!("loses the answer {}", reply.status));
                return;
            }
            Some(Fault::SlowResponse) => {
                let seconds = self.choices.between(who, "slow by", 1, 12);
                self.tell(|| format!("takes {seconds}s for the answer {}", reply.status));
                latency = latency.plus(Millis::from_secs(seconds));
            }
            _ => {}
        }
        self.happens(self.now.plus(latency), Happening::Answered(reply));
    }

    /// When something happens of which there are a few in the first phase.
    pub(super) fn some_time(&self, who: (&'static str, u32), what: &'static str) -> Timestamp {
        let safety = self.scenario.safety.get();
        self.now.plus(Millis::new(self.choices.draw(who, what, safety)))
    }

    /// Plans what people do.
    pub(super) fn plan_operations(&mut self) {
        let operations: Vec<Operation> = self.scenario.operations.clone();
        for (index, operation) in operations.into_iter().enumerate() {
            let who = ("people", u32::try_from(index).unwrap_or(0));
            for _ in 0..self.choices.between(who, "how often", 0, 4) {
                let at = self.some_time(who, "when");
                self.happens(at, Happening::Operation(operation));
            }
        }
    }
}

/// How the end of a connection is told among answers.
pub(super) const RESET: u16 = 0;
