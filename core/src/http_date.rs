//! Dates as HTTP writes them, in all three forms (RFC 9110 §5.6.7).
//!
//! | form | example |
//! | --- | --- |
//! | IMF-fixdate | `Sun, 06 Nov 1994 08:49:37 GMT` |
//! | RFC 850 | `Sunday, 06-Nov-94 08:49:37 GMT` |
//! | asctime | `Sun Nov  6 08:49:37 1994` |
//!
//! Strict: names and case as the grammar has them, a day that the month has, and the weekday that the
//! date fell on. Whatever contradicts itself is no date.

use crate::date::{Date, Rest};
use crate::time::Timestamp;

const MONTHS: [&[u8]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];
/// The first three letters of each are its short name.
const WEEKDAYS: [&[u8]; 7] =
    [b"Monday", b"Tuesday", b"Wednesday", b"Thursday", b"Friday", b"Saturday", b"Sunday"];

/// Reads a date. `now` decides the century of a year of two digits: one that seems to lie more than
/// 50 years ahead is the most recent past year with the same digits (RFC 9110 §5.6.7).
#[must_use]
pub fn parse(value: &[u8], now: Timestamp) -> Option<Timestamp> {
    imf_fixdate(value).or_else(|| rfc_850(value, now)).or_else(|| asctime(value))
}

fn imf_fixdate(value: &[u8]) -> Option<Timestamp> {
    let mut rest = Rest(value);
    let weekday = weekday_in(&mut rest, true)?;
    rest.literal(b", ")?;
    let day = rest.number(2)?;
    rest.literal(b" ")?;
    let month = month_in(&mut rest)?;
    rest.literal(b" ")?;
    let year = rest.number(4)?;
    rest.literal(b" ")?;
    let time_ms = rest.time_ms()?;
    rest.literal(b" GMT")?;
    rest.end()?;
    on(weekday, Date { year, month, day, time_ms })
}

fn rfc_850(value: &[u8], now: Timestamp) -> Option<Timestamp> {
    let mut rest = Rest(value);
    let weekday = weekday_in(&mut rest, false)?;
    rest.literal(b", ")?;
    let day = rest.number(2)?;
    rest.literal(b"-")?;
    let month = month_in(&mut rest)?;
    rest.literal(b"-")?;
    let digits = rest.number(2)?;
    rest.literal(b" ")?;
    let time_ms = rest.time_ms()?;
    rest.literal(b" GMT")?;
    rest.end()?;
    let today = Date::at(now);
    let limit = Date { year: today.year + 50, ..today };
    // The last year of those digits that is not too far ahead.
    let next_century = (today.year / 100 + 1) * 100 + digits;
    let date = |year| Date { year, month, day, time_ms };
    let candidates = [next_century, next_century - 100, next_century - 200];
    on(weekday, candidates.into_iter().map(date).find(|date| *date <= limit)?)
}

fn asctime(value: &[u8]) -> Option<Timestamp> {
    let mut rest = Rest(value);
    let weekday = weekday_in(&mut rest, true)?;
    rest.literal(b" ")?;
    let month = month_in(&mut rest)?;
    rest.literal(b" ")?;
    let day = match rest.literal(b" ") {
        Some(()) => rest.number(1)?,
        None => rest.number(2)?,
    };
    rest.literal(b" ")?;
    let time_ms = rest.time_ms()?;
    rest.literal(b" ")?;
    let year = rest.number(4)?;
    rest.end()?;
    on(weekday, Date { year, month, day, time_ms })
}

/// The instant of a date, if it fell on that weekday.
fn on(weekday: usize, date: Date) -> Option<Timestamp> {
    date.instant().filter(|_| date.weekday() == Some(weekday))
}

/// From 0, Monday.
fn weekday_in(rest: &mut Rest<'_>, short: bool) -> Option<usize> {
    WEEKDAYS.iter().position(|name| {
        let name = if short { &name[..3] } else { name };
        rest.literal(name).is_some()
    })
}

/// From 1.
fn month_in(rest: &mut Rest<'_>) -> Option<i64> {
    let at = MONTHS.iter().position(|name| rest.literal(name).is_some())?;
    i64::try_from(at + 1).ok()
}
