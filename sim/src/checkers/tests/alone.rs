//! What one checker says where another would say it first, or of facts that a sound history lacks.

use hookproof_core::gate::{BreakerRule, DrainRule, GateRule, RateRule};

use super::*;
use crate::checkers::Checker;
use crate::checkers::accounting::NoLoss;
use crate::checkers::effects::DoneMeansDone;
use crate::checkers::fencing::Fencing;
use crate::checkers::gate::WithinGate;
use crate::checkers::liveness::Liveness;

/// What a checker says of the sound history after it was spoilt; nothing if there are no words.
fn check(mut checker: impl Checker, spoil: impl Fn(&mut Vec<Told>), words: &str) {
    let mut told = sound();
    spoil(&mut told);
    let said = told.iter().find_map(|(now, fact)| checker.see(*now, fact).err());
    let said = said.or_else(|| checker.end(&End { is_drained: true }).err());
    match &said {
        None => assert!(words.is_empty(), "nobody said `{words}`"),
        Some(said) => assert!(!words.is_empty() && said.contains(words), "{said}"),
    }
}

/// One more fact before the end.
fn more(fact: Fact<'static>) -> impl Fn(&mut Vec<Told>) {
    move |told| told.push((at(600), fact))
}

#[test]
fn a_publish_is_accepted_as_one_event_that_is_stored() {
    let other = Fact::Accepted { publish: PublishNo(0), event: EventNo(9) };
    check(NoLoss::default(), more(other), "was accepted as event 0 and as event 9");
    let stray = Fact::Accepted { publish: PublishNo(1), event: EventNo(9) };
    check(NoLoss::default(), more(stray), "was accepted as event 9, which is not stored");
}

#[test]
fn a_claim_is_not_cleared_while_its_attempt_is_under_way() {
    let cleared = |told: &mut Vec<Told>| {
        let place = told.iter().position(|(_, fact)| matches!(fact, Fact::Sent(_))).unwrap();
        let asked = Written { is_asked: true, ..written(GOOD, 2, 1, scheduled(300)) };
        told.insert(place + 1, (at(215), Fact::Written(asked)));
    };
    check(Fencing::default(), cleared, "is under way, and somebody clears its claim");
}

fn done() -> DoneMeansDone {
    DoneMeansDone::new(2, false)
}

/// It ends otherwise than by its effect, after that was claimed so often.
fn ends_otherwise(end: EntryEnd, claims: usize) -> impl Fn(&mut Vec<Told>) {
    move |told| {
        told.retain(|(_, fact)| !matches!(fact, Fact::Effect { .. } | Fact::WorkedOff { .. }));
        let claimed = Fact::Claimed { source: GOOD, event: EVENT };
        told.extend(vec![(at(600), claimed); claims]);
        told.push((at(600), Fact::WorkedOff { source: GOOD, event: EVENT, end }));
    }
}

#[test]
fn an_event_is_given_up_after_the_configured_claims_and_not_before() {
    check(done(), ends_otherwise(EntryEnd::GivenUp, 2), "");
    for claims in [0, 1, 3] {
        let words = format!("is given up at endpoint 0 after {claims} claims, not 2");
        check(done(), ends_otherwise(EntryEnd::GivenUp, claims), &words);
    }
}

#[test]
fn an_event_is_superseded_by_a_version_that_is_there() {
    let by = |version| ends_otherwise(EntryEnd::Superseded { version }, 1);
    // Its entity is at version 4.
    check(done(), by(Some((1, 3))), "");
    check(done(), by(Some((1, 4))), "");
    check(done(), by(Some((1, 5))), "and entity 1 has Some(4)");
    check(done(), by(Some((2, 1))), "and entity 2 has None");
    check(done(), by(None), "is about no entity");
}

