//! Each usual mistake, made once: it is named, and nothing else is.

use std::collections::BTreeSet;

use hookproof_core::scheme::{Key, Message, Mistake, Request, Scheme, TimestampUnit, diagnose};
use hookproof_core::time::Timestamp;
use sha2::{Digest as _, Sha256};

use super::{NOW, carried, fields, key, scheme};

const WHSEC: &str = "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";
const BODY: &[u8] = br#"{"a": 1, "b": "x/y"}"#;
const URL: &str = "https://example.org/hooks";

/// All codes there are.
const CODES: [&str; 21] = [
    "bare-signature",
    "body-reserialised",
    "byte-order-mark",
    "charset",
    "clock",
    "empty-body",
    "encoding",
    "header-part",
    "line-breaks",
    "older-secret",
    "other-header",
    "other-parts",
    "other-scheme",
    "other-url",
    "plain-hash",
    "quotes",
    "secret-decoding",
    "separator",
    "signed-timestamp-unit",
    "timestamp-unit",
    "trailing-newline",
];

/// A request as it left, before the mistake.
struct Sent {
    scheme: Scheme,
    secrets: Vec<&'static str>,
    older: Vec<&'static str>,
    url: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    now: Timestamp,
}

impl Sent {
    /// Signed by the scheme of this name, with this secret, as its scheme wants it.
    fn by(name: &str, secret: &'static str) -> Self {
        let scheme = scheme(name);
        let keys = [key(&scheme, secret)];
        Self { secrets: vec![secret], ..Self::signed(&scheme, &keys, BODY) }
    }

