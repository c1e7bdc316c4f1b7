//! The timeline for people.

use std::io::{self, Write};

use hookproof_core::preset::Certainty;
use jiff::Timestamp as Calendar;

use super::burst::{Burst, Limited};
use super::document::{self, Listed};
use super::facts::{Facts, Outage, Within};
use super::lives::LIVES;
use super::timeline::{Count, Entry, Spread};
use super::{Inspected, about, span_text, time_text};
use crate::output::number::{Counted, Grouped};
use crate::output::table::{Column, Table};
use crate::output::{Output, Paint};

const WAIT: &str = "wait";
const SINCE: &str = "since the event";
const AT: &str = "at, in UTC";
const LIMITED: &str = "with the limits";
const WAITS: [&str; 5] = ["lowest", "mean", "p50", "p95", "highest"];
const TIMES: [&str; 3] = ["lowest", "mean", "highest"];
/// What is left out first where there is too little room.
const DISPENSABLE: [(&str, &str); 8] = [
    (SINCE, "lowest"),
    (SINCE, "highest"),
    (WAIT, "p50"),
    (WAIT, "mean"),
    (SINCE, "mean"),
    (WAIT, "p95"),
    (AT, "earliest"),
    (LIMITED, "first"),
];

/// The table of attempts, and the facts below.
pub(super) fn timeline(inspected: &Inspected, to: &mut impl Write, paint: Paint) -> io::Result<()> {
    table(inspected).write(to, paint)?;
    writeln!(to)?;
    facts(inspected).write(to, paint)
}

fn table(inspected: &Inspected) -> Table {
    let Inspected { timeline, window, from, .. } = inspected;
    let spreads = timeline.is_spread();
    let mut columns = vec![Column::right("attempt")];
    if spreads {
        columns.extend(WAITS.map(|name| Column::right(name).within(WAIT)));
        columns.extend(TIMES.map(|name| Column::right(name).within(SINCE)));
    } else {
        columns.extend([Column::right(WAIT), Column::right(SINCE)]);
    }
    if limited(inspected).is_some() {
        columns.extend(["events", "first", "last"].map(|n| Column::right(n).within(LIMITED)));
    }
    if window.is_some() {
        columns.push(Column::left("outage"));
    }
    match from {
        Some(_) if spreads => {
            columns.extend(["earliest", "latest"].map(|name| Column::left(name).within(AT)));
        }
        Some(_) => columns.push(Column::left(AT)),
        None => {}
    }
    let mut table = Table::new(columns);
    for entry in &timeline.entries {
        table.row(row(entry, spreads, inspected));
    }
    for (group, name) in DISPENSABLE {
        table.drop_if_wide(group, name);
    }
    table
}

/// What the limits make of the attempts, if there are any.
fn limited(inspected: &Inspected) -> Option<&[Limited]> {
    inspected.facts.events.as_ref().filter(|burst| burst.limited).map(|burst| &burst.attempts[..])
}

fn row(entry: &Entry, spreads: bool, inspected: &Inspected) -> Vec<String> {
    let Entry { attempt, wait, since_event } = entry;
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
    if let Some(attempts) = limited(inspected) {
        row.extend(match attempts.get(entry.attempt as usize - 1) {
            Some(of) => [Grouped(of.events).to_string(), about(of.first_ms), about(of.last_ms)],
            None => ["none", "", ""].map(str::to_owned),
        });
    }
    if let Some(window) = inspected.window {
        let within = match window.holds(entry) {
            Within::Yes => "in it",
            Within::Maybe => "maybe",
            Within::No => "",
        };
        row.push(within.to_owned());
    }
    if let Some(start) = inspected.from {
        let ends = [since_event.lowest_ms, since_event.highest_ms];
        let times = ends.map(|ms| time_text(start, ms));
        row.extend(times.into_iter().take(if spreads { 2 } else { 1 }));
    }
    row
}

fn facts(inspected: &Inspected) -> Table {
    let Inspected { source, timeline, facts: found, from, .. } = inspected;
    let Spread { lowest_ms, mean_ms, highest_ms, .. } = timeline.last;
    let (lowest, mean, highest) = (span_text(lowest_ms), about(mean_ms), span_text(highest_ms));
    let is_sure = lowest_ms == highest_ms;
    let mut last = if is_sure {
        format!("{highest} after the event")
    } else {
        format!("{lowest} to {highest} after the event, {mean} on average")
    };
    if let Some(start) = from {
        let bound = if is_sure { "" } else { " at the latest" };
        last.push_str(&format!("; at {}{bound}", time_text(*start, highest_ms)));
    }
    let mut facts = Table::of_facts();
    facts.fact("schedule", source.name.clone());
    facts.fact("source", source.source.clone());
    if let Some(certainty) = source.certainty {
        facts.fact("certainty", format!("{}: {}", certainty.as_str(), grounds(certainty)));
    }
    if !source.note.is_empty() {
        facts.fact("note", source.note);
    }
    facts.fact("attempts", counted(found.attempts_made));
    if let Some(age_max) = source.policy.life.age_max {
        let what = format!("{age_max}: an attempt that would begin later is not made");
        facts.fact("greatest age", what);
    }
    facts.fact("last attempt", last);
    facts.fact("first hour", requests(found.requests_first_hour));
    facts.fact("outlasts", outlasts(found));
    facts.fact(
        "after recovery",
        format!("at most {} to the next attempt", span_text(found.longest_wait_after_recovery_ms)),
    );
    if let Some(burst) = &found.events {
        facts.fact("at once", burst_text(burst));
    }
    if let Some(outage) = found.outage {
        facts.fact("outage", outage_text(outage, *from));
    }
    facts.fact("if it fails", "the delivery is dead: kept for replay, and its owner is told");
    facts
}