#[test]
fn what_is_superseded_or_given_up_and_had_its_effect_is_not_done() {
    let also = |end: EntryEnd| {
        move |told: &mut Vec<Told>| {
            ends_otherwise(end, 2)(told);
            told.push((at(600), Fact::Effect { source: GOOD, event: EVENT }));
        }
    };
    let words = "is given up or superseded at endpoint 0, and had its effect 1 times";
    check(done(), also(EntryEnd::GivenUp), words);
    check(done(), also(EntryEnd::Superseded { version: Some((1, 4)) }), words);
}

fn cancelled(is_asked: bool) -> impl Fn(&mut Vec<Told>) {
    move |told| {
        let last = written(GOOD, 3, 1, Phase::Cancelled { at: at(600) });
        told.push((at(600), Fact::Written(Written { is_asked, ..last })));
    }
}

#[test]
fn a_delivery_is_cancelled_because_somebody_asks_or_with_its_endpoint() {
    let words = "is cancelled, and nobody asked for that";
    check(Liveness::default(), cancelled(true), "");
    check(Liveness::default(), cancelled(false), words);
    let with = |fact: Fact<'static>| {
        move |told: &mut Vec<Told>| {
            cancelled(false)(told);
            told.push((at(600), fact));
        }
    };
    check(Liveness::default(), with(Fact::Deleted { endpoint: GOOD }), "");
    let disabled = Fact::Disabled { endpoint: GOOD, has_cause: true };
    check(Liveness::default(), with(disabled), words);
    // Whoever takes the publish writes each delivery first, which is no wish to cancel it.
    let first = |told: &mut Vec<Told>| {
        for (_, fact) in told.iter_mut() {
            if let Fact::Written(written) = fact {
                written.is_asked = written.state.version == 0;
            }
        }
        cancelled(false)(told);
    };
    check(Liveness::default(), first, words);
}

#[test]
fn what_goes_to_a_broken_endpoint_ends_dead_after_all_attempts_with_one_notice() {
    let last = |change: fn(&mut Written<'static>)| {
        move |told: &mut Vec<Told>| {
            let is_last = |fact: &&mut Fact<'static>| matches!(fact, Fact::Written(w) if matches!(w.state.phase, Phase::Dead { .. }));
            let mut facts = told.iter_mut().map(|(_, fact)| fact);
            let Some(Fact::Written(written)) = facts.find(is_last) else { panic!("it is dead") };
            change(written);
        }
    };
    let one = |written: &mut Written<'static>| state(|s| s.scheduled_attempts = 1)(written);
    check(Liveness::default(), last(one), "ended after 1 attempts, and should after 2");
    let delivered = |written: &mut Written<'static>| {
        state(|state| state.phase = Phase::Delivered { at: at(560) })(written);
    };
    check(Liveness::default(), last(delivered), "is delivered, and endpoint 1 never works");
    let unnoticed = |told: &mut Vec<Told>| {
        told.retain(|(_, fact)| !matches!(fact, Fact::Noticed { .. }));
        for (_, fact) in told {
            if let Fact::Written(written) = fact {
                // That it was written first by another is no wish of anybody's.
                written.is_asked = written.state.version == 0;
                written.has_notice = false;
            }
        }
    };
    check(Liveness::default(), unnoticed, "is dead, and its owner was told 0 times");
}

#[test]
fn what_is_left_is_named_whatever_the_world_says() {
    let publish = Fact::Wanted { publish: PublishNo(1) };
    check(Liveness::default(), more(publish), "1 publishes are not accepted");
    let open = Fact::Written(written(GOOD, 3, 1, scheduled(600)));
    check(Liveness::default(), more(open), "1 deliveries are open, first event 0 to endpoint 0");
    // A receiver on trial owes nothing for what it never acknowledged.
    let waits = |told: &mut Vec<Told>| {
        told.retain(|(_, fact)| !matches!(fact, Fact::WorkedOff { .. }));
    };
    check(Liveness::default(), waits, "");
    let mut liveness = Liveness::default();
    let mut told = sound();
    waits(&mut told);
    told.iter().for_each(|(now, fact)| assert!(liveness.see(*now, fact).is_ok()));
    let said = liveness.end(&End { is_drained: false }).unwrap_err();
    assert!(said.contains("1 received events are not worked off, first event 0"), "{said}");
}

