//! For how long a breaker held back what was due: what the age of a delivery is told.

use hookproof_core::classify::Signal::{self, Failure, Success};
use hookproof_core::gate::{Admission, BreakerRule, Gate, GateRule, RateRule, StoredBreaker};
use hookproof_core::time::{Millis, Timestamp};

use crate::given::{at, ms};

/// Opens at the second failure; pauses last 100 ms.
fn rule() -> GateRule {
    let breaker = BreakerRule {
        failures_in_a_row: 2,
        pause: ms(100),
        pause_factor: 1,
        pause_max: ms(100),
        ..BreakerRule::default()
    };
    GateRule { breaker: Some(breaker), ..GateRule::default() }
}

/// A gate that opened at 1,000 ms.
fn opened() -> Gate {
    let mut gate = Gate::default();
    for now in [500, 1_000] {
        attempt(&mut gate, (now, now), Failure);
    }
    gate
}

/// An attempt from one time to another.
fn attempt(gate: &mut Gate, (from, to): (i64, i64), signal: Signal) {
    let Admission::Go(permit) = gate.admit(&rule(), at(from), ms(1_000)) else {
        unreachable!("nothing may begin at {from}");
    };
    gate.record(&rule(), at(to), permit, signal);
}

fn check(gate: &Gate, from: i64, now: i64, expected: u64) {
    assert_eq!(gate.held(at(from), at(now)), ms(expected), "from {from} to {now}: {gate:?}");
}

#[test]
fn a_breaker_holds_from_when_it_opens_to_the_end_of_the_pause() {
    let gate = opened();
    check(&gate, 0, 999, 0);
    check(&gate, 0, 1_050, 50);
    check(&gate, 1_020, 1_050, 30);
    check(&gate, 0, 1_100, 100);
    // Nobody asks: that is not the breaker's doing.
    check(&gate, 0, 9_000, 100);
    check(&gate, 5_000, 9_000, 0);
    check(&Gate::default(), 0, 9_000, 0);
}

#[test]
fn it_holds_while_its_probe_is_under_way_too() {
    let mut gate = opened();
    let Admission::Go(probe) = gate.admit(&rule(), at(1_100), ms(1_000)) else { panic!("a probe") };
    check(&gate, 0, 1_130, 130);
    gate.record(&rule(), at(1_140), probe, Failure);
    check(&gate, 0, 1_200, 200);
    check(&gate, 0, 9_000, 240);
    attempt(&mut gate, (2_000, 2_010), Success);
    check(&gate, 0, 9_000, 250);
    check(&gate, 1_999, 2_005, 5);
}

#[test]
fn a_probe_that_never_ends_holds_until_its_permit_expires() {
    let mut gate = opened();
    let Admission::Go(probe) = gate.admit(&rule(), at(1_100), ms(50)) else { panic!("a probe") };
    drop(probe);
    assert_eq!(gate.room(&rule(), at(1_150)), Ok(1));
    check(&gate, 0, 9_000, 150);
}

#[test]
fn a_limit_is_no_hold() {
    let rate = RateRule { attempts: 1, per: ms(1_000), burst: 0 };
    let rule = GateRule { rate: Some(rate), ..rule() };
    let mut gate = Gate::default();
    let Admission::Go(permit) = gate.admit(&rule, at(0), ms(10)) else { panic!("it is closed") };
    gate.record(&rule, at(5), permit, Success);
    assert!(gate.room(&rule, at(500)).is_err());
    check(&gate, 0, 500, 0);
}

#[test]
fn what_was_held_is_known_after_a_restart_and_the_time_between_is_not_part_of_it() {
    let gate = opened();
    let text = serde_json::to_string(&gate.stored()).expect("it can be written");
    let stored: StoredBreaker = serde_json::from_str(&text).expect("it can be read");
    let mut gate = Gate::restored(stored);
    attempt(&mut gate, (60_000, 60_020), Success);
    check(&gate, 0, 99_000, 120);
}

#[test]
fn many_holds_are_remembered_in_bounded_room_and_never_for_less_than_they_were() {
    let mut gate = opened();
    for probe in 1..200 {
        attempt(&mut gate, (1_000 + probe * 200, 1_000 + probe * 200), Failure);
    }
    let end = at(1_000 + 200 * 200);
    assert!(gate.held(Timestamp::from_millis(0), end) >= Millis::new(200 * 100));
    check(&gate, end.as_millis() - 400, end.as_millis(), 200);
    let text = serde_json::to_string(&gate.stored()).expect("it can be written");
    assert!(text.len() < 1_000, "{} bytes", text.len());
}

#[test]
fn thirty_two_holds_are_remembered_exactly() {
    let mut gate = opened();
    for probe in 1..32 {
        attempt(&mut gate, (1_000 + probe * 200, 1_000 + probe * 200), Failure);
    }
    check(&gate, 0, 9_000, 32 * 100);
    attempt(&mut gate, (1_000 + 32 * 200, 1_000 + 32 * 200), Failure);
    // The two oldest count as one, and with them the 100 ms between them.
    check(&gate, 0, 9_000, 34 * 100);
}
