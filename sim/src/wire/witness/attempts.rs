//! What is seen of attempts on the wire, and what became of the faults that met them.

use hookproof_core::delivery::{AttemptRecord, Phase};
use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::time::{Millis, Timestamp};

use super::{Moment, Witness};
use crate::fact::{Fact, SentRequest};
use crate::fault::Fault;
use crate::sometimes::Sometimes;
use crate::wire::host::{RECEIVER, SENDER};
use crate::wire::names::DeliveryNo;
use crate::wire::request::RawRequest;
use crate::wire::verify::{digest, digest_of, is_signed, is_timely, timestamp};

/// An attempt: its delivery, and its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::wire) struct AttemptName {
    pub(in crate::wire) delivery: DeliveryNo,
    pub(in crate::wire) number: u32,
}

/// What is known of an attempt beside its row.
#[derive(Clone, Debug, Default)]
pub(in crate::wire) struct Track {
    /// The fault that its connection was to meet.
    pub(in crate::wire) fault: Option<Fault>,
    /// It began while the hosts could not reach each other.
    pub(in crate::wire) met_partition: bool,
    /// A wrong sender connects to something else than was judged.
    pub(in crate::wire) is_diverted: bool,
    /// The receiver's address was called: what comes of it is its own answer.
    pub(in crate::wire) has_dialled: bool,
    is_sent: bool,
    /// The network kept the request.
    pub(in crate::wire) is_swallowed: bool,
    /// The network kept something of the response back.
    pub(in crate::wire) was_kept_back: bool,
    /// The receiver answered, whether or not the sender heard.
    is_answered: bool,
    /// What a `Retry-After` on the way to the sender asks for.
    asked: Option<Millis>,
}

impl Witness {
    /// An attempt of the delivery with that id.
    pub(in crate::wire) fn attempt(&mut self, delivery: &str, number: u32) -> AttemptName {
        AttemptName { delivery: self.names.delivery(delivery), number }
    }

    /// The attempt that a request says it is.
    fn attempt_of(&mut self, request: &RawRequest) -> AttemptName {
        *request.attempt.get_or_init(|| {
            let number = request.header("hookproof-attempt").and_then(|text| text.parse().ok());
            self.attempt(request.delivery(), number.unwrap_or(0))
        })
    }

    /// When the delivery of an attempt was created.
    pub(in crate::wire) fn created_at(&self, attempt: AttemptName) -> Option<Timestamp> {
        let id = self.names.delivery_id(attempt.delivery);
        self.sender.seen().delivery(id).map(|delivery| delivery.created_at)
    }

    /// What is known of an attempt, to be added to.
    pub(in crate::wire) fn track(&mut self, attempt: AttemptName) -> &mut Track {
        self.attempts.entry(attempt).or_default()
    }

    /// The same, by its request.
    pub(in crate::wire) fn track_of(&mut self, request: &RawRequest) -> &mut Track {
        let attempt = self.attempt_of(request);
        self.track(attempt)
    }

    pub(super) fn asked_by(&mut self, delivery: &str, number: u32) -> Option<Millis> {
        let attempt = self.attempt(delivery, number);
        self.attempts.get(&attempt).and_then(|track| track.asked)
    }

    /// A `Retry-After` that asks for that is on its way to the sender.
    pub(in crate::wire) fn asks(&mut self, request: &RawRequest, asked: Option<Millis>) {
        self.track_of(request).asked = asked;
    }

    /// An attempt connects to an address.
    pub(in crate::wire) fn dialled(
        &mut self,
        now: Timestamp,
        attempt: AttemptName,
        is_denied: bool,
    ) {
        let route = self.names.route(attempt.delivery);
        self.tell(now, &Fact::Dialled { route, is_denied });
    }

    /// A request of the sender is on the wire.
    pub(in crate::wire) fn sent(&mut self, at: &Moment, request: &RawRequest) {
        let name = self.attempt_of(request);
        self.track(name).is_sent = true;
        self.requests += 1;
        let state = self.sender.seen().delivery(request.delivery());
        // It may have been settled meanwhile; what counts is that the claim was written.
        // How a sender on trial goes about it, and until when, nobody knows.
        let is_on_trial = self.is_sender_on_trial();
        let is_claimed = is_on_trial || state.is_some_and(|state| state.attempts >= name.number);
        let began = match state.map(|state| state.phase) {
            Some(Phase::InFlight { attempt, started_at, .. }) if attempt == name.number => {
                at.truly(started_at)
            }
            _ => at.now,
        };
        let route = self.names.route(name.delivery);
        let id = request.header("webhook-id").unwrap_or_default();
        let is_signed = self.is_signed(request);
        self.reached_by_signatures(request, self.keys_of(request));
        let published = self.bodies.get(&route.event).copied();
        // With the id of nothing that was published it is an invention, and no other body.
        let body = digest(request.body());
        let stamped = Timestamp::from_secs(timestamp(request));
        let sent = SentRequest {
            route,
            attempt: name.number,
            event: self.names.event(id),
            body: (body, published.unwrap_or(if is_on_trial { body } else { 0 })),
            headers: digest_of(request.fields().map(|(name, _)| name)),
            timestamp: timestamp(request),
            wall: self.walls_since(began, at.wall),
            stood_still: self.stood_still_since(began, at.now),
            is_signed,
            is_claimed,
            by: at.life,
            ends_by: if is_on_trial { at.now } else { began.plus(self.total_timeout()) },
        };
        self.tell(at.now, &Fact::Sent(sent));
        self.see_clock(at.now, SENDER, stamped);
    }

