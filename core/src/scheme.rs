//! Signature schemes as data: what is signed, by which key, and where the signature stands.
//!
//! A [`Scheme`] describes one; [`known::all`] has those in the field, and anybody can describe
//! another one in TOML or JSON. [`Scheme::sign`] and [`Scheme::verify`] carry a description out. The
//! sender's and the receiver's own path, [`signature`](crate::signature), is the scheme
//! `standard-webhooks` by hand.
//!
//! Verifying is strict, as it is there: whole numbers are plain digits, hex is lower case, base64 is
//! canonical, the body is raw bytes, and of a list of signatures one good one is enough.

mod calendar;
mod challenge;
mod charset;
mod diagnose;
mod key;
pub mod known;
mod mac;
mod mend;
mod request;
mod respell;
mod sign;
mod template;
mod verify;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::time::Millis;

pub use challenge::{Answer, Challenge, ChallengeError};
pub use diagnose::{Diagnosis, Mistake, diagnose};
pub use key::{Key, KeyError, KeyForm, KeyReading};
pub use request::Request;
pub use sign::{Message, SignError, Signed};
pub use template::{Part, Template, TemplateError};
pub use verify::{Fault, Role};

/// A signature scheme. Written by hand, it should pass [`Scheme::check`] before it is used.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheme {
    /// Its name on the command line.
    pub name: String,
    /// Whose it is, and where that is written.
    pub source: String,
    /// How the signed bytes become a signature.
    pub algorithm: Algorithm,
    /// How the secret is written.
    pub key: KeyForm,
    /// The signed bytes, such as `{timestamp}.{body}`.
    pub signed: Template,
    /// How the signature is written.
    pub encoding: Encoding,
    /// Where it stands. With a separator there can be several.
    pub signature: Place,
    /// Where the event's id stands, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Place>,
    /// Where the time of the attempt stands, if it is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Place>,
    /// How that time is written.
    #[serde(default)]
    pub timestamp_unit: TimestampUnit,
    /// How far that time may be from the receiver's clock, on either side; `None` does not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Millis>,
    /// The query parameter that carries the hex SHA-256 of the body. A URL that has it is signed
    /// without the form, since the body is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_hash_query: Option<String>,
    /// Whether a URL counts with and without its port.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub any_port: bool,
    /// How an endpoint is asked whether it wants the events, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenge: Option<Challenge>,
    /// What a user of this scheme should know beyond what [`Scheme::warnings`] finds by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// How the signed bytes become a signature.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// HMAC with SHA-256 (RFC 2104).
    HmacSha256,
    /// HMAC with SHA-1, for what has never moved on.
    HmacSha1,
    /// Ed25519 (RFC 8032).
    Ed25519,
    /// ECDSA on P-256 with SHA-256; the signature is in DER. For verifying only.
    EcdsaP256,
    /// The secret itself, sent along. Nothing is signed.
    Token,
}

impl Algorithm {
    /// Its name, as in a description.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HmacSha256 => "hmac-sha256",
            Self::HmacSha1 => "hmac-sha1",
            Self::Ed25519 => "ed25519",
            Self::EcdsaP256 => "ecdsa-p256",
            Self::Token => "token",
        }
    }

    /// Whether the signature is a MAC, which whoever verifies could have made, too.
    #[must_use]
    pub const fn is_hmac(self) -> bool {
        matches!(self, Self::HmacSha256 | Self::HmacSha1)
    }
}

/// How a signature is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// Lower-case hexadecimal digits.
    Hex,
    /// Base64 with padding (RFC 4648, section 4).
    Base64,
    /// As it is: for [`Algorithm::Token`].
    Plain,
}

impl Encoding {
    /// Its name, as in a description.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hex => "hex",
            Self::Base64 => "base64",
            Self::Plain => "plain",
        }
    }
}

/// How a time is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimestampUnit {
    /// Whole seconds since the epoch.
    #[default]
    Seconds,
    /// Whole milliseconds since the epoch.
    Milliseconds,
    /// A date and a time, as RFC 3339 has them.
    Rfc3339,
}

impl TimestampUnit {
    /// Its name, as in a description.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Milliseconds => "milliseconds",
            Self::Rfc3339 => "rfc3339",
        }
    }

    /// How a time is written so, in words.
    pub(crate) const fn form(self) -> &'static str {
        match self {
            Self::Seconds => "whole seconds since 1970, in plain digits, as in 1767225600",
            Self::Milliseconds => {
                "whole milliseconds since 1970, in plain digits, as in 1767225600000"
            }
            Self::Rfc3339 => "a date, a time and an offset of RFC 3339, as in 2026-01-01T00:00:00Z",
        }
    }
}

/// Where a value stands in a request: in a header or in the JSON of the body.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The header, in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// A pointer into the JSON body (RFC 6901), instead of a header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<String>,
    /// What precedes the value, such as `sha256=` or, in a list of fields, `t=`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// What separates values, or fields, of one header. Items without the prefix are passed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separator: Option<String>,
}

impl Place {
    /// All of a header.
    #[must_use]
    pub fn header(name: &str) -> Self {
        Self { header: Some(name.to_owned()), ..Self::default() }
    }

    /// A value in the JSON of the body.
    #[must_use]
    pub fn json(pointer: &str) -> Self {
        Self { json: Some(pointer.to_owned()), ..Self::default() }
    }

