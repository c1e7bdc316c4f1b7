//! What `hookproof schedule` prints.

use std::fs;
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Ran, hookproof, run};

pub(crate) const FROM: &str = "--from=2026-01-01T00:00:00Z";

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

pub(crate) const POLICY: &str = r#"
retry_after_spread = "10s"

[schedule]
jitter = { proportional = { percent = 20 } }
cap_after_jitter = "50m"

[schedule.backoff]
kind = "exponential"
base = "10s"
factor = 3
cap = "1h"
attempts_max = 12

[life]
age_max = "3h"
"#;

/// Runs with a policy in a file of this name, in its folder.
pub(crate) fn with_policy(name: &str, text: &str, arguments: &[&str]) -> Ran {
    let folder = TempDir::new().expect("there is room");
    fs::write(folder.path().join(name), text).expect("it can be written");
    hookproof(arguments).current_dir(folder.path()).output().expect("the program can be run").into()
}

#[test]
fn a_policy_of_ones_own_is_printed_with_its_greatest_age() {
    let ran = with_policy("mine.toml", POLICY, &["schedule", "--policy", "mine.toml"]);
    assert_narrow(&ran.stdout);
    insta::assert_snapshot!("policy", ran);
}

#[test]
fn the_age_alone_can_bound_a_policy_and_of_many_attempts_some_have_a_row() {
    let every_5_s = "[schedule.backoff]\nkind = \"linear\"\nbase = \"5s\"\nstep = \"0s\"\n\
                     cap = \"5s\"\n[life]\nage_max = \"3d\"\n";
    let ran = with_policy("mine.toml", every_5_s, &["schedule", "--policy", "mine.toml"]);
    assert_narrow(&ran.stdout);
    insta::assert_snapshot!("policy_by_age", ran);
    let arguments = ["schedule", "--policy", "mine.toml", "--format=csv"];
    let whole = with_policy("mine.toml", every_5_s, &arguments);
    assert_eq!(whole.stdout.lines().count(), 1 + 3 * 24 * 3600 / 5 + 1, "with its head");

    let endless = every_5_s.split("[life]").next().unwrap_or_default();
    let refused = with_policy("mine.toml", endless, &["schedule", "--policy", "mine.toml"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("is left out, and so is life.age_max"), "{refused}");
}

#[test]
fn a_policy_in_json_is_the_same() {
    let json = serde_json::to_string(&toml::from_str::<Value>(POLICY).unwrap()).unwrap();
    let arguments = |file| ["schedule", "--format=csv", "--policy", file];
    let one = with_policy("mine.toml", POLICY, &arguments("mine.toml"));
    let other = with_policy("mine.json", &json, &arguments("mine.json"));
    assert_eq!((one.code, &one.stdout), (Some(0), &other.stdout), "{other}");
}

#[test]
fn a_policy_that_cannot_work_is_refused_with_the_field() {
    let zero = POLICY.replace("attempts_max = 12", "attempts_max = 0");
    insta::assert_snapshot!(
        "policy_zero_attempts",
        with_policy("mine.toml", &zero, &["schedule", "--policy", "mine.toml"])
    );
    let typo = r#"{"schedule": {"backoff": {"kind": "list", "waits": ["5"]}}}"#;
    insta::assert_snapshot!(
        "policy_json_wrong",
        with_policy("mine.json", typo, &["schedule", "--policy", "mine.json"])
    );
    insta::assert_snapshot!("policy_missing", run(&["schedule", "--policy", "nowhere.toml"]));
}

#[test]
fn a_wrong_field_of_a_backoff_is_named_with_its_whole_path() {
    let check = |name: &str, text: &str, error: &str| {
        let ran = with_policy(name, text, &["schedule", "--policy", name]);
        assert_eq!(ran.code, Some(2), "{text}: {ran}");
        assert!(ran.stderr.starts_with(&format!("error: {name}{error}")), "{text}: {ran}");
        let is_of_policies =
            !ran.stderr.contains("docs/") || ran.stderr.contains("docs/schedule.md");
        assert!(is_of_policies, "{text}: {ran}");
    };
    let with = |from: &str, to: &str| POLICY.replace(from, to);
    let factor = with("factor = 3", "factor = 1.5");
    check("p.toml", &factor, ", line 11: `schedule.backoff.factor`: invalid type: floating point");
    let list = |waits: &str| format!("[schedule.backoff]\nkind = \"list\"\nwaits = {waits}\n");
    check("p.toml", &list("[\"5\"]"), ", line 3: `schedule.backoff.waits[0]`: `5` is not a span");
    check("p.toml", &list("[5]"), ", line 3: `schedule.backoff.waits[0]`: invalid type: integer");
    let cap = r#"{"schedule": {"backoff": {"kind": "linear", "cap": 5}}}"#;
    check("p.json", cap, ": `schedule.backoff.cap`: invalid type: integer `5`");
    let kind = with("\"exponential\"", "\"fibonacci\"");
    check("p.toml", &kind, ", line 9: `schedule.backoff.kind`: unknown variant `fibonacci`");
    let none = with("cap = \"1h\"", "");
    check("p.toml", &none, ", line 8: `schedule.backoff`: missing field `cap`");
    let other = list("[]\nstep = \"5s\"");
    check("p.toml", &other, ", line 1: `schedule.backoff`: unknown field `step`");
    let low = with("cap = \"1h\"", "cap = \"1s\"");
    check("p.toml", &low, ", line 12: `schedule.backoff.cap` is 1s, but must be at least the base");
}

#[test]
fn field_06_a_cap_equal_to_the_base_is_seen_in_the_effective_schedule() {
    let text = "[schedule.backoff]\nkind = \"exponential\"\nbase = \"2s\"\nfactor = 2\n\
                cap = \"2s\"\nattempts_max = 10\n";
    let ran = with_policy("p.toml", text, &["schedule", "--policy", "p.toml"]);
    assert!(ran.stdout.contains("last attempt    18s after the event"), "{ran}");
    assert!(ran.stdout.contains("outlasts        an outage of 18s"), "{ran}");
}

#[test]
fn field_07_an_age_limit_is_not_hidden() {
    let text = "[life]\nage_max = \"24h\"\n";
    let ran = with_policy("p.toml", text, &["schedule", "--policy", "p.toml"]);
    assert!(ran.stdout.contains("attempts        7\n"), "{ran}");
    assert!(ran.stdout.contains("greatest age    24h"), "{ran}");
}

#[test]
fn an_outage_marks_the_attempts_within_it_and_tells_the_first_after() {
    insta::assert_snapshot!(
        "outage",
        run(&["schedule", FROM, "--outage=2026-01-01T00:00:00Z..2026-01-01T12:00:00Z"])
    );
    let by_span = run(&["schedule", FROM, "--outage=0s..12h"]);
    let by_time = run(&["schedule", FROM, "--outage=2025-12-31T00:00:00Z..2026-01-01T12:00:00Z"]);
    assert_eq!(by_span.stdout, by_time.stdout, "for this event it begins with the event");
}

#[test]
fn a_days_outage_is_not_survived_by_seed_2() {
    let ran = run(&["schedule", "seed-2", "--outage=0s..24h"]);
    assert!(ran.stdout.contains("not survived"), "{ran}");
}

#[test]
fn an_outage_that_is_none_is_refused() {
    for wrong in ["24h", "24h..0s", "1h..1h", "x..y", "2026-01-01T00:00:00Z..2026-01-02T00:00:00Z"]
    {
        let ran = run(&["schedule", "--outage", wrong]);
        assert_eq!(ran.code, Some(2), "{wrong}: {ran}");
    }
}

#[test]
fn a_burst_is_told_with_what_a_breaker_a_rate_and_a_retry_after_make_of_it() {
    insta::assert_snapshot!("events", run(&["schedule", "seed-2", "--events=1000"]));
    let limits = ["schedule", "--events=1000", "--rate=10", "--breaker=20:1m:1h"];
    insta::assert_snapshot!("events_limited", run(&limits));
    insta::assert_snapshot!("retry_after", run(&["schedule", "seed-2", "--retry-after=1m"]));
}

#[test]
fn what_limits_make_of_each_attempt_is_told_in_each_format() {
    let arguments = ["schedule", "svix", FROM, "--outage=0s..1h", "--events=1000", "--rate=10"];
    let table = run(&arguments);
    assert_narrow(&table.stdout);
    insta::assert_snapshot!("limits_from", table);
    let json = run(&[&arguments[..], &["--format=json"][..]].concat());
    let json: Value = serde_json::from_str(&json.stdout).expect("it is JSON");
    let first = &json["attempts"][0]["with_limits"];
    assert_eq!((&first["events"], &first["last_ms"]), (&1000.into(), &99_000.into()), "{json}");
    let csv = run(&[&arguments[..], &["--format=csv"][..]].concat());
    let head = csv.stdout.lines().next().expect("a head").split(',');
    let at = head.clone().position(|name| name == "with_limits_last_ms").expect("it is told");
    let line = csv.stdout.lines().nth(1).expect("a first attempt");
    assert_eq!(line.split(',').nth(at), Some("99000"), "{csv}");
    assert_eq!(line.split(',').count(), head.count(), "{csv}");
}

#[test]
fn many_events_meet_the_gate_of_their_own_policy_and_a_preset_has_none() {
    let events = |gate: &str| {
        let text = format!("[schedule.backoff]\nkind = \"list\"\nwaits = [\"10s\"]\n{gate}");
        let arguments = ["schedule", "--policy=p.toml", "--events=100", "--format=json"];
        let ran = with_policy("p.toml", &text, &arguments);
        let value: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
        value["events"].clone()
    };
    assert_eq!(events("[gate]\nbreaker = \"off\"\n")["requests_first_hour"], 200);
    // 20 failures, then probes 1, 3, 7, 15 and 31 minutes later.
    assert_eq!(events("")["requests_first_hour"], 25, "the default breaker");
    let given_up = events("[gate.breaker.disable]\nfailures_in_a_row = 21\n");
    assert_eq!((&given_up["requests"], &given_up["given_up_ms"]), (&21.into(), &60_000.into()));
    assert_eq!(given_up["requests_first_hour"], 21);
    let preset = run(&["schedule", "--events=100", "--format=json"]);
    let preset: Value = serde_json::from_str(&preset.stdout).expect("it is JSON");
    assert_eq!(preset["events"]["requests"], 1000);
}

#[test]
fn more_requests_than_can_be_lived_through_are_refused_with_what_would_go() {
    let text = "[schedule.backoff]\nkind = \"linear\"\nbase = \"1s\"\nstep = \"0s\"\ncap = \"1s\"\n\
                attempts_max = 10000\n";
    let arguments = ["schedule", "--policy=p.toml", "--events=1001"];
    insta::assert_snapshot!("too_many_events", with_policy("p.toml", text, &arguments));
    let ran = run(&["schedule", "--rate=10001"]);
    assert_eq!(ran.code, Some(2), "{ran}");
}

#[test]
fn schedules_are_put_side_by_side() {
    let arguments = ["schedule", "--outage=0s..24h", "--events=1000", "--compare"];
    let names = ["standard-webhooks", "svix", "seed-2"];
    let table = run(&[&arguments[..], &names[..]].concat());
    assert_narrow(&table.stdout);
    insta::assert_snapshot!("compare", table);
    let json = run(&[&["schedule", "--format=json", "--compare"][..], &names[..]].concat());
    let value: Value = serde_json::from_str(&json.stdout).expect("it is JSON");
    assert_eq!(value.as_array().map(Vec::len), Some(3));
}

#[test]
fn a_comparison_is_printed_in_each_format_and_with_dates() {
    let compared = ["--compare", "standard-webhooks", "svix", "github"];
    let arguments = |format| {
        [&["schedule", FROM, "--outage=0s..24h", "--format", format][..], &compared[..]].concat()
    };
    for format in ["table", "csv", "svg", "html"] {
        let ran = run(&arguments(format));
        if format == "table" {
            assert_narrow(&ran.stdout);
        }
        insta::assert_snapshot!(format!("compare_{format}"), ran);
    }
    let csv = run(&arguments("csv")).stdout;
    let fields = |line: &str| line.split(',').count();
    let counts: Vec<_> = csv.lines().map(|line| fields(line.split('"').next().unwrap())).collect();
    // The last field is in quotes where it holds a comma.
    assert_eq!(counts.len(), 4, "{csv}");
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}: {csv}");
    for format in ["svg", "html"] {
        let text = run(&arguments(format)).stdout;
        assert_well_formed(&text);
        assert!(!text.contains("href") && !text.contains("src="), "{text}");
    }
}

