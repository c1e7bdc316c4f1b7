//! The timeline for programs: spans in whole milliseconds, times as RFC 3339.

use hookproof_core::preset::{self, Preset};
use hookproof_core::retry_after::RetryAfterRule;
use hookproof_core::schedule::Jitter;
use jiff::Timestamp as Calendar;
use serde::Serialize;

use super::crowd::Limited;
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
    /// How much of a `Retry-After` counts, where that is bounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<RetryAfterRule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_asked: Option<Asked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<String>,
    attempts: Vec<Attempt>,
    #[serde(flatten)]
    facts: &'a Facts,
}

/// What a receiver asks for with each answer.
#[derive(Serialize)]
struct Asked {
    asked_ms: u64,
    /// The longest that counts, whatever is asked for.
    most_ms: u64,
    /// Whether it is an assumption that it counts: the sender publishes nothing about it.
    assumed: bool,
}

impl Asked {
    fn of(inspected: &Inspected) -> Option<Self> {
        let Inspected { source, asked, .. } = inspected;
        let most_ms = source.policy.classification.retry_after_max.get();
        let assumed = source.assumes_retry_after;
        asked.map(|asked| Self { asked_ms: asked.get(), most_ms, assumed })
    }
}

#[derive(Serialize)]
struct Attempt {
    #[serde(flatten)]
    entry: Entry,
    /// What the limits make of it, if there are any and an event comes to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    with_limits: Option<Behind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    within_outage: Option<Within>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<At>,
}

/// What limits make of the attempts of one number.
#[derive(Serialize)]
struct Behind {
    events: u64,
    first_ms: u64,
    mean_ms: u64,
    last_ms: u64,
}

#[derive(Serialize)]
struct At {
    earliest: String,
    mean: String,
    latest: String,
}

pub(super) fn timeline(inspected: &Inspected) -> Document<'_> {
    let Inspected { source, timeline, facts, window, from, .. } = inspected;
    let attempt = |entry: &Entry| {
        let made = inspected.made(entry);
        Attempt {
            entry: *entry,
            with_limits: inspected.limited(entry).map(behind),
            within_outage: window.and_then(|window| Some(window.holds(made?))),
            at: from.and_then(|start| Some(at(start, made?))),
        }
    };
    Document {
        schedule: &source.name,
        source: &source.source,
        certainty: source.certainty.map(|certainty| certainty.as_str()),
        note: source.note,
        jitter: source.policy.schedule.jitter,
        retry_after: bounds(source.policy.retry_after),
        retry_after_asked: Asked::of(inspected),
        from: from.map(|start| start.to_string()),
        limits: facts.with_limits.then(|| inspected.limits.to_string()),
        attempts: timeline.entries.iter().map(attempt).collect(),
        facts,
    }
}

fn at(start: Calendar, Spread { lowest_ms, mean_ms, highest_ms, .. }: Spread) -> At {
    let [earliest, mean, latest] = [lowest_ms, mean_ms, highest_ms].map(|ms| time_text(start, ms));
    At { earliest, mean, latest }
}

fn bounds(rule: RetryAfterRule) -> Option<RetryAfterRule> {
    (rule != RetryAfterRule::default()).then_some(rule)
}

fn behind(Limited { events, made }: Limited) -> Behind {
    let Spread { lowest_ms, mean_ms, highest_ms, .. } = made;
    Behind { events, first_ms: lowest_ms, mean_ms, last_ms: highest_ms }
}

/// One of the policies that are compared.
#[derive(Serialize)]
pub(super) struct Compared<'a> {
    schedule: &'a str,
    source: &'a str,
    certainty: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_attempt_at: Option<At>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_asked: Option<Asked>,
    #[serde(flatten)]
    facts: &'a Facts,
}

pub(super) fn comparison(inspected: &[Inspected]) -> Vec<Compared<'_>> {
    let compared = |inspected| {
        let Inspected { source, facts, from, .. }: &Inspected = inspected;
        Compared {
            schedule: &source.name,
            source: &source.source,
            certainty: source.certainty.map(|certainty| certainty.as_str()),
            retry_after_asked: Asked::of(inspected),
            last_attempt_at: from.map(|start| at(start, facts.last_attempt_since_event)),
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retry_after: Option<RetryAfterRule>,
    pub(super) afterwards: Option<&'static str>,
}

impl Listed {
    fn new(preset: &Preset) -> Self {
        let timeline = Timeline::new(&preset.policy(), None);
        let Preset { name, source, certainty, note, retry_after, afterwards, .. } = *preset;
        Self {
            schedule: name,
            source,
            certainty: certainty.as_str(),
            note,
            attempts: timeline.entries.len(),
            last_attempt_since_event: timeline.last,
            retry_after: bounds(retry_after),
            afterwards,
        }
    }
}

pub(super) fn list() -> Vec<Listed> {
    preset::all().iter().map(Listed::new).collect()
}
