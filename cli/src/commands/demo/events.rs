//! The events to publish: JSON lines, each with a type, the data that becomes the body, and a key.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use hookproof_core::event::EventType;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::failure::Failure;

/// The longest line, in bytes, its end not counted: the sender takes bodies up to 1 MiB.
const LINE_BYTES_MAX: u64 = 1024 * 1024;
/// The longest key, in bytes: that of an idempotency key.
const KEY_BYTES_MAX: usize = 255;

/// The events that are published if the user gives none.
const BUILT_IN: &str = include_str!("../../../data/demo-events.jsonl");

const HELP: &str = "a line is an object such as {\"key\": \"order-1-paid\", \"type\": \
                    \"order.paid\", \"data\": {\"order\": 1}}; \"key\" may be left out";

/// One event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Event {
    /// What the publish is called, so that it can be asked for again.
    pub(super) key: String,
    pub(super) event_type: EventType,
    /// The text of the line's `data`, byte for byte.
    pub(super) body: Bytes,
}

/// Where events come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    BuiltIn,
    StandardInput,
    File(PathBuf),
}

impl Origin {
    pub(super) fn new(argument: Option<PathBuf>) -> Self {
        match argument {
            None => Self::BuiltIn,
            Some(path) if path == Path::new("-") => Self::StandardInput,
            Some(path) => Self::File(path),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::BuiltIn => "the built-in events".to_owned(),
            Self::StandardInput => "standard input".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }
}

/// Reads all events, so that a mistake in the last line is told before anything starts.
pub(super) fn read(origin: &Origin) -> Result<Vec<Event>, Failure> {
    let unreadable = |error: io::Error| {
        Failure::usage(
            format!("cannot read {}: {error}", origin.name()),
            "give --events a file of JSON lines, or - for standard input",
        )
    };
    let mut lines: Box<dyn BufRead> = match origin {
        Origin::BuiltIn => Box::new(BUILT_IN.as_bytes()),
        Origin::StandardInput => Box::new(io::stdin().lock()),
        Origin::File(path) => Box::new(BufReader::new(File::open(path).map_err(unreadable)?)),
    };
    let mut events = Vec::new();
    let mut keys = BTreeMap::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut bounded = (&mut lines).take(LINE_BYTES_MAX + 1);
        if bounded.read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
            break;
        }
        let wrong = |(error, help): (String, &str)| {
            Failure::usage(format!("{}, line {number}: {error}", origin.name()), help)
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        let event = parse(&line, number).map_err(wrong)?;
        if let Some(first) = keys.insert(event.key.clone(), number) {
            let error = format!("the key \"{}\" stands in line {first} already", event.key);
            return Err(wrong((error, "give each event a key of its own, or none any")));
        }
        events.push(event);
    }
    if events.is_empty() {
        return Err(Failure::usage(format!("there is no event in {}", origin.name()), HELP));
    }
    Ok(events)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    key: Option<String>,
    r#type: EventType,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// One event, or what is wrong with the line and what would be right.
fn parse(line: &[u8], number: u64) -> Result<Event, (String, &'static str)> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    if line.len() as u64 > LINE_BYTES_MAX {
        return Err((
            format!("longer than {LINE_BYTES_MAX} bytes"),
            "the sender takes bodies up to 1 MiB: refer to larger data instead of sending it",
        ));
    }
    let line: Line<'_> = serde_json::from_slice(line).map_err(|error| (told(&error), HELP))?;
    let key = line.key.unwrap_or_else(|| format!("line-{number}"));
    if key.len() > KEY_BYTES_MAX || key.is_empty() || !key.bytes().all(|b| b.is_ascii_graphic()) {
        return Err((
            format!("\"{}\" cannot be a key", key.escape_debug()),
            "a key is 1 to 255 visible ASCII characters without spaces",
        ));
    }
    let body = Bytes::copy_from_slice(line.data.get().as_bytes());
    Ok(Event { key, event_type: line.r#type, body })
}

/// The error with the column in the line, since the parser sees one line at a time.
fn told(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((problem, _)) => format!("{problem} (column {})", error.column()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_events_are_a_thousand() {
        let events = read(&Origin::BuiltIn).unwrap();
        assert_eq!(events.len(), 1000);
        assert!(events.iter().any(|event| !event.body.is_ascii()), "text beyond ASCII");
    }

    #[test]
    fn the_body_is_the_text_of_the_data_byte_for_byte() {
        let line = "{ \"data\" : {\"b\": 1.0,  \"a\":\"\\u00fc ü\"} , \"type\":\"a.b\"}\n";
        let event = parse(line.as_bytes(), 7).unwrap();
        assert_eq!(event.body, "{\"b\": 1.0,  \"a\":\"\\u00fc ü\"}");
        assert_eq!(event.event_type.as_str(), "a.b");
        assert_eq!(event.key, "line-7");
    }

    #[test]
    fn a_wrong_line_is_told_with_what_is_wrong() {
        let check = |line: &str, error: &str| {
            let (told, help) = parse(line.as_bytes(), 1).unwrap_err();
            assert!(told.contains(error), "{line}: {told}");
            assert!(!help.is_empty());
        };
        check("{", "EOF while parsing an object (column 1)");
        check("[]", "expected");
        check(r#"{"data":1}"#, "missing field `type`");
        check(r#"{"type":"a"}"#, "missing field `data`");
        check(r#"{"type":"a b","data":1}"#, "`a b` is not an event type");
        check(r#"{"type":"a","data":1,"extra":2}"#, "unknown field `extra`");
        check(r#"{"type":"a","data":1,"key":"a b"}"#, "\"a b\" cannot be a key");
        check(r#"{"type":"a","data":1,"key":""}"#, "\"\" cannot be a key");
        check(&"x".repeat(1024 * 1024 + 1), "longer than 1048576 bytes");
    }
}
