//! How a history begins: who there is, and what is planned.

use std::sync::Arc;

use hookproof_core::time::{Millis, Timestamp};

use super::endpoint::Endpoint;
use super::hosts::{Host, Process};
use super::receiver::{self, Receiver};
use super::sender::{self, Sender};
use super::world::{Happening, Step, World};
use crate::fact::{EndpointNo, Fact, PublishNo};
use crate::fault::Fault;
use crate::history::epoch;

impl World<'_> {
    pub(super) fn set_up(&mut self) {
        self.understood = Arc::new(self.understand());
        let policy = self.policy.clone();
        self.fact(&Fact::Served { policy: &policy });
        self.add_endpoints();
        self.add_processes();
        self.plan_publishes();
        self.plan_partitions();
        self.plan_full_stores();
        self.plan_operations();
        self.happens(epoch().plus(self.scenario.safety), Happening::FaultsEnd);
    }

    fn add_endpoints(&mut self) {
        let (fewest, most) = self.scenario.endpoints;
        let count = self.choices.between("plan", "endpoints", fewest, most);
        let outage = self.scenario.outage.map(|outage| {
            let from = epoch().plus(outage.from);
            (from, from.plus(outage.lasts), outage.fails)
        });
        for number in 0..u32::try_from(count).unwrap_or(u32::MAX) {
            let who = ("endpoint", number);
            let is_broken = number > 0
                && self.scenario.broken_per_mille > 0
                && self.choices.chance(who, "broken", self.scenario.broken_per_mille);
            let breaks = is_broken.then(|| {
                let which = self.number(who, "breaks", self.scenario.breaks.len());
                self.scenario.breaks[which]
            });
            self.endpoints.push(Endpoint::new(breaks, outage));
            self.store.add_endpoint();
            self.fact(&Fact::Registered { endpoint: EndpointNo(number), is_sound: !is_broken });
        }
    }

    fn add_processes(&mut self) {
        for number in 0..self.scenario.senders {
            self.hosts.senders.push(Host::default());
            self.senders.push(Sender::default());
            self.set_clock(Process::Sender(number));
            let start = Step::Sender(sender::Step::Start);
            self.after(Millis::ZERO, Process::Sender(number), start);
        }
        for number in 0..self.scenario.receivers {
            self.hosts.receivers.push(Host::default());
            self.receivers.push(Receiver::default());
            self.set_clock(Process::Receiver(number));
            let start = Step::Receiver(receiver::Step::Start);
            self.after(Millis::ZERO, Process::Receiver(number), start);
        }
    }

    /// Clocks can be wrong from the start, and be set later.
    fn set_clock(&mut self, process: Process) {
        let who = process.who();
        if self.strikes(who, Fault::ClockSkew) {
            let minutes = self.choices.between(who, "clock ahead", 0, 12);
            let ahead = (i64::try_from(minutes).unwrap_or(0) - 6) * 60_000;
            let does = self.does(Fault::ClockSkew);
            let host = self.hosts.get_mut(process);
            host.decided_skew = ahead;
            if does {
                host.wall_ahead = ahead;
                host.clock_ahead = ahead;
            }
        }
        for _ in 0..2 {
            if self.strikes(who, Fault::ClockStep) {
                let by = [-3_600_000, -60_000, -1000, 1000, 60_000, 3_600_000]
                    [self.number(who, "clock set by", 6)];
                let at = self.some_time(who, "clock set at");
                self.happens(at, Happening::ClockStep(process, by));
            }
        }
    }

    fn plan_publishes(&mut self) {
        let (fewest, most) = self.scenario.events;
        let count = self.choices.between("plan", "events", fewest, most);
        let slots = (self.scenario.publishing.get() / 1000).max(1);
        let mut times: Vec<Timestamp> = (0..u32::try_from(count).unwrap_or(u32::MAX))
            .map(|number| {
                // Some events are published together: what interleaves is where bugs live.
                let slot = self.choices.draw(("publish", number), "published at", slots);
                epoch().plus(Millis::from_secs(1 + slot))
            })
            .collect();
        times.sort_unstable();
        self.application.publishes = u32::try_from(times.len()).unwrap_or(u32::MAX);
        for (number, at) in (0..).zip(times) {
            self.happens(at, Happening::Publish(PublishNo(number)));
        }
    }

    fn plan_partitions(&mut self) {
        for number in 0..2 {
            let who = ("partition", number);
            if self.strikes(who, Fault::Partition) {
                let from = self.some_time(who, "begins");
                let seconds = self.choices.between(who, "lasts", 1, 15);
                if self.does(Fault::Partition) {
                    self.partitions.push((from, from.plus(Millis::from_secs(seconds))));
                }
            }
        }
    }

    fn plan_full_stores(&mut self) {
        for (side, who) in [("sender's store", 0), ("receiver's store", 1)].into_iter().enumerate()
        {
            if self.strikes(who, Fault::StoreFull) {
                let from = self.some_time(who, "full from");
                let seconds = self.choices.between(who, "full for", 1, 20);
                self.full[side] = Some((from, from.plus(Millis::from_secs(seconds))));
            }
        }
    }
}
