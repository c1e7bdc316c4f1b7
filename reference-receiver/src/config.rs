//! What a receiver is told: its sources, its rule, its limits.

use std::fmt;

use hookproof_core::inbox::InboxRule;
use hookproof_core::time::Millis;
use hookproof_runtime::server::{CONNECTIONS_MAX_HIGHEST, ServerLimits};
use serde::Deserialize;

pub use crate::source::Source;

/// The largest limit on bodies that can be set, in bytes: well below what SQLite takes as a row.
pub const BODY_BYTES_MAX_HIGHEST: usize = 256 * 1024 * 1024;

/// The configuration of a receiver. In a file, everything but the sources may be left out.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiverConfig {
    /// The integrations that may send; the path `/hooks/{id}` belongs to each.
    #[serde(default)]
    pub sources: Vec<Source>,
    /// How received events are worked off.
    #[serde(default)]
    pub inbox: InboxRule,
    /// The longest body that is read, in bytes; 1 MiB unless set.
    #[serde(default = "body_bytes_max")]
    pub body_bytes_max: usize,
    /// The longest wait for a whole body; 10 s unless set.
    #[serde(default = "body_timeout")]
    pub body_timeout: Millis,
    /// What the server allows.
    #[serde(default)]
    pub limits: ServerLimits,
    /// How often the inbox is looked at without any reason to, which bounds how long an event waits
    /// whose wake-up was lost; 1 s unless set. After a store's error the worker pauses as long.
    #[serde(default = "sweep_interval")]
    pub sweep_interval: Millis,
}

fn body_bytes_max() -> usize {
    1024 * 1024
}

fn body_timeout() -> Millis {
    Millis::from_secs(10)
}

fn sweep_interval() -> Millis {
    Millis::from_secs(1)
}

/// What is wrong with a configuration, and with which field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    field: String,
    problem: String,
}

impl ConfigError {
    /// The field that is wrong, for example `sources[1].id`.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.field, self.problem)
    }
}

impl std::error::Error for ConfigError {}

impl ReceiverConfig {
    /// These sources, and everything else as usual.
    #[must_use]
    pub fn new(sources: Vec<Source>) -> Self {
        Self {
            sources,
            inbox: InboxRule::default(),
            body_bytes_max: body_bytes_max(),
            body_timeout: body_timeout(),
            limits: ServerLimits::default(),
            sweep_interval: sweep_interval(),
        }
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with the first field that is wrong.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.validate_sources()?;
        self.inbox.schedule.validate().map_err(|error| {
            let text = error.to_string();
            let field = error.field();
            // The error's text starts with its own field's name.
            let problem = text.strip_prefix(&format!("`{field}` ")).unwrap_or(&text).to_owned();
            ConfigError { field: format!("inbox.schedule.{field}"), problem }
        })?;
        if self.inbox.schedule.is_open_ended() {
            let problem = "is left out, and an event has no age that would end the work on it; give a \
                           number of attempts";
            return fail("inbox.schedule.backoff.attempts_max", problem);
        }
        within("body_bytes_max", self.body_bytes_max, BODY_BYTES_MAX_HIGHEST)?;
        within("limits.connections_max", self.limits.connections_max, CONNECTIONS_MAX_HIGHEST)?;
        not_zero("inbox.lease", self.inbox.lease)?;
        not_zero("body_timeout", self.body_timeout)?;
        not_zero("limits.header_timeout", self.limits.header_timeout)?;
        not_zero("limits.write_timeout", self.limits.write_timeout)?;
        not_zero("sweep_interval", self.sweep_interval)
    }

    fn validate_sources(&self) -> Result<(), ConfigError> {
        if self.sources.is_empty() {
            return fail("sources", "is empty; give at least one, with an id and secrets");
        }
        for (index, source) in self.sources.iter().enumerate() {
            if let Some(first) = self.sources[..index].iter().position(|s| s.id == source.id) {
                return fail(
                    format!("sources[{index}].id"),
                    format!(
                        "repeats `{}` of sources[{first}]; to rotate a secret, list both secrets \
                         in one source",
                        source.id
                    ),
                );
            }
            if let Some(tolerance) = source.verifier.tolerance
                && tolerance < Millis::from_secs(1)
            {
                return fail(
                    format!("sources[{index}].tolerance"),
                    format!("is {tolerance}, but timestamps are whole seconds: give 1s or more"),
                );
            }
            self.validate_downstream(index, source)?;
        }
        Ok(())
    }

    fn validate_downstream(&self, index: usize, source: &Source) -> Result<(), ConfigError> {
        let Some(downstream) = &source.downstream else { return Ok(()) };
        let field = format!("sources[{index}].downstream");
        let (timeout, lease) = (downstream.timeout, self.inbox.lease);
        not_zero(&format!("{field}.timeout"), timeout)?;
        if timeout >= lease {
            return fail(
                format!("{field}.timeout"),
                format!(
                    "is {timeout}, but must be less than `inbox.lease`, which is {lease}: a call \
                     must end before another worker may make it"
                ),
            );
        }
        if source.ordering.is_some() {
            return fail(
                field,
                "cannot be used with `ordering`: versions are compared in the transaction of the \
                 effect, which does not reach another service; let that one compare them",
            );
        }
        Ok(())
    }
}

fn fail<T>(field: impl Into<String>, problem: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError { field: field.into(), problem: problem.into() })
}

fn not_zero(field: &str, span: Millis) -> Result<(), ConfigError> {
    if span == Millis::ZERO { fail(field, "is 0s, but must be at least 1ms") } else { Ok(()) }
}

fn within(field: &str, count: usize, highest: usize) -> Result<(), ConfigError> {
    if (1..=highest).contains(&count) {
        return Ok(());
    }
    fail(field, format!("is {count}, but must be 1 to {highest}"))
}
