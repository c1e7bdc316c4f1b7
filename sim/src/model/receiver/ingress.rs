//! Requests: verified, recorded, and only then acknowledged.

use hookproof_core::id::{EventId, SourceId};
use hookproof_core::inbox::{Entry, Phase, Receipt};
use hookproof_core::time::Millis;
use hookproof_runtime::crash_point::CrashPoint;

use super::Step;
use super::verify::{Refusal, horizon};
use crate::fact::{EntryEnd, Fact};
use crate::fault::Fault;
use crate::model::hosts::Process;
use crate::model::inbox::{EntryRow, Key};
use crate::model::network::Request;
use crate::model::world::{self, World};
use crate::sometimes::Sometimes;
use crate::zoo::ReceiverMutant;

impl World<'_> {
    /// A request has been read.
    pub(super) fn judge(&mut self, process: Process, request: Request) {
        self.read_wall(process);
        let request = Request { is_valid: self.is_valid(process, &request), ..request };
        if self.passes(process, CrashPoint::RequestAccepted) {
            return;
        }
        if request.is_malformed && self.is_receiver(ReceiverMutant::CrashOnMalformed) {
            self.fact(&Fact::Broke { what: "the receiver: panic on a malformed signature header" });
            return;
        }
        if self.is_receiver(ReceiverMutant::RecordsBeforeVerify)
            && request.made_by == Some(Fault::Forgery)
        {
            self.inbox.burnt.insert((request.source, request.event));
        }
        if let Err(refusal) = self.verify(process, &request) {
            self.note_refusal(&request, refusal);
            self.respond(process, &request, 401);
            return;
        }
        if self.holding_signature(&request) == Some(1) {
            self.sometimes(Sometimes::SecondSignatureHeld);
        }
        if self.passes(process, CrashPoint::RequestVerified) {
            return;
        }
        let race = (request.source.0, request.event);
        if self.receiver(process).under_way.contains(&race) {
            self.sometimes(Sometimes::CopiesRaced);
        }
        if self.is_receiver(ReceiverMutant::AckBeforeCommit) {
            self.respond(process, &request, 200);
        }
        if self.is_receiver(ReceiverMutant::CheckThenInsert)
            && self.inbox.entries.contains_key(&self.key_of(&request))
        {
            self.respond(process, &request, 200);
            return;
        }
        self.receiver(process).under_way.push(race);
        if self.passes(process, CrashPoint::StoreExecuted) {
            return;
        }
        let step = Step::RecordCommits(Box::new(request));
        self.commits(process, world::Step::Receiver(step));
    }

    fn note_refusal(&mut self, request: &Request, refusal: Refusal) {
        self.sometimes(match (refusal, request.made_by) {
            (Refusal::Malformed, _) => Sometimes::MalformedRefused,
            (_, Some(Fault::Forgery)) => Sometimes::ForgeryRefused,
            (Refusal::Timestamp, _) => Sometimes::TimestampRefused,
            (Refusal::Signature, _) => Sometimes::ForgeryRefused,
        });
        if let Some(fault @ (Fault::Forgery | Fault::ReplayAttack)) = request.made_by {
            self.record.fired(fault);
        }
    }

    /// What this receiver knows an event by.
    fn key_of(&self, request: &Request) -> Key {
        let event = u64::from(request.event.0);
        match self.wrong.receiver {
            Some(ReceiverMutant::DedupByUnsignedHeader) => (request.source, request.unsigned_id),
            Some(ReceiverMutant::DedupAcrossSources) => (crate::fact::EndpointNo(0), event),
            _ => (request.source, event),
        }
    }

    /// The answer leaves; what it says is judged by one who knows.
    fn respond(&mut self, process: Process, request: &Request, status: u16) {
        let Request { source, event, is_valid, .. } = *request;
        self.record.line(self.now, process.name(), || {
            format!("answers {status} to {event} from {source}")
        });
        self.fact(&Fact::Judged { source, event, is_valid, status });
        self.answer(request, status);
    }

    /// The insert commits: new, or a duplicate. Both are acknowledged.
    pub(super) fn record_request(&mut self, process: Process, request: &Request) {
        let race = (request.source.0, request.event);
        let under_way = &mut self.receiver(process).under_way;
        if let Some(place) = under_way.iter().position(|other| *other == race) {
            under_way.remove(place);
        }
        let is_answered = self.is_receiver(ReceiverMutant::AckBeforeCommit);
        if let Some(refusal) = self.refuses(process) {
            self.gives_up_write(refusal);
            let status = match self.is_receiver(ReceiverMutant::SuccessOnStoreError) {
                true => 200,
                false => 503,
            };
            if !is_answered {
                self.respond(process, request, status);
            }
            return;
        }
        let key = self.key_of(request);
        self.forget_expired(key);
        let is_burnt = self.inbox.burnt.contains(&(request.source, request.event));
        let is_new = !is_burnt && !self.is_known(process, key);
        if is_new {
            self.insert(process, key, request);
        } else {
            self.note_duplicate(request);
        }
        if self.passes(process, CrashPoint::StoreCommitted)
            || self.passes(process, CrashPoint::InboxCommitted)
        {
            self.sometimes(Sometimes::CrashedBeforeAnswer);
            return;
        }
        if is_new && self.is_receiver(ReceiverMutant::InsertThenProcess) {
            let step = Step::ProcessCommits(Box::new(*request));
            self.commits(process, world::Step::Receiver(step));
            return;
        }
        if is_new {
            self.hand_to_worker(process, key);
        }
        if !is_answered {
            let conflicts = !is_new && self.is_receiver(ReceiverMutant::ConflictOnDuplicate);
            self.respond(process, request, if conflicts { 409 } else { 200 });
        }
        self.passes(process, CrashPoint::AckSent);
    }

    fn is_known(&self, process: Process, key: Key) -> bool {
        match self.wrong.receiver {
            Some(ReceiverMutant::DedupInMemory) => {
                self.receivers[process.number()].remembered.contains(&key)
            }
            // It has looked already, before.
            Some(ReceiverMutant::CheckThenInsert) => false,
            _ => self.inbox.entries.contains_key(&key),
        }
    }

    /// R09 and R10: the entry is gone once its time is over.
    fn forget_expired(&mut self, key: Key) {
        let Some(horizon) = horizon(self.wrong.receiver) else { return };
        let Some(row) = self.inbox.entries.get(&key) else { return };
        let is_final = row.entry.wake_at().is_none();
        if is_final && self.now.since(row.recorded_at) > horizon {
            self.inbox.remove(key);
        }
    }

    #[expect(clippy::expect_used, reason = "letters and digits are an identifier")]
    fn insert(&mut self, process: Process, key: Key, request: &Request) {
        let (source, event) = (request.source, request.event);
        let now = self.local(process);
        let id = EventId::new(format!("e{}", event.0)).expect("a valid id");
        let source_id = SourceId::new(format!("s{}", source.0)).expect("a valid id");
        let Receipt::New(entry) = Entry::receive(None, source_id, id, now) else { return };
        let row = EntryRow { source, event, body: request.body, entry, recorded_at: self.now };
        self.receiver(process).remembered.insert(key);
        self.fact(&Fact::Recorded { source, event });
        let processes_at_once = matches!(
            self.wrong.receiver,
            Some(ReceiverMutant::CheckThenInsert | ReceiverMutant::DedupInMemory)
        );
        let marks_first = self.is_receiver(ReceiverMutant::InsertThenProcess)
            || self.is_receiver(ReceiverMutant::EnqueueInMemory);
        let row = match processes_at_once || marks_first {
            true => {
                let phase = Phase::Applied { at: now };
                EntryRow { entry: Entry { phase, ..row.entry.clone() }, ..row }
            }
            false => row,
        };
        self.inbox.latest = self.inbox.latest.max(now);
        self.inbox.insert(key, row);
        if processes_at_once {
            self.have_effect(process, key);
            self.fact(&Fact::WorkedOff { source, event, end: EntryEnd::Applied });
        }
    }

    fn note_duplicate(&mut self, request: &Request) {
        match request.made_by {
            Some(Fault::Duplicate) => self.record.fired(Fault::Duplicate),
            Some(Fault::ReplayAttack) => {
                self.record.fired(Fault::ReplayAttack);
                self.sometimes(Sometimes::ReplayedRequest);
            }
            _ => {}
        }
        self.sometimes(Sometimes::DuplicateDeduplicated);
    }

    /// R01: the effect, after the id was committed as processed.
    pub(super) fn process_at_once(&mut self, process: Process, request: &Request) {
        let key = self.key_of(request);
        self.have_effect(process, key);
        let (source, event) = (request.source, request.event);
        self.fact(&Fact::WorkedOff { source, event, end: EntryEnd::Applied });
        self.respond(process, request, 200);
        self.passes(process, CrashPoint::AckSent);
    }

    fn hand_to_worker(&mut self, process: Process, key: Key) {
        let is_queued = self.is_receiver(ReceiverMutant::EnqueueInMemory)
            || self.is_receiver(ReceiverMutant::QueueWithoutSweep);
        if is_queued {
            self.receiver(process).queue.insert(key);
            self.after(Millis::new(1), process, world::Step::Receiver(Step::Look));
            return;
        }
        self.wake_workers();
    }
}
