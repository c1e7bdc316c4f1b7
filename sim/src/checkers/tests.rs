//! Each checker accepts a sound history and names what is wrong with a spoilt one.

mod alone;
mod clocks;
mod reference;
mod schedule;

use hookproof_core::delivery::{AttemptRecord, DeadReason, Delivery, Origin, Phase};
use hookproof_core::id::{DeliveryId, EndpointId, EventId};
use hookproof_core::outcome::Outcome;
use hookproof_core::policy::Policy;
use hookproof_core::time::{Millis, Timestamp};

use super::{Bounds, Checkers, Invariant, Violation};
use crate::fact::{
    End, EndpointNo, EntryEnd, EventNo, Fact, Life, PublishNo, Route, SentRequest, Written,
};
use crate::history::epoch;
use crate::scenario::brisk;
use crate::zoo::HarnessMutant;

const EVENT: EventNo = EventNo(0);
/// It takes the event at once.
const GOOD: EndpointNo = EndpointNo(0);
/// It answers 500, for ever.
const BROKEN: EndpointNo = EndpointNo(1);
const BY: Life = Life { process: 0, number: 1 };
const LEASE: Millis = Millis::from_secs(60);
const BOUNDS: Bounds =
    Bounds { overdue: Millis::from_secs(15), isolation: Millis::from_secs(5), claims: 2 };

type Told = (Timestamp, Fact<'static>);

fn at(ms: u64) -> Timestamp {
    epoch().plus(Millis::new(ms))
}

/// Facts borrow, and a test is short.
fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn policy() -> &'static Policy {
    leak(brisk(2))
}

fn route(endpoint: EndpointNo) -> Route {
    Route { event: EVENT, endpoint }
}

fn written(endpoint: EndpointNo, version: u64, attempts: u32, phase: Phase) -> Written<'static> {
    let event_id = EventId::new("msg_1").unwrap();
    let endpoint_id = EndpointId::new(format!("ep_{}", endpoint.0)).unwrap();
    let id = DeliveryId::of(&event_id, &endpoint_id);
    let state = Delivery {
        version,
        attempts,
        scheduled_attempts: attempts,
        phase,
        ..Delivery::new(id, event_id, endpoint_id, at(110))
    };
    Written {
        route: route(endpoint),
        state: leak(state),
        record: None,
        asked: None,
        has_notice: false,
        by: BY,
        epoch: 1,
        is_asked: false,
        clock_ahead: 0,
    }
}

fn scheduled(ms: u64) -> Phase {
    Phase::Scheduled { due: at(ms), origin: Origin::Schedule }
}

fn record(attempt: u32, began: u64, ended: u64, status: u16) -> Option<&'static AttemptRecord> {
    let outcome = Outcome::Answered { status, retry_after: None };
    let verdict = brisk(2).classification.verdict(&outcome);
    let (started_at, finished_at) = (at(began), at(ended));
    Some(leak(AttemptRecord { attempt, started_at, finished_at, outcome, verdict }))
}

fn stored(ms: u64) -> Told {
    (at(ms), Fact::Stored { event: EVENT, publish: PublishNo(0) })
}

fn sent(endpoint: EndpointNo, attempt: u32, ms: u64) -> SentRequest {
    SentRequest {
        route: route(endpoint),
        attempt,
        event: EVENT,
        body: (7, 7),
        headers: 7,
        timestamp: at(ms).as_secs(),
        wall: (at(ms), at(ms)),
        stood_still: Millis::ZERO,
        is_signed: true,
        is_claimed: true,
        by: BY,
        ends_by: at(ms).plus(LEASE),
    }
}

/// An attempt begins: its permit, its claim, its connection, its request.
fn begins(endpoint: EndpointNo, version: u64, attempt: u32, ms: u64) -> Vec<Told> {
    let lease_until = at(ms).plus(LEASE);
    let origin = Origin::Schedule;
    let phase = Phase::InFlight { attempt, started_at: at(ms), lease_until, origin };
    let rule = &policy().gate;
    let admitted = Fact::Admitted { endpoint, local: at(ms), expires: lease_until, rule, epoch: 1 };
    vec![
        (at(ms), admitted),
        (at(ms), Fact::Written(written(endpoint, version, attempt, phase))),
        (at(ms), Fact::Dialled { route: route(endpoint), is_denied: false }),
        (at(ms + 10), Fact::Sent(sent(endpoint, attempt, ms + 10))),
    ]
}

