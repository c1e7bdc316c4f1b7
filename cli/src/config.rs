//! Configuration files: TOML, or JSON if their name says so, with errors that name the file, the line, the field and what is
//! allowed there.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer};

use crate::failure::Failure;

/// A configuration file that could be read.
#[derive(Debug)]
pub(crate) struct ConfigFile<T> {
    path: PathBuf,
    text: String,
    page: &'static str,
    /// What it says.
    pub(crate) content: T,
}

/// Reads a file into `T`, whose fields are described on this page of the documentation.
pub(crate) fn read<T: DeserializeOwned>(
    path: &Path,
    page: &'static str,
) -> Result<ConfigFile<T>, Failure> {
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::usage(
            format!("cannot read the file {}: {error}", path.display()),
            "give the path of a TOML or JSON file that can be read",
        )
    })?;
    let is_json = path.extension().is_some_and(|name| name.eq_ignore_ascii_case("json"));
    let content = if is_json { parse_json(path, &text, page) } else { parse(path, &text, page) }?;
    Ok(ConfigFile { path: path.to_owned(), text, page, content })
}

impl<T> ConfigFile<T> {
    /// A path in the file: relative to the folder that holds the file, not to the one in which the
    /// program happens to run.
    pub(crate) fn resolve(&self, path: &Path) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }

    /// A field that each by itself is well-formed, but cannot be. `field` is its path in the file,
    /// such as `sender.attempts_max`.
    pub(crate) fn invalid(&self, field: &str, problem: &str) -> Failure {
        let line = span_in(&self.text, field).map(|span| line_at(&self.text, span.start));
        at(&self.path, line, &format!("`{field}` {problem}"), &help_for(problem, self.page))
    }
}

fn parse<T: DeserializeOwned>(path: &Path, text: &str, page: &str) -> Result<T, Failure> {
    let wrong = |error: &toml::de::Error, field: &str| {
        // What is wrong with an item is told with the place of its list.
        let item = field.ends_with(']').then(|| span_in(text, field)).flatten();
        let line = item.or_else(|| error.span()).map(|span| line_at(text, span.start));
        let (problem, help) = explained(error.message(), page);
        let what = if field.is_empty() || field == "." {
            problem
        } else {
            format!("`{field}`: {problem}")
        };
        at(path, line, &what, &help)
    };
    let document = Deserializer::parse(text).map_err(|error| wrong(&error, ""))?;
    serde_path_to_error::deserialize(document).map_err(|error| {
        let field = error.path().to_string();
        wrong(error.inner(), &field)
    })
}

fn parse_json<T: DeserializeOwned>(path: &Path, text: &str, page: &str) -> Result<T, Failure> {
    let wrong = |what: &str| at(path, None, what, &fields_in(page));
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let content = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let field = error.path().to_string();
        let (place, inner) = (format!("`{field}`: "), error.inner());
        wrong(&if field == "." { inner.to_string() } else { format!("{place}{inner}") })
    })?;
    deserializer.end().map_err(|error| wrong(&format!("after the end: {error}")))?;
    Ok(content)
}

fn at(path: &Path, line: Option<usize>, what: &str, help: &str) -> Failure {
    let line = line.map_or(String::new(), |line| format!(", line {line}"));
    Failure::usage(format!("{}{line}: {what}", path.display()), help)
}

