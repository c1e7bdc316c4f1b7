//! A received event, from the verified request to the applied effect.

use hookproof_core::id::{EventId, SourceId};
use hookproof_core::inbox::{Ctx, Entry, InboxRule, Input, Phase, Receipt, Rejected};
use hookproof_core::schedule::{Backoff, Jitter, Schedule};
use hookproof_core::time::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::given::{
    at, check_round_trip, entropy, laws, millis, ms, schedule, secs, short_schedule, timestamp,
    version,
};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);
const EARLIER: Timestamp = Timestamp::from_millis(999_000);
const LATER: Timestamp = Timestamp::from_millis(1_000_001);

/// Three claims, 1 s and then 10 s apart, of 30 s each.
fn rule() -> InboxRule {
    let backoff = Backoff::List { waits: vec![secs(1), secs(10)] };
    InboxRule { lease: secs(30), schedule: Schedule::new(backoff, Jitter::None) }
}

fn entry_in(phase: Phase) -> Entry {
    let source = SourceId::new("src_shop").expect("an id");
    let event_id = EventId::new("msg_1").expect("an id");
    match Entry::receive(None, source, event_id, EARLIER) {
        Receipt::New(entry) => Entry { version: 7, attempts: 2, phase, ..entry },
        Receipt::Duplicate => unreachable!("nothing is stored"),
    }
}

fn pending(due: Timestamp) -> Phase {
    Phase::Pending { due }
}

fn claimed(lease_until: Timestamp) -> Phase {
    Phase::Claimed { attempt: 2, lease_until }
}

/// What `input` makes of an entry in its second claim, at [`NOW`].
fn check(phase: Phase, input: Input, expected: Result<Phase, Rejected>) {
    let ctx = Ctx { now: NOW, entropy: 0, rule: &rule() };
    let found = entry_in(phase).handle(ctx, input).map(|step| step.next().phase);
    assert_eq!(found, expected, "{input:?} in {phase:?}");
}

#[test]
fn an_event_not_seen_before_is_recorded_and_due_at_once() {
    let source = SourceId::new("src_shop").unwrap();
    let event_id = EventId::new("msg_1").unwrap();
    let receipt = Entry::receive(None, source.clone(), event_id.clone(), NOW);
    let phase = pending(NOW);
    let entry = Entry {
        source,
        event_id,
        received_at: NOW,
        version: 0,
        attempts: 0,
        previous_wait: None,
        phase,
    };
    assert_eq!(receipt, Receipt::New(entry));
}

#[test]
fn an_event_that_is_stored_is_a_duplicate_whatever_became_of_it() {
    let phases = [
        pending(LATER),
        claimed(LATER),
        Phase::Applied { at: EARLIER },
        Phase::Superseded { at: EARLIER },
        Phase::Dead { at: EARLIER },
    ];
    for phase in phases {
        let stored = entry_in(phase);
        let (source, event_id) = (stored.source.clone(), stored.event_id.clone());
        assert_eq!(Entry::receive(Some(&stored), source, event_id, NOW), Receipt::Duplicate);
    }
}

#[test]
fn a_worker_must_look_again_when_an_entry_is_due_or_its_lease_ends_and_never_when_final() {
    assert_eq!(entry_in(pending(LATER)).wake_at(), Some(LATER));
    assert_eq!(entry_in(claimed(LATER)).wake_at(), Some(LATER));
    assert_eq!(entry_in(Phase::Applied { at: EARLIER }).wake_at(), None);
    assert_eq!(entry_in(Phase::Superseded { at: EARLIER }).wake_at(), None);
    assert_eq!(entry_in(Phase::Dead { at: EARLIER }).wake_at(), None);
}

#[test]
fn an_entry_is_claimed_when_it_is_due_and_not_a_millisecond_sooner() {
    let next = Phase::Claimed { attempt: 3, lease_until: NOW.plus(secs(30)) };
    check(pending(EARLIER), Input::Claim, Ok(next));
    check(pending(NOW), Input::Claim, Ok(next));
    check(pending(LATER), Input::Claim, Err(Rejected::NotDue(LATER)));
}

#[test]
fn while_a_worker_has_an_entry_no_other_gets_it() {
    check(claimed(LATER), Input::Claim, Err(Rejected::LeaseHolds(LATER)));
}

#[test]
fn an_applied_effect_is_marked() {
    check(claimed(LATER), Input::Applied { attempt: 2 }, Ok(Phase::Applied { at: NOW }));
    check(claimed(EARLIER), Input::Applied { attempt: 2 }, Ok(Phase::Applied { at: NOW }));
}

