//! A process of the sender: what it knows besides the store, and its steps.

mod attempt;
mod dispatch;
mod flaws;
mod lessons;
mod publish;
mod shards;
mod writes;

use std::collections::{BTreeMap, BTreeSet};

use hookproof_core::delivery::{Delivery, Phase};
use hookproof_core::gate::{Gate, Permit};
use hookproof_core::time::{Millis, Timestamp};

use super::hosts::Process;
use super::trouble::Track;
use super::world::{self, World};
use crate::fact::{EndpointNo, EventNo, Fact, PublishNo, Route};
use crate::fault::Fault;
use crate::sometimes::Sometimes;
use crate::zoo::SenderMutant;

pub(super) use writes::Finished;

/// What a process of the sender knows, which ends with it.
#[derive(Debug, Default)]
pub(super) struct Sender {
    pub(super) gates: BTreeMap<EndpointNo, Gate>,
    pub(super) attempts: BTreeMap<u64, Attempt>,
    /// Attempts whose outcome waits for the store: the row, and the number there.
    recording: BTreeSet<(usize, u32)>,
    /// When the next pass is planned, by the true clock.
    next_pass: Option<Timestamp>,
    /// Notices that are on their way.
    notifying: BTreeSet<usize>,
    /// What a wrong sender has forgotten, or keeps where it should not.
    flaw: Flaw,
}

/// What only wrong senders know.
#[derive(Debug, Default)]
struct Flaw {
    /// S13: rows whose timers were lost.
    lost: BTreeSet<usize>,
    /// S21: endpoints whose probe was never given back.
    stuck: BTreeSet<EndpointNo>,
    /// S23: when the first error of the window was, and how many there were.
    windows: BTreeMap<EndpointNo, (Timestamp, u32)>,
}

/// An attempt under way.
#[derive(Debug)]
pub(super) struct Attempt {
    row: usize,
    route: Route,
    number: u32,
    permit: Option<Permit>,
    /// The delivery as it was claimed.
    claimed: Delivery,
    /// The epoch of the shard in which it was claimed.
    epoch: u64,
    /// When it ends at the latest, by the true clock.
    deadline: Timestamp,
    lease_until: Timestamp,
    /// What happens to its connection.
    fault: Option<Fault>,
    /// What it meets there.
    pub(super) track: Track,
    /// What a `Retry-After` really asked for.
    asked: Option<Millis>,
}

/// A claim that is to be committed.
#[derive(Debug)]
pub(super) struct Claim {
    row: usize,
    step: hookproof_core::delivery::Step,
    permit: Option<Permit>,
    epoch: u64,
}

/// A step of a process of the sender.
#[derive(Debug)]
pub(super) enum Step {
    /// It has started.
    Start,
    /// A publish arrives.
    PublishArrives {
        /// Which.
        publish: PublishNo,
        /// Whether the answer will be lost.
        loses_answer: bool,
    },
    /// A publish commits.
    PublishCommits {
        /// Which.
        publish: PublishNo,
        /// As which event.
        event: EventNo,
        /// Whether the answer will be lost.
        loses_answer: bool,
        /// Whether the answer was given already.
        is_answered: bool,
    },
    /// The deliveries of an event commit, apart from it.
    FanOutCommits {
        /// Of which event.
        event: EventNo,
        /// Its publish.
        publish: PublishNo,
        /// Whether the answer will be lost.
        loses_answer: bool,
    },
    /// It looks at what is due.
    Pass,
    /// Claims commit.
    ClaimsCommit(Vec<Claim>),
    /// An attempt opens its connection.
    Dials(u64),
    /// An attempt writes its request.
    Sends(u64),
    /// An attempt has taken too long.
    TimesOut(u64),
    /// An attempt ends otherwise.
    Ends(u64, hookproof_core::outcome::Outcome),
    /// The outcome of an attempt commits.
    RecordCommits(Box<Finished>),
    /// A notice is sent.
    NoticeSends(usize),
    /// That a notice was sent commits.
    NoticeCommits(usize),
}

