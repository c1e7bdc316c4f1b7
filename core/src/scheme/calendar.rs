//! How schemes write the time that they sign.

use super::TimestampUnit;
use crate::date::{Date, Rest};
use crate::time::Timestamp;

/// The instant that is written so; numbers are plain digits, without sign or leading zero.
pub(crate) fn read(unit: TimestampUnit, text: &[u8]) -> Option<Timestamp> {
    match unit {
        TimestampUnit::Seconds => whole(text).map(Timestamp::from_secs),
        TimestampUnit::Milliseconds => whole(text).map(Timestamp::from_millis),
        TimestampUnit::Rfc3339 => rfc_3339(text),
    }
}

/// How an instant is written, if it can be: without a sign, or with a year of four digits.
pub(crate) fn write(unit: TimestampUnit, at: Timestamp) -> Option<String> {
    let plain = |number: i64| (number >= 0).then(|| number.to_string());
    match unit {
        TimestampUnit::Seconds => plain(at.as_secs()),
        TimestampUnit::Milliseconds => plain(at.as_millis()),
        TimestampUnit::Rfc3339 => {
            let Date { year, month, day, time_ms } = Date::at(at);
            let time = time_ms / 1000;
            let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
            (0..=9999).contains(&year).then(|| {
                format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
            })
        }
    }
}

fn whole(text: &[u8]) -> Option<i64> {
    let plain =
        text.iter().all(u8::is_ascii_digit) && (text.len() == 1 || text.first() != Some(&b'0'));
    std::str::from_utf8(text).ok().filter(|_| plain)?.parse().ok()
}

/// RFC 3339 §5.6, in capitals; what is finer than a millisecond is cut.
fn rfc_3339(text: &[u8]) -> Option<Timestamp> {
    let mut rest = Rest(text);
    let year = rest.number(4)?;
    rest.literal(b"-")?;
    let month = rest.number(2)?;
    rest.literal(b"-")?;
    let day = rest.number(2)?;
    rest.literal(b"T")?;
    let time_ms = rest.time_ms()? + fraction_ms(&mut rest)? - offset_ms(&mut rest)?;
    rest.end()?;
    Date { year, month, day, time_ms }.instant()
}

/// The milliseconds of a fraction of a second, or none.
fn fraction_ms(rest: &mut Rest<'_>) -> Option<i64> {
    if rest.literal(b".").is_none() {
        return Some(0);
    }
    let digits = rest.digits();
    let value = |at: usize| digits.get(at).map_or(0, |digit| i64::from(digit - b'0'));
    (!digits.is_empty()).then(|| value(0) * 100 + value(1) * 10 + value(2))
}

/// How far the local time is ahead of UTC.
fn offset_ms(rest: &mut Rest<'_>) -> Option<i64> {
    if rest.literal(b"Z").is_some() {
        return Some(0);
    }
    let sign = match rest.literal(b"-") {
        Some(()) => -1,
        None => rest.literal(b"+").map(|()| 1)?,
    };
    Some(sign * rest.minutes()? * 60_000)
}
