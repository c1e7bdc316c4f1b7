//! What `hookproof sign` and `hookproof verify` print.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use hookproof_core::scheme::{KeyForm, known};

use crate::program::{Ran, run, run_with_input};
use crate::width;

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
    width::assert_narrow(ran);
    assert!(!ran.to_string().contains("AQIDBAUG"), "a secret is shown: {ran}");
}

/// A secret in this form that can sign.
fn secret_of(form: KeyForm) -> &'static str {
    match form {
        KeyForm::Whsec => SECRET,
        KeyForm::Literal | KeyForm::P256Spki => "a literal secret",
        KeyForm::Hex | KeyForm::Base64 => "0102030405060708090a0b0c0d0e0f10",
        KeyForm::Ed25519 => "whsk_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=",
        KeyForm::Ed25519Hex => {
            "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2079b5562e8fe654f94078\
             b112e8a98ba7901f853ae695bed7e0e3910bad049664"
        }
    }
}

#[test]
fn the_headers_are_printed_in_each_form() {
    insta::assert_snapshot!("sign_table", sign(&[]));
    insta::assert_snapshot!("sign_json", sign(&["--format=json"]));
    let curl = sign(&["--format=curl", "--url=https://example.org/hooks"]);
    insta::assert_snapshot!("sign_curl", curl);
}

#[test]
fn every_scheme_is_printed_within_100_columns_in_each_form() {
    for scheme in known::all().into_iter().filter(|scheme| scheme.name != "sendgrid") {
        let chosen = [format!("--scheme={}", scheme.name), secret_of(scheme.key).to_owned()];
        for format in ["--format=table", "--format=json", "--format=curl"] {
            let url = "--url=https://example.org/hooks";
            let ran =
                run(&["sign", &chosen[0], "--secret", &chosen[1], "--id=msg_1", AT, url, format]);
            assert_eq!(ran.code, Some(0), "{ran}");
            assert_narrow(&ran);
        }
    }
}

#[test]
fn a_shell_reads_the_command_for_curl_as_it_was_meant() {
    // Discord's signature is 128 digits, Twilio's URL ends in 64: neither fits a line.
    for (scheme, form) in [("discord", KeyForm::Ed25519Hex), ("twilio", KeyForm::Literal)] {
        let scheme = format!("--scheme={scheme}");
        let url = "--url=https://example.org/it's/a?b=c";
        let given =
            ["sign", &scheme, "--secret", secret_of(form), AT, url, "--id=x", "--method=PUT"];
        let printed = |format| run(&[&given[..], &[format]].concat()).stdout;
        let script = format!("curl() {{ printf '%s\\n' \"$@\"; }}\n{}", printed("--format=curl"));
        let shell = Command::new("sh").args(["-c", &script]).output().expect("there is a shell");
        let read = String::from_utf8(shell.stdout).expect("it is text");
        let document: serde_json::Value = serde_json::from_str(&printed("--format=json")).unwrap();
        let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
        let mut expected = vec!["--request".to_owned(), "PUT".to_owned()];
        for header in document["headers"].as_array().expect("headers") {
            let line = format!("{}: {}", text(&header["name"]), text(&header["value"]));
            expected.extend(["--header".to_owned(), line]);
        }
        expected.extend(["--data-binary".to_owned(), String::new(), text(&document["url"])]);
        assert_eq!(read.lines().collect::<Vec<_>>(), expected, "{script}");
    }
}

