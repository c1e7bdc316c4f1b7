//! The timeline for programs.

use serde::Serialize;

use super::{Timeline, Tone};
use crate::history::{History, epoch};
use crate::plan::Plan;
use crate::plan::decision::meaning;

/// A failing history as programs read it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Document {
    scenario: String,
    mutant: Option<&'static str>,
    expected: &'static str,
    violation: Option<ViolationDocument>,
    decisions: Vec<DecisionDocument>,
    hosts: Vec<&'static str>,
    timeline: Vec<RowDocument>,
    trace_hash: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct ViolationDocument {
    invariant: &'static str,
    at_ms: u64,
    what: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct DecisionDocument {
    who: &'static str,
    number: u32,
    what: &'static str,
    nth: u32,
    value: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    meaning: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct RowDocument {
    ms: u64,
    host: Option<&'static str>,
    kind: &'static str,
    what: String,
}

/// The document of a plan and its history.
#[must_use]
pub fn document(plan: &Plan, history: &History) -> Document {
    let timeline = Timeline::new(history);
    Document {
        scenario: plan.scenario.name.clone(),
        mutant: plan.mutant.map(crate::zoo::Mutant::id),
        expected: plan.invariant.id(),
        violation: history.violation.as_ref().map(|violation| ViolationDocument {
            invariant: violation.invariant.id(),
            at_ms: violation.at.since(epoch()).get(),
            what: violation.what.clone(),
        }),
        decisions: plan
            .draws
            .iter()
            .map(|draw| DecisionDocument {
                who: draw.key.who.role,
                number: draw.key.who.number,
                what: draw.key.what,
                nth: draw.key.nth,
                value: draw.value,
                meaning: meaning(draw),
            })
            .collect(),
        timeline: timeline
            .rows
            .iter()
            .map(|row| RowDocument {
                ms: row.at_ms,
                host: row.lane.map(|lane| timeline.lanes[lane]),
                kind: kind(row.tone),
                what: row.text.clone(),
            })
            .collect(),
        hosts: timeline.lanes,
        trace_hash: history.hash.clone(),
    }
}

/// The name of a tone in files.
pub(super) const fn kind(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "step",
        Tone::Fault => "fault",
        Tone::Crash => "crash",
        Tone::Violation => "violation",
    }
}
