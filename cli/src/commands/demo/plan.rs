//! When the processes are killed: a plan drawn from a seed.
//!
//! A kill waits for progress and not for a time, so that it lands in the middle of the work on a
//! fast machine as on a slow one. Progress is the events accepted plus those that the process has
//! done with (the sender: delivered; the receiver: applied), from zero to twice the number of events.
//! Its lower part is mostly publishing, its upper part mostly draining.
//!
//! Two rules see to it that there is work left whenever a kill lands. The last few events are held
//! back, one for each kill that is still to come. And one kill of the receiver lasts until
//! everything else has been published, so that there is a backlog to be drained under fire.

use hookproof_core::time::Millis;

use super::random::SplitMix64;

/// One of the two processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Sender,
    Receiver,
}

impl Side {
    /// Its name, for people and files.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }
}

/// One kill of one process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kill {
    /// The progress to wait for.
    pub(super) at: u64,
    /// How long to wait after that, so that kills do not all follow a commit.
    pub(super) delay: Millis,
    /// How long the process stays dead.
    pub(super) pause: Millis,
    /// Whether it stays dead in any case until all that may be published has been.
    pub(super) holds: bool,
}

/// All kills of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    events: u64,
    pub(super) sender: Vec<Kill>,
    pub(super) receiver: Vec<Kill>,
}

impl Plan {
    pub(super) fn draw(random: &mut SplitMix64, events: u64, kills_each: u64) -> Self {
        let mut sender = random.branch();
        let mut receiver = random.branch();
        // In percent of the events. At most 180 % can be reached while a tenth is held back.
        let early = kills_each.div_ceil(2);
        let sender_kills = spread(&mut sender, events, 3, 170, kills_each);
        let mut receiver_kills = spread(&mut receiver, events, 3, 70, early);
        if let Some(longest) = receiver_kills.last_mut() {
            longest.holds = true;
        }
        receiver_kills.extend(spread(&mut receiver, events, 120, 170, kills_each - early));
        Self { events, sender: sender_kills, receiver: receiver_kills }
    }

    /// How many kills there are.
    pub(super) fn kills(&self) -> u64 {
        (self.sender.len() + self.receiver.len()) as u64
    }

    /// How many events may be published once so many kills have been made: the rest is held back,
    /// but never more than a tenth.
    pub(super) fn may_publish(&self, kills_made: u64) -> u64 {
        let to_come = self.kills().saturating_sub(kills_made);
        self.events - to_come.min(self.events / 10)
    }
}

/// Kills over a stretch of progress, one at a random place in each equal part of it.
fn spread(
    random: &mut SplitMix64,
    events: u64,
    from_percent: u64,
    to_percent: u64,
    count: u64,
) -> Vec<Kill> {
    let place = |part: u64| {
        let percent = u128::from(from_percent) * u128::from(count)
            + u128::from(to_percent - from_percent) * u128::from(part);
        let at = u128::from(events) * percent / (100 * u128::from(count));
        u64::try_from(at).unwrap_or(u64::MAX).max(1)
    };
    (0..count)
        .map(|part| Kill {
            at: random.within(place(part)..=place(part + 1)),
            delay: random.span(0..=40),
            pause: random.span(50..=500),
            holds: false,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(seed: u64, events: u64, kills_each: u64) -> Plan {
        Plan::draw(&mut SplitMix64::new(seed), events, kills_each)
    }

    #[test]
    fn the_same_seed_gives_the_same_plan_and_another_another() {
        assert_eq!(plan(7, 1000, 5), plan(7, 1000, 5));
        assert_ne!(plan(7, 1000, 5), plan(8, 1000, 5));
    }

    #[test]
    fn kills_are_in_order_of_progress_and_each_process_has_its_number() {
        for seed in 0..200 {
            for kills_each in 0..8 {
                let plan = plan(seed, 1000, kills_each);
                for kills in [&plan.sender, &plan.receiver] {
                    assert_eq!(kills.len() as u64, kills_each);
                    assert!(kills.is_sorted_by_key(|kill| kill.at), "{kills:?}");
                }
                let held = plan.receiver.iter().filter(|kill| kill.holds).count();
                assert_eq!(held as u64, kills_each.min(1));
            }
        }
    }

    #[test]
    fn each_kill_can_be_reached_with_what_may_be_published_before_it() {
        for seed in 0..50 {
            for events in [1, 2, 3, 9, 10, 11, 40, 99, 100, 1000] {
                for kills_each in [1, 2, 5, 50] {
                    let plan = plan(seed, events, kills_each);
                    // Whatever the order of the kills, at least this much is published before any.
                    let reachable = 2 * plan.may_publish(0);
                    for kill in plan.sender.iter().chain(&plan.receiver) {
                        assert!((1..=reachable).contains(&kill.at), "{events} events: {kill:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn events_are_held_back_for_each_kill_to_come_and_none_after_the_last() {
        let plan = plan(1, 1000, 5);
        let held: Vec<_> = (0..=10).map(|made| 1000 - plan.may_publish(made)).collect();
        assert_eq!(held, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
        // With few events, most of them are published all the same.
        assert_eq!(self::plan(1, 40, 5).may_publish(0), 36);
        assert_eq!(self::plan(1, 3, 5).may_publish(0), 3);
    }
}
