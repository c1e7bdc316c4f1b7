//! Cases from the field that no other test holds: what happened elsewhere, as an input. Which test
//! holds which case stands in docs/field-cases.md.

use hookproof_core::classify::{Classification, Signal};
use hookproof_core::delivery::{Effect, Input, Phase, WakeReason};
use hookproof_core::gate::{
    Admission, Breaker, BreakerRule, Gate, GateRule, Permit, StoredBreaker,
};
use hookproof_core::outcome::Outcome;
use hookproof_core::policy::Policy;
use hookproof_core::secret::{Secret, Secrets};
use hookproof_core::signature::{Signed, TOLERANCE, VerifyError, sign, verify};
use hookproof_core::time::{Millis, Timestamp};

use crate::given::{ADMITTED, FAILURES, answered, at, failed, secs};
use crate::life::{End, Life};

const LEASE: Millis = Millis::from_secs(15);

fn rule() -> GateRule {
    let breaker = BreakerRule { failures_in_a_row: 3, ..BreakerRule::default() };
    GateRule { breaker: Some(breaker), ..GateRule::default() }
}

fn permit(gate: &mut Gate, now: Timestamp) -> Permit {
    match gate.admit(&rule(), now, LEASE) {
        Admission::Go(permit) => permit,
        Admission::Defer { until, why } => unreachable!("not before {until:?}: {why:?}"),
    }
}

/// A gate whose breaker is open, and when its pause ends.
fn opened() -> (Gate, Timestamp) {
    let mut gate = Gate::default();
    for _ in 0..3 {
        let permit = permit(&mut gate, at(0));
        gate.record(&rule(), at(0), permit, Signal::Failure);
    }
    (gate.clone(), pause_end(&gate))
}

fn pause_end(gate: &Gate) -> Timestamp {
    match gate.breaker() {
        Breaker::Open { until, .. } => until,
        other => unreachable!("it is open: {other:?}"),
    }
}

/// What a probe at the end of the pause leaves: the gate as a new process finds it.
fn probed(gate: &mut Gate, signal: Signal) {
    let now = pause_end(gate);
    let probe = permit(gate, now);
    gate.record(&rule(), now, probe, signal);
    let text = serde_json::to_string(&gate.stored()).expect("it can be written");
    *gate = Gate::restored(serde_json::from_str::<StoredBreaker>(&text).expect("it can be read"));
}

#[test]
fn field_10_the_pauses_of_a_dead_host_begin_anew_after_a_success_and_after_nothing_else() {
    let (mut gate, _) = opened();
    let mut pauses = Vec::new();
    for _ in 0..9 {
        let began = pause_end(&gate);
        probed(&mut gate, Signal::Failure);
        pauses.push(pause_end(&gate).since(began).get() / 60_000);
        // A restart, and then a time in which nobody asks, change nothing.
        assert!(gate.room(&rule(), began.plus(Millis::new(1))).is_err());
    }
    assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60, 60, 60], "minutes");

    let now = pause_end(&gate);
    let refused = permit(&mut gate, now);
    gate.record(&rule(), now, refused, Signal::Neither);
    let probe = permit(&mut gate, now);
    gate.record(&rule(), now, probe, Signal::Failure);
    assert_eq!(pause_end(&gate).since(now), Millis::from_hours(1), "a 404 resets nothing");

    probed(&mut gate, Signal::Success);
    assert_eq!(gate.breaker(), Breaker::Closed { failures: 0 });
}

#[test]
fn field_10_a_delivery_whose_process_dies_each_time_goes_on_in_its_schedule() {
    let mut life = Life::new(Policy::default());
    let mut waits = Vec::new();
    for _ in 0..4 {
        life.attempt((End::OwnerLost, 0));
        let (due, _) = life.delivery.wake_at().expect("there is a next attempt");
        waits.push(due.since(life.now));
    }
    assert_eq!(waits, [secs(5), secs(300), secs(1_800), secs(7_200)]);
}

#[test]
fn field_11_a_retry_is_made_by_its_time_and_needs_no_other_event() {
    let mut life = Life::new(Policy::default());
    let step = life.attempt((End::With(answered(500)), 0));
    let due = life.now.plus(secs(5));
    assert!(step.effects.contains(&Effect::WakeAt { at: due, reason: WakeReason::Due }));
    assert_eq!(life.delivery.wake_at(), Some((due, WakeReason::Due)), "it is stored");
    life.now = due;
    let step = life.step(ADMITTED, 0).expect("its time has come");
    assert!(matches!(step.delivery.phase, Phase::InFlight { attempt: 2, .. }));
}

