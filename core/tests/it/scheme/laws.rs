//! Laws that each scheme keeps.

use hookproof_core::scheme::{Key, KeyForm, Message, Request, Scheme, diagnose, known};
use hookproof_core::time::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;

use super::carried;
use crate::given::{laws, timestamp};

const URL: &str = "https://example.org/hooks?a=1";

fn schemes() -> impl Strategy<Value = Scheme> {
    // SendGrid's is only verified.
    let signing: Vec<_> = known::all().into_iter().filter(|s| s.name != "sendgrid").collect();
    proptest::sample::select(signing)
}

fn secret(form: KeyForm, bytes: [u8; 32]) -> String {
    use base64::Engine as _;
    let base64 = base64::engine::general_purpose::STANDARD.encode(bytes);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    match form {
        KeyForm::Whsec => format!("whsec_{base64}"),
        KeyForm::Literal | KeyForm::Hex | KeyForm::P256Spki => hex,
        KeyForm::Base64 => base64,
        KeyForm::Ed25519 => format!("whsk_{base64}"),
        KeyForm::Ed25519Hex => {
            let key = Key::parse(KeyForm::Ed25519, &format!("whsk_{base64}")).expect("a key");
            let public = key.public_text().expect("it has one");
            let public =
                base64::engine::general_purpose::STANDARD.decode(&public[5..]).expect("base64");
            hex + &public.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        }
    }
}

/// A request that can be tampered with.
#[derive(Clone, Debug)]
struct Sent {
    url: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Sent {
    fn is_accepted(&self, scheme: &Scheme, keys: &[Key]) -> bool {
        let Self { url, headers, body } = self;
        let request = Request { method: "POST", url, headers, body };
        scheme.verify(keys, &request, Timestamp::from_millis(0), None).is_ok()
    }
}

fn sent(scheme: &Scheme, key: &Key, seconds: i64, body: &[u8]) -> Sent {
    let url = scheme.url_to_call(URL, body, false);
    let at = Timestamp::from_secs(seconds);
    let message = Message { id: "msg_1", at, method: "POST", url: &url, body };
    let signed = scheme.sign(std::slice::from_ref(key), &message).expect(&scheme.name);
    let (headers, body) = carried(&signed, body);
    Sent { url, headers, body }
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn what_is_signed_verifies_and_no_other_key_does(
        scheme in schemes(),
        bytes in any::<[u8; 32]>(),
        seconds in 0..4_102_444_800_i64,
        body in vec(any::<u8>(), 0..100),
    ) {
        let key = Key::parse(scheme.key, &secret(scheme.key, bytes)).unwrap();
        let sent = sent(&scheme, &key, seconds, &body);
        prop_assert!(sent.is_accepted(&scheme, &[key]), "{}: {sent:?}", scheme.name);
        let mut other = bytes;
        other[0] ^= 1;
        let other = Key::parse(scheme.key, &secret(scheme.key, other)).unwrap();
        prop_assert!(!sent.is_accepted(&scheme, &[other]), "{}: {sent:?}", scheme.name);
    }

    #[test]
    fn any_single_changed_bit_of_what_a_scheme_protects_is_noticed(
        scheme in schemes(),
        bytes in any::<[u8; 32]>(),
        seconds in 1_000_000_000..2_000_000_000_i64,
        body in vec(any::<u8>(), 0..8),
    ) {
        let key = [Key::parse(scheme.key, &secret(scheme.key, bytes)).unwrap()];
        let sent = sent(&scheme, &key[0], seconds, &body);
        let protected = |name: &String| {
            let is = |place: &Option<hookproof_core::scheme::Place>| {
                place.as_ref().and_then(|p| p.header.as_ref()) == Some(name)
            };
            (scheme.protects_id() || !is(&scheme.id))
                && (scheme.protects_timestamp() || !is(&scheme.timestamp))
        };
        for (nth, (name, value)) in sent.headers.iter().enumerate() {
            for bit in (0..value.len() * 8).filter(|_| protected(name)) {
                let mut tampered = sent.clone();
                tampered.headers[nth].1[bit / 8] ^= 1 << (bit % 8);
                prop_assert!(!tampered.is_accepted(&scheme, &key), "{}: {tampered:?}", scheme.name);
            }
        }
        // A token signs nothing; Mailgun signs two values of the body, whose every bit but those of
        // the names is in them.
        let signs_body = !matches!(scheme.name.as_str(), "gitlab");
        for bit in (0..sent.body.len() * 8).filter(|_| signs_body) {
            let mut tampered = sent.clone();
            tampered.body[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!tampered.is_accepted(&scheme, &key), "{}: {tampered:?}", scheme.name);
        }
        let signs_url = matches!(scheme.name.as_str(), "twilio" | "square" | "hubspot");
        for bit in (0..sent.url.len() * 8).filter(|bit| signs_url && bit % 8 != 7) {
            let mut url = sent.url.clone().into_bytes();
            url[bit / 8] ^= 1 << (bit % 8);
            let tampered = Sent { url: String::from_utf8(url).unwrap(), ..sent.clone() };
            prop_assert!(!tampered.is_accepted(&scheme, &key), "{}: {tampered:?}", scheme.name);
        }
    }

    #[test]
    fn any_bytes_are_refused_and_diagnosed_without_panicking(
        scheme in proptest::sample::select(known::all()),
        values in vec(prop_oneof![
            vec(any::<u8>(), 0..60),
            "(t=|v1=|v1,|ts=|h1=|sha256=|[0-9a-f]{64}|[A-Za-z0-9+/]{43}=|[,; ]){0,5}"
                .prop_map(Vec::from),
        ], 3),
        url in "\\PC{0,30}",
        body in prop_oneof![
            vec(any::<u8>(), 0..60),
            "[\\[{\"\\\\u0-9a-f:,}\\] é]{0,40}".prop_map(Vec::from),
        ],
        now in timestamp(),
        bytes in any::<[u8; 32]>(),
    ) {
        let places = [Some(&scheme.signature), scheme.id.as_ref(), scheme.timestamp.as_ref()];
        let names = places.into_iter().flatten().filter_map(|place| place.header.clone());
        let headers: Vec<_> = names.zip(values).collect();
        let request = Request { method: "POST", url: &url, headers: &headers, body: &body };
        let text = secret(scheme.key, bytes);
        let keys: Vec<_> = Key::parse(scheme.key, &text).into_iter().collect();
        prop_assert!(scheme.verify(&keys, &request, now, scheme.tolerance).is_err());
        let _ = diagnose(&scheme, &[&text], &["older"], &request, now, scheme.tolerance);
    }

    #[test]
    fn any_text_is_a_key_or_is_none_without_panicking(text in "\\PC{0,140}") {
        for scheme in known::all() {
            let _ = Key::parse(scheme.key, &text);
        }
    }
}
