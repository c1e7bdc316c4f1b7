//! Laws of signatures, and an independent implementation that must agree.

use hookproof_core::secret::{Secret, Secrets};
use hookproof_core::signature::{
    ID_HEADER, SIGNATURE_HEADER, Signed, TIMESTAMP_HEADER, TOLERANCE, VerifyError, sign, verify,
};
use hookproof_core::time::{Millis, Timestamp};
use http::HeaderMap;
use proptest::collection::vec;
use proptest::prelude::*;
use standardwebhooks::Webhook;

use crate::given::{laws, millis, timestamp};

fn secret() -> impl Strategy<Value = Secret> {
    vec(any::<u8>(), 24..=64).prop_map(|bytes| Secret::from_bytes(bytes).expect("a secret"))
}

fn secrets() -> impl Strategy<Value = Secrets> {
    vec(secret(), 1..=8).prop_map(|secrets| Secrets::new(secrets).expect("few enough"))
}

fn id() -> impl Strategy<Value = String> {
    "[A-Za-z0-9_:~-]{1,40}"
}

fn seconds() -> impl Strategy<Value = i64> {
    prop_oneof![4 => 0..4_102_444_800_i64, 1 => 0..10_i64, 1 => 0..=i64::MAX]
}

/// A request as it arrives, in parts that can be tampered with.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Request {
    id: Vec<u8>,
    timestamp: Vec<u8>,
    signature: Vec<u8>,
    body: Vec<u8>,
}

impl Request {
    fn signed_by(secrets: &Secrets, id: &str, seconds: i64, body: &[u8]) -> Self {
        Self {
            id: id.as_bytes().to_vec(),
            timestamp: seconds.to_string().into_bytes(),
            signature: sign(secrets, id, seconds, body).into_bytes(),
            body: body.to_vec(),
        }
    }

    /// Whatever its age, so that nothing but the signature stands between it and acceptance.
    fn is_accepted_by(&self, secrets: &Secrets) -> bool {
        self.verify(secrets, Timestamp::from_millis(0), Millis::MAX).is_ok()
    }

    fn verify(
        &self,
        secrets: &Secrets,
        now: Timestamp,
        tolerance: Millis,
    ) -> Result<(), VerifyError> {
        let signed = Signed {
            id: Some(&self.id),
            timestamp: Some(&self.timestamp),
            signature: Some(&self.signature),
            body: &self.body,
        };
        verify(secrets, &signed, now, tolerance)
    }
}

