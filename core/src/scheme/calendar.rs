//! RFC 3339 dates, for the schemes that sign one.

use super::TimestampUnit;
use crate::time::Timestamp;

const DAY_SECS: i64 = 86_400;

/// The instant that is written so; numbers are plain digits, without sign or leading zero.
pub(crate) fn read(unit: TimestampUnit, text: &[u8]) -> Option<Timestamp> {
    match unit {
        TimestampUnit::Seconds => whole(text).map(Timestamp::from_secs),
        TimestampUnit::Milliseconds => whole(text).map(Timestamp::from_millis),
        TimestampUnit::Rfc3339 => rfc_3339(std::str::from_utf8(text).ok()?),
    }
}

/// How an instant is written.
pub(crate) fn write(unit: TimestampUnit, at: Timestamp) -> String {
    match unit {
        TimestampUnit::Seconds => at.as_secs().to_string(),
        TimestampUnit::Milliseconds => at.as_millis().to_string(),
        TimestampUnit::Rfc3339 => {
            let secs = at.as_secs();
            let (year, month, day) = civil(secs.div_euclid(DAY_SECS));
            let time = secs.rem_euclid(DAY_SECS);
            let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
        }
    }
}

fn whole(text: &[u8]) -> Option<i64> {
    let plain =
        text.iter().all(u8::is_ascii_digit) && (text.len() == 1 || text.first() != Some(&b'0'));
    std::str::from_utf8(text).ok().filter(|_| plain)?.parse().ok()
}

fn rfc_3339(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = bytes.get(from..to)?;
        let plain = digits.iter().all(u8::is_ascii_digit);
        std::str::from_utf8(digits).ok().filter(|_| plain)?.parse().ok()
    };
    let is = |at: usize, wanted: u8| bytes.get(at) == Some(&wanted);
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if !text.is_ascii() || !marks.iter().all(|(at, mark)| is(*at, *mark)) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let mut at = 19;
    let mut ms = 0;
    if is(at, b'.') {
        let digits = bytes[at + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        let shown = digits.min(3);
        ms = number(at + 1, at + 1 + shown)? * [100, 10, 1][shown - 1];
        at += 1 + digits;
    }
    let offset = match bytes.get(at..)? {
        b"Z" => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let (hours, minutes) = (number(at + 1, at + 3)?, number(at + 4, at + 6)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let secs = hours * 3600 + minutes * 60;
            if *sign == b'-' { -secs } else { secs }
        }
        _ => return None,
    };
    let days = days(year, month, day);
    if civil(days) != (year, month, day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let secs = days * DAY_SECS + hour * 3600 + minute * 60 + second - offset;
    Some(Timestamp::from_millis(secs * 1000 + ms))
}

/// Days since the epoch. A year is counted from March, so that the leap day is its last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let from_march = (month + 9).rem_euclid(12);
    let in_year = (153 * from_march + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + in_year
        - 719_468
}

fn civil(days: i64) -> (i64, i64, i64) {
    // 400 years are 146,097 days, whichever they are.
    let shifted = days.saturating_add(719_468);
    let (era, in_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let of_era = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * of_era + of_era / 4 - of_era / 100);
    let from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (of_era + era * 400 + i64::from(month <= 2), month, day)
}
