//! Replays: one extra attempt that leaves everything else as it is.

use hookproof_core::delivery::{
    DeadReason, Delivery, Input, Notice, Origin, Phase, Rejected, Settled,
};
use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::policy::Policy;
use hookproof_core::time::Timestamp;
use proptest::prelude::*;

use crate::given::{
    answered, delivery_in, failed, final_phase, laws, ms, policy, policy_with, setback_told,
    settled, short_schedule, timestamp,
};
use crate::life::{End, Life, end, setback_end};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);
const EARLIER: Timestamp = Timestamp::from_millis(500_000);
const LATER: Timestamp = Timestamp::from_millis(2_000_000);

fn scheduled(due: Timestamp) -> Phase {
    Phase::Scheduled { due, origin: Origin::Schedule }
}

fn dead(at: Timestamp, reason: DeadReason) -> Phase {
    Phase::Dead { at, reason }
}

fn life_in(phase: Phase) -> Life {
    let mut life = Life::new(Policy::default());
    life.delivery =
        Delivery { version: 7, attempts: 3, scheduled_attempts: 2, ..delivery_in(phase) };
    life.now = NOW;
    life
}

/// What a delivery is after a replay of it that ended with this outcome.
fn check(before: Phase, outcome: Outcome, after: Phase) {
    let mut life = life_in(before);
    life.step(Input::Replay, 0).expect("it can be replayed");
    life.attempt((End::With(outcome), 0));
    assert_eq!(life.now, NOW, "a replay is due at once");
    assert_eq!(life.delivery.phase, after, "{outcome} after a replay of {before:?}");
    assert_eq!(life.delivery.attempts, 4);
    assert_eq!(life.delivery.scheduled_attempts, 2, "the schedule counts only its own");
}

#[test]
fn a_replay_that_succeeds_delivers() {
    let delivered = Phase::Delivered { at: NOW };
    check(scheduled(LATER), answered(200), delivered);
    check(dead(EARLIER, DeadReason::Exhausted), answered(200), delivered);
    check(dead(EARLIER, DeadReason::Gone), answered(200), delivered);
    check(Phase::Cancelled { at: EARLIER }, answered(200), delivered);
}

#[test]
fn a_replay_of_what_was_delivered_keeps_the_first_time() {
    let delivered = Phase::Delivered { at: EARLIER };
    check(delivered, answered(200), delivered);
    check(delivered, answered(503), delivered);
    check(delivered, answered(404), delivered);
    check(delivered, failed(Failure::Reset), delivered);
}

#[test]
fn a_replay_that_fails_leaves_the_delivery_as_it_was() {
    let befores = [
        scheduled(EARLIER),
        scheduled(LATER),
        dead(EARLIER, DeadReason::Exhausted),
        dead(EARLIER, DeadReason::Refused),
        dead(EARLIER, DeadReason::Gone),
        Phase::Cancelled { at: EARLIER },
    ];
    for before in befores {
        for outcome in [answered(503), answered(404), answered(302), failed(Failure::Blocked)] {
            check(before, outcome, before);
        }
    }
}

#[test]
fn a_410_to_a_replay_ends_a_delivery_that_was_still_waiting() {
    check(scheduled(LATER), answered(410), dead(NOW, DeadReason::Gone));
    let mut life = life_in(scheduled(LATER));
    life.step(Input::Replay, 0).expect("it can be replayed");
    life.attempt((End::With(answered(410)), 0));
    assert_eq!(life.notices, [Notice { reason: DeadReason::Gone, disables_endpoint: true }]);
}

#[test]
fn the_owner_is_not_told_again_when_the_replay_of_a_dead_delivery_fails() {
    for outcome in [answered(503), answered(404), failed(Failure::Blocked)] {
        let mut life = life_in(dead(EARLIER, DeadReason::Exhausted));
        life.step(Input::Replay, 0).expect("it can be replayed");
        life.attempt((End::With(outcome), 0));
        assert_eq!(life.notices, [], "{outcome}");
    }
}

#[test]
fn a_replay_whose_process_ended_is_made_again_at_once() {
    for end in [End::LeaseExpired, End::OwnerLost, End::With(Outcome::Unknown)] {
        let mut life = life_in(dead(EARLIER, DeadReason::Exhausted));
        let settled = Settled::Dead { at: EARLIER, reason: DeadReason::Exhausted };
        life.step(Input::Replay, 0).expect("it can be replayed");
        life.attempt((end, 0));
        let origin = Origin::Replay { settled };
        assert_eq!(life.delivery.phase, Phase::Scheduled { due: life.now, origin }, "{end:?}");
        life.attempt((End::With(answered(503)), 0));
        assert_eq!(life.delivery.phase, dead(EARLIER, DeadReason::Exhausted), "{end:?}");
        assert_eq!(life.delivery.attempts, 5);
    }
}

