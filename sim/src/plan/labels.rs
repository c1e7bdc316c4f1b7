//! The names in the keys of draws, so that a file that has a wrong one is told so.
//!
//! A test runs every scenario and every mutant and demands that each name it meets is here.

use hookproof_runtime::crash_point::CrashPoint;

use crate::fault::Fault;

/// Who asks.
pub(crate) const ROLES: &[&str] = &[
    "application",
    "attacker",
    "delivery",
    "downstream",
    "endpoint",
    "gateway",
    "network",
    "partition",
    "people",
    "plan",
    "publish",
    "receiver",
    "receiver's store",
    "sender",
    "sender's store",
];

/// What is asked, beside faults and crash points.
const QUESTIONS: &[&str] = &[
    "3xx",
    "4xx",
    "5xx",
    "alters the timestamp",
    "an open one",
    "begins",
    "breaks",
    "broken",
    "clock ahead",
    "clock set at",
    "clock set by",
    "commit",
    "commit takes",
    "connection",
    "delivery",
    "denied address",
    "disabled for",
    "disk takes",
    "downstream applies",
    "downstream hangs",
    "duplicate delay",
    "endpoint",
    "endpoints",
    "entropy",
    "events",
    "full for",
    "full from",
    "has retry-after",
    "held for",
    "how often",
    "inbox jitter",
    "jitter",
    "junk",
    "lasts",
    "latency",
    "latency back",
    "malformed",
    "open delivery",
    "partition at",
    "partition for",
    "pause",
    "paused for",
    "policy",
    "published at",
    "redirects to",
    "replayed after",
    "resolves to",
    "restart after",
    "retry-after",
    "retry-after date",
    "retry-after seconds",
    "secret",
    "slow body",
    "slow by",
    "when",
    "which receiver",
    "which sender",
    "work",
    "work takes",
];

/// The role of this name.
pub(crate) fn role(name: &str) -> Result<&'static str, String> {
    let known = || ROLES.iter().copied();
    known().find(|role| *role == name).ok_or_else(|| unknown("asker", name, known(), "give one of"))
}

/// The question of this name.
pub(crate) fn question(name: &str) -> Result<&'static str, String> {
    questions()
        .find(|question| *question == name)
        .ok_or_else(|| unknown("question", name, questions(), "there are"))
}

/// All questions, faults and crash points among them.
pub(crate) fn questions() -> impl Iterator<Item = &'static str> {
    let faults = Fault::ALL.iter().map(|fault| fault.as_str());
    let points = CrashPoint::ALL.iter().map(|point| point.as_str());
    QUESTIONS.iter().copied().chain(faults).chain(points)
}

fn unknown(
    kind: &str,
    name: &str,
    known: impl Iterator<Item = &'static str>,
    help: &str,
) -> String {
    let known: Vec<_> = known.collect();
    format!("there is no {kind} \"{}\"; {help} {}", name.escape_debug(), known.join(", "))
}
