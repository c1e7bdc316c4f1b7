//! Verifying by a described scheme.

use std::borrow::Cow;
use std::fmt;

use p256::ecdsa::signature::hazmat::PrehashVerifier as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::key::{Key, Material};
use super::mac::{Mac, decode, same};
use super::request::{Request, Values, body_hash, other_port, query};
use super::template::{Part, Template};
use super::{Algorithm, Place, Scheme, TimestampUnit, calendar};
use crate::signature::TOKENS_MAX;
use crate::time::{Millis, Timestamp};

/// So many characters of a timestamp are told.
const TIMESTAMP_SHOWN_MAX: usize = 40;

/// What a value is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// The event's id.
    Id,
    /// The time of the attempt.
    Timestamp,
    /// The signature.
    Signature,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Id => "the event's id",
            Self::Timestamp => "the timestamp",
            Self::Signature => "the signature",
        })
    }
}

/// Which check failed. This is for whoever runs the receiver; the HTTP answer must be the same for
/// all of them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// The value is not there, or empty.
    Missing {
        /// What the value is for.
        role: Role,
        /// Where it should stand.
        place: String,
    },
    /// The value is there more than once.
    Repeated {
        /// What the value is for.
        role: Role,
        /// Where it should stand once.
        place: String,
    },
    /// The id holds the text that separates it from what follows, so that what is signed can be read
    /// in two ways.
    AmbiguousId,
    /// The URL is part of what is signed, and is not known.
    MissingUrl,
    /// The timestamp is not written as the scheme has it.
    MalformedTimestamp {
        /// What stands there, shortened if it is long.
        value: String,
        /// How the scheme has it.
        unit: TimestampUnit,
    },
    /// The timestamp is older than the tolerance allows.
    TooOld {
        /// How much older than now it is.
        age: Millis,
        /// How far from now it may be.
        tolerance: Millis,
    },
    /// The timestamp is further in the future than the tolerance allows.
    TooNew {
        /// How far from now it is.
        ahead: Millis,
        /// How far from now it may be.
        tolerance: Millis,
    },
    /// The signature is in none of the places, or not in the encoding, of the scheme.
    NoUsableSignature,
    /// The body is not the one whose hash is in the URL.
    BodyHash,
    /// There are well-formed signatures, and none matches any secret.
    Mismatch,
}

impl Fault {
    /// A name for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "missing",
            Self::Repeated { .. } => "repeated",
            Self::AmbiguousId => "ambiguous-id",
            Self::MissingUrl => "missing-url",
            Self::MalformedTimestamp { .. } => "malformed-timestamp",
            Self::TooOld { .. } => "too-old",
            Self::TooNew { .. } => "too-new",
            Self::NoUsableSignature => "no-usable-signature",
            Self::BodyHash => "body-hash",
            Self::Mismatch => "mismatch",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { role, place } => write!(f, "{role} is missing: no {place}"),
            Self::Repeated { role, place } => write!(f, "{role} is there more than once: {place}"),
            Self::AmbiguousId => f.write_str("the id holds the separator of what is signed"),
            Self::MissingUrl => f.write_str("the scheme signs the URL, which is not known"),
            Self::MalformedTimestamp { value, unit } => write!(
                f,
                "the timestamp is `{}`, and the scheme has {}",
                value.escape_debug(),
                unit.form()
            ),
            Self::TooOld { age, tolerance } => {
                write!(f, "the timestamp is {age} old, beyond the tolerance of {tolerance}")
            }
            Self::TooNew { ahead, tolerance } => {
                write!(
                    f,
                    "the timestamp is {ahead} in the future, beyond the tolerance of {tolerance}"
                )
            }
            Self::NoUsableSignature => {
                f.write_str("no signature is in the place and in the encoding of the scheme")
            }
            Self::BodyHash => f.write_str("the body is not the one whose hash is in the URL"),
            Self::Mismatch => {
                f.write_str("no signature matches: another secret, or other bytes were signed")
            }
        }
    }
}

impl std::error::Error for Fault {}