    /// After a prefix.
    #[must_use]
    pub fn prefix(self, prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), ..self }
    }

    /// In a list.
    #[must_use]
    pub fn separator(self, separator: &str) -> Self {
        Self { separator: Some(separator.to_owned()), ..self }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.header, &self.json) {
            (Some(header), _) if self.separator.is_some() && !self.prefix.is_empty() => {
                write!(f, "`{}` in `{header}`", self.prefix)
            }
            (Some(header), _) => write!(f, "`{header}`"),
            (None, Some(pointer)) => write!(f, "`{pointer}` in the body"),
            (None, None) => f.write_str("nowhere"),
        }
    }
}

/// What is wrong with a description.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchemeError(String);

impl fmt::Display for SchemeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SchemeError {}

impl Scheme {
    /// That the description is one that can be carried out.
    ///
    /// # Errors
    ///
    /// [`SchemeError`], which names the field and what would be right.
    pub fn check(&self) -> Result<(), SchemeError> {
        let wrong = |problem: String| Err(SchemeError(problem));
        if self.name.is_empty() {
            return wrong("`name` is empty".to_owned());
        }
        let places = [
            ("signature", Some(&self.signature)),
            ("id", self.id.as_ref()),
            ("timestamp", self.timestamp.as_ref()),
        ];
        for (field, place) in places {
            if let Some(problem) = place.and_then(problem_of) {
                return wrong(format!("`{field}` {problem}"));
            }
        }
        if !self.algorithm.takes(self.key) {
            let (algorithm, key) = (self.algorithm.as_str(), self.key.as_str());
            return wrong(format!("`key` cannot be {key} where `algorithm` is {algorithm}"));
        }
        let is_token = self.algorithm == Algorithm::Token;
        if is_token != (self.encoding == Encoding::Plain) {
            return wrong("`encoding` is plain for a token, and else hex or base64".to_owned());
        }
        if !is_token && self.signed.parts().is_empty() {
            return wrong("`signed` is empty: nothing would be protected".to_owned());
        }
        for (part, field, place) in
            [(Part::Id, "id", &self.id), (Part::Timestamp, "timestamp", &self.timestamp)]
        {
            if self.signed.has(&part) && place.is_none() {
                return wrong(format!(
                    "`signed` has {{{field}}}, but `{field}` says nowhere where"
                ));
            }
        }
        let asked = |challenge| challenge::problem_of(challenge, self.algorithm, &self.signed);
        if let Some(problem) = self.challenge.and_then(asked) {
            return wrong(format!("`challenge` {problem}"));
        }
        if self.tolerance.is_some() && !self.protects_timestamp() {
            return wrong(
                "`tolerance` needs a timestamp that is signed: another one can be changed at will"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Whether a changed timestamp is noticed.
    #[must_use]
    pub fn protects_timestamp(&self) -> bool {
        self.protects(&Part::Timestamp, self.timestamp.as_ref())
    }

    /// Whether a changed id is noticed.
    #[must_use]
    pub fn protects_id(&self) -> bool {
        self.protects(&Part::Id, self.id.as_ref())
    }

    fn protects(&self, part: &Part, place: Option<&Place>) -> bool {
        let in_body = place.is_some_and(|place| place.json.is_some());
        self.signed.has(part) || in_body && self.signed.has(&Part::Body)
    }

    /// What whoever relies on this scheme should know.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.algorithm == Algorithm::Token {
            let text = "nothing is signed: whoever sees one request can send any other";
            warnings.push(text.to_owned());
        } else {
            if !self.signed.has(&Part::Body) && !self.signed.has(&Part::Form) {
                warnings.push("the body is not signed: it can be changed unnoticed".to_owned());
            }
            if self.id.is_some() && !self.protects_id() {
                let text = "the id is not signed: with another one, an old request seems new";
                warnings.push(text.to_owned());
            }
            if !self.protects_timestamp() {
                let text = "no time is signed: a captured request stays valid; deduplicate by id";
                warnings.push(text.to_owned());
            } else if self.tolerance.is_none() {
                let text = "the time is signed but its age is not limited; give a tolerance";
                warnings.push(text.to_owned());
            }
        }
        warnings.extend(self.warning.clone());
        warnings
    }
}

impl Algorithm {
    fn takes(self, key: KeyForm) -> bool {
        match self {
            Self::HmacSha256 | Self::HmacSha1 => {
                matches!(key, KeyForm::Whsec | KeyForm::Literal | KeyForm::Hex | KeyForm::Base64)
            }
            Self::Ed25519 => matches!(key, KeyForm::Ed25519 | KeyForm::Ed25519Hex),
            Self::EcdsaP256 => key == KeyForm::P256Spki,
            Self::Token => key == KeyForm::Literal,
        }
    }
}

fn problem_of(place: &Place) -> Option<&'static str> {
    let visible = |text: &str| text.bytes().all(|b| (0x20..0x7f).contains(&b));
    let is_name = |text: &String| {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        !text.is_empty() && text.bytes().all(allowed)
    };
    match (&place.header, &place.json) {
        (Some(_), Some(_)) | (None, None) => Some("must have either `header` or `json`"),
        (Some(name), None) if !is_name(name) => Some("has a `header` that is no header's name"),
        (None, Some(pointer)) if !pointer.starts_with('/') => Some(
            "has a `json` that is no pointer: it begins with a slash, as in `/signature/token`",
        ),
        (None, Some(_)) if place.separator.is_some() => Some("has a `separator` in JSON"),
        _ if !visible(&place.prefix) => Some("has a `prefix` that no header can hold"),
        _ => match place.separator.as_deref() {
            Some(text) if text != " " && (text.trim_end().len() != 1 || !visible(text)) => {
                Some("has a `separator` that is not one character, or one and a space")
            }
            _ => None,
        },
    }
}
