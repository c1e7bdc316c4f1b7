//! What is printed, and how it looks.
//!
//! Standard output holds results, standard error everything else. Both are coloured only on a
//! terminal, and never under `NO_COLOR`.

pub(crate) mod number;
pub(crate) mod progress;
pub(crate) mod shell;
pub(crate) mod table;

use std::fmt;
use std::io::{self, IsTerminal, Write};

use clap::builder::styling::{AnsiColor, Style};
use hookproof_sim::timeline::Tone;

use crate::failure::Failure;

/// The widest line that is printed, in characters.
pub(crate) const WIDTH_MAX: usize = 100;

/// What stands before what went wrong.
const ERROR: &str = "error:";

/// What stands before advice.
const HELP: &str = "help:";

/// What stands before what may go wrong.
const WARNING: &str = "warning:";

/// Standard output. Once its reader has gone, as `head` does, what is written gets lost silently: the
/// reader has seen enough, and the command ends as it would have.
pub(crate) struct Output {
    writer: io::StdoutLock<'static>,
    /// How text is emphasised there.
    pub(crate) paint: Paint,
}

impl Output {
    /// Standard output, locked for the whole run.
    pub(crate) fn stdout() -> Self {
        let writer = io::stdout().lock();
        let paint = Paint::of(&writer);
        Self { writer, paint }
    }

    /// Writes `value` as indented JSON and a line break.
    pub(crate) fn json(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *self, value)?;
        writeln!(self)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_gone(self.writer.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_gone(self.writer.flush(), ())
    }
}

fn unless_gone<T>(result: io::Result<T>, lost: T) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(lost),
        result => result,
    }
}

/// Emphasis, which a terminal shows and a file does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Paint {
    is_on: bool,
}

impl Paint {
    /// No emphasis at all.
    pub(crate) const OFF: Self = Self { is_on: false };

    fn of(stream: &impl IsTerminal) -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { is_on: stream.is_terminal() && !is_set("NO_COLOR") && !is_dumb }
    }

    /// Emphasis for standard error.
    pub(crate) fn of_stderr() -> Self {
        Self::of(&io::stderr())
    }

    /// Whether there is any.
    pub(crate) fn is_on(self) -> bool {
        self.is_on
    }

    /// For headings.
    pub(crate) fn strong<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.painted(Style::new().bold(), text)
    }

    /// For what is good.
    pub(crate) fn good<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.painted(AnsiColor::Green.on_default().bold(), text)
    }

    /// For what is bad.
    pub(crate) fn bad<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.painted(AnsiColor::Red.on_default().bold(), text)
    }

    /// For what can be done about it.
    pub(crate) fn hint<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.painted(AnsiColor::Cyan.on_default().bold(), text)
    }

    /// A line of a timeline, by what it is about.
    pub(crate) fn tone(self, tone: Tone, text: &str) -> String {
        match tone {
            Tone::Plain => text.to_owned(),
            Tone::Fault => self.painted(AnsiColor::Yellow.on_default(), text).to_string(),
            Tone::Crash | Tone::Violation => self.bad(text).to_string(),
        }
    }

    fn painted<T>(self, style: Style, text: T) -> Painted<T> {
        Painted { style: if self.is_on { style } else { Style::new() }, text }
    }
}

/// A text with its emphasis.
pub(crate) struct Painted<T> {
    style: Style,
    text: T,
}

impl<T: fmt::Display> fmt::Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { style, text } = self;
        write!(f, "{style}{text}{style:#}")
    }
}

/// Writes a line to standard error. That it may be gone is no reason to stop.
pub(crate) fn say(line: impl fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Writes to standard error what may go wrong, although the command does what it should.
pub(crate) fn warn(text: &str) {
    say(format!("{} {}", Paint::of_stderr().hint(WARNING), under(WARNING, text)));
}

/// Writes to standard error what went wrong and what would be right.
pub(crate) fn write_failure(failure: &Failure) -> io::Result<()> {
    let Some(message) = failure.message() else { return Ok(()) };
    let mut stderr = io::stderr().lock();
    let paint = Paint::of(&stderr);
    writeln!(stderr, "{} {}", paint.bad(ERROR), under(ERROR, &message.error))?;
    if let Some(help) = message.help {
        writeln!(stderr, "{} {}", paint.hint(HELP), under(HELP, &help))?;
    }
    stderr.flush()
}

/// Says what is wrong with the command line, or prints what was asked for, and ends the process.
pub(crate) fn refuse(error: &clap::Error) -> ! {
    if !error.use_stderr() {
        error.exit();
    }
    let text = error.render();
    let is_painted = Paint::of_stderr().is_on();
    let text = if is_painted { text.ansi().to_string() } else { text.to_string() };
    for line in text.lines() {
        let spaces = line.len() - line.trim_start().len();
        let indent = if spaces == 0 { ERROR.len() + 1 } else { spaces };
        let pieces = wrapped_if_wide(line.trim_start(), WIDTH_MAX - spaces, WIDTH_MAX - indent);
        say(format!("{}{}", " ".repeat(spaces), pieces.join(&format!("\n{}", " ".repeat(indent)))));
    }
    std::process::exit(error.exit_code())
}

/// A text behind a label, whose further lines begin where the first one does.
fn under(label: &str, text: &str) -> String {
    let indent = label.len() + 1;
    let width = WIDTH_MAX - indent;
    let lines: Vec<_> = text.lines().flat_map(|line| wrapped_if_wide(line, width, width)).collect();
    lines.join(&format!("\n{}", " ".repeat(indent)))
}

/// A line as it is, if it fits into `width`; else in pieces of at most `narrower`.
fn wrapped_if_wide(line: &str, width: usize, narrower: usize) -> Vec<String> {
    if shown_width(line) <= width { vec![line.to_owned()] } else { wrapped(line, narrower) }
}

/// The characters that a terminal shows: all but the escape sequences of emphasis.
fn shown_width(text: &str) -> usize {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().map_or(0, |part| part.chars().count());
    let rest = parts.map(|part| part.split_once('m').map_or(0, |(_, rest)| rest.chars().count()));
    first + rest.sum::<usize>()
}

/// The text, or so much of it as fits.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

/// The text in pieces of at most `width` characters, broken at spaces; a longer word is a piece of
/// its own.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    for word in text.split_whitespace() {
        let wider = shown_width(&piece) + 1 + shown_width(word);
        if !piece.is_empty() && wider > width {
            pieces.push(std::mem::take(&mut piece));
        }
        if !piece.is_empty() {
            piece.push(' ');
        }
        piece.push_str(word);
    }
    pieces.push(piece);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emphasis_takes_no_room() {
        assert_eq!(shown_width("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m für"), 10);
        assert_eq!(wrapped("\u{1b}[1mone\u{1b}[0m two", 7), ["\u{1b}[1mone\u{1b}[0m two"]);
        assert_eq!(under("a:", "one  two"), "one  two", "what fits stays as it is");
        let long = under(HELP, &"word ".repeat(30));
        assert_eq!(long.lines().count(), 2, "{long}");
        assert!(long.lines().nth(1).unwrap().starts_with("      word"), "{long}");
    }

    #[test]
    fn text_breaks_at_spaces_and_never_within_a_word() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("one two three", 6), ["one", "two", "three"]);
        assert_eq!(wrapped("incomprehensible word", 5), ["incomprehensible", "word"]);
        assert_eq!(wrapped("incomprehensible", 5), ["incomprehensible"]);
        assert_eq!(wrapped("für höhere", 4), ["für", "höhere"]);
        assert_eq!(wrapped("", 5), [""]);
    }
}
