//! The timeline as a page with a picture: lanes beside each other, time downwards, one column of
//! text, so that it fits a phone.

use std::fmt::Write as _;

use super::document::kind;
use super::text::{decisions, grouped, wrapped};
use super::{Row, Timeline, Tone};
use crate::history::History;
use crate::plan::Plan;

/// All in the picture's own units: at its greatest width, pixels.
const TIME: usize = 62;
const LANE: usize = 30;
const TEXT: usize = 260;
const TOP: usize = 84;
const LINE: usize = 16;
const GAP: usize = 8;
/// Characters of text in a line.
const TEXT_CHARS: usize = 40;

const STYLE: &str = "
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1b1f24; --soft: #5c6570;
  --line: #d5dae0; --step: #1f5fa8; --fault: #b25e09; --crash: #b42318; --violation: #b42318; }
@media (prefers-color-scheme: dark) { :root { --paper: #16181d; --ink: #e8e8e8; --soft: #9aa3ad;
  --line: #3a4048; --step: #6cb0ff; --fault: #f0a840; --crash: #ff7b6e; --violation: #ff7b6e; } }
body { margin: 0 auto; padding: 1rem; max-width: 44rem; font-family: sans-serif;
  background: var(--paper); color: var(--ink); }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; } h2 { font-size: 1rem; }
p { overflow-wrap: anywhere; } p.violation { color: var(--violation); font-weight: bold; }
svg { display: block; width: 100%; max-width: 38rem; height: auto; font-family: sans-serif; }
svg text { fill: var(--ink); font-size: 12px; } svg .soft { fill: var(--soft); font-size: 11px; }
svg line { stroke: var(--line); } svg .down { stroke-width: 2; }
svg .arrow { stroke: var(--step); stroke-width: 1.5; }
svg .step { fill: var(--step); } svg .fault { fill: var(--fault); }
svg .crash, svg .violation { fill: var(--crash); }
svg text.crash, svg text.violation { font-weight: bold; }
svg .band { fill: var(--violation); fill-opacity: 0.12; }
pre { overflow-x: auto; font-size: 0.8rem; }";

/// A self-contained page about a plan and its history.
///
/// # Errors
///
/// If the plan cannot be written as a test.
pub fn page(plan: &Plan, history: &History) -> serde_json::Result<String> {
    let timeline = Timeline::new(history);
    let title = match plan.mutant {
        Some(mutant) => format!("{}: {mutant}", plan.invariant),
        None => format!("{}: {}", plan.invariant, plan.scenario.name),
    };
    let verdict = match &history.violation {
        Some(found) => format!(
            "<p class=\"violation\">Violated: {}: {}</p>",
            escaped(&found.invariant.to_string()),
            escaped(&found.what)
        ),
        None => "<p>Every invariant holds.</p>".to_owned(),
    };
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{title}</title>\n<style>{STYLE}\n</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         <p>Scenario {scenario}: {about}.</p>\n{verdict}\n{picture}<h2>Decisions</h2>\n\
         <pre>{decisions}</pre>\n<h2>As a test</h2>\n<pre>{test}</pre>\n</body>\n</html>\n",
        title = escaped(&title),
        scenario = escaped(&plan.scenario.name),
        about = escaped(&plan.scenario.about),
        picture = picture(&timeline),
        decisions = escaped(&decisions(&plan.draws)),
        test = escaped(&plan.to_rust()?),
    ))
}

/// The middle of a lane.
fn x(lane: usize) -> usize {
    TIME + LANE / 2 + lane * LANE
}

fn picture(timeline: &Timeline) -> String {
    let left = TIME + timeline.lanes.len() * LANE + GAP;
    let rows: Vec<(&Row, Vec<String>)> =
        timeline.rows.iter().map(|row| (row, wrapped(&row.text, TEXT_CHARS))).collect();
    let height_of = |lines: usize| lines * LINE + GAP;
    let height: usize = rows.iter().map(|(_, lines)| height_of(lines.len())).sum();
    let (width, height) = (left + TEXT, TOP + height + GAP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"The timeline: hosts beside each other, time downwards\">\n"
    );
    for (lane, name) in timeline.lanes.iter().enumerate() {
        let x = x(lane);
        let _ = writeln!(
            svg,
            "<line class=\"down\" x1=\"{x}\" y1=\"{TOP}\" x2=\"{x}\" y2=\"{height}\"/>\n\
             <text transform=\"translate({},{}) rotate(-50)\">{name}</text>",
            x + 2,
            TOP - 8
        );
    }
    let mut y = TOP + LINE;
    for (row, lines) in &rows {
        draw_row(&mut svg, row, lines, y, left, width);
        y += height_of(lines.len());
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_row(svg: &mut String, row: &Row, lines: &[String], y: usize, left: usize, width: usize) {
    let (kind, middle) = (kind(row.tone), y - 4);
    if row.tone == Tone::Violation {
        let (top, height) = (y - LINE + 2, lines.len() * LINE + 4);
        let _ = writeln!(
            svg,
            "<rect class=\"band\" x=\"0\" y=\"{top}\" width=\"{width}\" height=\"{height}\"/>"
        );
    }
    let _ = writeln!(
        svg,
        "<text class=\"soft\" x=\"{}\" y=\"{y}\" text-anchor=\"end\">{}</text>",
        TIME - GAP,
        grouped(row.at_ms)
    );
    if let Some(lane) = row.lane {
        if let Some(to) = row.to {
            draw_arrow(svg, x(lane), x(to), middle);
        }
        draw_mark(svg, row.tone, x(lane), middle);
    }
    for (index, line) in lines.iter().enumerate() {
        let _ = writeln!(
            svg,
            "<text class=\"{}\" x=\"{left}\" y=\"{}\">{}</text>",
            if row.tone == Tone::Plain { "" } else { kind },
            y + index * LINE,
            escaped(line)
        );
    }
}

fn draw_arrow(svg: &mut String, from: usize, to: usize, y: usize) {
    let back = if to > from { to - 5 } else { to + 5 };
    let _ = writeln!(
        svg,
        "<line class=\"arrow\" x1=\"{from}\" y1=\"{y}\" x2=\"{to}\" y2=\"{y}\"/>\n\
         <path class=\"step\" d=\"M{to} {y} L{back} {} L{back} {} Z\"/>",
        y - 4,
        y + 4
    );
}

/// A dot; where a process ends, a cross.
fn draw_mark(svg: &mut String, tone: Tone, x: usize, y: usize) {
    let kind = kind(tone);
    let _ = match tone {
        Tone::Crash | Tone::Violation => writeln!(
            svg,
            "<path class=\"{kind}\" d=\"M{} {} l2 -2 l4 4 l4 -4 l2 2 l-4 4 l4 4 l-2 2 l-4 -4 l-4 4 \
             l-2 -2 l4 -4 Z\"/>",
            x - 6,
            y - 4
        ),
        Tone::Plain | Tone::Fault => {
            writeln!(svg, "<circle class=\"{kind}\" cx=\"{x}\" cy=\"{y}\" r=\"4\"/>")
        }
    };
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
