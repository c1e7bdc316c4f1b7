//! One delivery, step by step: what each input makes of each phase.

use hookproof_core::classify::Verdict;
use hookproof_core::delivery::{
    AttemptRecord, Committed, Ctx, DeadReason, Delivery, Effect, Input, Notice, Origin, Phase,
    Rejected, Settled, WakeReason,
};
use hookproof_core::id::{DeliveryId, EndpointId, EventId};
use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::policy::Policy;
use hookproof_core::preset;
use hookproof_core::schedule::Backoff;
use hookproof_core::time::{Millis, Timestamp};

use crate::given::{
    ADMITTED, FAILURES, answered, answered_later, at, delivery_in, failed, ms, secs,
};
use crate::life::{End, Life};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);
const EARLIER: Timestamp = Timestamp::from_millis(999_000);
const LATER: Timestamp = Timestamp::from_millis(1_000_001);

/// By the default policy, the second scheduled attempt is followed by a wait of five minutes.
const NEXT: Timestamp = Timestamp::from_millis(1_300_000);

/// A delivery in its third attempt, the first of which was a replay.
fn given(phase: Phase) -> Delivery {
    Delivery { version: 7, attempts: 3, scheduled_attempts: 2, ..delivery_in(phase) }
}

fn ctx(policy: &Policy) -> Ctx<'_> {
    Ctx { now: NOW, entropy: 0, policy }
}

/// What `input` makes of a delivery in a phase, at [`NOW`], by the default policy.
fn check(phase: Phase, input: Input, expected: Result<Phase, Rejected>) {
    let found = given(phase).handle(ctx(&Policy::default()), input).map(|step| step.next().phase);
    assert_eq!(found, expected, "{input:?} in {phase:?}");
}

fn commit(phase: Phase, input: Input) -> Committed {
    let delivery = given(phase);
    let step = delivery.handle(ctx(&Policy::default()), input).expect("it fits");
    step.onto(&delivery).expect("nothing came between")
}

fn scheduled(due: Timestamp) -> Phase {
    Phase::Scheduled { due, origin: Origin::Schedule }
}