fn grounds(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Documented => "the sender's own documentation, specification or code says so",
        Certainty::Secondary => "somebody else reports it",
        Certainty::Unknown => "a guess that fits what the sender does publish",
    }
}

fn counted(Count { lowest, mean_thousandths, highest }: Count) -> String {
    if lowest == highest {
        return highest.to_string();
    }
    let tenths = (mean_thousandths + 50) / 100;
    format!("{lowest} to {highest}, {}.{} on average", tenths / 10, tenths % 10)
}

fn requests(count: Count) -> String {
    let noun = if count.highest == 1 { "request" } else { "requests" };
    match counted(count).split_once(", ") {
        None => format!("{} {noun} for one event", count.highest),
        Some((range, mean)) => format!("{range} {noun} for one event, {mean}"),
    }
}

fn outlasts(facts: &Facts) -> String {
    let survived = facts.survived_outage;
    if survived.for_sure_ms == survived.at_best_ms {
        return format!("an outage of {} from the event on", span_text(survived.at_best_ms));
    }
    format!(
        "an outage of {} for sure, {} in the mean, {} at best",
        span_text(survived.for_sure_ms),
        about(survived.mean_ms),
        span_text(survived.at_best_ms)
    )
}

fn burst_text(burst: &Burst) -> String {
    let mut text = format!(
        "{} that fail at once make {}, {} of them in the first hour, at most {} within one second \
         after the first moment; the last {} after the event",
        Counted(u64::from(burst.events), "event"),
        Counted(burst.requests, "request"),
        Grouped(burst.requests_first_hour),
        Counted(burst.retries_per_second_max, "retry").to_string().replace("retrys", "retries"),
        about(burst.last_attempt_ms)
    );
    if burst.held_ms_max > 0 {
        text.push_str(&format!(
            "; an attempt is held back for {} at most",
            about(burst.held_ms_max)
        ));
    }
    if let Some(given_up_ms) = burst.given_up_ms {
        text.push_str(&format!(
            "; the endpoint is given up {} after the event, and what waits there is kept",
            about(given_up_ms)
        ));
    }
    text
}

fn outage_text(outage: Outage, from: Option<Calendar>) -> String {
    let within = counted(outage.attempts_within);
    let mut text = format!(
        "from {} to {} after the event; attempts within it: {within}; ",
        span_text(outage.start_ms),
        span_text(outage.end_ms)
    );
    if outage.start_ms > 0 {
        text.push_str("unless an earlier attempt delivers it, ");
    }
    match outage.first_after {
        None if outage.survived_at_best => {
            text.push_str(&format!("survived in fewer than 1 of {} cases", Grouped(LIVES)));
        }
        None => text.push_str("not survived: no attempt comes after it"),
        Some(first) => {
            let Spread { lowest_ms, mean_ms, highest_ms, .. } = first;
            match outage.survived_percent {
                _ if outage.survived_for_sure => text.push_str("survived"),
                100 => text.push_str("survived in nearly all cases"),
                0 => text.push_str("survived in fewer than 1 of 100 cases"),
                share => text.push_str(&format!("survived in {share} of 100 cases")),
            }
            let late = span_text(mean_ms.saturating_sub(outage.end_ms));
            if lowest_ms == highest_ms {
                text.push_str(&format!(
                    "; the first attempt after it comes {} after the event, {late} after its end",
                    span_text(highest_ms)
                ));
            } else {
                text.push_str(&format!(
                    "; the first attempt after it comes {} after its end on average",
                    about(mean_ms.saturating_sub(outage.end_ms))
                ));
            }
            if let Some(start) = from {
                text.push_str(&format!(", at {}", time_text(start, mean_ms / 1000 * 1000)));
            }
        }
    }
    text
}

/// Policies side by side.
pub(super) fn comparison(inspected: &[Inspected], output: &mut Output) -> io::Result<()> {
    let mut columns = vec![Column::left("schedule"), Column::right("attempts")];
    columns.push(Column::right("first hour"));
    columns.extend(["for sure", "mean", "at best"].map(|n| Column::right(n).within("outlasts")));
    columns.push(Column::right("longest gap"));
    let has_events = inspected.iter().any(|one| one.facts.events.is_some());
    let has_outage = inspected.iter().any(|one| one.facts.outage.is_some());
    if has_events {
        columns.push(Column::right("peak"));
    }
    if has_outage {
        columns.push(Column::right("survived"));
    }
    let mut table = Table::new(columns);
    for Inspected { source, facts, .. } in inspected {
        let range = |count: Count| match count.lowest == count.highest {
            true => count.highest.to_string(),
            false => format!("{}–{}", count.lowest, count.highest),
        };
        let mut row = vec![
            source.name.clone(),
            range(facts.attempts_made),
            range(facts.requests_first_hour),
            span_text(facts.survived_outage.for_sure_ms),
            about(facts.survived_outage.mean_ms),
            span_text(facts.survived_outage.at_best_ms),
            span_text(facts.longest_wait_after_recovery_ms),
        ];
        if has_events {
            let peak = facts.events.as_ref().map(|burst| burst.retries_per_second_max);
            row.push(peak.map_or(String::new(), |peak| format!("{}/s", Grouped(peak))));
        }
        if has_outage {
            let share = facts.outage.map(|outage| outage.survived_percent);
            row.push(share.map_or(String::new(), |share| format!("{share} %")));
        }
        table.row(row);
    }
    for (group, name) in [("", "longest gap"), ("", "first hour"), ("outlasts", "mean")] {
        table.drop_if_wide(group, name);
    }
    let paint = output.paint;
    table.write(output, paint)
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
