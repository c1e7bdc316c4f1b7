//! Policies side by side: as a table, and as a picture with one timeline a row.

use std::io::{self, Write};
use std::iter;

use super::picture::{DARK, MARKS, class, escaped, longest, scale, told};
use super::wording::{bound, range, retry_after};
use super::{Inspected, about, span_text, time_text};
use crate::output::number::{Counted, Grouped};
use crate::output::table::{Column, Table};
use crate::output::{Paint, shortened, wrapped};

/// What a picture of them is called.
pub(super) const TITLE: &str = "Retry schedules side by side";

const TOP: usize = 72;
const ROW: usize = 46;
/// So many characters of a name have room beside the rest, on the screen of a phone.
const NAME_MAX: usize = 22;
/// So many have room in a table beside the rest of it. The name of a file may be longer.
const CELL_MAX: usize = 40;
/// So many characters have room in a line there.
const LINE_MAX: usize = 46;

/// The facts, a line a policy, and below what comes after each one's last attempt.
pub(super) fn table(inspected: &[Inspected], to: &mut impl Write, paint: Paint) -> io::Result<()> {
    for table in facts(inspected).folded() {
        table.write(to, paint)?;
        writeln!(to)?;
    }
    let behind = inspected.iter().filter(|one| one.facts.with_limits);
    let mut limits = Table::new([Column::left("schedule"), Column::left("limits")]);
    for one in behind.clone() {
        limits.fact(&end_of(&one.source.name), one.limits.to_string());
    }
    if behind.count() > 0 {
        limits.write(to, paint)?;
        writeln!(to)?;
    }
    let mut asked = Table::new([Column::left("schedule"), Column::left("Retry-After")]);
    for one in inspected {
        if let Some(span) = one.asked {
            asked.fact(&end_of(&one.source.name), retry_after(span, &one.source));
        }
    }
    if inspected.iter().any(|one| one.asked.is_some()) {
        asked.write(to, paint)?;
        writeln!(to)?;
    }
    let mut ends = Table::new([Column::left("schedule"), Column::left("if it fails")]);
    for one in inspected {
        ends.fact(&end_of(&one.source.name), one.facts.afterwards.text());
    }
    ends.write(to, paint)
}

fn facts(inspected: &[Inspected]) -> Table {
    let mut columns = vec![Column::left("schedule"), Column::right("attempts")];
    columns.push(Column::right("first hour"));
    columns.extend(["for sure", "mean", "at best"].map(|n| Column::right(n).within("outlasts")));
    columns.push(Column::right("longest wait"));
    let has_events = inspected.iter().any(|one| one.facts.events.is_some());
    let has_outage = inspected.iter().any(|one| one.facts.outage.is_some());
    let has_from = inspected.iter().any(|one| one.from.is_some());
    if has_events {
        columns.push(Column::right("peak"));
    }
    if has_outage {
        columns.push(Column::right("survived"));
    }
    if has_from {
        let names = ["earliest", "latest"];
        columns.extend(names.map(|name| Column::left(name).within("last attempt, in UTC")));
    }
    let mut table = Table::new(columns);
    for one in inspected {
        let Inspected { source, facts, from, .. } = one;
        let longest = facts.longest_wait_after_recovery_ms;
        let mut row = vec![
            end_of(&source.name),
            range(facts.attempts_made, "–"),
            range(facts.requests_first_hour, "–"),
            bound(facts, facts.survived_outage.for_sure_ms),
            about(facts.survived_outage.mean_ms),
            bound(facts, facts.survived_outage.at_best_ms),
            longest.map_or_else(|| "none".to_owned(), span_text),
        ];
        if has_events {
            let peak = facts.events.as_ref().map(|burst| burst.retries_per_second_max);
            row.push(peak.map_or(String::new(), |peak| format!("{}/s", Grouped(peak))));
        }
        if has_outage {
            let share = facts.outage.map(|outage| outage.survived_percent);
            row.push(share.map_or(String::new(), |share| format!("{share} %")));
        }
        if let Some(start) = from {
            let last = facts.last_attempt_since_event;
            let ends = [last.lowest_ms, last.highest_ms].map(|ms| one.shown(ms));
            row.extend(ends.map(|ms| time_text(*start, ms)));
        }
        table.row(row);
    }
    table
}

