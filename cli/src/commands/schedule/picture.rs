//! The timeline as a picture that needs nothing beside it: SVG, or a page that holds it.

use std::fmt::Write as _;

use super::facts::{Window, Within};
use super::timeline::Spread;
use super::{Inspected, about, span_text};

const WIDTH: u64 = 960;
const LEFT: u64 = 60;
const RIGHT: u64 = 940;
const TOP: u64 = 60;
const ROW: u64 = 18;
/// More rows than this no eye tells apart: the picture shows evenly chosen ones.
const ROWS_MAX: usize = 60;

/// Where the axis has a line.
pub(super) const MARKS: [(u64, &str); 10] = [
    (1_000, "1s"),
    (10_000, "10s"),
    (60_000, "1m"),
    (600_000, "10m"),
    (3_600_000, "1h"),
    (6 * 3_600_000, "6h"),
    (86_400_000, "1d"),
    (3 * 86_400_000, "3d"),
    (7 * 86_400_000, "7d"),
    (30 * 86_400_000, "30d"),
];

/// The colours at night; by day, and where no style is read, those of the elements themselves.
pub(super) const DARK: &str = "@media (prefers-color-scheme: dark) {
.paper { fill: #16181d; } .ink { fill: #e8e8e8; } .soft { fill: #a8adb5; }
.mark { stroke: #3a3f47; } .outage { fill: #4a2326; }
line.no { stroke: #6aa9f0; } line.maybe { stroke: #e3a04f; } line.yes { stroke: #ff8a80; }
circle.no { fill: #6aa9f0; } circle.maybe { fill: #e3a04f; } circle.yes { fill: #ff8a80; }
}
";

/// The timeline as an SVG document; time runs from left to right on a logarithmic scale.
pub(super) fn svg(inspected: &Inspected) -> String {
    let Inspected { source, timeline, facts, window: outage, .. } = inspected;
    let step = timeline.entries.len().div_ceil(ROWS_MAX).max(1);
    let last = timeline.entries.len() - 1;
    let rows: Vec<_> = timeline
        .entries
        .iter()
        .enumerate()
        .filter(|(at, _)| at % step == 0 || *at == last)
        .map(|(_, entry)| (entry.attempt, inspected.made(entry)))
        .collect();
    let longest = longest(inspected);
    let x = |ms: u64| LEFT as f64 + (RIGHT - LEFT) as f64 * scale(ms) / scale(longest);
    let bottom = TOP + ROW * rows.len() as u64;
    let height = bottom + 40;
    let title = escaped(&source.name);
    let mut svg = format!(
        "<svg class=\"picture\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<title>{title}</title>\n<style>\n{DARK}</style>\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text class=\"ink title\" x=\"{LEFT}\" y=\"24\" font-size=\"16\" \
         fill=\"#111111\">{title}</text>\n"
    );
    let mut line = |text: String| {
        svg.push_str(&text);
        svg.push('\n');
    };
    if let Some(Window { start_ms, end_ms }) = *outage {
        let (from, to) = (x(start_ms), x(end_ms));
        line(format!(
            "<rect class=\"outage\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{}\" fill=\"#fbdada\"/>",
            to - from,
            bottom - TOP
        ));
    }
    for (ms, name) in MARKS.iter().filter(|(ms, _)| *ms <= longest) {
        let at = x(*ms);
        line(format!(
            "<line class=\"mark\" x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{bottom}\" \
             stroke=\"#dddddd\"/>"
        ));
        line(format!(
            "<text class=\"soft\" x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\" \
             fill=\"#555555\">{name}</text>",
            TOP - 8
        ));
    }
    for (y, (attempt, made)) in (TOP..).step_by(18).zip(rows) {
        let (middle, y_text) = (y + ROW / 2, y + 13);
        line(format!(
            "<text class=\"ink\" x=\"{}\" y=\"{y_text}\" text-anchor=\"end\" fill=\"#111111\">{attempt}</text>",
            LEFT - 10,
        ));
        let Some(spread) = made else { continue };
        let (from, to) = (x(spread.lowest_ms), x(spread.highest_ms));
        let (class, colour) = class(spread, *outage);
        line(format!(
            "<line class=\"{class}\" x1=\"{from:.1}\" y1=\"{middle}\" x2=\"{to:.1}\" y2=\"{middle}\" \
             stroke=\"{colour}\" stroke-width=\"6\" stroke-opacity=\"0.35\"/>"
        ));
        line(format!(
            "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{middle}\" r=\"4\" \
             fill=\"{colour}\"><title>{}</title></circle>",
            x(spread.mean_ms),
            told(attempt, spread)
        ));
    }
    let bar = if facts.with_limits { "first to last event" } else { "lowest to highest" };
    line(format!(
        "<text class=\"soft\" x=\"{LEFT}\" y=\"{}\" fill=\"#555555\">time since the event (logarithmic); dot: mean, \
         bar: {bar}{}</text>",
        bottom + 24,
        if outage.is_some() { "; shaded: the outage; red: within it, orange: perhaps" } else { "" }
    ));
    svg.push_str("</svg>\n");
    svg
}

/// The last time that a picture of this policy must have room for.
pub(super) fn longest(inspected: &Inspected) -> u64 {
    let made = inspected.timeline.entries.iter().filter_map(|entry| inspected.made(entry));
    let last = made.map(|made| made.highest_ms).max().unwrap_or(0);
    last.max(inspected.window.map_or(0, |outage| outage.end_ms)).max(1_000)
}

/// How an attempt is drawn that is made at this time: the class of its style, and its colour by day.
pub(super) fn class(made: Spread, outage: Option<Window>) -> (&'static str, &'static str) {
    match outage.map(|outage| outage.holds(made)) {
        Some(Within::Yes) => ("yes", "#b42318"),
        Some(Within::Maybe) => ("maybe", "#b25e09"),
        Some(Within::No) | None => ("no", "#1f5fa8"),
    }
}

/// An attempt in words.
pub(super) fn told(attempt: u32, made: Spread) -> String {
    let Spread { lowest_ms, mean_ms, highest_ms, .. } = made;
    if lowest_ms == highest_ms {
        return format!("attempt {attempt}: {} after the event", span_text(highest_ms));
    }
    format!(
        "attempt {attempt}: {} to {} after the event, {} on average",
        span_text(lowest_ms),
        span_text(highest_ms),
        about(mean_ms)
    )
}

/// A page with a picture that needs a `wide` screen or is content with a `narrow` one, and the
/// printed text.
pub(super) fn html(title: &str, picture: &str, class: &str, text: &str) -> String {
    let mut page = String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n");
    let _ = write!(
        page,
        "<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{title}</title>\n<style>\n:root {{ color-scheme: light dark; }}\n\
         body {{ margin: 0 auto; padding: 1rem; max-width: 60rem; font-family: sans-serif; }}\n\
         h1 {{ font-size: 1.5rem; overflow-wrap: anywhere; }}\n\
         @media (prefers-color-scheme: dark) {{ body {{ background: #16181d; color: #e8e8e8; }} }}\n\
         div {{ overflow-x: auto; }}\n.picture {{ display: block; }}\n\
         .narrow .picture {{ margin-top: -2rem; }}\n\
         .wide .picture {{ width: 100%; min-width: 40rem; height: auto; }}\n\
         .title {{ display: none; }}\npre {{ overflow-x: auto; font-size: 0.85rem; }}\n\
         </style>\n</head>\n<body>\n<h1>{title}</h1>\n<div class=\"{class}\">\n{picture}</div>\n\
         <pre>{text}</pre>\n</body>\n</html>\n",
        title = escaped(title),
        text = escaped(text),
    );
    page
}

/// Where a time stands: a logarithm that begins at zero, so that `at once` has a place, too.
pub(super) fn scale(ms: u64) -> f64 {
    (ms as f64 / 500.0).ln_1p()
}

/// As it stands in markup.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
