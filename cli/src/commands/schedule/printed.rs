//! The timeline for people.

use std::io::{self, Write};

use super::document::{self, Listed};
use super::facts::Within;
use super::timeline::{Entry, Spread};
use super::wording::{
    after_recovery, at_once, bound, counted, first_hour, grounds, limits, outage, outlasts,
    retry_after, unreached,
};
use super::{Inspected, about, span_text, time_text};
use crate::output::number::Grouped;
use crate::output::table::{Column, Table};
use crate::output::{Output, Paint};

const WAIT: &str = "wait";
const SINCE: &str = "since the event";
const AT: &str = "at, in UTC";
const LIMITED: &str = "with the limits";
const WAITS: [&str; 5] = ["lowest", "mean", "p50", "p95", "highest"];
const TIMES: [&str; 3] = ["lowest", "mean", "highest"];
/// The most attempts that have a row, and how many of these are the last.
const ROWS_MAX: usize = 60;
const ROWS_LAST: usize = 5;
/// What becomes of an attempt that no event comes to.
const NONE: &str = "none";

/// The tables of attempts, and the facts below.
pub(super) fn timeline(inspected: &Inspected, to: &mut impl Write, paint: Paint) -> io::Result<()> {
    for table in table(inspected).folded() {
        table.write(to, paint)?;
        writeln!(to)?;
    }
    let entries = &inspected.timeline.entries;
    let (first, last) = shown(entries);
    if !last.is_empty() {
        let left_out = entries.len() - first.len() - last.len();
        let left_out = Grouped(u64::try_from(left_out).unwrap_or(u64::MAX));
        writeln!(
            to,
            "{left_out} attempts are left out here; --format csv and json have each of them"
        )?;
        writeln!(to)?;
    }
    facts(inspected).write(to, paint)
}

fn table(inspected: &Inspected) -> Table {
    let Inspected { timeline, window, from, .. } = inspected;
    let spreads = timeline.is_spread();
    let has_limits = inspected.facts.with_limits;
    let mut columns = vec![Column::right("attempt")];
    if spreads {
        columns.extend(WAITS.map(|name| Column::right(name).within(WAIT)));
        columns.extend(TIMES.map(|name| Column::right(name).within(SINCE)));
    } else {
        columns.extend([Column::right(WAIT), Column::right(SINCE)]);
    }
    if has_limits {
        let names = ["events", "first", "mean", "last"];
        columns.extend(names.map(|name| Column::right(name).within(LIMITED)));
    }
    if window.is_some() {
        columns.push(Column::left("outage"));
    }
    match from {
        Some(_) if spreads || has_limits => {
            columns
                .extend(["earliest", "mean", "latest"].map(|name| Column::left(name).within(AT)));
        }
        Some(_) => columns.push(Column::left(AT)),
        None => {}
    }
    let width = columns.len();
    let mut table = Table::new(columns);
    let (first, last) = shown(&timeline.entries);
    for entry in first {
        table.row(row(entry, spreads, inspected));
    }
    if !last.is_empty() {
        let mut gap = vec![String::new(); width];
        gap[0] = "…".to_owned();
        table.row(gap);
    }
    for entry in last {
        table.row(row(entry, spreads, inspected));
    }
    table
}

/// The attempts that have a row: all, or the first and the last of many.
fn shown(entries: &[Entry]) -> (&[Entry], &[Entry]) {
    match entries.len() {
        ..=ROWS_MAX => (entries, &[]),
        count => (&entries[..ROWS_MAX - ROWS_LAST], &entries[count - ROWS_LAST..]),
    }
}