    fn signed(scheme: &Scheme, keys: &[Key], body: &[u8]) -> Self {
        let message = Message { id: "msg_1", at: NOW, method: "POST", url: URL, body };
        let (headers, body) = carried(&scheme.sign(keys, &message).expect("it signs"), body);
        let (scheme, url) = (scheme.clone(), URL.to_owned());
        Self { scheme, secrets: vec![], older: vec![], url, headers, body, now: NOW }
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn with_body(self, body: &[u8]) -> Self {
        Self { body: body.to_vec(), ..self }
    }

    /// Changes the text of the last header, where the signature stands.
    fn with_signature(self, change: impl FnOnce(&str) -> String) -> Self {
        self.with(|sent| {
            let (_, value) = sent.headers.last_mut().expect("it is signed");
            *value = change(std::str::from_utf8(value).expect("it is text")).into_bytes();
        })
    }

    fn found(&self) -> Vec<Mistake> {
        let Self { scheme, secrets, older, url, headers, body, now } = self;
        let keys: Vec<_> = secrets.iter().map(|text| key(scheme, text)).collect();
        let request = Request { method: "POST", url, headers, body };
        let is_right = scheme.verify(&keys, &request, *now, scheme.tolerance).is_ok();
        assert!(!is_right, "{}: the mistake makes no difference", scheme.name);
        let found = diagnose(scheme, secrets, older, &request, *now, scheme.tolerance);
        found.map_or_else(Vec::new, |found| found.mistakes)
    }
}

/// A request with one mistake, its code, and a part of what is told of it.
type Case = (Sent, &'static str, &'static str);

fn github() -> Sent {
    Sent::by("github", "secret")
}

/// With the hash of its body in the URL, which is signed in its place.
fn hashed() -> Sent {
    let twilio = scheme("twilio");
    let url = twilio.url_to_call(URL, BODY, false);
    let message = Message { id: "", at: NOW, method: "POST", url: &url, body: BODY };
    let signed = twilio.sign(&[key(&twilio, "secret")], &message).expect("it signs");
    let (headers, body) = carried(&signed, BODY);
    Sent { url, headers, body, ..Sent::by("twilio", "secret") }
}

fn of_the_body() -> Vec<Case> {
    let marked = [b"\xef\xbb\xbf", BODY].concat();
    let lines = Sent::signed(&scheme("github"), &[key(&scheme("github"), "secret")], b"a\r\nb");
    vec![
        (github().with_body(br#"{"a":1,"b":"x/y"}"#), "body-reserialised", "a space after each"),
        (
            github().with_body(br#"{"a": 1, "b": "x\/y"}"#),
            "body-reserialised",
            "escaped characters written out",
        ),
        (
            // Where a string ends is seen past the quotes and backslashes that are escaped in it.
            Sent::signed(
                &scheme("github"),
                &[key(&scheme("github"), "secret")],
                br#"{"a": "\", [\\", "b": 1}"#,
            )
            .with_body(br#"{"a":"\", [\\","b":1}"#)
            .with(|sent| sent.secrets = vec!["secret"]),
            "body-reserialised",
            "a space after each",
        ),
        (github().with_body(&[BODY, b"\n"].concat()), "trailing-newline", "without the line feed"),
        (github().with_body(&[BODY, b"\r\n"].concat()), "trailing-newline", "without CR LF"),
        (github().with_body(&marked), "byte-order-mark", "without the byte order mark"),
        (
            lines.with_body(b"a\nb").with(|sent| sent.secrets = vec!["secret"]),
            "line-breaks",
            "CR LF line breaks",
        ),
        (
            Sent::signed(&scheme("github"), &[key(&scheme("github"), "secret")], b"a\nb")
                .with_body(b"a\r\nb")
                .with(|sent| sent.secrets = vec!["secret"]),
            "line-breaks",
            "with LF line breaks",
        ),
        (
            Sent::by("twilio", "secret").with_body(&[BODY, b"\n"].concat()),
            "trailing-newline",
            "without the line feed",
        ),
        (hashed().with_body(&[BODY, b"\n"].concat()), "trailing-newline", "without the line feed"),
        (
            Sent::signed(&scheme("github"), &[key(&scheme("github"), "secret")], b"")
                .with_body(BODY)
                .with(|sent| sent.secrets = vec!["secret"]),
            "empty-body",
            "an empty body was signed",
        ),
    ]
}

/// One form of a JSON body was signed, another arrives.
fn of_the_spelling() -> Vec<Case> {
    const PLAIN: &str = r#"{"b":"<é> & \u2028","a":1}"#;
    let signed = |signed: &str, arrived: &str, told: &'static str| {
        let github = scheme("github");
        let sent = Sent::signed(&github, &[key(&github, "secret")], signed.as_bytes())
            .with_body(arrived.as_bytes())
            .with(|sent| sent.secrets = vec!["secret"]);
        (sent, "body-reserialised", told)
    };
    let go = r#"{"b":"\u003cé\u003e \u0026 \u2028","a":1}"#;
    let go_sorted = r#"{"a":1,"b":"\u003cé\u003e \u0026 \u2028"}"#;
    let ascii_sorted = r#"{"a": 1, "b": "<\u00e9> & \u2028"}"#;
    vec![
        signed(go, PLAIN, "compact, `<`, `>` and `&` escaped"),
        signed(go_sorted, PLAIN, "compact, keys sorted, `<`, `>` and `&`"),
        signed(&format!("{go}\n"), PLAIN, "`&` escaped, with a line break at its end"),
        signed(r#"{"b":"<é>"}"#, r#"{"b":"\u003cé\u003e"}"#, "escaped characters written out"),
        signed(
            "{\n  \"a\": [\n    1\n  ]\n}\n",
            r#"{"a":[1]}"#,
            "indented by two spaces, with a line break at its end",
        ),
        // Field case 47: a number is written again after it was read as a double.
        signed(
            r#"{"b":1,"a":1.7e+308}"#,
            r#"{"b":1.0,"a":1.7e308}"#,
            "compact, numbers as JavaScript writes them",
        ),
        signed(
            r#"{"b": 1.0, "a": 1.7e+308}"#,
            r#"{"b":1.0,"a":1.7e308}"#,
            "a space after each comma and colon, numbers as Python writes them",
        ),
        signed(r#"[0,1e-7,0.000001]"#, "[-0.0,0.0000001,1E-6]", "as JavaScript writes them"),
        signed(r#"[-0.0, 1e-07, 10]"#, "[-0.00,0.0000001,10]", "as Python writes them"),
        signed(
            r#"{"a":1.0,"b":2}"#,
            r#"{"b":2,"a":1.00}"#,
            "compact, keys sorted and numbers rewritten",
        ),
        signed("{\"a\":[1]}\n", "{\"a\": [1]}", "compact, with a line break at its end"),
        signed(ascii_sorted, PLAIN, "keys sorted, other characters than"),
        signed(
            "{\r\n  \"a\": [\r\n    1\r\n  ]\r\n}",
            r#"{"a":[1]}"#,
            "indented by two spaces, in lines that end with CR LF",
        ),
        signed(
            "{\r\n    \"a\": [\r\n        1\r\n    ]\r\n}\r\n",
            r#"{"a":[1]}"#,
            "four spaces, in lines that end with CR LF, with a line break at its end",
        ),
    ]
}

fn of_the_secret() -> Vec<Case> {
    let literal = scheme("stripe");
    let taken = |name: &str, secret: &'static str, bytes_of: &str| {
        let (of_scheme, wrong) = (scheme(name), key(&literal, bytes_of));
        Sent::signed(&of_scheme, &[wrong], BODY).with(|sent| sent.secrets = vec![secret])
    };
    let bare = &WHSEC[6..];
    let decoded = key(&scheme("standard-webhooks"), WHSEC);
    let hex = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
    vec![
        (taken("standard-webhooks", WHSEC, WHSEC), "secret-decoding", "the text itself"),
        (taken("standard-webhooks", WHSEC, bare), "secret-decoding", "after `whsec_`, not decoded"),
        (taken("standard-webhooks", WHSEC, hex), "secret-decoding", "then written in hex"),
        (taken("github", "secret", "secret\n"), "secret-decoding", "a line break at its end"),
        (taken("github", " secret ", "secret"), "secret-decoding", "white space"),
        (taken("adyen", hex, hex), "secret-decoding", "the text itself"),
        (
            Sent::signed(&literal, &[decoded], BODY).with(|sent| sent.secrets = vec![WHSEC]),
            "secret-decoding",
            "decoded from base64",
        ),
        (
            Sent::signed(&literal, &[key(&scheme("adyen"), hex)], BODY)
                .with(|sent| sent.secrets = vec![hex]),
            "secret-decoding",
            "decoded from hex",
        ),
        (
            Sent::by("stripe", "old").with(|sent| {
                sent.secrets = vec!["new"];
                sent.older = vec!["older", "old"];
            }),
            "older-secret",
            "number 2",
        ),
        (
            Sent::by("gitlab", "old").with(|sent| {
                sent.secrets = vec!["new"];
                sent.older = vec!["old"];
            }),
            "older-secret",
            "number 1",
        ),
    ]
}

fn of_the_header() -> Vec<Case> {
    let renamed = |name: &'static str| {
        move |sent: &mut Sent| sent.headers.last_mut().expect("it is signed").0 = name.to_owned()
    };
    let shopify_in_hex = github().with(|sent| {
        let hex = String::from_utf8(sent.headers[0].1[7..].to_vec()).expect("hex");
        sent.headers = fields(&[("X-Shopify-Hmac-SHA256", &hex)]);
        sent.scheme = scheme("shopify");
    });
    let github_in_base64 = Sent::by("shopify", "secret").with(|sent| {
        let base64 = String::from_utf8(sent.headers[0].1.clone()).expect("base64");
        sent.headers = fields(&[("X-Hub-Signature-256", &format!("sha256={base64}"))]);
        sent.scheme = scheme("github");
    });
    vec![
        (shopify_in_hex, "encoding", "written in hex, and should be in base64"),
        (github_in_base64, "encoding", "written in base64, and should be in hex"),
        (
            github().with_signature(|hex| hex[7..].to_owned()),
            "header-part",
            "`sha256=` and the hex",
        ),
        (
            Sent::by("stripe", "k").with_signature(|text| text.replace("v1=", "v0=")),
            "header-part",
            "`v1=` and the hex",
        ),
        (github().with(renamed("X-Hub-Signature")), "other-header", "`X-Hub-Signature`"),
        (
            Sent::by("stripe", "k").with(|sent| sent.scheme = scheme("calendly")),
            "other-scheme",
            "`stripe`",
        ),
        (
            Sent::by("shopify", "k").with(|sent| sent.scheme = scheme("github")),
            "other-scheme",
            "`shopify`",
        ),
    ]
}

fn of_the_form() -> Vec<Case> {
    let stripe = || Sent::by("stripe", "k");
    let standard = || Sent::by("standard-webhooks", WHSEC);
    let alone = |text: &str| text.rsplit_once("v1=").expect("a signature").1.to_owned();
    vec![
        (github().with_signature(|text| format!("\"{text}\"")), "quotes", "without them"),
        (github().with_signature(|text| text.replace('=', "='") + "'"), "quotes", "without them"),
        (
            standard().with(|sent| {
                for (_, value) in &mut sent.headers {
                    *value = [b"\"", &value[..], b"\""].concat();
                }
            }),
            "quotes",
            "without them",
        ),
        (
            stripe().with_signature(|text| text.replace(',', ";")),
            "separator",
            "separated by `;`, and should be by `,`",
        ),
        (
            standard().with_signature(|text| format!("v1,AAAA;{text}")),
            "separator",
            "separated by `;`, and should be by ` `",
        ),
        (stripe().with_signature(alone), "bare-signature", "should have `t=…,v1=…`"),
        (
            stripe().with_signature(|text| format!("v1={}", alone(text))),
            "bare-signature",
            "nobody can tell whether it is right",
        ),
    ]
}

fn of_the_charset() -> Vec<Case> {
    let sent = |signed: &[u8], arrived: &[u8]| {
        let github = scheme("github");
        Sent::signed(&github, &[key(&github, "secret")], signed)
            .with_body(arrived)
            .with(|sent| sent.secrets = vec!["secret"])
    };
    let text = "{\"a\": \"é\"}";
    let latin_1 = b"{\"a\": \"\xe9\"}";
    let units = || text.encode_utf16();
    let low_first: Vec<_> = units().flat_map(u16::to_le_bytes).collect();
    let high_first: Vec<_> = units().flat_map(u16::to_be_bytes).collect();
    vec![
        (sent(latin_1, text.as_bytes()), "charset", "signed in Latin-1"),
        (sent(text.as_bytes(), latin_1), "charset", "signed in UTF-8"),
        (sent(&low_first, text.as_bytes()), "charset", "signed in UTF-16, low byte first"),
        (sent(&high_first, text.as_bytes()), "charset", "signed in UTF-16, high byte first"),
    ]
}

fn of_a_hash() -> Vec<Case> {
    let hashed = |name: &str, pieces: &[&[u8]], told| {
        let hash = Sha256::digest(pieces.concat());
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let sent = Sent::by(name, "secret").with_signature(|text| {
            let (before, _) = text.rsplit_once('=').expect("a prefix");
            format!("{before}={hex}")
        });
        (sent, "plain-hash", told)
    };
    let timed = [b"1700000000.", BODY].concat();
    vec![
        hashed("github", &[BODY], "without any secret"),
        hashed("github", &[b"secret", BODY], "of the secret and what is signed"),
        hashed("github", &[BODY, b"secret"], "of what is signed and the secret"),
        hashed("stripe", &[b"secret", &timed], "of the secret and what is signed"),
        hashed("stripe", &[BODY], "without any secret"),
    ]
}

fn of_the_time() -> Vec<Case> {
    let slack = scheme("slack");
    let in_ms = Scheme { timestamp_unit: TimestampUnit::Milliseconds, ..slack.clone() };
    let in_secs = Scheme { timestamp_unit: TimestampUnit::Seconds, ..scheme("workos") };
    let keys = [key(&slack, "secret")];
    let signed_in_ms = || {
        Sent::signed(&in_ms, &keys, BODY).with(|sent| {
            sent.scheme = slack.clone();
            sent.secrets = vec!["secret"];
        })
    };
    let signed_for = |name: &str, unit: TimestampUnit| {
        let wrong = Scheme { timestamp_unit: unit, ..scheme(name) };
        Sent::signed(&wrong, &[key(&wrong, "secret")], BODY).with(|sent| {
            sent.scheme = scheme(name);
            sent.secrets = vec!["secret"];
        })
    };
    vec![
        (signed_in_ms(), "timestamp-unit", "in milliseconds"),
        (signed_for("zendesk", TimestampUnit::Seconds), "timestamp-unit", "in seconds"),
        (signed_for("zendesk", TimestampUnit::Milliseconds), "timestamp-unit", "in milliseconds"),
        (signed_for("slack", TimestampUnit::Rfc3339), "timestamp-unit", "in RFC 3339"),
        (
            Sent::signed(&in_secs, &keys, BODY)
                .with(|sent| {
                    sent.scheme = scheme("workos");
                    sent.secrets = vec!["secret"];
                })
                .with_signature(|text| text.replace("t=1700000000", "t=1700000000000")),
            "signed-timestamp-unit",
            "signed in seconds",
        ),
        (
            signed_in_ms().with(|sent| sent.headers[0].1 = b"1700000000".to_vec()),
            "signed-timestamp-unit",
            "signed in milliseconds",
        ),
        (
            Sent::by("slack", "secret").with(|sent| sent.now = Timestamp::from_secs(1_700_003_600)),
            "clock",
            "only the time is not",
        ),
    ]
}

fn of_what_is_signed() -> Vec<Case> {
    let square = || Sent::by("square", "secret");
    let of_parts =
        |signed: &str| Scheme { signed: signed.parse().expect("parts"), ..scheme("slack") };
    let other_parts = |signed: &str| {
        let wrong = of_parts(signed);
        Sent::signed(&wrong, &[key(&wrong, "secret")], BODY).with(|sent| {
            sent.scheme = scheme("slack");
            sent.secrets = vec!["secret"];
        })
    };
    let github_of = |signed: &str, body: &[u8]| {
        let wrong = Scheme { signed: signed.parse().expect("parts"), ..scheme("github") };
        let standard = scheme("standard-webhooks");
        let wrong = Scheme { id: standard.id, timestamp: standard.timestamp, ..wrong };
        Sent::signed(&wrong, &[key(&wrong, "secret")], body).with(|sent| {
            sent.scheme = scheme("github");
            sent.secrets = vec!["secret"];
        })
    };
    vec![
        (github_of("{url}{body}", b"a=1&b=2"), "other-parts", "`{url}{body}`"),
        (github_of("{id}.{timestamp}.{body}", BODY), "other-parts", "`{id}.{timestamp}.{body}`"),
        (square().with(|sent| sent.url = URL.replace("https", "http")), "other-url", URL),
        (square().with(|sent| sent.url = URL.replace("org", "org:443")), "other-url", URL),
        (square().with(|sent| sent.url = format!("{URL}/")), "other-url", URL),
        (square().with(|sent| sent.url = format!("{URL}?utm=1")), "other-url", URL),
        (other_parts("{timestamp}.{body}"), "other-parts", "`{timestamp}.{body}`"),
        (other_parts("{body}"), "other-parts", "`{body}`"),
    ]
}

/// Of a scheme whose signature is no MAC.
fn of_a_public_key() -> Vec<Case> {
    let older = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20\
        79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664";
    let newer = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    let discord = || Sent::by("discord", older);
    vec![
        (discord().with_body(&[BODY, b"\n"].concat()), "trailing-newline", "line feed"),
        (discord().with_signature(str::to_uppercase), "encoding", "upper-case hex"),
        (
            discord().with(|sent| {
                sent.secrets = vec![newer];
                sent.older = vec![older];
            }),
            "older-secret",
            "number 1",
        ),
        (
            discord().with(|sent| {
                let wrong =
                    Scheme { signed: "{body}".parse().expect("parts"), ..sent.scheme.clone() };
                sent.headers = Sent::signed(&wrong, &[key(&wrong, older)], BODY).headers;
            }),
            "other-parts",
            "`{body}`",
        ),
    ]
}

#[test]
fn each_usual_mistake_is_named_and_nothing_else() {
    let cases = [
        of_the_body(),
        of_the_spelling(),
        of_the_secret(),
        of_the_header(),
        of_the_form(),
        of_the_charset(),
        of_a_hash(),
        of_the_time(),
        of_what_is_signed(),
        of_a_public_key(),
    ];
    let mut seen = BTreeSet::new();
    for (sent, code, told) in cases.into_iter().flatten() {
        let found = sent.found();
        let codes: Vec<_> = found.iter().map(Mistake::code).collect();
        assert_eq!(codes, [code], "{}: {told}", sent.scheme.name);
        assert!(found[0].to_string().contains(told), "{told}: {}", found[0]);
        seen.insert(code);
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), CODES);
}

#[test]
fn what_no_usual_mistake_explains_is_not_explained() {
    let github = scheme("github");
    let signed_as = |signed: &str| {
        let wrong = Scheme { signed: signed.parse().expect("parts"), ..github.clone() };
        Sent::signed(&wrong, &[key(&wrong, "secret")], BODY).with(|sent| {
            sent.scheme = github.clone();
            sent.secrets = vec!["secret"];
        })
    };
    for sent in [
        hashed().with_body(b"another body"),
        signed_as("mine:{body}"),
        // These are no parts of another scheme that are empty.
        signed_as("..{body}"),
    ] {
        assert_eq!(sent.found(), [], "{}", sent.scheme.name);
    }
}

#[test]
fn of_two_explanations_the_one_with_fewer_mistakes_is_told_and_else_the_first() {
    let hex = String::from_utf8(github().headers[0].1[7..].to_vec()).expect("it is hex");
    let base64 = String::from_utf8(Sent::by("shopify", "secret").headers[0].1.clone());
    let base64 = base64.expect("it is base64");
    let check = |headers: &[(&str, &str)], expected: &str| {
        let sent = github().with(|sent| sent.headers = fields(headers));
        assert_eq!(sent.found(), [Mistake::OtherHeader(expected.to_owned())], "{headers:?}");
    };
    check(&[("X-A", &hex), ("X-B", &hex)], "X-A");
    check(&[("X-A", &hex), ("X-B", &base64)], "X-A");
    check(&[("X-A", &base64), ("X-B", &hex)], "X-B");
}
