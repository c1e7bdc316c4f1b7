//! Rules of one's own for what an outcome means: `{ when = "404", then = "disable_endpoint" }`.
//!
//! A rule is about a status, a range of statuses or a kind of failure. What our own settings forbid
//! (`blocked`) is final by its nature, and an attempt whose process ended (`unknown`) is retried by
//! it: no rule changes that.

use std::fmt;
use std::str::FromStr;

use serde::de::Visitor;
use serde::{Deserialize, Serialize};

use crate::outcome::{Failure, Outcome};

/// What some outcomes mean.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Which outcomes.
    pub when: Condition,
    /// What they mean.
    pub then: Action,
}

/// Which outcomes a rule is about; written `404`, `500-599` or `timeout`. Statuses above 599 are none
/// that HTTP knows, but servers send them: a rule about `600-999` can be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Condition {
    /// Answers with a status from the first to the last, both included.
    Status(u16, u16),
    /// Attempts that ended so, without an answer.
    Failed(Failure),
}

/// What a rule makes of an outcome.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It counts as delivered, as if the receiver had taken responsibility.
    Delivered,
    /// Try again by the schedule, whatever `Retry-After` asks for.
    Retry,
    /// Try again by the schedule, and not before `Retry-After`.
    RetryAfter,
    /// The delivery ends and the owner is told.
    Fail,
    /// The delivery ends and the endpoint is disabled.
    DisableEndpoint,
}

impl Condition {
    /// Whether `outcome` is one of them.
    #[must_use]
    pub fn fits(&self, outcome: &Outcome) -> bool {
        match (self, outcome) {
            (Self::Status(first, last), Outcome::Answered { status, .. }) => {
                (first..=last).contains(&status)
            }
            (Self::Failed(wanted), Outcome::Failed { failure }) => wanted == failure,
            _ => false,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(first, last) if first == last => write!(f, "{first}"),
            Self::Status(first, last) => write!(f, "{first}-{last}"),
            Self::Failed(failure) => f.write_str(failure.as_str()),
        }
    }
}

/// Why a text is no condition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConditionError {
    text: String,
}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failures: Vec<_> = Failure::ALL
            .into_iter()
            .filter(|failure| *failure != Failure::Blocked)
            .map(Failure::as_str)
            .collect();
        write!(
            f,
            "`{}` is not an outcome that a rule can be about: write a status from 100 to 999 \
             (`404`), a range (`500-599`) or one of {}",
            self.text.escape_debug(),
            failures.join(", ")
        )
    }
}

impl std::error::Error for ConditionError {}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let status = |text: &str| {
            let is_status = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
            let status = is_status.then(|| text.parse::<u16>().ok()).flatten()?;
            (100..=999).contains(&status).then_some(status)
        };
        let read = || {
            if let Some((first, last)) = text.split_once('-') {
                let (first, last) = (status(first)?, status(last)?);
                return (first <= last).then_some(Self::Status(first, last));
            }
            let failure =
                |failure: &Failure| *failure != Failure::Blocked && failure.as_str() == text;
            let failed = || Failure::ALL.into_iter().find(failure).map(Self::Failed);
            status(text).map(|status| Self::Status(status, status)).or_else(failed)
        };
        read().ok_or_else(|| ConditionError { text: text.to_owned() })
    }
}

impl Serialize for Condition {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(ConditionText)
    }
}

struct ConditionText;

impl Visitor<'_> for ConditionText {
    type Value = Condition;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a status, a range or a kind of failure in quotes, as in \"404\", \"500-599\" or \"dns\"",
        )
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Condition, E> {
        text.parse().map_err(E::custom)
    }
}
