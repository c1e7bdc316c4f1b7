//! `Retry-After` fields as gateways write them, with what they really ask for.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hookproof_core::time::{Millis, Timestamp};

use crate::choices::{Choices, Who};
use crate::sometimes::Sometimes;

/// A field and its meaning, known from how it was made and not by reading it.
pub(crate) struct Field {
    pub(crate) value: String,
    /// How long it asks to wait; `None` if it is to be ignored.
    pub(crate) asked: Option<Millis>,
    pub(crate) sometimes: Option<Sometimes>,
}

/// Draws a field, or none.
pub(crate) fn draw(choices: &Choices, who: impl Into<Who>, wall: Timestamp) -> Option<Field> {
    let who = who.into();
    let form = choices.pick(who, "retry-after", &[6, 4, 2, 1, 1, 1, 1, 1, 2]);
    let seconds = choices.between(who, "retry-after seconds", 0, 8);
    let field = |value: String, asked, sometimes| Some(Field { value, asked, sometimes });
    let number = |seconds: u64| field(seconds.to_string(), Some(Millis::from_secs(seconds)), None);
    let later = seconds + choices.between(who, "retry-after date", 1, 60);
    let date = |of: fn(&str) -> String| {
        let at = wall.as_secs() + i64::try_from(later).unwrap_or(0);
        let asked = Timestamp::from_secs(at).since(wall);
        field(of(&imf(at)), Some(asked), Some(Sometimes::RetryAfterDate))
    };
    match form {
        0 => None,
        1 => number(seconds),
        2 => number(seconds * 15),
        3 => number(9_999_999_999),
        4 => date(ToOwned::to_owned),
        5 => date(rfc850),
        6 => date(asctime),
        7 => field(imf(wall.as_secs() - 3600), Some(Millis::ZERO), Some(Sometimes::RetryAfterDate)),
        _ => {
            let which = usize::try_from(later % 4).unwrap_or(0);
            let junk = ["-5", "1.5", "10 s", "soon"][which];
            field(junk.to_owned(), None, Some(Sometimes::RetryAfterJunk))
        }
    }
}

/// A date in HTTP's own form: `Thu, 01 Jan 2026 00:00:00 GMT`.
fn imf(seconds: i64) -> String {
    let since_epoch = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    let at: SystemTime = UNIX_EPOCH + since_epoch;
    httpdate::fmt_http_date(at)
}

/// The same in the form of RFC 850: `Thursday, 01-Jan-26 00:00:00 GMT`.
fn rfc850(imf: &str) -> String {
    let day = match &imf[..3] {
        "Tue" => "Tuesday",
        "Wed" => "Wednesday",
        "Thu" => "Thursday",
        "Sat" => "Saturday",
        "Sun" => "Sunday",
        "Mon" => "Monday",
        _ => "Friday",
    };
    format!("{day}, {}-{}-{} {} GMT", &imf[5..7], &imf[8..11], &imf[14..16], &imf[17..25])
}

/// The same in the form of asctime: `Thu Jan  1 00:00:00 2026`.
fn asctime(imf: &str) -> String {
    let day = imf[5..7].trim_start_matches('0');
    format!("{} {} {day:>2} {} {}", &imf[..3], &imf[8..11], &imf[17..25], &imf[12..16])
}