/// An attempt ends, and leads to that.
fn ends(attempt: u32, began: u64, ms: u64, status: u16, next: Written<'static>) -> Vec<Told> {
    let (route, expires) = (next.route, at(began).plus(LEASE));
    let is_success = Some(status < 300);
    let signalled = Fact::Signalled {
        endpoint: route.endpoint,
        is_success,
        is_probe: false,
        expires,
        local: at(ms),
    };
    let next = Written { record: record(attempt, began, ms, status), ..next };
    vec![
        (at(ms), Fact::Ended { route, attempt }),
        (at(ms), signalled),
        (at(ms), Fact::Written(next)),
    ]
}

/// One event to two endpoints: one takes it, the other answers 500 twice, which is all there is.
fn sound() -> Vec<Told> {
    let mut told = vec![
        (at(0), Fact::Served { policy: policy() }),
        (at(0), Fact::Registered { endpoint: GOOD, is_sound: true }),
        (at(0), Fact::Registered { endpoint: BROKEN, is_sound: false }),
        (at(100), Fact::Wanted { publish: PublishNo(0) }),
        stored(110),
        (at(110), Fact::Written(written(GOOD, 0, 0, scheduled(110)))),
        (at(110), Fact::Written(written(BROKEN, 0, 0, scheduled(110)))),
        (at(120), Fact::Accepted { publish: PublishNo(0), event: EVENT }),
    ];
    told.extend(begins(GOOD, 1, 1, 200));
    told.extend(begins(BROKEN, 1, 1, 200));
    told.push((at(220), Fact::Recorded { source: GOOD, event: EVENT }));
    told.push((at(230), judged(true, 202)));
    told.extend(ends(1, 200, 240, 202, written(GOOD, 2, 1, Phase::Delivered { at: at(240) })));
    told.extend(ends(1, 200, 240, 500, written(BROKEN, 2, 1, scheduled(540))));
    told.push((at(300), Fact::Effect { source: GOOD, event: EVENT }));
    told.push((at(300), Fact::WorkedOff { source: GOOD, event: EVENT, end: EntryEnd::Applied }));
    told.push((at(300), Fact::Entity { entity: 1, version: 4 }));
    told.push((at(300), Fact::Seen { entity: 1, version: 4 }));
    told.extend(begins(BROKEN, 3, 2, 540));
    let dead = Phase::Dead { at: at(560), reason: DeadReason::Exhausted };
    let last = Written { has_notice: true, ..written(BROKEN, 4, 2, dead) };
    told.extend(ends(2, 540, 560, 500, last));
    told.push((at(570), Fact::Noticed { route: route(BROKEN) }));
    told
}

fn judged(is_valid: bool, status: u16) -> Fact<'static> {
    Fact::Judged { source: GOOD, event: EVENT, is_valid, status }
}

/// Tells a history; the first violation ends it.
fn tell(checkers: &mut Checkers, told: &[Told], is_drained: bool) -> Result<(), Violation> {
    for (now, fact) in told {
        checkers.see(*now, fact)?;
    }
    checkers.end(at(10_000), &End { is_drained })
}

fn broken_by(told: &[Told], is_drained: bool) -> Option<Invariant> {
    let mut checkers = Checkers::new(BOUNDS, None);
    tell(&mut checkers, told, is_drained).err().map(|violation| violation.invariant)
}

/// Spoils a sound history, and expects that the invariant is named.
fn check(expected: Invariant, spoil: impl Fn(&mut Vec<Told>)) {
    let mut told = sound();
    spoil(&mut told);
    assert_eq!(broken_by(&told, true), Some(expected));
}

