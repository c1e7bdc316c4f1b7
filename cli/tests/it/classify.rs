//! What `hookproof classify` prints.

use serde_json::Value;

use crate::program::{hookproof, run};

const AT: &str = "--at=1994-11-06T08:48:37Z";

#[test]
fn an_answer_is_explained_with_the_rule_that_decided() {
    insta::assert_snapshot!("503", run(&["classify", "503", "--retry-after", "120"]));
    insta::assert_snapshot!("404", run(&["classify", "404"]));
    insta::assert_snapshot!(
        "404_standard",
        run(&["classify", "404", "--preset=standard-webhooks"])
    );
    insta::assert_snapshot!("410_json", run(&["classify", "410", "--format=json"]));
    insta::assert_snapshot!("timeout", run(&["classify", "timeout"]));
    insta::assert_snapshot!("blocked", run(&["classify", "blocked"]));
    insta::assert_snapshot!("700", run(&["classify", "700", "--retry-after=60"]));
    let dns = run(&["classify", "dns"]).stdout;
    assert!(dns.contains("no answer, here the name did not resolve: a failure"), "{dns}");
}

#[test]
fn a_retry_after_is_a_date_too_and_junk_is_ignored() {
    let classify = |value: &str| run(&["classify", "429", AT, "--retry-after", value]).stdout;
    let date = classify("Sun, 06 Nov 1994 08:49:37 GMT");
    assert!(date.contains("not before 1m have passed"), "{date}");
    assert!(classify("-5").contains("malformed, so it is ignored"));
    assert!(classify("9999999999").contains("cut to retry_after_max, 24h"));
    insta::assert_snapshot!(
        "429_json",
        run(&[
            "classify",
            "429",
            AT,
            "--retry-after=Sunday, 06-Nov-94 08:49:37 GMT",
            "--format=json"
        ])
    );
}

#[test]
fn an_endpoint_is_left_alone_for_the_shorter_of_retry_after_and_throttle_max() {
    let told = |arguments: &[&str]| {
        let ran = run(&[&["classify", "503", AT], arguments].concat());
        assert!(ran.stdout.lines().all(|line| line.chars().count() <= 100), "{ran}");
        ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let long = told(&["--retry-after=9999999999"]);
    let hold = "throttle it is left alone for 5m (throttle_max by default; it asks for 24h), and";
    assert!(long.contains(hold), "{long}");
    let short = told(&["--retry-after=60"]);
    assert!(
        short.contains("left alone for 1m (at most throttle_max, by default 5m), and"),
        "{short}"
    );
    for past in ["Sun, 06 Nov 1994 08:00:00 GMT", "0"] {
        let past = told(&["--retry-after", past]);
        assert!(past.contains("throttle half as many attempts go at once"), "{past}");
        assert!(past.contains("delivery retried when the schedule says so endpoint"), "{past}");
        assert!(past.contains("Retry-After asks for no wait"), "{past}");
        assert!(!past.contains("for 0s") && !past.contains("before 0s"), "{past}");
    }
}

#[test]
fn what_a_rule_calls_delivered_is_not_said_to_have_been_taken() {
    let folder = tempfile::TempDir::new().unwrap();
    let rules = folder.path().join("rules.json");
    let text = r#"{"rules": [{"when": "timeout", "then": "delivered"}]}"#;
    std::fs::write(&rules, text).unwrap();
    let rules = format!("--rules={}", rules.display());
    let ran = run(&["classify", "timeout", &rules]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.stdout.contains("counts as delivered, since the rule calls it so"), "{ran}");
    assert!(!ran.stdout.contains("took responsibility"), "{ran}");
    assert!(run(&["classify", "200"]).stdout.contains("took responsibility"));
}

#[test]
fn the_rules_are_listed_within_100_columns() {
    let list = run(&["classify", "--list"]);
    assert!(list.stdout.lines().all(|line| line.chars().count() <= 100), "{list}");
    insta::assert_snapshot!("rules", list);
    let json: Value = serde_json::from_str(&run(&["classify", "--list", "--format=json"]).stdout)
        .expect("it is JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(11));
    let retried = run(&["classify", "--list", "--preset=standard-webhooks"]).stdout;
    assert!(retried.contains("(client_error retry)") && !retried.contains("final)"), "{retried}");
    insta::assert_snapshot!("rules_json", run(&["classify", "--list", "--format=json"]));
}

#[test]
fn rules_of_ones_own_come_from_a_file() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = "[[rules]]\nwhen = \"404\"\nthen = \"disable_endpoint\"\n";
    std::fs::write(folder.path().join("rules.toml"), file).unwrap();
    let classify = |arguments: &[&str]| {
        let ran = hookproof(arguments).current_dir(folder.path()).output().unwrap();
        crate::program::Ran::from(ran)
    };
    insta::assert_snapshot!("own_rule", classify(&["classify", "404", "--rules=rules.toml"]));
    std::fs::write(folder.path().join("rules.toml"), file.replace("404", "4xx")).unwrap();
    insta::assert_snapshot!("own_rule_wrong", classify(&["classify", "404", "--rules=rules.toml"]));
    std::fs::write(folder.path().join("rules.toml"), file.replace("\"404\"", "404")).unwrap();
    insta::assert_snapshot!("own_rule_bare", classify(&["classify", "404", "--rules=rules.toml"]));
}

#[test]
fn what_is_no_outcome_is_refused_with_all_that_are() {
    insta::assert_snapshot!("no_outcome", run(&["classify", "5xx"]));
    insta::assert_snapshot!("no_header", run(&["classify", "dns", "--retry-after=1"]));
}
