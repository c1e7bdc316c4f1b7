//! Timelines and comparisons for spreadsheets, as RFC 4180 has it: a head, and one line an attempt or
//! a schedule.

use std::io::{self, Write};

use super::facts::Within;
use super::timeline::{Count, Entry, Spread};
use super::{Inspected, time_text};

const SPREAD: [&str; 5] = ["lowest_ms", "mean_ms", "p50_ms", "p95_ms", "highest_ms"];
const AT: [&str; 3] = ["earliest", "mean", "latest"];
const COUNT: [&str; 3] = ["lowest", "mean_thousandths", "highest"];

/// The attempts of one policy.
pub(super) fn timeline(inspected: &Inspected, to: &mut impl Write) -> io::Result<()> {
    let mut head = vec!["attempt".to_owned()];
    head.extend(named("wait", SPREAD));
    head.extend(named("since_event", SPREAD));
    if inspected.facts.with_limits {
        head.extend(named("with_limits", ["events", "first_ms", "mean_ms", "last_ms"]));
    }
    if inspected.window.is_some() {
        head.push("within_outage".to_owned());
    }
    if inspected.from.is_some() {
        head.extend(named("at", AT));
    }
    write(&head, to)?;
    inspected.timeline.entries.iter().try_for_each(|entry| write(&attempt(inspected, entry), to))
}

fn attempt(inspected: &Inspected, entry: &Entry) -> Vec<String> {
    let mut line = vec![entry.attempt.to_string()];
    line.extend(spread(entry.wait));
    line.extend(spread(entry.since_event));
    let made = inspected.made(entry);
    if inspected.facts.with_limits {
        line.extend(match inspected.limited(entry) {
            Some(of) => {
                let Spread { lowest_ms, mean_ms, highest_ms, .. } = of.made;
                [of.events, lowest_ms, mean_ms, highest_ms].map(|n| n.to_string())
            }
            None => ["0", "", "", ""].map(str::to_owned),
        });
    }
    if let Some(window) = inspected.window {
        let within = match made.map(|made| window.holds(made)) {
            Some(Within::Yes) => "yes",
            Some(Within::Maybe) => "maybe",
            Some(Within::No) => "no",
            None => "",
        };
        line.push(within.to_owned());
    }
    if let Some(start) = inspected.from {
        line.extend(match made {
            Some(Spread { lowest_ms, mean_ms, highest_ms, .. }) => {
                [lowest_ms, mean_ms, highest_ms].map(|ms| time_text(start, ms))
            }
            None => Default::default(),
        });
    }
    line
}

/// The facts of policies side by side.
pub(super) fn comparison(inspected: &[Inspected], to: &mut impl Write) -> io::Result<()> {
    let has = |what: &dyn Fn(&Inspected) -> bool| inspected.iter().any(what);
    let has_from = has(&|one| one.from.is_some());
    let has_events = has(&|one| one.facts.events.is_some());
    let has_outage = has(&|one| one.facts.outage.is_some());
    let mut head = vec!["schedule".to_owned(), "certainty".to_owned()];
    head.extend(named("attempts", COUNT));
    head.extend(named("last_attempt", SPREAD));
    if has_from {
        head.extend(named("last_attempt_at", AT));
    }
    head.extend(named("requests_first_hour", COUNT));
    head.extend(named("survived_outage", ["for_sure_ms", "mean_ms", "at_best_ms"]));
    head.push("longest_wait_after_recovery_ms".to_owned());
    if has_events {
        let names = ["count", "requests", "requests_first_hour", "retries_per_second_max"];
        head.extend(named("events", names));
        head.extend(named("events", ["last_attempt_ms", "held_ms_max"]));
    }
    if has_outage {
        head.push("outage_survived_percent".to_owned());
        head.extend(named("outage_first_after", SPREAD));
    }
    head.push("afterwards".to_owned());
    write(&head, to)?;
    inspected.iter().try_for_each(|one| write(&facts(one), to))
}

fn facts(inspected: &Inspected) -> Vec<String> {
    let Inspected { source, facts, from, .. } = inspected;
    let certainty = source.certainty.map_or("", |certainty| certainty.as_str());
    let mut line = vec![source.name.clone(), certainty.to_owned()];
    line.extend(count(facts.attempts_made));
    let last = facts.last_attempt_since_event;
    line.extend(spread(last));
    if let Some(start) = from {
        let ends = [last.lowest_ms, last.mean_ms, last.highest_ms];
        line.extend(ends.map(|ms| time_text(*start, ms)));
    }
    line.extend(count(facts.requests_first_hour));
    let survived = facts.survived_outage;
    let survived = [survived.for_sure_ms, survived.mean_ms, survived.at_best_ms];
    line.extend(survived.map(|ms| ms.to_string()));
    line.push(facts.longest_wait_after_recovery_ms.map_or(String::new(), |ms| ms.to_string()));
    if let Some(burst) = &facts.events {
        let events = u64::from(burst.events);
        let told = [events, burst.requests, burst.requests_first_hour];
        line.extend(told.map(|n| n.to_string()));
        let told = [burst.retries_per_second_max, burst.last_attempt_ms, burst.held_ms_max];
        line.extend(told.map(|n| n.to_string()));
    }
    if let Some(outage) = facts.outage {
        line.push(outage.survived_percent.to_string());
        line.extend(outage.first_after.map_or(Default::default(), spread));
    }
    line.push(facts.afterwards.text().to_owned());
    line
}

fn named<const N: usize>(group: &str, names: [&str; N]) -> [String; N] {
    names.map(|name| format!("{group}_{name}"))
}

fn spread(of: Spread) -> [String; 5] {
    let Spread { lowest_ms, mean_ms, p50_ms, p95_ms, highest_ms } = of;
    [lowest_ms, mean_ms, p50_ms, p95_ms, highest_ms].map(|ms| ms.to_string())
}

fn count(Count { lowest, mean_thousandths, highest }: Count) -> [String; 3] {
    [lowest, mean_thousandths, highest].map(|n| n.to_string())
}

fn write(fields: &[String], to: &mut impl Write) -> io::Result<()> {
    let fields: Vec<_> = fields.iter().map(|field| quoted(field)).collect();
    writeln!(to, "{}", fields.join(","))
}

/// A field, in quotes if it needs them.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_quoted_where_it_must_be() {
        for (field, written) in
            [("plain; text", "plain; text"), ("a,b", "\"a,b\""), ("a\"b", "\"a\"\"b\"")]
        {
            assert_eq!(quoted(field), written);
        }
    }
}
