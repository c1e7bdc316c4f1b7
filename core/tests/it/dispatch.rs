//! What is decided between the delivery that is due and its endpoint's gate.

use hookproof_core::classify::{Signal, Throttle};
use hookproof_core::delivery::{Ctx, Delivery, Origin, Phase};
use hookproof_core::dispatch::{Lesson, Places, Wanted, expire, held, learn, want};
use hookproof_core::gate::{Breaker, BreakerRule, DeferReason, Gate, GateRule, Transition};
use hookproof_core::life::{Life, WhileHeld};
use hookproof_core::policy::Policy;

use crate::given::{at, delivery_in, ms};

/// One attempt at a time, which opens the breaker for 100 ms if it fails; a second of age.
fn policy() -> Policy {
    let breaker = BreakerRule { failures_in_a_row: 1, pause: ms(100), ..BreakerRule::default() };
    let gate = GateRule { concurrency_max: 1, breaker: Some(breaker), ..GateRule::default() };
    let life = Life { age_max: Some(ms(1_000)), while_held: WhileHeld::Stops };
    Policy { gate, life, ..Policy::default() }
}

/// Created at 0, and due at 10.
fn due() -> Delivery {
    let phase = Phase::Scheduled { due: at(10), origin: Origin::Schedule };
    Delivery { created_at: at(0), ..delivery_in(phase) }
}

fn ctx(policy: &Policy, now: i64) -> Ctx<'_> {
    Ctx { now: at(now), entropy: 0, policy }
}

#[test]
fn what_is_due_is_claimed_under_a_permit_and_waits_if_there_is_none() {
    let (policy, mut gate) = (policy(), Gate::default());
    let Wanted::Claim(step, permit) = want(&mut gate, &due(), ctx(&policy, 20)) else {
        panic!("nothing stands in the way");
    };
    assert!(matches!(step.next().phase, Phase::InFlight { attempt: 1, .. }), "{step:?}");
    assert_eq!(permit.expires, at(20).plus(policy.lease()));
    let until = permit.expires;
    let deferred = Wanted::Deferred { until, why: DeferReason::ConcurrencyLimit };
    assert_eq!(want(&mut gate, &due(), ctx(&policy, 30)), deferred);
}

#[test]
fn what_is_too_old_ends_and_takes_no_permit() {
    let (policy, mut gate) = (policy(), Gate::default());
    let Wanted::Ends(step) = want(&mut gate, &due(), ctx(&policy, 1_001)) else {
        panic!("it is a millisecond too old");
    };
    assert!(matches!(step.next().phase, Phase::Dead { .. }), "{step:?}");
    assert_eq!(gate.in_flight(at(1_001)), 0);
    assert!(matches!(want(&mut gate, &due(), ctx(&policy, 1_000)), Wanted::Claim(..)));
}

#[test]
fn what_is_no_longer_due_is_stale() {
    let delivered = delivery_in(Phase::Delivered { at: at(5) });
    let (policy, mut gate) = (policy(), Gate::default());
    assert!(matches!(want(&mut gate, &delivered, ctx(&policy, 20)), Wanted::Stale(_)));
    assert_eq!(gate.in_flight(at(20)), 0);
}

/// A failure at 20 opens the breaker until 120.
#[test]
fn what_the_breaker_held_back_is_younger_than_it_looks() {
    let (policy, mut gate) = (policy(), Gate::default());
    let Wanted::Claim(_, permit) = want(&mut gate, &due(), ctx(&policy, 10)) else {
        panic!("nothing stands in the way");
    };
    let lesson = Lesson { signal: Signal::Failure, throttle: None };
    let transition = learn(&mut gate, &policy.gate, at(20), permit, lesson);
    assert!(matches!(transition, Some(Transition::Opened { until, .. }) if until == at(120)));

    assert_eq!(held(&gate, &due(), at(70)), ms(50));
    assert_eq!(held(&gate, &due(), at(500)), ms(100));
    let under_way = delivery_in(Phase::Delivered { at: at(5) });
    assert_eq!(held(&gate, &under_way, at(500)), ms(0), "it does not wait");

    assert!(expire(&gate, &due(), ctx(&policy, 1_100)).is_err());
    assert!(expire(&gate, &due(), ctx(&policy, 1_101)).is_ok(), "1,001 ms without the pause");
    assert!(matches!(want(&mut gate, &due(), ctx(&policy, 1_100)), Wanted::Claim(..)));
}

#[test]
fn an_endpoint_that_asked_to_be_left_alone_is_throttled_before_its_place_is_free() {
    let policy = policy();
    let mut gate = Gate::restored(Breaker::default());
    let Wanted::Claim(_, permit) = want(&mut gate, &due(), ctx(&policy, 10)) else {
        panic!("nothing stands in the way");
    };
    let throttle = Some(Throttle { wait: Some(ms(300)) });
    let lesson = Lesson { signal: Signal::Neither, throttle };
    assert_eq!(learn(&mut gate, &policy.gate, at(20), permit, lesson), None);
    let deferred = Wanted::Deferred { until: at(320), why: DeferReason::Throttled };
    assert_eq!(want(&mut gate, &due(), ctx(&policy, 30)), deferred);
}

#[test]
fn places_are_shared_equally_and_an_eighth_is_kept_for_whoever_has_none() {
    let share =
        |taken, to_share, is_served| Places { attempts_max: 16, taken, to_share }.share(is_served);
    for (taken, to_share, is_served, expected) in [
        (0, 1, false, 16),
        (0, 1, true, 14),
        (0, 4, false, 4),
        (0, 4, true, 3),
        (10, 4, false, 1),
        (13, 4, true, 1),
        (14, 4, true, 0),
        (14, 4, false, 1),
        (16, 4, false, 0),
        (99, 4, false, 0),
        (0, 0, false, 16),
    ] {
        let found = share(taken, to_share, is_served);
        assert_eq!(found, expected, "{taken} taken, {to_share} to share, served: {is_served}");
    }
}