/// The timelines below each other on one logarithmic axis. Places are shares of the width, so that
/// the text has the same size on any screen.
pub(super) fn svg(inspected: &[Inspected]) -> String {
    let longest = inspected.iter().map(longest).max().unwrap_or(1_000);
    let x = |ms: u64| 100.0 * scale(ms) / scale(longest);
    let bottom = TOP + ROW * inspected.len();
    let outage = inspected.iter().find_map(|one| one.window);
    let caption = wrapped(&caption(inspected), LINE_MAX);
    let height = bottom + 14 + 18 * caption.len();
    let mut lines = vec![
        format!(
            "<svg class=\"picture\" xmlns=\"http://www.w3.org/2000/svg\" width=\"100%\" \
             height=\"{height}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">"
        ),
        format!("<title>{TITLE}</title>\n<style>\n{DARK}</style>"),
        "<rect class=\"paper\" width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>".to_owned(),
        format!(
            "<text class=\"ink title\" x=\"3%\" y=\"26\" font-size=\"16\" \
             fill=\"#111111\">{TITLE}</text>"
        ),
        "<svg x=\"3%\" width=\"94%\" overflow=\"visible\">".to_owned(),
    ];
    if let Some(outage) = outage {
        let (from, to) = (x(outage.start_ms), x(outage.end_ms));
        lines.push(format!(
            "<rect class=\"outage\" x=\"{from:.2}%\" y=\"{TOP}\" width=\"{:.2}%\" \
             height=\"{}\" fill=\"#fbdada\"/>",
            to - from,
            bottom - TOP
        ));
    }
    for (ms, name) in MARKS.iter().filter(|(ms, _)| *ms <= longest) {
        let at = x(*ms);
        lines.push(format!(
            "<line class=\"mark\" x1=\"{at:.2}%\" y1=\"{TOP}\" x2=\"{at:.2}%\" y2=\"{bottom}\" \
             stroke=\"#dddddd\"/>"
        ));
        lines.push(format!(
            "<text class=\"soft\" x=\"{at:.2}%\" y=\"{}\" text-anchor=\"middle\" font-size=\"11\" \
             fill=\"#555555\">{name}</text>",
            TOP - 8
        ));
    }
    for (one, y) in inspected.iter().zip((TOP..).step_by(ROW)) {
        lines.extend(row(one, y, &x));
    }
    for (line, y) in caption.iter().zip((bottom + 22..).step_by(18)) {
        let text = escaped(line);
        lines.push(format!("<text class=\"soft\" y=\"{y}\" fill=\"#555555\">{text}</text>"));
    }
    lines.push("</svg>\n</svg>\n".to_owned());
    lines.join("\n")
}

/// One policy: its name and what it comes to, and below a mark for each attempt.
fn row(inspected: &Inspected, y: usize, x: &impl Fn(u64) -> f64) -> Vec<String> {
    let Inspected { source, timeline, facts, window, .. } = inspected;
    let last = facts.last_attempt_since_event.highest_ms;
    let attempts = Counted(facts.attempts_made.highest, "attempt");
    let end = if last == 0 { String::new() } else { format!(" to {}", about(last)) };
    let (text, middle) = (y + 18, y + 32);
    let mut lines = vec![
        format!(
            "<text class=\"ink\" y=\"{text}\" font-size=\"13\" fill=\"#111111\">{}<title>{}</title>\
             </text>",
            escaped(&shortened(&source.name, NAME_MAX)),
            escaped(&source.name)
        ),
        format!(
            "<text class=\"soft\" x=\"100%\" y=\"{text}\" text-anchor=\"end\" \
             fill=\"#555555\">{attempts}{end}</text>"
        ),
    ];
    for entry in &timeline.entries {
        let Some(made) = inspected.made(entry) else { continue };
        let (class, colour) = class(made, *window);
        let (from, to) = (x(made.lowest_ms), x(made.highest_ms));
        if from < to {
            lines.push(format!(
                "<line class=\"{class}\" x1=\"{from:.2}%\" y1=\"{middle}\" x2=\"{to:.2}%\" \
                 y2=\"{middle}\" stroke=\"{colour}\" stroke-width=\"6\" stroke-opacity=\"0.35\"/>"
            ));
        }
        lines.push(format!(
            "<circle class=\"{class}\" cx=\"{:.2}%\" cy=\"{middle}\" r=\"4\" \
             fill=\"{colour}\"><title>{}, {}</title></circle>",
            x(made.mean_ms),
            escaped(&source.name),
            told(entry.attempt, made)
        ));
    }
    lines
}

fn caption(inspected: &[Inspected]) -> String {
    let has = |what: fn(&Inspected) -> bool| inspected.iter().any(what);
    let mut text = "Time since the event".to_owned();
    if let Some(from) = inspected.iter().find_map(|one| one.from) {
        text.push_str(&format!(", which is at {from}"));
    }
    text.push_str("; the axis is logarithmic. Dot: mean");
    if has(|one| one.facts.with_limits) {
        text.push_str("; bar: first to last event");
    } else if has(|one| one.timeline.is_spread()) {
        text.push_str("; bar: lowest to highest");
    }
    text.push('.');
    if has(|one| one.window.is_some()) {
        text.push_str(" Shaded: the outage; red: within it, orange: perhaps.");
    }
    text
}

/// A name, or so much of its end as has room: files differ in their end.
fn end_of(name: &str) -> String {
    let count = name.chars().count();
    if count <= CELL_MAX {
        return name.to_owned();
    }
    iter::once('…').chain(name.chars().skip(count - CELL_MAX + 1)).collect()
}