#[test]
fn an_event_that_comes_after_a_newer_version_is_superseded() {
    check(claimed(LATER), Input::Superseded { attempt: 2 }, Ok(Phase::Superseded { at: NOW }));
    check(claimed(EARLIER), Input::Superseded { attempt: 2 }, Ok(Phase::Superseded { at: NOW }));
}

#[test]
fn a_failed_effect_is_tried_again_by_the_schedule() {
    check(claimed(LATER), Input::Failed { attempt: 2 }, Ok(pending(NOW.plus(secs(10)))));
}

#[test]
fn a_decorrelated_wait_is_drawn_from_the_one_before_and_no_other_is_remembered() {
    let backoff = |attempts_max| Backoff::Exponential {
        base: secs(1),
        factor: 3,
        cap: secs(1_000),
        attempts_max,
    };
    let schedule = Schedule::new(backoff(5), Jitter::Decorrelated);
    let mut life = Life::new(InboxRule { lease: secs(30), schedule });
    // 3 s at most; then 1 s at least; and that is what the next is three times of, not 27 s.
    for (entropy, wait) in [(u64::MAX, 3), (0, 1), (u64::MAX, 3), (u64::MAX, 9)] {
        life.step(Input::Claim, 0).expect("it is due");
        let failed = Input::Failed { attempt: life.entry.attempts };
        life.step(failed, entropy).expect("it is claimed");
        assert_eq!(life.entry.phase, pending(life.now.plus(secs(wait))));
        assert_eq!(life.entry.previous_wait, Some(secs(wait)));
        life.now = life.now.plus(secs(wait));
    }
    let text = serde_json::to_string(&life.entry).expect("it can be written");
    assert_eq!(serde_json::from_str::<Entry>(&text).expect("it can be read"), life.entry);

    let mut life = Life::new(rule());
    life.step(Input::Claim, 0).expect("it is due");
    life.step(Input::Failed { attempt: 1 }, 0).expect("it is claimed");
    assert_eq!(life.entry.previous_wait, None);
    let text = serde_json::to_string(&life.entry).expect("it can be written");
    assert!(!text.contains("previous_wait"), "as it was stored before: {text}");
}

#[test]
fn what_a_worker_says_about_another_claim_is_rejected() {
    for attempt in [0, 1, 3, u32::MAX] {
        check(claimed(LATER), Input::Applied { attempt }, Err(Rejected::NotClaimed));
        check(claimed(LATER), Input::Superseded { attempt }, Err(Rejected::NotClaimed));
        check(claimed(LATER), Input::Failed { attempt }, Err(Rejected::NotClaimed));
    }
    check(pending(NOW), Input::Applied { attempt: 2 }, Err(Rejected::NotClaimed));
    check(pending(NOW), Input::Failed { attempt: 2 }, Err(Rejected::NotClaimed));
}

#[test]
fn a_claim_without_a_mark_is_taken_over_at_the_end_of_its_lease() {
    check(claimed(EARLIER), Input::LeaseExpired, Ok(pending(NOW)));
    check(claimed(NOW), Input::LeaseExpired, Ok(pending(NOW)));
    check(claimed(LATER), Input::LeaseExpired, Err(Rejected::LeaseHolds(LATER)));
    check(pending(NOW), Input::LeaseExpired, Err(Rejected::NotClaimed));
}

#[test]
fn a_claim_whose_owner_is_lost_is_taken_over_at_once() {
    check(claimed(LATER), Input::OwnerLost, Ok(pending(NOW)));
    check(pending(NOW), Input::OwnerLost, Err(Rejected::NotClaimed));
}

#[test]
fn a_final_state_takes_nothing() {
    let at = EARLIER;
    for phase in [Phase::Applied { at }, Phase::Superseded { at }, Phase::Dead { at }] {
        for input in inputs(2) {
            check(phase, input, Err(Rejected::Settled));
        }
    }
}

#[test]
fn a_worker_that_was_taken_over_can_no_longer_mark() {
    let mut life = Life::new(rule());
    life.step(Input::Claim, 0).expect("it is due");
    let paused = life.entry.clone();
    life.now = life.now.plus(secs(30));
    life.step(Input::LeaseExpired, 0).expect("the lease is over");
    life.step(Input::Claim, 0).expect("it is due at once");
    assert_eq!(life.entry.attempts, 2);
    assert_eq!(life.step(Input::Applied { attempt: 1 }, 0), Err(Rejected::NotClaimed));

    let late = paused
        .handle(Ctx { now: life.now, entropy: 0, rule: &life.rule }, Input::Applied { attempt: 1 })
        .expect("it fits what the worker last read");
    assert_eq!(late.onto(&life.entry), Err(Rejected::Stale { expected: 1, stored: 3 }));
    life.step(Input::Applied { attempt: 2 }, 0).expect("the new worker has it");
}

