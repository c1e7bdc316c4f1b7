//! What `hookproof schedule` knows and what it does not: attempts that next to never come, and what a
//! sender does not publish.

use serde_json::Value;

use crate::program::run;
use crate::schedule::{FROM, POLICY, assert_narrow, with_policy};

/// Full jitter under a greatest age: late attempts are possible, but next to never come.
const BY_AGE: &str = "[schedule]\njitter = \"full\"\n[schedule.backoff]\nkind = \"exponential\"\n\
                      base = \"10s\"\nfactor = 2\ncap = \"1h\"\nattempts_max = 30\n\
                      [life]\nage_max = \"2h\"\n";

#[test]
fn no_mean_is_told_of_an_attempt_that_no_life_came_to() {
    let with = |text: &str, more: &[&str]| {
        with_policy("p.toml", text, &[&["schedule", "--policy=p.toml"], more].concat())
    };
    let json = |text: &str, more: &[&str]| {
        let ran = with(text, &[&["--format=json"], more].concat());
        serde_json::from_str::<Value>(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran}"))
    };
    let value = json(BY_AGE, &["--outage=0s..2h"]);
    let attempts = value["attempts"].as_array().expect("a list");
    let shown = attempts.len() as u64;
    assert!((15..30).contains(&shown), "some are left without a life: {shown}");
    for attempt in &attempts[1..] {
        for of in ["mean_ms", "p50_ms", "p95_ms"] {
            assert_ne!(attempt["since_event"][of], 0, "{attempt}");
        }
    }
    let unreached = &value["attempts_unreached"];
    assert_eq!((&unreached["first"], &unreached["last"]), (&(shown + 1).into(), &30.into()));
    assert_eq!(unreached["last_since_event"]["highest_ms"], 7_200_000, "{unreached}");
    // The facts are about what is possible.
    assert_eq!(value["attempts_made"]["highest"], 30);
    assert_eq!(value["outage"]["attempts_within"]["highest"], 30);
    assert_eq!(value["longest_wait_after_recovery_ms"], 3_600_000);
    let table = with(BY_AGE, &[FROM]);
    assert_narrow(&table.stdout);
    insta::assert_snapshot!("unreached", table);
    for format in ["csv", "svg", "html"] {
        let text = with(BY_AGE, &["--format", format]).stdout;
        assert!(!text.contains(&format!("attempt {}:", shown + 1)), "{format}: {text}");
        assert!(text.contains(if format == "csv" { "\n15," } else { "attempt 15:" }), "{text}");
    }
    let limited = with(BY_AGE, &["--rate=10"]).stdout;
    let words = limited.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = format!("not shown without the limits, attempts {} to 30 are possible", shown + 1);
    assert!(words.contains(&told), "{limited}");
    let by_age_alone = BY_AGE.replace("attempts_max = 30", "attempts_max = 10000");
    let rows = with(&by_age_alone, &["--format=csv"]).stdout.lines().count() as u64;
    assert_eq!(rows, shown + 1, "a head, and the same attempts");
    let value = json(&by_age_alone, &[]);
    assert_eq!(
        (&value["attempts_made"]["highest"], &value["attempts_unreached"]["last"]),
        (&10_000.into(), &10_000.into())
    );
    let none_left = json(POLICY, &[]);
    assert!(none_left.get("attempts_unreached").is_none(), "{none_left}");
}

#[test]
fn what_is_assumed_of_a_senders_retry_after_is_called_an_assumption() {
    let check = |name: &str, assumed: bool| {
        let arguments = ["schedule", name, "--retry-after=48h"];
        let table = run(&arguments);
        assert_narrow(&table.stdout);
        let words = table.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        let told = "what this sender makes of a Retry-After is not published, so Hookproof's own \
                    bound is used, 24h";
        assert_eq!(words.contains(told), assumed, "{table}");
        let json = run(&[&arguments[..], &["--format=json"]].concat());
        let value: Value = serde_json::from_str(&json.stdout).expect("it is JSON");
        let asked = &value["retry_after_asked"];
        assert_eq!(asked["assumed"], assumed, "{name}: {asked}");
        assert_eq!(
            (&asked["asked_ms"], &asked["most_ms"]),
            (&172_800_000.into(), &86_400_000.into())
        );
        let page = run(&[&arguments[..], &["--format=html"]].concat()).stdout;
        assert_eq!(page.contains("an assumption"), assumed, "{page}");
    };
    for preset in hookproof_core::preset::all() {
        check(preset.name, !["svix", "kit"].contains(&preset.name));
    }
    let compared = run(&["schedule", "--compare", "svix", "github", "--retry-after=1h"]);
    assert_narrow(&compared.stdout);
    insta::assert_snapshot!("compare_retry_after", compared);
    let own = with_policy("p.json", "{}", &["schedule", "--policy=p.json", "--retry-after=1h"]);
    assert!(!own.stdout.contains("assumption"), "{own}");
    let none = run(&["schedule", "github", "--format=json"]);
    assert!(!none.stdout.contains("retry_after_asked"), "{none}");
}

#[test]
fn a_span_that_is_none_is_refused_as_such() {
    let check = |arguments: &[&str], told: &str| {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(2), "{ran}");
        let words = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(told), "{told}: {ran}");
    };
    let negative = "`-5s` is not a span of time: write whole numbers with a unit each";
    check(&["schedule", "--retry-after", "-5s"], negative);
    check(&["verify", "--tolerance", "-5s"], negative);
    check(&["breaker", "--deadline", "-5s"], negative);
    check(
        &["schedule", "--breaker=3:1m:1s"],
        "the longest pause, 1s, is below the first, 1m: write it at least as long, or leave it out",
    );
    check(&["schedule", "--breaker=3:0s"], "a pause is 0s; give at least 1ms");
    check(&["schedule", "--breaker=0:1m"], "write failures in a row, the first pause and perhaps");
}

#[test]
fn what_waits_at_an_endpoint_that_is_given_up_is_not_called_dead() {
    let text = "[gate.breaker.disable]\nfailures_in_a_row = 3\n";
    let told = |text: &str, more: &[&str]| {
        let ran = with_policy("p.toml", text, &[&["schedule"], more].concat());
        assert_eq!(ran.code, Some(0), "{ran}");
        ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let policy = ["--policy=p.toml", "--events=10"];
    let waits = "one that still waits when the endpoint is given up is kept, and goes on once \
                 somebody enables the endpoint";
    let table = told(text, &policy);
    assert!(
        table.contains("is given up 0s after the event, and what waits there is kept"),
        "{table}"
    );
    assert!(table.contains(waits), "{table}");
    assert!(told(text, &["--compare", "p.toml", "github"]).contains(waits));
    let aged = told(&format!("[life]\nage_max = \"1d\"\n{text}"), &policy);
    assert!(aged.contains("given up is kept until that age, and goes on if"), "{aged}");
    let json = |text: &str, more: &[&str]| {
        let arguments = [&["schedule", "--format=json", "--policy=p.toml"], more].concat();
        let ran = with_policy("p.toml", text, &arguments);
        let value: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
        value["afterwards"]["if_given_up"].clone()
    };
    assert_eq!(json(text, &[])["phase"], "scheduled");
    // A breaker of the command line takes the place of the policy's, and gives nothing up.
    assert_eq!(json(text, &["--breaker=3:1m"]), Value::Null);
    assert_eq!(json("", &[]), Value::Null);
}