#[test]
fn a_challenge_is_told_with_its_answer() {
    let folder = TempDir::new().unwrap();
    let body = folder.path().join("body.json");
    let asked =
        r#"{"event":"endpoint.url_validation","payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"}}"#;
    fs::write(&body, asked).unwrap();
    let body = format!("--body={}", body.display());
    let given = ["--scheme=zoom", "--secret=secretValueTest", &body];
    let signed = run(&[&["sign", AT, "--format=json"], &given[..]].concat());
    let document: serde_json::Value = serde_json::from_str(&signed.stdout).unwrap();
    let headers: Vec<_> = document["headers"]
        .as_array()
        .expect("headers")
        .iter()
        .map(|h| {
            format!("--header={}: {}", h["name"].as_str().unwrap(), h["value"].as_str().unwrap())
        })
        .collect();
    let headers: Vec<_> = headers.iter().map(String::as_str).collect();
    let verify = |more: &[&str]| run(&[&["verify", NOW], &given[..], &headers, more].concat());
    insta::assert_snapshot!("verify_challenge_zoom", verify(&[]));
    insta::assert_snapshot!("verify_challenge_zoom_json", verify(&["--format=json"]));
    let unsigned = run(&[&["verify", NOW], &given[..], &headers[..1]].concat());
    assert_eq!(unsigned.code, Some(1), "{unsigned}");
    assert!(!unsigned.stdout.contains("answer"), "what is not signed is not answered: {unsigned}");
    let request = "GET /hooks?challenge=abc HTTP/1.1\r\nHost: example.org\r\n\r\n";
    let dropbox = ["verify", "--scheme=dropbox", "--secret=x", "--request=-"];
    insta::assert_snapshot!("verify_challenge_dropbox", run_with_input(&dropbox, request));
    let bad = request.replace("abc", "%3Cb%3E");
    insta::assert_snapshot!("verify_challenge_refused", run_with_input(&dropbox, &bad));
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
        assert_narrow(&ran);
        insta::assert_snapshot!(name, ran);
    }
}

#[test]
fn the_schemes_are_listed_within_100_columns() {
    let ran = run(&["sign", "--list"]);
    assert_narrow(&ran);
    insta::assert_snapshot!("sign_list", ran);
    assert_eq!(run(&["verify", "--list"]).stdout, ran.stdout);
    insta::assert_snapshot!("sign_list_json", run(&["sign", "--list", "--format=json"]));
}

#[test]
fn a_body_without_the_time_that_the_scheme_looks_for_there_is_warned_of() {
    let sign = |body: &str, more: &[&str]| {
        let arguments = [&["sign", "--secret=s", "--body=-", "--scheme=linear"][..], more].concat();
        run_with_input(&arguments, body)
    };
    for more in [&[][..], &["--format=json"], &["--format=curl", "--url=https://a.example/"]] {
        let ran = sign(r#"{"a": 1}"#, more);
        assert_eq!(ran.code, Some(0), "{ran}");
        assert!(
            ran.stderr.starts_with("warning: linear has its time at `/webhookTimestamp`"),
            "{ran}"
        );
        assert_narrow(&ran);
        assert_eq!(sign(r#"{"webhookTimestamp": "soon"}"#, more).stderr, ran.stderr);
        assert_eq!(sign(r#"{"webhookTimestamp": 1700000000000}"#, more).stderr, "");
    }
    insta::assert_snapshot!("sign_linear_without_time", sign("not JSON", &[]));
    // Where the body is not signed, only curl would send it without what belongs into it.
    let mailgun = |more: &[&str]| {
        let arguments =
            [&["sign", "--secret=s", "--scheme=mailgun", "--id=t", AT, "--body=-"][..], more];
        run_with_input(&arguments.concat(), "{}")
    };
    assert_eq!(mailgun(&[]).stderr, "");
    let ran = mailgun(&["--format=curl", "--url=https://a.example/"]);
    assert_eq!(ran.stderr.matches("warning: put ").count(), 3, "{ran}");
    assert_narrow(&ran);
}

#[test]
fn a_wrong_command_line_is_refused_without_showing_the_secret() {
    let tagged = format!("v1,{SECRET}");
    for (name, arguments) in [
        ("sign_no_secret", &["sign"][..]),
        ("sign_tagged_secret", &["sign", "--secret", &tagged]),
        ("sign_unknown_scheme", &["sign", "--scheme=strip", "--secret=x"]),
        ("sign_no_id", &["sign", "--secret", SECRET]),
        ("sign_line_break", &["sign", "--scheme=gitlab", "--secret=a\r\nX-Other: 1"]),
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

#[test]
fn a_scheme_file_that_is_empty_is_refused_with_the_page_that_describes_one() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("mine.toml");
    fs::write(&file, "").unwrap();
    let scheme = format!("--scheme-file={}", file.display());
    for (tool, other) in [("sign", AT), ("verify", "--header=X-Mine: v1=00")] {
        let ran = run(&[tool, scheme.as_str(), "--secret=k", other]);
        assert_eq!(ran.code, Some(2), "{tool}: {ran}");
        assert!(ran.stderr.contains("help: add it; docs/sign.md has"), "{tool}: {ran}");
    }
}
