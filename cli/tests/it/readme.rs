//! The README shows what is printed now.

use std::fs;

use crate::graph::workspace_root;
use crate::program::run;

/// The output that the README shows under this command line.
fn shown(command_line: &str) -> String {
    let readme = fs::read_to_string(workspace_root().join("README.md")).expect("there is a README");
    let start = format!("```console\n$ {command_line}\n");
    let (_, rest) = readme.split_once(&start).expect("the README shows this command");
    rest.split_once("```").expect("the block ends").0.to_owned()
}

#[test]
fn the_proof_in_the_readme_is_the_one_that_the_default_suite_gives() {
    let ran = run(&["sim"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(ran.stdout, shown("cargo run --release -- sim"), "copy the left one into README.md");
    let last = ran.stdout.lines().last().unwrap();
    assert_eq!(last, "verdict: proved for 27402 histories");
}

#[test]
fn the_timeline_in_the_readme_is_the_one_that_is_printed() {
    let arguments = ["schedule", "standard-webhooks", "--from", "2026-01-01T00:00:00Z"];
    let ran = run(&arguments);
    assert_eq!(ran.stdout, shown(&format!("hookproof {}", arguments.join(" "))));
}