#[test]
fn an_effect_that_always_fails_is_dead_after_exactly_the_claims_allowed() {
    let mut life = Life::new(rule());
    let received = life.now;
    let mut claims = Vec::new();
    while let Some(due) = life.entry.wake_at() {
        life.now = life.now.max(due);
        claims.push(life.now.since(received).to_string());
        life.step(Input::Claim, 0).expect("it is due");
        life.now = life.now.plus(secs(2));
        life.step(Input::Failed { attempt: life.entry.attempts }, 0).expect("it is claimed");
    }
    assert_eq!(claims.join(" "), "0s 3s 15s");
    assert_eq!(life.entry.phase, Phase::Dead { at: life.now });
}

#[test]
fn an_effect_that_ends_the_process_every_time_is_not_claimed_for_ever() {
    for loss in [Input::LeaseExpired, Input::OwnerLost] {
        let mut life = Life::new(rule());
        while let Some(due) = life.entry.wake_at() {
            life.now = life.now.max(due);
            life.step(Input::Claim, 0).expect("it is due");
            life.now = life.now.plus(secs(30));
            life.step(loss, 0).expect("it is claimed");
        }
        assert_eq!(life.entry.phase, Phase::Dead { at: life.now }, "{loss:?}");
        assert_eq!(life.entry.attempts, 3, "{loss:?}");
        assert_eq!(life.now.since(NOW), secs(90), "each is taken over at once, after {loss:?}");
    }
}

#[test]
fn a_claim_that_is_lost_counts_like_one_that_failed() {
    let ends = [Input::LeaseExpired, Input::OwnerLost, Input::Failed { attempt: 3 }];
    for end in ends {
        let phase = Phase::Claimed { attempt: 3, lease_until: NOW };
        let last = Entry { attempts: 3, ..entry_in(phase) };
        let step = last.handle(Ctx { now: NOW, entropy: 0, rule: &rule() }, end).expect("it fits");
        assert_eq!(step.next().phase, Phase::Dead { at: NOW }, "{end:?}");
    }
}

#[test]
fn after_the_last_version_comes_the_first() {
    let stored = Entry { version: u64::MAX, ..entry_in(pending(NOW)) };
    let rule = rule();
    let claim = || stored.handle(Ctx { now: NOW, entropy: 0, rule: &rule }, Input::Claim);
    let first = claim().expect("it is due").onto(&stored).expect("nothing came between");
    assert_eq!(first.version, 0);
    let second = claim().expect("it is what was read").onto(&first);
    assert_eq!(second, Err(Rejected::Stale { expected: u64::MAX, stored: 0 }));
}

