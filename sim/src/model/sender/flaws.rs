//! What wrong senders do otherwise, where it is no question of order: each changes one thing.

use hookproof_core::delivery::{
    Committed, Ctx, DeadReason, Delivery, Input, Origin, Phase, Settled,
};
use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::policy::Policy;
use hookproof_core::schedule::Backoff;
use hookproof_core::time::{Millis, Timestamp};

use crate::fact::{EndpointNo, Fact, Route};
use crate::model::hosts::Process;
use crate::model::world::World;
use crate::zoo::{SeededBug, SenderMutant};

impl World<'_> {
    /// The policy as this sender understands it.
    pub(in crate::model) fn understand(&self) -> Policy {
        let mut policy = Policy::clone(&self.policy);
        if self.is_sender(SenderMutant::OneTooFew) {
            shorten(&mut policy.schedule.backoff);
        }
        if self.is_sender(SenderMutant::OneTooMany) {
            lengthen(&mut policy.schedule.backoff);
        }
        if self.is_sender(SenderMutant::BacklogAtOnce) {
            policy.gate.drain = None;
        }
        if self.is_sender(SenderMutant::LeaseShorterThanTimeout) {
            policy.total_timeout = Millis::from_secs(1);
            policy.lease_margin = Millis::from_secs(1);
        }
        if self.has_bug(SeededBug::ProbeFailsForFree)
            && let Some(breaker) = &mut policy.gate.breaker
        {
            breaker.pause_factor = 1;
        }
        if self.is_sender(SenderMutant::WindowFromFirstError)
            && let Some(breaker) = &mut policy.gate.breaker
        {
            breaker.window = None;
        }
        policy
    }

    /// What an outcome is taken for.
    pub(super) fn taken_for(&self, outcome: Outcome) -> Outcome {
        let success = Outcome::Answered { status: 200, retry_after: None };
        match outcome {
            Outcome::Failed { failure: Failure::Timeout }
                if self.is_sender(SenderMutant::TimeoutIsSuccess) =>
            {
                success
            }
            Outcome::Answered { status: 300..=399, .. }
                if self.is_sender(SenderMutant::RedirectIsSuccess) =>
            {
                success
            }
            Outcome::Answered { status: 404 | 410, .. }
                if self.is_sender(SenderMutant::GoneIsSuccess) =>
            {
                success
            }
            outcome => outcome,
        }
    }

    /// S09b: goes where a redirect leads. Every other one leads to an address that the policy denies;
    /// the rest lead back to where it came from, and are given up.
    pub(super) fn follow_redirect(&mut self, route: Route, outcome: Outcome) {
        let is_redirect = matches!(outcome, Outcome::Answered { status: 300..=399, .. });
        if !is_redirect || !self.is_sender(SenderMutant::RedirectIsFollowed) {
            return;
        }
        let is_denied = self.number(("gateway", route.endpoint.0), "redirects to", 2) == 1;
        self.tell(|| {
            let to = if is_denied { "a denied address" } else { "itself" };
            format!("redirects {route} to {to}, and the sender follows")
        });
        self.fact(&Fact::Dialled { route, is_denied });
    }

    /// What is written instead of what the machine decided.
    pub(super) fn bend(
        &self,
        mut committed: Committed,
        claimed: &Delivery,
        asked: Option<Millis>,
    ) -> Committed {
        let Some(record) = committed.record else { return committed };
        let Phase::Scheduled { due, origin } = committed.delivery.phase else { return committed };
        let finished = record.finished_at;
        let wait = due.since(finished);
        let bent = match self.wrong.sender {
            Some(SenderMutant::BackoffOverflow) => {
                Some(wrapping_due(&self.policy, committed.delivery.scheduled_attempts, finished))
            }
            Some(SenderMutant::JitterBelowRetryAfter) => {
                asked.map(|asked| finished.plus(wait.min(asked.percent(80))))
            }
            Some(SenderMutant::RetryAfterUnits) => {
                asked.map(|asked| finished.plus(Millis::new(asked.get() / 1000)))
            }
            Some(SenderMutant::RetryAfterThousandfold) => {
                asked.map(|asked| finished.plus(asked.times(1000)))
            }
            Some(SenderMutant::RetryAfterWraps) => {
                asked.map(|asked| wrapped(finished, asked.get()))
            }
            _ => None,
        };
        if let Some(due) = bent {
            committed.delivery.phase = Phase::Scheduled { due, origin };
        }
        let was_replay = matches!(
            claimed.phase,
            Phase::InFlight { origin: Origin::Replay { settled: Settled::Scheduled { .. } }, .. }
        );
        if was_replay && self.is_sender(SenderMutant::ResendEndsSchedule) {
            let reason = DeadReason::Exhausted;
            committed.delivery.phase = Phase::Dead { at: finished, reason };
        }
        committed
    }

    /// What follows from an outcome beside it.
    pub(super) fn flawed_aftermath(&mut self, process: Process, row: usize, committed: &Committed) {
        let Route { event, endpoint } = self.store.rows[row].route;
        match self.wrong.sender {
            Some(SenderMutant::LastSuccessDisables) => {
                let is_last =
                    committed.delivery.scheduled_attempts == self.policy.schedule.attempts_max();
                if is_last && matches!(committed.delivery.phase, Phase::Delivered { .. }) {
                    self.disable(endpoint, false);
                }
            }
            Some(SenderMutant::FanOutAsOneUnit) => {
                if !matches!(committed.delivery.phase, Phase::Scheduled { .. }) {
                    return;
                }
                let now = self.local(process);
                for other in self.store.endpoint_numbers() {
                    self.rearm(process, Route { event, endpoint: other }, now, |phase| {
                        matches!(phase, Phase::Delivered { .. })
                    });
                }
            }
            _ => {}
        }
    }

    fn rearm(&mut self, process: Process, route: Route, due: Timestamp, which: fn(&Phase) -> bool) {
        let Some(row) = self.store.routes.get(&route).copied() else { return };
        let stored = self.store.rows[row].state.clone();
        if !which(&stored.phase) {
            return;
        }
        let phase = Phase::Scheduled { due, origin: Origin::Schedule };
        self.store.write(row, Delivery { phase, version: stored.version + 1, ..stored });
        self.tell_written(process, row, None, None, false, false);
    }

    /// What a restart makes of what is stored.
    pub(super) fn rearm_after_restart(&mut self) {
        let process = Process::Sender(0);
        let is_rearmed = self.is_sender(SenderMutant::RestartRearms);
        let is_reset = self.is_sender(SenderMutant::AttemptsLostOnRestart);
        if (!is_rearmed && !is_reset) || self.hosts.get(process).life == 1 {
            return;
        }
        let now = self.local(process);
        for row in 0..self.store.rows.len() {
            let (route, stored) = (self.store.rows[row].route, self.store.rows[row].state.clone());
            if is_rearmed {
                self.rearm(process, route, now, |phase| matches!(phase, Phase::Dead { .. }));
            } else if stored.attempts > 0 && matches!(stored.phase, Phase::Scheduled { .. }) {
                let version = stored.version + 1;
                let reset = Delivery { attempts: 0, scheduled_attempts: 0, version, ..stored };
                self.store.write(row, reset);
                self.tell_written(process, row, None, None, false, false);
            }
        }
    }

    /// B01: the step once more, from the version that is stored instead of the one that was read.
    pub(super) fn over_cancellation(
        &self,
        row: usize,
        claimed: &Delivery,
        input: Input,
        ctx: Ctx<'_>,
    ) -> Option<Committed> {
        let stored = &self.store.rows[row].state;
        let is_met = self.has_bug(SeededBug::OutcomeOverCancellation)
            && matches!(stored.phase, Phase::Cancelled { .. });
        if !is_met {
            return None;
        }
        let read = Delivery { version: stored.version, ..claimed.clone() };
        read.handle(ctx, input).and_then(|step| step.onto(&read)).ok()
    }

    /// B04: what a row was before it is written.
    pub(super) fn note_newest(&mut self, row: usize) {
        if self.has_bug(SeededBug::NewestCommitLost) {
            self.store.newest = Some((row, self.store.rows[row].state.clone()));
        }
    }

    /// B04: the newest commit of the sender's store is not there after the crash.
    pub(in crate::model) fn take_back_newest(&mut self) {
        if let Some((row, before)) = self.store.newest.take() {
            self.store.write(row, before);
        }
    }

    /// S23: whether this failure fills a window that began at the first error.
    pub(super) fn fills_flawed_window(
        &mut self,
        process: Process,
        endpoint: EndpointNo,
        local: Timestamp,
    ) -> bool {
        let rule = self.policy.gate.breaker.as_ref().and_then(|breaker| breaker.window.clone());
        let Some(rule) = rule else { return false };
        let windows = &mut self.senders[process.number()].flaw.windows;
        let (first, count) = windows.entry(endpoint).or_insert((local, 0));
        if local.since(*first) >= rule.within {
            (*first, *count) = (local, 0);
        }
        *count += 1;
        let is_full = *count >= rule.failures;
        if is_full {
            windows.remove(&endpoint);
        }
        is_full
    }
}

