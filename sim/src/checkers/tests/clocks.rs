//! What clocks that are set change, and what they do not; and what goes with an endpoint.

use hookproof_core::delivery::Settled;
use hookproof_core::gate::RateRule;

use super::*;
use crate::checkers::Checker as _;
use crate::checkers::gate::WithinGate;
use crate::checkers::terminal::Terminal;

#[test]
fn a_request_may_be_signed_before_its_clock_is_set() {
    let after = |set_by: i64, signed_ago: i64| {
        let mut told = sound();
        for (_, fact) in &mut told {
            if let Fact::Sent(request) = fact {
                request.timestamp -= signed_ago;
                let before = Timestamp::from_millis(request.wall.0.as_millis() - set_by * 1000);
                let (one, other) = (request.wall.0, before);
                request.wall = (one.min(other), one.max(other));
            }
        }
        broken_by(&told, true)
    };
    assert_eq!(after(3600, 3600), None);
    assert_eq!(after(-60, -60), None);
    assert_eq!(after(60, 3600), Some(Invariant::Identity));
    assert_eq!(after(-60, -120), Some(Invariant::Identity));
}

/// Each of the eleven permits would be over by itself long before the next.
#[test]
fn no_clock_ends_a_permit_that_was_not_given_back() {
    check(Invariant::WithinGate, |told| {
        let rule = &policy().gate;
        for nth in 0..u64::from(rule.concurrency_max) + 1 {
            let local = at(1_000_000 * (nth + 1));
            let expires = local.plus(LEASE);
            let admitted = Fact::Admitted { endpoint: GOOD, local, expires, rule, epoch: 1 };
            told.push((at(600), admitted));
        }
    });
}

#[test]
fn a_replay_is_cancelled_with_its_endpoint_and_not_otherwise() {
    let after = |is_deleted: bool| {
        let settled = Settled::Scheduled { due: at(110) };
        let replay = Phase::Scheduled { due: at(200), origin: Origin::Replay { settled } };
        let asked = Written { is_asked: true, ..written(GOOD, 1, 0, replay) };
        let mut told = vec![
            stored(110),
            (at(110), Fact::Written(written(GOOD, 0, 0, scheduled(110)))),
            (at(200), Fact::Written(asked)),
        ];
        if is_deleted {
            told.push((at(300), Fact::Deleted { endpoint: GOOD }));
        }
        let cancelled = written(GOOD, 2, 0, Phase::Cancelled { at: at(300) });
        told.push((at(300), Fact::Written(cancelled)));
        let mut terminal = Terminal::default();
        told.iter().find_map(|(now, fact)| terminal.see(*now, fact).err())
    };
    assert_eq!(after(true), None);
    let violation = after(false).expect("nobody asked for that");
    assert!(violation.ends_with("is cancelled after it"), "{violation}");
}

/// A new owner of the shard knows of what was claimed; what was only to be claimed never began.
#[test]
fn what_was_let_begin_and_never_claimed_counts_no_more_once_its_owner_has_ended() {
    let after = |is_claimed: bool| {
        let mut rule = policy().gate.clone();
        rule.rate = Some(RateRule { attempts: 1, per: Millis::from_secs(2), burst: 0 });
        let admitted = |ms, epoch| Fact::Admitted {
            endpoint: GOOD,
            local: at(ms),
            expires: at(ms).plus(LEASE),
            rule: leak(rule.clone()),
            epoch,
        };
        let mut told = vec![(at(600), admitted(600, 1))];
        if is_claimed {
            told.push(begins(GOOD, 1, 1, 600).remove(1));
        }
        told.push((at(900), admitted(900, 2)));
        let mut gate = WithinGate::default();
        told.iter().find_map(|(now, fact)| gate.see(*now, fact).err())
    };
    assert_eq!(after(false), None);
    let violation = after(true).expect("two begin within two seconds");
    assert!(violation.ends_with("begin within 2s, 1 allowed"), "{violation}");
}