/// Attempts that are admitted and given back at once, under a rule.
fn admitted(rule: GateRule, starts: &[u64]) -> impl Fn(&mut Vec<Told>) {
    let rule: &'static GateRule = leak(rule);
    let starts = starts.to_vec();
    move |told| {
        told.clear();
        for ms in &starts {
            let (local, expires) = (at(*ms), at(*ms).plus(LEASE));
            let (endpoint, epoch) = (GOOD, 1);
            told.push((local, Fact::Admitted { endpoint, local, expires, rule, epoch }));
            let (is_success, is_probe) = (Some(true), false);
            let signal = Fact::Signalled { endpoint, is_success, is_probe, expires, local };
            told.push((local, signal));
        }
    }
}

#[test]
fn no_window_has_more_attempts_than_the_rate_and_no_share_of_it_more_than_the_burst() {
    let rule = |attempts, burst| GateRule {
        rate: Some(RateRule { attempts, per: Millis::from_secs(1), burst }),
        ..GateRule::default()
    };
    check(WithinGate::default(), admitted(rule(2, 0), &[0, 10, 1_000, 1_010]), "");
    let words = "3 attempts to endpoint 0 begin within 1s, 2 allowed";
    check(WithinGate::default(), admitted(rule(2, 0), &[0, 10, 999]), words);
    // Two of six have a third of the span.
    check(WithinGate::default(), admitted(rule(6, 2), &[0, 10, 334, 344]), "");
    let words = "3 attempts to endpoint 0 begin within 334ms, 2 allowed";
    check(WithinGate::default(), admitted(rule(6, 2), &[0, 10, 333]), words);
}

/// The breaker has opened at 0 for ten seconds; then these attempts are admitted, and end as probes.
fn probed(starts: &[(u64, Option<u64>)]) -> impl Fn(&mut Vec<Told>) {
    let breaker = BreakerRule {
        failures_in_a_row: 1,
        pause: Millis::from_secs(10),
        ..BreakerRule::default()
    };
    let drain = DrainRule { attempts: 1, per: Millis::from_secs(1), lasts: Millis::from_secs(60) };
    let rule: &'static GateRule =
        leak(GateRule { breaker: Some(breaker), drain: Some(drain), ..GateRule::default() });
    let starts = starts.to_vec();
    move |told| {
        told.clear();
        let mut tell = |began: u64, ended: Option<u64>, is_probe: bool| {
            let (endpoint, epoch, expires) = (GOOD, 1, at(began).plus(LEASE));
            let local = at(began);
            told.push((local, Fact::Admitted { endpoint, local, expires, rule, epoch }));
            if let Some(local) = ended.map(at) {
                let is_success = Some(is_probe);
                let signal = Fact::Signalled { endpoint, is_success, is_probe, expires, local };
                told.push((local, signal));
            }
        };
        tell(0, Some(0), false);
        for (began, ended) in &starts {
            tell(*began, *ended, true);
        }
    }
}

#[test]
fn one_probe_at_a_time_ends_a_pause_and_the_backlog_leaves_by_its_drain() {
    let gate = WithinGate::default;
    check(gate(), probed(&[(9_999, None)]), "is open for another 1ms, and an attempt begins");
    let words = "has a probe under way, and another attempt begins";
    check(gate(), probed(&[(10_000, None), (10_001, None)]), words);
    let first = (10_000, Some(10_010));
    check(gate(), probed(&[first, (10_010, Some(10_020)), (11_010, None)]), "");
    let words = "2 attempts to endpoint 0 begin within 1s, 1 allowed";
    check(gate(), probed(&[first, (10_010, Some(10_020)), (11_009, None)]), words);
}
