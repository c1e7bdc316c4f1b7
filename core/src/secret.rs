//! Signing secrets: `whsec_` and the base64 of 24 to 64 random bytes (Standard Webhooks 1.0.0).

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

const PREFIX: &str = "whsec_";
/// The shortest secret, in bytes.
pub const SECRET_BYTES_MIN: usize = 24;
/// The longest secret, in bytes.
pub const SECRET_BYTES_MAX: usize = 64;

/// A shared secret. Printing it with `{:?}` shows nothing of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Secret(Vec<u8>);

/// Why a text or some bytes are not a secret.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SecretError {
    /// The text starts with a scheme tag such as `v1,` before `whsec_`.
    SchemeTag,
    /// The text does not start with `whsec_`.
    Prefix,
    /// What follows `whsec_` is not strict base64 with padding.
    Base64,
    /// It decodes to fewer than [`SECRET_BYTES_MIN`] or more than [`SECRET_BYTES_MAX`] bytes.
    Length(usize),
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SchemeTag => f.write_str(
                "a secret starts with `whsec_`; remove the `v1,` in front of it, which belongs to \
                 signatures",
            ),
            Self::Prefix => f.write_str("a secret starts with `whsec_`, followed by base64"),
            Self::Base64 => {
                f.write_str("what follows `whsec_` is not base64 (A–Z a–z 0–9 + / with = padding)")
            }
            Self::Length(bytes) => write!(
                f,
                "the secret decodes to {bytes} bytes, but must have {SECRET_BYTES_MIN} to \
                 {SECRET_BYTES_MAX}"
            ),
        }
    }
}

impl std::error::Error for SecretError {}

impl Secret {
    /// Takes raw key bytes as a secret.
    ///
    /// # Errors
    ///
    /// [`SecretError::Length`] unless there are 24 to 64 bytes.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Self, SecretError> {
        let bytes = bytes.into();
        if (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&bytes.len()) {
            Ok(Self(bytes))
        } else {
            Err(SecretError::Length(bytes.len()))
        }
    }

    /// A fresh secret of 32 bytes from 256 bits of entropy.
    #[must_use]
    pub fn from_entropy(bits: [u64; 4]) -> Self {
        Self(bits.iter().flat_map(|word| word.to_be_bytes()).collect())
    }

    /// The key of the MAC: the decoded bytes, never the text.
    pub(crate) fn key(&self) -> &[u8] {
        &self.0
    }

    /// The secret in its written form, `whsec_…`. This reveals it.
    #[must_use]
    pub fn reveal(&self) -> String {
        let mut text = PREFIX.to_owned();
        STANDARD.encode_string(&self.0, &mut text);
        text
    }
}

impl FromStr for Secret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        let Some(encoded) = text.strip_prefix(PREFIX) else {
            let tagged = text.split_once(',').is_some_and(|(_, rest)| rest.starts_with(PREFIX));
            return Err(if tagged { SecretError::SchemeTag } else { SecretError::Prefix });
        };
        Self::from_bytes(STANDARD.decode(encoded).map_err(|_| SecretError::Base64)?)
    }
}

impl TryFrom<String> for Secret {
    type Error = SecretError;

    fn try_from(text: String) -> Result<Self, SecretError> {
        text.parse()
    }
}

impl From<Secret> for String {
    fn from(secret: Secret) -> Self {
        secret.reveal()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The most secrets that can overlap in a rotation.
pub const SECRETS_MAX: usize = 8;

/// One or more secrets, the newest first. During a rotation the old one stays until no request
/// signed with it alone can be under way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<Secret>", into = "Vec<Secret>")]
pub struct Secrets(Vec<Secret>);

/// There are no secrets, or more than [`SECRETS_MAX`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SecretsError {
    count: usize,
}

impl fmt::Display for SecretsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets given, but there must be 1 to {SECRETS_MAX}", self.count)
    }
}

impl std::error::Error for SecretsError {}

impl Secrets {
    /// A single secret.
    #[must_use]
    pub fn one(secret: Secret) -> Self {
        Self(vec![secret])
    }

    /// Several secrets, the newest first.
    ///
    /// # Errors
    ///
    /// [`SecretsError`] unless there are 1 to [`SECRETS_MAX`]: without a secret nothing could be
    /// verified, and a verifier fails closed.
    pub fn new(secrets: Vec<Secret>) -> Result<Self, SecretsError> {
        if (1..=SECRETS_MAX).contains(&secrets.len()) {
            Ok(Self(secrets))
        } else {
            Err(SecretsError { count: secrets.len() })
        }
    }

    /// The secrets, the newest first.
    pub fn iter(&self) -> impl Iterator<Item = &Secret> {
        self.0.iter()
    }
}

impl TryFrom<Vec<Secret>> for Secrets {
    type Error = SecretsError;

    fn try_from(secrets: Vec<Secret>) -> Result<Self, SecretsError> {
        Self::new(secrets)
    }
}

impl From<Secrets> for Vec<Secret> {
    fn from(secrets: Secrets) -> Self {
        secrets.0
    }
}
