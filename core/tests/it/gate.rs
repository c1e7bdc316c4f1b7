//! A gate over time: who passes, who waits for what, and when the breaker moves.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use hookproof_core::classify::Signal;
use hookproof_core::gate::{
    Admission, Breaker, BreakerRule, DeferReason, Gate, GateRule, Permit, StoredGate, Transition,
};
use hookproof_core::time::Timestamp;

use crate::given::{at, ms};

/// What happens at a gate; the letter names an attempt.
pub(crate) enum Event {
    Asks(char),
    Succeeds(char),
    Fails(char),
    IsRefused(char),
}

use Event::{Asks, Fails, IsRefused, Succeeds};

pub(crate) const LEASE_MS: u64 = 100;

/// What a gate answers to each event, at the given milliseconds. A letter that passes holds a
/// permit for 100 ms.
pub(crate) fn check(gate: Gate, rule: &GateRule, events: &[(i64, Event, &str)]) {
    let mut gate = gate;
    let mut permits = BTreeMap::new();
    for (index, (now, event, expected)) in events.iter().enumerate() {
        let now = at(*now);
        let answer = match event {
            Asks(name) => match gate.admit(rule, now, ms(LEASE_MS)) {
                Admission::Go(permit) => {
                    assert_eq!(permit.expires, now.plus(ms(LEASE_MS)));
                    let kind = if permit.probe { "probe" } else { "go" };
                    permits.insert(*name, permit);
                    kind.to_owned()
                }
                Admission::Defer { until, why } => {
                    let why = match why {
                        DeferReason::BreakerOpen => "breaker",
                        DeferReason::ProbeUnderWay => "probe",
                        DeferReason::ConcurrencyLimit => "limit",
                        DeferReason::Throttled => "throttled",
                        DeferReason::RateLimit => "rate",
                    };
                    format!("{why} until {}", until.as_millis())
                }
            },
            Succeeds(name) => report(&mut gate, rule, now, &mut permits, *name, Signal::Success),
            Fails(name) => report(&mut gate, rule, now, &mut permits, *name, Signal::Failure),
            IsRefused(name) => report(&mut gate, rule, now, &mut permits, *name, Signal::Neither),
        };
        assert_eq!(answer, *expected, "event {index}, at {} ms", now.as_millis());
    }
}

fn report(
    gate: &mut Gate,
    rule: &GateRule,
    now: Timestamp,
    permits: &mut BTreeMap<char, Permit>,
    name: char,
    signal: Signal,
) -> String {
    let permit = permits.remove(&name).expect("it has passed");
    match gate.record(rule, now, permit, signal) {
        None => "-".to_owned(),
        Some(Transition::Closed) => "closed".to_owned(),
        Some(Transition::Disabled { .. }) => "disabled".to_owned(),
        Some(Transition::Opened { until, .. }) => format!("opened until {}", until.as_millis()),
    }
}

/// Opens at `failures_in_a_row`, pauses 10 ms, 20 ms, then 30 ms.
pub(crate) fn rule(concurrency_max: u32, failures_in_a_row: u32) -> GateRule {
    let breaker = BreakerRule {
        failures_in_a_row,
        pause: ms(10),
        pause_max: ms(30),
        ..BreakerRule::default()
    };
    GateRule { concurrency_max, breaker: Some(breaker), ..GateRule::default() }
}

pub(crate) fn open(until: i64) -> Gate {
    Gate::restored(Breaker::Open { until: at(until), pause: ms(10) })
}

pub(crate) fn half_open() -> Gate {
    Gate::restored(Breaker::HalfOpen { probe: None, pause: ms(10) })
}

#[test]
fn no_more_than_the_limit_pass_at_once_and_the_rest_wait_for_the_first_deadline() {
    check(
        Gate::default(),
        &rule(2, 9),
        &[
            (0, Asks('a'), "go"),
            (5, Asks('b'), "go"),
            (6, Asks('c'), "limit until 100"),
            (7, Succeeds('a'), "-"),
            (8, Asks('c'), "go"),
            (9, Asks('d'), "limit until 105"),
        ],
    );
}

#[test]
fn a_permit_ends_by_itself_exactly_at_its_deadline() {
    check(
        Gate::default(),
        &rule(1, 9),
        &[
            (0, Asks('a'), "go"),
            (99, Asks('b'), "limit until 100"),
            (100, Asks('b'), "go"),
            (101, Succeeds('a'), "-"),
            (102, Asks('c'), "limit until 200"),
        ],
    );
}

