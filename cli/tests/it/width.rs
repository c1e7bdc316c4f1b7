//! No line that is printed is wider than 100 columns.
//!
//! Three kinds of lines may be, since they cannot break: a string of JSON, which holds no line break,
//! alone in its line; a record of CSV; the markup of a drawing, which a browser reads.

use std::fs;

use crate::graph::workspace_root;
use crate::program::{Ran, run};

const WIDTH_MAX: usize = 100;

/// The snapshots of CSV and of drawings.
const OTHER_FORMATS: [&str; 6] = [
    "it__schedule__compare_csv",
    "it__schedule__compare_html",
    "it__schedule__compare_svg",
    "it__schedule__svix_csv",
    "it__schedule__svix_html",
    "it__schedule__svix_svg",
];

/// Every command of which there are snapshots, by the module that takes them.
const MODULES: [&str; 9] =
    ["address", "breaker", "classify", "demo", "schedule", "serve", "sign", "sim", "zoo"];

/// The lines of this text that are too wide and could break.
pub(crate) fn wide_lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.chars().count() > WIDTH_MAX && !is_json_string(line)).collect()
}

/// Fails if a line of what was printed is too wide.
pub(crate) fn assert_narrow(ran: &Ran) {
    for text in [&ran.stdout, &ran.stderr] {
        assert_eq!(wide_lines(text), [""; 0], "wider than {WIDTH_MAX} columns");
    }
}

/// A string alone in its line, with or without the name of its field.
fn is_json_string(line: &str) -> bool {
    let line = line.trim_start();
    let value = line.strip_prefix('"').and_then(|rest| rest.split_once("\": "));
    let value = value.map_or(line, |(_, value)| value);
    serde_json::from_str::<String>(value.strip_suffix(',').unwrap_or(value)).is_ok()
}

#[test]
fn no_snapshot_holds_a_line_that_is_wider_than_100_columns() {
    let folder = workspace_root().join("cli/tests/it/snapshots");
    let mut seen = Vec::new();
    for entry in fs::read_dir(folder).expect("there are snapshots") {
        let path = entry.expect("a snapshot can be read").path();
        let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a snapshot is text");
        let (_, printed) = text.split_once("\n---\n").expect("a snapshot has a head");
        if !OTHER_FORMATS.contains(&name.as_str()) {
            assert_eq!(wide_lines(printed), [""; 0], "{name}");
        }
        seen.push(name);
    }
    for name in OTHER_FORMATS {
        assert!(seen.iter().any(|found| found == name), "{name} is excepted and not there");
    }
    for module in MODULES {
        let prefix = format!("it__{module}__");
        assert!(seen.iter().any(|name| name.starts_with(&prefix)), "{module} has no snapshot");
    }
}

#[test]
fn no_help_is_wider_than_100_columns() {
    let overview = run(&["--help"]);
    assert_narrow(&overview);
    let (_, commands) = overview.stdout.split_once("Commands:\n").expect("it lists the commands");
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let names: Vec<_> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"verify"), "{overview}");
    for name in names.into_iter().filter(|name| *name != "help") {
        assert_narrow(&run(&[name, "--help"]));
    }
    assert_narrow(&run(&["sim", "merge", "--help"]));
}

#[test]
fn what_is_wrong_with_a_command_line_is_told_within_100_columns() {
    for arguments in [
        &["schedule", "--outage=an hour or so"][..],
        &["verify", "--tolerance=five"],
        &["verify", "--now=yesterday"],
        &["classify", "5xx"],
        &["sign", "--scheme"],
        &["sign", "--scheme=a", "--scheme-file=b"],
        &["receive", "--listen=here", "--config=none.toml"],
    ] {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(ran.stderr.starts_with("error: "), "{ran}");
        assert_narrow(&ran);
    }
}

#[test]
fn only_a_string_alone_in_its_line_may_be_wider() {
    let long = "x".repeat(101);
    for line in
        [format!("\"{long}\","), format!("  \"a\": \"{long}\""), format!("  \"{long}\\\"\"")]
    {
        assert!(wide_lines(&line).is_empty(), "{line}");
    }
    for line in [
        long.clone(),
        format!("{{\"a\": \"{long}\"}}"),
        format!("\"a\": \"{long}\", \"b\": \"\""),
        format!("  \"a\": [\"{long}\"]"),
        format!("source  \"{long}\""),
    ] {
        assert_eq!(wide_lines(&line), [line.as_str()]);
    }
}

/// The names of files are as long as they are; in a table, their ends tell them apart.
#[test]
fn a_comparison_of_files_with_long_names_is_no_wider() {
    let folder = tempfile::TempDir::new().expect("there is room");
    let files = ["one", "two"].map(|name| {
        let deep = folder.path().join("a-folder-with-a-long-name/".repeat(6)).join(name);
        fs::create_dir_all(&deep).expect("it can be made");
        let file = deep.join("policy.toml");
        let text = "[schedule.backoff]\nkind = \"list\"\nwaits = [\"5s\", \"1m\"]\n";
        fs::write(&file, text).expect("it can be written");
        file.to_string_lossy().into_owned()
    });
    let ran = run(&["schedule", "--rate", "5", "--compare", &files[0], &files[1]]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_narrow(&ran);
    for end in ["/one/policy.toml", "/two/policy.toml"] {
        assert!(ran.stdout.contains(end) && ran.stdout.contains("…"), "{}", ran.stdout);
    }
}
