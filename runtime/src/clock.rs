//! A clock that never goes back.
//!
//! What is due is a time that was stored, by a clock that people and NTP set. If that clock is set
//! back by an hour, nothing is due for an hour. So a process waits by this clock instead: it follows
//! the wall clock forwards at once, for then it really may be later, and when the wall is behind, it
//! goes on with the monotonic clock until the wall has caught up.

use hookproof_core::time::{Millis, Timestamp};

/// What both clocks of a machine show at one moment. Read the wall first: if the process is held up
/// between the two, the error is gone with the next reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// Nanoseconds since the epoch, by the clock that can be set.
    pub wall_ns: i64,
    /// Nanoseconds since any moment, by the clock that cannot.
    pub monotonic_ns: i64,
}

/// The wall clock and a [`SteadyClock`] went apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Apart {
    /// The wall clock leapt ahead by so much, and the clock with it.
    Leapt(Millis),
    /// The wall clock is behind by so much, and the clock goes on without it. Told once, until the
    /// two have met again.
    Behind(Millis),
}

/// By how much the two may differ before that is told: a few seconds, which NTP corrects without
/// anybody having to know.
pub const APART: Millis = Millis::from_secs(5);

/// A clock that never goes back, made of the readings that it is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SteadyClock {
    last: Reading,
    now_ns: i64,
    is_told: bool,
}

impl SteadyClock {
    /// Begins with what the wall clock shows.
    #[must_use]
    pub const fn new(first: Reading) -> Self {
        Self { last: first, now_ns: first.wall_ns, is_told: false }
    }

    /// What the time is, and whether that is to be told.
    pub fn read(&mut self, reading: Reading) -> (Timestamp, Option<Apart>) {
        let passed = reading.monotonic_ns.saturating_sub(self.last.monotonic_ns).max(0);
        let expected = self.now_ns.saturating_add(passed);
        self.now_ns = expected.max(reading.wall_ns);
        self.last = reading;
        (to_millis(self.now_ns), self.apart(reading.wall_ns.saturating_sub(expected)))
    }

    /// Shows at least `at` from now on: what another process, or a former life of this one, has stored
    /// as the present is over.
    pub fn not_before(&mut self, at: Timestamp) {
        self.now_ns = self.now_ns.max(at.as_millis().saturating_mul(1_000_000));
    }

    fn apart(&mut self, wall_ahead_ns: i64) -> Option<Apart> {
        let by = Millis::new(wall_ahead_ns.unsigned_abs() / 1_000_000);
        let is_behind = wall_ahead_ns < 0 && by > APART;
        let was_told = std::mem::replace(&mut self.is_told, is_behind);
        match is_behind {
            true if was_told => None,
            true => Some(Apart::Behind(by)),
            false => (by > APART).then_some(Apart::Leapt(by)),
        }
    }
}

/// The millisecond that a time is in.
#[must_use]
pub const fn to_millis(ns: i64) -> Timestamp {
    Timestamp::from_millis(ns.div_euclid(1_000_000))
}
