//! The worker: claims an entry, and applies its effect and its mark in one transaction.

use hookproof_core::inbox::{Ctx, Entry, Input, Phase};
use hookproof_core::ordering::{self, Decision, Late};
use hookproof_core::schedule::Backoff;
use hookproof_core::time::Millis;
use hookproof_runtime::crash_point::CrashPoint;

use super::Step;
use crate::fact::{EntryEnd, Fact};
use crate::fault::Fault;
use crate::model::FOREVER;
use crate::model::downstream::Heard;
use crate::model::hosts::Process;
use crate::model::inbox::Key;
use crate::model::world::{self, World};
use crate::scenario::Scenario;
use crate::sometimes::Sometimes;
use crate::zoo::{ReceiverMutant, SeededBug};

impl World<'_> {
    /// Looks for work; one piece at a time.
    pub(super) fn look_for_work(&mut self, process: Process) {
        self.receiver(process).next_look = None;
        if !self.receiver(process).works_on.is_empty() {
            return;
        }
        self.may_pause(process);
        if self.hosts.get(process).paused_until.is_some() {
            self.look_at(process, self.now);
            return;
        }
        if self.hosts.receivers.len() > 1 {
            self.follow_store(process);
        }
        let local = self.local(process);
        self.release_expired(process);
        let queued = self.is_receiver(ReceiverMutant::EnqueueInMemory)
            || self.is_receiver(ReceiverMutant::QueueWithoutSweep);
        let next = match queued {
            true => self.receiver(process).queue.pop_first(),
            false => self.inbox.first_due(local),
        };
        if let Some(key) = next {
            self.receiver(process).works_on.insert(key);
            self.commits(process, world::Step::Receiver(Step::ClaimCommits(key)));
            return;
        }
        if let Some((at, _)) = self.inbox.waiting().first().filter(|_| !queued) {
            let at = self.true_time(process, *at).max(self.now.plus(Millis::new(1)));
            if at < FOREVER {
                self.look_at(process, at);
            }
        }
    }

    fn release_expired(&mut self, process: Process) {
        for key in self.inbox.claimed() {
            self.release(process, key, Input::LeaseExpired);
        }
    }

    pub(super) fn release(&mut self, process: Process, key: Key, input: Input) {
        let stored = self.inbox.entries[&key].entry.clone();
        let rule = Scenario::inbox_rule();
        let entropy = self.choices.bits(process.who(), "inbox jitter");
        let ctx = Ctx { now: self.local(process), entropy, rule: &rule };
        if let Ok(next) = stored.handle(ctx, input).and_then(|step| step.onto(&stored)) {
            self.sometimes(Sometimes::WorkRetried);
            if self.has_bug(SeededBug::LostClaimIsApplied) {
                self.lost_claim_is_applied(key);
                return;
            }
            self.settle_entry(process, key, next);
        }
    }

    /// B03: whoever held the claim is taken to have finished.
    fn lost_claim_is_applied(&mut self, key: Key) {
        let row = &self.inbox.entries[&key];
        let (source, event) = (row.source, row.event);
        let phase = Phase::Applied { at: self.now };
        let entry = Entry { phase, ..row.entry.clone() };
        self.inbox.write(key, entry);
        self.fact(&Fact::WorkedOff { source, event, end: EntryEnd::Applied });
    }

    fn keep_entry(&mut self, process: Process, key: Key, entry: Entry) {
        self.inbox.latest = self.inbox.latest.max(self.local(process));
        self.inbox.write(key, entry);
    }

    /// Writes an entry that did not have its effect.
    fn settle_entry(&mut self, process: Process, key: Key, next: Entry) {
        let row = &self.inbox.entries[&key];
        let (source, event) = (row.source, row.event);
        let is_dead = matches!(next.phase, Phase::Dead { .. });
        self.keep_entry(process, key, next);
        if is_dead {
            self.fact(&Fact::WorkedOff { source, event, end: EntryEnd::GivenUp });
        }
    }

    pub(super) fn claim_commits(&mut self, process: Process, key: Key) {
        if let Some(refusal) = self.refuses(process) {
            self.gives_up_write(refusal);
            self.stops_work(process, key, Millis::new(200));
            return;
        }
        let Some(row) = self.inbox.entries.get(&key) else {
            self.stops_work(process, key, Millis::ZERO);
            return;
        };
        if self.is_receiver(ReceiverMutant::EnqueueInMemory) {
            // The id says that it is processed: what is left to do is the effect.
            let (shortest, _) = self.options.pace.work;
            self.after(shortest, process, world::Step::Receiver(Step::SecondCommits(key, 0)));
            return;
        }
        let mut rule = Scenario::inbox_rule();
        if self.is_receiver(ReceiverMutant::LeaseWithoutFence) {
            rule.lease = Millis::new(100);
        }
        if self.is_receiver(ReceiverMutant::ClaimWithoutLease) {
            rule.lease = FOREVER.since(self.now);
        }
        let stored = row.entry.clone();
        let ctx = Ctx { now: self.local(process), entropy: 0, rule: &rule };
        let claimed = stored.handle(ctx, Input::Claim).and_then(|step| step.onto(&stored));
        let Ok(claimed) = claimed else {
            self.stops_work(process, key, Millis::ZERO);
            return;
        };
        let claim = claimed.attempts;
        let (source, event) = (row.source, row.event);
        self.keep_entry(process, key, claimed);
        self.fact(&Fact::Claimed { source, event });
        if self.passes(process, CrashPoint::WorkClaimed) {
            return;
        }
        let mut span = self.span(process.who(), "work", self.options.pace.work);
        let is_slow = self.strikes(process.who(), Fault::SlowWork);
        if is_slow {
            let seconds = self.choices.between(process.who(), "work takes", 1, 12);
            if self.does(Fault::SlowWork) {
                span = Millis::from_secs(seconds);
            }
        }
        let slow_since = is_slow.then_some((self.now, self.hosts.get(process).held_up));
        self.receiver(process).slow_since = slow_since;
        self.after(span, process, world::Step::Receiver(Step::Applies(key, claim)));
        // Others can look after what this one holds for too long.
        self.wake_workers();
    }

    fn stops_work(&mut self, process: Process, key: Key, pause: Millis) {
        self.receiver(process).works_on.remove(&key);
        self.look_at(process, self.now.plus(pause));
    }

    /// The effect and the mark are written, in one transaction.
    pub(super) fn apply(&mut self, process: Process, key: Key, claim: u32) {
        self.see_slow_work(process);
        if self.scenario.downstream && !self.is_held(key, claim) {
            // Somebody else has it by now.
            self.stops_work(process, key, Millis::ZERO);
            return;
        }
        if self.passes(process, CrashPoint::EffectApplied) {
            return;
        }
        self.commits(process, world::Step::Receiver(Step::ApplyCommits(key, claim)));
    }

    /// What was decided to be slow took longer than its lease, and nothing else held it up.
    fn see_slow_work(&mut self, process: Process) {
        let Some((since, held_up)) = self.receiver(process).slow_since.take() else { return };
        let took = self.now.since(since);
        if took > Scenario::inbox_rule().lease && self.hosts.get(process).held_up == held_up {
            self.record.fired(Fault::SlowWork);
        }
    }

    fn is_held(&self, key: Key, claim: u32) -> bool {
        self.inbox.entries.get(&key).is_some_and(
            |row| matches!(row.entry.phase, Phase::Claimed { attempt, .. } if attempt == claim),
        )
    }

    pub(super) fn apply_commits(&mut self, process: Process, key: Key, claim: u32) {
        if let Some(refusal) = self.refuses(process) {
            self.gives_up_write(refusal);
            self.stops_work(process, key, Millis::new(200));
            return;
        }
        let is_held = self.is_held(key, claim);
        if !is_held && self.is_receiver(ReceiverMutant::LeaseWithoutFence) {
            self.have_effect(process, key);
            self.stops_work(process, key, Millis::ZERO);
            return;
        }
        if !is_held {
            if self.hosts.get(process).crashes == 0 {
                self.sometimes(Sometimes::PausedPastLease);
            }
            self.stops_work(process, key, Millis::ZERO);
            return;
        }
        let two_steps = matches!(
            self.wrong.receiver,
            Some(ReceiverMutant::ApplyThenMark | ReceiverMutant::MarkThenApply)
        );
        if two_steps {
            match self.is_receiver(ReceiverMutant::ApplyThenMark) {
                true => self.have_effect(process, key),
                false => self.mark(process, key, claim),
            }
            if self.passes(process, CrashPoint::WorkMarked) {
                return;
            }
            self.commits(process, world::Step::Receiver(Step::SecondCommits(key, claim)));
            return;
        }
        if self.scenario.downstream {
            let row = &self.inbox.entries[&key];
            let (source, event) = (row.source, row.event);
            if self.call_downstream(process, source, event) == Heard::Nothing
                && !self.is_receiver(ReceiverMutant::UnknownIsDone)
            {
                self.fail_work(process, key, claim);
                return;
            }
            self.mark(process, key, claim);
            self.fact(&Fact::WorkedOff { source, event, end: EntryEnd::Applied });
        } else {
            let end = self.apply_in_order(process, key);
            let row = &self.inbox.entries[&key];
            let (source, event) = (row.source, row.event);
            self.mark(process, key, claim);
            self.fact(&Fact::WorkedOff { source, event, end });
        }
        if self.passes(process, CrashPoint::WorkMarked) {
            return;
        }
        self.stops_work(process, key, Millis::ZERO);
    }

    /// The outcome of the call is unknown: it is made again, by the inbox's schedule.
    fn fail_work(&mut self, process: Process, key: Key, claim: u32) {
        let stored = self.inbox.entries[&key].entry.clone();
        let mut rule = Scenario::inbox_rule();
        if self.is_receiver(ReceiverMutant::UnknownIsFailed) {
            rule.schedule.backoff = Backoff::List { waits: Vec::new() };
        }
        let entropy = self.choices.bits(process.who(), "inbox jitter");
        let ctx = Ctx { now: self.local(process), entropy, rule: &rule };
        let failed = stored.handle(ctx, Input::Failed { attempt: claim });
        if let Ok(next) = failed.and_then(|step| step.onto(&stored)) {
            self.settle_entry(process, key, next);
        }
        self.stops_work(process, key, Millis::ZERO);
    }

    fn mark(&mut self, process: Process, key: Key, claim: u32) {
        let stored = self.inbox.entries[&key].entry.clone();
        let rule = Scenario::inbox_rule();
        let ctx = Ctx { now: self.local(process), entropy: 0, rule: &rule };
        let applied = stored.handle(ctx, Input::Applied { attempt: claim });
        if let Ok(next) = applied.and_then(|step| step.onto(&stored)) {
            self.keep_entry(process, key, next);
        }
    }

    /// R02, R05 and R06: what the first transaction left to do.
    pub(super) fn second_commits(&mut self, process: Process, key: Key, claim: u32) {
        let row = &self.inbox.entries[&key];
        let (source, event) = (row.source, row.event);
        match self.is_receiver(ReceiverMutant::ApplyThenMark) {
            true => self.mark(process, key, claim),
            false => self.have_effect(process, key),
        }
        self.fact(&Fact::WorkedOff { source, event, end: EntryEnd::Applied });
        self.stops_work(process, key, Millis::ZERO);
    }

    /// The effect, unless what it is about has moved on. Says how that ended.
    fn apply_in_order(&mut self, process: Process, key: Key) -> EntryEnd {
        let Some((entity, version)) = self.entity_of(key) else {
            self.have_effect(process, key);
            return EntryEnd::Applied;
        };
        let applied = self.inbox.entities.get(&entity).copied();
        let decision = match self.is_receiver(ReceiverMutant::NoVersionCompare) {
            true => Decision::Apply,
            false => ordering::judge(applied, version, Late::Ignore),
        };
        self.fact(&Fact::Seen { entity, version });
        if decision != Decision::Apply {
            self.sometimes(Sometimes::OlderArrivedLate);
            return EntryEnd::Superseded { version: Some((entity, version)) };
        }
        self.inbox.entities.insert(entity, version);
        self.fact(&Fact::Entity { entity, version });
        self.have_effect(process, key);
        EntryEnd::Applied
    }

    /// Every integration has entities of its own.
    fn entity_of(&self, key: Key) -> Option<(u32, u64)> {
        let count = u32::try_from(self.scenario.entities).unwrap_or(u32::MAX);
        if count == 0 {
            return None;
        }
        let row = &self.inbox.entries[&key];
        let publish = row.body.publish.0;
        let entity = row.source.0 * count + publish % count;
        Some((entity, u64::from(publish / count) + 1))
    }

    /// The effect is committed.
    pub(super) fn have_effect(&mut self, process: Process, key: Key) {
        let row = &self.inbox.entries[&key];
        let (source, event) = (row.source, row.event);
        self.record.totals.effects += 1;
        self.record.line(self.now, process.name(), || format!("effect of {event} from {source}"));
        self.fact(&Fact::Effect { source, event });
    }
}
