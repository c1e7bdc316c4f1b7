//! The greatest age of a delivery: what ends it, and what counts.

use hookproof_core::delivery::{
    DeadReason, Delivery, Effect, Input, Notice, Origin, Phase, Rejected,
};
use hookproof_core::life::{Life as Span, WhileHeld};
use hookproof_core::policy::Policy;
use hookproof_core::preset;
use hookproof_core::schedule::{ATTEMPTS_MAX, Backoff, Jitter, Schedule};
use hookproof_core::time::Millis;

use crate::given::{ADMITTED, answered, answered_later, ms, secs};
use crate::life::{End, Life};

fn policy(waits: &[u64], age_max: Millis, while_held: WhileHeld) -> Policy {
    let waits = waits.iter().copied().map(secs).collect();
    Policy {
        schedule: Schedule::new(Backoff::List { waits }, Jitter::None),
        life: Span { age_max: Some(age_max), while_held },
        ..Policy::default()
    }
}

fn expired(life: &Life) -> Phase {
    Phase::Dead { at: life.now, reason: DeadReason::Expired }
}

const FAILS: (End, u64) =
    (End::With(hookproof_core::outcome::Outcome::Answered { status: 503, retry_after: None }), 0);

#[test]
fn an_attempt_that_would_begin_after_the_greatest_age_is_not_made() {
    for (age_max, attempts) in [(secs(29), 2), (secs(30), 3), (secs(31), 3)] {
        let mut life = Life::new(policy(&[10, 20, 1000], age_max, WhileHeld::Runs));
        life.attempt_until_final(FAILS);
        assert_eq!(life.records.len(), attempts, "{age_max}");
        assert_eq!(life.delivery.phase, expired(&life));
        assert_eq!(life.notices, [Notice { reason: DeadReason::Expired }]);
    }
}

#[test]
fn whichever_limit_comes_first_ends_the_delivery() {
    let mut life = Life::new(policy(&[10, 20], secs(1000), WhileHeld::Runs));
    life.attempt_until_final(FAILS);
    assert_eq!(life.delivery.phase, Phase::Dead { at: life.now, reason: DeadReason::Exhausted });
}

fn every_5_s(jitter: Jitter, age_max: Option<Millis>) -> Policy {
    let (base, cap) = (secs(5), secs(5));
    let backoff = Backoff::Linear { base, step: Millis::ZERO, cap, attempts_max: ATTEMPTS_MAX };
    Policy {
        schedule: Schedule::new(backoff, jitter),
        life: Span { age_max, while_held: WhileHeld::Runs },
        ..Policy::default()
    }
}

#[test]
fn the_age_alone_can_end_a_delivery_however_many_attempts_that_takes() {
    let policy = every_5_s(Jitter::None, Some(Millis::from_minutes(30)));
    assert_eq!(policy.validate(), Ok(()));
    let mut life = Life::new(policy);
    life.attempt_until_final(FAILS);
    assert_eq!(life.records.len(), 30 * 60 / 5 + 1);
    assert_eq!(life.delivery.phase, expired(&life));
}

#[test]
fn without_a_limit_on_the_attempts_the_age_must_be_what_ends_a_delivery() {
    let problem = |policy: Policy| policy.validate().expect_err("nothing ends it").to_string();
    let endless = problem(every_5_s(Jitter::None, None));
    assert!(
        endless.contains("`schedule.backoff.attempts_max` is left out, and so is life.age_max")
    );
    // 100,000 waits of 2.5 s in the mean.
    let late = problem(every_5_s(Jitter::Full, Some(Millis::from_hours(72))));
    assert!(
        late.contains("100000 attempts, the most there can be, are made within 69h26m37s500ms in"),
        "{late}"
    );
    assert_eq!(every_5_s(Jitter::Full, Some(Millis::from_hours(69))).validate(), Ok(()));
}

