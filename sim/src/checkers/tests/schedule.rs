//! I8, told alone: where an outcome leads, when what is new is due, and what ends for its age.

use hookproof_core::delivery::Settled;
use hookproof_core::life::{Life as Age, WhileHeld};
use hookproof_core::schedule::{Backoff, Jitter, Schedule};

use super::*;
use crate::checkers::Checker as _;
use crate::checkers::schedule::OnSchedule;

const DEAD: fn(DeadReason) -> Phase = |reason| Phase::Dead { at: at(240), reason };
const DELIVERED: Phase = Phase::Delivered { at: Timestamp::from_millis(0) };
const WAITING: Origin = Origin::Replay { settled: Settled::Scheduled { due: Timestamp::MAX } };
const DONE: Origin = Origin::Replay { settled: Settled::Delivered { at: Timestamp::MAX } };

/// What the checker says of these facts, if it says anything.
fn says(policy: &Policy, told: &[Told]) -> Option<String> {
    let mut checker = OnSchedule::default();
    checker.see(at(0), &Fact::Served { policy }).unwrap();
    told.iter().find_map(|(now, fact)| checker.see(*now, fact).err())
}

/// The facts lead to a violation that has these words; to none if there are no words.
fn check(policy: &Policy, told: &[Told], words: &str) {
    let said = says(policy, told);
    match &said {
        None => assert!(words.is_empty(), "nobody said `{words}`"),
        Some(said) => assert!(!words.is_empty() && said.contains(words), "{said}"),
    }
}

fn write(ms: u64, version: u64, attempts: u32, phase: Phase) -> Told {
    (at(ms), Fact::Written(written(GOOD, version, attempts, phase)))
}

fn in_flight(attempt: u32, ms: u64, origin: Origin) -> Phase {
    Phase::InFlight { attempt, started_at: at(ms), lease_until: at(ms).plus(LEASE), origin }
}

/// A delivery that is new at 110, and under way from 200.
fn under_way(origin: Origin) -> Vec<Told> {
    vec![
        write(110, 0, 0, scheduled(110)),
        write(200, 1, 1, in_flight(1, 200, origin)),
        (at(200), Fact::Dialled { route: route(GOOD), is_denied: false }),
    ]
}

/// At 240 its attempt has that outcome and leads to that.
fn ended(origin: Origin, outcome: Outcome, phase: Phase) -> Vec<Told> {
    let verdict = brisk(2).classification.verdict(&outcome);
    let (started_at, finished_at) = (at(200), at(240));
    let record = AttemptRecord { attempt: 1, started_at, finished_at, outcome, verdict };
    let last = Written { record: Some(leak(record)), ..written(GOOD, 2, 1, phase) };
    let mut told = under_way(origin);
    told.push((at(240), Fact::Written(last)));
    told
}

fn answered(status: u16) -> Outcome {
    Outcome::Answered { status, retry_after: None }
}

#[test]
fn an_outcome_leads_where_the_rules_say_and_nowhere_else() {
    let elsewhere = "which means something else";
    let by_schedule = Origin::Schedule;
    let [refused, gone, exhausted, expired] =
        [DeadReason::Refused, DeadReason::Gone, DeadReason::Exhausted, DeadReason::Expired]
            .map(DEAD);
    for (origin, outcome, phase, words) in [
        (by_schedule, answered(204), DELIVERED, ""),
        (by_schedule, answered(204), refused, elsewhere),
        (by_schedule, answered(204), scheduled(300), elsewhere),
        (by_schedule, answered(500), scheduled(300), ""),
        (by_schedule, answered(500), DELIVERED, elsewhere),
        (by_schedule, answered(500), refused, elsewhere),
        (by_schedule, answered(301), DELIVERED, elsewhere),
        (by_schedule, Outcome::Unknown, refused, elsewhere),
        (by_schedule, answered(404), refused, ""),
        (by_schedule, answered(404), scheduled(300), elsewhere),
        (by_schedule, answered(410), gone, ""),
        (by_schedule, answered(410), refused, elsewhere),
        (by_schedule, answered(500), exhausted, "is given up after 1 attempts, and has 2"),
        (by_schedule, answered(500), expired, "is given up for its age"),
        (by_schedule, answered(500), Phase::Cancelled { at: at(240) }, ""),
        (WAITING, answered(200), DELIVERED, ""),
        (WAITING, answered(500), scheduled(9_000), ""),
        (WAITING, answered(500), DELIVERED, elsewhere),
        (WAITING, answered(410), gone, ""),
        (WAITING, answered(410), scheduled(9_000), elsewhere),
        (DONE, answered(500), DELIVERED, ""),
        (DONE, answered(500), refused, elsewhere),
    ] {
        check(policy(), &ended(origin, outcome, phase), words);
    }
}

#[test]
fn after_the_last_attempt_none_is_planned_and_nothing_else_ends_a_delivery() {
    let last = brisk(1);
    let failed = |phase| ended(Origin::Schedule, answered(500), phase);
    check(&last, &failed(DEAD(DeadReason::Exhausted)), "");
    check(&last, &failed(scheduled(300)), "is tried again after its last attempt");
    check(&last, &failed(DEAD(DeadReason::Refused)), "which means something else");
}

