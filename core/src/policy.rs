//! How an endpoint is served: schedule, agreement, timeouts, limits.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::classify::Classification;
use crate::gate::GateRule;
use crate::life::Life;
use crate::preset;
use crate::retry_after::RetryAfterRule;
use crate::schedule::{ATTEMPTS_MAX, Draw, Jitter, Schedule};
use crate::time::Millis;

/// How an endpoint is served.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// When attempts are made.
    pub schedule: Schedule,
    /// How old a delivery may become.
    pub life: Life,
    /// Over how long, from the floor upwards, attempts are spread that a `Retry-After` holds back.
    pub retry_after_spread: Millis,
    /// How much of a `Retry-After` counts.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub retry_after: RetryAfterRule,
    /// What outcomes mean.
    pub classification: Classification,
    /// The longest wait for a connection.
    pub connect_timeout: Millis,
    /// The longest an attempt may take from start to the response, the connection included.
    pub total_timeout: Millis,
    /// How long a claim outlives the total timeout, so that recording the outcome is covered too.
    pub lease_margin: Millis,
    /// What the endpoint can take.
    pub gate: GateRule,
}

impl Default for Policy {
    /// Standard Webhooks' schedule, 3 s to connect, 10 s in all.
    fn default() -> Self {
        Self {
            schedule: preset::standard_webhooks().schedule,
            life: Life::default(),
            retry_after_spread: Millis::ZERO,
            retry_after: RetryAfterRule::default(),
            classification: Classification::default(),
            connect_timeout: Millis::from_secs(3),
            total_timeout: Millis::from_secs(10),
            lease_margin: Millis::from_secs(5),
            gate: GateRule::default(),
        }
    }
}

/// What is wrong with a policy, and with which field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyError {
    field: String,
    problem: String,
}

impl PolicyError {
    /// The path of the field that is wrong, for example `schedule.backoff.cap`.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.field, self.problem)
    }
}

impl std::error::Error for PolicyError {}

impl Policy {
    /// How long a claim lasts: an attempt can never outlive its own claim.
    #[must_use]
    pub fn lease(&self) -> Millis {
        self.total_timeout.plus(self.lease_margin)
    }

    /// How the wait after attempt `attempt` is drawn, if the one before that was `previous` and the
    /// receiver asked for `floor`: jitter moves such an attempt later, never before what counts of
    /// the floor, unless [`RetryAfterRule::jitters`].
    #[must_use]
    pub fn draw(
        &self,
        attempt: u32,
        previous: Option<Millis>,
        floor: Option<Millis>,
    ) -> Option<Draw> {
        let Some(asked) = floor else { return self.schedule.draw(attempt, previous) };
        let wait = self.schedule.wait_before_jitter(attempt)?;
        let counted = self.retry_after.counted(asked, wait);
        if self.retry_after.jitters {
            return self.schedule.draw_raised(attempt, previous, counted);
        }
        let draw = self.schedule.draw(attempt, previous)?;
        Some(draw.at_least(counted, self.retry_after_spread))
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] with the field that is wrong.
    pub fn validate(&self) -> Result<(), PolicyError> {
        let fail = |field: &str, problem: &str| {
            Err(PolicyError { field: field.to_owned(), problem: problem.to_owned() })
        };
        self.schedule.validate().map_err(|error| PolicyError {
            field: format!("schedule.{}", error.field()),
            problem: error.to_string().replacen(&format!("`{}` ", error.field()), "", 1),
        })?;
        if self.life.age_max == Some(Millis::ZERO) {
            return fail(
                "life.age_max",
                "is 0s, so that only an attempt without delay could begin",
            );
        }
        if self.schedule.is_open_ended() {
            self.check_age_ends_it()?;
        }
        if self.retry_after.min > self.classification.retry_after_max {
            return fail("retry_after.min", "is longer than classification.retry_after_max");
        }
        if self.retry_after.jitters && self.retry_after_spread > Millis::ZERO {
            return fail("retry_after.jitters", "and retry_after_spread are two spreads; give one");
        }
        if self.retry_after.jitters && self.schedule.jitter == Jitter::Decorrelated {
            let problem = "needs a jitter that is drawn around a wait, which decorrelated is not";
            return fail("retry_after.jitters", problem);
        }
        if self.connect_timeout == Millis::ZERO {
            return fail("connect_timeout", "is 0s; give at least 1ms");
        }
        if self.total_timeout < self.connect_timeout {
            return fail("total_timeout", "is shorter than the connect timeout that it includes");
        }
        if self.lease_margin == Millis::ZERO {
            return fail("lease_margin", "is 0s; the outcome could never be recorded in time");
        }
        if self.gate.concurrency_max == 0 {
            return fail("gate.concurrency_max", "is 0, so nothing would ever be sent");
        }
        self.gate.check().map_or(Ok(()), |(field, problem)| fail(field, problem))
    }

    /// Without a limit on the attempts, the age must end a delivery, and before the attempts that are
    /// possible at all are made.
    fn check_age_ends_it(&self) -> Result<(), PolicyError> {
        let fail = |problem: String| {
            Err(PolicyError { field: "schedule.backoff.attempts_max".to_owned(), problem })
        };
        let Some(age_max) = self.life.age_max else {
            return fail(format!(
                "is left out, and so is life.age_max, so that nothing would end a delivery; give one of \
                 them, or fewer than {ATTEMPTS_MAX} attempts"
            ));
        };
        let wanted = u128::from(age_max.get()) << 16;
        let mut sum: u128 = 0;
        for attempt in 1..ATTEMPTS_MAX {
            sum += self.schedule.draw(attempt, None).map_or(0, Draw::mean_65536);
            if sum >= wanted {
                return Ok(());
            }
        }
        let ended = Millis::new(u64::try_from(sum >> 16).unwrap_or(u64::MAX));
        fail(format!(
            "must be given: {ATTEMPTS_MAX} attempts, the most there can be, are made within {ended} in \
             the mean, before life.age_max, {age_max}"
        ))
    }
}