/// One attempt less.
fn shorten(backoff: &mut Backoff) {
    match backoff {
        Backoff::List { waits } => {
            waits.pop();
        }
        Backoff::Linear { attempts_max, .. } | Backoff::Exponential { attempts_max, .. } => {
            *attempts_max = attempts_max.saturating_sub(1).max(1);
        }
    }
}

/// One attempt more.
fn lengthen(backoff: &mut Backoff) {
    match backoff {
        Backoff::List { waits } => waits.extend(waits.last().copied()),
        Backoff::Linear { attempts_max, .. } | Backoff::Exponential { attempts_max, .. } => {
            *attempts_max = attempts_max.saturating_add(1);
        }
    }
}

/// So many milliseconds later, counted in 32 bits that wrap.
fn wrapped(from: Timestamp, millis: u64) -> Timestamp {
    let low = u32::try_from(millis & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    let signed = i64::from(i32::from_ne_bytes(low.to_ne_bytes()));
    Timestamp::from_millis(from.as_millis() + signed)
}

/// The wait in 32 bits that wrap, as some have it.
fn wrapping_due(policy: &Policy, attempts: u32, finished: Timestamp) -> Timestamp {
    let base = policy.schedule.wait_before_jitter(1).unwrap_or(Millis::new(1000)).get();
    let base = u32::try_from(base).unwrap_or(u32::MAX);
    let wait = base.wrapping_mul(1_u32.checked_shl(attempts.saturating_sub(1)).unwrap_or(0));
    wrapped(finished, u64::from(wait))
}
