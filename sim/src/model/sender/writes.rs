//! What a sender writes: outcomes, notices, and what people ask for.

use hookproof_core::delivery::{
    AttemptRecord, Committed, Ctx, DeadReason, Delivery, Input, Origin, Phase, Rejected, Settled,
};
use hookproof_core::outcome::Outcome;
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::crash_point::CrashPoint;

use super::{STORE_PAUSE, Step};
use crate::fact::{EndpointNo, Fact, Written};
use crate::model::hosts::Process;
use crate::model::store::NoticeRow;
use crate::model::world::{self, World};
use crate::sometimes::Sometimes;
use crate::zoo::SenderMutant;

/// An attempt whose outcome is known and not yet written.
#[derive(Debug)]
pub(in crate::model) struct Finished {
    pub(super) row: usize,
    pub(super) number: u32,
    pub(super) claimed: Delivery,
    pub(super) epoch: u64,
    pub(super) lease_until: Timestamp,
    pub(super) outcome: Outcome,
    pub(super) asked: Option<Millis>,
    pub(super) gives_up: bool,
}

impl World<'_> {
    /// Tells that a row is as it is now.
    pub(super) fn tell_written(
        &mut self,
        process: Process,
        row: usize,
        record: Option<&AttemptRecord>,
        asked: Option<Millis>,
        has_notice: bool,
        is_asked: bool,
    ) {
        let route = self.store.rows[row].route;
        self.store.latest = self.store.latest.max(self.local(process));
        let written = Written {
            route,
            state: &self.store.rows[row].state,
            record,
            asked,
            has_notice,
            by: self.hosts.life(process),
            epoch: self.store.endpoint(route.endpoint).shard.epoch,
            is_asked,
            clock_ahead: self.hosts.get(process).clock_ahead,
        };
        self.record.fact(self.now, &Fact::Written(written));
    }

    /// Writes what a step has become, with its notice.
    pub(super) fn write(
        &mut self,
        process: Process,
        row: usize,
        committed: &Committed,
        asked: Option<Millis>,
        is_asked: bool,
    ) {
        let route = self.store.rows[row].route;
        self.note_newest(row);
        self.store.write(row, committed.delivery.clone());
        let has_notice = committed.notice.is_some();
        self.tell_written(process, row, committed.record.as_ref(), asked, has_notice, is_asked);
        if has_notice {
            self.store.notices.push(NoticeRow { route, is_sent: false });
            self.notify(process);
        }
        if committed.disables_endpoint {
            self.sometimes(Sometimes::Gone);
            self.disable(route.endpoint, true);
        }
        self.note_end(process, row, committed);
    }

    fn note_end(&mut self, process: Process, row: usize, committed: &Committed) {
        let state = &committed.delivery;
        let what = match state.phase {
            Phase::Dead { reason: DeadReason::Exhausted, .. } => Some(Sometimes::Exhausted),
            Phase::Dead { reason: DeadReason::Expired, .. } => Some(Sometimes::Expired),
            Phase::Dead { reason: DeadReason::Refused, .. } => Some(Sometimes::Refused),
            _ => None,
        };
        if let Some(what) = what {
            self.sometimes(what);
        }
        if let Some(record) = &committed.record {
            if record.outcome == Outcome::Unknown {
                self.sometimes(Sometimes::UnknownOutcome);
            }
            let route = self.store.rows[row].route;
            let (attempt, outcome) = (record.attempt, record.outcome);
            let next = state.wake_at().map(|(at, _)| at.since(self.local(process)));
            self.record.line(self.now, process.name(), || {
                let then = match (state.phase, next) {
                    (Phase::Scheduled { .. }, Some(wait)) => format!("next in {wait}"),
                    (phase, _) => name(phase).to_owned(),
                };
                format!("{route}: attempt {attempt}: {outcome}; {then}")
            });
        }
    }

    pub(super) fn disable(&mut self, endpoint: EndpointNo, has_cause: bool) {
        let row = self.store.endpoint_mut(endpoint);
        if !row.is_enabled {
            return;
        }
        row.is_enabled = false;
        self.fact(&Fact::Disabled { endpoint, has_cause });
        self.record.line(self.now, "sender", || format!("{endpoint} is disabled"));
    }

    /// The outcome of an attempt is written, if the attempt is still this process's own.
    pub(super) fn record_commits(&mut self, process: Process, finished: Finished) {
        if let Some(refusal) = self.refuses(process) {
            self.gives_up_write(refusal);
            self.sometimes(Sometimes::OutcomeWaited);
            self.fact(&Fact::Hindered { until: self.now.plus(STORE_PAUSE) });
            if self.local(process) < finished.lease_until {
                let step = Step::RecordCommits(Box::new(finished));
                self.after(STORE_PAUSE, process, world::Step::Sender(step));
            } else {
                self.done_with(process, &finished);
            }
            return;
        }
        self.done_with(process, &finished);
        let Finished { row, number, claimed, epoch, outcome, asked, .. } = &finished;
        let route = self.store.rows[*row].route;
        let entropy =
            self.choices.bits(("delivery", route.event.0 * 64 + route.endpoint.0), "jitter");
        let policy = self.understood.clone();
        let ctx = Ctx { now: self.local(process), entropy, policy: &policy };
        let input = Input::Finished { attempt: *number, outcome: *outcome };
        let Ok(step) = claimed.handle(ctx, input) else { return };
        let guarded = step.clone().onto(&self.store.rows[*row].state);
        let over = self.over_cancellation(*row, claimed, input, ctx);
        let committed = match guarded.or_else(|stale| over.ok_or(stale)) {
            Ok(committed) if !self.is_fenced_off(route.endpoint, *epoch) => committed,
            _ if self.is_sender(SenderMutant::NoFencing) => {
                self.write_unguarded(process, *row, &step, *epoch);
                return;
            }
            Ok(_) | Err(_) => return,
        };
        let committed = self.bend(committed, claimed, *asked);
        if finished.gives_up {
            self.disable(route.endpoint, true);
        }
        self.keep_gate(process, route.endpoint);
        self.write(process, *row, &committed, *asked, false);
        self.note_wait(&committed, *asked);
        let was_replay =
            matches!(claimed.phase, Phase::InFlight { origin: Origin::Replay { .. }, .. });
        if was_replay && !matches!(committed.delivery.phase, Phase::Delivered { .. }) {
            self.sometimes(Sometimes::ReplayFailed);
        }
        self.flawed_aftermath(process, *row, &committed);
        if self.passes(process, CrashPoint::StoreCommitted) {
            return;
        }
        if self.passes(process, CrashPoint::AttemptRecorded) {
            return;
        }
        self.poke(process);
    }

    /// The process has done with an attempt, whether or not the store has taken what came of it.
    fn done_with(&mut self, process: Process, finished: &Finished) {
        self.sender(process).recording.remove(&(finished.row, finished.number));
        self.poke(process);
    }

    /// The gate is stored with each claim and each outcome.
    pub(super) fn keep_gate(&mut self, process: Process, endpoint: EndpointNo) {
        if let Some(gate) = self.sender(process).gates.get(&endpoint) {
            let stored = gate.stored();
            self.store.endpoint_mut(endpoint).gate = stored;
        }
    }

    /// S40: what a former owner writes, over whatever is there.
    fn write_unguarded(
        &mut self,
        process: Process,
        row: usize,
        step: &hookproof_core::delivery::Step,
        epoch: u64,
    ) {
        self.store.write(row, step.next().clone());
        let written = Written {
            route: self.store.rows[row].route,
            state: &self.store.rows[row].state,
            record: step.record(),
            asked: None,
            has_notice: false,
            by: self.hosts.life(process),
            epoch,
            is_asked: false,
            clock_ahead: self.hosts.get(process).clock_ahead,
        };
        self.record.fact(self.now, &Fact::Written(written));
    }

    fn note_wait(&mut self, committed: &Committed, asked: Option<Millis>) {
        let (Some(record), Phase::Scheduled { due, .. }, Some(asked)) =
            (&committed.record, committed.delivery.phase, asked)
        else {
            return;
        };
        let wait = due.since(record.finished_at);
        let most = self.policy.classification.retry_after_max;
        self.sometimes(if asked > most {
            Sometimes::RetryAfterCut
        } else if wait > asked {
            Sometimes::BackoffBeatRetryAfter
        } else {
            Sometimes::RetryAfterBeatBackoff
        });
    }

    /// Settles what former lives of the only process left under way: their outcome is unknown.
    pub(super) fn recover(&mut self, process: Process) {
        if self.is_sender(SenderMutant::InFlightIgnored) {
            return;
        }
        let under_way: Vec<usize> = self.store.leased().iter().map(|(_, row)| *row).collect();
        for row in under_way {
            self.settle(process, row, Input::OwnerLost);
        }
    }

    /// Ends a claim without an outcome.
    pub(super) fn settle(&mut self, process: Process, row: usize, input: Input) {
        let policy = self.understood.clone();
        let route = self.store.rows[row].route;
        let entropy =
            self.choices.bits(("delivery", route.event.0 * 64 + route.endpoint.0), "jitter");
        let ctx = Ctx { now: self.local(process), entropy, policy: &policy };
        let stored = &self.store.rows[row].state;
        let Ok(committed) = stored.handle(ctx, input).and_then(|step| step.onto(stored)) else {
            return;
        };
        if input == Input::LeaseExpired {
            self.sometimes(Sometimes::LeaseExpired);
        }
        self.write(process, row, &committed, None, false);
    }

    /// A person replays a delivery.
    pub(in crate::model) fn replay_one(&mut self) {
        let Some(row) = self.any_row() else { return };
        if self.store.endpoint(self.store.rows[row].route.endpoint).is_deleted {
            // The sender's API refuses it: nobody would ever send it.
            self.sometimes(Sometimes::ReplayRefused);
            return;
        }
        let process = Process::Sender(0);
        let now = self.local(process);
        let policy = self.policy.clone();
        let ctx = Ctx { now, entropy: 0, policy: &policy };
        let stored = self.store.rows[row].state.clone();
        match stored.handle(ctx, Input::Replay).and_then(|step| step.onto(&stored)) {
            Ok(committed) => {
                self.sometimes(match stored.phase {
                    Phase::Dead { .. } => Sometimes::ReplayedDead,
                    _ => Sometimes::ReplayedWaiting,
                });
                self.told_by_people("replay", row);
                self.write(process, row, &committed, None, true);
            }
            Err(Rejected::InFlight) if self.is_sender(SenderMutant::ResendClearsLease) => {
                let settled = Settled::Scheduled { due: now };
                let phase = Phase::Scheduled { due: now, origin: Origin::Replay { settled } };
                let cleared = Delivery { phase, version: stored.version + 1, ..stored };
                self.store.write(row, cleared);
                self.tell_written(process, row, None, None, false, true);
            }
            Err(_) => self.sometimes(Sometimes::ReplayRefused),
        }
        self.poke_all();
    }

    /// A person cancels a delivery.
    pub(in crate::model) fn cancel_one(&mut self) {
        if let Some(row) = self.any_row() {
            self.cancel(row);
        }
    }

    pub(in crate::model) fn cancel(&mut self, row: usize) {
        let process = Process::Sender(0);
        let policy = self.policy.clone();
        let ctx = Ctx { now: self.local(process), entropy: 0, policy: &policy };
        let stored = self.store.rows[row].state.clone();
        if let Ok(committed) = stored.handle(ctx, Input::Cancel).and_then(|step| step.onto(&stored))
        {
            if let Phase::InFlight { attempt, .. } = stored.phase {
                self.sometimes(Sometimes::CancelledInFlight);
                // Whoever cancels it waits for it no longer.
                self.fact(&Fact::Ended { route: self.store.rows[row].route, attempt });
            }
            self.told_by_people("cancel", row);
            self.write(process, row, &committed, None, true);
        }
    }

    fn told_by_people(&mut self, verb: &'static str, row: usize) {
        let route = self.store.rows[row].route;
        self.record.line(self.now, "people", || format!("{verb} {route}"));
    }

    /// More often than not one that is under way: what is over interests people less.
    fn any_row(&mut self) -> Option<usize> {
        let endpoints = self.store.endpoint_numbers();
        let open: Vec<usize> =
            endpoints.flat_map(|endpoint| self.store.open_rows(endpoint)).collect();
        if !open.is_empty() && self.choices.chance(("people", 0), "an open one", 700) {
            return Some(open[self.number(("people", 0), "open delivery", open.len())]);
        }
        let count = self.store.rows.len();
        (count > 0).then(|| self.number(("people", 0), "delivery", count))
    }

    /// A notice leaves, and arrives.
    pub(super) fn send_notice(&mut self, process: Process, notice: usize) {
        let NoticeRow { route, is_sent } = self.store.notices[notice];
        if is_sent {
            return;
        }
        let is_recorded_first = self.is_sender(SenderMutant::NoticeRecordedFirst);
        match is_recorded_first {
            true => self.store.notices[notice].is_sent = true,
            false => self.notify_owner(notice, route),
        }
        if self.passes(process, CrashPoint::NoticeSent) {
            return;
        }
        if is_recorded_first {
            self.notify_owner(notice, route);
            return;
        }
        self.commits(process, world::Step::Sender(Step::NoticeCommits(notice)));
    }

    pub(super) fn notice_commits(&mut self, process: Process, notice: usize) {
        self.sender(process).notifying.remove(&notice);
        if let Some(refusal) = self.refuses(process) {
            self.gives_up_write(refusal);
            self.notify(process);
            return;
        }
        self.store.notices[notice].is_sent = true;
    }
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Scheduled { .. } => "scheduled",
        Phase::InFlight { .. } => "in flight",
        Phase::Delivered { .. } => "delivered",
        Phase::Dead { .. } => "dead",
        Phase::Cancelled { .. } => "cancelled",
    }
}