fn row(entry: &Entry, spreads: bool, inspected: &Inspected) -> Vec<String> {
    let Entry { attempt, wait, since_event } = entry;
    let made = inspected.made(entry);
    let mut row = vec![attempt.to_string()];
    if spreads {
        let Spread { lowest_ms, mean_ms, p50_ms, p95_ms, highest_ms } = *wait;
        row.push(span_text(lowest_ms));
        row.extend([mean_ms, p50_ms, p95_ms].map(about));
        row.push(span_text(highest_ms));
        row.push(span_text(since_event.lowest_ms));
        row.push(about(since_event.mean_ms));
        row.push(span_text(since_event.highest_ms));
    } else {
        row.extend([wait.highest_ms, since_event.highest_ms].map(span_text));
    }
    if inspected.facts.with_limits {
        row.extend(match inspected.limited(entry) {
            Some(of) => {
                let Spread { lowest_ms, mean_ms, highest_ms, .. } = of.made;
                let [first, mean, last] = [lowest_ms, mean_ms, highest_ms].map(about);
                [Grouped(of.events).to_string(), first, mean, last]
            }
            None => [NONE, "", "", ""].map(str::to_owned),
        });
    }
    if let Some(window) = inspected.window {
        let within = match made.map(|made| window.holds(made)) {
            Some(Within::Yes) => "in it",
            Some(Within::Maybe) => "maybe",
            Some(Within::No) | None => "",
        };
        row.push(within.to_owned());
    }
    if let Some(start) = inspected.from {
        let time = |ms| time_text(start, ms);
        row.extend(match made {
            Some(Spread { lowest_ms, .. }) if !spreads && !inspected.facts.with_limits => {
                vec![time(lowest_ms)]
            }
            Some(Spread { lowest_ms, mean_ms, highest_ms, .. }) => {
                let [lowest, highest] = [lowest_ms, highest_ms].map(|ms| inspected.shown(ms));
                vec![time(lowest), time(mean_ms / 1000 * 1000), time(highest)]
            }
            None => [NONE, "", ""].map(str::to_owned).into(),
        });
    }
    row
}

fn facts(inspected: &Inspected) -> Table {
    let Inspected { source, facts: found, from, .. } = inspected;
    let mut facts = Table::of_facts();
    facts.fact("schedule", source.name.clone());
    facts.fact("source", source.source.clone());
    if let Some(certainty) = source.certainty {
        facts.fact("certainty", format!("{}: {}", certainty.as_str(), grounds(certainty)));
    }
    if !source.note.is_empty() {
        facts.fact("note", source.note);
    }
    if let Some(asked) = inspected.asked {
        facts.fact("Retry-After", retry_after(asked, source));
    }
    if let (true, Some(burst)) = (found.with_limits, &found.events) {
        let is_drawn = inspected.timeline.is_spread();
        facts.fact("limits", limits(&inspected.limits, burst, is_drawn));
    }
    facts.fact("attempts", counted(found.attempts_made));
    if let Some(of) = found.attempts_unreached {
        facts.fact("not shown", unreached(of, found.with_limits));
    }
    if let Some(age_max) = source.policy.life.age_max {
        let what = format!("{age_max}: an attempt that would begin later is not made");
        facts.fact("greatest age", what);
    }
    facts.fact("last attempt", last_attempt(inspected));
    facts.fact("first hour", first_hour(found.requests_first_hour));
    facts.fact("outlasts", outlasts(found));
    facts.fact("after recovery", after_recovery(found));
    if let Some(burst) = &found.events {
        facts.fact("at once", at_once(found, burst));
    }
    if let Some(of) = found.outage {
        facts.fact("outage", outage(of, *from));
    }
    facts.fact("if it fails", found.afterwards.text());
    facts
}

fn last_attempt(inspected: &Inspected) -> String {
    let Spread { lowest_ms, mean_ms, highest_ms, .. } = inspected.facts.last_attempt_since_event;
    let [lowest, highest] = [lowest_ms, highest_ms].map(|ms| bound(&inspected.facts, ms));
    let mean = about(mean_ms);
    let is_sure = lowest_ms == highest_ms;
    let mut last = if is_sure {
        format!("{highest} after the event")
    } else {
        format!("{lowest} to {highest} after the event, {mean} on average")
    };
    if let Some(start) = inspected.from {
        let bound = if is_sure { "" } else { " at the latest" };
        let at = time_text(start, inspected.shown(highest_ms));
        last.push_str(&format!("; at {at}{bound}"));
    }
    last
}

/// The presets.
pub(super) fn list(output: &mut Output) -> io::Result<()> {
    let mut table = Table::new([
        Column::left("schedule"),
        Column::right("attempts"),
        Column::left("last attempt"),
        Column::left("certainty"),
        Column::left("source"),
    ]);
    for preset in document::list() {
        let Listed { schedule, source, certainty, attempts, last_attempt_since_event, .. } = preset;
        let Spread { lowest_ms, highest_ms, .. } = last_attempt_since_event;
        let highest = span_text(highest_ms);
        let last = if lowest_ms == highest_ms {
            highest
        } else {
            format!("{} to {highest}", span_text(lowest_ms))
        };
        let [name, certainty, source] = [schedule, certainty, source].map(str::to_owned);
        table.row([name, attempts.to_string(), last, certainty, source]);
    }
    let paint = output.paint;
    table.write(output, paint)
}
