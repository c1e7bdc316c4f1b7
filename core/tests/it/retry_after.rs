//! `Retry-After` as a number of seconds.

use hookproof_core::retry_after::parse_delay_seconds;
use hookproof_core::time::Millis;
use proptest::prelude::*;

use crate::given::{laws, secs};

fn check(value: &[u8], expected: Option<Millis>) {
    assert_eq!(parse_delay_seconds(value), expected, "{:?}", String::from_utf8_lossy(value));
}

#[test]
fn digits_are_seconds() {
    check(b"120", Some(secs(120)));
    check(b"0", Some(secs(0)));
    check(b"1", Some(secs(1)));
    check(b"0010", Some(secs(10)));
    check(b"86400", Some(Millis::from_hours(24)));
}

#[test]
fn white_space_around_the_digits_is_none_of_the_value() {
    check(b" 5 ", Some(secs(5)));
    check(b"\t5\t", Some(secs(5)));
    check(b"   120", Some(secs(120)));
}

#[test]
fn a_number_too_large_saturates() {
    check(b"9999999999999999999999", Some(Millis::MAX));
    check(b"18446744073709551616", Some(Millis::MAX));
    check(b"18446744073709551", Some(secs(18_446_744_073_709_551)));
    check(&[b'9'; 5000], Some(Millis::MAX));
}

#[test]
fn anything_else_is_ignored() {
    for value in ["", " ", "-5", "+5", "1.5", "10 s", "10s", "1 0", "1e3", "0x10", "1,000", "soon"]
    {
        check(value.as_bytes(), None);
    }
    for value in ["120, 60", "\"120\"", "120;", "5\0", "٣", "½", "Infinity", "NaN"] {
        check(value.as_bytes(), None);
    }
}

#[test]
fn a_value_that_is_not_utf_8_is_ignored() {
    check(b"\xff", None);
    check(b"12\x80", None);
    check(b"\xc2\xa05", None);
    check(b"\xa05", None);
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn any_number_of_seconds_is_read_exactly(seconds in 0..=u64::MAX / 1000) {
        let value = seconds.to_string();
        prop_assert_eq!(parse_delay_seconds(value.as_bytes()), Some(secs(seconds)));
    }

    #[test]
    fn any_bytes_are_digits_or_ignored(
        value in proptest::collection::vec(any::<u8>(), 0..30),
        close in "[0-9 .-]{0,12}",
    ) {
        for value in [value, close.into_bytes()] {
            let digits = value.trim_ascii();
            let well_formed = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
            prop_assert_eq!(parse_delay_seconds(&value).is_some(), well_formed);
        }
    }
}
