//! Signing by a described scheme.

use std::borrow::Cow;
use std::fmt;

use ed25519_dalek::Signer as _;

use super::key::{Key, Material};
use super::mac::{Mac, encode};
use super::request::{Values, body_hash, query};
use super::template::Part;
use super::{Algorithm, Place, Scheme, calendar};
use crate::time::Timestamp;

/// What is to be signed.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The event's id; where a scheme has a nonce, that.
    pub id: &'a str,
    /// The time of this attempt.
    pub at: Timestamp,
    /// The method of the request.
    pub method: &'a str,
    /// Its URL; may be empty where the scheme does not sign it.
    pub url: &'a str,
    /// The body, byte for byte as it will be sent.
    pub body: &'a [u8],
}

/// What a request must carry to be signed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Signed {
    /// The header fields.
    pub headers: Vec<(String, String)>,
    /// Values within the JSON of the body, by their pointers, where the scheme does not sign the body.
    pub fields: Vec<(String, String)>,
}

/// Why nothing was signed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SignError {
    /// No key was given.
    NoKey,
    /// There are several keys, and the header has room for one signature.
    OneKeyOnly,
    /// The key is a public one, or of an algorithm that is only verified.
    CannotSign,
    /// The key is of another kind than the scheme's.
    OtherKind,
    /// The scheme signs the id, and there is none.
    MissingId,
    /// The id holds the text that separates it from what follows, or what no header can hold.
    AmbiguousId,
    /// The scheme signs the URL, and there is none.
    MissingUrl,
    /// The time cannot be written without a sign or, as a date, with a year of four digits.
    TimeOutOfRange,
}

impl fmt::Display for SignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoKey => "there is no secret to sign with",
            Self::OneKeyOnly => "the scheme's header holds one signature, so one secret can sign",
            Self::CannotSign => "the key can only verify; sign with the private key",
            Self::OtherKind => "the key is of another kind than the scheme's",
            Self::MissingId => "the scheme signs the event's id, and there is none",
            Self::AmbiguousId => {
                "the id holds the separator that follows it where it is signed, or a character that \
                 no header can hold"
            }
            Self::MissingUrl => "the scheme signs the URL, and there is none",
            Self::TimeOutOfRange => "the time cannot be written in the way of the scheme",
        })
    }
}

impl std::error::Error for SignError {}

impl Scheme {
    /// Signs with every key, the newest first.
    ///
    /// # Errors
    ///
    /// [`SignError`], if the scheme cannot sign this with these keys.
    pub fn sign(&self, keys: &[Key], message: &Message<'_>) -> Result<Signed, SignError> {
        if keys.is_empty() {
            return Err(SignError::NoKey);
        }
        let joint = self.signature.separator.as_deref();
        if keys.len() > 1 && joint.is_none() {
            return Err(SignError::OneKeyOnly);
        }
        let values = self.values_of(message)?;
        let mut tokens = String::new();
        for key in keys {
            if !tokens.is_empty() {
                tokens.push_str(joint.unwrap_or_default());
            }
            tokens.push_str(&self.signature.prefix);
            self.sign_with(key, &values, &mut tokens)?;
        }
        let mut signed = Signed::default();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        // One that is not signed may be left out.
        if let Some(place) = self.id.as_ref().filter(|_| !values.id.is_empty()) {
            self.put(place, text(&values.id), &mut signed);
        }
        if let Some(place) = &self.timestamp {
            self.put(place, text(&values.timestamp), &mut signed);
        }
        // The tokens already bear their prefix.
        self.put(&Place { prefix: String::new(), ..self.signature.clone() }, tokens, &mut signed);
        Ok(signed)
    }

    fn values_of<'a>(&self, message: &Message<'a>) -> Result<Values<'a>, SignError> {
        if self.signed.has(&Part::Id) && message.id.is_empty() {
            return Err(SignError::MissingId);
        }
        let is_blurred = self.signed.text_after(&Part::Id).is_some_and(|t| message.id.contains(t));
        if self.id.is_some()
            && (is_blurred || !message.id.bytes().all(|b| (0x21..0x7f).contains(&b)))
        {
            return Err(SignError::AmbiguousId);
        }
        let signs_url = self.signed.has(&Part::Url) || self.signed.has(&Part::UrlDecoded);
        if signs_url && message.url.is_empty() {
            return Err(SignError::MissingUrl);
        }
        let timestamp = calendar::write(self.timestamp_unit, message.at);
        if self.timestamp.is_some() && timestamp.is_none() {
            return Err(SignError::TimeOutOfRange);
        }
        let hashed = self.body_hash_query.as_ref().and_then(|name| query(message.url, name));
        Ok(Values {
            id: Cow::Borrowed(message.id.as_bytes()),
            timestamp: Cow::Owned(timestamp.unwrap_or_default().into_bytes()),
            method: message.method,
            url: Cow::Borrowed(message.url),
            body: Cow::Borrowed(message.body),
            is_hashed: hashed.is_some(),
        })
    }

    fn sign_with(
        &self,
        key: &Key,
        values: &Values<'_>,
        into: &mut String,
    ) -> Result<(), SignError> {
        match (self.algorithm, &key.0) {
            (Algorithm::HmacSha256 | Algorithm::HmacSha1, Material::Bytes(key)) => {
                let mut mac = Mac::new(self.algorithm, key);
                values.feed(&self.signed, |piece| mac.update(piece));
                mac.encode(self.encoding, into);
            }
            (Algorithm::Ed25519, Material::Ed25519 { private, .. }) => {
                let private = private.as_ref().ok_or(SignError::CannotSign)?;
                let signature = private.sign(&values.signed_bytes(&self.signed));
                encode(self.encoding, &signature.to_bytes(), into);
            }
            (Algorithm::EcdsaP256, Material::P256(_)) => return Err(SignError::CannotSign),
            (Algorithm::Token, Material::Bytes(token)) => encode(self.encoding, token, into),
            _ => return Err(SignError::OtherKind),
        }
        Ok(())
    }

    /// Puts a value in its place, beside what the same header already holds.
    fn put(&self, place: &Place, value: String, signed: &mut Signed) {
        let value = if place.prefix.is_empty() { value } else { place.prefix.clone() + &value };
        if let Some(pointer) = &place.json {
            // In a signed body, it is for the body's author to write it.
            if !self.signed.has(&Part::Body) {
                signed.fields.push((pointer.clone(), value));
            }
        } else if let Some(name) = &place.header {
            let shared = signed.headers.iter_mut().find(|(other, _)| other == name);
            match (shared, &place.separator) {
                (Some((_, items)), Some(separator)) => {
                    items.push_str(separator);
                    items.push_str(&value);
                }
                _ => signed.headers.push((name.clone(), value)),
            }
        }
    }

    /// The URL that is called, with the hash of a body that is no form, if the scheme wants one.
    #[must_use]
    pub fn url_to_call(&self, url: &str, body: &[u8], body_is_form: bool) -> String {
        match &self.body_hash_query {
            Some(name) if !body_is_form && query(url, name).is_none() => {
                let joint = if url.contains('?') { '&' } else { '?' };
                format!("{url}{joint}{name}={}", body_hash(body))
            }
            _ => url.to_owned(),
        }
    }
}
