//! What `hookproof breaker` prints.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Ran, hookproof, run};

const TRACE: &str = "\
# three failures, a pause, two probes
0s 500
1s 503
2s 404
3s timeout
4s 500
5s 500
70s 500
4m 200
4m1s 500
";

fn replayed(trace: &str, arguments: &[&str]) -> Ran {
    let folder = TempDir::new().expect("a folder, and the program runs");
    fs::write(folder.path().join("trace.txt"), trace).expect("a folder, and the program runs");
    let rule = "failures_in_a_row = 0\n[window]\nwithin = \"10s\"\nfailures = 2\nshare_percent = 50\n\
                attempts_min = 4\n";
    fs::write(folder.path().join("rule.toml"), rule).expect("a folder, and the program runs");
    fs::write(folder.path().join("wrong.toml"), "failures_in_a_row = 3\npause = \"0s\"\n")
        .expect("a folder, and the program runs");
    let ran = hookproof(&["breaker", "--trace=trace.txt"])
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .expect("a folder, and the program runs");
    let ran = Ran::from(ran);
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 100), "{ran}");
    ran
}

#[test]
fn each_known_rule_is_printed_within_100_columns() {
    for name in ["default", "gitlab", "svix"] {
        let ran = run(&["breaker", name]);
        assert!(ran.stdout.lines().all(|line| line.chars().count() <= 100), "{ran}");
        insta::assert_snapshot!(name, ran);
    }
    insta::assert_snapshot!("gitlab_json", run(&["breaker", "gitlab", "--format=json"]));
}

#[test]
fn a_trace_is_replayed_with_each_transition_and_why() {
    insta::assert_snapshot!("replay", replayed(TRACE, &["gitlab"]));
    insta::assert_snapshot!("replay_json", replayed("0s 500\n1s 200\n", &["--format=json"]));
    let window = "0s 200\n1s 200\n2s 500\n3s 500\n4s 200\n";
    insta::assert_snapshot!("replay_window", replayed(window, &["--rule=rule.toml"]));
}

#[test]
fn case_40_gitlabs_rule_gives_up_at_the_fortieth_failure_and_not_before() {
    // A failure a day, after the first four: each is a probe.
    let trace: String = (0..41).map(|day| format!("{}h 500\n", day * 24)).collect();
    let ran = replayed(&trace, &["gitlab", "--format=json"]);
    let rows: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    assert_eq!(rows[2]["breaker"], "closed");
    assert_eq!(rows[3]["why"], "4 failures in a row: pauses until 72h1m", "{ran}");
    assert_eq!(rows[38]["breaker"], "open");
    assert_eq!(rows[39]["why"], "40 failures in a row: disabled, its owner is told");
    assert_eq!(rows[40]["signal"], Value::Null);
}

#[test]
fn five_days_of_nothing_but_failures_disable_and_a_success_begins_them_anew() {
    let again: String = (121..127).map(|hour| format!("{hour}h 500\n")).collect();
    let trace = format!("0s 500\n119h 500\n119h59m 200\n{again}240h 500\n241h 500\n");
    insta::assert_snapshot!("five_days", replayed(&trace, &["svix"]));
}

#[test]
fn a_trace_that_is_none_is_refused_with_the_line() {
    insta::assert_snapshot!("no_time", replayed("0s 500\nlater 500\n", &[]));
    insta::assert_snapshot!("no_order", replayed("5s 500\n1s 500\n", &[]));
    assert_eq!(replayed("0s\n", &[]).code, Some(2));
    assert_eq!(replayed("0s maybe\n", &[]).code, Some(2));
    assert_eq!(replayed("# nothing\n", &[]).code, Some(2));
    insta::assert_snapshot!("wrong_rule", replayed("0s 500\n", &["--rule=wrong.toml"]));
}
