//! `hookproof zoo` and `hookproof sim --replay`: what was found, and what shows it again.

use std::fs;

use tempfile::TempDir;

use crate::program::{Ran, hookproof, run};

fn run_in(folder: &TempDir, arguments: &[&str]) -> Ran {
    hookproof(arguments).current_dir(folder.path()).output().expect("the program can be run").into()
}

fn fits(ran: &Ran) {
    for line in ran.stdout.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn every_mutant_is_killed() {
    let ran = run(&["zoo", "--runs", "1"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    fits(&ran);
    insta::assert_snapshot!("zoo", ran.stdout);
}

#[test]
fn one_mutant_is_explained() {
    let ran = run(&["zoo", "--only", "s21", "--runs", "3"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    fits(&ran);
    insta::assert_snapshot!("zoo_only_s21", ran.stdout);
    let json = run(&["zoo", "--only", "s21", "--runs", "3", "--format", "json"]);
    insta::assert_snapshot!("zoo_only_s21_json", json.stdout);
}

/// A bug in each part that no mutant has: what is found can be understood.
fn is_told(id: &str, snapshot: &str) {
    let ran = run(&["zoo", "--only", id, "--runs", "1"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    fits(&ran);
    insta::assert_snapshot!(snapshot, ran.stdout);
}

#[test]
fn a_bug_in_delivery_is_found_made_small_and_told() {
    is_told("B01", "bug_in_delivery");
}

#[test]
fn a_bug_in_the_gate_is_found_made_small_and_told() {
    is_told("B02", "bug_in_the_gate");
}

#[test]
fn a_bug_in_the_inbox_is_found_made_small_and_told() {
    is_told("B03", "bug_in_the_inbox");
}

#[test]
fn a_bug_in_the_store_is_found_made_small_and_told() {
    is_told("B04", "bug_in_the_store");
}

#[test]
fn a_wrong_harness_is_explained_without_a_history() {
    let ran = run(&["zoo", "--only", "H04", "--runs", "1"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    insta::assert_snapshot!("zoo_only_h04", ran.stdout);
}

#[test]
fn one_mutant_as_json_holds_its_timeline() {
    let ran = run(&["zoo", "--only", "R01", "--runs", "2", "--format", "json"]);
    let found: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&found["killed"], &found["of"]), (&1.into(), &1.into()), "{ran}");
    let mutant = &found["mutants"][0];
    assert_eq!(mutant["killed_by"][0]["invariant"], "I4");
    assert_eq!(mutant["killed_by"][0]["runs"], 2);
    let rows = mutant["smallest"]["timeline"].as_array().unwrap();
    assert_eq!(rows.last().unwrap()["kind"], "violation");
}

#[test]
fn what_was_saved_can_be_replayed_in_every_form() {
    let folder = TempDir::new().unwrap();
    let saved = run_in(&folder, &["zoo", "--only", "R01", "--runs", "1", "--save", "r01.json"]);
    assert_eq!(saved.code, Some(0), "{saved}");
    let replay = |form: &str| {
        let ran = run_in(&folder, &["sim", "--replay", "r01.json", "--format", form]);
        assert_eq!(ran.code, Some(1), "{ran}");
        ran
    };
    let table = replay("table");
    fits(&table);
    insta::assert_snapshot!("replay_r01", table.stdout);
    let json: serde_json::Value = serde_json::from_str(&replay("json").stdout).unwrap();
    assert_eq!(json["violation"]["invariant"], "I4");
    assert!(replay("html").stdout.ends_with("</html>\n"));
    let rust = replay("rust").stdout;
    assert!(
        rust.contains("#[test]\nfn i4_done_means_done_holds_where_it_once_did_not() {"),
        "{rust}"
    );
}

#[test]
fn a_plan_that_no_longer_fails_is_said_to_be_mended() {
    let folder = TempDir::new().unwrap();
    run_in(&folder, &["zoo", "--only", "R01", "--runs", "1", "--save", "plan.json"]);
    let path = folder.path().join("plan.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"R01\"", "null")).unwrap();
    let mended = run_in(&folder, &["sim", "--replay", "plan.json"]);
    assert_eq!(mended.code, Some(0), "{mended}");
    assert!(mended.stdout.ends_with("verdict: every invariant holds; it is mended\n"), "{mended}");
    fs::write(&path, text.replace("\"I4\"", "\"I9\"")).unwrap();
    let other = run_in(&folder, &["sim", "--replay", "plan.json"]);
    assert_eq!(other.code, Some(1), "{other}");
    assert!(
        other.stdout.contains("violated I4 done means done, not I9 gate as recorded"),
        "{other}"
    );
}

#[test]
fn mistakes_are_told_with_what_would_be_right() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("old.json"), "{\n  \"version\": 0\n}\n").unwrap();
    let check = |arguments: &[&str], told: &str| {
        let ran = run_in(&folder, arguments);
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(ran.stderr.contains(told), "{ran}");
    };
    check(&["sim", "--replay", "none.json"], "cannot read the plan none.json");
    check(
        &["sim", "--replay", "old.json"],
        "old.json, line 2: `version`: the file is of version 0",
    );
    check(&["sim", "--format", "html"], "give --replay FILE");
    check(&["sim", "--replay", "old.json", "--seed", "1"], "cannot be used with");
    check(&["zoo", "--only", "S99"], "there is no mutant \"S99\"");
    check(&["zoo", "--save", "x"], "--only");
    check(&["zoo", "--runs", "0"], "1..=1000");
    check(&["zoo", "--only", "H01", "--runs", "1", "--save", "x"], "leave out --save");
}
