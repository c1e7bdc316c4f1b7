//! The processes: their lives, their clocks, and what stops them.

use hookproof_core::time::{Millis, Timestamp};

use super::world::{Happening, Step, World};
use super::{receiver, sender};
use crate::fact::{Fact, Life};
use crate::fault::Fault;
use crate::sometimes::Sometimes;
use crate::zoo::SenderMutant;

/// A process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Process {
    /// Of the sender.
    Sender(u32),
    /// Of the receiver.
    Receiver(u32),
}

impl Process {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sender(0) => "sender",
            Self::Sender(_) => "sender 2",
            Self::Receiver(0) => "receiver",
            Self::Receiver(_) => "receiver 2",
        }
    }

    pub(super) fn who(self) -> (&'static str, u32) {
        match self {
            Self::Sender(number) => ("sender", number),
            Self::Receiver(number) => ("receiver", number),
        }
    }

    pub(super) fn number(self) -> usize {
        match self {
            Self::Sender(number) | Self::Receiver(number) => {
                usize::try_from(number).unwrap_or(usize::MAX)
            }
        }
    }

    pub(super) fn crash_fault(self) -> Fault {
        match self {
            Self::Sender(_) => Fault::SenderCrash,
            Self::Receiver(_) => Fault::ReceiverCrash,
        }
    }
}

/// What is known of a process.
#[derive(Clone, Debug)]
pub(super) struct Host {
    /// How often it has started.
    pub(super) life: u32,
    pub(super) is_up: bool,
    pub(super) crashes: u64,
    pub(super) paused_until: Option<Timestamp>,
    /// How often something of it had to wait because it stood still: ever, and before it last did.
    pub(super) held_up: u64,
    held_up_before: u64,
    /// How far its wall clock was decided to be wrong from the start and by being set, in milliseconds.
    pub(super) decided_skew: i64,
    pub(super) decided_steps: i64,
    /// Whether anybody has read its wall clock since that was last decided.
    pub(super) is_wall_read: bool,
    /// How far its wall clock is ahead of the true time, in milliseconds.
    pub(super) wall_ahead: i64,
    /// How far the clock by which it waits is ahead: it follows the wall forwards and never goes
    /// back while the process lives.
    pub(super) clock_ahead: i64,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            life: 1,
            is_up: true,
            crashes: 0,
            paused_until: None,
            held_up: 0,
            held_up_before: 0,
            decided_skew: 0,
            decided_steps: 0,
            is_wall_read: false,
            wall_ahead: 0,
            clock_ahead: 0,
        }
    }
}

/// All processes.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    pub(super) senders: Vec<Host>,
    pub(super) receivers: Vec<Host>,
}

impl Hosts {
    pub(super) fn get(&self, process: Process) -> &Host {
        match process {
            Process::Sender(_) => &self.senders[process.number()],
            Process::Receiver(_) => &self.receivers[process.number()],
        }
    }

    pub(super) fn get_mut(&mut self, process: Process) -> &mut Host {
        match process {
            Process::Sender(_) => &mut self.senders[process.number()],
            Process::Receiver(_) => &mut self.receivers[process.number()],
        }
    }

    pub(super) fn are_up(&self) -> bool {
        self.senders.iter().chain(&self.receivers).all(|host| host.is_up)
    }

    /// The crashes of all of them.
    pub(super) fn crashes(&self) -> u64 {
        self.senders.iter().chain(&self.receivers).map(|host| host.crashes).sum()
    }

    /// The life of a sender's process, as the checkers know it.
    pub(super) fn life(&self, process: Process) -> Life {
        let (_, number) = process.who();
        Life { process: number, number: self.get(process).life }
    }
}

