//! `Retry-After` as a number of seconds and as a date.

use hookproof_core::policy::Policy;
use hookproof_core::retry_after::{RetryAfterRule, parse, parse_delay_seconds};
use hookproof_core::schedule::{Backoff, Jitter, Schedule};
use hookproof_core::time::{Millis, Timestamp};
use proptest::prelude::*;

use crate::given::{entropy, laws, millis, policy, secs};

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

/// 1994-11-06T08:49:37Z, the instant of the examples in RFC 9110 §5.6.7.
const EXAMPLE_SECS: i64 = 784_111_777;

/// What a value asks for if it arrives that many seconds before the example's instant.
fn check_date(value: &str, secs_before: i64, expected: Option<Millis>) {
    let now = Timestamp::from_secs(EXAMPLE_SECS - secs_before);
    assert_eq!(parse(value.as_bytes(), now), expected, "{value:?}, {secs_before} s before");
}

#[test]
fn case_17_each_form_of_a_date_asks_for_the_time_until_then() {
    for date in [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        " \tSun, 06 Nov 1994 08:49:37 GMT ",
    ] {
        check_date(date, 90, Some(secs(90)));
        check_date(date, 0, Some(Millis::ZERO));
    }
    check_date("90", 0, Some(secs(90)));
    let half = Timestamp::from_millis(EXAMPLE_SECS * 1000 - 500);
    assert_eq!(parse(b"Sun, 06 Nov 1994 08:49:37 GMT", half), Some(Millis::new(500)));
}

#[test]
fn case_17_a_date_that_is_past_asks_for_no_wait() {
    check_date("Sun, 06 Nov 1994 08:49:37 GMT", -1, Some(Millis::ZERO));
    check_date("Thu, 01 Jan 1970 00:00:00 GMT", 0, Some(Millis::ZERO));
    check_date("Mon, 01 Jan 0001 00:00:00 GMT", 0, Some(Millis::ZERO));
}

#[test]
fn case_18_a_number_beyond_every_timer_is_no_wrapped_one() {
    assert_eq!(parse(b"9999999999", Timestamp::MAX), Some(secs(9_999_999_999)));
}

#[test]
fn case_20_what_is_almost_a_value_is_ignored() {
    for value in [
        "-5",
        "1.5",
        "10 s",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Mon, 06 Nov 1994 08:49:37 GMT",
        "sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 NOV 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 GMT, 5",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1994  08:49:37 GMT",
        "Wed, 30 Feb 1994 08:49:37 GMT",
        "Wed, 00 Feb 1994 08:49:37 GMT",
        "Wed, 29 Feb 1900 00:00:00 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov 06 08:49:37 1994 GMT",
        "1994-11-06T08:49:37Z",
    ] {
        check_date(value, 90, None);
    }
}

#[test]
fn leap_days_and_leap_seconds_are_on_the_calendar() {
    let at =
        |text: &str| hookproof_core::http_date::parse(text.as_bytes(), Timestamp::from_secs(0));
    assert_eq!(at("Tue, 29 Feb 2000 00:00:00 GMT"), Some(Timestamp::from_secs(951_782_400)));
    assert_eq!(at("Sat, 31 Dec 2016 23:59:60 GMT"), Some(Timestamp::from_secs(1_483_228_800)));
    assert_eq!(at("Fri, 31 Dec 9999 23:59:59 GMT"), Some(Timestamp::from_secs(253_402_300_799)));
    assert_eq!(at("Sun Nov 06 08:49:37 1994"), Some(Timestamp::from_secs(EXAMPLE_SECS)));
}

/// The year that two digits mean, on the sixth of November at 08:49:37, read at `now`.
fn check_century(digits: u8, now: &str, expected: i64) {
    let parse = |text: &str, now| hookproof_core::http_date::parse(text.as_bytes(), now);
    let now = parse(now, Timestamp::from_secs(0)).expect("it is a date");
    let days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    // Only the right weekday is a date.
    let read =
        days.iter().find_map(|day| parse(&format!("{day}, 06-Nov-{digits:02} 08:49:37 GMT"), now));
    let year = days
        .iter()
        .find_map(|day| parse(&format!("{}, 06 Nov {expected} 08:49:37 GMT", &day[..3]), now));
    assert!(year.is_some());
    assert_eq!(read, year, "{digits:02} at {now:?}");
}

