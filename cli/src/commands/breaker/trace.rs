//! A trace: attempts, in order, with how each of them ended.

use std::path::Path;

use hookproof_core::outcome::Outcome;
use hookproof_core::time::{Millis, Timestamp};

use crate::args::{Instant, instant};
use crate::commands::classify::read_outcome;
use crate::commands::signing;
use crate::failure::Failure;

/// What stands in place of an outcome for an attempt that never ends.
const NEVER: &str = "never";

/// What stands before how long an attempt took.
const AFTER: &str = "after";

/// One line of a trace: an attempt.
pub(super) struct Attempt {
    pub(super) line: usize,
    /// Whether its begin was told as a span since the beginning.
    by_span: bool,
    /// When it begins.
    pub(super) at: Timestamp,
    pub(super) end: End,
}

/// How an attempt ends.
pub(super) enum End {
    /// With this outcome, after so long.
    After(Millis, Outcome),
    /// Not at all.
    Never,
}

/// Reads a trace; `-` is standard input. No attempt takes as long as the `deadline`.
pub(super) fn read(path: &Path, deadline: Millis) -> Result<Vec<Attempt>, Failure> {
    let name = match path.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => path.display().to_string(),
    };
    let text = String::from_utf8(signing::read(path)?).map_err(|error| {
        Failure::usage(
            format!("{name} is no text: {error}"),
            "give it a time and an outcome a line, as in `5s 503`",
        )
    })?;
    let mut trace: Vec<Attempt> = Vec::new();
    for (index, text) in text.lines().enumerate() {
        let line = index + 1;
        let wrong =
            |(what, help): Wrong| Failure::usage(format!("{name}, line {line}: {what}"), help);
        let content = text.split('#').next().unwrap_or_default();
        let words: Vec<_> = content.split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        let by_span = words[0].parse::<Millis>().is_ok();
        let (at, end) = attempt(&words, deadline).map_err(wrong)?;
        if trace.last().is_some_and(|last| last.by_span != by_span) {
            let what = "spans and dates do not go together".to_owned();
            return Err(wrong((what, "write all times in the way of the first".to_owned())));
        }
        if trace.last().is_some_and(|last| last.at > at) {
            let what = "it is earlier than the line before".to_owned();
            return Err(wrong((what, "sort the lines by the time at which they begin".to_owned())));
        }
        trace.push(Attempt { line, by_span, at, end });
    }
    if trace.is_empty() {
        return Err(Failure::usage(
            format!("{name} holds no outcome"),
            "give it a line for each attempt, as in `5s 503`",
        ));
    }
    Ok(trace)
}

/// What is wrong with a line, and what would be right.
type Wrong = (String, String);

fn attempt(words: &[&str], deadline: Millis) -> Result<(Timestamp, End), Wrong> {
    let time = words[0];
    let at = time_of(time).ok_or_else(|| {
        (
            format!("`{}` is no time", time.escape_debug()),
            "write a span since the beginning, as in 1h30m, or a date and time as RFC 3339 has them"
                .to_owned(),
        )
    })?;
    let end = match words[1..] {
        [NEVER] => End::Never,
        [outcome] => End::After(Millis::ZERO, outcome_of(outcome)?),
        [outcome, AFTER, took] if outcome != NEVER => {
            End::After(took_of(took, deadline)?, outcome_of(outcome)?)
        }
        _ => {
            return Err((
                "a line is a time and an outcome".to_owned(),
                "write them as in `5s 503`, `5s 503 after 2s` or `5s never`".to_owned(),
            ));
        }
    };
    Ok((at, end))
}

fn outcome_of(text: &str) -> Result<Outcome, Wrong> {
    read_outcome(text).map_err(|help| {
        let help = format!("{help}; or {NEVER}, for an attempt that does not end");
        (format!("`{}` is no outcome", text.escape_debug()), help)
    })
}

fn took_of(text: &str, deadline: Millis) -> Result<Millis, Wrong> {
    let took = text.parse::<Millis>().map_err(|error| {
        (
            error.to_string(),
            "write how long the attempt took, as in `5s 503 after 250ms`".to_owned(),
        )
    })?;
    if took >= deadline {
        return Err((
            format!("{took} is not less than the deadline of an attempt, {deadline}"),
            format!("write `{NEVER}` for an attempt that outlives it, or give a longer --deadline"),
        ));
    }
    Ok(took)
}

fn time_of(text: &str) -> Option<Timestamp> {
    if let Ok(span) = text.parse::<Millis>() {
        return Some(Timestamp::from_millis(0).plus(span));
    }
    match instant(text) {
        Ok(Instant::At(at)) => Some(at),
        _ => None,
    }
}