fn in_flight(lease_until: Timestamp) -> Phase {
    Phase::InFlight { attempt: 3, started_at: EARLIER, lease_until, origin: Origin::Schedule }
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

fn finished(attempt: u32, outcome: Outcome) -> Input {
    Input::Finished { attempt, outcome }
}

#[test]
fn a_new_delivery_is_due_at_once() {
    let event_id = EventId::new("msg_9").unwrap();
    let endpoint_id = EndpointId::new("ep_9").unwrap();
    let id = DeliveryId::of(&event_id, &endpoint_id);
    let delivery = Delivery::new(id.clone(), event_id.clone(), endpoint_id.clone(), NOW);
    assert_eq!((delivery.version, delivery.attempts, delivery.scheduled_attempts), (0, 0, 0));
    assert_eq!((delivery.id, delivery.event_id), (id, event_id));
    assert_eq!((delivery.endpoint_id, delivery.created_at), (endpoint_id, NOW));
    assert_eq!(delivery.phase, scheduled(NOW));
}

#[test]
fn a_delivery_wakes_when_it_is_due_or_its_lease_ends_and_never_when_final() {
    assert_eq!(given(scheduled(LATER)).wake_at(), Some((LATER, WakeReason::Due)));
    assert_eq!(given(in_flight(LATER)).wake_at(), Some((LATER, WakeReason::LeaseEnds)));
    for phase in finals() {
        assert_eq!(given(phase).wake_at(), None, "{phase:?}");
    }
}

#[test]
fn an_attempt_is_claimed_when_it_is_due_and_not_a_millisecond_sooner() {
    let claimed = Phase::InFlight {
        attempt: 4,
        started_at: NOW,
        lease_until: at(1_015_000),
        origin: Origin::Schedule,
    };
    check(scheduled(EARLIER), ADMITTED, Ok(claimed));
    check(scheduled(NOW), ADMITTED, Ok(claimed));
    check(scheduled(LATER), ADMITTED, Err(Rejected::NotDue(LATER)));
}

#[test]
fn a_claim_counts_the_attempt_and_sends_it_after_the_commit() {
    let committed = commit(scheduled(NOW), ADMITTED);
    assert_eq!(committed.delivery.attempts, 4);
    assert_eq!(committed.delivery.scheduled_attempts, 3);
    assert_eq!(committed.delivery.version, 8);
    assert_eq!((committed.record, committed.notice), (None, None));
    assert_eq!(
        committed.effects,
        [
            Effect::Send { attempt: 4 },
            Effect::WakeAt { at: at(1_015_000), reason: WakeReason::LeaseEnds },
        ]
    );
}

#[test]
fn while_an_attempt_is_under_way_no_other_begins() {
    check(in_flight(LATER), ADMITTED, Err(Rejected::InFlight));
    check(in_flight(EARLIER), ADMITTED, Err(Rejected::InFlight));
    check(in_flight(LATER), Input::Replay, Err(Rejected::InFlight));
}

#[test]
fn a_2xx_delivers() {
    check(in_flight(LATER), finished(3, answered(200)), Ok(Phase::Delivered { at: NOW }));
    check(in_flight(LATER), finished(3, answered(204)), Ok(Phase::Delivered { at: NOW }));
}

#[test]
fn a_success_after_the_lease_but_before_anybody_took_over_still_counts() {
    check(in_flight(EARLIER), finished(3, answered(200)), Ok(Phase::Delivered { at: NOW }));
}

#[test]
fn a_setback_waits_for_the_schedule() {
    for status in [302, 408, 425, 429, 500, 503, 599, 101, 999] {
        check(in_flight(LATER), finished(3, answered(status)), Ok(scheduled(NEXT)));
    }
    for failure in FAILURES.into_iter().filter(|failure| *failure != Failure::Blocked) {
        check(in_flight(LATER), finished(3, failed(failure)), Ok(scheduled(NEXT)));
    }
}

#[test]
fn a_retry_after_puts_the_next_attempt_off_but_never_brings_it_forward() {
    let asked = |wait| finished(3, answered_later(503, wait));
    check(in_flight(LATER), asked(secs(1)), Ok(scheduled(NEXT)));
    check(in_flight(LATER), asked(secs(300)), Ok(scheduled(NEXT)));
    check(in_flight(LATER), asked(secs(301)), Ok(scheduled(NOW.plus(secs(301)))));
    check(in_flight(LATER), asked(Millis::MAX), Ok(scheduled(NOW.plus(Millis::from_hours(24)))));
}

#[test]
fn an_answer_that_no_retry_can_help_kills() {
    for outcome in [answered(400), answered(401), answered(404), failed(Failure::Blocked)] {
        check(in_flight(LATER), finished(3, outcome), Ok(dead(NOW, DeadReason::Refused)));
    }
    check(in_flight(LATER), finished(3, answered(410)), Ok(dead(NOW, DeadReason::Gone)));
}

#[test]
fn the_outcome_of_another_attempt_is_rejected() {
    for attempt in [0, 2, 4, u32::MAX] {
        check(in_flight(LATER), finished(attempt, answered(200)), Err(Rejected::NotInFlight));
    }
    check(scheduled(NOW), finished(3, answered(200)), Err(Rejected::NotInFlight));
}

#[test]
fn a_lease_expires_at_its_end_and_not_a_millisecond_sooner() {
    check(in_flight(EARLIER), Input::LeaseExpired, Ok(scheduled(NEXT)));
    check(in_flight(NOW), Input::LeaseExpired, Ok(scheduled(NEXT)));
    check(in_flight(LATER), Input::LeaseExpired, Err(Rejected::LeaseHolds(LATER)));
    check(scheduled(NOW), Input::LeaseExpired, Err(Rejected::NotInFlight));
}

#[test]
fn an_attempt_whose_owner_is_lost_ends_whatever_is_left_of_its_lease() {
    check(in_flight(LATER), Input::OwnerLost, Ok(scheduled(NEXT)));
    check(in_flight(EARLIER), Input::OwnerLost, Ok(scheduled(NEXT)));
    check(scheduled(NOW), Input::OwnerLost, Err(Rejected::NotInFlight));
}

#[test]
fn a_delivery_is_cancelled_while_it_waits_and_while_it_is_under_way() {
    check(scheduled(LATER), Input::Cancel, Ok(Phase::Cancelled { at: NOW }));
    check(in_flight(LATER), Input::Cancel, Ok(Phase::Cancelled { at: NOW }));
}

#[test]
fn a_final_state_takes_nothing_but_a_replay() {
    for phase in finals() {
        check(phase, ADMITTED, Err(Rejected::Settled));
        check(phase, Input::Cancel, Err(Rejected::Settled));
        check(phase, finished(3, answered(200)), Err(Rejected::NotInFlight));
        check(phase, Input::LeaseExpired, Err(Rejected::NotInFlight));
        check(phase, Input::OwnerLost, Err(Rejected::NotInFlight));
        assert!(given(phase).handle(ctx(&Policy::default()), Input::Replay).is_ok());
    }
}

fn check_record(input: Input, outcome: Outcome, verdict: Verdict) {
    let record = commit(in_flight(EARLIER), input).record;
    let expected =
        AttemptRecord { attempt: 3, started_at: EARLIER, finished_at: NOW, outcome, verdict };
    assert_eq!(record, Some(expected), "{input:?}");
}

#[test]
fn each_end_of_an_attempt_is_recorded_with_what_it_meant() {
    let retry = Verdict::Retry { floor: None };
    check_record(finished(3, answered(200)), answered(200), Verdict::Delivered);
    check_record(finished(3, answered(404)), answered(404), Verdict::Final);
    check_record(finished(3, answered(410)), answered(410), Verdict::Gone);
    check_record(finished(3, failed(Failure::Timeout)), failed(Failure::Timeout), retry);
    let busy = answered_later(429, secs(7));
    check_record(finished(3, busy), busy, Verdict::Retry { floor: Some(secs(7)) });
    check_record(Input::LeaseExpired, Outcome::Unknown, retry);
    check_record(Input::OwnerLost, Outcome::Unknown, retry);
    check_record(Input::Cancel, Outcome::Unknown, retry);
}

#[test]
fn a_cancelled_wait_leaves_no_record() {
    assert_eq!(commit(scheduled(NOW), Input::Cancel).record, None);
}

fn check_notice(input: Input, expected: Option<DeadReason>) {
    let committed = commit(in_flight(EARLIER), input);
    let expected = expected.map(|reason| Notice { reason });
    assert_eq!(committed.notice, expected, "{input:?}");
    let announced = committed.effects.contains(&Effect::NoticePending);
    assert_eq!(announced, expected.is_some(), "{input:?}");
}

#[test]
fn the_owner_is_told_of_a_death_and_of_nothing_else() {
    check_notice(finished(3, answered(404)), Some(DeadReason::Refused));
    check_notice(finished(3, answered(410)), Some(DeadReason::Gone));
    check_notice(finished(3, failed(Failure::Blocked)), Some(DeadReason::Refused));
    check_notice(finished(3, answered(200)), None);
    check_notice(finished(3, answered(503)), None);
    check_notice(Input::LeaseExpired, None);
    check_notice(Input::OwnerLost, None);
    check_notice(Input::Cancel, None);
}

#[test]
fn a_410_disables_the_endpoint_and_nothing_else_does() {
    let disables = |input| commit(in_flight(EARLIER), input).disables_endpoint;
    assert!(disables(finished(3, answered(410))));
    for outcome in [answered(200), answered(404), answered(503), failed(Failure::Blocked)] {
        assert!(!disables(finished(3, outcome)), "{outcome}");
    }
    for input in [Input::LeaseExpired, Input::OwnerLost, Input::Cancel] {
        assert!(!disables(input), "{input:?}");
    }
    assert!(!commit(scheduled(NOW), ADMITTED).disables_endpoint);
}

#[test]
fn a_failing_endpoint_is_tried_at_exactly_the_times_of_the_schedule() {
    let mut life = Life::new(Policy::default());
    let published = life.now;
    life.attempt_until_final((End::With(answered(503)), 0));
    let times: Vec<_> =
        life.records.iter().map(|record| record.started_at.since(published).to_string()).collect();
    assert_eq!(
        times.join(" "),
        "0s 5s 5m5s 35m5s 2h35m5s 7h35m5s 17h35m5s 31h35m5s 51h35m5s 75h35m5s"
    );
    assert_eq!(life.delivery.phase, dead(life.now, DeadReason::Exhausted));
    assert_eq!(life.notices, [Notice { reason: DeadReason::Exhausted }]);
}

#[test]
fn the_wait_is_counted_from_the_outcome_and_drawn_from_the_entropy() {
    let policy = Policy { schedule: preset::full_jitter_hour().schedule, ..Policy::default() };
    for (entropy, wait) in [(0, ms(0)), (u64::MAX / 2, secs(1)), (u64::MAX, secs(2))] {
        let mut life = Life::new(policy.clone());
        life.step(ADMITTED, 0).expect("it is due");
        life.now = life.now.plus(secs(8));
        let step = life.step(finished(1, answered(503)), entropy).expect("it is under way");
        assert_eq!(step.delivery.phase, scheduled(life.now.plus(wait)), "entropy {entropy}");
    }
}

#[test]
fn a_schedule_cut_short_while_a_delivery_waits_ends_it_with_its_next_failure() {
    let mut life = Life::new(Policy::default());
    for _ in 0..4 {
        life.attempt((End::With(answered(503)), 0));
    }
    life.policy.schedule.backoff = Backoff::List { waits: vec![secs(1); 2] };
    life.attempt((End::With(answered(503)), 0));
    assert_eq!(life.delivery.phase, dead(life.now, DeadReason::Exhausted));
    assert_eq!(life.notices.len(), 1);
}

#[test]
fn of_two_steps_from_the_same_state_only_the_first_is_accepted() {
    let policy = Policy::default();
    let stored = given(in_flight(EARLIER));
    let succeeded = stored.handle(ctx(&policy), finished(3, answered(200))).expect("it fits");
    let expired = stored.handle(ctx(&policy), Input::LeaseExpired).expect("it fits");
    let stored = succeeded.onto(&stored).expect("it is first").delivery;
    assert_eq!(expired.onto(&stored), Err(Rejected::Stale { expected: 7, stored: 8 }));
}

#[test]
fn a_step_is_not_accepted_onto_another_delivery() {
    let stored = given(scheduled(NOW));
    let other = Delivery { id: DeliveryId::new("msg_1~ep_2").unwrap(), ..stored.clone() };
    let step = stored.handle(ctx(&Policy::default()), ADMITTED).expect("it is due");
    assert!(matches!(step.onto(&other), Err(Rejected::Stale { .. })));
}

#[test]
fn after_the_last_version_comes_the_first() {
    let policy = Policy::default();
    let stored = Delivery { version: u64::MAX, ..given(scheduled(NOW)) };
    let step = stored.handle(ctx(&policy), ADMITTED).expect("it is due");
    let cancelled = stored.handle(ctx(&policy), Input::Cancel).expect("it waits");
    let stored = step.onto(&stored).expect("nothing came between").delivery;
    assert_eq!(stored.version, 0);
    let stale = Rejected::Stale { expected: u64::MAX, stored: 0 };
    assert_eq!(cancelled.onto(&stored), Err(stale));
}

fn check_json(phase: Phase, expected: &str) {
    assert_eq!(serde_json::to_string(&phase).expect("it can be written"), expected);
    let back: Phase = serde_json::from_str(expected).expect("it can be read back");
    assert_eq!(back, phase);
}

#[test]
fn a_phase_is_told_in_json_by_its_name_and_its_origin_by_who_asked() {
    check_json(scheduled(at(5)), r#"{"name":"scheduled","due":5,"origin":{"by":"schedule"}}"#);
    let settled = Settled::Dead { at: at(4), reason: DeadReason::Exhausted };
    let origin = Origin::Replay { settled };
    check_json(
        Phase::InFlight { attempt: 3, started_at: at(5), lease_until: at(6), origin },
        "{\"name\":\"in_flight\",\"attempt\":3,\"started_at\":5,\"lease_until\":6,\
         \"origin\":{\"by\":\"replay\",\
         \"settled\":{\"was\":\"dead\",\"at\":4,\"reason\":\"exhausted\"}}}",
    );
    check_json(Phase::Delivered { at: at(5) }, r#"{"name":"delivered","at":5}"#);
    check_json(dead(at(5), DeadReason::Gone), r#"{"name":"dead","at":5,"reason":"gone"}"#);
    check_json(Phase::Cancelled { at: at(5) }, r#"{"name":"cancelled","at":5}"#);
}

#[test]
fn a_rejection_says_why() {
    let told = |rejected: Rejected| rejected.to_string();
    let stale = Rejected::Stale { expected: 7, stored: 8 };
    assert_eq!(told(stale), "made from version 7, but version 8 is stored");
    assert_eq!(told(Rejected::NotDue(LATER)), "not due before 1000001 ms");
    assert_eq!(told(Rejected::LeaseHolds(LATER)), "claimed until 1000001 ms");
    assert_eq!(told(Rejected::NotInFlight), "that attempt is not under way");
    assert_eq!(told(Rejected::InFlight), "an attempt is under way");
    assert_eq!(told(Rejected::Settled), "the delivery is in a final state");
}

#[test]
fn how_long_the_breaker_held_a_delivery_back_survives_its_storage() {
    for held in [Millis::ZERO, ms(1), Millis::MAX] {
        let delivery = Delivery { held, ..given(scheduled(NEXT)) };
        let written = serde_json::to_string(&delivery).expect("it can be written");
        assert_eq!(written.contains("held"), held > Millis::ZERO, "{written}");
        assert_eq!(serde_json::from_str::<Delivery>(&written).expect("it can be read"), delivery);
    }
}
