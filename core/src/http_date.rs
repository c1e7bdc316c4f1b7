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

use crate::time::Timestamp;

const MONTHS: [&[u8]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];
/// The first three letters of each are its short name.
const WEEKDAYS: [&[u8]; 7] =
    [b"Monday", b"Tuesday", b"Wednesday", b"Thursday", b"Friday", b"Saturday", b"Sunday"];
const MS_PER_DAY: i64 = 86_400_000;
/// The days from the first of January of year 1 to the epoch.
const EPOCH_DAY: i64 = 719_162;

/// Reads a date. `now` decides the century of a year of two digits: one that seems to lie more than
/// 50 years ahead is the most recent past year with the same digits (RFC 9110 §5.6.7).
#[must_use]
pub fn parse(value: &[u8], now: Timestamp) -> Option<Timestamp> {
    imf_fixdate(value).or_else(|| rfc_850(value, now)).or_else(|| asctime(value))
}

fn imf_fixdate(value: &[u8]) -> Option<Timestamp> {
    let mut rest = Rest(value);
    let weekday = rest.weekday(true)?;
    rest.literal(b", ")?;
    let day = rest.number(2)?;
    rest.literal(b" ")?;
    let month = rest.month()?;
    rest.literal(b" ")?;
    let year = rest.number(4)?;
    rest.literal(b" ")?;
    let time_ms = rest.time_ms()?;
    rest.literal(b" GMT")?;
    rest.end()?;
    Date { year, month, day, time_ms }.on(weekday)
}

fn rfc_850(value: &[u8], now: Timestamp) -> Option<Timestamp> {
    let mut rest = Rest(value);
    let weekday = rest.weekday(false)?;
    rest.literal(b", ")?;
    let day = rest.number(2)?;
    rest.literal(b"-")?;
    let month = rest.month()?;
    rest.literal(b"-")?;
    let digits = rest.number(2)?;
    rest.literal(b" ")?;
    let time_ms = rest.time_ms()?;
    rest.literal(b" GMT")?;
    rest.end()?;
    let today = Date::at(now)?;
    let limit = Date { year: today.year + 50, ..today };
    // The last year of those digits that is not too far ahead.
    let next_century = (today.year / 100 + 1) * 100 + digits;
    let date = |year| Date { year, month, day, time_ms };
    let candidates = [next_century, next_century - 100, next_century - 200];
    candidates.into_iter().map(date).find(|date| *date <= limit)?.on(weekday)
}

fn asctime(value: &[u8]) -> Option<Timestamp> {
    let mut rest = Rest(value);
    let weekday = rest.weekday(true)?;
    rest.literal(b" ")?;
    let month = rest.month()?;
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
    Date { year, month, day, time_ms }.on(weekday)
}

/// A date of the Gregorian calendar and the milliseconds since its midnight, UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Date {
    year: i64,
    /// From 1.
    month: i64,
    /// From 1.
    day: i64,
    time_ms: i64,
}

impl Date {
    /// The instant, if there is such a day and it is that weekday (from 0, Monday).
    fn on(self, weekday: usize) -> Option<Timestamp> {
        if self.year < 1 || self.day < 1 || self.day > days_of(self.year, self.month) {
            return None;
        }
        let before_month: i64 = (1..self.month).map(|month| days_of(self.year, month)).sum();
        let days = days_before(self.year) + before_month + self.day - 1;
        // The first day of year 1 was a Monday.
        if usize::try_from(days % 7) != Ok(weekday) {
            return None;
        }
        Some(Timestamp::from_millis((days - EPOCH_DAY) * MS_PER_DAY + self.time_ms))
    }

    fn at(now: Timestamp) -> Option<Self> {
        let ms = now.as_millis();
        let days = ms.div_euclid(MS_PER_DAY).checked_add(EPOCH_DAY)?;
        if days < 0 {
            return None;
        }
        // Never too late, since no year is shorter, and then corrected.
        let mut year = days / 366 + 1;
        while days_before(year + 1) <= days {
            year += 1 + (days - days_before(year + 1)) / 366;
        }
        let mut day = days - days_before(year) + 1;
        let mut month = 1;
        while day > days_of(year, month) {
            day -= days_of(year, month);
            month += 1;
        }
        Some(Self { year, month, day, time_ms: ms.rem_euclid(MS_PER_DAY) })
    }
}

fn days_before(year: i64) -> i64 {
    let years = year - 1;
    years * 365 + years / 4 - years / 100 + years / 400
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + (days_before(year + 1) - days_before(year) - 365),
        _ => 31,
    }
}

/// What is left to read.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn literal(&mut self, expected: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }

    /// A number of exactly so many digits.
    fn number(&mut self, digits: usize) -> Option<i64> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        if !number.iter().all(u8::is_ascii_digit) {
            return None;
        }
        self.0 = rest;
        Some(number.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
    }

    /// From 0, Monday.
    fn weekday(&mut self, short: bool) -> Option<usize> {
        WEEKDAYS.iter().position(|name| {
            let name = if short { &name[..3] } else { name };
            self.literal(name).is_some()
        })
    }

    /// From 1.
    fn month(&mut self) -> Option<i64> {
        let at = MONTHS.iter().position(|name| self.literal(name).is_some())?;
        i64::try_from(at + 1).ok()
    }

    /// `hour ":" minute ":" second`; 60 is a leap second.
    fn time_ms(&mut self) -> Option<i64> {
        let hour = self.number(2)?;
        self.literal(b":")?;
        let minute = self.number(2)?;
        self.literal(b":")?;
        let second = self.number(2)?;
        let is_time = hour < 24 && minute < 60 && second <= 60;
        is_time.then_some(((hour * 60 + minute) * 60 + second) * 1000)
    }
}
