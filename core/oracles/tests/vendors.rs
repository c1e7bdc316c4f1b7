//! The crates that vendors give to their users accept what we sign, and we accept what they sign.

use std::time::{SystemTime, UNIX_EPOCH};

use hookproof_core::scheme::{Key, Message, Request, Scheme, known};
use hookproof_core::time::Timestamp;
use http::{HeaderMap, HeaderName, HeaderValue};
use slack_morphism::SlackSigningSecret;
use slack_morphism::signature_verifier::SlackEventSignatureVerifier;
use svix::webhooks::{Webhook, WebhookError};

const BODIES: [&str; 5] = [
    "",
    "{\"total\":1}",
    "{\"type\": \"order.paid\", \"total\": 12.50, \"name\": \"Jürgen 💶\"}\n",
    "[\n  1,\r\n  {\"a\": \"\\u00fc \\/ <>&'\"}\n]\r\n",
    "1",
];
const ID: &str = "msg_1";
const URL: &str = "https://example.org/hooks?x=1&y=2";
/// Of 24, 32 and 64 bytes: without padding, with it, and a whole block of SHA-256.
const SECRETS: [&str; 3] = [
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    "whsec_ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOEhYaHiImKi4yNjo+QkZKTlJWWl5iZmpucnZ6foKGiow==",
];

fn scheme(name: &str) -> Scheme {
    known::find(name).expect(name)
}

#[expect(clippy::disallowed_methods, reason = "the crates read the machine's clock and no other")]
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    Timestamp::from_secs(since.as_secs().cast_signed())
}

fn signed(scheme: &Scheme, secrets: &[&str], at: Timestamp, body: &str) -> HeaderMap {
    let keys: Vec<_> = secrets.iter().map(|secret| key(scheme, secret)).collect();
    let message = Message { id: ID, at, method: "POST", url: URL, body: body.as_bytes() };
    let signed = scheme.sign(&keys, &message).expect("it can be signed");
    let name = |name: &str| name.parse::<HeaderName>().expect("it is a name");
    let value = |value: &str| value.parse::<HeaderValue>().expect("it is a value");
    signed.headers.iter().map(|(n, v)| (name(n), value(v))).collect()
}

fn key(scheme: &Scheme, secret: &str) -> Key {
    Key::parse(scheme.key, secret).expect("it is a secret")
}

fn is_accepted(scheme: &Scheme, secret: &str, headers: &[(String, Vec<u8>)], body: &str) -> bool {
    let request = Request { method: "POST", url: URL, headers, body: body.as_bytes() };
    scheme.verify(&[key(scheme, secret)], &request, now(), scheme.tolerance).is_ok()
}

/// The two families of header names that the crate `svix` reads.
fn of_svix() -> [(Scheme, &'static str); 2] {
    [(scheme("svix"), "svix"), (scheme("standard-webhooks"), "webhook")]
}

#[test]
fn svix_accepts_what_we_sign() {
    for (scheme, _) in of_svix() {
        for secret in SECRETS {
            let theirs = Webhook::new(secret).expect("it is a secret");
            for body in BODIES {
                let headers = signed(&scheme, &[secret], now(), body);
                theirs.verify(body.as_bytes(), &headers).expect("it is ours");
                let changed = theirs.verify(format!("{body} ").as_bytes(), &headers);
                assert!(matches!(changed, Err(WebhookError::InvalidSignature)), "{changed:?}");
            }
        }
    }
}

#[test]
fn svix_accepts_what_we_sign_with_the_old_secret_and_the_new() {
    let [old, new, third] = SECRETS;
    for (scheme, _) in of_svix() {
        let headers = signed(&scheme, &[new, old], now(), BODIES[1]);
        for (secret, is_known) in [(old, true), (new, true), (third, false)] {
            let theirs = Webhook::new(secret).expect("it is a secret");
            assert_eq!(theirs.verify(BODIES[1].as_bytes(), &headers).is_ok(), is_known, "{secret}");
        }
    }
}

#[test]
fn svix_and_we_sign_the_same() {
    let at = Timestamp::from_secs(1_700_000_000);
    for (scheme, prefix) in of_svix() {
        for secret in SECRETS {
            let theirs = Webhook::new(secret).expect("it is a secret");
            for body in BODIES {
                let ours = signed(&scheme, &[secret], at, body);
                let theirs = theirs.sign(ID, 1_700_000_000, body.as_bytes()).expect("it is text");
                assert_eq!(ours[&format!("{prefix}-signature")], theirs);
            }
        }
    }
}

#[test]
fn we_accept_what_svix_signs() {
    for (scheme, prefix) in of_svix() {
        for secret in SECRETS {
            let theirs = Webhook::new(secret).expect("it is a secret");
            for body in BODIES {
                let at = now().as_secs();
                let signature = theirs.sign(ID, at, body.as_bytes());
                let headers = [
                    ("id", ID.to_owned()),
                    ("timestamp", at.to_string()),
                    ("signature", signature.expect("it is text")),
                ]
                .map(|(name, value)| (format!("{prefix}-{name}"), value.into_bytes()));
                assert!(is_accepted(&scheme, secret, &headers, body), "{secret} {body:?}");
                assert!(!is_accepted(&scheme, secret, &headers, &format!("{body} ")));
                let other =
                    SECRETS.iter().find(|other| **other != secret).expect("there are three");
                assert!(!is_accepted(&scheme, other, &headers, body));
            }
        }
    }
}

#[test]
fn svix_and_we_keep_the_same_tolerance() {
    let ([scheme, _], secret) = (of_svix(), SECRETS[1]);
    let (scheme, now) = (scheme.0, now().as_secs());
    let theirs = Webhook::new(secret).expect("it is a secret");
    // Not the edge itself: the two read the clock one after the other.
    for (at, is_fresh) in
        [(now - 290, true), (now + 290, true), (now - 310, false), (now + 310, false)]
    {
        let headers = signed(&scheme, &[secret], Timestamp::from_secs(at), "1");
        assert_eq!(theirs.verify(b"1", &headers).is_ok(), is_fresh, "{at} at {now}");
        let fields: Vec<_> =
            headers.iter().map(|(n, v)| (n.to_string(), v.as_bytes().to_vec())).collect();
        assert_eq!(is_accepted(&scheme, secret, &fields, "1"), is_fresh, "{at} at {now}");
    }
}

/// The crate signs nothing for others, so this is one way.
#[test]
fn slack_morphism_accepts_what_we_sign() {
    let (scheme, secret) = (scheme("slack"), "8f742231b10e8888abcd99yyyzzz85a5");
    let theirs = SlackEventSignatureVerifier::new(&SlackSigningSecret(secret.to_owned()));
    for body in BODIES {
        let headers = signed(&scheme, &[secret], now(), body);
        let field = |name: &str| headers[name].to_str().expect("it is text").to_owned();
        let signature = field(SlackEventSignatureVerifier::SLACK_SIGNED_HASH_HEADER);
        let at = field(SlackEventSignatureVerifier::SLACK_SIGNED_TIMESTAMP);
        theirs.verify(&signature, body, &at).expect("it is ours");
        assert!(theirs.verify(&signature, &format!("{body} "), &at).is_err());
    }
}
