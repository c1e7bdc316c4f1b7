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
    let suites = [
        &["sim", "--seeds", "0..3"][..],
        &["sim", "--seeds", "0..3", "--scenario", "all", "--world", "model", "--full"],
        &["sim", "--seed", "5"],
        &["sim", "--seed", "5", "--world", "model", "--trace"],
        &["sim", "--list"],
    ];
    for arguments in suites {
        for line in run(arguments).stdout.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}

#[test]
fn a_small_suite_tells_what_held_as_json_too() {
    let ran = run(&["sim", "--seeds", "20..24", "--world", "wire", "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["verdict"], "held");
    assert_eq!(report["histories"], 4);
    assert_eq!(report["parts"][0]["scenario"], "mixed");
    assert_eq!(report["failures"].as_array().map(Vec::len), Some(0));
}

#[test]
fn kinds_of_history_are_listed_and_run_by_name_or_from_a_file() {
    let listed = run(&["sim", "--list"]).stdout;
    for name in ["steady", "receiver-outage-24h", "lease-and-pause", "backlog-drain"] {
        assert!(listed.lines().any(|line| line.starts_with(name)), "{listed}");
    }
    let named = run(&["sim", "--world", "model", "--scenario", "unanswered", "--seeds", "0..9"]);
    assert_eq!(named.code, Some(0), "{named}");

    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("own.toml");
    std::fs::write(&file, "name = \"own\"\nevents = [2, 2]\nfaults = [\"response lost\"]\n")
        .unwrap();
    let own = run(&["sim", "--seed", "1", "--world", "model", "--scenario-file", path(&file)]);
    assert_eq!(own.code, Some(0), "{own}");
    assert!(own.stdout.contains("own"), "{own}");

    for (text, line) in [
        ("name = \"own\"\nfaults = [\"response lost\", \"nope\"]\n", 2),
        ("faults = [\n  \"response lost\",\n\n  \"nope\",\n]\nname = \"own\"\n", 4),
    ] {
        std::fs::write(&file, text).unwrap();
        let wrong = run(&["sim", "--world", "model", "--scenario-file", path(&file)]);
        assert_eq!(wrong.code, Some(2), "{wrong}");
        let told = format!("line {line}: `faults[1]`: there is no fault \"nope\"\n");
        assert!(wrong.stderr.contains(&told), "{wrong}");
        assert!(wrong.stderr.contains("help: write sender crash, receiver crash,"), "{wrong}");
    }

    std::fs::write(&file, "events = [3, 2]\n").unwrap();
    let wrong = run(&["sim", "--world", "model", "--scenario-file", path(&file)]);
    assert_eq!(wrong.code, Some(2), "{wrong}");
    assert!(wrong.stderr.contains("`events` is [3, 2]"), "{wrong}");

    for (text, told) in [
        ("senders = 200000000\n", "`senders` is 200000000; give at most"),
        ("entities = 2\ndownstream = true\n", "`entities` cannot be together with `downstream`"),
    ] {
        std::fs::write(&file, text).unwrap();
        let wrong = run(&["sim", "--scenario-file", path(&file)]);
        assert_eq!(wrong.code, Some(2), "{wrong}");
        assert!(wrong.stderr.contains(told), "{wrong}");
    }
}

#[test]
fn kinds_of_history_are_listed_as_json_too() {
    let listed = run(&["sim", "--list", "--format", "json"]);
    assert_eq!(listed.code, Some(0), "{listed}");
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed[0]["name"], "mixed");
    assert_eq!(listed.as_array().map(Vec::len), Some(24));
    let wrong = run(&["sim", "--list", "--seed", "1"]);
    assert_eq!(wrong.code, Some(2), "{wrong}");
}

#[test]
fn a_sweep_has_a_crash_at_each_place_and_each_can_be_seen_alone() {
    let one = ["sim", "--scenario", "unanswered", "--world", "model"];
    let run_with = |more: &[&str]| run(&[&one[..], more].concat());
    let swept = run_with(&["--sweep", "--seeds", "3..4", "--format", "json"]);
    assert_eq!(swept.code, Some(0), "{swept}");
    let report: serde_json::Value = serde_json::from_str(&swept.stdout).unwrap();
    // The plain one, the one without a crash, and one for each place.
    let places = report["histories"].as_u64().expect("it counts them") - 2;
    assert!(places > 20, "{places}");

    let first = run_with(&["--seed", "3", "--crash-at", "1"]);
    assert_eq!(first.stdout.matches("CRASH at ").count(), 1, "{first}");
    let calm = run_with(&["--seed", "3", "--crash-at", "0"]);
    assert_eq!(calm.stdout.matches("CRASH at ").count(), 0, "{calm}");
    let last = run_with(&["--seed", "3", "--crash-at", &places.to_string()]);
    assert_eq!(last.stdout.matches("CRASH at ").count(), 1, "{last}");
    let beyond = run_with(&["--seed", "3", "--crash-at", &(places + 1).to_string()]);
    assert_eq!(beyond.code, Some(2), "{beyond}");
    assert!(beyond.stderr.contains(&format!("the history passes {places}\n")), "{beyond}");
}

#[test]
fn what_takes_days_is_run_in_the_model_world_only() {
    let days = ["sim", "--scenario", "receiver-outage-24h"];
    let run_with = |more: &[&str]| run(&[&days[..], more].concat());
    let one = run_with(&["--seed", "1"]);
    assert_eq!(one.code, Some(0), "{one}");
    let many = run_with(&["--seeds", "0..3"]);
    assert_eq!(many.code, Some(0), "{many}");
    assert!(!many.stdout.contains("\nwire "), "{many}");
    for more in [&["--seed", "1", "--world", "wire"][..], &["--seeds", "0..3", "--world", "wire"]] {
        let wrong = run_with(more);
        assert_eq!(wrong.code, Some(2), "{wrong}");
        assert!(wrong.stderr.contains("lasts too long for the wire world"), "{wrong}");
    }
}

fn path(path: &std::path::Path) -> &str {
    path.to_str().expect("a path of letters")
}

#[test]
fn shards_are_put_together_and_judged_as_one() {
    let home = tempfile::tempdir().unwrap();
    let files: Vec<_> = (1..=2)
        .map(|shard| {
            let which = format!("{shard}/2");
            let arguments = ["sim", "--seeds", "0..120", "--world", "model", "--shard", &which];
            let ran = run(&[&arguments[..], &["--format", "json"]].concat());
            let file = home.path().join(format!("{shard}.json"));
            std::fs::write(&file, ran.stdout).unwrap();
            file
        })
        .collect();
    let merged = run(&["sim", "merge", path(&files[0]), path(&files[1])]);
    assert_eq!(merged.code, Some(0), "{merged}");
    assert!(merged.stdout.contains("no violation in 120 histories"), "{merged}");

    let other = home.path().join("other.json");
    let seeds = ["sim", "--seeds", "200..320", "--world", "model", "--shard", "2/2"];
    std::fs::write(&other, run(&[&seeds[..], &["--format", "json"]].concat()).stdout).unwrap();
    let mixed = run(&["sim", "merge", path(&files[0]), path(&other)]);
    assert_eq!(mixed.code, Some(2), "{mixed}");
    assert!(mixed.stderr.contains("of different suites"), "{mixed}");

    let one = run(&["sim", "merge", path(&files[1])]);
    assert_eq!(one.code, Some(2), "{one}");
    assert!(one.stderr.contains("shard 1 of 2 is missing"), "{one}");
}

#[test]
fn a_report_for_ci_servers_has_a_case_for_each_part_and_gate() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("sim.xml");
    let ran = run(&["sim", "--seeds", "0..4", "--junit", path(&file)]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let xml = std::fs::read_to_string(&file).unwrap();
    for part in [
        "<testsuites name=\"hookproof sim\" tests=\"7\" skipped=\"0\" failures=\"0\" errors=\"0\"",
        "classname=\"hookproof.sim.model\"",
        "classname=\"hookproof.sim.wire\"",
        "each history can be replayed",
    ] {
        assert!(xml.contains(part), "{part} is not in {xml}");
    }
}

#[test]
fn the_first_failing_history_is_made_small_told_and_saved() {
    let home = tempfile::tempdir().unwrap();
    let (scenario, plan) = (home.path().join("hurried.toml"), home.path().join("plan.json"));
    // Whatever waits longer than a millisecond fails: a sound design cannot hold this.
    let hurried = "name = \"hurried\"\nfaults = [\"5xx\"]\noverdue_max = \"0s\"\nisolation_max = \"0s\"\n\
                   liveness_bound = \"1ms\"\nsafety = \"3s\"\n";
    std::fs::write(&scenario, hurried).unwrap();
    let arguments =
        ["sim", "--world", "model", "--scenario-file", path(&scenario), "--seeds", "0..40"];
    let ran = run(&[&arguments[..], &["--save", path(&plan)]].concat());
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.stdout.starts_with("the first failing history, made small: "), "{ran}");
    assert!(ran.stdout.ends_with("verdict: violated\n"), "{ran}");
    let command =
        format!("replay: hookproof sim --world model --scenario-file {}", path(&scenario));
    assert!(ran.stdout.contains(&command), "{ran}");

    let again = run(&["sim", "--replay", path(&plan)]);
    assert_eq!(again.code, Some(1), "{again}");
    assert!(again.stdout.contains("as recorded"), "{again}");
    let test = run(&["sim", "--replay", path(&plan), "--format", "rust"]);
    assert!(test.stdout.contains("#[test]"), "{test}");

    let nothing = run(&["sim", "--world", "model", "--seeds", "0..3", "--save", path(&plan)]);
    assert_eq!(nothing.code, Some(0), "{nothing}");
    assert!(nothing.stderr.contains("is not written"), "{nothing}");
}

