//! Requests that claim to be signed, by each scheme in the field.
//!
//! The first byte chooses the scheme. What follows is, between bytes `0xff`: the value of each header of
//! a request that was signed, in order, then its URL and its body. A piece that is missing is the one
//! that was signed.

use std::borrow::Cow;
use std::sync::LazyLock;

use hookproof_core::scheme::{
    Algorithm, Key, KeyForm, Message, Part, Request, Scheme, SignError, diagnose, known,
};
use hookproof_core::secret::Secrets;
use hookproof_core::signature::{self, TOLERANCE};
use hookproof_core::time::Timestamp;

const SEPARATOR: u8 = 0xff;
const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);
const ID: &str = "msg_1";
const URL: &str = "https://example.org/hooks%3Aa?x=1&y=%2F";
/// The time stands in it for schemes that look there.
const BODY: &str =
    "{\"webhookTimestamp\":1700000000000,\"name\":\"Jürgen \\u00e9\",\"total\":1.50}\n";

/// A key of each form, and another one.
fn keys(form: KeyForm) -> [&'static str; 2] {
    match form {
        KeyForm::Whsec => [
            "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=",
            "whsec_AgIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=",
        ],
        KeyForm::Literal => ["a literal secret of a vendor", "another literal secret"],
        KeyForm::Hex => ["0102030405060708090A0B0C0D0E0F10", "0202030405060708090A0B0C0D0E0F10"],
        KeyForm::Base64 => ["AQIDBAUGBwgJCgsMDQ4PEA==", "AgIDBAUGBwgJCgsMDQ4PEA=="],
        KeyForm::Ed25519 => [
            "whsk_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=",
            "whsk_AgIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=",
        ],
        KeyForm::Ed25519Hex => [
            "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20\
             79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664",
            // The example of RFC 8032, section 7.1, test 1: a public key.
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        ],
        // Both from the tests of SendGrid's library for Python, which publishes the public halves.
        KeyForm::P256Spki => [
            "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8\
             kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==",
            "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqTxd43gyp8IOEto2LdIfjRQrIbsd4SXZkLW6jDutdhXSJCWHw\
             8REntlo7aNDthvj+y7GjUuFDb/R1NGe1OPzpA==",
        ],
    }
}

/// What a request carries.
#[derive(Clone, Debug)]
struct Carried {
    headers: Vec<(String, Vec<u8>)>,
    url: String,
    body: Vec<u8>,
}

impl Carried {
    fn request(&self) -> Request<'_> {
        let Self { headers, url, body } = self;
        Request { method: "POST", url, headers, body }
    }
}

/// A scheme and a request that is signed by it.
struct Signed {
    scheme: Scheme,
    key: Key,
    other: Key,
    carried: Carried,
    /// The signature as it is written; `None` where the scheme is only verified.
    token: Option<Vec<u8>>,
}

static SIGNED: LazyLock<Vec<Signed>> =
    LazyLock::new(|| known::all().into_iter().map(Signed::by).collect());

impl Signed {
    fn by(scheme: Scheme) -> Self {
        let [key, other] = keys(scheme.key).map(|text| Key::parse(scheme.key, text).expect(text));
        let url = scheme.url_to_call(URL, BODY.as_bytes(), false);
        let message = Message { id: ID, at: NOW, method: "POST", url: &url, body: BODY.as_bytes() };
        let signed = match scheme.sign(std::slice::from_ref(&key), &message) {
            Ok(signed) => signed,
            Err(SignError::CannotSign) => return Self::unsigned(scheme, [key, other]),
            Err(error) => unreachable!("{}: {error}", scheme.name),
        };
        let mut body = BODY.as_bytes().to_vec();
        if !signed.fields.is_empty() {
            let mut document = serde_json::json!({ "signature": {} });
            for (pointer, value) in &signed.fields {
                let name = pointer.rsplit('/').next().unwrap_or_default();
                document["signature"][name] = value.clone().into();
            }
            body = document.to_string().into_bytes();
        }
        let headers: Vec<_> =
            signed.headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect();
        let carried = Carried { headers, url, body };
        let token = written(&scheme, &carried).map(|text| {
            // Of a list of fields, the signature is the last.
            let prefix = scheme.signature.prefix.as_bytes();
            let from = text.windows(prefix.len().max(1)).rposition(|part| part == prefix);
            text[from.map_or(0, |at| at + prefix.len())..].to_vec()
        });
        assert!(token.is_some(), "{} signs somewhere", scheme.name);
        Self { scheme, key, other, carried, token }
    }

    /// By a scheme that is only verified: well-formed, and a signature of nothing.
    fn unsigned(scheme: Scheme, [key, other]: [Key; 2]) -> Self {
        let values =
            [(&scheme.timestamp, "1700000000"), (&Some(scheme.signature.clone()), "MAYCAQECAQE=")]
                .map(|(place, value)| {
                    let header = place.as_ref().and_then(|place| place.header.clone());
                    (header.expect("it stands in a header"), value.as_bytes().to_vec())
                });
        let carried = Carried {
            headers: values.to_vec(),
            url: URL.to_owned(),
            body: BODY.as_bytes().to_vec(),
        };
        Self { scheme, key, other, carried, token: None }
    }

    fn is_accepted(&self, key: &Key, carried: &Carried, now: Timestamp) -> bool {
        let key = std::slice::from_ref(key);
        self.scheme.verify(key, &carried.request(), now, self.scheme.tolerance).is_ok()
    }

