//! What an outcome means: an explicit agreement with documented defaults.
//!
//! | outcome | verdict | source |
//! | --- | --- | --- |
//! | 200–299 | delivered | Standard Webhooks 1.0.0 |
//! | 408, 425, 429, 500–599 | retry; a valid `Retry-After` is a floor | RFC 9110 §15.5.9, RFC 8470 §5.2, RFC 6585 §4 |
//! | 410 | the delivery ends and the endpoint is disabled | Standard Webhooks 1.0.0 |
//! | any other 400–499 | final, and told to the owner | project default |
//! | the same, with `client_error = "retry"` | a failure; retry; a valid `Retry-After` is a floor | Standard Webhooks 1.0.0 |
//! | 300–399 | a failure, never followed; retry | Standard Webhooks 1.0.0 |
//! | above 599 | as a 5xx | RFC 9110 §15 |
//! | below 200 | no final answer, so a failure; retry | RFC 9110 §15.2 |
//! | DNS, connect, TLS, reset, timeout, malformed, oversize | retry | Standard Webhooks 1.0.0 |
//! | blocked by our own settings | final at once | project default |
//! | unknown (the sender's process ended) | retry under the same event id | project default |
//!
//! Rules of one's own ([`crate::rule`]) stand before these: the first that fits decides. 429, 502, 503
//! and 504 also throttle the endpoint, whatever they mean for the delivery.

use serde::{Deserialize, Serialize};

use crate::outcome::{Failure, Outcome};
use crate::rule::{Action, Rule};
use crate::time::Millis;

/// The settings of the agreement.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Classification {
    /// What 4xx other than 408, 410, 425 and 429 mean.
    pub client_error: ClientError,
    /// The longest wait that a `Retry-After` can ask for; longer ones are cut to this.
    pub retry_after_max: Millis,
    /// Rules that stand before the agreement: the first that fits decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
}

/// What a 4xx means that says nothing about trying again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientError {
    /// The delivery ends and the owner is told.
    #[default]
    Final,
    /// It is a failure of the endpoint, retried by the schedule: Standard Webhooks names 404 beside 500
    /// as one.
    Retry,
}

impl Default for Classification {
    fn default() -> Self {
        Self {
            client_error: ClientError::Final,
            retry_after_max: Millis::from_hours(24),
            rules: Vec::new(),
        }
    }
}

/// The names of the agreements that [`Classification::preset`] knows.
pub const PRESETS: [&str; 2] = ["seed", "standard-webhooks"];

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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// The endpoint works.
    Success,
    /// The endpoint is in trouble.
    Failure,
    /// Nothing is known.
    Neither,
}

/// That an endpoint says it has too much to do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Throttle {
    /// How long it asks to be left alone, already bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Millis>,
}

/// Which rule decided.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DecidedBy {
    /// A rule of one's own, by its place in [`Classification::rules`], from 0.
    Rule(usize),
    /// A line of the agreement.
    Agreement(&'static Line),
}

/// A line of the agreement, in words.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Line {
    /// Which outcomes it is about.
    pub when: &'static str,
    /// What they mean.
    pub then: &'static str,
    /// Where that comes from.
    pub source: &'static str,
}

/// The lines of the agreement, in the order in which they are listed. The verdicts come from
/// [`Classification::judge`]; a test holds the two together. Of the two about other 4xx one holds
/// ([`Classification::lines`]).
pub static AGREEMENT: [Line; 12] = [
    Line { when: "200-299", then: "delivered", source: "Standard Webhooks 1.0.0" },
    Line {
        when: "300-399",
        then: "a failure, never followed; retried",
        source: "Standard Webhooks 1.0.0",
    },
    Line {
        when: "408, 425, 429",
        then: "retried, not before Retry-After",
        source: "RFC 9110 §15.5.9, RFC 8470 §5.2, RFC 6585 §4",
    },
    Line {
        when: "410",
        then: "the delivery ends, the endpoint is disabled",
        source: "Standard Webhooks 1.0.0",
    },
    Line {
        when: "other 400-499",
        then: "final and told to the owner (client_error final)",
        source: "project default",
    },
    Line {
        when: "other 400-499",
        then: "retried, not before Retry-After (client_error retry)",
        source: "Standard Webhooks 1.0.0",
    },
    Line {
        when: "500-599",
        then: "retried, not before Retry-After",
        source: "Standard Webhooks 1.0.0, RFC 9110 §15.6.4",
    },
    Line {
        when: "600-999",
        then: "a status that there is not, so treated as a 5xx",
        source: "RFC 9110 §15",
    },
    Line {
        when: "100-199",
        then: "no final answer, so a failure; retried",
        source: "RFC 9110 §15.2",
    },
    Line {
        when: "no answer",
        then: "a failure; retried under the same event id",
        source: "Standard Webhooks 1.0.0",
    },
    Line {
        when: "unknown",
        then: "its process ended; retried under the same event id",
        source: "project default",
    },
    Line {
        when: "blocked",
        then: "final at once: our own settings forbid the request",
        source: "project default",
    },
];

