//! A gate whose breaker is switched off: at once, or while it is open, half-open or probing.

use hookproof_core::classify::Signal;
use hookproof_core::gate::{Admission, Breaker, DeferReason, Gate, GateRule};
use proptest::prelude::*;

use crate::gate::Event::{Asks, Fails};
use crate::gate::{LEASE_MS, check, half_open, open, rule};
use crate::gate_laws::breaker;
use crate::given::{at, laws, millis, ms, timestamp};

#[test]
fn without_a_breaker_nothing_ever_pauses() {
    let rule = GateRule { concurrency_max: 1, breaker: None, ..GateRule::default() };
    let mut gate = Gate::default();
    for now in 0..1_000 {
        let Admission::Go(permit) = gate.admit(&rule, at(now), ms(LEASE_MS)) else {
            unreachable!("there is no breaker and the permit is back");
        };
        assert_eq!(gate.record(&rule, at(now), permit, Signal::Failure), None);
    }
}

/// Two attempts at once and no breaker.
fn switched_off() -> GateRule {
    GateRule { breaker: None, ..rule(2, 1) }
}

#[test]
fn a_breaker_switched_off_while_it_is_open_no_longer_pauses() {
    let events = || {
        [
            (0, Asks('a'), "go"),
            (1, Asks('b'), "go"),
            (2, Asks('c'), "limit until 100"),
            (3, Fails('a'), "-"),
            (4, Asks('c'), "go"),
        ]
    };
    check(open(50), &switched_off(), &events());
    check(half_open(), &switched_off(), &events());
    let mut gate = open(50);
    assert_eq!(gate.room(&switched_off(), at(0)), Ok(2));
    assert_eq!(gate.breaker(), Breaker::default(), "what is stored says so too");
}

#[test]
fn a_breaker_switched_off_while_its_probe_is_under_way_no_longer_waits_for_it() {
    let mut gate = half_open();
    let Admission::Go(probe) = gate.admit(&rule(2, 1), at(0), ms(LEASE_MS)) else {
        unreachable!("no probe is under way");
    };
    assert_eq!(gate.room(&switched_off(), at(1)), Ok(1), "it is an attempt like any other");
    assert_eq!(gate.record(&switched_off(), at(2), probe, Signal::Failure), None);
    check(gate, &switched_off(), &[(3, Asks('a'), "go"), (3, Asks('b'), "go")]);
}

#[test]
fn a_breaker_switched_on_again_begins_anew() {
    let mut gate = open(50);
    let Admission::Go(permit) = gate.admit(&switched_off(), at(0), ms(LEASE_MS)) else {
        unreachable!("there is no breaker");
    };
    assert_eq!(gate.record(&switched_off(), at(1), permit, Signal::Failure), None);
    check(
        gate,
        &rule(2, 2),
        &[
            (2, Asks('a'), "go"),
            (2, Asks('b'), "go"),
            (3, Fails('a'), "-"),
            (4, Fails('b'), "opened until 14"),
        ],
    );
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn without_a_breaker_there_is_room_up_to_the_limit_whatever_it_was_before(
        breaker in breaker(),
        concurrency_max in 1..20_u32,
        now in timestamp(),
        lease in millis(),
    ) {
        let rule = GateRule { concurrency_max, breaker: None, ..GateRule::default() };
        let mut gate = Gate::restored(breaker);
        prop_assert_eq!(gate.room(&rule, now), Ok(concurrency_max));
        for _ in 0..concurrency_max {
            match gate.admit(&rule, now, lease) {
                Admission::Go(permit) => prop_assert!(!permit.probe),
                Admission::Defer { why, .. } => prop_assert_eq!(why, DeferReason::ConcurrencyLimit),
            }
        }
        prop_assert_eq!(gate.breaker(), Breaker::default());
    }
}
