//! The timeline for terminals: at most 100 columns.

use std::fmt::Write as _;

use super::{Row, Timeline, Tone};
use crate::choices::Draw;
use crate::history::History;
use crate::plan::Plan;
use crate::plan::decision::meaning;

/// Emphasises a text by what it is about; the text keeps its width.
pub type Paint<'a> = &'a dyn Fn(Tone, &str) -> String;

/// The widest line, in characters.
const WIDTH: usize = 100;
/// The column of times.
const TIME: usize = 10;
/// Between two columns.
const BAR: &str = " │ ";
/// The most lanes that stand beside each other; the rest is told across all.
const LANES_MAX: usize = 5;
/// Of a long history, so many lines from the beginning and from the end.
const SHOWN: (usize, usize) = (16, 40);

/// The decisions of a plan and the timeline of its history.
#[must_use]
pub fn story(plan: &Plan, history: &History, paint: Paint<'_>) -> String {
    format!("{}\n{}", decisions(&plan.draws), text(&Timeline::new(history), paint))
}

/// The decisions, one a line, with what they mean.
#[must_use]
pub fn decisions(draws: &[Draw]) -> String {
    if draws.is_empty() {
        return "no decision: it happens when nothing goes wrong\n".to_owned();
    }
    let asker = |draw: &Draw| draw.key.who.to_string();
    let width = |of: fn(&Draw) -> String| draws.iter().map(of).map(|t| t.chars().count()).max();
    let who = width(|draw| draw.key.who.to_string()).unwrap_or(0).max(3);
    let what = width(|draw| draw.key.what.to_owned()).unwrap_or(0).max(8);
    let value = width(|draw| draw.value.to_string()).unwrap_or(0).max(5);
    let mut text = format!("{:who$}  {:what$}  nth  {:>value$}\n", "who", "decision", "value");
    for draw in draws {
        let line = format!(
            "{:who$}  {:what$}  {:>3}  {:>value$}  {}",
            asker(draw),
            draw.key.what,
            draw.key.nth,
            draw.value,
            meaning(draw)
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// The timeline: time downwards, hosts beside each other.
#[must_use]
pub fn text(timeline: &Timeline, paint: Paint<'_>) -> String {
    let columns = timeline.lanes.len().min(LANES_MAX);
    let bars = BAR.chars().count() * columns.saturating_sub(1);
    let width = (WIDTH - TIME - 2 - bars) / columns.max(1);
    let mut text = String::new();
    let heads: Vec<_> =
        timeline.lanes[..columns].iter().map(|lane| format!("{lane:width$}")).collect();
    let _ = writeln!(text, "{}", format!("{:>TIME$}  {}", "ms", heads.join(BAR)).trim_end());
    let (head, tail) = SHOWN;
    let hidden = timeline.rows.len().saturating_sub(head + tail);
    for (index, row) in timeline.rows.iter().enumerate() {
        if hidden > 1 && index == head {
            let _ = writeln!(text, "{:>TIME$}  ({hidden} more lines)", "…");
        }
        if hidden > 1 && (head..head + hidden).contains(&index) {
            continue;
        }
        write_row(&mut text, row, columns, width, paint);
    }
    text
}

fn write_row(text: &mut String, row: &Row, columns: usize, width: usize, paint: Paint<'_>) {
    let time = grouped(row.at_ms);
    match row.lane.filter(|lane| *lane < columns) {
        Some(lane) => {
            for (index, piece) in wrapped(&row.text, width).iter().enumerate() {
                let time = if index == 0 { time.as_str() } else { "" };
                let cells: Vec<_> = (0..columns)
                    .map(|column| {
                        let piece = if column == lane { piece } else { "" };
                        let cell = format!("{piece:width$}");
                        if column == lane { paint(row.tone, &cell) } else { cell }
                    })
                    .collect();
                let line = format!("{time:>TIME$}  {}", cells.join(BAR));
                let _ = writeln!(text, "{}", line.trim_end());
            }
        }
        None => {
            for (index, piece) in wrapped(&row.text, WIDTH - TIME - 4).iter().enumerate() {
                let (time, mark) =
                    if index == 0 { (time.as_str(), mark(row.tone)) } else { ("", " ") };
                let _ = writeln!(text, "{time:>TIME$}  {mark} {}", paint(row.tone, piece));
            }
        }
    }
}

fn mark(tone: Tone) -> &'static str {
    match tone {
        Tone::Violation => "✗",
        Tone::Plain | Tone::Fault | Tone::Crash => "─",
    }
}

/// The text in pieces of at most `width` characters, broken at spaces; within a word only if that
/// alone is wider.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let piece = pieces.last().map_or(0, |piece| piece.chars().count());
            let gap = usize::from(piece > 0);
            if piece + gap + word.len() <= width {
                if let Some(last) = pieces.last_mut() {
                    last.extend(std::iter::repeat_n(' ', gap).chain(word));
                }
                break;
            }
            if piece == 0 {
                let rest = word.split_off(width);
                if let Some(last) = pieces.last_mut() {
                    last.extend(word);
                }
                word = rest;
            }
            pieces.push(String::new());
        }
    }
    pieces
}

/// Thousands apart.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
