//! Laws of a delivery, from whatever state, by whatever policy, at whatever time.

use hookproof_core::classify::Verdict;
use hookproof_core::delivery::{Ctx, DeadReason, Delivery, Input, Notice, Origin, Phase, Rejected};
use hookproof_core::id::DeliveryId;
use hookproof_core::outcome::Outcome;
use hookproof_core::time::Millis;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::given::{
    ADMITTED, answered, check_round_trip, delivery, delivery_of, entropy, final_phase, input, laws,
    outcome, policy, policy_with, short_schedule, timestamp,
};
use crate::life::{End, Life, check_step, end, is_final, setback_end};

/// Any delivery, and any input for it.
fn delivery_and_input() -> impl Strategy<Value = (Delivery, Input)> {
    delivery().prop_flat_map(|delivery| {
        let input = input(&delivery);
        (Just(delivery), input)
    })
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn no_input_in_any_state_panics_and_every_step_keeps_to_the_rules(
        (delivery, input) in delivery_and_input(),
        policy in policy(),
        now in timestamp(),
        entropy in entropy(),
    ) {
        let ctx = Ctx { now, entropy, policy: &policy };
        if let Ok(step) = delivery.handle(ctx, input) {
            let expected = (step.next().clone(), step.record().copied());
            let committed = step.onto(&delivery).expect("nothing came between");
            check_step(&delivery, ctx, input, &committed);
            prop_assert_eq!((committed.delivery, committed.record), expected);
        }
    }

    #[test]
    fn a_final_state_absorbs_every_input_but_a_replay(
        delivery in delivery_of(final_phase()),
        policy in policy(),
        now in timestamp(),
        entropy in entropy(),
        outcome in outcome(),
    ) {
        let ctx = Ctx { now, entropy, policy: &policy };
        let before = delivery.clone();
        let finished = Input::Finished { attempt: delivery.attempts, outcome };
        let inputs =
            [ADMITTED, finished, Input::LeaseExpired, Input::OwnerLost, Input::Cancel];
        for input in inputs {
            prop_assert!(delivery.handle(ctx, input).is_err(), "{:?}", input);
        }
        prop_assert_eq!(&delivery, &before);
        let replayed = delivery.handle(ctx, Input::Replay).expect("it can be replayed");
        prop_assert!(!is_final(replayed.next().phase));
    }

    #[test]
    fn a_step_from_another_version_or_delivery_is_rejected(
        (delivery, input) in delivery_and_input(),
        policy in policy(),
        now in timestamp(),
        other_version in any::<u64>(),
    ) {
        let ctx = Ctx { now, entropy: 0, policy: &policy };
        if let Ok(step) = delivery.handle(ctx, input) {
            let id = DeliveryId::new("msg_1~ep_other").expect("an id");
            let other = Delivery { id, ..delivery.clone() };
            prop_assert!(step.clone().onto(&other).is_err());
            let moved_on = Delivery { version: other_version, ..delivery.clone() };
            let expected = Rejected::Stale { expected: delivery.version, stored: other_version };
            match step.clone().onto(&moved_on) {
                Ok(_) => prop_assert_eq!(other_version, delivery.version),
                Err(rejected) => prop_assert_eq!(rejected, expected),
            }
            let committed = step.clone().onto(&delivery).expect("nothing came between").delivery;
            prop_assert!(step.onto(&committed).is_err(), "a step is made once");
        }
    }

    #[test]
    fn a_delivery_comes_back_from_json(delivery in delivery()) {
        check_round_trip(&delivery)?;
    }

    #[test]
    fn a_record_comes_back_from_json(
        (delivery, input) in delivery_and_input(),
        policy in policy(),
        now in timestamp(),
    ) {
        if let Ok(step) = delivery.handle(Ctx { now, entropy: 0, policy: &policy }, input)
            && let Some(record) = step.record()
        {
            check_round_trip(record)?;
        }
    }

    #[test]
    fn a_retry_is_due_after_its_wait_and_after_a_bounded_retry_after(
        policy in policy(),
        scheduled_attempts in 1..12_u32,
        outcome in outcome(),
        now in timestamp(),
        entropy in entropy(),
    ) {
        let mut life = Life::new(policy);
        life.delivery.scheduled_attempts = scheduled_attempts - 1;
        life.step(ADMITTED, 0).expect("it is due");
        life.now = now;
        let attempt = life.delivery.attempts;
        let step = life.step(Input::Finished { attempt, outcome }, entropy).expect("it fits");
        let record = step.record.expect("an attempt ended");
        if let Phase::Scheduled { due, origin } = step.delivery.phase {
            prop_assert_eq!(origin, Origin::Schedule);
            let wait = life.policy.schedule.wait(scheduled_attempts, entropy).expect("a wait");
            let floor = match outcome {
                Outcome::Answered { retry_after: Some(asked), .. }
                    if record.verdict != (Verdict::Retry { floor: None }) =>
                {
                    asked.min(life.policy.classification.retry_after_max)
                }
                _ => Millis::ZERO,
            };
            prop_assert!(due >= now.plus(wait));
            prop_assert!(due >= now.plus(floor));
            // Spread upwards only, and only where there is a floor.
            let spread = life.policy.retry_after_spread;
            let latest = if floor == Millis::ZERO { wait.max(spread) } else { floor.plus(spread) };
            prop_assert!(due <= now.plus(wait.max(latest)));
        } else {
            prop_assert!(is_final(step.delivery.phase));
        }
    }

    #[test]
    fn an_endless_run_of_setbacks_makes_exactly_the_attempts_allowed_and_one_notice(
        policy in policy_with(short_schedule()),
        ends in vec(setback_end(), 9),
    ) {
        let attempts_max = policy.schedule.attempts_max();
        let mut life = Life::new(policy);
        let mut ends = ends.into_iter().cycle();
        while !life.is_final() {
            life.attempt(ends.next().expect("it never runs out"));
        }
        let reason = DeadReason::Exhausted;
        prop_assert_eq!(life.delivery.phase, Phase::Dead { at: life.now, reason });
        prop_assert_eq!(life.scheduled_claims, attempts_max);
        prop_assert_eq!(life.delivery.attempts, attempts_max);
        let numbers: Vec<_> = life.records.iter().map(|record| record.attempt).collect();
        prop_assert_eq!(numbers, (1..=attempts_max).collect::<Vec<_>>());
        prop_assert_eq!(life.notices, [Notice { reason }]);
    }

    #[test]
    fn every_run_of_outcomes_ends_as_the_deciding_one_says(
        policy in policy_with(short_schedule()),
        ends in vec(end(), 9),
    ) {
        let attempts_max = policy.schedule.attempts_max();
        let mut life = Life::new(policy);
        let mut ends = ends.into_iter().cycle();
        while !life.is_final() {
            life.attempt(ends.next().expect("it never runs out"));
        }
        let last = life.records.last().expect("at least one attempt");
        let at = life.now;
        let dead = |reason| Phase::Dead { at, reason };
        let expected = match last.verdict {
            Verdict::Delivered => Phase::Delivered { at },
            Verdict::Final => dead(DeadReason::Refused),
            Verdict::Gone => dead(DeadReason::Gone),
            Verdict::Retry { .. } => dead(DeadReason::Exhausted),
        };
        prop_assert_eq!(life.delivery.phase, expected);
        prop_assert!(life.scheduled_claims <= attempts_max);
        if matches!(last.verdict, Verdict::Retry { .. }) {
            prop_assert_eq!(life.scheduled_claims, attempts_max);
        }
        let (decided, before) = life.records.split_last().expect("at least one attempt");
        prop_assert_eq!(decided, last);
        for record in before {
            let retried = matches!(record.verdict, Verdict::Retry { .. });
            prop_assert!(retried, "only the last one decides");
        }
        let told = usize::from(matches!(expected, Phase::Dead { .. }));
        prop_assert_eq!(life.notices.len(), told);
        prop_assert_eq!(life.disabled, usize::from(last.verdict == Verdict::Gone));
    }

    #[test]
    fn a_stray_input_between_the_steps_of_an_attempt_changes_nothing(
        policy in policy_with(short_schedule()),
        stray in outcome(),
    ) {
        let mut life = Life::new(policy);
        while !life.is_final() {
            let early = life.delivery.clone();
            let finished = Input::Finished { attempt: early.attempts, outcome: stray };
            prop_assert_eq!(life.step(finished, 0), Err(Rejected::NotInFlight));
            prop_assert_eq!(life.step(Input::LeaseExpired, 0), Err(Rejected::NotInFlight));
            prop_assert_eq!(life.step(Input::OwnerLost, 0), Err(Rejected::NotInFlight));
            prop_assert_eq!(&life.delivery, &early);
            life.attempt((End::With(answered(503)), 0));
        }
    }
}
