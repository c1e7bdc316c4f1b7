//! One attempt: resolve, connect, send, hear what comes back.

use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::retry_after;
use hookproof_core::time::Millis;
use hookproof_runtime::crash_point::CrashPoint;

use super::writes::Finished;
use super::{Attempt, Step};
use crate::asked;
use crate::fact::{EndpointNo, EventNo, Fact, SentRequest};
use crate::fault::{ConnectionFault, Fault};
use crate::model::hosts::Process;
use crate::model::network::{Body, RESET, Reply, ReplyTo, Request, Signature};
use crate::model::world::{self, Happening, World};
use crate::scenario::Break;
use crate::sometimes::Sometimes;
use crate::zoo::SenderMutant;

/// What a name resolves to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Resolved {
    /// What the policy allows.
    Allowed,
    /// An address that it denies.
    Denied,
    /// An allowed one, and then a denied one.
    Mixed,
    /// An allowed one now, a denied one if asked again.
    Rebound,
}

impl World<'_> {
    /// What is decided for the connection of an attempt.
    pub(super) fn fault_of_attempt(&mut self, endpoint: EndpointNo) -> Option<Fault> {
        if !self.faults_on {
            return None;
        }
        match self.faults.on_connection(&self.choices, ("network", endpoint.0)) {
            ConnectionFault::Kind(fault) => Some(fault),
            ConnectionFault::None => None,
        }
    }

    pub(super) fn dial(&mut self, process: Process, id: u64) {
        let Some(attempt) = self.senders[process.number()].attempts.get(&id) else { return };
        let (route, fault, deadline) = (attempt.route, attempt.fault, attempt.deadline);
        if self.now >= deadline {
            self.time_out(process, id);
            return;
        }
        let who = ("network", route.endpoint.0);
        let ends = |world: &mut Self, span, failure| {
            let step = Step::Ends(id, Outcome::Failed { failure });
            world.after(span, process, world::Step::Sender(step));
        };
        let latency = self.span(who, "latency", self.scenario.latency);
        if fault == Some(Fault::DnsFailure) {
            ends(self, latency, Failure::Dns);
            return;
        }
        let resolved = match fault {
            Some(Fault::DnsRebinding) => [Resolved::Denied, Resolved::Mixed, Resolved::Rebound]
                [self.number(who, "resolves to", 3)],
            _ => Resolved::Allowed,
        };
        let is_blocked = match resolved {
            Resolved::Allowed | Resolved::Rebound => false,
            Resolved::Denied => true,
            Resolved::Mixed => !self.is_sender(SenderMutant::FirstAnswerOnly),
        };
        if is_blocked {
            self.sometimes(Sometimes::AddressDenied);
            ends(self, latency, Failure::Blocked);
            return;
        }
        let is_denied = match resolved {
            Resolved::Mixed => true,
            Resolved::Rebound => self.is_sender(SenderMutant::ResolvesTwice),
            Resolved::Allowed | Resolved::Denied => false,
        };
        self.fact(&Fact::Dialled { route, is_denied });
        let fails = self.endpoints[index(route.endpoint)].fails(self.now);
        let is_down = self.hosts.receivers.iter().all(|host| !host.is_up);
        let patience = self.policy.connect_timeout;
        let is_cut = self.is_partitioned();
        if let Some(track) = self.track(process, id) {
            track.met_partition = is_cut;
            track.is_shadowed |= is_cut || is_down || fails == Some(Break::Refuses);
        }
        if is_cut {
            self.tell(|| format!("is cut between the sender and {}", route.endpoint));
            ends(self, patience, Failure::ConnectTimeout);
        } else if fails == Some(Break::Refuses) || fault == Some(Fault::ConnectRefused) || is_down {
            ends(self, latency, Failure::ConnectRefused);
        } else if fault == Some(Fault::ConnectTimeout) {
            ends(self, patience, Failure::ConnectTimeout);
        } else {
            self.after(latency, process, world::Step::Sender(Step::Sends(id)));
        }
    }

    /// The request is written, and with its last byte it is the network's.
    pub(super) fn send(&mut self, process: Process, id: u64) {
        if self.passes(process, CrashPoint::AttemptConnected) {
            return;
        }
        let Some(attempt) = self.senders[process.number()].attempts.get_mut(&id) else { return };
        if self.now >= attempt.deadline {
            self.time_out(process, id);
            return;
        }
        attempt.track.is_sent = true;
        attempt.track.is_shadowed |=
            self.endpoints[index(attempt.route.endpoint)].fails(self.now).is_some();
        let (fault, route, number) = (attempt.fault, attempt.route, attempt.number);
        let request = self.request(process, id);
        self.tell_sent(process, id, &request);
        self.record.totals.requests += 1;
        self.record.line(self.now, process.name(), || format!("POST {route} attempt {number}"));
        let who = ("network", route.endpoint.0);
        let latency = self.span(who, "latency", self.scenario.latency);
        match self.gateway(process, route.endpoint, fault) {
            Gateway::Answers { outcome, asked } => {
                self.tell(|| format!("a gateway answers {outcome} for {}", route.endpoint));
                if let Some(attempt) = self.senders[process.number()].attempts.get_mut(&id) {
                    attempt.asked = asked;
                }
                self.after(latency, process, world::Step::Sender(Step::Ends(id, outcome)));
            }
            Gateway::Swallows => self.tell(|| format!("{} never answers", route.endpoint)),
            Gateway::Passes => self.carry(request, fault),
        }
        self.passes(process, CrashPoint::AttemptSent);
    }

    /// What stands before the receiver may answer in its place.
    fn gateway(&mut self, process: Process, endpoint: EndpointNo, fault: Option<Fault>) -> Gateway {
        let who = ("gateway", endpoint.0);
        let status = match (self.endpoints[index(endpoint)].fails(self.now), fault) {
            (Some(Break::Hangs), _) => return Gateway::Swallows,
            (Some(Break::Answers404), _) => 404,
            (Some(_), _) => 500,
            (None, Some(Fault::ServerError)) => [500, 502, 503, 504][self.number(who, "5xx", 4)],
            (None, Some(Fault::TooManyRequests)) => 429,
            (None, Some(Fault::Redirect)) => [301, 302, 307, 308][self.number(who, "3xx", 4)],
            (None, Some(Fault::ClientError)) => [400, 401, 403, 404][self.number(who, "4xx", 4)],
            (None, Some(Fault::Gone)) => 410,
            (None, Some(Fault::Oversize)) => {
                let outcome = Outcome::Failed { failure: Failure::Oversize };
                return Gateway::Answers { outcome, asked: None };
            }
            (None, _) => return Gateway::Passes,
        };
        let mut answer = Outcome::Answered { status, retry_after: None };
        let mut truly = None;
        if matches!(fault, Some(Fault::TooManyRequests | Fault::ServerError)) && status != 500 {
            let wall = self.wall(process);
            let field = asked::draw(&self.choices, who, wall);
            if let Some(field) = field {
                if let Some(what) = field.sometimes {
                    self.sometimes(what);
                }
                let retry_after = retry_after::parse(field.value.as_bytes(), wall);
                answer = Outcome::Answered { status, retry_after };
                truly = field.asked;
            }
        }
        Gateway::Answers { outcome: answer, asked: truly }
    }

    fn request(&mut self, process: Process, id: u64) -> Request {
        let wall = self.read_wall(process).as_secs();
        let attempt = &self.senders[process.number()].attempts[&id];
        let (route, number, fault) = (attempt.route, attempt.number, attempt.fault);
        let row = self.store.events[&route.event];
        let is_retry = number > 1;
        let mut body = Body::of(row.publish);
        if is_retry && self.is_sender(SenderMutant::ReencodedBody) {
            body = body.reencoded();
        }
        let event = if is_retry && self.is_sender(SenderMutant::NewIdOnRetry) {
            EventNo(1_000_000 + u32::try_from(id).unwrap_or(0))
        } else {
            route.event
        };
        let timestamp = match self.is_sender(SenderMutant::FrozenTimestamp) {
            true => row.created_at.as_secs(),
            false => wall,
        };
        let keys = &self.store.endpoint(route.endpoint).keys;
        let mut signatures = [None, None];
        for (place, key) in signatures.iter_mut().zip(keys) {
            *place = Some(Signature { key: *key, event, timestamp, body });
        }
        if is_retry && self.is_sender(SenderMutant::UnsignedRetry) {
            signatures = [None, None];
        }
        if signatures[1].is_some() {
            self.sometimes(Sometimes::SignedTwice);
        }
        let life = self.hosts.get(process).life;
        Request {
            source: route.endpoint,
            event,
            unsigned_id: id,
            body,
            timestamp,
            signatures,
            is_malformed: false,
            is_valid: false,
            reply_to: Some(ReplyTo { process, life, attempt: id, fault }),
            made_by: None,
            held_since: None,
        }
    }

    fn tell_sent(&mut self, process: Process, id: u64, request: &Request) {
        let attempt = &self.senders[process.number()].attempts[&id];
        let stored = &self.store.rows[attempt.row].state;
        // It may have been cancelled meanwhile; what counts is that the claim was written.
        let is_claimed = stored.attempts >= attempt.number;
        let publish = self.store.events[&attempt.route.event].publish;
        let receiver_key = self.endpoints[index(attempt.route.endpoint)].receiver_key;
        let is_signed = request.signatures.iter().flatten().any(|signature| {
            signature.key == receiver_key
                && signature.event == request.event
                && signature.body == request.body
        });
        let sent = SentRequest {
            route: attempt.route,
            attempt: attempt.number,
            event: request.event,
            body: (request.body.digest(), Body::of(publish).digest()),
            headers: u64::from(request.signatures[0].is_some()),
            timestamp: request.timestamp,
            wall: (self.wall(process), self.wall(process)),
            // It is signed when it is written.
            stood_still: Millis::ZERO,
            is_signed,
            is_claimed,
            by: self.hosts.life(process),
            ends_by: attempt.deadline,
        };
        self.fact(&Fact::Sent(sent));
    }

    pub(super) fn time_out(&mut self, process: Process, id: u64) {
        if self.senders[process.number()].attempts.contains_key(&id) {
            self.finish(process, id, Outcome::Failed { failure: Failure::Timeout });
        }
    }

    /// An answer arrives, perhaps at nobody who waits for it.
    pub(in crate::model) fn answered(&mut self, reply: Reply) {
        let ReplyTo { process, life, attempt: id, fault } = reply.to;
        let host = self.hosts.get(process);
        if host.life != life || !host.is_up {
            return;
        }
        if let Some(until) = host.paused_until.filter(|until| *until > self.now) {
            self.hosts.get_mut(process).held_up += 1;
            self.happens(until, Happening::Answered(reply));
            return;
        }
        let Some(attempt) = self.senders[process.number()].attempts.get(&id) else {
            if (200..300).contains(&reply.status) {
                self.sometimes(Sometimes::LateSuccess);
            }
            return;
        };
        if self.now >= attempt.deadline {
            self.time_out(process, id);
            return;
        }
        let outcome = match (reply.status, fault) {
            (RESET, _) | (_, Some(Fault::ConnectionReset)) => {
                Outcome::Failed { failure: Failure::Reset }
            }
            (status, _) => Outcome::Answered { status, retry_after: None },
        };
        self.finish(process, id, outcome);
    }

    /// The attempt is over: the gate learns it, and it is written.
    pub(super) fn finish(&mut self, process: Process, id: u64, outcome: Outcome) {
        if let Outcome::Answered { .. } = outcome
            && self.senders[process.number()].attempts.contains_key(&id)
            && self.passes(process, CrashPoint::AttemptAnswered)
        {
            return;
        }
        let Some(mut attempt) = self.sender(process).attempts.remove(&id) else { return };
        self.follow_redirect(attempt.route, outcome);
        self.fact(&Fact::Ended { route: attempt.route, attempt: attempt.number });
        self.note_fault(process, &attempt, outcome);
        let outcome = self.taken_for(outcome);
        let gives_up = self.signal(process, &mut attempt, outcome);
        let Attempt { row, number, claimed, epoch, lease_until, asked, .. } = attempt;
        let finished =
            Finished { row, number, claimed, epoch, lease_until, outcome, asked, gives_up };
        if self.passes(process, CrashPoint::StoreExecuted) {
            return;
        }
        self.sender(process).recording.insert((row, number));
        let step = Step::RecordCommits(Box::new(finished));
        self.commits(process, world::Step::Sender(step));
        // A place is free, and perhaps a permit.
        self.poke(process);
    }
}

/// What a gateway does with a request.
enum Gateway {
    Answers { outcome: Outcome, asked: Option<Millis> },
    Swallows,
    Passes,
}

fn index(endpoint: EndpointNo) -> usize {
    usize::try_from(endpoint.0).unwrap_or(usize::MAX)
}