#[test]
fn a_new_delivery_is_due_when_its_event_was_accepted_and_has_no_attempts() {
    let new = |change: &dyn Fn(&mut Written<'static>)| {
        let mut first = written(GOOD, 0, 0, scheduled(110));
        change(&mut first);
        vec![(at(110), Fact::Written(first))]
    };
    let phase = |phase| move |first: &mut Written<'static>| state(|s| s.phase = phase)(first);
    check(policy(), &new(&|_| {}), "");
    check(policy(), &new(&phase(scheduled(111))), "is new, accepted at");
    check(policy(), &new(&phase(scheduled(109))), "is new, accepted at");
    check(policy(), &new(&phase(DELIVERED)), "is new, and counts as delivered");
    let counts = state(|state| state.attempts = 1);
    check(policy(), &new(&counts), "is new, and counts 1 attempts");
    // By the clock of whoever writes it.
    check(policy(), &new(&|first| first.clock_ahead = -1), "is new, accepted at");
    let ahead = |first: &mut Written<'static>| {
        state(|state| (state.created_at, state.phase) = (at(5_110), scheduled(5_110)))(first);
        first.clock_ahead = 5_000;
    };
    check(policy(), &new(&ahead), "");
}

#[test]
fn a_replay_is_due_at_once() {
    let replayed = |due: u64| {
        let phase = Phase::Scheduled { due: at(due), origin: DONE };
        let asked = Written { is_asked: true, ..written(GOOD, 1, 0, phase) };
        vec![write(110, 0, 0, scheduled(110)), (at(200), Fact::Written(asked))]
    };
    check(policy(), &replayed(200), "");
    check(policy(), &replayed(201), "is replayed, and waits for 1ms");
}

#[test]
fn a_delivery_moves_by_an_attempt_that_ended_or_because_somebody_asks() {
    let words = "without an attempt that ended";
    for phase in [DELIVERED, DEAD(DeadReason::Refused), scheduled(300)] {
        check(policy(), &[write(110, 0, 0, scheduled(110)), write(200, 1, 0, phase)], words);
        let mut told = under_way(Origin::Schedule);
        told.push(write(240, 2, 1, phase));
        check(policy(), &told, words);
        let Some((_, Fact::Written(last))) = told.last_mut() else { panic!("it was written") };
        last.is_asked = true;
        check(policy(), &told, "");
    }
}

#[test]
fn attempts_are_counted_one_by_one() {
    let second = in_flight(3, 300, Origin::Schedule);
    let mut told = ended(Origin::Schedule, answered(500), scheduled(300));
    told.push(write(300, 3, 2, second));
    check(policy(), &told, "attempt 3 of event 0 to endpoint 0 follows attempt 1");
    told.pop();
    told.push(write(300, 3, 0, scheduled(300)));
    check(policy(), &told, "has begun 1 attempts, and counts 0");
}

#[test]
fn what_is_too_old_is_tried_no_more_and_nothing_else_ends_for_its_age() {
    let young = |age_max: u64, while_held| Policy {
        life: Age { age_max: Some(Millis::new(age_max)), while_held },
        ..brisk(2)
    };
    let runs = |age_max| young(age_max, WhileHeld::Runs);
    let failed = |phase| ended(Origin::Schedule, answered(500), phase);
    let expired = DEAD(DeadReason::Expired);
    // Accepted at 110, it failed at 240, and the next attempt may be due until 740.
    check(&runs(190), &failed(scheduled(300)), "");
    check(
        &runs(189),
        &failed(scheduled(300)),
        "may become 189ms old, and is to be tried at 190 ms",
    );
    check(&runs(89), &under_way(Origin::Schedule), "may become 89ms old");
    check(&runs(629), &failed(expired), "");
    check(&runs(630), &failed(expired), "is given up for its age, which is 630 ms");
    // While it waits.
    let waits = |ms| [write(110, 0, 0, scheduled(110)), write(ms, 1, 0, expired)];
    check(&runs(129), &waits(240), "");
    check(&runs(130), &waits(240), "is given up for its age, which is 130 ms");
    // What the breaker held back counts only where the policy says so.
    let mut held = waits(240);
    let Fact::Written(last) = &mut held[1].1 else { panic!("it was written") };
    state(|state| state.held = Millis::new(50))(last);
    check(&young(79, WhileHeld::Stops), &held, "");
    check(&young(80, WhileHeld::Stops), &held, "which is 80 ms");
    check(&runs(129), &held, "");
}

#[test]
fn a_wait_on_which_the_next_depends_is_remembered_as_it_was_drawn() {
    let backoff = Backoff::Exponential {
        base: Millis::new(50),
        factor: 3,
        cap: Millis::new(400),
        attempts_max: 5,
    };
    let policy = Policy { schedule: Schedule::new(backoff, Jitter::Decorrelated), ..brisk(2) };
    let told = |due: u64, kept: Option<u64>, asked: Option<u64>| {
        let mut told = ended(Origin::Schedule, answered(503), scheduled(due));
        let Some((_, Fact::Written(last))) = told.last_mut() else { panic!("it was written") };
        state(|state| state.previous_wait = kept.map(Millis::new))(last);
        last.asked = asked.map(Millis::new);
        told
    };
    check(&policy, &told(340, Some(100), None), "");
    check(&policy, &told(390, Some(150), None), "");
    check(&policy, &told(391, Some(151), None), "and may be from 50ms to 150ms");
    check(&policy, &told(340, None, None), "waits 100ms, and remembers None");
    check(&policy, &told(340, Some(99), None), "waits 100ms, and remembers");
    // What a receiver asked for once does not raise all later waits.
    check(&policy, &told(540, Some(100), Some(300)), "");
    check(&policy, &told(540, Some(300), Some(300)), "waits 300ms, and remembers");
}
