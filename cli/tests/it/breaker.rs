//! What `hookproof breaker` prints.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Ran, hookproof, run, run_with_input};

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
    let trace =
        "0s 500\n12h 404\n60h 200\n61h 500\n72h 404\n73h timeout\n192h 500\n193h 500\n194h 500\n";
    insta::assert_snapshot!("five_days", replayed(trace, &["svix"]));
}

#[test]
fn an_attempt_can_take_time_and_the_permit_of_a_probe_that_never_ends_expires() {
    let trace = "0s 500\n1s 500\n2s 500 after 3s\n3s 503\n70s never\n75s 200\n85s 404 after 1s\n\
                 90s 200 after 2s\n91s 200\n93s never\n94s 200\n";
    insta::assert_snapshot!("replay_time", replayed(trace, &["gitlab", "--agreement=seed"]));
    let json = replayed(trace, &["gitlab", "--agreement=seed", "--format=json"]);
    let rows: Value = serde_json::from_str(&json.stdout).expect("it is JSON");
    let expired: Vec<_> = rows
        .as_array()
        .expect("it is a list")
        .iter()
        .filter(|row| row["transition"]["to"] == "probe_expired")
        .collect();
    assert_eq!(expired.len(), 1, "{json}");
    assert_eq!(expired[0]["since_start_ms"], 85_000);
    assert_eq!(expired[0]["breaker"], "half-open");
    // All times of one kind: milliseconds since the start, whatever the clock said.
    let trace = "2026-01-01T00:00:00Z 500\n2026-01-01T00:00:01Z 500\n2026-01-01T00:00:02Z 500\n\
                 2026-01-01T00:00:03Z 500\n";
    let rows: Value =
        serde_json::from_str(&replayed(trace, &["gitlab", "--format=json"]).stdout).unwrap();
    assert_eq!(rows[3]["transition"]["until_since_start_ms"], 63_000);
    // Another deadline.
    let short = replayed(
        "0s 500\n1s 500\n2s 500\n3s 500\n70s never\n71s 200\n",
        &["gitlab", "--deadline=1s"],
    );
    insta::assert_snapshot!("replay_deadline", short);
}

#[test]
fn what_is_a_failure_is_told_by_the_agreement_and_410_disables() {
    let signals = |arguments: &[&str]| {
        let arguments = [arguments, &["--format=json"]].concat();
        let ran = replayed("0s 404\n1s 410\n2s 200\n", &arguments);
        let rows: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
        assert_eq!(rows[1]["transition"]["why"]["cause"], "gone", "{ran}");
        assert_eq!(rows[2]["breaker"], "disabled", "{ran}");
        rows[0]["signal"].as_str().expect("it is made").to_owned()
    };
    assert_eq!(signals(&["gitlab"]), "failure");
    assert_eq!(signals(&["svix"]), "failure");
    assert_eq!(signals(&["default"]), "neither");
    assert_eq!(signals(&["--rule=rule.toml"]), "neither");
    assert_eq!(signals(&["--rule=rule.toml", "--agreement=standard-webhooks"]), "failure");
}

#[test]
fn a_rule_can_be_json_if_its_name_says_so() {
    let folder = TempDir::new().expect("a folder");
    let rule = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).expect("it can be written");
        let mut command = hookproof(&["breaker", "--format=json", "--rule", name]);
        Ran::from(command.current_dir(folder.path()).output().expect("the program runs"))
    };
    let read = |ran: &Ran| {
        let value: Value =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {ran}"));
        value["rule"].clone()
    };
    let toml = rule("r.toml", "failures_in_a_row = 3\npause = \"10s\"\n");
    let json = rule("r.json", r#"{"failures_in_a_row": 3, "pause": "10s"}"#);
    assert_eq!(read(&json), read(&toml));
    let check = |text: &str, error: &str| {
        let ran = rule("wrong.json", text);
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(ran.stderr.starts_with(&format!("error: wrong.json: {error}")), "{ran}");
    };
    check(r#"{"pause": "0s"}"#, "`pause` is 0s; give at least 1ms");
    check(r#"{"pause": 5}"#, "`pause`: invalid type: integer `5`");
    check("{} {}", "after the end: ");
    check("failures = 3", "expected ident at line 1 column");
}

#[test]
fn a_trace_comes_from_standard_input_too() {
    let ran = run_with_input(&["breaker", "--trace=-"], "0s 500\n1s 200\n");
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 3), "{ran}");
    let ran = run_with_input(&["breaker", "--trace=-"], "later 500\n");
    assert!(ran.stderr.starts_with("error: standard input, line 1: `later` is no time"), "{ran}");
}

#[test]
fn a_trace_that_is_none_is_refused_with_the_line() {
    insta::assert_snapshot!("no_time", replayed("0s 500\nlater 500\n", &[]));
    insta::assert_snapshot!("no_order", replayed("5s 500\n1s 500\n", &[]));
    assert_eq!(replayed("0s\n", &[]).code, Some(2));
    assert_eq!(replayed("0s maybe\n", &[]).code, Some(2));
    assert_eq!(replayed("0s 500\n2026-01-01T00:00:00Z 500\n", &[]).code, Some(2));
    assert_eq!(replayed("0s 500 after\n", &[]).code, Some(2));
    assert_eq!(replayed("0s never after 1s\n", &[]).code, Some(2));
    assert_eq!(replayed("0s 500 after 1\n", &[]).code, Some(2));
    assert_eq!(replayed("0s 500\n", &["--deadline=0s"]).code, Some(2));
    insta::assert_snapshot!("no_end", replayed("0s 500\n1s 500 after 15s\n", &[]));
    assert_eq!(replayed("# nothing\n", &[]).code, Some(2));
    insta::assert_snapshot!("wrong_rule", replayed("0s 500\n", &["--rule=wrong.toml"]));
}

#[test]
fn a_window_is_told_by_what_it_asks_for_and_no_more() {
    let folder = TempDir::new().expect("a folder, and the program runs");
    let check = |window: &str, told: &str| {
        let rule = format!("failures_in_a_row = 0\n[window]\nwithin = \"10s\"\n{window}");
        fs::write(folder.path().join("rule.toml"), rule).expect("a folder, and the program runs");
        let ran = hookproof(&["breaker", "--rule=rule.toml"])
            .current_dir(folder.path())
            .output()
            .expect("a folder, and the program runs");
        let ran = Ran::from(ran);
        assert!(ran.stdout.contains(&format!("if within 10s at least {told}\n")), "{ran}");
    };
    check("failures = 3", "3 failed");
    check("failures = 3\nattempts_min = 9", "3 failed of at least 9 attempts");
    check("share_percent = 50\nattempts_min = 9", "1 failed, 50 % of at least 9 attempts");
}