#[test]
fn permits_whose_holders_are_at_work_go_on() {
    let rule = rule(2, 9);
    let mut gate = Gate::default();
    let admit = |gate: &mut Gate, now| gate.admit(&rule, at(now), ms(LEASE_MS));
    for start in [0, 50] {
        assert!(matches!(admit(&mut gate, start), Admission::Go(_)));
    }
    assert!(!gate.renew(at(99), ms(LEASE_MS)), "none is over");
    assert!(gate.renew(at(100), ms(LEASE_MS)), "the first is");
    let deferred =
        |until| Admission::Defer { until: at(until), why: DeferReason::ConcurrencyLimit };
    assert_eq!(admit(&mut gate, 149), deferred(150), "the second ends when it would have");
    assert!(matches!(admit(&mut gate, 150), Admission::Go(_)));
    assert_eq!(admit(&mut gate, 151), deferred(200), "and the first once its new lease is over");
}

#[test]
fn the_permits_out_are_counted_until_their_deadline() {
    let mut gate = Gate::default();
    let rule = rule(5, 9);
    for start in [0, 10] {
        assert!(matches!(gate.admit(&rule, at(start), ms(LEASE_MS)), Admission::Go(_)));
    }
    let counts: Vec<_> = [10, 99, 100, 109, 110].map(|now| gate.in_flight(at(now))).into();
    assert_eq!(counts, [2, 2, 1, 1, 0]);
}

#[test]
fn the_breaker_opens_at_exactly_n_failures_in_a_row() {
    check(
        Gate::default(),
        &rule(9, 3),
        &[
            (0, Asks('a'), "go"),
            (0, Asks('b'), "go"),
            (0, Asks('c'), "go"),
            (1, Fails('a'), "-"),
            (2, Fails('b'), "-"),
            (3, Asks('d'), "go"),
            (4, Fails('c'), "opened until 14"),
            (5, Asks('e'), "breaker until 14"),
        ],
    );
}

#[test]
fn a_success_begins_the_count_anew_and_a_refusal_leaves_it() {
    check(
        Gate::default(),
        &rule(9, 2),
        &[
            (0, Asks('a'), "go"),
            (0, Asks('b'), "go"),
            (0, Asks('c'), "go"),
            (0, Asks('d'), "go"),
            (0, Asks('e'), "go"),
            (1, Fails('a'), "-"),
            (2, Succeeds('b'), "-"),
            (3, Fails('c'), "-"),
            (4, IsRefused('d'), "-"),
            (5, Fails('e'), "opened until 15"),
        ],
    );
}

#[test]
fn refusals_alone_never_open_the_breaker() {
    let mut gate = Gate::default();
    let rule = rule(1, 1);
    for now in 0..100 {
        let Admission::Go(permit) = gate.admit(&rule, at(now), ms(LEASE_MS)) else {
            unreachable!("the breaker is closed and the permit is back");
        };
        assert_eq!(gate.record(&rule, at(now), permit, Signal::Neither), None);
    }
    assert_eq!(gate.breaker(), Breaker::Closed { failures: 0 });
}

#[test]
fn only_a_failure_opens_the_breaker_however_many_were_counted_before() {
    for failures in [3, 4, u32::MAX] {
        let counted = || Gate::restored(Breaker::Closed { failures });
        let asked = || (0, Asks('a'), "go");
        check(counted(), &rule(9, 3), &[asked(), (1, IsRefused('a'), "-"), (2, Asks('b'), "go")]);
        check(counted(), &rule(9, 3), &[asked(), (1, Fails('a'), "opened until 11")]);
        check(
            counted(),
            &rule(9, 3),
            &[asked(), (1, Succeeds('a'), "-"), (2, Asks('b'), "go"), (3, Fails('b'), "-")],
        );
    }
}

/// Whether a type can be copied: an inherent function goes before that of a trait.
struct Copies<T>(PhantomData<T>);

impl<T: Clone> Copies<T> {
    fn can(&self) -> bool {
        true
    }
}

trait Otherwise {
    fn can(&self) -> bool {
        false
    }
}

impl<T> Otherwise for Copies<T> {}

#[test]
fn a_permit_cannot_be_copied_so_that_no_attempt_is_counted_twice() {
    assert!(Copies::<DeferReason>(PhantomData).can());
    assert!(!Copies::<Permit>(PhantomData).can());
    assert!(!Copies::<Admission>(PhantomData).can());
}

#[test]
fn an_open_breaker_lets_one_probe_through_when_its_pause_is_over() {
    check(
        open(50),
        &rule(9, 3),
        &[
            (49, Asks('a'), "breaker until 50"),
            (50, Asks('a'), "probe"),
            (51, Asks('b'), "probe until 150"),
        ],
    );
}

