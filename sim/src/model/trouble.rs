//! What goes wrong, and how it is known: by what it did, never by its having been decided.

use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::time::{Millis, Timestamp};

use super::hosts::Process;
use super::sender::Attempt;
use super::world::{Event, Step, World};
use crate::fault::Fault;
use crate::sometimes::Sometimes;

/// A write that a store refuses. Whoever is told so gives it up, and says that it did.
#[must_use]
#[derive(Clone, Copy, Debug)]
pub(super) struct Refusal(Fault);

/// What happened to an attempt on its way, as only the network knows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Track {
    /// What was decided for its connection.
    pub(super) decided: Option<Fault>,
    /// Something else stood in the way of that: it had nothing to strike.
    pub(super) is_shadowed: bool,
    pub(super) met_partition: bool,
    pub(super) is_sent: bool,
    pub(super) has_arrived: bool,
    pub(super) answered_at: Option<Timestamp>,
    /// How often the process had been held up when it began.
    pub(super) held_up: u64,
}

/// How long an answer takes that is slow.
const SLOW: Millis = Millis::from_secs(1);

impl World<'_> {
    /// Whether a fault does what was decided. Under a broken harness it does nothing.
    pub(super) fn does(&self, fault: Fault) -> bool {
        !self.wrong.idles(fault)
    }

    /// Whether a fault strikes, here and now.
    pub(super) fn strikes(&mut self, who: (&'static str, u32), fault: Fault) -> bool {
        if !self.faults_on {
            return false;
        }
        let per_mille = self.faults.per_mille(fault);
        if per_mille == 0 || !self.choices.chance(who, fault.as_str(), per_mille) {
            return false;
        }
        self.record.chose(fault);
        true
    }

    /// Plans a step that commits: it happens once the store is done with what was written.
    pub(super) fn commits(&mut self, process: Process, step: Step) {
        let mut span = self.span(process.who(), "commit", self.scenario.commit);
        if self.strikes(process.who(), Fault::SlowCommit) {
            let tenths = self.choices.between(process.who(), "slow by", 1, 10);
            if self.does(Fault::SlowCommit) {
                span = span.plus(Millis::new(tenths * 100));
            }
        }
        let life = self.hosts.get(process).life;
        let event = Event::Commit { process, life, began: self.now, step };
        self.queue.plan(self.now.plus(span), event);
    }

    /// A commit is over that began then.
    pub(super) fn note_commit(&mut self, began: Timestamp) {
        let (_, longest) = self.scenario.commit;
        if self.now.since(began) > longest {
            self.record.fired(Fault::SlowCommit);
        }
    }

    /// Whether a store refuses a write of this process now.
    pub(super) fn refuses(&mut self, process: Process) -> Option<Refusal> {
        let side = usize::from(matches!(process, Process::Receiver(_)));
        let is_full = self.full[side].is_some_and(|(from, to)| from <= self.now && self.now < to);
        let fault = if is_full && self.faults_on {
            Fault::StoreFull
        } else if self.strikes(process.who(), Fault::StoreBusy) {
            Fault::StoreBusy
        } else {
            return None;
        };
        self.does(fault).then_some(Refusal(fault))
    }

    /// A write is given up because the store refused it.
    pub(super) fn gives_up_write(&mut self, Refusal(fault): Refusal) {
        self.record.fired(fault);
        self.sometimes(Sometimes::StoreRefused);
    }

    /// The clock on the wall, read to sign or to verify.
    pub(super) fn read_wall(&mut self, process: Process) -> Timestamp {
        let host = self.hosts.get_mut(process);
        let ahead = host.wall_ahead;
        let causes = [
            (Fault::ClockSkew, host.decided_skew, host.decided_steps),
            (Fault::ClockStep, host.decided_steps, host.decided_skew),
        ];
        if !std::mem::replace(&mut host.is_wall_read, true) {
            for (fault, decided, otherwise) in causes {
                if decided != 0 && ahead != otherwise {
                    self.record.fired(fault);
                }
            }
        }
        self.wall(process)
    }

    /// What an attempt met on its way; nothing once it is over.
    pub(super) fn track(&mut self, process: Process, attempt: u64) -> Option<&mut Track> {
        let attempts = &mut self.senders[process.number()].attempts;
        attempts.get_mut(&attempt).map(|attempt| &mut attempt.track)
    }

    /// It counts as decided where it could have done something.
    pub(super) fn note_fault(&mut self, process: Process, attempt: &Attempt, outcome: Outcome) {
        let track = attempt.track;
        let failed = |wanted| outcome == Outcome::Failed { failure: wanted };
        if track.met_partition && failed(Failure::ConnectTimeout) {
            self.record.fired(Fault::Partition);
        }
        let Some(fault) = track.decided.filter(|_| !track.is_shadowed) else { return };
        let is_early = matches!(
            fault,
            Fault::DnsFailure | Fault::DnsRebinding | Fault::ConnectRefused | Fault::ConnectTimeout
        );
        if is_early || track.is_sent {
            self.record.chose(fault);
        }
        let was_held_up = self.hosts.get(process).held_up > track.held_up;
        let is_answered = track.answered_at.is_some();
        let is_late = track.answered_at.is_some_and(|at| self.now.since(at) >= SLOW);
        // Whoever stood before the receiver answered, and the receiver never knew.
        let got = |wanted: fn(u16) -> bool| {
            let is_wanted = matches!(outcome, Outcome::Answered { status, .. } if wanted(status));
            is_wanted && !track.has_arrived
        };
        let has_happened = match fault {
            Fault::ConnectRefused => failed(Failure::ConnectRefused),
            Fault::ConnectTimeout => failed(Failure::ConnectTimeout),
            Fault::RequestLost => track.is_sent && !track.has_arrived && failed(Failure::Timeout),
            Fault::ResponseLost => is_answered && failed(Failure::Timeout) && !was_held_up,
            Fault::ConnectionReset => is_answered && failed(Failure::Reset),
            Fault::Oversize => failed(Failure::Oversize),
            Fault::DnsFailure => failed(Failure::Dns),
            Fault::DnsRebinding => failed(Failure::Blocked),
            Fault::ServerError => got(|status| status >= 500),
            Fault::TooManyRequests => got(|status| status == 429),
            Fault::Redirect => got(|status| (300..400).contains(&status)),
            Fault::ClientError => got(|status| (400..500).contains(&status)),
            Fault::Gone => got(|status| status == 410),
            Fault::SlowResponse => is_late && !was_held_up,
            _ => false,
        };
        if has_happened {
            self.record.fired(fault);
        }
    }
}
