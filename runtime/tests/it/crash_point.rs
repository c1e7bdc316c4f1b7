//! The names of the crash points, which scenarios and reports spell out.

use std::collections::BTreeSet;

use hookproof_runtime::crash_point::CrashPoint;

#[test]
fn the_names_are_those_that_are_written_down() {
    let names: Vec<_> = CrashPoint::ALL.iter().map(|point| point.as_str()).collect();
    let expected = [
        "publish.received",
        "publish.committed",
        "publish.acked",
        "attempt.claimed",
        "attempt.connected",
        "attempt.sent",
        "attempt.answered",
        "attempt.recorded",
        "notice.sent",
        "request.accepted",
        "request.verified",
        "inbox.committed",
        "ack.sent",
        "work.claimed",
        "effect.applied",
        "work.marked",
        "store.executed",
        "store.committed",
    ];
    assert_eq!(names, expected);
}

#[test]
fn no_two_points_share_a_name_and_each_prints_as_its_name() {
    let names: BTreeSet<_> = CrashPoint::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(names.len(), CrashPoint::ALL.len());
    assert_eq!(
        format!("{:>12}|{:<12}|", CrashPoint::AckSent, CrashPoint::AckSent),
        "    ack.sent|ack.sent    |"
    );
}