#[test]
fn a_clock_that_is_set_back_prolongs_no_pause_beyond_its_length() {
    let rule = GateRule::default();
    let mut gate = Gate::restored(Breaker::Open { until: at(1_000_000), pause: ms(50) });
    assert_eq!(gate.room(&rule, at(500)), Err((at(550), DeferReason::BreakerOpen)));
    assert_eq!(gate.room(&rule, at(549)), Err((at(550), DeferReason::BreakerOpen)));
    assert_eq!(gate.room(&rule, at(550)), Ok(1));
}

#[test]
fn a_probe_that_succeeds_closes_the_breaker() {
    check(
        half_open(),
        &rule(2, 3),
        &[
            (0, Asks('a'), "probe"),
            (1, Asks('b'), "probe until 100"),
            (2, Succeeds('a'), "closed"),
            (3, Asks('b'), "go"),
            (3, Asks('c'), "go"),
            (4, Asks('d'), "limit until 103"),
            (5, Fails('b'), "-"),
            (6, Fails('c'), "-"),
        ],
    );
}

#[test]
fn a_probe_that_fails_doubles_the_pause_up_to_the_longest() {
    check(
        half_open(),
        &rule(9, 3),
        &[
            (0, Asks('a'), "probe"),
            (0, Fails('a'), "opened until 20"),
            (20, Asks('b'), "probe"),
            (20, Fails('b'), "opened until 50"),
            (49, Asks('c'), "breaker until 50"),
            (50, Asks('c'), "probe"),
            (50, Fails('c'), "opened until 80"),
        ],
    );
}

#[test]
fn after_it_has_closed_the_breaker_begins_with_the_first_pause_again() {
    check(
        half_open(),
        &rule(9, 1),
        &[
            (0, Asks('a'), "probe"),
            (0, Fails('a'), "opened until 20"),
            (20, Asks('b'), "probe"),
            (20, Succeeds('b'), "closed"),
            (20, Asks('c'), "go"),
            (20, Fails('c'), "opened until 30"),
        ],
    );
}

#[test]
fn a_probe_that_is_refused_makes_room_for_the_next() {
    check(
        half_open(),
        &rule(9, 3),
        &[
            (0, Asks('a'), "probe"),
            (1, IsRefused('a'), "-"),
            (1, Asks('b'), "probe"),
            (2, Asks('c'), "probe until 101"),
        ],
    );
}

#[test]
fn a_refused_probe_is_no_longer_told_of_as_under_way() {
    let mut gate = half_open();
    let Admission::Go(probe) = gate.admit(&rule(9, 3), at(0), ms(LEASE_MS)) else {
        unreachable!("no probe is under way");
    };
    assert_eq!(gate.record(&rule(9, 3), at(1), probe, Signal::Neither), None);
    assert_eq!(gate.breaker(), Breaker::HalfOpen { probe: None, pause: ms(10) });
}

#[test]
fn a_probe_that_is_never_heard_of_makes_room_at_its_deadline() {
    check(
        half_open(),
        &rule(9, 3),
        &[
            (0, Asks('a'), "probe"),
            (99, Asks('b'), "probe until 100"),
            (100, Asks('b'), "probe"),
            (101, Fails('a'), "-"),
            (102, Asks('c'), "probe until 200"),
            (103, Succeeds('b'), "closed"),
        ],
    );
}

#[test]
fn a_late_probe_that_nobody_has_replaced_still_counts() {
    check(
        half_open(),
        &rule(9, 3),
        &[(0, Asks('a'), "probe"), (500, Succeeds('a'), "closed"), (500, Asks('b'), "go")],
    );
}

#[test]
fn attempts_from_before_the_pause_say_nothing_new() {
    check(
        Gate::default(),
        &rule(9, 1),
        &[
            (0, Asks('a'), "go"),
            (0, Asks('b'), "go"),
            (0, Asks('c'), "go"),
            (0, Asks('d'), "go"),
            (1, Fails('a'), "opened until 11"),
            (2, Fails('b'), "-"),
            (3, Succeeds('c'), "-"),
            (4, Asks('e'), "breaker until 11"),
            (11, Asks('e'), "probe"),
            (12, Succeeds('d'), "-"),
            (13, Asks('f'), "probe until 111"),
        ],
    );
}