impl Scheme {
    /// Verifies a request against every key; digests are compared in constant time. `tolerance` is
    /// usually [`Scheme::tolerance`]; without one, or where the time is not protected, the age is not
    /// looked at.
    ///
    /// # Errors
    ///
    /// [`Fault`], which names the first check that failed.
    pub fn verify(
        &self,
        keys: &[Key],
        request: &Request<'_>,
        now: Timestamp,
        tolerance: Option<Millis>,
    ) -> Result<(), Fault> {
        let tolerance = tolerance.filter(|_| self.protects_timestamp());
        let values = self.values(request, tolerance.is_some())?;
        let found = self.signature.values(Role::Signature, request)?;
        if let Some(tolerance) = tolerance {
            let sent_at = calendar::read(self.timestamp_unit, &values.timestamp);
            let sent_at = sent_at.ok_or_else(|| self.malformed(&values.timestamp))?;
            let (age, ahead) = (now.since(sent_at), sent_at.since(now));
            if age > tolerance {
                return Err(Fault::TooOld { age, tolerance });
            }
            if ahead > tolerance {
                return Err(Fault::TooNew { ahead, tolerance });
            }
        }
        if self.signed.has(&Part::Timestamp)
            && calendar::read(self.timestamp_unit, &values.timestamp).is_none()
        {
            return Err(self.malformed(&values.timestamp));
        }
        let claimed: Vec<_> = found
            .iter()
            .filter_map(|text| decode(self.encoding, text))
            .filter(|claim| self.algorithm.fits(claim.len()))
            .take(TOKENS_MAX)
            .collect();
        if claimed.is_empty() {
            return Err(Fault::NoUsableSignature);
        }
        let other = if self.any_port { other_port(request.url) } else { None };
        let other = other.map(|url| Values { url: Cow::Owned(url), ..values.clone() });
        let mut readings = std::iter::once(&values).chain(&other);
        if !readings
            .any(|values| keys.iter().any(|key| self.matches(&self.signed, key, values, &claimed)))
        {
            return Err(Fault::Mismatch);
        }
        if self.is_body_of_hash(&values) { Ok(()) } else { Err(Fault::BodyHash) }
    }

    fn malformed(&self, timestamp: &[u8]) -> Fault {
        let text = String::from_utf8_lossy(timestamp);
        let mut value: String = text.chars().take(TIMESTAMP_SHOWN_MAX).collect();
        if value.len() < text.len() {
            value.push('…');
        }
        Fault::MalformedTimestamp { value, unit: self.timestamp_unit }
    }

    /// Whether the body is the one whose hash is in the URL, if one is there.
    pub(crate) fn is_body_of_hash(&self, values: &Values<'_>) -> bool {
        let hash = self.body_hash_query.as_ref().and_then(|name| query(&values.url, name));
        hash.is_none_or(|hash| same(body_hash(&values.body).as_bytes(), hash.as_bytes()))
    }

    /// Whether this key made one of the signatures of what `signed` and `values` say.
    pub(crate) fn matches(
        &self,
        signed: &Template,
        key: &Key,
        values: &Values<'_>,
        claimed: &[Vec<u8>],
    ) -> bool {
        match (self.algorithm, &key.0) {
            (Algorithm::HmacSha256 | Algorithm::HmacSha1, Material::Bytes(key)) => {
                let mut mac = Mac::new(self.algorithm, key);
                values.feed(signed, |piece| mac.update(piece));
                claimed.iter().any(|claim| mac.is(claim))
            }
            (Algorithm::Ed25519, Material::Ed25519 { public, .. }) => {
                let bytes = values.signed_bytes(signed);
                claimed.iter().any(|claim| {
                    ed25519_dalek::Signature::from_slice(claim)
                        .is_ok_and(|signature| public.verify_strict(&bytes, &signature).is_ok())
                })
            }
            (Algorithm::EcdsaP256, Material::P256(public)) => {
                let mut hash = Sha256::new();
                values.feed(signed, |piece| hash.update(piece));
                let hash = hash.finalize();
                claimed.iter().any(|claim| {
                    p256::ecdsa::DerSignature::from_bytes(claim)
                        .is_ok_and(|signature| public.verify_prehash(&hash, &signature).is_ok())
                })
            }
            (Algorithm::Token, Material::Bytes(token)) => {
                claimed.iter().any(|claim| same(token, claim))
            }
            _ => false,
        }
    }

