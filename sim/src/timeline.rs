//! A history as people read it: hosts beside each other, time downwards.

mod document;
mod page;
mod text;

use crate::fault::Fault;
use crate::history::{History, epoch};
use crate::journal::Line;

pub use document::{Document, document};
pub use page::page;
pub use text::{Paint, decisions, story, text};

/// What a line of a timeline is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Tone {
    /// Something that happens as it should.
    Plain,
    /// A fault.
    Fault,
    /// The end of a process.
    Crash,
    /// An invariant that does not hold.
    Violation,
}

/// One thing that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// When, in milliseconds from the start.
    pub at_ms: u64,
    /// In which of the lanes; `None` if it concerns all.
    pub lane: Option<usize>,
    /// The lane that it goes to, if it is a message.
    pub to: Option<usize>,
    /// What it is about.
    pub tone: Tone,
    /// What happened.
    pub text: String,
}

/// A history as lanes and rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timeline {
    /// The hosts that do something in it, from the application to the owner.
    pub lanes: Vec<&'static str>,
    /// What happened, in order.
    pub rows: Vec<Row>,
}

/// All lanes, from left to right.
const LANES: [&str; 9] = [
    "application",
    "sender",
    "sender 2",
    "network",
    "receiver",
    "receiver 2",
    "downstream",
    "people",
    "owner",
];

/// What the line of a violation begins with, as the worlds write it.
const VIOLATION: &str = "VIOLATION ";

impl Timeline {
    /// The timeline of a history that was run with its trace. Hosts that only pass a crash point
    /// say nothing.
    #[must_use]
    pub fn new(history: &History) -> Self {
        let told: Vec<&Line> = history.lines.iter().filter(|line| !line.is_step()).collect();
        let is_there = |lane: &&str| told.iter().any(|line| line.who == *lane);
        let lanes: Vec<_> = LANES.iter().copied().filter(is_there).collect();
        let rows = told.iter().map(|line| row(line, &lanes)).collect();
        Self { lanes, rows }
    }
}

fn row(line: &Line, lanes: &[&'static str]) -> Row {
    let place = |name: &str| lanes.iter().position(|lane| *lane == name);
    let text = &*line.text;
    let tone = if text.starts_with(VIOLATION) {
        Tone::Violation
    } else if text.starts_with("CRASH at ") {
        Tone::Crash
    } else if line.who == "network" || Fault::ALL.iter().any(|f| text.starts_with(f.as_str())) {
        Tone::Fault
    } else {
        Tone::Plain
    };
    let to = if text.starts_with("POST ") {
        place("receiver")
    } else if text.starts_with("answers ") {
        place("sender")
    } else {
        None
    };
    let text =
        text.strip_prefix(VIOLATION).map_or(text.to_owned(), |what| format!("VIOLATED {what}"));
    let at_ms = line.at.since(epoch()).get();
    Row { at_ms, lane: place(line.who), to, tone, text }
}