#[test]
fn a_replay_asked_for_twice_is_made_once_and_now() {
    let mut life = life_in(scheduled(LATER));
    life.step(Input::Replay, 0).expect("it can be replayed");
    life.now = NOW.plus(ms(5));
    life.step(Input::Replay, 0).expect("it can be asked for again");
    let origin = Origin::Replay { settled: Settled::Scheduled { due: LATER } };
    assert_eq!(life.delivery.phase, Phase::Scheduled { due: life.now, origin });
    life.attempt((End::With(answered(503)), 0));
    assert_eq!(life.delivery.phase, scheduled(LATER));
    assert_eq!(life.delivery.attempts, 4);
}

#[test]
fn no_replay_is_taken_while_an_attempt_is_under_way() {
    let mut life = life_in(scheduled(EARLIER));
    life.step(Input::Admitted, 0).expect("it is due");
    assert_eq!(life.step(Input::Replay, 0), Err(Rejected::InFlight));
}

/// The state that a replay came from.
fn phase_of(settled: Settled) -> Phase {
    match settled {
        Settled::Scheduled { due } => scheduled(due),
        Settled::Delivered { at } => Phase::Delivered { at },
        Settled::Dead { at, reason } => Phase::Dead { at, reason },
        Settled::Cancelled { at } => Phase::Cancelled { at },
    }
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn a_replay_that_meets_a_setback_changes_neither_state_nor_schedule(
        settled in settled(),
        outcome in setback_told(),
        policy in policy(),
        now in timestamp(),
        entropy in any::<u64>(),
    ) {
        let before = phase_of(settled);
        let mut life = life_in(before);
        life.policy = policy;
        life.now = now;
        life.step(Input::Replay, entropy).expect("it can be replayed");
        life.attempt((End::With(outcome), entropy));
        prop_assert_eq!(life.delivery.phase, before);
        prop_assert_eq!(life.delivery.scheduled_attempts, 2);
        prop_assert_eq!(life.notices, []);
    }

    #[test]
    fn a_replay_never_takes_an_attempt_from_the_schedule(
        policy in policy_with(short_schedule()),
        script in proptest::collection::vec((any::<bool>(), setback_end()), 0..20),
    ) {
        let attempts_max = policy.schedule.attempts_max();
        let mut life = Life::new(policy);
        let mut replays_asked = 0;
        for (with_replay, end) in script {
            if life.is_final() || with_replay {
                life.step(Input::Replay, 0).expect("no attempt is under way");
                replays_asked += 1;
            }
            life.attempt(end);
        }
        life.attempt_until_final((End::With(answered(503)), 0));
        let reason = DeadReason::Exhausted;
        let Phase::Dead { at, .. } = life.delivery.phase else {
            return Err(TestCaseError::fail("it must be dead"));
        };
        prop_assert_eq!(life.delivery.phase, dead(at, reason));
        prop_assert_eq!(life.scheduled_claims, attempts_max);
        prop_assert_eq!(life.delivery.scheduled_attempts, attempts_max);
        prop_assert!(life.delivery.attempts >= attempts_max);
        prop_assert!(replays_asked > 0 || life.delivery.attempts == attempts_max);
        prop_assert_eq!(life.notices, [Notice { reason, disables_endpoint: false }]);
    }

    #[test]
    fn a_dead_delivery_stays_told_of_once_however_often_it_is_replayed(
        policy in policy_with(short_schedule()),
        ends in proptest::collection::vec(end(), 1..12),
    ) {
        let mut life = Life::new(policy);
        life.attempt_until_final((End::With(answered(503)), 0));
        let is_410 = |end: End| matches!(end.outcome(), Outcome::Answered { status: 410, .. });
        for end in ends.into_iter().filter(|(end, _)| !is_410(*end)) {
            life.step(Input::Replay, 0).expect("it can be replayed");
            life.attempt(end);
        }
        prop_assert_eq!(life.notices.len(), 1);
    }

    #[test]
    fn a_replay_of_a_final_state_ends_in_that_state_or_delivered(
        before in final_phase(),
        ends in proptest::collection::vec(end(), 0..5),
        policy in policy(),
    ) {
        let mut life = life_in(before);
        life.policy = policy;
        life.step(Input::Replay, 0).expect("it can be replayed");
        for end in ends {
            if !life.is_final() {
                life.attempt(end);
            }
        }
        life.attempt_until_final((End::With(answered(503)), 0));
        let delivered = matches!(life.delivery.phase, Phase::Delivered { .. });
        prop_assert!(delivered || life.delivery.phase == before);
    }
}