#[test]
fn with_jitter_dates_and_an_outage_no_column_is_left_out() {
    let ran = run(&["schedule", "svix", FROM, "--outage=0s..1h"]);
    assert_narrow(&ran.stdout);
    let heads: Vec<_> = ran.stdout.lines().filter(|line| line.starts_with("attempt ")).collect();
    assert_eq!(heads.len(), 2, "{ran}");
    let names: Vec<_> = heads.iter().flat_map(|head| head.split_whitespace()).collect();
    let (waits, since) =
        (["lowest", "mean", "p50", "p95", "highest"], ["lowest", "mean", "highest"]);
    let times = ["outage", "attempt", "earliest", "mean", "latest"];
    assert_eq!(names, [&["attempt"][..], &waits, &since, &times].concat(), "{ran}");
    insta::assert_snapshot!("jitter_outage_from", ran);
}

#[test]
fn a_retry_after_counts_for_as_much_as_the_sender_lets_it() {
    let wait = |name: &str, asked: &str, attempt: usize| {
        let ran = run(&["schedule", name, "--format=json", "--retry-after", asked]);
        let value: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
        let wait = &value["attempts"][attempt - 1]["wait"];
        (wait["lowest_ms"].as_u64().unwrap(), wait["highest_ms"].as_u64().unwrap())
    };
    assert_eq!(wait("svix", "1h", 2), (8_000, 12_000), "twice the wait, and its jitter");
    assert_eq!(wait("svix", "0s", 2), (4_000, 6_000));
    assert_eq!(wait("svix", "90m", 5), (5_760_000, 8_640_000), "the wait is longer");
    assert_eq!(wait("kit", "2d", 2), (86_400_000, 86_400_000), "a day at most");
    assert_eq!(wait("seed-2", "1h", 2), (3_600_000, 3_600_000), "no such bound");
    insta::assert_snapshot!("svix_retry_after", run(&["schedule", "svix", "--retry-after=1h"]));
}

