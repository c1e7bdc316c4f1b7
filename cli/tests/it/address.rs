//! What `hookproof address` prints.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Ran, hookproof, run};

#[test]
fn each_target_is_allowed_or_denied_by_a_row_of_a_registry() {
    insta::assert_snapshot!(
        "address_table",
        run(&[
            "address",
            "https://hooks.example.com/in",
            "8.8.8.8",
            "http://127.0.0.1:8072/hooks",
            "http://[::ffff:169.254.169.254]/latest/meta-data/iam/security-credentials",
            "2002:a9fe:a9fe::",
            "64:ff9b::8.8.8.8",
            "2001:0:808:808::f5ff:fffe",
            "168.63.129.16",
            "localhost.",
            "kubernetes",
            "http://0x7f.1/",
            "http://example.com:pass@169.254.169.254/",
            "https://münchen.de/",
        ])
    );
}

#[test]
fn json_has_the_row_and_what_was_embedded() {
    let ran = run(&["address", "--format=json", "::ffff:10.0.0.1", "db.localhost", "https://a b/"]);
    insta::assert_snapshot!("address_json", ran);
    let value: Value = serde_json::from_str(&ran.stdout).expect("it is JSON");
    assert_eq!(value[0]["embedded"]["form"], "mapped");
    assert_eq!(value[0]["reason"]["block"], "10.0.0.0/8");
}

/// Settings of a policy, and what they let through and what not.
const LISTS: [&str; 9] = [
    "--scheme=https",
    "--port=443",
    "--port=8443",
    "--allow-host=*.internal",
    "https://10.1.2.3:8443/in",
    "https://hooks.internal/in",
    "https://example.com:6379/",
    "http://example.com:443/",
    "https://10.9.0.1/",
];

#[test]
fn schemes_ports_and_lists_are_those_of_a_policy_and_say_so() {
    let lists = [&["address", "--allow-cidr=10.1.0.0/16"], &LISTS[..]].concat();
    insta::assert_snapshot!("address_lists_table", run(&lists));
    let ran = run(&[&["address", "--format=json", "--deny-cidr=10.1.2.3"], &LISTS[..]].concat());
    insta::assert_snapshot!("address_lists_json", ran);
}

/// What is said of the targets under the configuration file of this text.
fn judged_under(text: &str, arguments: &[&str]) -> Ran {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("hookproof.toml"), text).expect("it can be written");
    let command = [&["address", "--config=hookproof.toml"], arguments].concat();
    hookproof(&command).current_dir(folder.path()).output().expect("it runs").into()
}

#[test]
fn a_target_is_judged_by_the_configuration_file_of_the_sender() {
    let text = "[sender.address]\nschemes = [\"https\"]\nports = [8443]\n\
                allow_cidrs = [\"10.1.0.0/16\"]\nallow_hosts = [\"receiver\"]\n\
                deny_cidrs = [\"93.184.215.14\"]\n";
    let check = |arguments: &[&str], code| {
        let ran = judged_under(text, arguments);
        assert_eq!(ran.code, Some(code), "{ran}");
    };
    check(&["https://10.1.2.3:8443/", "https://receiver:8443/", "10.1.0.1", "receiver"], 0);
    check(&["http://10.1.2.3:8443/"], 1);
    check(&["https://10.1.2.3/"], 1);
    check(&["93.184.215.14"], 1);
    check(&["--scheme=http", "--port=80", "http://10.1.2.3/"], 0);
    check(&["--scheme=http", "--port=80", "https://10.1.2.3:8443/"], 1);
    check(&["--allow-cidr=10.2.0.0/16", "10.1.0.1", "10.2.0.1"], 0);
    check(&["--allow-cidr=93.184.215.0/24", "93.184.215.14"], 1);
    check(&["--allow-loopback", "https://localhost:8443/"], 0);
}

#[test]
fn a_slip_in_the_configuration_file_is_told_with_its_line() {
    let check = |text: &str, told: &str| {
        let ran = judged_under(text, &["8.8.8.8"]);
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(ran.stderr.contains(told), "{ran}");
    };
    check("[sender.address]\nports = [0]\n", "line 2: `sender.address.ports`");
    check("[sender.address]\nallow_cidr = []\n", "line 2: `sender.address.allow_cidr`");
}

#[test]
fn the_exit_code_is_1_as_soon_as_one_is_denied_and_2_for_a_wrong_argument() {
    let check = |arguments: &[&str], code| {
        let ran = run(&[&["address"], arguments].concat());
        assert_eq!(ran.code, Some(code), "{ran}");
    };
    check(&["8.8.8.8", "https://example.com/"], 0);
    check(&["8.8.8.8", "10.0.0.1"], 1);
    check(&["--allow-cidr=10.0.0.0/8", "10.0.0.1", "::ffff:10.0.0.1"], 0);
    check(&["--allow-cidr=10.0.0.0/8", "--deny-cidr=10.0.0.1", "10.0.0.1"], 1);
    check(&["--allow-loopback", "http://localhost:1/", "127.0.0.1", "http://[::1]/"], 0);
    check(&["--allow-host=receiver", "--allow-host=*.internal", "receiver", "a.internal"], 0);
    check(&["--allow-host=receiver", "sender"], 1);
    check(&["--allow-cidr=10.0.0.1/8", "10.0.0.1"], 2);
    check(&["--allow-host=10.0.0.1", "10.0.0.1"], 2);
    check(&["--port=8443", "https://example.com:8443/", "8.8.8.8", "example.com"], 0);
    check(&["--port=8443", "https://example.com/"], 1);
    check(&["--scheme=HTTPS", "https://example.com/"], 0);
    check(&["--scheme=ftp", "ftp://example.com/"], 2);
    check(&["--port=0", "8.8.8.8"], 2);
    check(&["--port=65536", "8.8.8.8"], 2);
    check(&["--config=none.toml", "8.8.8.8"], 2);
    check(&[], 2);
}

#[test]
fn no_line_is_longer_than_100_columns_whatever_the_target() {
    let long = "x".repeat(60);
    let name = format!("{long}.{long}.{long}.internal");
    let url = format!("https://{name}/{long}?{long}");
    let allow = format!("--allow-host={name}");
    for arguments in [&["address", &url, &name, "a\tb\u{1b}[31m"][..], &["address", &allow, &name]]
    {
        let ran = run(arguments);
        for line in ran.stdout.lines() {
            assert!(line.chars().count() <= 100, "longer than 100 columns: {line}");
            assert!(!line.contains(char::is_control), "{line:?}");
        }
    }
}
