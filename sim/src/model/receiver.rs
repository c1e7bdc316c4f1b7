//! A process of the receiver: what it knows besides the store, and its steps.

mod ingress;
mod verify;
mod work;

use std::collections::BTreeSet;

use hookproof_core::inbox::Input;
use hookproof_core::time::Timestamp;

use super::hosts::Process;
use super::inbox::Key;
use super::network::Request;
use super::world::{self, World};
use crate::fact::EventNo;
use crate::sometimes::Sometimes;
use crate::zoo::ReceiverMutant;

/// What a process of the receiver knows, which ends with it.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// Requests between their arrival and their answer.
    under_way: Vec<(u32, EventNo)>,
    /// The entry that the worker has, and since which claim.
    works_on: BTreeSet<Key>,
    /// Since when it has been at work that was decided to be slow, and how often the process had been
    /// held up by then.
    slow_since: Option<(Timestamp, u64)>,
    /// When the worker looks next.
    next_look: Option<Timestamp>,
    /// R08: what this process remembers.
    remembered: BTreeSet<Key>,
    /// R02 and R21: what is queued in memory.
    queue: BTreeSet<Key>,
}

/// A step of a process of the receiver.
#[derive(Debug)]
pub(super) enum Step {
    /// It has started.
    Start,
    /// It judges a request.
    Judge(Box<Request>),
    /// What a request brought commits, and is answered.
    RecordCommits(Box<Request>),
    /// R01: the second of two transactions.
    ProcessCommits(Box<Request>),
    /// The worker looks for work.
    Look,
    /// The worker's claim commits.
    ClaimCommits(Key),
    /// The work is done, and effect and mark are written.
    Applies(Key, u32),
    /// They commit.
    ApplyCommits(Key, u32),
    /// R05 and R06: the second of two transactions.
    SecondCommits(Key, u32),
}

impl World<'_> {
    pub(super) fn receiver_step(&mut self, number: usize, step: Step) {
        let process = Process::Receiver(u32::try_from(number).unwrap_or(0));
        match step {
            Step::Start => self.start_receiver(process),
            Step::Judge(request) => self.judge(process, *request),
            Step::RecordCommits(request) => self.record_request(process, &request),
            Step::ProcessCommits(request) => self.process_at_once(process, &request),
            Step::Look => self.look_for_work(process),
            Step::ClaimCommits(key) => self.claim_commits(process, key),
            Step::Applies(key, claim) => self.apply(process, key, claim),
            Step::ApplyCommits(key, claim) => self.apply_commits(process, key, claim),
            Step::SecondCommits(key, claim) => self.second_commits(process, key, claim),
        }
    }

    pub(super) fn receiver(&mut self, process: Process) -> &mut Receiver {
        &mut self.receivers[process.number()]
    }

    /// What was claimed by the only process belongs to a life of it that is gone.
    fn start_receiver(&mut self, process: Process) {
        let strands = self.is_receiver(ReceiverMutant::ClaimWithoutLease)
            || self.is_receiver(ReceiverMutant::QueueWithoutSweep);
        if self.receivers.len() == 1 && !strands {
            for key in self.inbox.claimed() {
                self.release(process, key, Input::OwnerLost);
            }
        }
        self.look_at(process, self.now);
    }

    pub(super) fn receiver_ends(&mut self, process: Process) {
        let ended = std::mem::take(self.receiver(process));
        if !ended.works_on.is_empty() {
            self.sometimes(Sometimes::CrashedAtWork);
        }
    }

    /// Plans that the worker looks, unless it does so sooner.
    fn look_at(&mut self, process: Process, at: Timestamp) {
        let at = at.max(self.now);
        let receiver = self.receiver(process);
        if receiver.next_look.is_some_and(|next| next <= at) {
            return;
        }
        receiver.next_look = Some(at);
        self.at(at, process, world::Step::Receiver(Step::Look));
    }

    /// There is work: every process that lives looks.
    fn wake_workers(&mut self) {
        for number in 0..self.receivers.len() {
            let process = Process::Receiver(u32::try_from(number).unwrap_or(0));
            if self.hosts.get(process).is_up {
                self.look_at(process, self.now);
            }
        }
    }
}