#[test]
fn the_bounds_of_a_policy_on_retry_after_hold_in_the_table_and_in_the_senders_own_machines() {
    let text = "[retry_after]\nmin = \"10s\"\npercent_max = 150\n";
    let arguments = ["schedule", "--policy=p.toml", "--retry-after=1s"];
    let ran = with_policy("p.toml", text, &arguments);
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = "1s after each attempt; it counts as 10s; it counts for at most 150 % of the wait";
    assert!(words.contains(told), "{ran}");
    let driven = [&arguments[..], &["--rate=10", "--format=json"]].concat();
    let json = with_policy("p.toml", text, &driven).stdout;
    let value: Value = serde_json::from_str(&json).expect("it is JSON");
    let second = &value["attempts"][1];
    assert_eq!(second["wait"]["highest_ms"], 7_500, "one and a half times 5 s: {json}");
    assert_eq!(second["with_limits"]["first_ms"], 7_500, "{json}");
    let wrong = with_policy("p.toml", "[retry_after]\nmin = \"25h\"\n", &arguments);
    assert_eq!(wrong.code, Some(2), "{wrong}");
    assert!(wrong.stderr.contains("line 2: `retry_after.min` is longer than"), "{wrong}");
}

#[test]
fn the_facts_are_those_of_what_the_limits_let_through() {
    let facts = |arguments: &[&str]| {
        let ran = run(&[&["schedule", "--format=json"], arguments].concat());
        serde_json::from_str::<Value>(&ran.stdout).expect("it is JSON")
    };
    let rated = facts(&["--events=1000", "--rate=10"]);
    assert_eq!(rated["with_limits"], true);
    assert_eq!(rated["last_attempt_since_event"]["lowest_ms"], 272_200_000);
    assert_eq!(rated["last_attempt_since_event"]["highest_ms"], 272_299_000);
    let plain = facts(&["--events=1000"]);
    assert_eq!(plain["with_limits"], false);
    assert_eq!(plain["last_attempt_since_event"]["highest_ms"], 272_105_000);
    // One event, behind a breaker that opens at its first failure and pauses for ever longer.
    let broken = facts(&["--breaker=1:1h:64h"]);
    assert_eq!(broken["requests_first_hour"]["highest"], 1);
    assert_eq!(broken["attempts"][1]["with_limits"]["first_ms"], 3_600_000);
    let quiet = &broken["longest_quiet_after_recovery_ms"];
    assert_eq!(quiet, 64 * 3_600_000, "{broken}");
    assert_eq!(
        broken["survived_outage"]["at_best_ms"],
        broken["last_attempt_since_event"]["highest_ms"]
    );
}