impl World<'_> {
    /// The clock by which a process waits.
    pub(super) fn local(&self, process: Process) -> Timestamp {
        shifted(self.now, self.hosts.get(process).clock_ahead)
    }

    /// The clock on the wall, which timestamps are read from.
    pub(super) fn wall(&self, process: Process) -> Timestamp {
        shifted(self.now, self.hosts.get(process).wall_ahead)
    }

    /// When, by the true clock, it is `local` for a process.
    pub(super) fn true_time(&self, process: Process, local: Timestamp) -> Timestamp {
        shifted(local, -self.hosts.get(process).clock_ahead)
    }

    /// The process ends: what it knows is gone, and so is everything that it had planned.
    pub(super) fn crash(&mut self, process: Process) {
        match process {
            Process::Sender(_) => self.sender_ends(process),
            Process::Receiver(_) => self.receiver_ends(process),
        }
        let host = self.hosts.get_mut(process);
        host.is_up = false;
        host.crashes += 1;
        host.paused_until = None;
        let pause = self.tenths(process.who(), "restart after", self.options.pace.restart);
        self.happens(self.now.plus(pause), Happening::Boots(process));
    }

    pub(super) fn boot(&mut self, process: Process) {
        let host = self.hosts.get_mut(process);
        host.life += 1;
        host.is_up = true;
        host.clock_ahead = host.wall_ahead;
        self.follow_store(process);
        // That it is up again in another life is what a crash is known by.
        self.record.fired(process.crash_fault());
        self.record.line(self.now, process.name(), || "starts again".to_owned());
        match process {
            Process::Sender(_) => {
                self.fact(&Fact::Hindered { until: self.now });
                self.after(Millis::new(1), process, Step::Sender(sender::Step::Start));
            }
            Process::Receiver(_) => {
                self.after(Millis::new(1), process, Step::Receiver(receiver::Step::Start));
            }
        }
    }

    /// The clock by which a process waits is not before the latest time that is stored: its own former
    /// life may have stored it, or another process whose clock is ahead.
    pub(super) fn follow_store(&mut self, process: Process) {
        if self.is_sender(SenderMutant::WallClock) {
            return;
        }
        let latest = match process {
            Process::Sender(_) => self.store.latest,
            Process::Receiver(_) => self.inbox.latest,
        };
        let ahead = latest.as_millis().saturating_sub(self.now.as_millis());
        let host = self.hosts.get_mut(process);
        host.clock_ahead = host.clock_ahead.max(ahead);
    }

    /// A process may stand still here, for longer than its leases.
    pub(super) fn may_pause(&mut self, process: Process) {
        if self.hosts.get(process).paused_until.is_some()
            || !self.strikes(process.who(), Fault::Pause)
        {
            return;
        }
        let seconds = self.choices.between(process.who(), "paused for", 5, 60);
        let until = self.now.plus(Millis::from_secs(seconds));
        let does = self.does(Fault::Pause);
        let host = self.hosts.get_mut(process);
        host.paused_until = does.then_some(until);
        host.held_up_before = host.held_up;
        self.record.line(self.now, process.name(), || format!("stands still for {seconds}s"));
        self.happens(until, Happening::Wakes(process));
    }

    pub(super) fn wake(&mut self, process: Process) {
        let host = self.hosts.get_mut(process);
        if host.paused_until.is_some_and(|until| until <= self.now) {
            host.paused_until = None;
            if host.held_up > host.held_up_before {
                self.record.fired(Fault::Pause);
            }
            if matches!(process, Process::Sender(_)) {
                self.fact(&Fact::Hindered { until: self.now });
            }
            self.record.line(self.now, process.name(), || "goes on".to_owned());
        }
    }

    pub(super) fn step_clock(&mut self, process: Process, by: i64) {
        if !self.faults_on {
            return;
        }
        let follows = self.is_sender(SenderMutant::WallClock);
        let does = self.does(Fault::ClockStep);
        let host = self.hosts.get_mut(process);
        host.decided_steps += by;
        host.is_wall_read = false;
        if !does {
            return;
        }
        host.wall_ahead += by;
        if host.wall_ahead > host.clock_ahead || follows {
            host.clock_ahead = host.wall_ahead;
        }
        if by < 0 {
            self.sometimes(Sometimes::ClockSteppedBack);
        }
        self.record.line(self.now, process.name(), || format!("its clock is set by {by} ms"));
        if let Process::Sender(_) = process {
            // It may be later than it thought: until now it could not know.
            self.fact(&Fact::Hindered { until: self.now });
            self.poke(process);
        }
    }
}

fn shifted(time: Timestamp, by: i64) -> Timestamp {
    Timestamp::from_millis(time.as_millis().saturating_add(by))
}