#[test]
fn a_retry_after_beyond_the_greatest_age_ends_the_delivery() {
    let mut life = Life::new(policy(&[10, 20], secs(60), WhileHeld::Runs));
    life.attempt((End::With(answered_later(429, secs(61))), 0));
    assert_eq!(life.delivery.phase, expired(&life));
}

#[test]
fn what_became_too_old_while_it_was_held_back_is_dead_without_a_request() {
    let mut life = Life::new(policy(&[10, 20], secs(60), WhileHeld::Runs));
    life.attempt(FAILS);
    life.now = life.now.plus(secs(61));
    let step = life.step(ADMITTED, 0).expect("it is due");
    assert_eq!(step.delivery.phase, expired(&life));
    assert!(!step.effects.iter().any(|effect| matches!(effect, Effect::Send { .. })));
    assert_eq!(step.notice, Some(Notice { reason: DeadReason::Expired }));
    assert_eq!(step.delivery.attempts, 1, "it is no attempt");
}

#[test]
fn the_time_that_the_breaker_holds_does_not_count_where_the_age_stops_meanwhile() {
    let mut life = Life::new(policy(&[10, 20], secs(30), WhileHeld::Stops));
    life.attempt(FAILS);
    life.now = life.now.plus(secs(10_000));
    let step = life.step(Input::Admitted { held: secs(9_990) }, 0).expect("it is due");
    assert!(matches!(step.delivery.phase, Phase::InFlight { attempt: 2, .. }), "{step:?}");
    assert_eq!(step.delivery.held, secs(9_990));
    let attempt = step.delivery.attempts;
    let failed = Input::Finished { attempt, outcome: answered(503) };
    let step = life.step(failed, 0).expect("it is under way");
    let due = life.now.plus(secs(20));
    assert_eq!(step.delivery.phase, Phase::Scheduled { due, origin: Origin::Schedule });
}

#[test]
fn what_a_limit_or_a_sender_that_is_down_holds_back_grows_older_all_the_same() {
    // Due at 10 s and begun at `late`, of which the breaker held it for `held`.
    for (while_held, late, held, begins) in [
        (WhileHeld::Stops, 40, 10, true),
        (WhileHeld::Stops, 41, 10, false),
        (WhileHeld::Stops, 30, 0, true),
        (WhileHeld::Stops, 31, 0, false),
        (WhileHeld::Runs, 31, 21, false),
        // No more than it has been due for.
        (WhileHeld::Stops, 50, 1_000, true),
    ] {
        let mut life = Life::new(policy(&[10, 20], secs(30), while_held));
        life.attempt(FAILS);
        life.now = life.delivery.created_at.plus(secs(late));
        let step = life.step(Input::Admitted { held: secs(held) }, 0).expect("it is due");
        let began = matches!(step.delivery.phase, Phase::InFlight { .. });
        assert_eq!(began, begins, "{while_held:?}, {late} s, {held} s: {step:?}");
        assert!(began || step.delivery.phase == expired(&life), "{step:?}");
    }
}

#[test]
fn what_is_too_old_dies_without_the_gate_and_what_is_not_goes_on_waiting() {
    let over = |held| Input::LifeExpired { held: secs(held) };
    let mut life = Life::new(policy(&[10, 20], secs(30), WhileHeld::Runs));
    assert_eq!(life.step(over(0), 0), Err(Rejected::LifeHolds));
    life.attempt(FAILS);
    life.now = life.delivery.created_at.plus(secs(30));
    assert_eq!(life.step(over(20), 0), Err(Rejected::LifeHolds), "it may still begin");
    life.now = life.now.plus(ms(1));
    let step = life.step(over(20), 0).expect("it is too old");
    assert_eq!(step.delivery.phase, expired(&life));
    assert_eq!(step.notice, Some(Notice { reason: DeadReason::Expired }));
    assert_eq!(life.step(over(0), 0), Err(Rejected::Settled));

    let mut life = Life::new(policy(&[10, 20], secs(30), WhileHeld::Stops));
    life.attempt(FAILS);
    life.now = life.delivery.created_at.plus(secs(1_000));
    assert_eq!(life.step(over(970), 0), Err(Rejected::LifeHolds), "the breaker held it");
    let _ = life.step(over(969), 0).expect("it is a second too old");
}