/// Spoils by one more fact at the end.
fn check_more(expected: Invariant, fact: Fact<'static>) {
    check(expected, |told| told.push((at(600), fact)));
}

/// Spoils by leaving the facts out that `is_it` means.
fn check_without(expected: Invariant, is_it: fn(&Fact<'_>) -> bool) {
    check(expected, |told| told.retain(|(_, fact)| !is_it(fact)));
}

/// Spoils the `nth` of the facts that `change` knows how to.
fn check_changed(expected: Invariant, nth: usize, change: impl Fn(&mut Told) -> bool) {
    check(expected, |told| {
        let mut seen = 0;
        for one in told.iter_mut() {
            let mut spoilt = *one;
            if change(&mut spoilt) {
                if seen == nth {
                    *one = spoilt;
                    return;
                }
                seen += 1;
            }
        }
        panic!("there are only {seen} of them");
    });
}

fn check_request(expected: Invariant, nth: usize, spoil: fn(&mut SentRequest)) {
    check_changed(expected, nth, |(_, fact)| match fact {
        Fact::Sent(request) => {
            spoil(request);
            true
        }
        _ => false,
    });
}

fn check_written(expected: Invariant, nth: usize, spoil: impl Fn(&mut Written<'static>)) {
    check_changed(expected, nth, |(_, fact)| match fact {
        Fact::Written(written) => {
            spoil(written);
            true
        }
        _ => false,
    });
}

/// A change of a state, for [`check_written`].
fn state(change: impl Fn(&mut Delivery)) -> impl Fn(&mut Written<'static>) {
    move |written| {
        let mut state = written.state.clone();
        change(&mut state);
        written.state = leak(state);
    }
}

#[test]
fn a_sound_history_passes_and_every_checker_sees_something() {
    let mut checkers = Checkers::new(BOUNDS, None);
    assert_eq!(tell(&mut checkers, &sound(), true), Ok(()));
    let looks = checkers.looks();
    assert_eq!(looks.keys().copied().collect::<Vec<_>>(), Invariant::ALL);
    for (invariant, looks) in looks {
        assert!(looks > 0, "{invariant} saw nothing");
    }
}

#[test]
fn an_accepted_event_without_its_one_delivery_to_each_endpoint_is_a_loss() {
    check_without(
        Invariant::NoLoss,
        |fact| matches!(fact, Fact::Written(written) if written.route.endpoint == GOOD),
    );
    check_more(Invariant::NoLoss, Fact::Doubled { route: route(GOOD) });
    check(Invariant::NoLoss, |told| told.push(stored(600)));
    check_more(Invariant::NoLoss, Fact::Accepted { publish: PublishNo(1), event: EVENT });
    let other = Route { event: EventNo(9), endpoint: GOOD };
    let stray = Written { route: other, ..written(GOOD, 0, 0, scheduled(600)) };
    check_more(Invariant::NoLoss, Fact::Written(stray));
}

#[test]
fn what_nobody_published_is_an_invention() {
    check_without(Invariant::NoInvention, |fact| matches!(fact, Fact::Wanted { .. }));
    check_more(Invariant::NoInvention, Fact::Effect { source: GOOD, event: EventNo(9) });
    let stray = Route { event: EventNo(9), endpoint: GOOD };
    let request = SentRequest { route: stray, event: EventNo(9), ..sent(GOOD, 1, 600) };
    check_more(Invariant::NoInvention, Fact::Sent(request));
}

#[test]
fn a_second_effect_breaks_exactly_once_unless_the_harness_is_lax_or_blind() {
    let second = Fact::Effect { source: GOOD, event: EVENT };
    check_more(Invariant::ExactlyOnce, second);
    let mut told = sound();
    told.push((at(600), second));
    let mut lax = Checkers::new(BOUNDS, Some(HarnessMutant::AtLeast));
    assert_eq!(tell(&mut lax, &told, true), Ok(()));
    let mut blind = Checkers::new(BOUNDS, Some(HarnessMutant::EmptyLedger));
    let found = tell(&mut blind, &told, true).unwrap_err();
    assert_eq!(found.invariant, Invariant::DoneMeansDone, "only at the end");
    assert_eq!(blind.looks()[&Invariant::ExactlyOnce], 0);
}

#[test]
fn what_is_delivered_or_worked_off_without_its_effect_is_not_done() {
    check_without(Invariant::DoneMeansDone, |fact| matches!(fact, Fact::Effect { .. }));
    check_without(Invariant::DoneMeansDone, |fact| {
        matches!(
            fact,
            Fact::Effect { .. }
                | Fact::WorkedOff { .. }
                | Fact::Recorded { .. }
                | Fact::Judged { .. }
        )
    });
    let given_up = Fact::WorkedOff { source: GOOD, event: EVENT, end: EntryEnd::GivenUp };
    check_more(Invariant::DoneMeansDone, given_up);
}

#[test]
fn a_settled_delivery_that_moves_is_not_terminal() {
    check_more(Invariant::Terminal, Fact::Written(written(GOOD, 3, 1, scheduled(600))));
    let dead = Phase::Dead { at: at(600), reason: DeadReason::Exhausted };
    check_more(Invariant::Terminal, Fact::Written(written(GOOD, 3, 1, dead)));
}

#[test]
fn a_request_without_its_committed_row_is_not_written_ahead() {
    check_request(Invariant::WriteAhead, 0, |request| request.is_claimed = false);
}

#[test]
fn attempts_that_differ_have_lost_their_identity() {
    check_request(Invariant::Identity, 2, |request| request.event = EventNo(9));
    check_request(Invariant::Identity, 2, |request| request.body.0 = 8);
    check_request(Invariant::Identity, 2, |request| request.headers = 8);
    check_request(Invariant::Identity, 2, |request| request.is_signed = false);
    check_request(Invariant::Identity, 2, |request| request.timestamp -= 11);
    check_request(Invariant::Identity, 2, |request| request.timestamp += 2);
}

#[test]
fn no_time_passes_for_a_request_while_its_process_stands_still() {
    let after = |seconds_still| {
        let mut told = sound();
        for (_, fact) in &mut told {
            if let Fact::Sent(request) = fact {
                request.timestamp -= 40;
                request.stood_still = Millis::from_secs(seconds_still);
            }
        }
        broken_by(&told, true)
    };
    assert_eq!(after(40), None);
    assert_eq!(after(10), Some(Invariant::Identity));
}

#[test]
fn a_receiver_that_refuses_what_is_valid_or_takes_what_is_not_has_lost_it_too() {
    check_more(Invariant::Identity, judged(true, 401));
    check_more(Invariant::Identity, judged(false, 200));
    for fine in [judged(true, 503), judged(false, 401)] {
        let mut told = sound();
        told.push((at(600), fine));
        assert_eq!(broken_by(&told, true), None, "{fine:?}");
    }
}

#[test]
fn attempts_too_soon_too_many_or_never_made_are_off_schedule() {
    // The second attempt of the broken endpoint begins before it is due.
    check_written(Invariant::OnSchedule, 5, state(|state| state.phase = scheduled(545)));
    // It is due later than the policy allows, and earlier than the first one ended.
    check_written(Invariant::OnSchedule, 5, state(|state| state.phase = scheduled(800)));
    check_written(Invariant::OnSchedule, 5, state(|state| state.phase = scheduled(239)));
    check_written(Invariant::OnSchedule, 6, state(|state| state.scheduled_attempts = 3));
    check_written(Invariant::OnSchedule, 7, state(|state| state.scheduled_attempts = 1));
    check_without(Invariant::OnSchedule, |fact| matches!(fact, Fact::Dialled { .. }));
}

#[test]
fn an_attempt_that_begins_late_is_overdue_and_before_that_not_isolated() {
    let late = |ms: u64| {
        move |told: &mut Told| match &told.1 {
            Fact::Written(written)
                if written.route.endpoint == GOOD
                    && matches!(written.state.phase, Phase::InFlight { .. }) =>
            {
                told.0 = at(ms);
                true
            }
            _ => false,
        }
    };
    check_changed(Invariant::OnSchedule, 0, late(15_200));
    check_changed(Invariant::Isolation, 0, late(5_200));
    // Its gate held it back until then, or nobody could do anything.
    for excuse in
        [Fact::Deferred { endpoint: GOOD, until: at(5_000) }, Fact::Hindered { until: at(5_000) }]
    {
        let mut told = sound();
        let claim = told.iter_mut().find_map(|one| late(5_200)(one).then_some(())).is_some();
        assert!(claim);
        let place = told.iter().position(|(now, _)| *now == at(200)).unwrap();
        told.insert(place, (at(200), excuse));
        assert_eq!(broken_by(&told, true), None, "{excuse:?}");
    }
}

#[test]
fn more_attempts_than_the_limit_and_any_at_an_open_breaker_are_outside_the_gate() {
    let rule = &policy().gate;
    let admitted = |ms: u64| Fact::Admitted {
        endpoint: GOOD,
        local: at(ms),
        expires: at(ms).plus(LEASE),
        rule,
        epoch: 1,
    };
    check(Invariant::WithinGate, |told| told.extend((0..5).map(|n| (at(600), admitted(600 + n)))));
    let failed = |ms: u64| Fact::Signalled {
        endpoint: GOOD,
        is_success: Some(false),
        is_probe: false,
        expires: at(ms).plus(LEASE),
        local: at(ms),
    };
    check(Invariant::WithinGate, |told| {
        told.extend(
            (0..6).flat_map(|n| [admitted(600 + n), failed(600 + n)]).map(|f| (at(600), f)),
        );
        told.push((at(610), admitted(610)));
    });
}

#[test]
fn an_entity_that_goes_back_or_ends_below_its_highest_version_is_out_of_order() {
    check_more(Invariant::Order, Fact::Entity { entity: 1, version: 3 });
    check_more(Invariant::Order, Fact::Seen { entity: 1, version: 5 });
}

#[test]
fn a_connection_to_a_denied_address_is_seen() {
    check_more(Invariant::Address, Fact::Dialled { route: route(GOOD), is_denied: true });
}

#[test]
fn what_does_not_drain_and_notices_that_do_not_arrive_once_are_not_live() {
    assert_eq!(broken_by(&sound(), false), Some(Invariant::Liveness));
    check_without(Invariant::Liveness, |fact| matches!(fact, Fact::Noticed { .. }));
    check_more(Invariant::Liveness, Fact::Noticed { route: route(BROKEN) });
    check_more(Invariant::Liveness, Fact::Disabled { endpoint: GOOD, has_cause: false });
    check(Invariant::Liveness, |told| {
        told.retain(|(_, fact)| !matches!(fact, Fact::Noticed { .. }));
        for (_, fact) in told {
            if let Fact::Written(written) = fact {
                written.has_notice = false;
            }
        }
    });
}

#[test]
fn two_writers_or_two_attempts_at_once_break_the_fence() {
    check_written(Invariant::Fencing, 6, state(|state| state.version = 4));
    check_written(Invariant::Fencing, 6, state(|state| state.version = 2));
    check_written(Invariant::Fencing, 6, |written| written.epoch = 0);
    check_written(Invariant::Fencing, 6, |written| written.by = Life { process: 1, number: 1 });
    check(Invariant::Fencing, |told| {
        let place = told.iter().position(|(_, fact)| matches!(fact, Fact::Sent(_))).unwrap();
        told.insert(place + 1, (at(215), Fact::Sent(sent(GOOD, 1, 215))));
    });
}

#[test]
fn what_was_acknowledged_and_is_not_stored_or_is_gone_was_not_durable() {
    check_without(Invariant::Durable, |fact| {
        matches!(fact, Fact::Stored { .. } | Fact::Written(_))
    });
    check_without(Invariant::Durable, |fact| matches!(fact, Fact::Recorded { .. }));
    check_more(Invariant::Durable, Fact::Lost { event: EVENT });
}

#[test]
fn a_breakdown_is_one() {
    check_more(Invariant::Sound, Fact::Broke { what: "the sender: a panic" });
}