/// How long to wait after the store refused.
const STORE_PAUSE: Millis = Millis::new(200);

impl World<'_> {
    pub(super) fn sender_step(&mut self, number: usize, step: Step) {
        let process = Process::Sender(u32::try_from(number).unwrap_or(0));
        match step {
            Step::Start => self.start_sender(process),
            Step::PublishArrives { publish, loses_answer } => {
                self.publish_arrives(process, publish, loses_answer);
            }
            Step::PublishCommits { publish, event, loses_answer, is_answered } => {
                self.publish_commits(process, publish, event, loses_answer, is_answered);
            }
            Step::FanOutCommits { event, publish, loses_answer } => {
                self.fan_out_commits(process, event, publish, loses_answer);
            }
            Step::Pass => self.pass(process),
            Step::ClaimsCommit(claims) => self.claims_commit(process, claims),
            Step::Dials(attempt) => self.dial(process, attempt),
            Step::Sends(attempt) => self.send(process, attempt),
            Step::TimesOut(attempt) => self.time_out(process, attempt),
            Step::Ends(attempt, outcome) => self.finish(process, attempt, outcome),
            Step::RecordCommits(finished) => self.record_commits(process, *finished),
            Step::NoticeSends(notice) => self.send_notice(process, notice),
            Step::NoticeCommits(notice) => self.notice_commits(process, notice),
        }
    }

    pub(super) fn sender(&mut self, process: Process) -> &mut Sender {
        &mut self.senders[process.number()]
    }

    /// A process looks at what is there: what is in flight belongs to a process that is gone, unless
    /// another one shares the store and may have it.
    fn start_sender(&mut self, process: Process) {
        if self.is_sender(SenderMutant::TimersInMemory) {
            let waiting = |row: &usize| {
                let state = &self.store.rows[*row].state;
                state.attempts > 0 && matches!(state.phase, Phase::Scheduled { .. })
            };
            let lost = (0..self.store.rows.len()).filter(waiting).collect();
            self.sender(process).flaw.lost = lost;
        }
        if self.senders.len() == 1 {
            for endpoint in self.store.endpoint_numbers() {
                self.store.endpoint_mut(endpoint).shard.until = self.now;
            }
            self.claim_shards(process);
            self.rearm_after_restart();
            self.recover(process);
        }
        self.pass_at(process, self.now);
        self.notify(process);
    }

    /// The process is gone, and with it every attempt that it had under way.
    pub(super) fn sender_ends(&mut self, process: Process) {
        self.take_back_newest();
        let ended = std::mem::take(self.sender(process));
        for attempt in ended.attempts.values() {
            self.fact(&Fact::Ended { route: attempt.route, attempt: attempt.number });
        }
        if !ended.attempts.is_empty() {
            self.sometimes(Sometimes::CrashedInFlight);
        }
    }

    /// Something may be due: the process looks.
    pub(super) fn poke(&mut self, process: Process) {
        if self.hosts.get(process).is_up {
            self.pass_at(process, self.now);
        }
    }

    pub(super) fn poke_all(&mut self) {
        for number in 0..self.senders.len() {
            self.poke(Process::Sender(u32::try_from(number).unwrap_or(0)));
        }
    }

    /// Plans a pass, unless one is planned that comes sooner.
    fn pass_at(&mut self, process: Process, at: Timestamp) {
        let at = at.max(self.now);
        let sender = self.sender(process);
        if sender.next_pass.is_some_and(|next| next <= at) {
            return;
        }
        sender.next_pass = Some(at);
        self.at(at, process, world::Step::Sender(Step::Pass));
    }

    fn notify(&mut self, process: Process) {
        let waiting: Vec<usize> = (0..self.store.notices.len())
            .filter(|notice| !self.store.notices[*notice].is_sent)
            .collect();
        for notice in waiting {
            if self.sender(process).notifying.insert(notice) {
                let step = world::Step::Sender(Step::NoticeSends(notice));
                self.after(Millis::new(1), process, step);
            }
        }
    }
}
