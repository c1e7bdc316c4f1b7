//! Replays: one extra attempt that leaves everything else as it is.

use hookproof_core::delivery::{
    DeadReason, Delivery, Input, Notice, Origin, Phase, Rejected, Settled,
};
use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::policy::Policy;
use hookproof_core::time::Timestamp;
use proptest::prelude::*;

use crate::given::{
    ADMITTED, answered, delivery_in, failed, final_phase, laws, ms, policy, policy_with, setback,
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

fn finals() -> [Phase; 5] {
    [
        Phase::Delivered { at: EARLIER },
        dead(EARLIER, DeadReason::Exhausted),
        dead(EARLIER, DeadReason::Refused),
        dead(EARLIER, DeadReason::Gone),
        Phase::Cancelled { at: EARLIER },
    ]
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
    for before in [scheduled(EARLIER), scheduled(LATER)].into_iter().chain(finals()) {
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
    assert_eq!(life.notices, [Notice { reason: DeadReason::Gone }]);
    assert_eq!(life.disabled, 1);
}

#[test]
fn a_410_to_a_replay_of_what_was_settled_disables_the_endpoint_and_changes_nothing_else() {
    for before in finals() {
        let mut life = life_in(before);
        life.step(Input::Replay, 0).expect("it can be replayed");
        life.attempt((End::With(answered(410)), 0));
        assert_eq!(life.delivery.phase, before);
        assert_eq!((life.notices.len(), life.disabled), (0, 1), "{before:?}");
    }
}

#[test]
fn the_owner_is_not_told_again_when_the_replay_of_a_dead_delivery_fails() {
    for outcome in [answered(503), answered(404), answered(410), failed(Failure::Blocked)] {
        let mut life = life_in(dead(EARLIER, DeadReason::Exhausted));
        life.step(Input::Replay, 0).expect("it can be replayed");
        life.attempt((End::With(outcome), 0));
        assert_eq!(life.notices, [], "{outcome}");
    }
}

const UNKNOWN: [End; 3] = [End::LeaseExpired, End::OwnerLost, End::With(Outcome::Unknown)];

#[test]
fn a_replay_whose_process_ended_leaves_the_delivery_as_it_was_and_is_not_repeated() {
    for before in [scheduled(EARLIER), scheduled(LATER)].into_iter().chain(finals()) {
        for end in UNKNOWN {
            let mut life = life_in(before);
            life.step(Input::Replay, 0).expect("it can be replayed");
            let step = life.attempt((end, 0));
            assert_eq!(life.delivery.phase, before, "{end:?}");
            assert_eq!((life.delivery.attempts, life.delivery.scheduled_attempts), (4, 2));
            let record = step.record.expect("the history says so");
            assert_eq!((record.attempt, record.outcome), (4, Outcome::Unknown), "{end:?}");
        }
    }
}

fn check_cancel(before: Phase, after: Phase) {
    let mut waiting = life_in(before);
    waiting.step(Input::Replay, 0).expect("it can be replayed");
    let mut under_way = life_in(before);
    under_way.step(Input::Replay, 0).expect("it can be replayed");
    under_way.step(ADMITTED, 0).expect("it is due at once");
    for life in [&mut waiting, &mut under_way] {
        life.step(Input::Cancel, 0).expect("it can be cancelled");
        assert_eq!(life.delivery.phase, after, "a cancelled replay of {before:?}");
        assert_eq!((life.notices.len(), life.disabled), (0, 0));
    }
    assert_eq!(waiting.records, []);
    let outcomes: Vec<_> = under_way.records.iter().map(|record| record.outcome).collect();
    assert_eq!(outcomes, [Outcome::Unknown]);
}

#[test]
fn to_cancel_a_replay_of_what_was_settled_withdraws_only_the_replay() {
    for before in finals() {
        check_cancel(before, before);
    }
}

#[test]
fn to_cancel_a_replay_of_a_waiting_delivery_cancels_the_delivery() {
    check_cancel(scheduled(EARLIER), Phase::Cancelled { at: NOW });
    check_cancel(scheduled(LATER), Phase::Cancelled { at: NOW });
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
    life.step(ADMITTED, 0).expect("it is due");
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
        outcome in setback(),
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
        prop_assert_eq!(life.delivery.attempts, attempts_max + replays_asked, "one for each");
        prop_assert_eq!(life.notices, [Notice { reason }]);
    }

    #[test]
    fn a_dead_delivery_stays_told_of_once_however_often_it_is_replayed(
        policy in policy_with(short_schedule()),
        ends in proptest::collection::vec(end(), 1..12),
    ) {
        let mut life = Life::new(policy);
        life.attempt_until_final((End::With(answered(503)), 0));
        let is_410 = |end: &End| matches!(end.outcome(), Outcome::Answered { status: 410, .. });
        let gone = ends.iter().filter(|(end, _)| is_410(end)).count();
        for end in ends {
            life.step(Input::Replay, 0).expect("it can be replayed");
            life.attempt(end);
        }
        prop_assert_eq!(life.notices.len(), 1);
        prop_assert_eq!(life.disabled, gone);
    }

    #[test]
    fn a_replay_of_a_final_state_is_one_attempt_and_ends_in_that_state_or_delivered(
        before in final_phase(),
        (end, entropy) in end(),
        policy in policy(),
    ) {
        let mut life = life_in(before);
        life.policy = policy;
        life.step(Input::Replay, 0).expect("it can be replayed");
        life.attempt((end, entropy));
        let delivered = matches!(life.delivery.phase, Phase::Delivered { .. });
        prop_assert!(delivered || life.delivery.phase == before);
        prop_assert_eq!(life.delivery.attempts, 4);
    }

    #[test]
    fn a_cancelled_replay_leaves_what_was_settled_and_ends_what_was_waiting(
        settled in settled(),
        under_way in any::<bool>(),
        now in timestamp(),
    ) {
        let mut life = life_in(phase_of(settled));
        life.now = now;
        life.step(Input::Replay, 0).expect("it can be replayed");
        if under_way {
            life.step(ADMITTED, 0).expect("it is due at once");
        }
        life.step(Input::Cancel, 0).expect("it can be cancelled");
        let expected = match settled {
            Settled::Scheduled { .. } => Phase::Cancelled { at: now },
            _ => phase_of(settled),
        };
        prop_assert_eq!(life.delivery.phase, expected);
        prop_assert_eq!(life.records.len(), usize::from(under_way));
    }
}
