//! What `hookproof address` prints.

use serde_json::Value;

use crate::program::run;

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