#[test]
fn an_event_that_is_given_up_before_its_first_attempt_survives_nothing() {
    let text = "[schedule.backoff]\nkind = \"list\"\nwaits = [\"10s\"]\n\
                [gate.breaker.disable]\nfailures_in_a_row = 21\n";
    let arguments = ["schedule", "--policy=p.toml", "--events=100", "--outage=0s..1h"];
    let table = with_policy("p.toml", text, &arguments);
    assert!(table.stdout.contains("attempts        0 to 1, 0.2 on average"), "{table}");
    assert!(
        table.stdout.contains("an outage of 0s for sure, 600ms in the mean, 1m at best"),
        "{table}"
    );
    assert!(table.stdout.contains("\n      2   10s              10s    none"), "{table}");
    let words = table.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("not survived: no attempt comes after it"), "{table}");
}

#[test]
fn after_an_outage_the_breaker_closes_and_the_backlog_leaves_at_the_rate() {
    let outage = |limits: &[&str]| {
        let common = ["schedule", "--format=json", "--events=1000", "--outage=0s..24h"];
        let ran = run(&[&common[..], limits].concat());
        let value: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
        value["outage"].clone()
    };
    // The hourly probe: 63 minutes of ever longer pauses, then one an hour.
    let broken = outage(&["--breaker=20:1m:1h"]);
    assert_eq!(broken["first_after"]["lowest_ms"], 86_400_000 + 3 * 60_000, "{broken}");
    assert_eq!(broken["first_after"]["highest_ms"], 86_400_000 + 3 * 60_000, "all at once");
    let both = outage(&["--breaker=20:1m:1h", "--rate=10"]);
    let [first, last] = ["lowest_ms", "highest_ms"].map(|end| both["first_after"][end].as_u64());
    assert_eq!(last.unwrap() - first.unwrap(), 99_000, "ten a second: {both}");
    assert_eq!(both["survived_percent"], 100);
}

