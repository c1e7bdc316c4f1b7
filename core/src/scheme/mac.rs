//! MACs and their spelling.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::Sha1;
use sha2::Sha256;

use super::{Algorithm, Encoding};

/// The MAC of what has been fed so far.
#[derive(Clone)]
pub(crate) enum Mac {
    Sha256(Hmac<Sha256>),
    Sha1(Hmac<Sha1>),
}

impl Mac {
    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    pub(crate) fn new(algorithm: Algorithm, key: &[u8]) -> Self {
        if algorithm == Algorithm::HmacSha1 {
            Self::Sha1(Hmac::new_from_slice(key).expect("HMAC takes any key"))
        } else {
            Self::Sha256(Hmac::new_from_slice(key).expect("HMAC takes any key"))
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(mac) => mac.update(bytes),
            Self::Sha1(mac) => mac.update(bytes),
        }
    }

    /// Whether `claimed` is the digest; in constant time, but for a wrong length.
    pub(crate) fn is(&self, claimed: &[u8]) -> bool {
        match self {
            Self::Sha256(mac) => mac.clone().verify_slice(claimed).is_ok(),
            Self::Sha1(mac) => mac.clone().verify_slice(claimed).is_ok(),
        }
    }

    pub(crate) fn digest(self) -> Vec<u8> {
        match self {
            Self::Sha256(mac) => mac.finalize().into_bytes().to_vec(),
            Self::Sha1(mac) => mac.finalize().into_bytes().to_vec(),
        }
    }

    pub(crate) fn encode(self, encoding: Encoding, into: &mut String) {
        match self {
            Self::Sha256(mac) => encode(encoding, &mac.finalize().into_bytes(), into),
            Self::Sha1(mac) => encode(encoding, &mac.finalize().into_bytes(), into),
        }
    }
}

/// Whether both are the same, in a time that tells only their lengths: by the MACs of both.
pub(crate) fn same(secret: &[u8], claimed: &[u8]) -> bool {
    let mut of_secret = Mac::new(Algorithm::HmacSha256, secret);
    of_secret.update(secret);
    let mut of_claimed = Mac::new(Algorithm::HmacSha256, secret);
    of_claimed.update(claimed);
    of_secret.is(&of_claimed.digest())
}

pub(crate) fn encode(encoding: Encoding, bytes: &[u8], into: &mut String) {
    match encoding {
        Encoding::Hex => push_hex(bytes, into),
        Encoding::Base64 => STANDARD.encode_string(bytes, into),
        Encoding::Plain => into.push_str(&String::from_utf8_lossy(bytes)),
    }
}

/// The bytes that are written so, and in no other way.
pub(crate) fn decode(encoding: Encoding, text: &[u8]) -> Option<Vec<u8>> {
    match encoding {
        Encoding::Hex => unhex(text),
        Encoding::Base64 => STANDARD.decode(text).ok(),
        Encoding::Plain => Some(text.to_vec()),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    push_hex(bytes, &mut text);
    text
}

fn push_hex(bytes: &[u8], into: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        into.push(char::from(DIGITS[usize::from(byte >> 4)]));
        into.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// Lower case only: a text in another spelling is another text.
pub(crate) fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |b: u8| match b {
        b'0'..=b'9' => Some(b - b'0'),
        b'a'..=b'f' => Some(b - b'a' + 10),
        _ => None,
    };
    let pairs = text.chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? * 16 + digit(*low)?),
        _ => None,
    });
    pairs.collect()
}
