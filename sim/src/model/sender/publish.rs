//! Publishes: one transaction for the event and a delivery to each endpoint, then the answer.

use hookproof_runtime::crash_point::CrashPoint;

use super::Step;
use crate::fact::{EventNo, Fact, PublishNo, Route};
use crate::model::hosts::Process;
use crate::model::world::{self, World};
use crate::sometimes::Sometimes;
use crate::zoo::SenderMutant;

impl World<'_> {
    pub(super) fn publish_arrives(
        &mut self,
        process: Process,
        publish: PublishNo,
        loses_answer: bool,
    ) {
        if self.passes(process, CrashPoint::PublishReceived) {
            return;
        }
        if let Some(refusal) = self.refuses(process) {
            // 503: the application asks again.
            self.gives_up_write(refusal);
            return;
        }
        let event = self.store.new_event_number();
        let answers_first = self.is_sender(SenderMutant::AckBeforeCommit)
            || self.is_sender(SenderMutant::ReplyBeforeGroupCommit)
            || self.is_sender(SenderMutant::EnqueueThenPersist);
        if answers_first {
            self.accept(publish, event, loses_answer);
        }
        if self.passes(process, CrashPoint::StoreExecuted) {
            return;
        }
        let step =
            Step::PublishCommits { publish, event, loses_answer, is_answered: answers_first };
        self.commits(process, world::Step::Sender(step));
    }

    pub(super) fn publish_commits(
        &mut self,
        process: Process,
        publish: PublishNo,
        event: EventNo,
        loses_answer: bool,
        is_answered: bool,
    ) {
        let stored = self.store.by_publish.get(&publish).copied();
        if let Some(stored) = stored {
            self.sometimes(Sometimes::PublishReplayed);
            if self.is_sender(SenderMutant::FanOutNotIdempotent) {
                for endpoint in self.store.endpoint_numbers() {
                    self.fact(&Fact::Doubled { route: Route { event: stored, endpoint } });
                }
            }
            if !is_answered {
                self.accept(publish, stored, loses_answer);
            }
            return;
        }
        let now = self.local(process);
        self.store.add_event(event, publish, now);
        self.fact(&Fact::Stored { event, publish });
        self.record.line(self.now, process.name(), || format!("commits {event}"));
        if self.is_sender(SenderMutant::PersistThenFanOut) {
            if self.passes(process, CrashPoint::StoreCommitted) {
                return;
            }
            let step = Step::FanOutCommits { event, publish, loses_answer };
            self.commits(process, world::Step::Sender(step));
            return;
        }
        if self.is_sender(SenderMutant::WatermarkScan) {
            self.fact(&Fact::Queued { event, waits: true });
        } else {
            self.fan_out(process, event);
        }
        if self.passes(process, CrashPoint::StoreCommitted) {
            self.sometimes(Sometimes::CrashedBeforeAck);
            return;
        }
        if self.passes(process, CrashPoint::PublishCommitted) {
            self.sometimes(Sometimes::CrashedBeforeAck);
            return;
        }
        self.poke_all();
        if !is_answered {
            self.accept(publish, event, loses_answer);
        }
        self.passes(process, CrashPoint::PublishAcked);
    }

    /// S02: the second of the two transactions.
    pub(super) fn fan_out_commits(
        &mut self,
        process: Process,
        event: EventNo,
        publish: PublishNo,
        loses_answer: bool,
    ) {
        self.fan_out(process, event);
        if self.passes(process, CrashPoint::PublishCommitted) {
            return;
        }
        self.poke_all();
        self.accept(publish, event, loses_answer);
    }

    /// A delivery to each endpoint that there is, whether or not it takes attempts now.
    pub(super) fn fan_out(&mut self, process: Process, event: EventNo) {
        let now = self.local(process);
        for endpoint in self.store.endpoint_numbers() {
            let row = self.store.endpoint(endpoint);
            if row.is_deleted {
                continue;
            }
            if !row.is_enabled {
                self.sometimes(Sometimes::PublishedWhileDisabled);
                if self.is_sender(SenderMutant::DisabledDropsEvents) {
                    continue;
                }
            }
            let route = Route { event, endpoint };
            let delivery = self.store.new_delivery(route, now);
            let row = self.store.add_row(route, delivery);
            self.tell_written(process, row, None, None, false, true);
        }
    }

    /// S38: what lies above the mark is fanned out, and the mark moves up.
    pub(super) fn fan_out_above_watermark(&mut self, process: Process) {
        let mark = self.store.watermark;
        let (above, below): (Vec<EventNo>, Vec<EventNo>) =
            self.store.not_fanned_out().into_iter().partition(|event| *event > mark);
        for event in &above {
            self.fan_out(process, *event);
            self.store.watermark = self.store.watermark.max(*event);
        }
        // What has committed below the mark is never looked at.
        for event in above.into_iter().chain(below) {
            self.fact(&Fact::Queued { event, waits: false });
        }
    }
}