#[test]
fn each_history_is_the_same_on_a_fresh_thread() {
    let ran = run(&["sim", "--seeds", "0..6", "--check-determinism"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.stdout.contains("12 histories, 0 differ"), "{ran}");
}

#[test]
fn a_suite_without_time_is_cut_short_and_proves_nothing() {
    let ran = run(&["sim", "--seeds", "0..1000000", "--world", "model", "--budget", "300ms"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.stdout.contains("the time was over"), "{ran}");
    assert!(!ran.stdout.contains("proved"), "{ran}");
}

#[test]
fn a_shard_that_has_nothing_of_a_world_is_not_invalid_for_that() {
    for shard in ["1/2", "2/2"] {
        let ran = run(&["sim", "--scenario", "steady", "--seeds", "0..2", "--shard", shard]);
        assert_eq!(ran.code, Some(0), "{ran}");
        assert!(!ran.stdout.contains("saw nothing"), "{ran}");
    }
}

#[test]
fn a_history_as_json_holds_its_trace() {
    let ran = run(&["sim", "--seed", "7", "--format", "json"]);
    let history: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(history["verdict"], "holds");
    assert!(history["trace"].as_array().is_some_and(|lines| lines.len() > 100));
}

#[test]
fn a_small_run_is_the_same_in_each_form() {
    let arguments = ["sim", "--seeds", "0..2", "--world", "model", "--scenario", "steady"];
    let table = run(&arguments);
    assert_eq!(table.code, Some(0), "{table}");
    insta::assert_snapshot!("sim_steady", table.stdout);
    let json = run(&[&arguments[..], &["--format", "json"]].concat());
    insta::assert_snapshot!("sim_steady_json", json.stdout);
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
    check(&["sim", "--shard", "3/2"], "write which part of how many");
    check(&["sim", "--scenario", "unaswered"], "unanswered");
    check(&["sim", "--scenario", "all", "--seed", "3"], "one history is of one kind");
    check(&["sim", "merge", "nothing.json"], "nothing.json");
    check(&["sim", "--exhaustive", "three-crashes"], "one-crash, two-crashes, two-events or all");
    check(&["sim", "--exhaustive", "all", "--seed", "1"], "cannot be used with");
}