#[test]
fn a_phase_is_told_in_json_by_its_name() {
    let json = |phase: Phase| serde_json::to_string(&phase).unwrap();
    assert_eq!(json(pending(at(5))), r#"{"name":"pending","due":5}"#);
    assert_eq!(json(claimed(at(5))), r#"{"name":"claimed","attempt":2,"lease_until":5}"#);
    assert_eq!(json(Phase::Applied { at: at(5) }), r#"{"name":"applied","at":5}"#);
    assert_eq!(json(Phase::Superseded { at: at(5) }), r#"{"name":"superseded","at":5}"#);
    assert_eq!(json(Phase::Dead { at: at(5) }), r#"{"name":"dead","at":5}"#);
}

#[test]
fn a_step_is_not_accepted_onto_another_entry() {
    let stored = entry_in(pending(NOW));
    let rule = rule();
    let step = stored.handle(Ctx { now: NOW, entropy: 0, rule: &rule }, Input::Claim).unwrap();
    let source = SourceId::new("src_other").unwrap();
    let event_id = EventId::new("msg_2").unwrap();
    let stale = Err(Rejected::Stale { expected: 7, stored: 7 });
    assert_eq!(step.clone().onto(&Entry { source, ..stored.clone() }), stale);
    assert_eq!(step.clone().onto(&Entry { event_id, ..stored.clone() }), stale);
    assert!(step.onto(&stored).is_ok());
}

#[test]
fn the_default_rule_is_valid_and_is_what_the_documentation_says() {
    let rule: InboxRule = serde_json::from_str("{}").unwrap();
    assert_eq!(rule, InboxRule::default());
    assert_eq!(rule.schedule.validate(), Ok(()));
    assert_eq!((rule.lease, rule.schedule.attempts_max()), (secs(30), 16));
    assert!(serde_json::from_str::<InboxRule>(r#"{"leese": "1s"}"#).is_err());
}

#[test]
fn a_rejection_says_why() {
    let told = |rejected: Rejected| rejected.to_string();
    let stale = Rejected::Stale { expected: 7, stored: 8 };
    assert_eq!(told(stale), "made from version 7, but version 8 is stored");
    assert_eq!(told(Rejected::NotDue(LATER)), "not due before 1000001 ms");
    assert_eq!(told(Rejected::LeaseHolds(LATER)), "claimed until 1000001 ms");
    assert_eq!(told(Rejected::NotClaimed), "that claim is not held");
    assert_eq!(told(Rejected::Settled), "the entry is in a final state");
}

/// The life of one entry; each step is held to what all steps have in common.
struct Life {
    rule: InboxRule,
    now: Timestamp,
    entry: Entry,
}

impl Life {
    fn new(rule: InboxRule) -> Self {
        let entry = Entry { version: 0, attempts: 0, ..entry_in(pending(NOW)) };
        Self { rule, now: NOW, entry }
    }

    fn step(&mut self, input: Input, entropy: u64) -> Result<(), Rejected> {
        let ctx = Ctx { now: self.now, entropy, rule: &self.rule };
        let next = self.entry.handle(ctx, input)?.onto(&self.entry).expect("nothing between");
        check_step(&self.entry, input, &next);
        assert!(next.version < 1_000, "it would go on for ever");
        self.entry = next;
        Ok(())
    }
}

/// What holds of each accepted step, from whatever state.
fn check_step(before: &Entry, input: Input, after: &Entry) {
    assert_eq!(after.version, before.version.wrapping_add(1));
    let claims = u32::from(input == Input::Claim);
    assert_eq!(after.attempts, before.attempts.saturating_add(claims));
    assert_eq!(
        (&after.source, &after.event_id, after.received_at),
        (&before.source, &before.event_id, before.received_at)
    );
    let applied = matches!(after.phase, Phase::Applied { .. });
    assert_eq!(applied, matches!(input, Input::Applied { .. }), "only an effect is marked");
    let superseded = matches!(after.phase, Phase::Superseded { .. });
    assert_eq!(superseded, matches!(input, Input::Superseded { .. }), "only by a newer version");
    if let Phase::Dead { .. } = after.phase {
        let lost = matches!(input, Input::LeaseExpired | Input::OwnerLost);
        assert!(lost || matches!(input, Input::Failed { .. }), "only a claim without effect kills");
    }
}

fn inputs(attempt: u32) -> [Input; 6] {
    [
        Input::Claim,
        Input::Applied { attempt },
        Input::Superseded { attempt },
        Input::Failed { attempt },
        Input::LeaseExpired,
        Input::OwnerLost,
    ]
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![4 => 0..4_u32, 1 => any::<u32>()]
        .prop_flat_map(|attempt| proptest::sample::select(inputs(attempt).to_vec()))
}

fn any_rule() -> impl Strategy<Value = InboxRule> {
    (millis(), schedule()).prop_map(|(lease, schedule)| InboxRule { lease, schedule })
}

/// Any entry, reachable or not.
fn entry() -> impl Strategy<Value = Entry> {
    let phase = prop_oneof![
        timestamp().prop_map(pending),
        (prop_oneof![4 => 0..4_u32, 1 => any::<u32>()], timestamp())
            .prop_map(|(attempt, lease_until)| Phase::Claimed { attempt, lease_until }),
        timestamp().prop_map(|at| Phase::Applied { at }),
        timestamp().prop_map(|at| Phase::Superseded { at }),
        timestamp().prop_map(|at| Phase::Dead { at }),
    ];
    let attempts = prop_oneof![4 => 0..20_u32, 1 => any::<u32>(), 1 => Just(u32::MAX)];
    (phase, version(), attempts, timestamp()).prop_map(|(phase, version, attempts, received_at)| {
        Entry { received_at, version, attempts, ..entry_in(phase) }
    })
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn no_input_in_any_state_panics_and_every_step_keeps_to_the_rules(
        entry in entry(),
        input in input(),
        rule in any_rule(),
        now in timestamp(),
        entropy in entropy(),
        other_version in any::<u64>(),
    ) {
        let ctx = Ctx { now, entropy, rule: &rule };
        let is_final = entry.wake_at().is_none();
        match entry.handle(ctx, input) {
            Err(rejected) => prop_assert_eq!(rejected == Rejected::Settled, is_final),
            Ok(step) => {
                prop_assert!(!is_final);
                let moved_on = Entry { version: other_version, ..entry.clone() };
                let accepted = step.clone().onto(&moved_on).is_ok();
                prop_assert_eq!(accepted, other_version == entry.version);
                let next = step.clone().onto(&entry).expect("nothing came between");
                prop_assert_eq!(&next, step.next());
                prop_assert!(step.onto(&next).is_err(), "a step is made once");
                check_step(&entry, input, &next);
                if let (Phase::Pending { due }, Input::Failed { .. }) = (next.phase, input) {
                    let bounds = rule.schedule.bounds(entry.attempts).expect("there is a next");
                    prop_assert!(now.plus(bounds.lowest) <= due && due <= now.plus(bounds.highest));
                }
            }
        }
    }

    #[test]
    fn an_entry_comes_back_from_json(entry in entry(), rule in any_rule()) {
        check_round_trip(&entry)?;
        check_round_trip(&rule)?;
    }

    #[test]
    fn an_entry_that_is_never_marked_is_claimed_exactly_as_often_as_allowed(
        schedule in short_schedule(),
        ends in vec((0..3_usize, entropy()), 9),
    ) {
        let attempts_max = schedule.attempts_max();
        let mut life = Life::new(InboxRule { lease: secs(30), schedule });
        let mut ends = ends.into_iter().cycle();
        while let Some(due) = life.entry.wake_at() {
            life.now = life.now.max(due);
            life.step(Input::Claim, 0).expect("it is due");
            let (end, entropy) = ends.next().expect("it never runs out");
            let failed = Input::Failed { attempt: life.entry.attempts };
            let end = [failed, Input::LeaseExpired, Input::OwnerLost][end];
            life.now = life.now.plus(secs(30));
            life.step(end, entropy).expect("it is claimed, and its lease is over");
        }
        prop_assert_eq!(life.entry.attempts, attempts_max);
        prop_assert_eq!(life.entry.phase, Phase::Dead { at: life.now });
    }

    #[test]
    fn workers_that_race_crash_and_wake_too_late_apply_at_most_once(
        moves in vec((0..3_usize, input(), 0..40_000_u64), 0..80),
    ) {
        // Each worker decides by what it last read, and commits against what is stored by then.
        let rule = rule();
        let mut stored = Entry { version: 0, attempts: 0, ..entry_in(pending(NOW)) };
        let mut read = vec![stored.clone(); 3];
        let mut now = NOW;
        let mut applied = 0;
        for (worker, input, pause) in moves {
            now = now.plus(ms(pause));
            let ctx = Ctx { now, entropy: 0, rule: &rule };
            let committed = read[worker].handle(ctx, input).and_then(|step| step.onto(&stored));
            match committed {
                Ok(next) => {
                    applied += u32::from(matches!(next.phase, Phase::Applied { .. }));
                    stored = next.clone();
                    read[worker] = next;
                }
                Err(Rejected::Stale { .. }) => read[worker] = stored.clone(),
                Err(_) => {}
            }
            prop_assert!(applied <= 1);
            let marked = matches!(stored.phase, Phase::Applied { .. });
            prop_assert_eq!(applied == 1, marked, "done stays done");
        }
    }

    #[test]
    fn whatever_is_left_behind_is_found_by_time_alone(entry in entry(), rule in any_rule()) {
        if let Some(wake_at) = entry.wake_at() {
            let ctx = Ctx { now: wake_at, entropy: 0, rule: &rule };
            let claimed = entry.handle(ctx, Input::Claim);
            let taken_over = entry.handle(ctx, Input::LeaseExpired);
            prop_assert!(claimed.is_ok() != taken_over.is_ok());
            if let Ok(step) = taken_over {
                let is_last = rule.schedule.bounds(entry.attempts).is_none();
                let dead = Phase::Dead { at: wake_at };
                prop_assert_eq!(step.next().phase, if is_last { dead } else { pending(wake_at) });
            }
        } else {
            for input in inputs(1) {
                let ctx = Ctx { now: at(0), entropy: 0, rule: &rule };
                prop_assert_eq!(entry.handle(ctx, input), Err(Rejected::Settled));
            }
        }
    }
}