    /// What the bytes make of the request that was signed.
    fn changed(&self, bytes: &[u8]) -> Carried {
        let mut carried = self.carried.clone();
        let mut pieces = bytes.split(|byte| *byte == SEPARATOR);
        for ((_, value), piece) in carried.headers.iter_mut().zip(&mut pieces) {
            value.splice(.., piece.iter().copied());
        }
        if let Some(piece) = pieces.next() {
            carried.url = String::from_utf8_lossy(piece).into_owned();
        }
        if let Some(piece) = pieces.next() {
            carried.body = piece.to_vec();
        }
        carried
    }
}

/// The text in the signature's place, whole.
fn written<'a>(scheme: &Scheme, carried: &'a Carried) -> Option<Cow<'a, [u8]>> {
    if let Some(pointer) = &scheme.signature.json {
        let document: serde_json::Value = serde_json::from_slice(&carried.body).ok()?;
        return Some(Cow::Owned(document.pointer(pointer)?.as_str()?.as_bytes().to_vec()));
    }
    let name = scheme.signature.header.as_deref()?;
    let header = carried.headers.iter().find(|(other, _)| other == name)?;
    Some(Cow::Borrowed(&header.1))
}

/// The request that each scheme signed.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let seed = |(nth, signed): (usize, &Signed)| {
        let Carried { headers, url, body } = &signed.carried;
        let headers = headers.iter().map(|(_, value)| value.as_slice());
        let pieces: Vec<_> = headers.chain([url.as_bytes(), body]).collect();
        [vec![u8::try_from(nth).expect("there are few")], pieces.join(&SEPARATOR)].concat()
    };
    SIGNED.iter().enumerate().map(seed).collect()
}

/// Holds the laws; whether the request was accepted, or could only be refused.
pub fn check(bytes: &[u8]) -> bool {
    let Some((nth, rest)) = bytes.split_first() else { return false };
    let signed = &SIGNED[usize::from(*nth) % SIGNED.len()];
    let carried = signed.changed(rest);
    let is_accepted = signed.is_accepted(&signed.key, &carried, NOW);
    in_any_order(signed, &carried, is_accepted);
    if signed.scheme.name == "standard-webhooks" {
        by_hand(&carried, is_accepted);
    }
    if is_accepted {
        genuine(signed, &carried);
        only_so(signed, &carried, rest.len());
    } else {
        let [secret, older] = keys(signed.scheme.key);
        let (request, tolerance) = (carried.request(), signed.scheme.tolerance);
        let told = diagnose(&signed.scheme, &[secret], &[older], &request, NOW, tolerance);
        assert!(told.is_none_or(|told| !told.mistakes.is_empty()), "a diagnosis names a mistake");
    }
    is_accepted || signed.token.is_none()
}

/// Neither the order of headers nor the case of their names matters.
fn in_any_order(signed: &Signed, carried: &Carried, is_accepted: bool) {
    let mut turned = carried.clone();
    turned.headers.reverse();
    for (name, _) in &mut turned.headers {
        *name = name.to_ascii_uppercase();
    }
    assert_eq!(signed.is_accepted(&signed.key, &turned, NOW), is_accepted, "{carried:?}");
}

/// The receiver's own path, written by hand, decides as the description does.
fn by_hand(carried: &Carried, is_accepted: bool) {
    let header = |name: &str| {
        carried.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_slice())
    };
    let request = signature::Signed {
        id: header(signature::ID_HEADER),
        timestamp: header(signature::TIMESTAMP_HEADER),
        signature: header(signature::SIGNATURE_HEADER),
        body: &carried.body,
    };
    let [secret, _] = keys(KeyForm::Whsec);
    let secrets = Secrets::one(secret.parse().expect("it is a secret"));
    let by_hand = signature::verify(&secrets, &request, NOW, TOLERANCE);
    assert_eq!(by_hand.is_ok(), is_accepted, "{by_hand:?}: {carried:?}");
}

/// One signature was ever made with the key, so what is accepted carries it.
fn genuine(signed: &Signed, carried: &Carried) {
    let name = &signed.scheme.name;
    let token = signed.token.as_deref().expect("nothing was signed, and yet it is accepted");
    let text = written(&signed.scheme, carried).expect("it is accepted without a signature");
    assert!(text.windows(token.len()).any(|part| part == token), "{name}: {carried:?}");
}

/// What is accepted is refused with another key, another body, and long afterwards.
fn only_so(signed: &Signed, carried: &Carried, at: usize) {
    let Signed { scheme, key, other, .. } = signed;
    let name = &scheme.name;
    assert!(!signed.is_accepted(other, carried, NOW), "{name}, another key: {carried:?}");
    if scheme.algorithm != Algorithm::Token && scheme.signed.has(&Part::Body) {
        let mut longer = carried.clone();
        longer.body.push(b' ');
        assert!(!signed.is_accepted(key, &longer, NOW), "{name}, a longer body: {carried:?}");
        let mut flipped = carried.clone();
        let bits = flipped.body.len() * 8;
        if bits > 0 {
            flipped.body[at % bits / 8] ^= 1 << (at % 8);
            assert!(!signed.is_accepted(key, &flipped, NOW), "{name}, a flipped bit: {carried:?}");
        }
    }
    if let Some(tolerance) = scheme.tolerance {
        let late = NOW.plus(tolerance).plus(tolerance).plus(tolerance);
        assert!(!signed.is_accepted(key, carried, late), "{name}, long afterwards: {carried:?}");
    }
}