    /// What fills the template, as the request has it; and the time, if that is wanted anyway.
    pub(crate) fn values<'a>(
        &self,
        request: &Request<'a>,
        wants_time: bool,
    ) -> Result<Values<'a>, Fault> {
        let one = |part: &Part, role, place: &Option<Place>, is_wanted: bool| {
            if !self.signed.has(part) && !is_wanted {
                return Ok(Cow::Borrowed(&[][..]));
            }
            let Some(place) = place else {
                return Err(Fault::Missing { role, place: "place is described".to_owned() });
            };
            let mut found = place.values(role, request)?;
            match (found.pop(), found.is_empty()) {
                (Some(value), true) if !value.is_empty() => Ok(value),
                (Some(_), false) => Err(Fault::Repeated { role, place: place.to_string() }),
                _ => Err(Fault::Missing { role, place: place.to_string() }),
            }
        };
        let id = one(&Part::Id, Role::Id, &self.id, false)?;
        if let Some(text) = self.signed.text_after(&Part::Id)
            && contains(&id, text.as_bytes())
        {
            return Err(Fault::AmbiguousId);
        }
        let timestamp = one(&Part::Timestamp, Role::Timestamp, &self.timestamp, wants_time)?;
        let signs_url = [Part::Url, Part::UrlDecoded].iter().any(|part| self.signed.has(part));
        if signs_url && request.url.is_empty() {
            return Err(Fault::MissingUrl);
        }
        let hash = self.body_hash_query.as_ref().and_then(|name| query(request.url, name));
        Ok(Values {
            id,
            timestamp,
            method: request.method,
            url: Cow::Borrowed(request.url),
            body: Cow::Borrowed(request.body),
            is_hashed: hash.is_some(),
        })
    }

    /// What stands in the signature's place, well-formed or not.
    pub(crate) fn signatures<'a>(&self, request: &Request<'a>) -> Vec<Cow<'a, [u8]>> {
        self.signature.values(Role::Signature, request).unwrap_or_default()
    }
}

impl Place {
    /// The values that stand here in a request: one, or as many as its list has with its prefix. `role` is what
    /// they are for.
    ///
    /// # Errors
    ///
    /// [`Fault::Missing`], and [`Fault::Repeated`] if the header has several lines.
    pub fn values<'a>(
        &self,
        role: Role,
        request: &Request<'a>,
    ) -> Result<Vec<Cow<'a, [u8]>>, Fault> {
        let missing = || Fault::Missing { role, place: self.to_string() };
        if let Some(pointer) = &self.json {
            let value = in_json(request.body, pointer).ok_or_else(missing)?;
            return Ok(vec![Cow::Owned(value)]);
        }
        let name = self.header.as_deref().unwrap_or_default();
        let mut lines = request.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        let (_, value) = lines.next().ok_or_else(missing)?;
        if lines.next().is_some() {
            return Err(Fault::Repeated { role, place: self.to_string() });
        }
        let prefix = self.prefix.as_bytes();
        let items = items(value, self.separator.as_deref());
        Ok(items.into_iter().filter_map(|i| i.strip_prefix(prefix)).map(Cow::Borrowed).collect())
    }
}

impl Algorithm {
    /// Whether a signature can have this many bytes.
    pub(crate) fn fits(self, length: usize) -> bool {
        match self {
            Self::HmacSha256 => length == 32,
            Self::HmacSha1 => length == 20,
            Self::Ed25519 => length == 64,
            Self::EcdsaP256 | Self::Token => length > 0,
        }
    }
}

/// The items of a list; a separator other than a space may have spaces around it.
fn items<'a>(value: &'a [u8], separator: Option<&str>) -> Vec<&'a [u8]> {
    let Some(separator) = separator else { return vec![value] };
    let mark = separator.trim().bytes().next().unwrap_or(b' ');
    let trimmed = |mut item: &'a [u8]| {
        while let [b' ', rest @ ..] | [rest @ .., b' '] = item {
            item = rest;
        }
        item
    };
    value.split(|b| *b == mark).map(trimmed).filter(|item| !item.is_empty()).collect()
}

/// A text or a whole number in JSON.
pub(crate) fn in_json(body: &[u8], pointer: &str) -> Option<Vec<u8>> {
    let document: Value = serde_json::from_slice(body).ok()?;
    match document.pointer(pointer)? {
        Value::String(text) => Some(text.clone().into_bytes()),
        Value::Number(number) if number.is_i64() => Some(number.to_string().into_bytes()),
        _ => None,
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len().max(1)).any(|window| window == wanted)
}