fn line_at(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// What the parser found, apart from what it would have taken.
fn explained(message: &str, page: &str) -> (String, String) {
    let message = message.trim_end();
    if let Some((problem, allowed)) = message.split_once(", expected ") {
        let (problem, allowed) = (problem.to_owned(), allowed.trim());
        if let Some(fields) = allowed.strip_prefix("one of ") {
            return (problem, format!("what is allowed here is {fields}"));
        }
        return (problem, format!("what is allowed here is {}", in_words(allowed)));
    }
    if let Some((problem, allowed)) = message.split_once(": write ") {
        return (problem.to_owned(), format!("write {allowed}"));
    }
    (message.to_owned(), help_for(message, page))
}

/// The names that serde has for types, in words.
fn in_words(expected: &str) -> &str {
    match expected {
        "a string" => {
            "a text in quotes; a span of time is written as \"250ms\", \"5s\" or \"1h30m\""
        }
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number from 0",
        "a sequence" => "a list in square brackets",
        name if name.starts_with("struct ") => "a table of fields, as in { name = value }",
        other => other,
    }
}

fn help_for(problem: &str, page: &str) -> String {
    if problem.starts_with("missing field") {
        format!("add it; {page} has a complete example")
    } else if problem.contains("socket address") {
        "write an IP address and a port, as in \"127.0.0.1:8071\"".to_owned()
    } else {
        fields_in(page)
    }
}

/// Where to read on after an error that does not tell what would be right.
pub(crate) fn fields_in(page: &str) -> String {
    format!("{page} lists each field with what is allowed")
}

/// Where a field stands in a file.
fn span_in(text: &str, field: &str) -> Option<Range<usize>> {
    span_of(DeTable::parse(text).ok()?.get_ref(), field)
}

/// Where a field stands. Steps of its path that the file does not have are passed over, so that at
/// least its table is found.
fn span_of(table: &DeTable<'_>, field: &str) -> Option<Range<usize>> {
    let mut table = table;
    let mut list = None;
    let mut span = None;
    for step in field.split(['.', '[', ']']).filter(|step| !step.is_empty()) {
        let value = match list.take() {
            Some(items) => {
                let Some(item) = item_of(items, step) else { break };
                span = Some(item.span());
                item
            }
            None => {
                let here = table.iter().find(|(key, _)| key.get_ref() == step);
                let Some((key, value)) = here else { continue };
                span = Some(key.span());
                value
            }
        };
        match value.get_ref() {
            DeValue::Table(deeper) => table = deeper,
            DeValue::Array(items) => list = Some(items),
            _ => break,
        }
    }
    span
}

fn item_of<'a, 'i>(items: &'a DeArray<'i>, step: &str) -> Option<&'a Spanned<DeValue<'i>>> {
    items.get(step.parse::<usize>().ok()?)
}

#[cfg(test)]
mod tests {
    use hookproof_sender::config::SenderConfig;
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[expect(dead_code, reason = "only whether it can be read is asked")]
        sender: SenderConfig,
    }

    /// What the failure says about `text`: the error and the help.
    fn refused(text: &str) -> (String, String) {
        match parse::<File>(Path::new("s.toml"), text, "docs/s.md") {
            Err(Failure::Usage(message)) => (message.error, message.help.unwrap_or_default()),
            other => panic!("{text} gave {other:?}"),
        }
    }

    #[test]
    fn a_mistake_is_told_with_line_field_and_what_is_allowed() {
        let check = |text: &str, error: &str, help: &str| {
            let (told_error, told_help) = refused(text);
            assert_eq!(told_error, error, "{text}");
            assert!(told_help.contains(help), "{text}: {told_help}");
        };
        check(
            "[sender]\nattempts_max = \"many\"\n",
            "s.toml, line 2: `sender.attempts_max`: invalid type: string \"many\"",
            "a whole number from 0 to 4294967295",
        );
        check(
            "[sender.policy]\n\nconect_timeout = \"3s\"\n",
            "s.toml, line 3: `sender.policy.conect_timeout`: unknown field `conect_timeout`",
            "`connect_timeout`",
        );
        check(
            "[sender.policy]\nconnect_timeout = \"3\"\n",
            "s.toml, line 2: `sender.policy.connect_timeout`: `3` is not a span of time",
            "`5s`",
        );
        check(
            "[sender.policy]\nconnect_timeout = 3\n",
            "s.toml, line 2: `sender.policy.connect_timeout`: invalid type: integer `3`",
            "\"5s\"",
        );
        check(
            "[sender.policy.gate.breaker]\nwindow = \"5m\"\n",
            "s.toml, line 2: `sender.policy.gate.breaker.window`: invalid type: string \"5m\"",
            "a table of fields",
        );
        check("", "s.toml, line 1: missing field `sender`", "add it; docs/s.md has");
        let (error, _) = refused("[sender\n");
        assert!(error.starts_with("s.toml, line 1: "), "{error}");
    }

    #[test]
    fn a_field_that_cannot_be_is_found_in_the_file() {
        let text = "\n[sender.policy.schedule]\njitter = \"full\"\n\
                    [sender.policy.schedule.backoff]\nkind = \"list\"\nwaits = []\n";
        let table = DeTable::parse(text).unwrap();
        let check = |field: &str, line: Option<usize>| {
            let span = span_of(table.get_ref(), field);
            assert_eq!(span.map(|span| line_at(text, span.start)), line, "{field}");
        };
        check("sender.policy.schedule.jitter", Some(3));
        check("sender.policy.schedule.backoff.waits", Some(6));
        // Of a field that is not in the file, the table that it belongs to is found.
        check("sender.policy.schedule.backoff.cap", Some(4));
        check("receiver.sources[0].id", None);
        let text = "a = [1,\n2,\n\n3]\n[[b]]\nc = 1\n[[b]]\nc = 2\n";
        let table = DeTable::parse(text).unwrap();
        let line = |field: &str| span_of(table.get_ref(), field).map(|s| line_at(text, s.start));
        let lines = ["a[0]", "a[2]", "a[3]", "b[1].c"].map(line);
        assert_eq!(lines, [Some(1), Some(4), Some(1), Some(8)]);
    }

    #[test]
    fn a_path_in_a_file_is_relative_to_that_file() {
        let (path, page) = ("etc/s.toml".into(), "docs/s.md");
        let file = ConfigFile { path, text: String::new(), page, content: () };
        assert_eq!(file.resolve(Path::new("a.db")), Path::new("etc/a.db"));
        assert_eq!(file.resolve(Path::new("/var/a.db")), Path::new("/var/a.db"));
    }
}
