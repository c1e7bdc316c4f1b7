//! `hookproof send` and `hookproof receive`: what they refuse, and how they begin and end.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};

use tempfile::TempDir;

use crate::program::{Ran, ended, hookproof, run, signal};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[test]
fn a_receiver_without_a_source_is_told_how_to_name_one() {
    let ran = run(&["receive"]);
    let fresh = ran.stderr.split("shop=").nth(1).and_then(|rest| rest.lines().next());
    let fresh = fresh.expect("a secret is proposed").to_owned();
    assert_ne!(run(&["receive"]).stderr, ran.stderr, "the proposed secret is a fresh one");
    let stderr = ran.stderr.replace(&fresh, "[secret]");
    insta::assert_snapshot!("receive_without_source", Ran { stderr, ..ran });
}

#[test]
fn a_misspelt_field_is_told_with_file_line_and_the_fields_there_are() {
    let text = "listen = \"127.0.0.1:0\"\n\n[sender.policy]\nconect_timeout = \"3s\"\n";
    insta::assert_snapshot!("config_unknown_field", refused("send", text));
}

#[test]
fn a_wrong_value_is_told_with_file_line_and_what_is_allowed() {
    let text = "[sender]\nattempts_max = \"many\"\n";
    insta::assert_snapshot!("config_wrong_value", refused("send", text));
}

#[test]
fn a_policy_that_does_not_hold_together_is_told_with_its_line() {
    let text = "[sender.policy]\nconnect_timeout = \"3s\"\ntotal_timeout = \"1s\"\n";
    insta::assert_snapshot!("config_contradiction", refused("send", text));
}

#[test]
fn a_secret_that_is_none_is_told_with_its_line() {
    let text = "[receiver]\n[[receiver.sources]]\nid = \"shop\"\nsecrets = [\"hush\"]\n";
    insta::assert_snapshot!("config_wrong_secret", refused("receive", text));
}

#[test]
fn a_file_that_is_not_there_is_the_users_mistake() {
    for arguments in [
        ["send", "--config", "does-not-exist.toml"],
        ["receive", "--config", "does-not-exist.toml"],
        ["send", "--ca-file", "does-not-exist.pem"],
    ] {
        let ran = run(&arguments);
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(ran.stderr.contains("does-not-exist"), "{ran}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test takes the port before the program can")]
fn a_port_in_use_ends_with_3() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = in_a_folder(&["send", "--listen", &address]);
    assert_eq!(ran.code, Some(3), "{ran}");
    let stderr = ran.stderr.replace(&address, "[address]").replace(" (os error 98)", "");
    insta::assert_snapshot!("port_in_use", Ran { stderr, ..ran });
}