fn flip(bytes: &mut [u8], bit: usize) {
    bytes[bit / 8] ^= 1 << (bit % 8);
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn what_is_signed_verifies_with_each_of_the_secrets_alone(
        secrets in secrets(),
        id in id(),
        seconds in seconds(),
        body in vec(any::<u8>(), 0..200),
    ) {
        let request = Request::signed_by(&secrets, &id, seconds, &body);
        let now = Timestamp::from_secs(seconds);
        prop_assert_eq!(request.verify(&secrets, now, Millis::ZERO), Ok(()));
        for secret in secrets.iter() {
            let alone = Secrets::one(secret.clone());
            prop_assert_eq!(request.verify(&alone, now, Millis::ZERO), Ok(()));
        }
    }

    #[test]
    fn another_secret_verifies_nothing(one in secret(), other in secret(), seconds in seconds()) {
        let same = one == other;
        let request = Request::signed_by(&Secrets::one(one), "msg_1", seconds, b"{}");
        prop_assert_eq!(request.is_accepted_by(&Secrets::one(other)), same);
    }

    #[test]
    fn any_single_changed_bit_is_noticed(
        secret in secret(),
        id in "[A-Za-z0-9_:~-]{1,6}",
        seconds in 0..2_000_000_000_i64,
        body in vec(any::<u8>(), 0..12),
    ) {
        let secrets = Secrets::one(secret);
        let request = Request::signed_by(&secrets, &id, seconds, &body);
        prop_assert!(request.is_accepted_by(&secrets));
        let parts: [fn(&mut Request) -> &mut Vec<u8>; 4] =
            [|r| &mut r.id, |r| &mut r.timestamp, |r| &mut r.signature, |r| &mut r.body];
        for part in parts {
            let mut tampered = request.clone();
            for bit in 0..part(&mut tampered).len() * 8 {
                flip(part(&mut tampered), bit);
                prop_assert!(!tampered.is_accepted_by(&secrets), "{:?}", tampered);
                flip(part(&mut tampered), bit);
            }
        }
    }

    #[test]
    fn what_is_signed_can_be_read_in_one_way_only(
        secret in secret(),
        id in "[a0-9_]{1,4}",
        seconds in 0..100_i64,
        body in "[0-9.]{0,12}",
    ) {
        let secrets = Secrets::one(secret);
        let request = Request::signed_by(&secrets, &id, seconds, body.as_bytes());
        let bytes = format!("{id}.{seconds}.{body}");
        let stops: Vec<_> = bytes.match_indices('.').map(|(index, _)| index).collect();
        for (nth, first) in stops.iter().enumerate() {
            for second in &stops[nth + 1..] {
                let split = Request {
                    id: bytes[..*first].into(),
                    timestamp: bytes[first + 1..*second].into(),
                    body: bytes[second + 1..].into(),
                    ..request.clone()
                };
                let is_original = split == request;
                prop_assert_eq!(split.is_accepted_by(&secrets), is_original, "{:?}", split);
            }
        }
    }

    #[test]
    fn a_tolerance_lets_through_exactly_what_is_within_it(
        secret in secret(),
        seconds in seconds(),
        now in timestamp(),
        tolerance in millis(),
    ) {
        let secrets = Secrets::one(secret);
        let request = Request::signed_by(&secrets, "msg_1", seconds, b"{}");
        let sent_at = i128::from(Timestamp::from_secs(seconds).as_millis());
        let age = i128::from(now.as_millis()) - sent_at;
        let expected = if age > i128::from(tolerance.get()) {
            Err(VerifyError::TooOld)
        } else if -age > i128::from(tolerance.get()) {
            Err(VerifyError::TooNew)
        } else {
            Ok(())
        };
        prop_assert_eq!(request.verify(&secrets, now, tolerance), expected);
    }

    #[test]
    fn any_bytes_in_any_place_are_refused_without_panicking(
        id in vec(any::<u8>(), 0..20),
        timestamp_bytes in prop_oneof![vec(any::<u8>(), 0..20), "[0-9]{1,21}".prop_map(Vec::from)],
        signature in prop_oneof![
            vec(any::<u8>(), 0..80),
            "(v1a?, ?[A-Za-z0-9+/]{0,44}=? ?){0,4}".prop_map(Vec::from),
        ],
        body in vec(any::<u8>(), 0..20),
        now in timestamp(),
        tolerance in millis(),
        secret in secret(),
    ) {
        let request = Request { id, timestamp: timestamp_bytes, signature, body };
        prop_assert!(request.verify(&Secrets::one(secret), now, tolerance).is_err());
    }

    #[test]
    fn signing_any_id_and_time_never_panics(
        id in "\\PC*",
        seconds in any::<i64>(),
        secrets in secrets(),
    ) {
        let signature = sign(&secrets, &id, seconds, b"");
        prop_assert_eq!(signature.split(' ').count(), secrets.iter().count());
    }

    #[test]
    fn an_independent_implementation_signs_the_same(
        secret in secret(),
        id in id(),
        seconds in any::<i64>(),
        body in "\\PC{0,100}",
    ) {
        let oracle = Webhook::new(&secret.reveal()).expect("it reads our form of a secret");
        let expected = oracle.sign(&id, seconds, body.as_bytes()).expect("it signs UTF-8");
        let ours = sign(&Secrets::one(secret), &id, seconds, body.as_bytes());
        prop_assert_eq!(ours, expected);
    }

    #[test]
    fn an_independent_implementation_accepts_ours_and_we_accept_its(
        secrets in secrets(),
        id in id(),
        body in "\\PC{0,100}",
    ) {
        let now = wall_clock();
        let ours = sign(&secrets, &id, now.as_secs(), body.as_bytes());
        for secret in secrets.iter() {
            let oracle = Webhook::new(&secret.reveal()).expect("it reads our form of a secret");
            let mut headers = HeaderMap::new();
            headers.insert(ID_HEADER, id.parse().expect("a field value"));
            headers.insert(TIMESTAMP_HEADER, now.as_secs().into());
            headers.insert(SIGNATURE_HEADER, ours.parse().expect("a field value"));
            prop_assert!(oracle.verify(body.as_bytes(), &headers).is_ok());
            let changed = format!("{body} ");
            prop_assert!(oracle.verify(changed.as_bytes(), &headers).is_err());

            let its = oracle.sign(&id, now.as_secs(), body.as_bytes()).expect("it signs UTF-8");
            let mut request = Request::signed_by(&secrets, &id, now.as_secs(), body.as_bytes());
            request.signature = its.into_bytes();
            prop_assert_eq!(request.verify(&secrets, now, TOLERANCE), Ok(()));
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the oracle verifies by the wall clock")]
fn wall_clock() -> Timestamp {
    let since_epoch = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("the clock is past 1970");
    Timestamp::from_secs(i64::try_from(since_epoch.as_secs()).expect("it fits until 2⁶³ s"))
}