    /// The sender no longer waits for an attempt: it has closed the connection, or it is gone.
    pub(in crate::wire) fn ended(&mut self, request: &RawRequest) {
        let name = self.attempt_of(request);
        let route = self.names.route(name.delivery);
        self.tell(self.latest(), &Fact::Ended { route, attempt: name.number });
    }

    fn keys_of(&self, request: &RawRequest) -> &[Vec<u8>] {
        self.keys.get(request.source()).map_or(&[], Vec::as_slice)
    }

    /// Whether a receiver whose wall clock shows `wall` must take a request.
    pub(in crate::wire) fn is_valid(&self, request: &RawRequest, wall: Timestamp) -> Option<bool> {
        match self.is_signed(request) {
            true => is_timely(request, wall.as_secs()),
            false => Some(false),
        }
    }

    fn is_signed(&self, request: &RawRequest) -> bool {
        let signed = || self.keys_of(request).iter().any(|key| is_signed(request, key));
        let (at, found) = request.is_signed.get_or_init(|| (self.key_changes, signed()));
        // In a rotation, the keys can have changed since.
        if *at == self.key_changes { *found } else { signed() }
    }

    /// The receiver answers a request, which was valid or not when it left for it.
    pub(in crate::wire) fn judged(
        &mut self,
        now: Timestamp,
        wall: Timestamp,
        request: &RawRequest,
        was_valid: Option<bool>,
        status: u16,
    ) {
        self.ask_receiver(now);
        let id = request.header("webhook-id").unwrap_or_default();
        self.journal.line(now, RECEIVER, format!("answers {status} to {id}"));
        let is_valid = self.is_valid(request, wall);
        if status == 200 {
            self.reached(Sometimes::DuplicateDeduplicated);
        }
        // If it grew too old on the way, nobody knows at which moment the receiver looked.
        let Some(is_valid) = is_valid.filter(|_| is_valid == was_valid) else { return };
        if !is_valid && self.is_signed(request) && (400..500).contains(&status) {
            self.reached(Sometimes::TimestampRefused);
        }
        let event = self.names.event(id);
        let source = self.names.source(request.source());
        self.tell(now, &Fact::Judged { source, event, is_valid, status });
    }

    /// The receiver answers the sender, and perhaps asks for that by a `Retry-After`.
    pub(in crate::wire) fn answered(&mut self, request: &RawRequest, asked: Option<Millis>) {
        let track = self.track_of(request);
        track.is_answered = true;
        track.asked = asked;
    }

    /// A fault is known by what it did, not by its having been chosen.
    pub(in crate::wire) fn judge_fault(
        &mut self,
        now: Timestamp,
        delivery: &str,
        record: &AttemptRecord,
    ) {
        let name = self.attempt(delivery, record.attempt);
        let Some(track) = self.attempts.get(&name) else { return };
        let failed = |wanted| record.outcome == Outcome::Failed { failure: wanted };
        if track.met_partition && failed(Failure::ConnectTimeout) {
            self.journal.fired(now, SENDER, Fault::Partition, "a connection timed out");
        }
        let Some(fault) = track.fault else { return };
        let status = match record.outcome {
            Outcome::Answered { status, .. } => status,
            Outcome::Failed { .. } | Outcome::Unknown => 0,
        };
        let has_happened = match fault {
            Fault::ConnectRefused => !track.has_dialled && failed(Failure::ConnectRefused),
            Fault::ConnectTimeout => {
                !track.has_dialled && !track.met_partition && failed(Failure::ConnectTimeout)
            }
            Fault::RequestLost => track.is_swallowed && failed(Failure::Timeout),
            Fault::ResponseLost => track.is_answered && failed(Failure::Timeout),
            Fault::ConnectionReset => track.is_answered && failed(Failure::Reset),
            Fault::DnsFailure => failed(Failure::Dns),
            Fault::DnsRebinding => failed(Failure::Blocked),
            Fault::Oversize => failed(Failure::Oversize),
            Fault::SlowResponse => track.was_kept_back && track.is_answered,
            // Whoever stood before the receiver answered, and the receiver did not.
            _ if track.is_answered => false,
            Fault::ServerError => status >= 500,
            Fault::TooManyRequests => status == 429,
            Fault::Redirect => (300..400).contains(&status),
            Fault::ClientError => (400..500).contains(&status),
            Fault::Gone => status == 410,
            _ => false,
        };
        if has_happened {
            match fault {
                Fault::ResponseLost => self.reached(Sometimes::CommittedButUnanswered),
                Fault::DnsRebinding => self.reached(Sometimes::AddressDenied),
                _ => {}
            }
            self.journal.fired(now, SENDER, fault, &record.outcome.to_string());
        }
    }
}
