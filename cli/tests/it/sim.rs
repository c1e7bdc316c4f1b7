//! `hookproof sim`: replay, formats, exit codes, mistakes.

use crate::program::run;

#[test]
fn one_seed_prints_the_same_bytes_each_time() {
    let first = run(&["sim", "--seed", "7"]);
    assert_eq!(first.code, Some(0), "{first}");
    let again = run(&["sim", "--seed", "7"]);
    assert_eq!(first.stdout, again.stdout);
    assert!(first.stdout.ends_with("verdict: every invariant holds\n"), "{first}");
    assert_ne!(first.stdout, run(&["sim", "--seed", "8"]).stdout);
}

#[test]
fn a_trace_also_tells_the_steps() {
    let without = run(&["sim", "--seed", "7"]).stdout;
    let with = run(&["sim", "--seed", "7", "--trace"]).stdout;
    assert!(!without.contains("attempt.claimed\n"));
    assert!(with.contains("attempt.claimed\n"));
    assert!(with.lines().count() > without.lines().count());
}

#[test]
fn every_line_fits_a_hundred_columns() {
    for arguments in [&["sim", "--seeds", "0..3", "--no-zoo"][..], &["sim", "--seed", "5"]] {
        for line in run(arguments).stdout.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}

#[test]
fn a_small_suite_tells_what_held_as_json_too() {
    let ran = run(&["sim", "--seeds", "20..24", "--no-zoo", "--jobs", "2", "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["verdict"], "held");
    assert_eq!(report["histories"], 4);
    assert_eq!(report["first_seed"], 20);
    assert_eq!(report["failures"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_history_as_json_holds_its_trace() {
    let ran = run(&["sim", "--seed", "7", "--format", "json"]);
    let history: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(history["verdict"], "holds");
    assert!(history["trace"].as_array().is_some_and(|lines| lines.len() > 100));
}

#[test]
fn all_histories_of_a_small_world_are_gone_through() {
    let ran = run(&["sim", "--exhaustive", "one-crash", "--jobs", "1"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    insta::assert_snapshot!("sim_one_crash", ran.stdout);
    let shared = run(&["sim", "--exhaustive", "one-crash", "--jobs", "3"]);
    assert_eq!(shared.stdout, ran.stdout);
    let ran = run(&["sim", "--exhaustive", "one-crash", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report[0]["verdict"], "holds");
    assert_eq!(report[0]["histories"], 695);
    assert_eq!(report[0]["failure"], serde_json::Value::Null);
}

#[test]
fn mistakes_are_told_with_what_would_be_right() {
    let check = |arguments: &[&str], told: &str| {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(ran.stderr.contains(told), "{ran}");
    };
    check(&["sim", "--seeds", "9..3"], "write two numbers, the first the smaller");
    check(&["sim", "--seed", "x"], "invalid digit");
    check(&["sim", "--trace"], "--seed");
    check(&["sim", "--jobs", "0"], "1..=256");
    check(&["sim", "--seed", "1", "--seeds", "0..3"], "cannot be used with");
    check(&["sim", "--exhaustive", "three-crashes"], "one-crash, two-crashes, two-events or all");
    check(&["sim", "--exhaustive", "all", "--seed", "1"], "cannot be used with");
}
