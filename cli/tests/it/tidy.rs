//! The house style, as far as a machine can see it and neither rustfmt nor clippy looks.

use std::fs;
use std::path::Path;

use crate::graph;

const LINES_MAX: usize = 600;

// Spelt in halves, so that this file does not find itself.
const UNFINISHED: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("X", "XX"),
    concat!("to", "do!("),
    concat!("un", "implemented!("),
];
const IGNORE: &str = concat!("#[", "ignore");
const SELECT: &str = concat!("select", "! {");

/// What the pure core never names.
const OUTSIDE_WORLD: [&str; 7] =
    ["tokio", "SystemTime", "Instant::now", "rand::", "std::net::Tcp", "std::fs", "std::thread"];

#[test]
fn no_source_file_is_longer_than_600_lines() {
    let long = sources().into_iter().filter_map(|source| {
        let lines = source.text.lines().count();
        (lines > LINES_MAX).then(|| format!("{}:{lines}: the last line", source.path))
    });
    check(long, "a file has at most 600 lines, better 100 to 500: give a second noun its own file");
}

#[test]
fn no_source_file_holds_unfinished_work() {
    let marked = lines_where(|_, line| UNFINISHED.iter().any(|marker| has_word(line, marker)));
    check(marked, "finish it, or open an issue: the code says what is, not what should be");
}

#[test]
fn no_test_is_ignored() {
    let ignored = lines_where(|_, line| line.contains(IGNORE));
    check(ignored, "a test runs or is not there: make it fast enough, or delete it");
}

#[test]
fn no_line_holds_a_tab_or_ends_in_white_space() {
    let untidy = lines_where(|_, line| line.contains('\t') || line.trim_end() != line);
    check(untidy, "indent with spaces, end at the last character; in a string write \\t");
}

#[test]
fn each_source_file_of_a_package_opens_by_saying_what_it_holds() {
    let silent = sources()
        .into_iter()
        .filter(|source| source.path.contains("/src/") && !source.text.starts_with("//!"))
        .map(|source| format!("{}:1", source.path));
    check(silent, "line 1 starts the module's documentation: `//! …`");
}

#[test]
fn core_names_nothing_of_the_outside_world() {
    let impure = lines_where(|path, line| {
        path.starts_with("core/src/")
            && OUTSIDE_WORLD.iter().any(|word| has_word(code_of(line), word))
    });
    check(impure, "core is values in, values out: take time and entropy as arguments");
}

#[test]
fn each_select_is_biased() {
    let unbiased = sources().into_iter().flat_map(|source| {
        let code: Vec<_> = source.text.lines().map(|line| code_of(line).trim()).collect();
        let is_unbiased = |at: &usize| match code[*at].split_once(SELECT) {
            None => false,
            Some((_, rest)) => {
                let body = code[*at + 1..].iter().copied();
                let first = std::iter::once(rest.trim()).chain(body).find(|code| !code.is_empty());
                !first.is_some_and(|code| code.starts_with("biased;"))
            }
        };
        let found: Vec<_> = (0..code.len())
            .filter(is_unbiased)
            .map(|at| format!("{}:{}: {}", source.path, at + 1, code[at]))
            .collect();
        found
    });
    check(unbiased, "begin it with `biased;`: else tokio draws the order at random");
}

#[test]
fn the_workspace_builds_exactly_one_binary() {
    let metadata = graph::workspace_metadata();
    let binaries: Vec<_> = graph::packages(&metadata)
        .flat_map(|package| targets(package, "bin").map(move |name| (graph::name(package), name)))
        .collect();
    assert_eq!(
        binaries,
        [("hookproof", "hookproof")],
        "(package, binary): `cargo run` must need no `--bin`"
    );
}

#[test]
fn each_package_has_at_most_one_integration_test_binary() {
    let metadata = graph::workspace_metadata();
    let extra = graph::packages(&metadata).flat_map(|package| {
        targets(package, "test")
            .filter(|target| *target != "it")
            .map(move |target| format!("{}: {target}", graph::name(package)))
    });
    check(extra, "integration tests are modules of `tests/it/main.rs`: one binary to link");
}

#[test]
fn the_search_takes_whole_words_and_leaves_comments_out() {
    assert!(has_word("use rand::Rng;", "rand::"));
    assert!(!has_word("operand::parse()", "rand::"));
    assert!(has_word("std::net::TcpStream", "std::net::Tcp"));
    assert!(!has_word("my_tokio", "tokio"));
    assert!(!has_word("tokio_util", "tokio"));
    assert_eq!(code_of("let a = 1; // tokio"), "let a = 1; ");
    assert_eq!(code_of("/// tokio"), "");
    assert_eq!(code_of("\"http://a\" + tokio"), "\"http://a\" + tokio");
}

/// Fails with all that was `found`, and with what is `right` instead.
fn check(found: impl IntoIterator<Item = String>, right: &str) {
    let found: Vec<_> = found.into_iter().collect();
    assert!(found.is_empty(), "{right}. Found:\n{}", found.join("\n"));
}

struct Source {
    /// From the workspace's root, with `/` between the parts.
    path: String,
    text: String,
}

/// Every Rust file of the workspace that is there, committed or not.
fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    collect(&graph::workspace_root(), "", &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(
        found.iter().any(|source| source.path == "core/src/lib.rs"),
        "the search did not even find core/src/lib.rs"
    );
    found
}

fn collect(directory: &Path, prefix: &str, found: &mut Vec<Source>) {
    for entry in fs::read_dir(directory).expect("a directory of the workspace can be read") {
        let entry = entry.expect("an entry of the workspace can be read");
        let name = entry.file_name().into_string().expect("names in the workspace are UTF-8");
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().expect("an entry has a type");
        if kind.is_dir() {
            let is_ours = !name.starts_with('.') && !name.starts_with("mutants.out");
            if is_ours && name != "target" {
                collect(&entry.path(), &format!("{path}/"), found);
            }
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(entry.path()).expect("a Rust file is UTF-8");
            found.push(Source { path, text });
        }
    }
}

/// Each line of which `is_wrong(path, line)` holds, as `path:number: line`.
fn lines_where(is_wrong: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources() {
        for (index, line) in source.text.lines().enumerate() {
            if is_wrong(&source.path, line) {
                found.push(format!("{}:{}: {}", source.path, index + 1, line.trim()));
            }
        }
    }
    found
}

/// The line without its comment. A block comment counts as code, and so does `//` inside a word,
/// as in a URL.
fn code_of(line: &str) -> &str {
    let comment = line
        .match_indices("//")
        .map(|(at, _)| at)
        .find(|at| line[..*at].chars().next_back().is_none_or(char::is_whitespace));
    &line[..comment.unwrap_or(line.len())]
}

/// Whether `word` stands in `line` not as a part of a longer name. An end of `word` that is no
/// part of a name itself (`rand::`) is not looked at; nor is the end of a prefix (`…::Tcp`).
fn has_word(line: &str, word: &str) -> bool {
    let in_name = |c: char| c.is_alphanumeric() || c == '_';
    let open_end = !word.ends_with(in_name) || word.contains("::");
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !(word.starts_with(in_name) && before.is_some_and(in_name))
            && (open_end || !after.is_some_and(in_name))
    })
}

/// The names of the targets of a kind: `bin`, `test`, ….
fn targets<'a>(package: &'a serde_json::Value, kind: &'a str) -> impl Iterator<Item = &'a str> {
    let targets = package["targets"].as_array().expect("a package lists its targets");
    let is_kind = move |target: &&serde_json::Value| {
        target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|found| found == kind))
    };
    targets.iter().filter(is_kind).map(graph::name)
}