/// Where the line stands that ends a delivery at a 4xx.
const CLIENT_ERROR_FINAL: usize = 4;
/// Where the line stands that retries it.
const CLIENT_ERROR_RETRY: usize = 5;

/// What an outcome means, for whom, and by which rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Judgement {
    /// For the delivery.
    pub verdict: Verdict,
    /// For the endpoint's breaker.
    pub signal: Signal,
    /// For the endpoint's limits.
    pub throttle: Option<Throttle>,
    /// Which rule decided about the delivery.
    pub by: DecidedBy,
}

impl Classification {
    /// The agreement of this name: `seed` is the default, `standard-webhooks` retries every 4xx
    /// except 410.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "seed" => Some(Self::default()),
            "standard-webhooks" => {
                Some(Self { client_error: ClientError::Retry, ..Self::default() })
            }
            _ => None,
        }
    }

    /// The lines that hold under these settings, in their order.
    pub fn lines(&self) -> impl Iterator<Item = &'static Line> {
        let unused = match self.client_error {
            ClientError::Final => CLIENT_ERROR_RETRY,
            ClientError::Retry => CLIENT_ERROR_FINAL,
        };
        AGREEMENT.iter().enumerate().filter(move |(at, _)| *at != unused).map(|(_, line)| line)
    }

    /// What `outcome` means for the delivery.
    #[must_use]
    pub fn verdict(&self, outcome: &Outcome) -> Verdict {
        self.judge(outcome).verdict
    }

    /// What `outcome` says about the endpoint.
    #[must_use]
    pub fn signal(&self, outcome: &Outcome) -> Signal {
        self.judge(outcome).signal
    }

    /// What `outcome` means, and by which rule.
    #[must_use]
    pub fn judge(&self, outcome: &Outcome) -> Judgement {
        let asked = match outcome {
            Outcome::Answered { retry_after, .. } => {
                retry_after.map(|wait| wait.min(self.retry_after_max))
            }
            Outcome::Failed { .. } | Outcome::Unknown => None,
        };
        let (mut verdict, mut signal, line) = self.agreed(outcome, asked);
        let mut by = DecidedBy::Agreement(&AGREEMENT[line]);
        if let Some(at) = self.rules.iter().position(|rule| rule.when.fits(outcome)) {
            by = DecidedBy::Rule(at);
            verdict = match self.rules[at].then {
                Action::Delivered => Verdict::Delivered,
                Action::Retry => Verdict::Retry { floor: None },
                Action::RetryAfter => Verdict::Retry { floor: asked },
                Action::Fail => Verdict::Final,
                Action::DisableEndpoint => Verdict::Gone,
            };
            // Delivered is a success and nothing else is; an answer that is retried is a failure.
            let is_answer = matches!(outcome, Outcome::Answered { .. });
            signal = match (verdict, signal) {
                (Verdict::Delivered, _) => Signal::Success,
                (Verdict::Retry { .. }, _) if is_answer => Signal::Failure,
                (Verdict::Final | Verdict::Gone, Signal::Success) => Signal::Neither,
                (_, signal) => signal,
            };
        }
        let throttle = match outcome {
            Outcome::Answered { status: 429 | 502 | 503 | 504, .. } => {
                Some(Throttle { wait: asked })
            }
            _ => None,
        };
        Judgement { verdict, signal, throttle, by }
    }

    /// What the agreement says, and in which of its lines.
    fn agreed(&self, outcome: &Outcome, asked: Option<Millis>) -> (Verdict, Signal, usize) {
        let retry = |floor| Verdict::Retry { floor };
        match outcome {
            Outcome::Answered { status, .. } => match status {
                200..=299 => (Verdict::Delivered, Signal::Success, 0),
                300..=399 => (retry(None), Signal::Failure, 1),
                408 | 425 | 429 => (retry(asked), Signal::Failure, 2),
                410 => (Verdict::Gone, Signal::Neither, 3),
                400..=499 => match self.client_error {
                    ClientError::Final => (Verdict::Final, Signal::Neither, CLIENT_ERROR_FINAL),
                    // Whoever expects it to go away takes the endpoint for one in trouble.
                    ClientError::Retry => (retry(asked), Signal::Failure, CLIENT_ERROR_RETRY),
                },
                500..=599 => (retry(asked), Signal::Failure, 6),
                600.. => (retry(asked), Signal::Failure, 7),
                ..200 => (retry(None), Signal::Failure, 8),
            },
            Outcome::Failed { failure: Failure::Blocked } => (Verdict::Final, Signal::Neither, 11),
            Outcome::Failed { .. } => (retry(None), Signal::Failure, 9),
            Outcome::Unknown => (retry(None), Signal::Neither, 10),
        }
    }
}
