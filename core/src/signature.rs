//! Standard Webhooks 1.0.0 signatures, scheme `v1`: HMAC-SHA256 over `id.timestamp.body`.
//!
//! Verifying is strict where libraries disagree: integers are digits only, base64 is canonical, the
//! body is raw bytes, and a malformed token beside a good one is skipped rather than fatal.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::secret::{Secret, Secrets};
use crate::time::{Millis, Timestamp};

/// The header that carries the event id.
pub const ID_HEADER: &str = "webhook-id";
/// The header that carries the time of the attempt, in seconds since the epoch.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";
/// The header that carries the signatures, separated by spaces.
pub const SIGNATURE_HEADER: &str = "webhook-signature";

/// How far an attempt's timestamp may be from the receiver's clock, on either side.
pub const TOLERANCE: Millis = Millis::from_minutes(5);

/// The most well-formed tokens that are compared: more than a rotation can need.
pub const TOKENS_MAX: usize = 32;

const TAG: &str = "v1,";

/// The value of [`SIGNATURE_HEADER`] for one attempt: one `v1,…` token per secret, the newest first.
///
/// `id` must hold no full stop: [`verify`] refuses it. An [`EventId`](crate::id::EventId) never does.
/// `timestamp` is the time of this attempt, in seconds; signing the time of creation would make
/// every retry after the tolerance fail.
#[must_use]
pub fn sign(secrets: &Secrets, id: &str, timestamp: i64, body: &[u8]) -> String {
    let mut value = String::new();
    for secret in secrets.iter() {
        if !value.is_empty() {
            value.push(' ');
        }
        value.push_str(TAG);
        let digest = mac(secret, id.as_bytes(), timestamp.to_string().as_bytes(), body).finalize();
        STANDARD.encode_string(digest.into_bytes(), &mut value);
    }
    value
}

/// The parts of a request that are verified, as they arrived.
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    /// [`ID_HEADER`], if there is exactly one.
    pub id: Option<&'a [u8]>,
    /// [`TIMESTAMP_HEADER`], if there is exactly one.
    pub timestamp: Option<&'a [u8]>,
    /// [`SIGNATURE_HEADER`], if there is exactly one.
    pub signature: Option<&'a [u8]>,
    /// The raw body.
    pub body: &'a [u8],
}

/// Which check failed. This is for the log of whoever runs the receiver; the HTTP answer must be
/// the same for all of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VerifyError {
    /// No event id, or an empty one, or several.
    MissingId,
    /// The event id holds a full stop. Id `a`, time `1`, body `2.b` and id `a.1`, time `2`, body `b` are
    /// the same bytes, so whoever holds a signed request could give it another id and another time.
    AmbiguousId,
    /// No timestamp, or several.
    MissingTimestamp,
    /// No signature, or several header lines.
    MissingSignature,
    /// The timestamp is not a plain decimal number of seconds.
    MalformedTimestamp,
    /// The timestamp is too far in the past.
    TooOld,
    /// The timestamp is too far in the future.
    TooNew,
    /// There is no well-formed `v1` token among the signatures.
    NoUsableSignature,
    /// There are well-formed `v1` tokens, and none matches any secret.
    Mismatch,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MissingId => "`webhook-id` is absent, empty or repeated",
            Self::AmbiguousId => "`webhook-id` holds a full stop, the separator of what is signed",
            Self::MissingTimestamp => "`webhook-timestamp` is absent or repeated",
            Self::MissingSignature => "`webhook-signature` is absent or repeated",
            Self::MalformedTimestamp => "`webhook-timestamp` is not a whole number of seconds",
            Self::TooOld => "`webhook-timestamp` is older than the tolerance",
            Self::TooNew => "`webhook-timestamp` is further in the future than the tolerance",
            Self::NoUsableSignature => "`webhook-signature` holds no well-formed `v1,` token",
            Self::Mismatch => "no signature matches: wrong secret, or the body was changed",
        })
    }
}

impl std::error::Error for VerifyError {}

/// Verifies a request against every secret, in constant time for each comparison.
///
/// # Errors
///
/// [`VerifyError`], which names the first check that failed.
pub fn verify(
    secrets: &Secrets,
    signed: &Signed<'_>,
    now: Timestamp,
    tolerance: Millis,
) -> Result<(), VerifyError> {
    let id = signed.id.filter(|id| !id.is_empty()).ok_or(VerifyError::MissingId)?;
    if id.contains(&b'.') {
        return Err(VerifyError::AmbiguousId);
    }
    let timestamp = signed.timestamp.ok_or(VerifyError::MissingTimestamp)?;
    let signature = signed.signature.ok_or(VerifyError::MissingSignature)?;
    let sent_at = parse_timestamp(timestamp).ok_or(VerifyError::MalformedTimestamp)?;
    if now.since(sent_at) > tolerance {
        return Err(VerifyError::TooOld);
    }
    if sent_at.since(now) > tolerance {
        return Err(VerifyError::TooNew);
    }
    let macs: Vec<_> =
        secrets.iter().map(|secret| mac(secret, id, timestamp, signed.body)).collect();
    let mut usable = false;
    for claimed in signature.split(|b| *b == b' ').filter_map(digest_of_token).take(TOKENS_MAX) {
        usable = true;
        if macs.iter().any(|mac| mac.clone().verify_slice(&claimed).is_ok()) {
            return Ok(());
        }
    }
    Err(if usable { VerifyError::Mismatch } else { VerifyError::NoUsableSignature })
}

/// Digits only, no sign, no leading zero, within the range of a timestamp.
fn parse_timestamp(text: &[u8]) -> Option<Timestamp> {
    let plain =
        text.iter().all(u8::is_ascii_digit) && (text.len() == 1 || text.first() != Some(&b'0'));
    let seconds: i64 = std::str::from_utf8(text).ok().filter(|_| plain)?.parse().ok()?;
    Some(Timestamp::from_secs(seconds))
}

fn digest_of_token(token: &[u8]) -> Option<[u8; 32]> {
    let encoded = token.strip_prefix(TAG.as_bytes())?;
    STANDARD.decode(encoded).ok()?.try_into().ok()
}

fn mac(secret: &Secret, id: &[u8], timestamp: &[u8], body: &[u8]) -> Hmac<Sha256> {
    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.key()).expect("HMAC takes any key");
    for part in [id, b".", timestamp, b".", body] {
        mac.update(part);
    }
    mac
}
