//! The pages of the tools say what the tools do.

use std::collections::BTreeSet;
use std::fs;

use hookproof_core::secret::{Secret, Secrets};
use hookproof_receiver::config::{ReceiverConfig, Source};
use hookproof_sender::config::SenderConfig;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use crate::graph::workspace_root;
use crate::program::{Ran, hookproof, run, run_with_input};

const COMMANDS: [&str; 11] = [
    "address", "breaker", "classify", "demo", "receive", "schedule", "send", "sign", "sim",
    "verify", "zoo",
];

fn page(name: &str) -> String {
    let path = workspace_root().join(format!("docs/{name}.md"));
    fs::read_to_string(path).expect("there is such a page in docs/")
}

#[test]
fn each_flag_has_its_place_in_the_page_of_its_command() {
    for command in COMMANDS {
        let help = run(&[command, "--help"]).stdout;
        let page = page(command);
        let flags: BTreeSet<_> = help
            .split(|c: char| !(c.is_ascii_lowercase() || c == '-'))
            .filter(|word| word.starts_with("--") && *word != "--help")
            .collect();
        assert!(!flags.is_empty(), "{help}");
        for flag in flags {
            assert!(page.contains(&format!("`{flag}")), "docs/{command}.md says nothing of {flag}");
        }
    }
}

#[test]
fn the_complete_example_files_of_the_pages_are_accepted() {
    for command in ["send", "receive"] {
        let page = page(command);
        let example = block(&page, "toml");
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("hookproof.toml"), example).unwrap();
        let arguments = [command, "--config=hookproof.toml", "--listen=127.0.0.1:0"];
        let ran: Ran = hookproof(&arguments)
            .arg("--until-stdin-closes")
            .current_dir(folder.path())
            .output()
            .unwrap()
            .into();
        assert_eq!(ran.code, Some(0), "docs/{command}.md: {ran}");
    }
}

#[test]
fn the_example_policy_of_the_page_can_be_printed() {
    let page = page("schedule");
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("policy.toml"), block(&page, "toml")).unwrap();
    let arguments = ["schedule", "--policy=policy.toml"];
    let ran: Ran = hookproof(&arguments).current_dir(folder.path()).output().unwrap().into();
    assert_eq!(ran.code, Some(0), "docs/schedule.md: {ran}");
}

#[test]
fn the_example_file_of_the_sender_names_every_field_that_has_a_default() {
    fn check(path: &str, default: &serde_json::Value, written: Option<&toml::Value>) {
        let Some(fields) = default.as_object() else { return };
        for (name, value) in fields {
            let path = format!("{path}.{name}");
            let written = written.and_then(|table| table.get(name));
            assert!(written.is_some(), "docs/send.md says nothing of {path}");
            check(&path, value, written);
        }
    }
    let file: toml::Table = block(&page("send"), "toml").parse().expect("the example is TOML");
    let default = serde_json::to_value(SenderConfig::default()).expect("a default can be written");
    check("sender", &default, file.get("sender"));
}

#[test]
fn the_example_files_say_what_holds_without_them() {
    let sender: SenderConfig = table(&page("send"), "sender");
    assert_eq!(sender, SenderConfig::default());
    let receiver: ReceiverConfig = table(&page("receive"), "receiver");
    assert_eq!(receiver, ReceiverConfig::new(receiver.sources.clone()));
    let source = &receiver.sources[0];
    let secret: Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().expect("a secret");
    assert_eq!(*source, Source::new(source.id.clone(), &Secrets::one(secret)));
}

#[test]
fn the_timelines_in_the_page_are_those_that_are_printed() {
    for arguments in [
        "schedule --from 2026-01-01T00:00:00Z",
        "schedule seed-2",
        "schedule --events 1000 --rate 10",
        "schedule --list",
        "schedule --compare standard-webhooks svix seed-2 --outage 0s..24h --events 1000",
        "schedule svix --retry-after 1h",
        "schedule seed-1-python --outage 0s..1h --events 1000",
    ] {
        let printed = run(&arguments.split(' ').collect::<Vec<_>>()).stdout;
        let shown = format!("$ hookproof {arguments}\n{printed}");
        assert!(page("schedule").contains(&shown), "docs/schedule.md has another:\n{shown}");
    }
}

