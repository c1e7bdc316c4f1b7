//! What is on the wire, verified independently of the code that signs and verifies it.

use std::hash::{DefaultHasher, Hasher as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::request::RawRequest;

/// How far a timestamp may be from the wall clock, on either side, in seconds.
const TOLERANCE: i64 = 300;

/// The signed timestamp, in seconds since the epoch; 0 if there is none that can be read.
pub(super) fn timestamp(request: &RawRequest) -> i64 {
    request.header("webhook-timestamp").and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Whether one of the signatures holds, by RFC 2104 on the bare hash function.
pub(super) fn is_signed(request: &RawRequest, key: &[u8]) -> bool {
    let id = request.header("webhook-id").unwrap_or_default();
    let stamp = request.header("webhook-timestamp").unwrap_or_default();
    let message = [id.as_bytes(), b".", stamp.as_bytes(), b".", request.body()];
    let expected = STANDARD.encode(hmac_sha256(key, &message));
    let signatures = request.header("webhook-signature").unwrap_or_default();
    signatures.split(' ').any(|signature| signature.strip_prefix("v1,") == Some(&expected))
}

/// Whether a receiver whose wall clock shows `wall_s` must take a request whose signature holds. `None`
/// if a second more or less would change that: at which moment it looks, nobody knows.
pub(super) fn is_timely(request: &RawRequest, wall_s: i64) -> Option<bool> {
    match (wall_s - timestamp(request)).abs() - TOLERANCE {
        ..=-2 => Some(true),
        2.. => Some(false),
        _ => None,
    }
}

/// A short digest, the same in every run: only whether two are equal matters.
pub(super) fn digest(bytes: &[u8]) -> u64 {
    digest_of(std::iter::once(bytes))
}

/// The same of several texts, none of which has a line feed.
pub(super) fn digest_of<'a>(texts: impl Iterator<Item = &'a [u8]>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for text in texts {
        hasher.write(text);
        hasher.write_u8(b'\n');
    }
    hasher.finish()
}

/// A signature such as somebody writes who does not have the secret.
pub(super) fn forged(message: &[u8]) -> String {
    format!("v1,{}", STANDARD.encode(hmac_sha256(b"not the secret", &[message])))
}

/// Of a message in parts.
fn hmac_sha256(key: &[u8], message: &[&[u8]]) -> [u8; 32] {
    // Keys here are shorter than the hash's block of 64 bytes.
    let pad =
        |byte: u8| -> [u8; 64] { std::array::from_fn(|i| key.get(i).copied().unwrap_or(0) ^ byte) };
    let inner = Sha256::new().chain_update(pad(0x36));
    let inner = message.iter().fold(inner, |hash, part| hash.chain_update(part)).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use hookproof_core::secret::{Secret, Secrets};
    use hookproof_core::signature::sign;

    use super::{RawRequest, is_signed, is_timely};

    const KEY: [u8; 32] = [7; 32];

    fn request() -> RawRequest {
        let secrets = Secrets::one(Secret::from_bytes(KEY.to_vec()).unwrap());
        let signature = sign(&secrets, "msg_1", 1000, b"{}");
        let whole = format!(
            "POST /hooks/shop HTTP/1.1\r\nwebhook-id: msg_1\r\nwebhook-timestamp: 1000\r\n\
             webhook-signature: {signature}\r\ncontent-length: 2\r\n\r\n{{}}"
        );
        RawRequest::parse(whole.as_bytes()).unwrap()
    }

    #[test]
    fn what_our_code_signs_holds_and_nothing_that_was_changed_does() {
        let signed = request();
        let holds = |request: &RawRequest| is_signed(request, &KEY);
        assert!(holds(&signed));
        assert!(!holds(&signed.with_body(b"{} ")));
        assert!(!holds(&signed.with("webhook-id", |_| "msg_2".to_owned())));
        assert!(!holds(&signed.with("webhook-timestamp", |_| "1001".to_owned())));
        assert!(!holds(&signed.with("webhook-signature", |_| "v1,AAAA".to_owned())));
        assert!(holds(&signed.with("webhook-signature", |list| format!("v1,AAAA {list}"))));
        assert!(!holds(&signed.without("webhook-signature")));
        assert!(!is_signed(&signed, &[8; 32]));
    }

    #[test]
    fn a_request_is_timely_within_the_tolerance_on_both_sides() {
        for wall in [702, 1000, 1298] {
            assert_eq!(is_timely(&request(), wall), Some(true), "{wall}");
        }
        for wall in [698, 1302, 0] {
            assert_eq!(is_timely(&request(), wall), Some(false), "{wall}");
        }
        for wall in [700, 1300] {
            assert_eq!(is_timely(&request(), wall), None, "{wall}");
        }
    }
}
