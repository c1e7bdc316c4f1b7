//! The reference says of every policy what the core says; neither asks the other.

use hookproof_core::classify::{Classification, ClientError};
use hookproof_core::outcome::Failure;
use hookproof_core::preset;
use hookproof_core::retry_after::RetryAfterRule;
use hookproof_core::rule::{Action, Condition, Rule};
use hookproof_core::schedule::{Backoff, Jitter, Schedule};

use super::*;
use crate::checkers::reference;
use crate::choices::Choices;

/// Holds both against each other for every attempt of a policy, and tells how many waits there were.
fn check(policy: &Policy, choices: &Choices) -> u32 {
    let attempts_max = policy.schedule.attempts_max();
    assert_eq!(reference::attempts_max(&policy.schedule), attempts_max, "{policy:?}");
    assert_eq!(reference::lease(policy), policy.lease());
    let mut previous = None;
    let mut waits = 0;
    for attempt in 0..=attempts_max.min(40) + 1 {
        for floor in [None, Some(Millis::ZERO), Some(span(choices)), Some(Millis::MAX)] {
            let says = reference::waits(policy, attempt, previous, floor);
            let draw = policy.draw(attempt, previous, floor);
            let expected = draw.map(|draw| (draw.bounds().lowest, draw.bounds().highest));
            assert_eq!(
                says, expected,
                "attempt {attempt} after {previous:?}, asked {floor:?}: {policy:?}"
            );
            waits += u32::from(says.is_some());
        }
        let entropy = choices.bits("test", "entropy");
        previous = policy.schedule.draw(attempt, previous).map(|draw| draw.at(entropy));
    }
    waits
}

/// From a millisecond to the longest there is.
fn span(choices: &Choices) -> Millis {
    let bits = choices.between("test", "bits", 1, 63);
    Millis::new(1 + (choices.bits("test", "span") >> (64 - bits)))
}

fn number(choices: &Choices, least: u64, most: u64) -> u32 {
    u32::try_from(choices.between("test", "number", least, most)).unwrap()
}

fn any_backoff(choices: &Choices) -> Backoff {
    let (base, attempts_max) = (span(choices), number(choices, 1, 90));
    let cap = base.max(span(choices));
    match choices.draw("test", "backoff", 3) {
        0 => {
            let waits = (1..attempts_max).map(|_| span(choices)).collect();
            Backoff::List { waits }
        }
        1 => Backoff::Linear { base, step: span(choices), cap, attempts_max },
        _ => Backoff::Exponential { base, factor: number(choices, 2, 9), cap, attempts_max },
    }
}

fn any_policy(choices: &Choices) -> Policy {
    let backoff = any_backoff(choices);
    let is_exponential = matches!(backoff, Backoff::Exponential { .. });
    let jitter = match choices.draw("test", "jitter", if is_exponential { 6 } else { 5 }) {
        0 => Jitter::None,
        1 => Jitter::Full,
        2 => Jitter::Equal,
        3 => Jitter::Proportional { percent: number(choices, 0, 100) },
        4 => Jitter::Additive { most: span(choices) },
        _ => Jitter::Decorrelated,
    };
    let is_often = |what| choices.chance("test", what, 500);
    let cap_after_jitter = is_often("cap").then(|| span(choices));
    let jitters = jitter != Jitter::Decorrelated && is_often("jitters");
    let spread = if jitters || is_often("no spread") { Millis::ZERO } else { span(choices) };
    let percent_max = is_often("percent").then(|| number(choices, 0, 400));
    let min = if is_often("min") { span(choices) } else { Millis::ZERO };
    let mut policy = Policy {
        schedule: Schedule { backoff, jitter, cap_after_jitter },
        retry_after_spread: spread,
        retry_after: RetryAfterRule { min, percent_max, jitters },
        ..Policy::default()
    };
    policy.classification.retry_after_max = Millis::MAX;
    policy
}

#[test]
fn waits_are_the_cores_for_each_preset() {
    let choices = Choices::seeded(1);
    for preset in preset::all() {
        let is_single = preset.schedule.attempts_max() == 1;
        assert!(check(&preset.policy(), &choices) > 0 || is_single, "{}", preset.name);
    }
}

#[test]
fn waits_are_the_cores_for_random_policies() {
    let mut waits = 0;
    for seed in 0..3_000 {
        let choices = Choices::seeded(seed);
        let policy = any_policy(&choices);
        assert_eq!(policy.validate(), Ok(()), "{policy:?}");
        waits += check(&policy, &choices);
    }
    assert!(waits > 100_000, "{waits}");
}

fn any_rule(choices: &Choices) -> Rule {
    // What we forbid ourselves no rule is about.
    let failures = &Failure::ALL[..8];
    let when = if choices.chance("test", "status", 700) {
        let first = u16::try_from(number(choices, 100, 999)).unwrap();
        let last = u16::try_from(number(choices, u64::from(first), 999)).unwrap();
        Condition::Status(first, last)
    } else {
        Condition::Failed(failures[number(choices, 0, 7) as usize])
    };
    let actions = [
        Action::Delivered,
        Action::Retry,
        Action::RetryAfter,
        Action::Fail,
        Action::DisableEndpoint,
    ];
    Rule { when, then: actions[number(choices, 0, 4) as usize] }
}

/// Each status, each failure, and the end of a process.
fn outcomes(retry_after: Option<Millis>) -> Vec<Outcome> {
    let answered = (100..=999).map(|status| Outcome::Answered { status, retry_after });
    let failed = Failure::ALL.into_iter().map(|failure| Outcome::Failed { failure });
    answered.chain(failed).chain([Outcome::Unknown]).collect()
}

#[test]
fn outcomes_mean_what_the_core_says_under_any_rules() {
    for seed in 0..200 {
        let choices = Choices::seeded(seed);
        let rules = match seed {
            0 | 1 => Vec::new(),
            _ => (0..number(&choices, 0, 4)).map(|_| any_rule(&choices)).collect(),
        };
        let client_error = [ClientError::Final, ClientError::Retry][usize::from(seed % 2 == 1)];
        let retry_after_max = span(&choices);
        let agreement = Classification { client_error, retry_after_max, rules };
        for asked in [None, Some(Millis::ZERO), Some(span(&choices)), Some(Millis::MAX)] {
            for outcome in outcomes(asked) {
                let says = reference::verdict(&agreement, &outcome);
                assert_eq!(says, agreement.verdict(&outcome), "{outcome} by {agreement:?}");
            }
        }
    }
}
