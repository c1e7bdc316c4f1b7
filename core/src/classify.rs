//! What an outcome means: an explicit agreement with documented defaults.
//!
//! | outcome | verdict | source |
//! | --- | --- | --- |
//! | 200–299 | delivered | Standard Webhooks 1.0.0 |
//! | 408, 425, 429, 500–599 | retry; a valid `Retry-After` is a floor | RFC 9110 §15.5.9, RFC 8470 §5.2, RFC 6585 §4 |
//! | 410 | the delivery ends and the endpoint is disabled | Standard Webhooks 1.0.0 |
//! | any other 400–499 | final, and told to the owner; one setting makes it a retry | project default |
//! | 300–399 | a failure, never followed; retry | Standard Webhooks 1.0.0 |
//! | below 200, above 599 | a failure; retry | RFC 9110 §15 |
//! | DNS, connect, TLS, reset, timeout, malformed | retry | Standard Webhooks 1.0.0 |
//! | blocked by our own settings | final at once | project default |
//! | unknown (the sender's process ended) | retry under the same event id | project default |

use serde::{Deserialize, Serialize};

use crate::outcome::{Failure, Outcome};
use crate::time::Millis;

/// The settings of the agreement.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Classification {
    /// What 4xx other than 408, 410, 425 and 429 mean.
    pub client_error: ClientError,
    /// The longest wait that a `Retry-After` can ask for; longer ones are cut to this.
    pub retry_after_max: Millis,
}

/// What a 4xx means that says nothing about trying again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientError {
    /// The delivery ends and the owner is told.
    #[default]
    Final,
    /// It is retried by the schedule, as Standard Webhooks has it.
    Retry,
}

impl Default for Classification {
    fn default() -> Self {
        Self { client_error: ClientError::Final, retry_after_max: Millis::from_hours(24) }
    }
}

/// What an outcome means for the delivery.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Verdict {
    /// The receiver took responsibility.
    Delivered,
    /// Try again by the schedule.
    Retry {
        /// Not sooner than this, counted from the outcome.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        floor: Option<Millis>,
    },
    /// No retry can help; the owner is told.
    Final,
    /// The receiver no longer wants events here: the delivery ends and the endpoint is disabled.
    Gone,
}

/// What an outcome says about the endpoint's health. Being neither is as much a fact as the others:
/// a refused event does not make an endpoint broken, nor does it prove it sound.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Signal {
    /// The endpoint works.
    Success,
    /// The endpoint is in trouble.
    Failure,
    /// Nothing is known.
    Neither,
}

impl Classification {
    /// What `outcome` means for the delivery.
    #[must_use]
    pub fn verdict(&self, outcome: &Outcome) -> Verdict {
        match outcome {
            Outcome::Answered { status, retry_after } => self.status_verdict(*status, *retry_after),
            Outcome::Failed { failure: Failure::Blocked } => Verdict::Final,
            Outcome::Failed { .. } | Outcome::Unknown => Verdict::Retry { floor: None },
        }
    }

    fn status_verdict(&self, status: u16, retry_after: Option<Millis>) -> Verdict {
        let floor = retry_after.map(|wait| wait.min(self.retry_after_max));
        match status {
            200..=299 => Verdict::Delivered,
            408 | 425 | 429 | 500..=599 => Verdict::Retry { floor },
            410 => Verdict::Gone,
            400..=499 => match self.client_error {
                ClientError::Final => Verdict::Final,
                ClientError::Retry => Verdict::Retry { floor },
            },
            _ => Verdict::Retry { floor: None },
        }
    }

    /// What `outcome` says about the endpoint.
    #[must_use]
    pub fn signal(&self, outcome: &Outcome) -> Signal {
        match outcome {
            Outcome::Answered { status: 200..=299, .. } => Signal::Success,
            Outcome::Answered { status: 408 | 425 | 429, .. } => Signal::Failure,
            Outcome::Answered { status: 400..=499, .. } => Signal::Neither,
            Outcome::Answered { .. } => Signal::Failure,
            Outcome::Failed { failure: Failure::Blocked } | Outcome::Unknown => Signal::Neither,
            Outcome::Failed { .. } => Signal::Failure,
        }
    }
}
