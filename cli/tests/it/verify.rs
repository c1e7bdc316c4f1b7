//! What `hookproof verify` says of a request that is wrong, and of a command line that is.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Ran, run, run_with_input};
use crate::width::assert_narrow;

const NOW: &str = "--now=2023-11-14T22:13:20Z";
const STRIPE: [&str; 4] = ["verify", NOW, "--scheme=stripe", "--secret=whsec_test"];

/// Verifies a request with no body by Stripe's scheme, with these values of its header.
fn stripe(values: &[&str], more: &[&str]) -> Ran {
    let headers: Vec<_> =
        values.iter().map(|value| format!("--header=Stripe-Signature: {value}")).collect();
    let headers: Vec<_> = headers.iter().map(String::as_str).collect();
    let ran = run(&[&STRIPE[..], &headers, more].concat());
    assert_narrow(&ran);
    ran
}

/// All that is printed, in one line.
fn words(ran: &Ran) -> String {
    ran.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_check_that_no_usual_mistake_explains_is_said_to_be_unexplained() {
    let none = "none of the usual mistakes explains it: compare the headers";
    for values in [&[][..], &["nonsense"], &["t=1700000000,v1=00"], &["t=soon,v1=00"], &["a", "b"]]
    {
        let ran = stripe(values, &[]);
        assert_eq!(ran.code, Some(1), "{ran}");
        assert!(words(&ran).contains(none), "{values:?}: {ran}");
        assert_eq!(ran.stdout.matches("\ncause ").count(), 1, "{ran}");
    }
    let signed = format!("--header=X-Square-HmacSha256-Signature: {}=", "A".repeat(43));
    let ran = run(&["verify", "--scheme=square", "--secret=k", &signed]);
    assert!(words(&ran).contains("usual mistakes explains it: give --url as"), "{ran}");
}

#[test]
fn a_signature_without_the_fields_beside_it_is_told_what_is_missing() {
    let alone = "5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd";
    insta::assert_snapshot!("verify_bare_signature", stripe(&[alone], &[]));
    let json = stripe(&[alone], &["--format=json"]).stdout;
    let value: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(value["causes"][0]["code"], "bare-signature", "{json}");
}

#[test]
fn a_check_of_the_time_tells_the_value_the_form_and_the_tolerance() {
    let check = |time: &str, more: &[&str], told: &str| {
        let ran = stripe(&[&format!("t={time},v1={}", "0".repeat(64))], more);
        assert!(words(&ran).contains(told), "{told}: {ran}");
    };
    let form = "the timestamp is `2023-11-14`, and the scheme has whole seconds since 1970, in plain \
                digits, as in 1767225600";
    check("2023-11-14", &[], form);
    check("1699996400", &[], "the timestamp is 1h old, beyond the tolerance of 5m");
    check("1700003600", &["--tolerance=7m"], "is 1h in the future, beyond the tolerance of 7m");
    check(&"9".repeat(99), &[], &format!("the timestamp is `{}…`", "9".repeat(40)));
}

#[test]
fn of_several_headers_lines_or_secrets_the_wrong_one_is_named_and_no_secret_shown() {
    let check = |ran: &Ran, error: &str| {
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(ran.stderr.starts_with(&format!("error: {error}")), "{error}: {ran}");
        assert!(!ran.to_string().contains("hidden"), "{ran}");
        assert_narrow(ran);
    };
    let one = run(&["verify", "--secret=x", "--header=hidden"]);
    check(&one, "--header has no name and colon");
    let second = run(&["verify", "--secret=x", "--header=a: b", "--header=hidden"]);
    check(&second, "--header number 2 has no name and colon");
    let request = |headers: &str| {
        let text = format!("POST / HTTP/1.1\nHost: a.example\n{headers}\n\nhello");
        run_with_input(&["verify", "--secret=x", "--request=-"], &text)
    };
    check(&request("X-A: b\nhidden"), "the request cannot be read: line 4, a header, has no name");
    for length in ["-5", "five", ""] {
        let told =
            format!("the request cannot be read: its Content-Length, `{length}`, is no number");
        check(&request(&format!("Content-Length: {length}")), &told);
    }
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("s.txt");
    fs::write(&file, "hidden\n").unwrap();
    let file = file.display().to_string();
    let good = "--secret=whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";
    let is_none = "is not a secret of the scheme standard-webhooks";
    check(&run(&["verify", "--secret=hidden"]), &format!("--secret {is_none}"));
    check(&run(&["sign", good, "--secret=hidden"]), &format!("--secret number 2 {is_none}"));
    let in_file = run(&["sign", good, "--secret-file", &file]);
    assert!(in_file.stderr.starts_with("error: what is in "), "{in_file}");
    check(&in_file, &format!("what is in {file} {is_none}"));
    let older = run(&["verify", good, "--older-secret=hidden"]);
    check(&older, &format!("--older-secret {is_none}"));
}
