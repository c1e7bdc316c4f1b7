//! What gates are told of attempts, and what becomes of permits.

use hookproof_core::classify::Signal;
use hookproof_core::dispatch::{self, Lesson};
use hookproof_core::gate::{Breaker, Gate, Permit};
use hookproof_core::outcome::Outcome;

use super::Attempt;
use crate::fact::{EndpointNo, Fact, is_success};
use crate::model::hosts::Process;
use crate::model::world::World;
use crate::sometimes::Sometimes;
use crate::zoo::SenderMutant;

impl World<'_> {
    pub(super) fn with_gate<T>(
        &mut self,
        process: Process,
        endpoint: EndpointNo,
        use_gate: impl FnOnce(&mut Gate) -> T,
    ) -> T {
        let stored = &self.store.endpoint(endpoint).gate;
        let gates = &mut self.senders[process.number()].gates;
        use_gate(gates.entry(endpoint).or_insert_with(|| Gate::restored(stored.clone())))
    }

    pub(super) fn give_back(
        &mut self,
        process: Process,
        endpoint: EndpointNo,
        permit: Option<Permit>,
        epoch: u64,
    ) {
        let Some(permit) = permit.filter(|_| self.is_present(endpoint, epoch)) else { return };
        let local = self.local(process);
        let rule = self.understood.gate.clone();
        let (is_probe, expires) = (permit.probe, permit.expires);
        self.with_gate(process, endpoint, |gate| {
            dispatch::learn(gate, &rule, local, permit, Lesson::NOTHING);
        });
        self.fact(&Fact::Signalled { endpoint, is_success: None, is_probe, expires, local });
    }

    /// Whether the gate is the one that gave out a permit in this epoch: one that a process has got
    /// since then knows nothing of it.
    pub(super) fn is_present(&self, endpoint: EndpointNo, epoch: u64) -> bool {
        epoch == self.store.endpoint(endpoint).shard.epoch
    }

    /// The breaker and the limits learn how an attempt ended.
    pub(super) fn signal(
        &mut self,
        process: Process,
        attempt: &mut Attempt,
        outcome: Outcome,
    ) -> bool {
        let endpoint = attempt.route.endpoint;
        let local = self.local(process);
        let judgement = self.policy.classification.judge(&outcome);
        let is_present = self.is_present(endpoint, attempt.epoch);
        let Some(permit) = attempt.permit.take().filter(|_| is_present) else {
            return false;
        };
        let (is_probe, expires) = (permit.probe, permit.expires);
        let mut rule = self.understood.gate.clone();
        let mut signal = judgement.signal;
        match self.wrong.sender {
            Some(SenderMutant::ProbeNotReleased) if is_probe && signal != Signal::Success => {
                self.sender(process).flaw.stuck.insert(endpoint);
            }
            Some(SenderMutant::PendingHidesStreak)
                if signal == Signal::Failure && self.under_way(process, endpoint) > 1 =>
            {
                signal = Signal::Neither;
            }
            Some(SenderMutant::WindowFromFirstError) if signal == Signal::Failure => {
                let is_full = self.fills_flawed_window(process, endpoint, local);
                if let Some(breaker) = rule.breaker.as_mut().filter(|_| is_full) {
                    breaker.failures_in_a_row = 1;
                }
            }
            _ => {}
        }
        let (before, after, transition) = self.with_gate(process, endpoint, |gate| {
            let before = gate.breaker();
            let lesson = Lesson { signal, throttle: judgement.throttle };
            let transition = dispatch::learn(gate, &rule, local, permit, lesson);
            (before, gate.breaker(), transition)
        });
        self.note_breaker(before, after, is_probe, signal);
        self.tell_breaker(process, endpoint, before, after);
        let is_success = is_success(judgement.signal);
        self.fact(&Fact::Signalled { endpoint, is_success, is_probe, expires, local });
        matches!(transition, Some(hookproof_core::gate::Transition::Disabled { .. }))
    }

    fn tell_breaker(
        &mut self,
        process: Process,
        endpoint: EndpointNo,
        before: Breaker,
        after: Breaker,
    ) {
        let what = match (before, after) {
            (Breaker::Closed { .. }, Breaker::Open { .. }) => "opens",
            (Breaker::HalfOpen { .. }, Breaker::Open { .. }) => "opens again",
            (Breaker::HalfOpen { .. }, Breaker::Closed { .. }) => "closes",
            _ => return,
        };
        let name = process.name();
        self.record.line(self.now, name, || format!("the breaker of {endpoint} {what}"));
    }

    fn note_breaker(&mut self, before: Breaker, after: Breaker, is_probe: bool, signal: Signal) {
        match (before, after) {
            (Breaker::Closed { .. }, Breaker::Open { .. }) => {
                self.sometimes(Sometimes::BreakerOpened);
            }
            (Breaker::HalfOpen { .. }, Breaker::Open { .. }) => {
                self.sometimes(Sometimes::ProbeFailed);
            }
            (Breaker::HalfOpen { .. }, Breaker::Closed { .. }) => {
                self.sometimes(Sometimes::BreakerClosed);
            }
            _ if is_probe && signal == Signal::Neither => self.sometimes(Sometimes::ProbeNeither),
            _ => {}
        }
    }
}
