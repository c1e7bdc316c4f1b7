//! The application whose events are delivered: it publishes, and publishes again under the same
//! idempotency key until it is told that the event was accepted.

use std::collections::BTreeSet;

use super::hosts::Process;
use super::sender;
use super::world::{Happening, Step, World};
use crate::fact::{EventNo, Fact, PublishNo};
use crate::fault::{ConnectionFault, Fault, Faults};

/// What the application knows.
#[derive(Debug, Default)]
pub(super) struct Application {
    /// How many publishes it has in mind.
    pub(super) publishes: u32,
    accepted: BTreeSet<PublishNo>,
}

impl Application {
    pub(super) fn is_done(&self) -> bool {
        self.accepted.len() == usize::try_from(self.publishes).unwrap_or(usize::MAX)
    }
}

impl World<'_> {
    /// One try to publish; it is made again until it is accepted.
    pub(super) fn publish(&mut self, publish: PublishNo) {
        if self.application.accepted.contains(&publish) {
            return;
        }
        self.fact(&Fact::Wanted { publish });
        let who = ("application", publish.0);
        let pause = self.tenths(who, "pause", self.options.pace.patience);
        self.happens(self.now.plus(pause), Happening::Publish(publish));
        self.record.line(self.now, "application", || format!("asks for {publish}"));
        let process = Process::Sender(self.which_sender(who));
        if !self.hosts.get(process).is_up {
            return;
        }
        let fault = self.fault_of(who);
        if matches!(fault, Some(Fault::RequestLost | Fault::ConnectTimeout | Fault::ConnectRefused))
        {
            return;
        }
        let latency = self.span(who, "latency", self.scenario.latency);
        let loses_answer = matches!(fault, Some(Fault::ResponseLost | Fault::ConnectionReset));
        let step = sender::Step::PublishArrives { publish, loses_answer };
        self.after(latency, process, Step::Sender(step));
        if fault == Some(Fault::Duplicate) {
            let step = sender::Step::PublishArrives { publish, loses_answer: true };
            self.after(latency, process, Step::Sender(step));
        }
    }

    fn which_sender(&self, who: (&'static str, u32)) -> u32 {
        let count = self.senders.len();
        u32::try_from(self.number(who, "which sender", count)).unwrap_or(0)
    }

    /// The network faults meet the application, too.
    fn fault_of(&mut self, who: (&'static str, u32)) -> Option<Fault> {
        if !self.faults_on || !self.options.troubles_application {
            return None;
        }
        let faults: &Faults = &self.faults;
        match faults.on_connection(&self.choices, who) {
            ConnectionFault::None => None,
            ConnectionFault::Kind(fault) => Some(fault),
        }
    }

    /// The answer 202 is on its way, and arrives unless it is lost.
    pub(super) fn accept(&mut self, publish: PublishNo, event: EventNo, is_lost: bool) {
        self.fact(&Fact::Accepted { publish, event });
        if is_lost {
            return;
        }
        if self.application.accepted.insert(publish) {
            self.record.totals.accepted += 1;
            self.record.line(self.now, "application", || format!("{publish} accepted as {event}"));
        }
    }
}
