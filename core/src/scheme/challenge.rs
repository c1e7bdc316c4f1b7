//! What a vendor asks of an endpoint before it sends events there, and what it wants to read.
//!
//! A challenge that is answered with a MAC is signed itself, and must be verified first: whoever may
//! choose what the key is applied to can have a request signed. So a token is only taken if it can
//! be no part of what the scheme signs.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::key::{Key, Material};
use super::mac::{Mac, hex};
use super::request::{Request, form_decoded, query};
use super::template::{Part, Template};
use super::{Algorithm, Scheme};

const PARAMETER: &str = "challenge";
const VALIDATION: &str = "endpoint.url_validation";

/// The longest token that is taken, in bytes. Zoom's have 22.
const TOKEN_MAX: usize = 200;

/// How a vendor makes sure that an endpoint wants its events.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Challenge {
    /// A GET with the parameter `challenge`, which is answered with its value; it is not signed.
    /// Dropbox: "Webhooks", the verification request.
    Echo,
    /// A signed `endpoint.url_validation`, which is answered with its `plainToken` and the MAC of
    /// that. Zoom: "Using webhooks", "Validate your webhook endpoint".
    TokenMac,
}

/// The answer to a challenge, under status 200.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The value of `Content-Type`. A browser must not take it for anything else, so send
    /// `X-Content-Type-Options: nosniff`, too.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

/// Why a challenge is not answered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ChallengeError {
    /// The token is missing, too long, or holds other characters than a token has.
    Token,
    /// The key is no key of a MAC.
    Key,
}

impl fmt::Display for ChallengeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token => write!(
                f,
                "the challenge is not answered: its token is empty, longer than {TOKEN_MAX} \
                 characters, or holds others than letters, digits and + / - _ ="
            ),
            Self::Key => f.write_str("the challenge is answered with the secret that signs"),
        }
    }
}

impl std::error::Error for ChallengeError {}

impl Scheme {
    /// What this request is answered with, if it is the scheme's challenge. Verify it first, unless
    /// the challenge is [`Challenge::Echo`], which nobody signs.
    ///
    /// # Errors
    ///
    /// [`ChallengeError`], if it is a challenge that had better not be answered.
    pub fn answer(
        &self,
        key: &Key,
        request: &Request<'_>,
    ) -> Result<Option<Answer>, ChallengeError> {
        match self.challenge {
            Some(Challenge::Echo) => echo(request),
            Some(Challenge::TokenMac) => self.token_mac(key, request),
            None => Ok(None),
        }
    }

    fn token_mac(
        &self,
        key: &Key,
        request: &Request<'_>,
    ) -> Result<Option<Answer>, ChallengeError> {
        let Ok(document) = serde_json::from_slice::<Value>(request.body) else { return Ok(None) };
        if document.get("event").and_then(Value::as_str) != Some(VALIDATION) {
            return Ok(None);
        }
        let token = document.pointer("/payload/plainToken").and_then(Value::as_str);
        let token = token.filter(|text| is_token(text.as_bytes())).ok_or(ChallengeError::Token)?;
        let Material::Bytes(key) = &key.0 else { return Err(ChallengeError::Key) };
        let mut mac = Mac::new(self.algorithm, key);
        mac.update(token.as_bytes());
        let mac = hex(&mac.digest());
        let body = format!(r#"{{"plainToken": "{token}", "encryptedToken": "{mac}"}}"#);
        Ok(Some(Answer { content_type: "application/json", body }))
    }
}

fn echo(request: &Request<'_>) -> Result<Option<Answer>, ChallengeError> {
    let Some(value) = query(request.url, PARAMETER).filter(|_| request.method == "GET") else {
        return Ok(None);
    };
    let value = form_decoded(value.as_bytes());
    let token = String::from_utf8(value).ok().filter(|text| is_token(text.as_bytes()));
    let body = token.ok_or(ChallengeError::Token)?;
    Ok(Some(Answer { content_type: "text/plain", body }))
}

/// Neither HTML that an echo would bring to a browser, nor anything with a mark that joins what is
/// signed.
fn is_token(text: &[u8]) -> bool {
    (1..=TOKEN_MAX).contains(&text.len()) && text.iter().copied().all(is_of_token)
}

fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_=".contains(&byte)
}

/// What makes a challenge impossible, or dangerous, for a scheme that signs so.
pub(crate) fn problem_of(
    challenge: Challenge,
    algorithm: Algorithm,
    signed: &Template,
) -> Option<&'static str> {
    let is_apart = signed.parts().iter().any(
        |part| matches!(part, Part::Text(text) if text.bytes().any(|byte| !is_of_token(byte))),
    );
    match challenge {
        Challenge::Echo => None,
        Challenge::TokenMac if !algorithm.is_hmac() => Some("needs an `algorithm` that is a MAC"),
        Challenge::TokenMac if !is_apart => Some(
            "would sign requests for whoever asks: `signed` needs text, such as a colon, that no \
             token holds",
        ),
        Challenge::TokenMac => None,
    }
}