#[test]
fn the_judgements_in_the_page_are_those_that_are_printed() {
    for arguments in [
        "address 8.8.8.8 2002:a9fe:a9fe:: localhost.",
        "address https://bücher.com/in https://xn--bcher-kva.com/in",
        "address --scheme https --port 443 --allow-cidr 10.1.0.0/16 --allow-host hooks.internal \\\n    \
         https://10.1.2.3/in https://hooks.internal/in https://example.com:6379/ http://example.com/",
    ] {
        let words = arguments.split_whitespace().filter(|word| *word != "\\");
        let printed = run(&words.collect::<Vec<_>>()).stdout;
        let shown = format!("$ hookproof {arguments}\n{printed}");
        assert!(page("address").contains(&shown), "docs/address.md has another:\n{shown}");
    }
}

#[test]
fn the_trace_in_the_page_is_replayed_as_it_is_printed() {
    let page = page("breaker");
    let (_, rest) = page.split_once("$ printf '%s\\n' ").expect("there is a trace");
    let (lines, rest) = rest.split_once(" |\n    hookproof breaker gitlab --trace -\n").unwrap();
    let trace = lines.trim_matches('\'').replace("' '", "\n");
    let (shown, _) = rest.split_once("```").expect("the example ends");
    let printed = run_with_input(&["breaker", "gitlab", "--trace", "-"], &trace);
    assert_eq!(printed.stdout, shown, "docs/breaker.md");
}

/// A table of the example in a page.
fn table<T: DeserializeOwned>(page: &str, name: &str) -> T {
    let mut file: toml::Table = block(page, "toml").parse().expect("the example is TOML");
    file.remove(name).expect("the example has the table").try_into().expect("it is well-formed")
}

/// The first block of code in this language.
fn block<'a>(page: &'a str, language: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("```{language}\n")).expect("there is an example");
    rest.split_once("```").expect("the example ends").0
}

#[test]
fn each_test_that_the_requirements_name_is_there() {
    let count = assert_named_tests_are_there(&page("requirements"));
    assert!(count > 30, "only {count} tests are named");
}

/// The cases of the groups that are complete: schedule, `Retry-After`, classification, breaker,
/// signature, timestamp and SSRF.
const FIELD_CASES: [u32; 54] = [
    1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 14, 15, 16, 17, 18, 20, 22, 23, 24, 25, 27, 29, 30, 31, 32,
    33, 34, 35, 37, 38, 40, 41, 43, 44, 45, 47, 48, 50, 51, 53, 54, 56, 57, 59, 60, 104, 106, 108,
    110, 111, 113, 114, 116, 117,
];

#[test]
fn each_case_from_the_field_names_a_test_that_is_there() {
    let page = page("field-cases");
    assert_named_tests_are_there(&page);
    let rows: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("| ")).collect();
    for case in FIELD_CASES {
        let start = format!("{case:02} | ");
        let row = rows.iter().find(|row| row.starts_with(&start));
        let row = row.unwrap_or_else(|| panic!("docs/field-cases.md has no case {case:02}"));
        assert!(assert_named_tests_are_there(row) > 0, "no test holds case {case:02}");
    }
}

/// Looks for each test that a text names as `package: module::test`, and counts them.
fn assert_named_tests_are_there(text: &str) -> usize {
    let folders = [
        ("hookproof-core", "core"),
        ("hookproof-sender", "sender"),
        ("hookproof-receiver", "reference-receiver"),
        ("hookproof-sim", "sim"),
        ("hookproof", "cli"),
    ];
    let mut count = 0;
    let codes = text.split('`');
    for named in codes.filter(|code| code.starts_with("hookproof") && code.contains(": ")) {
        let (package, test) = named.split_once(": ").expect("it was filtered so");
        let Some((module, name)) = test.split_once("::") else { continue };
        let known = folders.iter().find(|(known, _)| *known == package);
        let (_, folder) = known.expect("packages of the workspace are named");
        let file = workspace_root().join(format!("{folder}/tests/it/{module}.rs"));
        let source = fs::read_to_string(&file).unwrap_or_default();
        assert!(source.contains(&format!("fn {name}(")), "{named} is not there");
        count += 1;
    }
    count
}