#[test]
fn one_of_a_thing_is_told_in_the_singular() {
    for arguments in [
        &["schedule", "github", "--events=1"][..],
        &["schedule", "github", "--events=1", "--outage=0s..1h", FROM],
        &["schedule", "--events=1", "--rate=1"],
        &["schedule", "--events=2", "--rate=1", "--breaker=1:1m"],
        &["schedule", "--breaker=1:5h:64h"],
        &["schedule", "seed-2", "--breaker=1:1m", "--retry-after=1m"],
        &["schedule", "--compare", "github", "zoom", "--events=1", "--rate=1"],
    ] {
        let text = run(arguments).stdout;
        let words: Vec<_> = text.split_whitespace().collect();
        for pair in words.windows(2).filter(|pair| pair[0] == "1") {
            let noun = pair[1].trim_end_matches([',', ';', '.', ':']);
            let plural = ["events", "requests", "retries", "attempts", "failures"].contains(&noun);
            assert!(!plural, "{arguments:?}: 1 {noun}: {text}");
        }
        assert!(!text.contains("1 event that fail ") && !text.contains("retrys"), "{text}");
    }
    insta::assert_snapshot!(
        "one_event",
        run(&["schedule", "github", "--events=1", "--outage=0s..1h"])
    );
    insta::assert_snapshot!("one_event_breaker", run(&["schedule", "seed-2", "--breaker=1:1m"]));
}