#[test]
fn no_age_ends_what_has_no_greatest_age_or_is_a_replay_or_is_under_way() {
    let over = Input::LifeExpired { held: secs(0) };
    let mut life = Life::new(Policy::default());
    life.now = life.now.plus(Millis::from_hours(10_000));
    assert_eq!(life.step(over, 0), Err(Rejected::LifeHolds));

    let mut life = Life::new(policy(&[10], secs(5), WhileHeld::Runs));
    life.attempt(FAILS);
    let _ = life.step(Input::Replay, 0).expect("it can be replayed");
    life.now = life.now.plus(secs(1_000));
    assert_eq!(life.step(over, 0), Err(Rejected::LifeHolds));
    let _ = life.step(ADMITTED, 0).expect("it is due");
    assert_eq!(life.step(over, 0), Err(Rejected::InFlight));
}

#[test]
fn a_replay_is_made_at_any_age() {
    let mut life = Life::new(policy(&[10, 20], secs(5), WhileHeld::Runs));
    life.attempt(FAILS);
    assert_eq!(life.delivery.phase, expired(&life));
    life.now = life.now.plus(secs(1_000));
    let _ = life.step(Input::Replay, 0).expect("it can be replayed");
    let step = life.step(ADMITTED, 0).expect("it is due");
    assert!(matches!(step.delivery.phase, Phase::InFlight { .. }));
}

#[test]
fn a_greatest_age_of_zero_is_refused() {
    let error = policy(&[10], ms(0), WhileHeld::Runs).validate().expect_err("zero");
    assert_eq!(error.field(), "life.age_max");
}

#[test]
fn decorrelated_jitter_remembers_the_wait_that_was_drawn_and_nothing_else_does() {
    let (base, cap) = (secs(10), Millis::from_hours(1));
    let backoff = Backoff::Exponential { base, factor: 3, cap, attempts_max: 9 };
    let schedule = Schedule::new(backoff, Jitter::Decorrelated);
    let mut life = Life::new(Policy { schedule, ..Policy::default() });
    life.attempt((End::With(answered(503)), u64::MAX));
    assert_eq!(life.delivery.previous_wait, Some(secs(30)));
    life.attempt((End::With(answered_later(503, secs(5_000))), 0));
    assert_eq!(life.delivery.previous_wait, Some(secs(10)), "a Retry-After is not remembered");
    life.attempt((End::With(answered(503)), u64::MAX));
    assert_eq!(life.delivery.previous_wait, Some(secs(30)));

    let schedule = preset::full_jitter_hour().schedule;
    let mut life = Life::new(Policy { schedule, ..Policy::default() });
    life.attempt(FAILS);
    assert_eq!(life.delivery.previous_wait, None);
}

#[test]
fn field_01_and_14_a_delivery_has_one_next_attempt_and_a_second_admission_changes_nothing() {
    let mut life = Life::new(Policy::default());
    let _ = life.step(ADMITTED, 0).expect("it is due");
    assert!(life.step(ADMITTED, 0).is_err(), "two workers");
    let failed = Input::Finished { attempt: 1, outcome: answered(500) };
    let _ = life.step(failed, 0).expect("it is under way");
    let wake = life.delivery.wake_at().expect("it waits").0;
    assert!(wake > life.now, "the next attempt is not in the past");
    life.now = life.now.plus(secs(86_400));
    assert!(life.step(ADMITTED, 0).is_ok(), "however late, it is picked up");
}

#[test]
fn a_delivery_that_was_stored_before_there_was_an_age_can_be_read() {
    let life = Life::new(Policy::default());
    let text = serde_json::to_string(&life.delivery).expect("it can be written");
    assert!(!text.contains("held") && !text.contains("previous_wait"), "{text}");
    let back: Delivery = serde_json::from_str(&text).expect("it can be read");
    assert_eq!(back, life.delivery);
}
