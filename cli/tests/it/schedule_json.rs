//! What `hookproof schedule` prints for programs.

use serde_json::Value;

use crate::program::run;

/// Runs with these arguments; what is printed is JSON.
fn json(arguments: &[&str]) -> String {
    let ran = run(&[&["schedule", "--format=json"], arguments].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    let value: Result<Value, _> = serde_json::from_str(&ran.stdout);
    assert!(value.is_ok(), "{ran}");
    ran.stdout
}

#[test]
fn the_list_is_json() {
    insta::assert_snapshot!("list", json(&["--list"]));
}

#[test]
fn a_comparison_is_json() {
    let compared = ["--compare", "standard-webhooks", "svix"];
    insta::assert_snapshot!("compare", json(&compared));
    let common = ["--from=2026-01-01T00:00:00Z", "--outage=0s..1d", "--events=10", "--rate=1"];
    insta::assert_snapshot!("compare_limits", json(&[&common[..], &compared[..]].concat()));
}

#[test]
fn a_schedule_with_jitter_is_json() {
    insta::assert_snapshot!("jitter", json(&["seed-2"]));
}

#[test]
fn an_outage_is_json() {
    let arguments = ["svix", "--outage=1m..1d", "--from=2026-01-01T00:00:00Z"];
    insta::assert_snapshot!("outage", json(&arguments));
}

#[test]
fn many_events_are_json() {
    insta::assert_snapshot!("events", json(&["zoom", "--events=100"]));
}

#[test]
fn limits_are_json() {
    let arguments = ["zoom", "--events=100", "--rate=10", "--breaker=20:1m:1h", "--retry-after=1m"];
    insta::assert_snapshot!("limits", json(&arguments));
}
