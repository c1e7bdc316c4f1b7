//! The clock that never goes back.

use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::clock::{Apart, Reading, SteadyClock};

const EPOCH_S: i64 = 1_767_225_600;

/// Both clocks, in seconds after each began.
fn at(wall: i64, monotonic: i64) -> Reading {
    const NS: i64 = 1_000_000_000;
    Reading { wall_ns: (EPOCH_S + wall) * NS, monotonic_ns: monotonic * NS }
}

/// Reads (wall, monotonic) one after the other, and compares the times, in seconds after the first
/// wall clock, and what is told.
fn check(readings: &[(i64, i64)], expected: &[(i64, Option<Apart>)]) {
    let mut clock = SteadyClock::new(at(0, 0));
    let found: Vec<_> = readings
        .iter()
        .map(|(wall, monotonic)| {
            let (now, apart) = clock.read(at(*wall, *monotonic));
            (now.as_secs() - EPOCH_S, apart)
        })
        .collect();
    assert_eq!(found, expected);
}

fn behind(secs: u64) -> Option<Apart> {
    Some(Apart::Behind(Millis::from_secs(secs)))
}

fn leapt(secs: u64) -> Option<Apart> {
    Some(Apart::Leapt(Millis::from_secs(secs)))
}

#[test]
fn clocks_that_agree_are_the_wall_clock() {
    check(&[(0, 0), (1, 1), (100, 100)], &[(0, None), (1, None), (100, None)]);
}

/// Case S41 of the zoo: nothing would be due for an hour.
#[test]
fn a_wall_clock_that_steps_back_by_an_hour_is_not_followed_and_told_once() {
    check(
        &[(10, 10), (-3_590, 10), (-3_580, 20), (-3_500, 100)],
        &[(10, None), (10, behind(3_600)), (20, None), (100, None)],
    );
}

#[test]
fn a_wall_clock_that_has_caught_up_is_followed_again_and_told_the_next_time() {
    check(
        &[(-10, 1), (-1, 10), (40, 40), (20, 41)],
        &[(1, behind(11)), (10, None), (40, None), (41, behind(21))],
    );
    check(
        &[(-10, 1), (11, 2), (12, 3), (0, 4)],
        &[(1, behind(11)), (11, leapt(9)), (12, None), (13, behind(13))],
    );
}

#[test]
fn a_wall_clock_that_leaps_ahead_is_followed_at_once() {
    check(
        &[(10, 10), (3_610, 10), (3_620, 20), (7_300, 100)],
        &[(10, None), (3_610, leapt(3_600)), (3_620, None), (7_300, leapt(3_600))],
    );
}

#[test]
fn a_few_seconds_are_corrected_without_a_word() {
    check(&[(5, 10), (16, 11), (17, 12)], &[(10, None), (16, None), (17, None)]);
}

#[test]
fn it_never_goes_back_whatever_is_read() {
    let mut clock = SteadyClock::new(at(0, 0));
    let mut before = clock.read(at(0, 0)).0;
    // A fixed sequence that jumps in both directions, the monotonic clock included.
    let mut state: i64 = 7;
    for _ in 0..10_000 {
        state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
        let (now, _) = clock.read(at(state % 7_200 - 3_600, state % 977));
        assert!(now >= before, "{before:?} and then {now:?}");
        before = now;
    }
    let mut extreme = SteadyClock::new(Reading { wall_ns: i64::MIN, monotonic_ns: i64::MIN });
    let last = extreme.read(Reading { wall_ns: i64::MAX, monotonic_ns: i64::MAX }).0;
    assert!(extreme.read(Reading { wall_ns: i64::MIN, monotonic_ns: 0 }).0 >= last);
}

#[test]
fn a_time_before_the_epoch_is_in_the_millisecond_that_has_begun() {
    let mut clock = SteadyClock::new(Reading { wall_ns: -1, monotonic_ns: 0 });
    assert_eq!(clock.read(Reading { wall_ns: -1, monotonic_ns: 0 }).0.as_millis(), -1);
}

/// What a former life has stored as the present is over, though the wall clock was set back since.
#[test]
fn a_clock_can_be_told_how_late_it_is_at_least() {
    let secs = |clock: &mut SteadyClock, reading| clock.read(reading).0.as_secs() - EPOCH_S;
    let mut clock = SteadyClock::new(at(0, 0));
    clock.not_before(Timestamp::from_secs(EPOCH_S + 3_600));
    assert_eq!(secs(&mut clock, at(0, 0)), 3_600);
    assert_eq!(secs(&mut clock, at(10, 10)), 3_610, "it goes on from there");
    clock.not_before(Timestamp::from_secs(EPOCH_S));
    assert_eq!(secs(&mut clock, at(10, 10)), 3_610, "and not back");
}
