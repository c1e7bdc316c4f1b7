//! `hookproof demo`, with real processes that are really killed.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{ended, eventually, hookproof, run, run_with_input, signal};

/// Forty events, some without a key.
fn events() -> String {
    let line = |number: u32| match number % 3 {
        0 => format!("{{\"type\":\"order.paid\",\"data\":{{\"order\": {number}}}}}\n"),
        _ => format!("{{\"key\":\"k{number}\",\"type\":\"order.paid\",\"data\":\"ü\"}}\n"),
    };
    (0..40).map(line).collect()
}

#[test]
fn forty_events_survive_two_kills_of_each_process() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("events.jsonl");
    fs::write(&file, events()).unwrap();
    let arguments = ["demo", "--kills=2", "--seed=7", "--format=json", "--events"];
    let mut command = hookproof(&arguments);
    let ran = command.arg(&file).env("TMPDIR", folder.path()).output().unwrap();
    let ran = crate::program::Ran::from(ran);
    assert_eq!(ran.code, Some(0), "{ran}");
    let tally: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    assert_eq!(tally["proven"], true, "{ran}");
    let check = |field: &str, count: u64| assert_eq!(tally[field], count, "{field}: {ran}");
    check("seed", 7);
    check("accepted", 40);
    check("effects", 40);
    check("twice", 0);
    check("lost", 0);
    check("kills_sender", 2);
    check("kills_receiver", 2);
    check("kills_at_work", 4);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing but the events is left");
}

/// The run with each number that time or chance decides put as `…`.
fn masked(text: &str) -> String {
    const VARIES: [&str; 7] = [
        "\"took_ms\": ",
        "\"stalled_ms\": ",
        "\"publishes_repeated\": ",
        "\"acknowledgements_lost\": ",
        "\"kills_at_work\": ",
        "\"attempts\": ",
        "\"received_again\": ",
    ];
    let masked = |line: &str| match VARIES.into_iter().find(|name| line.contains(name)) {
        Some(name) => format!("  {name}\u{2026},\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(masked).collect()
}

#[test]
fn the_tally_is_told_as_json() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("events.jsonl");
    fs::write(&file, "{\"type\":\"a\",\"data\":1}\n").unwrap();
    let mut command = hookproof(&["demo", "--kills=1", "--seed=7", "--format=json", "--events"]);
    let ran = command.arg(&file).env("TMPDIR", folder.path()).output().unwrap();
    let ran = crate::program::Ran::from(ran);
    assert_eq!(ran.code, Some(0), "{ran}");
    insta::assert_snapshot!("demo_json", masked(&ran.stdout));
}

#[test]
fn the_table_ends_with_the_verdict_and_the_folder_is_kept_if_wanted() {
    let folder = TempDir::new().unwrap();
    let events = "{\"type\":\"a\",\"data\":1}\n\n{\"type\":\"b\",\"data\":2}";
    let file = folder.path().join("events.jsonl");
    fs::write(&file, events).unwrap();
    let mut command = hookproof(&["demo", "--kills=1", "--keep", "--events"]);
    let ran = command.arg(&file).env("TMPDIR", folder.path()).output().unwrap();
    let ran = crate::program::Ran::from(ran);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.stdout.ends_with("each accepted event has had its effect exactly once\n"), "{ran}");
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 100), "{ran}");
    let kept = ran.stderr.lines().find_map(|line| line.strip_prefix("kept: ")).expect("it is told");
    for file in ["sender.db", "sender.log", "sender.toml", "receiver.db", "receiver.log"] {
        assert!(Path::new(kept).join(file).is_file(), "{file}");
    }
}

#[test]
fn a_wrong_line_is_told_before_anything_starts() {
    let lines = "{\"type\":\"order.paid\",\"data\":{}}\n{\"type\":\"order paid\",\"data\":{}}\n";
    let ran = run_with_input(&["demo", "--events", "-"], lines);
    insta::assert_snapshot!("demo_wrong_line", ran);
}

#[test]
fn a_key_that_is_used_twice_is_told_with_both_lines() {
    let line = "{\"key\":\"a\",\"type\":\"order.paid\",\"data\":{}}\n";
    let ran = run_with_input(&["demo", "--events", "-"], &line.repeat(2));
    insta::assert_snapshot!("demo_key_twice", ran);
}

#[test]
fn a_file_without_events_is_refused() {
    let ran = run_with_input(&["demo", "--events", "-"], "\n\n");
    assert_eq!(ran.code, Some(2), "{ran}");
    let ran = run(&["demo", "--events", "does-not-exist.jsonl"]);
    assert_eq!(ran.code, Some(2), "{ran}");
}

#[test]
fn an_interrupt_ends_both_processes_and_removes_the_folder() {
    let temp = TempDir::new().unwrap();
    let (mut demo, addresses) = start(temp.path());
    signal(&demo, "INT");
    assert_eq!(ended(&mut demo).code(), Some(128 + 2));
    eventually("nobody listens any more", || addresses.iter().all(|address| !is_open(*address)));
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
}

#[test]
fn the_processes_end_even_if_the_demo_is_killed_itself() {
    let temp = TempDir::new().unwrap();
    let (mut demo, addresses) = start(temp.path());
    demo.kill().unwrap();
    demo.wait().unwrap();
    eventually("nobody listens any more", || addresses.iter().all(|address| !is_open(*address)));
}

/// A demo without kills that is at work, and where its two processes listen.
fn start(temp: &Path) -> (Child, [SocketAddr; 2]) {
    let demo = hookproof(&["demo", "--kills=0"])
        .env("TMPDIR", temp)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program can be run");
    let folder = || -> Option<PathBuf> { Some(fs::read_dir(temp).ok()?.next()?.ok()?.path()) };
    let address = |side: &str| -> Option<SocketAddr> {
        let text = fs::read_to_string(folder()?.join(format!("{side}.toml"))).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("listen = "))?;
        line.trim_matches('"').parse().ok()
    };
    let mut addresses = None;
    eventually("both processes listen", || {
        addresses = address("sender").zip(address("receiver"));
        addresses.is_some_and(|(sender, receiver)| is_open(sender) && is_open(receiver))
    });
    let (sender, receiver) = addresses.expect("both have an address");
    (demo, [sender, receiver])
}

#[expect(clippy::disallowed_methods, reason = "the test looks from outside who listens")]
fn is_open(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_ok()
}
