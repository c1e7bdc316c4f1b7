//! What a policy says, read from its settings in plain arithmetic.
//!
//! The core is what is judged, so none of its functions is asked here: only its settings and outcomes
//! are read, as they are written down. Times are whole milliseconds.

use hookproof_core::classify::{Classification, ClientError, Verdict};
use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::policy::Policy;
use hookproof_core::rule::{Action, Condition};
use hookproof_core::schedule::{Backoff, Jitter, Schedule};
use hookproof_core::time::Millis;

/// No span is longer.
const LONGEST: u128 = u64::MAX as u128;

/// What an outcome means for its delivery: the first rule of one's own that is about it, or else the
/// agreement.
pub(super) fn verdict(agreement: &Classification, outcome: &Outcome) -> Verdict {
    let (status, asked) = match outcome {
        // Whatever rules say: what we forbid ourselves stays forbidden, and nobody knows the other.
        Outcome::Failed { failure: Failure::Blocked } => return Verdict::Final,
        Outcome::Unknown => return Verdict::Retry { floor: None },
        Outcome::Failed { .. } => (None, None),
        Outcome::Answered { status, retry_after } => (Some(*status), *retry_after),
    };
    let most = agreement.retry_after_max.get();
    let floor = asked.map(|asked| Millis::new(asked.get().min(most)));
    for rule in &agreement.rules {
        let is_about = match (&rule.when, outcome) {
            (Condition::Status(first, last), Outcome::Answered { status, .. }) => {
                first <= status && status <= last
            }
            (Condition::Failed(wanted), Outcome::Failed { failure }) => wanted == failure,
            _ => false,
        };
        if is_about {
            return match rule.then {
                Action::Delivered => Verdict::Delivered,
                Action::Retry => Verdict::Retry { floor: None },
                Action::RetryAfter => Verdict::Retry { floor },
                Action::Fail => Verdict::Final,
                Action::DisableEndpoint => Verdict::Gone,
            };
        }
    }
    let Some(status) = status else { return Verdict::Retry { floor: None } };
    match (status / 100, status) {
        (2, _) => Verdict::Delivered,
        (0 | 1 | 3, _) => Verdict::Retry { floor: None },
        (_, 410) => Verdict::Gone,
        (4, 408 | 425 | 429) => Verdict::Retry { floor },
        (4, _) if agreement.client_error == ClientError::Final => Verdict::Final,
        _ => Verdict::Retry { floor },
    }
}

/// How many attempts a schedule has.
pub(crate) fn attempts_max(schedule: &Schedule) -> u32 {
    match &schedule.backoff {
        Backoff::List { waits } => u32::try_from(waits.len() + 1).unwrap_or(u32::MAX),
        Backoff::Linear { attempts_max, .. } | Backoff::Exponential { attempts_max, .. } => {
            *attempts_max
        }
    }
}

/// How long a claim lasts.
pub(super) fn lease(policy: &Policy) -> Millis {
    span(wide(policy.total_timeout) + wide(policy.lease_margin))
}

/// The shortest and the longest wait after the scheduled attempt of this number, from 1, where the one
/// before was `previous` and the receiver asked for `floor`; `None` after the last.
pub(super) fn waits(
    policy: &Policy,
    attempt: u32,
    previous: Option<Millis>,
    floor: Option<Millis>,
) -> Option<(Millis, Millis)> {
    let schedule = &policy.schedule;
    let wait = before_jitter(schedule, attempt)?;
    let rule = &policy.retry_after;
    let counted = floor.map(|asked| {
        let least = wide(asked).max(wide(rule.min));
        rule.percent_max.map_or(least, |percent| least.min(hundredths(wait, percent).min(LONGEST)))
    });
    let from = match counted {
        Some(counted) if rule.jitters => wait.max(counted),
        _ => wait,
    };
    let (lowest, highest) = spread(schedule, from, previous);
    let cut = schedule.cap_after_jitter.map_or(LONGEST, wide);
    let (lowest, highest) = (lowest.min(cut), highest.min(cut));
    Some(match counted {
        Some(counted) if !rule.jitters => {
            let last = counted + wide(policy.retry_after_spread);
            (span(lowest.max(counted)), span(highest.max(last)))
        }
        _ => (span(lowest), span(highest)),
    })
}

/// The wait after an attempt as its backoff has it.
fn before_jitter(schedule: &Schedule, attempt: u32) -> Option<u128> {
    if attempt < 1 || attempt >= attempts_max(schedule) {
        return None;
    }
    let before = attempt - 1;
    match &schedule.backoff {
        Backoff::List { waits } => waits.get(usize::try_from(before).ok()?).copied().map(wide),
        Backoff::Linear { base, step, cap, .. } => {
            Some((wide(*base) + wide(*step) * u128::from(before)).min(wide(*cap)))
        }
        Backoff::Exponential { base, factor, cap, .. } => {
            // No product can be too large: both of its factors have at most 64 bits.
            let times = |wait: u128, _| (wait * u128::from(*factor)).min(wide(*cap));
            Some((0..before).fold(wide(*base).min(wide(*cap)), times))
        }
    }
}

/// From where to where a wait is drawn.
fn spread(schedule: &Schedule, wait: u128, previous: Option<Millis>) -> (u128, u128) {
    match schedule.jitter {
        Jitter::None => (wait, wait),
        Jitter::Full => (0, wait),
        Jitter::Equal => (wait.div_ceil(2), wait),
        Jitter::Proportional { percent } => {
            let part = hundredths(wait, percent);
            (wait.saturating_sub(part), wait + part)
        }
        Jitter::Additive { most } => (wait, wait + wide(most)),
        Jitter::Decorrelated => match &schedule.backoff {
            Backoff::Exponential { base, factor, cap, .. } => {
                let before = wide(previous.unwrap_or(*base));
                let (base, cap) = (wide(*base), wide(*cap));
                (base.min(cap), (before * u128::from(*factor)).max(base).min(cap))
            }
            // There is no such policy: the other kinds have no factor.
            Backoff::List { .. } | Backoff::Linear { .. } => (wait, wait),
        },
    }
}

/// So many hundredths of a wait, in whole milliseconds.
fn hundredths(wait: u128, percent: u32) -> u128 {
    wait * u128::from(percent) / 100
}

fn wide(span: Millis) -> u128 {
    u128::from(span.get())
}

fn span(wide: u128) -> Millis {
    Millis::new(u64::try_from(wide).unwrap_or(u64::MAX))
}