#[test]
fn two_digits_of_a_year_are_never_more_than_50_years_ahead() {
    let today = "Fri, 06 Nov 2026 08:49:37 GMT";
    check_century(94, today, 1994);
    check_century(26, today, 2026);
    check_century(25, today, 2025);
    check_century(76, today, 2076);
    check_century(77, today, 1977);
    // The very second decides.
    check_century(76, "Fri, 06 Nov 2026 08:49:36 GMT", 1976);
    check_century(1, "Thu, 31 Dec 2099 23:59:59 GMT", 2101);
    check_century(99, "Fri, 01 Jan 2100 00:00:00 GMT", 2099);
    check_century(50, "Fri, 01 Jan 2100 00:00:00 GMT", 2050);
    check_century(49, "Fri, 01 Jan 2100 00:00:00 GMT", 2149);
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

    #[test]
    fn no_bytes_make_the_reading_of_a_date_panic(
        value in proptest::collection::vec(any::<u8>(), 0..40),
        close in "(Sun|Sunday),? [0-9]{2}[ -](Nov|Feb)[ -][0-9]{2,4} [0-9:]{8}( GMT)?",
        now in any::<i64>(),
    ) {
        for value in [value, close.into_bytes()] {
            let wait = parse(&value, Timestamp::from_millis(now));
            prop_assert!(wait.is_none() || !value.is_empty());
        }
    }

    #[test]
    fn each_second_of_the_calendar_is_read_as_itself(secs_since in 0..253_402_300_800_i64) {
        // An oracle of another make.
        let date = std::time::UNIX_EPOCH
            + std::time::Duration::from_secs(u64::try_from(secs_since).expect("it is positive"));
        let text = httpdate::fmt_http_date(date);
        let read = hookproof_core::http_date::parse(text.as_bytes(), Timestamp::from_secs(0));
        prop_assert_eq!(read, Some(Timestamp::from_secs(secs_since)));
    }
}

#[test]
fn what_counts_of_a_retry_after_is_bounded_by_the_rule() {
    let check = |rule: RetryAfterRule, asked, wait, counted| {
        assert_eq!(rule.counted(asked, wait), counted, "{rule:?}: {asked} over {wait}");
    };
    let plain = RetryAfterRule::default();
    check(plain, secs(7), secs(5), secs(7));
    check(plain, Millis::MAX, secs(5), Millis::MAX);
    let at_least = RetryAfterRule { min: secs(1), ..plain };
    check(at_least, Millis::ZERO, secs(5), secs(1));
    let at_most = |percent| RetryAfterRule { percent_max: Some(percent), ..plain };
    check(at_most(200), secs(9), secs(5), secs(9));
    check(at_most(200), secs(11), secs(5), secs(10));
    check(at_most(u32::MAX), Millis::MAX, Millis::MAX, Millis::MAX);
    check(at_most(0), secs(9), secs(5), Millis::ZERO);
}

#[test]
fn a_rule_that_contradicts_the_policy_is_refused_with_its_field() {
    let check = |policy: Policy, field: &str| {
        let error = policy.validate().expect_err(field);
        assert_eq!(error.field(), field, "{error}");
    };
    let with = |retry_after| Policy { retry_after, ..Policy::default() };
    let min = Millis::from_hours(25);
    check(with(RetryAfterRule { min, ..RetryAfterRule::default() }), "retry_after.min");
    let jitters = with(RetryAfterRule { jitters: true, ..RetryAfterRule::default() });
    check(Policy { retry_after_spread: secs(1), ..jitters.clone() }, "retry_after.jitters");
    let backoff = Backoff::Exponential { base: secs(1), factor: 2, cap: secs(60), attempts_max: 5 };
    let schedule = Schedule::new(backoff, Jitter::Decorrelated);
    check(Policy { schedule, ..jitters }, "retry_after.jitters");
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn no_rule_brings_a_wait_forward_or_beyond_its_bounds(
        policy in policy(), attempt in 1..20_u32, asked in millis(), min in millis(),
        percent_max in proptest::option::of(any::<u32>()), entropy in entropy(),
    ) {
        let retry_after = RetryAfterRule { min, percent_max, jitters: false };
        let policy = Policy { retry_after, ..policy };
        let wait = |asked| policy.draw(attempt, None, asked).map(|draw| draw.at(entropy));
        if let (Some(plain), Some(later)) = (wait(None), wait(Some(asked))) {
            let whole = policy.schedule.wait_before_jitter(attempt).expect("there is a retry");
            let counted = retry_after.counted(asked, whole);
            prop_assert!(later >= plain.max(counted));
            prop_assert!(later <= plain.max(counted.plus(policy.retry_after_spread)));
        }
    }
}
