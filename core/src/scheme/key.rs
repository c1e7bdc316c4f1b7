//! Keys of schemes, each in the form in which its owner gives it out.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use super::mac::{hex, unhex};
use crate::secret::{Secret, SecretError};

const SYMMETRIC: &str = "whsec_";
const PUBLIC: &str = "whpk_";
const PRIVATE: &str = "whsk_";

/// What precedes the point of an uncompressed P-256 key in a `SubjectPublicKeyInfo` (RFC 5480).
const P256_SPKI: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// How a key is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyForm {
    /// `whsec_` and the base64 of 24 to 64 bytes.
    Whsec,
    /// The text itself, byte for byte, whatever it looks like.
    Literal,
    /// Hexadecimal digits in either case.
    Hex,
    /// Base64 with padding.
    Base64,
    /// `whpk_` and the base64 of a public Ed25519 key; or `whsk_` and that of a private one, alone or
    /// with its public one behind it.
    Ed25519,
    /// The same in hexadecimal digits without a prefix: 64 of them are a public key, 128 a private
    /// and its public one.
    Ed25519Hex,
    /// The base64 of the DER of a public P-256 key.
    P256Spki,
}

impl KeyForm {
    /// Its name, as in a description.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Whsec => "whsec",
            Self::Literal => "literal",
            Self::Hex => "hex",
            Self::Base64 => "base64",
            Self::Ed25519 => "ed25519",
            Self::Ed25519Hex => "ed25519-hex",
            Self::P256Spki => "p256-spki",
        }
    }
}

/// A key. Printing it with `{:?}` shows nothing of it. Whether two are the same is found in a time that
/// depends on them: to compare settings, and not to check what comes from outside.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(pub(crate) Material);

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Material {
    Bytes(Vec<u8>),
    Ed25519 {
        public: Box<ed25519_dalek::VerifyingKey>,
        private: Option<Box<ed25519_dalek::SigningKey>>,
    },
    P256(Box<p256::ecdsa::VerifyingKey>),
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Why a text is no key of a form. It says nothing of the text itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyError {
    /// There is nothing.
    Empty,
    /// `v1,` or the like stands before `whsec_`.
    SchemeTag,
    /// It is no Standard Webhooks secret.
    Whsec(SecretError),
    /// It is not hexadecimal.
    Hex,
    /// It is not base64.
    Base64,
    /// It is no Ed25519 key in the form of Standard Webhooks.
    Ed25519,
    /// It is no Ed25519 key in hexadecimal digits.
    Ed25519Hex,
    /// It is no P-256 public key.
    P256,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "an empty secret protects nothing",
            Self::SchemeTag => {
                "a secret starts with `whsec_`; remove the `v1,` in front of it, which belongs to \
                 signatures"
            }
            Self::Whsec(error) => return error.fmt(f),
            Self::Hex => "the secret is an even number of hexadecimal digits",
            Self::Base64 => "the secret is base64 (A–Z a–z 0–9 + / with = padding)",
            Self::Ed25519 => {
                "the key is `whpk_` (public) or `whsk_` (private) and the base64 of an Ed25519 key"
            }
            Self::Ed25519Hex => {
                "the key is 64 hexadecimal digits (public) or 128 (private and public), Ed25519"
            }
            Self::P256 => {
                "the key is the base64 of a public P-256 key in DER, as it begins MFkwEw…"
            }
        })
    }
}

impl std::error::Error for KeyError {}

impl From<&Secret> for Key {
    fn from(secret: &Secret) -> Self {
        Self(Material::Bytes(secret.key().to_vec()))
    }
}

impl Key {
    /// Reads a key in this form.
    ///
    /// # Errors
    ///
    /// [`KeyError`], if it is not in this form.
    pub fn parse(form: KeyForm, text: &str) -> Result<Self, KeyError> {
        if text.is_empty() {
            return Err(KeyError::Empty);
        }
        if text.split_once(',').is_some_and(|(_, rest)| rest.starts_with(SYMMETRIC)) {
            return Err(KeyError::SchemeTag);
        }
        match form {
            KeyForm::Whsec => {
                let secret: Secret = text.parse().map_err(KeyError::Whsec)?;
                Ok(Self::from(&secret))
            }
            KeyForm::Literal => Ok(Self(Material::Bytes(text.into()))),
            KeyForm::Hex => {
                let lower = text.to_ascii_lowercase();
                Ok(Self(Material::Bytes(unhex(lower.as_bytes()).ok_or(KeyError::Hex)?)))
            }
            KeyForm::Base64 => {
                let bytes = STANDARD.decode(text).map_err(|_| KeyError::Base64)?;
                Ok(Self(Material::Bytes(bytes)))
            }
            KeyForm::Ed25519 => ed25519(text).ok_or(KeyError::Ed25519),
            KeyForm::Ed25519Hex => ed25519_hex(text).ok_or(KeyError::Ed25519Hex),
            KeyForm::P256Spki => p256(text).ok_or(KeyError::P256),
        }
    }