#[test]
fn field_35_attempts_that_are_still_under_way_do_not_hide_a_streak() {
    let mut gate = Gate::default();
    let pending: Vec<_> = (0..5).map(|_| permit(&mut gate, at(0))).collect();
    for ended in 1..=3 {
        assert!(matches!(gate.breaker(), Breaker::Closed { .. }), "{ended}");
        let permit = permit(&mut gate, at(ended));
        gate.record(&rule(), at(ended), permit, Signal::Failure);
    }
    assert!(matches!(gate.breaker(), Breaker::Open { .. }), "three have failed");
    assert_eq!(gate.in_flight(at(3)), pending.len());
}

#[test]
fn field_38_however_a_probe_ends_its_place_is_free_again() {
    let mut outcomes = vec![Outcome::Unknown];
    outcomes.extend([200, 204, 302, 400, 401, 403, 404, 408, 410, 429, 500, 503].map(answered));
    outcomes.extend(FAILURES.map(failed));
    for outcome in outcomes {
        let (mut gate, end) = opened();
        let probe = permit(&mut gate, end);
        let signal = Classification::default().judge(&outcome).signal;
        gate.record(&rule(), end, probe, signal);
        let next = match gate.breaker() {
            Breaker::Open { until, .. } => until,
            Breaker::Closed { .. } | Breaker::HalfOpen { probe: None, .. } => end,
            Breaker::HalfOpen { probe: Some(_), .. } => panic!("{outcome}: half-open for ever"),
        };
        assert!(gate.room(&rule(), next).is_ok(), "{outcome}");
    }
}

/// A body that was signed as it is, and what a program on the way made of it.
fn check_changed(sent: &[u8], arrived: &[u8]) {
    let secrets = Secrets::one(Secret::from_entropy([1, 2, 3, 4]));
    let signature = sign(&secrets, "msg_1", 1_700_000_000, sent);
    let judge = |body| {
        let signed = Signed {
            id: Some(b"msg_1"),
            timestamp: Some(b"1700000000"),
            signature: Some(signature.as_bytes()),
            body,
        };
        verify(&secrets, &signed, Timestamp::from_secs(1_700_000_000), TOLERANCE)
    };
    assert_eq!(judge(sent), Ok(()));
    assert_ne!(sent, arrived, "something was changed");
    assert_eq!(judge(arrived), Err(VerifyError::Mismatch));
}

#[test]
fn field_43_and_44_json_that_was_read_and_written_again_is_not_what_was_signed() {
    for sent in [r#"{"a": 1}"#, r#"{"a":"\u001b"}"#, r#"{"a":"\u2665"}"#, r#"{"a":"\/"}"#] {
        let mut value: serde_json::Value = serde_json::from_str(sent).expect("it is JSON");
        let again = value.take().to_string();
        // An escape that stays as it is may still be written in the other case.
        let again = if again == sent { again.replace("001b", "001B") } else { again };
        check_changed(sent.as_bytes(), again.as_bytes());
    }
}

#[test]
fn field_45_a_body_with_an_emoji_is_verified_as_bytes_and_not_as_ascii() {
    let sent = "{\"text\":\"done 🎉\"}";
    let ascii: Vec<_> =
        sent.bytes().map(|byte| if byte.is_ascii() { byte } else { b'?' }).collect();
    check_changed(sent.as_bytes(), &ascii);
}

#[test]
fn field_47_a_number_that_a_database_writes_otherwise_is_another_body() {
    let sent = br#"{"b":1.0,"a":1.7e308}"#;
    check_changed(sent, br#"{"a": 170000000000000000000000000000000000000, "b": 1.0}"#);
    check_changed(sent, br#"{"a":1.7e308,"b":1.0}"#);
}

#[test]
fn field_57_each_attempt_begins_at_its_own_time_under_the_same_id() {
    let mut life = Life::new(Policy::default());
    let id = life.delivery.event_id.clone();
    for wait in [0, 5, 300] {
        life.now = life.now.plus(secs(wait));
        let now = life.now;
        let step = life.step(ADMITTED, 0).expect("it is due");
        let Phase::InFlight { started_at, .. } = step.delivery.phase else {
            panic!("{step:?}");
        };
        assert_eq!((started_at, &step.delivery.event_id), (now, &id), "what is signed");
        let attempt = step.delivery.attempts;
        let _ = life.step(Input::Finished { attempt, outcome: answered(500) }, 0);
    }
}
