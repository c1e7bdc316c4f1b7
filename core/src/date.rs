//! The Gregorian calendar in UTC, and the reader of the texts in which dates are written.

use crate::time::Timestamp;

const MS_PER_DAY: i64 = 86_400_000;
/// The days from the first of March of year 0 to the epoch. A year is counted from March here, so
/// that the leap day is its last.
const EPOCH_DAY: i64 = 719_468;
/// 400 years are so many days, whichever they are.
const DAYS_PER_ERA: i64 = 146_097;

/// A date and the milliseconds since its midnight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Date {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: i64,
    /// From 1.
    pub(crate) day: i64,
    pub(crate) time_ms: i64,
}

impl Date {
    /// The date at an instant.
    pub(crate) fn at(at: Timestamp) -> Self {
        let ms = at.as_millis();
        Self { time_ms: ms.rem_euclid(MS_PER_DAY), ..Self::of_day(ms.div_euclid(MS_PER_DAY)) }
    }

    /// The midnight at which a day begins, in days since the epoch.
    fn of_day(day: i64) -> Self {
        let day = day + EPOCH_DAY;
        let (era, in_era) = (day.div_euclid(DAYS_PER_ERA), day.rem_euclid(DAYS_PER_ERA));
        // Without the leap days of 4, 100 and 400 years, each year has 365 days.
        let of_era = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
        let in_year = in_era - (365 * of_era + of_era / 4 - of_era / 100);
        let from_march = (5 * in_year + 2) / 153;
        let day = in_year - days_to_month(from_march) + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = of_era + era * 400 + i64::from(month <= 2);
        Self { year, month, day, time_ms: 0 }
    }

    /// The days since the epoch, if there is such a day.
    fn days(self) -> Option<i64> {
        let year = self.year - i64::from(self.month <= 2);
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        let in_year = days_to_month((self.month + 9).rem_euclid(12)) + self.day - 1;
        let days = year * 365 + leap_days + in_year - EPOCH_DAY;
        // The 30th of February would come out as a day of March.
        (Self::of_day(days) == Self { time_ms: 0, ..self }).then_some(days)
    }

    /// The instant, if there is such a day and it can be expressed.
    pub(crate) fn instant(self) -> Option<Timestamp> {
        let ms = self.days()?.checked_mul(MS_PER_DAY)?.checked_add(self.time_ms)?;
        Some(Timestamp::from_millis(ms))
    }

    /// The weekday from 0, Monday, if there is such a day.
    pub(crate) fn weekday(self) -> Option<usize> {
        // The epoch was a Thursday.
        usize::try_from((self.days()? + 3).rem_euclid(7)).ok()
    }
}

/// The days from the first of March to that of a month, counted from March as 0.
fn days_to_month(from_march: i64) -> i64 {
    (153 * from_march + 2) / 5
}

/// What is left to read of a text.
pub(crate) struct Rest<'a>(pub(crate) &'a [u8]);

impl<'a> Rest<'a> {
    pub(crate) fn literal(&mut self, expected: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    pub(crate) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }

    /// As many digits as there are.
    pub(crate) fn digits(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at(end);
        self.0 = rest;
        digits
    }

    /// A number of exactly so many digits.
    pub(crate) fn number(&mut self, digits: usize) -> Option<i64> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        if !number.iter().all(u8::is_ascii_digit) {
            return None;
        }
        self.0 = rest;
        Some(number.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
    }

    /// `hour ":" minute`, in minutes.
    pub(crate) fn minutes(&mut self) -> Option<i64> {
        let hour = self.number(2)?;
        self.literal(b":")?;
        let minute = self.number(2)?;
        (hour < 24 && minute < 60).then_some(hour * 60 + minute)
    }

    /// `hour ":" minute ":" second`; 60 is a leap second.
    pub(crate) fn time_ms(&mut self) -> Option<i64> {
        let minutes = self.minutes()?;
        self.literal(b":")?;
        let second = self.number(2)?;
        (second <= 60).then_some((minutes * 60 + second) * 1000)
    }
}
