//! What `hookproof schedule` prints.

use std::process::Stdio;

use serde_json::Value;

use crate::program::{Ran, hookproof, run};

const FROM: &str = "--from=2026-01-01T00:00:00Z";

#[test]
fn a_timeline_with_dates_is_printed() {
    insta::assert_snapshot!("standard_webhooks_from", run(&["schedule", FROM]));
}

#[test]
fn a_timeline_without_dates_is_the_same_on_each_day() {
    insta::assert_snapshot!("standard_webhooks", run(&["schedule", "standard-webhooks"]));
}

#[test]
fn jitter_is_printed_with_its_bounds_and_its_mean() {
    insta::assert_snapshot!("seed_2", run(&["schedule", "seed-2"]));
}

#[test]
fn json_has_integers_in_milliseconds_and_dates_as_rfc_3339() {
    let ran = run(&["schedule", FROM, "--format", "json"]);
    insta::assert_snapshot!("standard_webhooks_json", ran);
    let value: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    let last = &value["attempts"][9];
    assert_eq!(last["since_event"]["highest_ms"], 272_105_000);
    assert_eq!(last["at"]["latest"], "2026-01-04T03:35:05Z");
}

#[test]
fn an_unknown_schedule_is_refused_with_what_may_be_meant() {
    insta::assert_snapshot!("unknown", run(&["schedule", "standart-webhook"]));
}

#[test]
fn an_offset_is_taken_into_account() {
    let utc = run(&["schedule", "--from", "2026-01-01T00:00:00Z"]);
    let east = run(&["schedule", "--from", "2026-01-01T02:00:00+02:00"]);
    assert_eq!(utc.stdout, east.stdout);
}

#[test]
fn a_date_that_rfc_3339_cannot_hold_is_refused() {
    for from in ["2026-01-01", "9999-12-30T00:00:00Z"] {
        let ran = run(&["schedule", "--from", from]);
        assert_eq!(ran.code, Some(2), "{from}: {ran}");
        assert!(ran.stderr.starts_with("error: "), "{ran}");
    }
}

#[test]
fn each_listed_schedule_can_be_printed_within_100_columns() {
    let list = run(&["schedule", "--list"]);
    assert_narrow(&list.stdout);
    let listed = run(&["schedule", "--list", "--format", "json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).expect("it is JSON");
    let listed = listed.as_array().expect("it is a list");
    assert!(!listed.is_empty());
    for schedule in listed {
        let name = schedule["schedule"].as_str().expect("it has a name");
        assert!(list.stdout.contains(name), "{name} is not in the table");
        for arguments in [&["schedule", name][..], &["schedule", name, FROM]] {
            let ran = run(arguments);
            assert_eq!(ran.code, Some(0), "{ran}");
            assert_narrow(&ran.stdout);
        }
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let mut command = hookproof(&["schedule", "--format", "json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran}");
}

fn assert_narrow(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "longer than 100 columns: {line}");
    }
}