#[test]
fn a_probe_too_needs_a_place_under_the_limit() {
    check(
        Gate::default(),
        &rule(1, 1),
        &[
            (0, Asks('a'), "go"),
            (1, Fails('a'), "opened until 11"),
            (11, Asks('b'), "probe"),
            (12, Asks('c'), "probe until 111"),
            (13, IsRefused('b'), "-"),
            (14, Asks('c'), "probe"),
        ],
    );
    check(
        Gate::default(),
        &rule(2, 1),
        &[
            (0, Asks('a'), "go"),
            (0, Asks('b'), "go"),
            (1, Fails('a'), "opened until 11"),
            (11, Asks('c'), "probe"),
            (12, IsRefused('c'), "-"),
            (13, Asks('d'), "probe"),
        ],
    );
}

#[test]
fn a_limit_lowered_while_attempts_are_out_holds_back_a_probe_until_there_is_room() {
    let mut gate = Gate::default();
    let wide = rule(2, 1);
    let Admission::Go(first) = gate.admit(&wide, at(0), ms(LEASE_MS)) else {
        unreachable!("the gate is new");
    };
    assert!(matches!(gate.admit(&wide, at(0), ms(LEASE_MS)), Admission::Go(_)));
    assert!(gate.record(&wide, at(1), first, Signal::Failure).is_some());
    check(gate, &rule(1, 1), &[(11, Asks('c'), "limit until 100"), (100, Asks('c'), "probe")]);
}

fn check_room(gate: &Gate, rule: &GateRule, now: i64, expected: Result<u32, (i64, DeferReason)>) {
    let room = gate.clone().room(rule, at(now));
    let expected = expected.map_err(|(until, why)| (at(until), why));
    assert_eq!(room, expected, "at {now} ms");
}

#[test]
fn the_room_is_what_the_limit_and_the_breaker_leave() {
    let mut gate = Gate::default();
    check_room(&gate, &rule(3, 9), 0, Ok(3));
    assert!(matches!(gate.admit(&rule(3, 9), at(0), ms(LEASE_MS)), Admission::Go(_)));
    check_room(&gate, &rule(3, 9), 0, Ok(2));
    check_room(&gate, &rule(1, 9), 0, Err((100, DeferReason::ConcurrencyLimit)));
    check_room(&gate, &rule(1, 9), 100, Ok(1));
    check_room(&open(50), &rule(3, 9), 49, Err((50, DeferReason::BreakerOpen)));
    check_room(&open(50), &rule(3, 9), 50, Ok(1));
    let mut gate = half_open();
    assert!(matches!(gate.admit(&rule(3, 9), at(0), ms(LEASE_MS)), Admission::Go(_)));
    check_room(&gate, &rule(3, 9), 1, Err((100, DeferReason::ProbeUnderWay)));
}

#[test]
fn a_restored_gate_goes_on_where_the_breaker_was_without_its_permits() {
    let closed = Gate::restored(Breaker::Closed { failures: 2 });
    check(closed, &rule(1, 3), &[(0, Asks('a'), "go"), (1, Fails('a'), "opened until 11")]);
    check(open(50), &rule(9, 3), &[(49, Asks('a'), "breaker until 50"), (50, Asks('a'), "probe")]);
}

#[test]
fn a_probe_does_not_outlive_the_process_that_made_it() {
    let mut gate = half_open();
    assert!(matches!(gate.admit(&rule(1, 3), at(0), ms(LEASE_MS)), Admission::Go(_)));
    let stored = gate.breaker();
    assert!(matches!(stored, Breaker::HalfOpen { probe: Some(_), .. }));
    let restored = Gate::restored(stored);
    assert_eq!(restored.in_flight(at(0)), 0);
    check(restored, &rule(1, 3), &[(0, Asks('a'), "probe"), (0, Fails('a'), "opened until 20")]);
}

#[test]
fn a_breaker_is_told_in_json_by_its_state() {
    let json = |breaker: Breaker| serde_json::to_string(&breaker).unwrap();
    assert_eq!(json(Breaker::default()), r#"{"state":"closed","failures":0}"#);
    assert_eq!(json(open(50).breaker()), r#"{"state":"open","until":50,"pause":"10ms"}"#);
    assert_eq!(json(half_open().breaker()), r#"{"state":"half_open","probe":null,"pause":"10ms"}"#);
}

#[test]
fn of_a_snapshot_that_cannot_be_read_the_number_is_kept() {
    let unreadable = StoredGate::unreadable(7);
    assert_eq!((unreadable.sequence, &unreadable.breaker), (7, &StoredGate::default().breaker));
    let mut gate = Gate::restored(unreadable);
    assert!(matches!(gate.admit(&rule(1, 9), at(0), ms(LEASE_MS)), Admission::Go(_)));
    assert_eq!(gate.stored().sequence, 8, "what is stored next is later than that");
}
