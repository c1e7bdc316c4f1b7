//! What `hookproof sign` and `hookproof verify` print.

use std::fs;

use tempfile::TempDir;

use crate::program::{Ran, run, run_with_input};

const SECRET: &str = "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";
const AT: &str = "--timestamp=2023-11-14T22:13:20Z";
const NOW: &str = "--now=2023-11-14T22:13:20Z";
const REQUEST: &str = "POST /hooks HTTP/1.1\r\nHost: example.org\r\nwebhook-id: msg_1\r\n\
    webhook-timestamp: 1700000000\r\n\
    webhook-signature: v1,6rPUBT4j/aSU6g0hCptOxuIGT7ayGTTXzwyPH4oTBRc=\r\n\r\n";

fn sign(more: &[&str]) -> Ran {
    let arguments = [&["sign", "--secret", SECRET, "--id=msg_1", AT, "--body=-"], more].concat();
    run_with_input(&arguments, r#"{"a": 1}"#)
}

/// Verifies the signed request with this body behind it.
fn verify(body: &str, more: &[&str]) -> Ran {
    verify_at(NOW, body, more)
}

fn verify_at(now: &str, body: &str, more: &[&str]) -> Ran {
    let signed = sign(&["--format=json"]);
    let document: serde_json::Value = serde_json::from_str(&signed.stdout).expect("it is JSON");
    let signature = document["headers"][2]["value"].as_str().expect("it is signed");
    let (before, _) = REQUEST.split_once("v1,").expect("it has a signature");
    let request = format!("{before}{signature}\r\n\r\n{body}");
    let arguments = [&["verify", "--secret", SECRET, "--request=-", now], more].concat();
    run_with_input(&arguments, &request)
}

fn assert_narrow(ran: &Ran) {
    for line in ran.stdout.lines().chain(ran.stderr.lines()) {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(!ran.to_string().contains("AQIDBAUG"), "a secret is shown: {ran}");
}

#[test]
fn the_headers_are_printed_in_each_form() {
    insta::assert_snapshot!("sign_table", sign(&[]));
    insta::assert_snapshot!("sign_json", sign(&["--format=json"]));
    let curl = sign(&["--format=curl", "--url=https://example.org/hooks"]);
    insta::assert_snapshot!("sign_curl", curl);
    for ran in [sign(&[]), curl] {
        assert_narrow(&ran);
    }
}

#[test]
fn a_signed_request_is_verified() {
    let ran = verify(r#"{"a": 1}"#, &[]);
    assert_eq!(ran.code, Some(0), "{ran}");
    insta::assert_snapshot!("verify_table", ran);
    insta::assert_snapshot!("verify_json", verify(r#"{"a": 1}"#, &["--format=json"]));
}

#[test]
fn a_request_that_does_not_verify_is_told_why() {
    for (name, ran) in [
        ("verify_compact", verify(r#"{"a":1}"#, &[])),
        ("verify_compact_json", verify(r#"{"a":1}"#, &["--format=json"])),
        ("verify_line_break", verify("{\"a\": 1}\n", &[])),
        ("verify_unexplained", verify("other", &[])),
        ("verify_old", verify_at("--now=2023-11-15T00:00:00Z", r#"{"a": 1}"#, &[])),
    ] {
        assert_eq!(ran.code, Some(1), "{ran}");
        if !name.ends_with("json") {
            assert_narrow(&ran);
        }
        insta::assert_snapshot!(name, ran);
    }
}

#[test]
fn the_schemes_are_listed_within_100_columns() {
    let ran = run(&["sign", "--list"]);
    assert_narrow(&ran);
    insta::assert_snapshot!("sign_list", ran);
    assert_eq!(run(&["verify", "--list"]).stdout, ran.stdout);
}

#[test]
fn a_wrong_command_line_is_refused_without_showing_the_secret() {
    let tagged = format!("v1,{SECRET}");
    for (name, arguments) in [
        ("sign_no_secret", &["sign"][..]),
        ("sign_tagged_secret", &["sign", "--secret", &tagged]),
        ("sign_unknown_scheme", &["sign", "--scheme=strip", "--secret=x"]),
        ("sign_no_id", &["sign", "--secret", SECRET]),
        ("verify_no_time", &["verify", "--scheme=github", "--secret=x", "--tolerance=5m"]),
    ] {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(2), "{ran}");
        assert_narrow(&ran);
        insta::assert_snapshot!(name, ran);
    }
}

#[test]
fn a_scheme_described_in_toml_signs_and_verifies_its_own() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("mine.toml");
    let page = fs::read_to_string(crate::graph::workspace_root().join("docs/sign.md")).unwrap();
    let (_, rest) = page.split_once("```toml\n").expect("the page has an example");
    fs::write(&file, rest.split_once("```").expect("it ends").0).unwrap();
    let scheme = format!("--scheme-file={}", file.display());
    let signed = run(&["sign", &scheme, "--secret=k", AT, "--format=json"]);
    let document: serde_json::Value = serde_json::from_str(&signed.stdout).expect("it is JSON");
    let header = &document["headers"][0];
    let header = format!(
        "--header={}: {}",
        header["name"].as_str().unwrap(),
        header["value"].as_str().unwrap()
    );
    let ran = run(&["verify", &scheme, "--secret=k", NOW, &header]);
    assert_eq!(ran.code, Some(0), "{ran}");
}
