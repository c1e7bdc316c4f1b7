//! The facts in words.

use hookproof_core::preset::Certainty;
use hookproof_core::time::Millis;
use jiff::Timestamp as Calendar;

use super::burst::Burst;
use super::facts::{Facts, Outage, Unreached};
use super::limits::Limits;
use super::lives::LIVES;
use super::source::Source;
use super::timeline::{Bounds, Count, Spread};
use super::{about, span_text, time_text};
use crate::output::number::{Counted, Grouped};

/// What a certainty rests on.
pub(super) fn grounds(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Documented => "the sender's own documentation, specification or code says so",
        Certainty::Secondary => "somebody else reports it",
        Certainty::Unknown => "a guess that fits what the sender does publish",
    }
}

/// A number, or a range with its mean.
pub(super) fn counted(count: Count) -> String {
    let range = range(count, " to ");
    match count.mean_thousandths {
        _ if count.lowest == count.highest => range,
        mean if mean < 50 => format!("{range}, less than 0.1 on average"),
        mean => {
            let tenths = (mean + 50) / 100;
            format!("{range}, {}.{} on average", Grouped(tenths / 10), tenths % 10)
        }
    }
}

/// What the receiver asks for, and how much of it counts.
pub(super) fn retry_after(asked: Millis, source: &Source) -> String {
    let policy = &source.policy;
    let rule = policy.retry_after;
    let counts = asked.min(policy.classification.retry_after_max).max(rule.min);
    let mut text = format!("{asked} after each attempt");
    if counts != asked {
        text.push_str(&format!("; it counts as {counts}"));
    }
    if let Some(percent) = rule.percent_max {
        text.push_str(&format!("; it counts for at most {percent} % of the wait"));
    }
    if rule.jitters {
        text.push_str(", and the jitter is drawn around that");
    }
    if source.assumes_retry_after {
        let most = policy.classification.retry_after_max;
        text.push_str(&format!(
            "; that it counts is an assumption: what this sender makes of a Retry-After is not \
             published, so Hookproof's own bound is used, {most}"
        ));
    }
    text
}

/// The attempts that no life came to.
pub(super) fn unreached(of: Unreached, with_limits: bool) -> String {
    let Unreached { first, last, lives, last_since_event: Bounds { lowest_ms, highest_ms } } = of;
    let limits = if with_limits { "without the limits, " } else { "" };
    let [lives, from, to] = [lives, u64::from(first), u64::from(last)].map(Grouped);
    let (attempts, them) = match first == last {
        true => (format!("attempt {from} is"), "it"),
        false => (format!("attempts {from} to {to} are"), "them"),
    };
    let (lowest, highest) = (span_text(lowest_ms), span_text(highest_ms));
    let when = if lowest == highest { highest } else { format!("{lowest} to {highest}") };
    format!(
        "{limits}{attempts} possible, but none of {lives} sampled lives came to {them}; the last \
         possible is {when} after the event"
    )
}

/// A number, or the two ends of a range.
pub(super) fn range(Count { lowest, highest, .. }: Count, to: &str) -> String {
    if lowest == highest {
        return Grouped(highest).to_string();
    }
    format!("{}{to}{}", Grouped(lowest), Grouped(highest))
}

/// What holds attempts back, and of whom the facts are told.
pub(super) fn limits(limits: &Limits, burst: &Burst, is_drawn: bool) -> String {
    let whose = match burst.events {
        1 => "one event".to_owned(),
        events => format!("{} events at once", Grouped(u64::from(events))),
    };
    let drawn = if is_drawn { ", as drawn" } else { "" };
    format!("{limits}. What follows is told of {whose} behind them{drawn}")
}

/// The requests of the first hour.
pub(super) fn first_hour(count: Count) -> String {
    let noun = if count.highest == 1 { "request" } else { "requests" };
    let (range, mean) = (range(count, " to "), counted(count));
    let mean = mean.strip_prefix(&range).unwrap_or_default();
    format!("{range} {noun} for one event{mean}")
}

/// The longest outage.
pub(super) fn outlasts(facts: &Facts) -> String {
    let survived = facts.survived_outage;
    let bound = |ms| bound(facts, ms);
    if survived.for_sure_ms == survived.at_best_ms {
        return format!("an outage of {} from the event on", bound(survived.at_best_ms));
    }
    format!(
        "an outage of {} for sure, {} in the mean, {} at best",
        bound(survived.for_sure_ms),
        about(survived.mean_ms),
        bound(survived.at_best_ms)
    )
}

