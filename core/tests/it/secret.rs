//! Signing secrets.

use hookproof_core::secret::{
    SECRET_BYTES_MAX, SECRET_BYTES_MIN, SECRETS_MAX, Secret, SecretError, Secrets,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::given::{check_round_trip, laws};

/// The bytes 1 to 32.
const TEXT: &str = "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";

fn check(text: &str, expected: Result<(), SecretError>) {
    assert_eq!(text.parse::<Secret>().map(|_| ()), expected, "{text:?}");
}

#[test]
fn a_secret_is_whsec_and_base64() {
    check(TEXT, Ok(()));
    assert_eq!(TEXT.parse(), Secret::from_bytes((1..=32).collect::<Vec<u8>>()));
    assert_eq!(TEXT.parse::<Secret>().unwrap().reveal(), TEXT);
    check("whsec_+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/", Ok(()));
}

#[test]
fn a_scheme_tag_before_the_secret_is_recognised() {
    check(&format!("v1,{TEXT}"), Err(SecretError::SchemeTag));
    check(&format!("v1a,{TEXT}"), Err(SecretError::SchemeTag));
    assert_eq!(
        SecretError::SchemeTag.to_string(),
        "a secret starts with `whsec_`; remove the `v1,` in front of it, which belongs to \
         signatures"
    );
}

#[test]
fn a_secret_without_its_prefix_is_refused() {
    for text in ["", "whsec", "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=", "WHSEC_AQID"] {
        check(text, Err(SecretError::Prefix));
    }
    check(&format!(" {TEXT}"), Err(SecretError::Prefix));
    check(&TEXT.replace("whsec_", "whsk_"), Err(SecretError::Prefix));
    check(&TEXT.replace("whsec_", "v1,whsk_"), Err(SecretError::Prefix));
    assert_eq!(
        SecretError::Prefix.to_string(),
        "a secret starts with `whsec_`, followed by base64"
    );
}

#[test]
fn base64_that_is_not_exactly_right_is_refused() {
    check(TEXT.trim_end_matches('='), Err(SecretError::Base64));
    check(&format!("{TEXT}="), Err(SecretError::Base64));
    check(&format!("{TEXT}\n"), Err(SecretError::Base64));
    check(&TEXT.replace("AQID", "AQ ID"), Err(SecretError::Base64));
    check(&TEXT.replace("AQID", "A!ID"), Err(SecretError::Base64));
    // The last character before the padding holds two bits that must be zero.
    check(&TEXT.replace("HyA=", "HyB="), Err(SecretError::Base64));
    check("whsec_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_", Err(SecretError::Base64));
    assert_eq!(
        SecretError::Base64.to_string(),
        "what follows `whsec_` is not base64 (A–Z a–z 0–9 + / with = padding)"
    );
}

#[test]
fn a_secret_has_24_to_64_bytes() {
    let of = |length| Secret::from_bytes(vec![7; length]).map(|_| ());
    assert_eq!(of(23), Err(SecretError::Length(23)));
    assert_eq!(of(SECRET_BYTES_MIN), Ok(()));
    assert_eq!(of(SECRET_BYTES_MAX), Ok(()));
    assert_eq!(of(65), Err(SecretError::Length(65)));
    check("whsec_", Err(SecretError::Length(0)));
    check("whsec_AQID", Err(SecretError::Length(3)));
    check(&format!("whsec_{}", "AQID".repeat(22)), Err(SecretError::Length(66)));
    assert_eq!(
        SecretError::Length(3).to_string(),
        "the secret decodes to 3 bytes, but must have 24 to 64"
    );
}

#[test]
fn debug_reveals_nothing_of_a_secret() {
    let secret: Secret = TEXT.parse().unwrap();
    assert_eq!(format!("{secret:?}"), "Secret(…)");
    assert_eq!(format!("{secret:#?}"), "Secret(…)");
    assert_eq!(format!("{:?}", Secrets::one(secret)), "Secrets([Secret(…)])");
}

#[test]
fn an_error_about_a_secret_reveals_nothing_of_it() {
    let hidden = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA";
    for text in [format!("whsec_{hidden}"), format!("v1,whsec_{hidden}="), hidden.to_owned()] {
        let json = serde_json::to_string(&text).unwrap();
        let errors = [
            text.parse::<Secret>().unwrap_err().to_string(),
            serde_json::from_str::<Secret>(&json).unwrap_err().to_string(),
            serde_json::from_str::<Secrets>(&format!("[{json}]")).unwrap_err().to_string(),
        ];
        for error in errors {
            assert!(!error.contains("AQIDBA"), "{error}");
        }
    }
}

#[test]
fn a_fresh_secret_holds_all_its_bits_in_order() {
    let words = [0x0102_0304_0506_0708, 0x090a_0b0c_0d0e_0f10, 0x1112_1314_1516_1718];
    let secret = Secret::from_entropy([words[0], words[1], words[2], 0x191a_1b1c_1d1e_1f20]);
    assert_eq!(secret.reveal(), TEXT);
}

#[test]
fn a_rotation_overlaps_1_to_8_secrets_in_their_order() {
    let secret = |byte: u8| Secret::from_bytes(vec![byte; 32]).unwrap();
    let of = |count: u8| Secrets::new((0..count).map(secret).collect());
    assert_eq!(of(0).unwrap_err().to_string(), "0 secrets given, but there must be 1 to 8");
    assert_eq!(of(9).unwrap_err().to_string(), "9 secrets given, but there must be 1 to 8");
    assert_eq!(of(1), Ok(Secrets::one(secret(0))));
    let most = of(8).unwrap();
    assert_eq!(most.iter().count(), SECRETS_MAX);
    assert!(most.iter().eq((0..8).map(secret).collect::<Vec<_>>().iter()));
}

#[test]
fn no_secrets_at_all_are_refused_also_from_json() {
    assert!(serde_json::from_str::<Secrets>("[]").is_err());
    let one = serde_json::from_str::<Secrets>(&format!("[{TEXT:?}]")).unwrap();
    assert_eq!(one, Secrets::one(TEXT.parse().unwrap()));
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn any_secret_comes_back_from_its_text(bytes in vec(any::<u8>(), 24..=64)) {
        let secret = Secret::from_bytes(bytes).unwrap();
        prop_assert_eq!(secret.reveal().parse(), Ok(secret.clone()));
        check_round_trip(&secret)?;
        check_round_trip(&Secrets::new(vec![secret.clone(), secret]).unwrap())?;
    }

    #[test]
    fn any_text_is_either_the_one_form_of_a_secret_or_refused(
        text in "\\PC*",
        close in "(v1,)?whsec_[A-Za-z0-9+/]{30,90}=?=?",
    ) {
        for text in [text, close] {
            if let Ok(secret) = text.parse::<Secret>() {
                prop_assert_eq!(secret.reveal(), text);
            }
        }
    }
}