#[test]
fn what_comes_after_the_last_attempt_is_told_for_each_sender() {
    let told = |name: &str, what: Option<&str>| {
        let table = run(&["schedule", name]).stdout;
        let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
        let fact = format!("if it fails {}", what.unwrap_or("nothing is published"));
        assert!(words.contains(&fact), "{name}: {table}");
        let json = run(&["schedule", name, "--format=json"]).stdout;
        let value: Value = serde_json::from_str(&json).expect("it is JSON");
        assert_eq!(value["afterwards"]["what"].as_str(), what, "{name}");
        assert!(value["afterwards"].get("phase").is_none(), "{name} is not our own sender");
    };
    for preset in hookproof_core::preset::all() {
        told(preset.name, preset.afterwards);
    }
    let ran = with_policy("p.json", "{}", &["schedule", "--policy=p.json", "--format=json"]);
    let value: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    assert_eq!(value["afterwards"]["phase"], "dead");
}

#[test]
fn a_timeline_is_printed_for_spreadsheets_as_a_picture_and_as_a_page() {
    let arguments = |format| ["schedule", "svix", "--outage=0s..1h", "--format", format];
    for format in ["csv", "svg", "html"] {
        insta::assert_snapshot!(format!("svix_{format}"), run(&arguments(format)));
    }
}

#[test]
fn the_picture_of_every_schedule_is_well_formed_and_needs_nothing_else() {
    for name in ["github", "adyen", "seed-2", "standard-webhooks"] {
        for format in ["svg", "html"] {
            let text = run(&["schedule", name, "--format", format]).stdout;
            assert_well_formed(&text);
            assert!(!text.contains("href") && !text.contains("src="), "{name}: {text}");
        }
    }
}

/// That each element is closed in its place, and each `&` and `<` begins something.
fn assert_well_formed(text: &str) {
    let mut open = Vec::new();
    for part in text.trim_start_matches("<!DOCTYPE html>").split('<').skip(1) {
        let (tag, rest) = part.split_once('>').expect("a tag ends");
        assert!(!rest.contains('>'), "{part}");
        for entity in part.split('&').skip(1) {
            assert!(
                ["amp;", "lt;", "gt;", "quot;"].iter().any(|e| entity.starts_with(e)),
                "{part}"
            );
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{part}");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap_or(tag));
        }
    }
    assert!(open.is_empty(), "{open:?} never end");
}

pub(crate) fn assert_narrow(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "longer than 100 columns: {line}");
    }
}