/// The end of a range of times, which is exact unless limits move what was drawn.
pub(super) fn bound(facts: &Facts, ms: u64) -> String {
    if facts.with_limits { about(ms) } else { span_text(ms) }
}

/// The wait of a receiver that is back.
pub(super) fn after_recovery(facts: &Facts) -> String {
    let Some(wait) = facts.longest_wait_after_recovery_ms.map(span_text) else {
        return "no further attempt: there is but one".to_owned();
    };
    match facts.longest_quiet_after_recovery_ms {
        None => format!("at most {wait} to the next attempt"),
        Some(quiet) if facts.events.as_ref().is_some_and(|burst| burst.events == 1) => {
            format!("at most {} to the next attempt", about(quiet))
        }
        Some(quiet) => format!(
            "at most {wait} until the next attempt of an event is due; at most {} to the next \
             request of any",
            about(quiet)
        ),
    }
}

/// The events that fail at once.
pub(super) fn at_once(facts: &Facts, burst: &Burst) -> String {
    let mut text = if burst.events == 1 { one(facts) } else { many(burst) };
    if burst.held_ms_max > 0 {
        let held = about(burst.held_ms_max);
        text.push_str(&format!("; an attempt is held back for {held} at most"));
    }
    if let Some(given_up_ms) = burst.given_up_ms {
        text.push_str(&format!(
            "; the endpoint is given up {} after the event, and what waits there is kept",
            about(given_up_ms)
        ));
    }
    text
}

fn one(Facts { attempts_made: all, requests_first_hour: hour, .. }: &Facts) -> String {
    let noun = if all.highest == 1 { "request" } else { "requests" };
    let hour = match hour {
        _ if all.highest == 1 => ", in the first hour".to_owned(),
        hour if hour.lowest == all.highest => ", all of them in the first hour".to_owned(),
        hour => format!(", {} of them in the first hour", range(*hour, " to ")),
    };
    format!("1 event that fails makes {} {noun}{hour}", range(*all, " to "))
}

fn many(burst: &Burst) -> String {
    let events = Counted(u64::from(burst.events), "event");
    let requests = Counted(burst.requests, "request");
    let mut text = format!("{events} that fail at once make {requests}");
    text.push_str(&match burst.requests_first_hour {
        hour if hour == burst.requests => ", all of them in the first hour".to_owned(),
        hour => format!(", {} of them in the first hour", Grouped(hour)),
    });
    let retries = match burst.retries_per_second_max {
        0 => return text,
        1 => "1 retry".to_owned(),
        peak => format!("{} retries", Grouped(peak)),
    };
    text.push_str(&format!(
        ", at most {retries} within one second after the first moment; the last {} after the event",
        about(burst.last_attempt_ms)
    ));
    text
}

/// How an outage goes.
pub(super) fn outage(outage: Outage, from: Option<Calendar>) -> String {
    let within = counted(outage.attempts_within);
    let mut text = format!(
        "from {} to {} after the event; attempts within it: {within}; ",
        span_text(outage.start_ms),
        span_text(outage.end_ms)
    );
    if outage.start_ms > 0 {
        text.push_str("unless an earlier attempt delivers it, ");
    }
    let Some(Spread { lowest_ms, mean_ms, highest_ms, .. }) = outage.first_after else {
        text.push_str(&if outage.survived_at_best {
            format!("survived in fewer than 1 of {} cases", Grouped(LIVES))
        } else {
            "not survived: no attempt comes after it".to_owned()
        });
        return text;
    };
    match outage.survived_percent {
        _ if outage.survived_for_sure => text.push_str("survived"),
        100 => text.push_str("survived in nearly all cases"),
        0 => text.push_str("survived in fewer than 1 of 100 cases"),
        share => text.push_str(&format!("survived in {share} of 100 cases")),
    }
    if lowest_ms == highest_ms {
        text.push_str(&format!(
            "; the first attempt after it comes {} after the event, {} after its end",
            span_text(highest_ms),
            span_text(mean_ms.saturating_sub(outage.end_ms))
        ));
    } else {
        text.push_str(&format!(
            "; the first attempt after it comes {} after its end on average",
            about(mean_ms.saturating_sub(outage.end_ms))
        ));
    }
    if let Some(start) = from {
        text.push_str(&format!(", at {}", time_text(start, mean_ms / 1000 * 1000)));
    }
    text
}
