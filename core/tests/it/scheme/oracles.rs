//! The packages that vendors give to their users, for Python: they accept what we sign, and we
//! accept what they sign.
//!
//! `HOOKPROOF_PYTHON` names the interpreter, by default `python3`. A package that is not there is
//! named on standard error, and where `HOOKPROOF_CI` is set it fails the test; `.ci/run` installs
//! them all.

use std::collections::BTreeSet;
use std::env;
use std::io::Write as _;
use std::process::{Command, Stdio};

use hookproof_core::scheme::{Message, Request, Scheme};
use serde::Deserialize;
use serde_json::{Value, json};

use super::vectors::VECTORS;
use super::{NOW, carried, key, scheme};

/// The schemes of which a package is asked.
const ASKED: [&str; 16] = [
    "adyen",
    "convoy",
    "discord",
    "github",
    "hubspot",
    "mailgun",
    "paddle",
    "sendgrid",
    "slack",
    "square",
    "standard-webhooks",
    "standard-webhooks-v1a",
    "stripe",
    "svix",
    "twilio",
    "workos",
];

/// Each holds a 1, which the other side changes, and is text: some packages take nothing else.
const BODIES: [&str; 4] = [
    "{\"total\":1}",
    "{\"type\": \"order.paid\", \"total\": 12.50, \"name\": \"Jürgen 💶\"}\n",
    "[\n  1,\r\n  {\"a\": \"\\u00fc \\/ <>&'\"}\n]\r\n",
    "1",
];
const FORM: &str = "Digits=1&From=%2B14158675309&Name=J%C3%BCrgen+B&Empty=";
const URL: &str = "https://example.org/hooks?x=1&y=2";
const ID: &str = "msg_1";

/// A message before it is signed.
struct Case {
    scheme: Scheme,
    secret: &'static str,
    url: String,
    body: &'static str,
}

impl Case {
    fn new(name: &str, body: &'static str, is_form: bool) -> Self {
        let secret = VECTORS.iter().find(|(known, ..)| *known == name);
        let secret = secret.map_or("a seed", |(_, secret, _)| *secret);
        let scheme = scheme(name);
        let url = scheme.url_to_call(URL, body.as_bytes(), is_form);
        Self { scheme, secret, url, body }
    }

    /// SendGrid's signatures are made by nobody else.
    fn can_be_signed(&self) -> bool {
        self.scheme.name != "sendgrid"
    }

    /// What the other side is asked: our signed request, if we can sign.
    fn question(&self) -> Value {
        let Self { scheme, secret, url, body } = self;
        let (mut headers, mut sent) = (Vec::new(), body.as_bytes().to_vec());
        if self.can_be_signed() {
            let message = Message { id: ID, at: NOW, method: "POST", url, body: body.as_bytes() };
            let signed = scheme.sign(&[key(scheme, secret)], &message).expect(&scheme.name);
            (headers, sent) = carried(&signed, body.as_bytes());
        }
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text");
        let headers: serde_json::Map<_, _> =
            headers.into_iter().map(|(name, value)| (name, text(value).into())).collect();
        json!({
            "scheme": scheme.name,
            "secret": secret,
            "id": ID,
            "at": NOW.as_secs(),
            "url": url,
            "headers": headers,
            "body": text(sent),
            "is_signed": self.can_be_signed(),
        })
    }
}

/// What the other side says of one question.
#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Missing {
        missing: String,
    },
    Given {
        accepts_its_own: bool,
        accepts: bool,
        accepts_changed: bool,
        headers: serde_json::Map<String, Value>,
        body: String,
        secret: String,
    },
}

#[test]
fn packages_of_the_vendors_accept_what_we_sign_and_sign_what_we_accept() {
    let each = ASKED.iter().flat_map(|name| BODIES.map(|body| Case::new(name, body, false)));
    let cases: Vec<_> = each.chain([Case::new("twilio", FORM, true)]).collect();
    let mut absent = BTreeSet::new();
    match ask(&cases) {
        Ok(answers) => {
            assert_eq!(answers.len(), cases.len());
            for (case, answer) in cases.iter().zip(answers) {
                absent.extend(check(case, answer));
            }
        }
        Err(reason) => {
            absent.insert(reason);
        }
    }
    if !absent.is_empty() {
        let absent = absent.into_iter().collect::<Vec<_>>().join(", ");
        assert!(env::var_os("HOOKPROOF_CI").is_none(), "Python lacks what is asked: {absent}");
        // Not by `eprintln!`, which a passing test keeps to itself.
        let note = format!("SKIPPED: signatures against the packages that Python lacks: {absent}");
        writeln!(std::io::stderr(), "{note}").expect("standard error can be written");
    }
}

/// Holds both directions of one case; or tells what is not there.
fn check(case: &Case, answer: Answer) -> Option<String> {
    let Case { scheme, url, body: given, .. } = case;
    let name = &scheme.name;
    let (headers, body, secret) = match answer {
        Answer::Missing { missing } => return Some(missing),
        Answer::Given { accepts_its_own, accepts, accepts_changed, headers, body, secret } => {
            assert!(accepts_its_own, "{name}: the oracle is wrong about {given:?}");
            assert!(accepts, "{name}: the package refuses what we sign: {given:?}");
            assert!(!accepts_changed, "{name}: the package accepts a changed body: {given:?}");
            (headers, body, secret)
        }
    };
    let headers: Vec<_> = headers
        .into_iter()
        .map(|(name, value)| (name, value.as_str().expect("a text").as_bytes().to_vec()))
        .collect();
    let keys = [key(scheme, &secret)];
    let is_accepted = |body: &[u8]| {
        let request = Request { method: "POST", url, headers: &headers, body };
        scheme.verify(&keys, &request, NOW, scheme.tolerance).is_ok()
    };
    assert!(is_accepted(body.as_bytes()), "{name}: we refuse what the package signs: {given:?}");
    let changed = body.replace('1', "2");
    assert!(!is_accepted(changed.as_bytes()), "{name}: we accept a changed body: {given:?}");
    None
}

/// Asks all at once: starting Python and the packages takes longer than all the signatures.
fn ask(cases: &[Case]) -> Result<Vec<Answer>, String> {
    let python = env::var_os("HOOKPROOF_PYTHON").unwrap_or_else(|| "python3".into());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/scheme/oracles.py");
    let mut child = Command::new(&python)
        .args(["-B", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{} cannot be run: {error}", python.display()))?;
    let questions: Vec<_> = cases.iter().map(Case::question).collect();
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    stdin.write_all(Value::from(questions).to_string().as_bytes()).expect("the script reads all");
    drop(stdin);
    let output = child.wait_with_output().expect("the script ends");
    assert!(output.status.success(), "the script failed; its message stands above");
    Ok(serde_json::from_slice(&output.stdout).expect("the script answers in JSON"))
}