    /// Whether it can sign, and not only verify.
    #[must_use]
    pub fn can_sign(&self) -> bool {
        match &self.0 {
            Material::Bytes(_) => true,
            Material::Ed25519 { private, .. } => private.is_some(),
            Material::P256(_) => false,
        }
    }

    /// The public key, in the form of Standard Webhooks, if this is an Ed25519 key.
    #[must_use]
    pub fn public_text(&self) -> Option<String> {
        let Material::Ed25519 { public, .. } = &self.0 else { return None };
        Some(format!("{PUBLIC}{}", STANDARD.encode(public.as_bytes())))
    }

    /// The other ways in which this text could be meant as the key of a MAC: the usual mistakes.
    pub(crate) fn misreadings(form: KeyForm, text: &str) -> Vec<(KeyReading, Vec<u8>)> {
        let bare = text.strip_prefix(SYMMETRIC);
        let mut readings = vec![(KeyReading::Text, text.as_bytes().to_vec())];
        let mut add = |reading, bytes: Option<Vec<u8>>| {
            readings.extend(bytes.filter(|b| !b.is_empty()).map(|bytes| (reading, bytes)));
        };
        add(KeyReading::TextWithoutPrefix, bare.map(|bare| bare.as_bytes().to_vec()));
        add(KeyReading::WithLineBreak, Some(format!("{text}\n").into_bytes()));
        let trimmed = text.trim();
        add(KeyReading::Trimmed, Some(trimmed.as_bytes().to_vec()));
        let encoded = bare.unwrap_or(text).trim();
        add(KeyReading::Hex, unhex(encoded.to_ascii_lowercase().as_bytes()));
        add(KeyReading::Base64, STANDARD.decode(encoded).ok());
        for lenient in [STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD] {
            add(KeyReading::LenientBase64, lenient.decode(encoded).ok());
        }
        if let Ok(Self(Material::Bytes(right))) = Self::parse(form, text) {
            let as_text = hex(&right).into_bytes();
            readings.push((KeyReading::HexOfKey, as_text));
            readings.retain(|(_, bytes)| *bytes != right);
        }
        readings
    }
}

/// A way to take a secret that is not its scheme's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeyReading {
    /// The whole text, not decoded.
    Text,
    /// What follows `whsec_`, not decoded.
    TextWithoutPrefix,
    /// The text and a line break, as a file ends in one.
    WithLineBreak,
    /// The text without the white space around it.
    Trimmed,
    /// Decoded as hexadecimal.
    Hex,
    /// Decoded as base64.
    Base64,
    /// Decoded as base64 without padding, or with the alphabet of URLs.
    LenientBase64,
    /// Decoded, and then written as hexadecimal.
    HexOfKey,
}

impl fmt::Display for KeyReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "as the text itself, not decoded",
            Self::TextWithoutPrefix => "as the text after `whsec_`, not decoded",
            Self::WithLineBreak => "with a line break at its end",
            Self::Trimmed => "without the white space around it",
            Self::Hex => "decoded from hex",
            Self::Base64 => "decoded from base64",
            Self::LenientBase64 => "decoded from base64 that is not canonical",
            Self::HexOfKey => "decoded and then written in hex",
        })
    }
}

fn ed25519(text: &str) -> Option<Key> {
    if let Some(encoded) = text.strip_prefix(PUBLIC) {
        return public(&STANDARD.decode(encoded).ok()?);
    }
    private(&STANDARD.decode(text.strip_prefix(PRIVATE)?).ok()?)
}

fn ed25519_hex(text: &str) -> Option<Key> {
    let bytes = unhex(text.to_ascii_lowercase().as_bytes())?;
    if bytes.len() == 64 { private(&bytes) } else { public(&bytes) }
}

fn public(bytes: &[u8]) -> Option<Key> {
    let public = ed25519_dalek::VerifyingKey::from_bytes(&bytes.try_into().ok()?).ok()?;
    // With a key of small order, one signature fits many messages.
    let strong = !public.is_weak();
    strong.then(|| Key(Material::Ed25519 { public: Box::new(public), private: None }))
}

/// A seed, or a seed and the public key that belongs to it.
fn private(bytes: &[u8]) -> Option<Key> {
    let (seed, public) = bytes.split_at_checked(32)?;
    let private = ed25519_dalek::SigningKey::from_bytes(&seed.try_into().ok()?);
    let derived = private.verifying_key();
    if !public.is_empty() && public != derived.as_bytes() {
        return None;
    }
    let (public, private) = (Box::new(derived), Some(Box::new(private)));
    Some(Key(Material::Ed25519 { public, private }))
}

fn p256(text: &str) -> Option<Key> {
    let der = STANDARD.decode(text).ok()?;
    let point = der.strip_prefix(&P256_SPKI)?;
    let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(point).ok()?;
    Some(Key(Material::P256(Box::new(key))))
}
