//! Instants and spans: how they are read, written and added.

use hookproof_core::time::{Millis, Timestamp};
use proptest::prelude::*;

use crate::given::{at, laws, ms};

/// Reads `text`, and writes it again in its one printed form.
fn check(text: &str, milliseconds: u64, printed: &str) {
    let span: Millis = text.parse().expect(text);
    assert_eq!(span, ms(milliseconds), "{text}");
    assert_eq!(span.to_string(), printed, "{text}");
}

#[test]
fn a_span_is_read_and_written_with_units() {
    check("0s", 0, "0s");
    check("0ms", 0, "0s");
    check("0d0h0m0s0ms", 0, "0s");
    check("1ms", 1, "1ms");
    check("250ms", 250, "250ms");
    check("1000ms", 1_000, "1s");
    check("5s", 5_000, "5s");
    check("90s", 90_000, "1m30s");
    check("1h30m", 5_400_000, "1h30m");
    check("1h0m5s", 3_605_000, "1h5s");
    check("75h35m5s", 272_105_000, "75h35m5s");
    check("3d3h35m5s", 272_105_000, "75h35m5s");
    check("1d", 86_400_000, "24h");
    check("007s", 7_000, "7s");
    check(" 5s\n", 5_000, "5s");
    check("1d2h3m4s5ms", 93_784_005, "26h3m4s5ms");
}

#[test]
fn a_span_is_written_in_days_from_a_hundred_hours_on() {
    check("99h59m59s999ms", 359_999_999, "99h59m59s999ms");
    check("100h", 360_000_000, "4d4h");
    check("30d", 2_592_000_000, "30d");
    check("18446744073709551615ms", u64::MAX, "213503982334d14h25m51s615ms");
}

fn check_no_span(text: &str) {
    let error = text.parse::<Millis>().expect_err(text);
    assert_eq!(
        error.to_string(),
        format!(
            "`{text}` is not a span of time: write whole numbers with a unit each, largest first, \
             as in `250ms`, `5s`, `1h30m` or `3d`"
        )
    );
}

#[test]
fn a_text_that_is_no_span_is_named_in_the_error() {
    for text in ["", " ", "5", "s", "-5s", "+5s", "1.5s", "5 s", "1h 30m", "5S", "5sec", "5w"] {
        check_no_span(text);
    }
    for text in ["1e3s", "0x5s", "5s5", "5s!", "½s", "٥s", "5µs", "msms"] {
        check_no_span(text);
    }
}

#[test]
fn units_that_rise_or_repeat_are_no_span() {
    for text in ["30m1h", "1s1s", "1ms1s", "5m1d"] {
        check_no_span(text);
    }
}

#[test]
fn a_span_too_long_to_express_is_no_span() {
    for text in ["18446744073709551616ms", "18446744073709551615s", "213503982334d14h25m51s616ms"] {
        check_no_span(text);
    }
}

#[test]
fn a_span_is_a_text_in_json() {
    assert_eq!(serde_json::to_string(&ms(5_400_000)).unwrap(), r#""1h30m""#);
    assert_eq!(serde_json::from_str::<Millis>(r#""1h30m""#).unwrap(), ms(5_400_000));
    assert!(serde_json::from_str::<Millis>("5").is_err(), "a number has no unit");
    let error = serde_json::from_str::<Millis>(r#""5""#).unwrap_err();
    assert!(error.to_string().contains("`5` is not a span of time"), "{error}");
}

#[test]
fn an_instant_is_a_number_in_json() {
    assert_eq!(serde_json::to_string(&at(-1)).unwrap(), "-1");
    assert_eq!(serde_json::from_str::<Timestamp>("1700000000000").unwrap(), at(1_700_000_000_000));
}

#[test]
fn a_span_is_padded_where_a_table_asks_for_it() {
    assert_eq!(
        format!("{:>6}|{:<6}|{:>4}", ms(5_000), ms(250), Millis::ZERO),
        "    5s|250ms |  0s"
    );
}

#[test]
fn whole_seconds_are_rounded_down_also_before_the_epoch() {
    for (milliseconds, seconds) in [(0, 0), (999, 0), (1_000, 1), (-1, -1), (-1_000, -1)] {
        assert_eq!(at(milliseconds).as_secs(), seconds, "{milliseconds} ms");
    }
    assert_eq!(at(i64::MIN).as_secs(), -9_223_372_036_854_776);
}

#[test]
fn arithmetic_saturates() {
    assert_eq!(Timestamp::from_secs(i64::MAX), Timestamp::MAX);
    assert_eq!(Timestamp::from_secs(i64::MIN), at(i64::MIN));
    assert_eq!(at(i64::MAX - 1).plus(ms(2)), Timestamp::MAX);
    assert_eq!(at(i64::MIN).plus(Millis::MAX), Timestamp::MAX);
    assert_eq!(at(0).plus(Millis::MAX), Timestamp::MAX);
    assert_eq!(at(i64::MIN + 1).minus(ms(2)), at(i64::MIN));
    assert_eq!(at(5).minus(ms(2)), at(3));
    assert_eq!(Timestamp::MAX.since(at(i64::MIN)), Millis::MAX);
    assert_eq!(Millis::from_secs(u64::MAX), Millis::MAX);
    assert_eq!(Millis::from_minutes(u64::MAX), Millis::MAX);
    assert_eq!(Millis::from_hours(u64::MAX), Millis::MAX);
    assert_eq!(Millis::MAX.plus(ms(1)), Millis::MAX);
    assert_eq!(Millis::MAX.times(2), Millis::MAX);
    assert_eq!(Millis::from_hours(2), ms(7_200_000));
    assert_eq!(Millis::from_minutes(2).to_duration(), std::time::Duration::from_secs(120));
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn any_span_comes_back_from_its_text(span in any::<u64>().prop_map(ms)) {
        prop_assert_eq!(span.to_string().parse(), Ok(span));
    }

    #[test]
    fn any_small_span_comes_back_from_its_text(span in (0..1_000_000_000_u64).prop_map(ms)) {
        prop_assert_eq!(span.to_string().parse(), Ok(span));
    }

    #[test]
    fn reading_a_span_never_panics(text in "\\PC*", spanlike in "[0-9dhms ]{0,40}") {
        let _ = text.parse::<Millis>();
        if let Ok(span) = spanlike.parse::<Millis>() {
            prop_assert_eq!(span.to_string().parse(), Ok(span));
        }
    }

    #[test]
    fn a_span_added_to_an_instant_is_the_time_since(start in any::<i64>(), span in any::<u64>()) {
        let end = at(start).plus(ms(span));
        prop_assert!(end >= at(start));
        prop_assert_eq!(at(start).since(end), Millis::ZERO);
        match start.checked_add_unsigned(span) {
            Some(exact) => {
                prop_assert_eq!(end, at(exact));
                prop_assert_eq!(end.since(at(start)), ms(span));
            }
            None => prop_assert_eq!(end, Timestamp::MAX),
        }
    }
}