#[test]
fn a_database_that_another_process_holds_ends_with_3() {
    let folder = TempDir::new().unwrap();
    let (mut first, _) = start(folder.path(), &["send"]);
    let second = hookproof(&["send", "--listen", "127.0.0.1:0"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let second = Ran::from(second);
    assert_eq!(second.code, Some(3), "{second}");
    assert!(second.stderr.contains("is in use by another process"), "{second}");
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn a_database_of_the_other_kind_is_not_touched() {
    let folder = TempDir::new().unwrap();
    let (mut sender, _) = start(folder.path(), &["send"]);
    signal(&sender, "TERM");
    ended(&mut sender);
    let source = format!("shop={SECRET}");
    let receiver = ["receive", "--database", "hookproof-sender.db", "--source", &source];
    let ran = hookproof(&receiver).arg("--listen=127.0.0.1:0").current_dir(folder.path()).output();
    let ran = Ran::from(ran.unwrap());
    assert_eq!(ran.code, Some(3), "{ran}");
    assert!(ran.stderr.contains("is not a hookproof receiver database"), "{ran}");
}

#[test]
fn sigterm_ends_a_sender_gracefully_and_what_it_accepted_is_there_again() {
    let folder = TempDir::new().unwrap();
    let (mut sender, address) = start(folder.path(), &["send"]);
    let published = request(address, "POST /events?type=order.paid", "{\"order\":1}");
    assert!(published.starts_with("HTTP/1.1 202"), "{published}");
    signal(&sender, "TERM");
    assert_eq!(ended(&mut sender).code(), Some(0), "{}", said(&mut sender));
    assert!(said(&mut sender).contains("ended"));

    let (mut sender, address) = start(folder.path(), &["send"]);
    let totals = request(address, "GET /totals", "");
    assert!(totals.contains("\"events\":1"), "{totals}");
    signal(&sender, "INT");
    assert_eq!(ended(&mut sender).code(), Some(0));
}

#[test]
fn a_second_signal_does_not_wait_for_open_requests() {
    let folder = TempDir::new().unwrap();
    let (mut sender, address) = start(folder.path(), &["send"]);
    // A publish whose body never comes holds up the graceful end.
    let mut open = connect(address);
    let head = "POST /events?type=a HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n";
    open.write_all(head.as_bytes()).unwrap();
    assert!(request(address, "GET /health", "").contains("200 OK"));
    signal(&sender, "TERM");
    crate::program::eventually("it accepts nothing more", || is_refused(address));
    assert_eq!(sender.try_wait().unwrap(), None, "it waits for the open request");
    signal(&sender, "TERM");
    assert_eq!(ended(&mut sender).code(), Some(128 + 15));
}

#[test]
fn the_end_of_standard_input_ends_a_process_that_is_bound_to_it() {
    let source = format!("shop={SECRET}");
    for arguments in [
        vec!["send", "--listen", "127.0.0.1:0", "--until-stdin-closes"],
        vec!["receive", "--listen", "127.0.0.1:0", "--until-stdin-closes", "--source", &source],
    ] {
        let ran = in_a_folder(&arguments);
        assert_eq!(ran.code, Some(0), "{ran}");
        assert!(ran.stdout.starts_with("listening on http://127.0.0.1:"), "{ran}");
        assert_eq!(ran.stdout.lines().count(), 1, "{ran}");
    }
}

#[test]
fn only_an_address_beyond_this_machine_is_warned_about() {
    // Standard input is at its end, so nothing is served for longer than a moment.
    let loopback = in_a_folder(&["send", "--listen", "127.0.0.1:0", "--until-stdin-closes"]);
    assert!(!loopback.stderr.contains("no password"), "{loopback}");
    let any = in_a_folder(&["send", "--listen", "0.0.0.0:0", "--until-stdin-closes"]);
    assert_eq!(any.code, Some(0), "{any}");
    assert!(any.stderr.contains("no password"), "{any}");
}

#[test]
fn logs_are_json_lines_if_wanted_and_filtered_by_rust_log() {
    let folder = TempDir::new().unwrap();
    let arguments = ["send", "--listen=127.0.0.1:0", "--until-stdin-closes", "--log-format=json"];
    let ran: Ran = hookproof(&arguments).current_dir(folder.path()).output().unwrap().into();
    assert!(!ran.stderr.is_empty());
    for line in ran.stderr.lines() {
        let log: serde_json::Value = serde_json::from_str(line).expect("each line is JSON");
        assert!(log["level"].is_string() && log["fields"]["message"].is_string(), "{line}");
    }
    let mut quiet = hookproof(&arguments);
    let quiet = quiet.env("RUST_LOG", "error").current_dir(folder.path()).output().unwrap();
    assert_eq!(Ran::from(quiet).stderr, "");
    let mut wrong = hookproof(&arguments);
    let wrong = wrong.env("RUST_LOG", "a=b=c").current_dir(folder.path()).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}

/// What the command says to a configuration file of this text.
fn refused(command: &str, text: &str) -> Ran {
    let folder = TempDir::new().expect("there is room for a folder");
    fs::write(folder.path().join("hookproof.toml"), text).expect("the file can be written");
    hookproof(&[command, "--config", "hookproof.toml"])
        .current_dir(folder.path())
        .output()
        .expect("the program can be run")
        .into()
}

fn in_a_folder(arguments: &[&str]) -> Ran {
    let folder = TempDir::new().expect("there is room for a folder");
    hookproof(arguments).current_dir(folder.path()).output().expect("the program can be run").into()
}

/// Starts a server on a free port and waits until it says where it listens.
fn start(folder: &Path, arguments: &[&str]) -> (Child, SocketAddr) {
    let mut child = hookproof(arguments)
        .args(["--listen", "127.0.0.1:0"])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be run");
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("standard output is a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("the program says something");
    let address = line.trim_end().strip_prefix("listening on http://").expect("it says where");
    (child, address.parse().expect("it is an address"))
}

/// What an ended process has said on standard error and nobody has read yet.
fn said(child: &mut Child) -> String {
    let mut text = String::new();
    let stderr = child.stderr.as_mut().expect("standard error is a pipe");
    stderr.read_to_string(&mut text).expect("it is text");
    text
}

#[expect(clippy::disallowed_methods, reason = "the test is a client of the real program")]
fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).expect("the program listens")
}

#[expect(clippy::disallowed_methods, reason = "the test is a client of the real program")]
fn is_refused(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_err()
}

/// The whole response, head and body.
fn request(address: SocketAddr, what: &str, body: &str) -> String {
    let mut stream = connect(address);
    let length = body.len();
    let head = format!(
        "{what} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("the program reads");
    stream.write_all(body.as_bytes()).expect("the program reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("the program answers");
    response
}
