//! The timeline for programs: spans in whole milliseconds, times as RFC 3339.

use std::io::{self, Write};

use hookproof_core::policy::Policy;
use hookproof_core::preset::{self, Preset};
use hookproof_core::schedule::Jitter;
use serde::Serialize;

use super::burst::Limited;
use super::facts::{Facts, Within};
use super::timeline::{Entry, Spread, Timeline};
use super::{Inspected, time_text};

/// One timeline.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    schedule: &'a str,
    source: &'a str,
    certainty: Option<&'static str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    note: &'static str,
    jitter: Jitter,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    attempts: Vec<Attempt>,
    #[serde(flatten)]
    facts: &'a Facts,
}

#[derive(Serialize)]
struct Attempt {
    #[serde(flatten)]
    entry: Entry,
    /// What the limits make of it, if there are any and an event comes to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    with_limits: Option<Limited>,
    #[serde(skip_serializing_if = "Option::is_none")]
    within_outage: Option<Within>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<At>,
}

#[derive(Serialize)]
struct At {
    earliest: String,
    mean: String,
    latest: String,
}

pub(super) fn timeline(inspected: &Inspected) -> Document<'_> {
    let Inspected { source, timeline, facts, window, from } = inspected;
    let at = |spread: Spread| {
        from.map(|start| At {
            earliest: time_text(start, spread.lowest_ms),
            mean: time_text(start, spread.mean_ms),
            latest: time_text(start, spread.highest_ms),
        })
    };
    let attempt = |entry: &Entry| Attempt {
        entry: *entry,
        with_limits: limited(inspected, entry),
        within_outage: window.map(|window| window.holds(entry)),
        at: at(entry.since_event),
    };
    Document {
        schedule: &source.name,
        source: &source.source,
        certainty: source.certainty.map(|certainty| certainty.as_str()),
        note: source.note,
        jitter: source.policy.schedule.jitter,
        from: from.map(|start| start.to_string()),
        attempts: timeline.entries.iter().map(attempt).collect(),
        facts,
    }
}

fn limited(inspected: &Inspected, entry: &Entry) -> Option<Limited> {
    let burst = inspected.facts.events.as_ref().filter(|burst| burst.limited)?;
    burst.attempts.get(entry.attempt as usize - 1).copied()
}

/// One line an attempt, with a head; no field needs quotes.
pub(super) fn csv(inspected: &Inspected, to: &mut impl Write) -> io::Result<()> {
    let names = ["lowest_ms", "mean_ms", "p50_ms", "p95_ms", "highest_ms"];
    let mut head = vec!["attempt".to_owned()];
    for group in ["wait", "since_event"] {
        head.extend(names.map(|name| format!("{group}_{name}")));
    }
    let has_limits = inspected.facts.events.as_ref().is_some_and(|burst| burst.limited);
    if has_limits {
        let names = ["events", "first_ms", "mean_ms", "last_ms"];
        head.extend(names.map(|name| format!("with_limits_{name}")));
    }
    if inspected.window.is_some() {
        head.push("within_outage".to_owned());
    }
    if inspected.from.is_some() {
        head.extend(["at_earliest", "at_mean", "at_latest"].map(str::to_owned));
    }
    writeln!(to, "{}", head.join(","))?;
    for entry in &inspected.timeline.entries {
        let mut line = vec![entry.attempt.to_string()];
        for Spread { lowest_ms, mean_ms, p50_ms, p95_ms, highest_ms } in
            [entry.wait, entry.since_event]
        {
            line.extend([lowest_ms, mean_ms, p50_ms, p95_ms, highest_ms].map(|ms| ms.to_string()));
        }
        if has_limits {
            line.extend(match limited(inspected, entry) {
                Some(Limited { events, first_ms, mean_ms, last_ms, .. }) => {
                    [events, first_ms, mean_ms, last_ms].map(|n| n.to_string())
                }
                None => ["0", "", "", ""].map(str::to_owned),
            });
        }
        if let Some(window) = inspected.window {
            let within = match window.holds(entry) {
                Within::Yes => "yes",
                Within::Maybe => "maybe",
                Within::No => "no",
            };
            line.push(within.to_owned());
        }
        if let Some(start) = inspected.from {
            let Spread { lowest_ms, mean_ms, highest_ms, .. } = entry.since_event;
            line.extend([lowest_ms, mean_ms, highest_ms].map(|ms| time_text(start, ms)));
        }
        writeln!(to, "{}", line.join(","))?;
    }
    Ok(())
}

/// One of the policies that are compared.
#[derive(Serialize)]
pub(super) struct Compared<'a> {
    schedule: &'a str,
    source: &'a str,
    certainty: Option<&'static str>,
    #[serde(flatten)]
    facts: &'a Facts,
}

pub(super) fn comparison(inspected: &[Inspected]) -> Vec<Compared<'_>> {
    let compared = |inspected| {
        let Inspected { source, facts, .. }: &Inspected = inspected;
        Compared {
            schedule: &source.name,
            source: &source.source,
            certainty: source.certainty.map(|certainty| certainty.as_str()),
            facts,
        }
    };
    inspected.iter().map(compared).collect()
}

/// A preset in the list.
#[derive(Serialize)]
pub(super) struct Listed {
    pub(super) schedule: &'static str,
    pub(super) source: &'static str,
    pub(super) certainty: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) note: &'static str,
    pub(super) attempts: usize,
    pub(super) last_attempt_since_event: Spread,
}

impl Listed {
    fn new(preset: Preset) -> Self {
        let Preset { name, source, certainty, note, schedule, .. } = preset;
        let timeline = Timeline::new(&Policy { schedule, ..Policy::default() }, None);
        Self {
            schedule: name,
            source,
            certainty: certainty.as_str(),
            note,
            attempts: timeline.entries.len(),
            last_attempt_since_event: timeline.last,
        }
    }
}

pub(super) fn list() -> Vec<Listed> {
    preset::all().into_iter().map(Listed::new).collect()
}
