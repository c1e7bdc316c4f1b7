//! What stands between the events and their endpoint: the sender's own gate, as a policy or the
//! command line sets it.

use std::fmt;

use hookproof_core::gate::{BreakerRule, GateRule, RateRule};
use hookproof_core::time::Millis;

use super::source::Source;
use crate::output::number::Counted;

/// What limits the attempts of all events together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Limits {
    pub(super) gate: GateRule,
    /// What the receiver asks for with each answer.
    pub(super) retry_after: Option<Millis>,
}

impl Limits {
    /// The gate of a policy in a file. The schedules of others come without one; what the command
    /// line gives takes the place of either.
    pub(super) fn new(
        source: &Source,
        breaker: Option<&BreakerRule>,
        rate: Option<u32>,
        retry_after: Option<Millis>,
    ) -> Self {
        let mut gate = if source.is_preset() { open() } else { source.policy.gate.clone() };
        if let Some(breaker) = breaker {
            gate.breaker = Some(breaker.clone());
        }
        if let Some(attempts) = rate {
            gate.rate = Some(RateRule { attempts, per: Millis::from_secs(1), burst: 0 });
        }
        Self { gate, retry_after }
    }

    /// Whether anything is ever held back.
    pub(super) fn limit(&self) -> bool {
        let throttles = self.retry_after.is_some() && self.gate.throttle_max > Millis::ZERO;
        self.gate.breaker.is_some() || self.gate.rate.is_some() || throttles
    }
}

impl fmt::Display for Limits {
    /// What holds attempts back, in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GateRule { breaker, rate, throttle_max, .. } = &self.gate;
        let mut all = Vec::new();
        if let Some(rule) = breaker {
            all.push(breaker_text(rule));
        }
        if let Some(RateRule { attempts, per, .. }) = rate {
            let requests = Counted(u64::from(*attempts), "request");
            all.push(format!("at most {requests} within {per}"));
        }
        if let Some(asked) = self.retry_after.filter(|_| *throttle_max > Millis::ZERO) {
            let hold = asked.min(*throttle_max);
            all.push(format!("a Retry-After leaves the endpoint alone for {hold}"));
        }
        f.write_str(&all.join("; "))
    }
}

fn breaker_text(rule: &BreakerRule) -> String {
    let BreakerRule { failures_in_a_row, pause, pause_factor, pause_max, disable, .. } = rule;
    let in_a_row = |count: u32| format!("{} in a row", Counted(u64::from(count), "failure"));
    let mut text = match failures_in_a_row {
        0 => format!("the breaker pauses for {pause}"),
        1 => format!("each failure pauses for {pause}"),
        count => format!("{} pause for {pause}", in_a_row(*count)),
    };
    if *pause_factor > 1 && pause < pause_max {
        text.push_str(&format!(", then up to {pause_max}"));
    }
    match disable.as_ref().map(|rule| rule.failures_in_a_row) {
        None => {}
        Some(0) => text.push_str("; after a time of nothing but failures it is given up"),
        Some(1) => text.push_str("; after a failure it is given up"),
        Some(count) => text.push_str(&format!("; after {} it is given up", in_a_row(count))),
    }
    text
}

/// A gate that holds nothing back.
pub(super) fn open() -> GateRule {
    GateRule {
        concurrency_max: u32::MAX,
        throttle_max: Millis::ZERO,
        breaker: None,
        rate: None,
        drain: None,
    }
}

/// Reads `FAILURES:PAUSE` or `FAILURES:PAUSE:LONGEST`: each pause is twice the one before, up to the
/// longest; without one, pauses do not grow.
pub(super) fn breaker(text: &str) -> Result<BreakerRule, String> {
    let wrong = || {
        "write failures in a row, the first pause and perhaps the longest, as in 20:1m or 20:1m:1h"
            .to_owned()
    };
    let read = || {
        let mut parts = text.split(':');
        let failures_in_a_row = parts.next()?.parse().ok().filter(|failures| *failures > 0)?;
        let pause = parts.next()?.parse().ok()?;
        let pause_max = parts.next().map_or(Some(pause), |longest| longest.parse().ok())?;
        let rule = BreakerRule { failures_in_a_row, pause, pause_max, ..BreakerRule::default() };
        parts.next().is_none().then_some(rule)
    };
    let rule = read().ok_or_else(wrong)?;
    let BreakerRule { pause, pause_max, .. } = rule;
    match rule.check() {
        None => Ok(rule),
        Some(_) if pause_max < pause => Err(format!(
            "the longest pause, {pause_max}, is below the first, {pause}: write it at least as long, or \
             leave it out"
        )),
        Some((_, problem)) => Err(format!("a pause {problem}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_attempts_back_is_told_in_words() {
        let told = |text, rate: Option<u32>, retry_after| {
            let rate =
                rate.map(|attempts| RateRule { attempts, per: Millis::from_secs(1), burst: 0 });
            let throttle_max = Millis::from_minutes(2);
            let gate = GateRule { breaker: breaker(text).ok(), rate, throttle_max, ..open() };
            Limits { gate, retry_after }.to_string()
        };
        let hour = Some(Millis::from_hours(1));
        assert_eq!(told("1:1m", None, None), "each failure pauses for 1m");
        assert_eq!(
            told("20:1m:1h", Some(1), None),
            "20 failures in a row pause for 1m, then up to 1h; at most 1 request within 1s"
        );
        assert_eq!(told("", None, hour), "a Retry-After leaves the endpoint alone for 2m");
    }

    #[test]
    fn a_breaker_is_read_from_two_or_three_parts() {
        let read =
            |text| breaker(text).ok().map(|b| (b.failures_in_a_row, b.pause_max.to_string()));
        assert_eq!(read("20:1m"), Some((20, "1m".to_owned())));
        assert_eq!(read("20:1m:1h"), Some((20, "1h".to_owned())));
        for wrong in ["", "20", "0:1m", "20:0s", "20:1h:1m", "20:1m:1h:1", "x:1m"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
