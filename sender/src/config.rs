//! How a sender is set up.

use std::fmt;

use hookproof_core::address::AddressPolicy;
use hookproof_core::address::policy::AddressPolicyError;
use hookproof_core::policy::{Policy, PolicyError};
use hookproof_core::time::Millis;
use hookproof_runtime::server::{CONNECTIONS_MAX_HIGHEST, ServerLimits};
use serde::{Deserialize, Serialize};

/// How a sender is set up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SenderConfig {
    /// How endpoints are served.
    pub policy: Policy,
    /// Where requests may go.
    pub address: AddressPolicy,
    /// The most attempts under way at once, over all endpoints.
    pub attempts_max: u32,
    /// The largest event body, in bytes.
    pub body_bytes_max: usize,
    /// How much of a response body is kept with an attempt, in bytes. No more than that is read.
    pub excerpt_bytes_max: usize,
    /// The longest wait for a publish to arrive.
    pub body_timeout: Millis,
    /// The longest time between two looks at the store, should every wake-up be lost.
    pub sweep_interval: Millis,
    /// What the API's server allows.
    pub limits: ServerLimits,
}

impl Default for SenderConfig {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            address: AddressPolicy::default(),
            attempts_max: 256,
            body_bytes_max: 1024 * 1024,
            excerpt_bytes_max: 1024,
            body_timeout: Millis::from_secs(10),
            sweep_interval: Millis::from_secs(1),
            limits: ServerLimits::default(),
        }
    }
}

/// What is wrong with a configuration, and with which field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// The policy does not hold together.
    Policy(PolicyError),
    /// The address policy does not hold together.
    Address(AddressPolicyError),
    /// A number must be at least 1.
    Zero(&'static str),
    /// A number is more than this.
    TooLarge(&'static str, usize),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(error) => write!(f, "in the policy, {error}"),
            Self::Address(error) => write!(f, "in the address policy, {error}"),
            Self::Zero(field) => write!(f, "`{field}` is 0; give at least 1"),
            Self::TooLarge(field, most) => write!(f, "`{field}` is too large; give at most {most}"),
        }
    }
}

impl std::error::Error for ConfigError {}

impl SenderConfig {
    /// Checks what the types cannot.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with the field that is wrong.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.policy.validate().map_err(ConfigError::Policy)?;
        self.address.validate().map_err(ConfigError::Address)?;
        let zero = [
            ("attempts_max", self.attempts_max == 0),
            ("body_bytes_max", self.body_bytes_max == 0),
            ("body_timeout", self.body_timeout == Millis::ZERO),
            ("sweep_interval", self.sweep_interval == Millis::ZERO),
            ("limits.connections_max", self.limits.connections_max == 0),
            ("limits.header_timeout", self.limits.header_timeout == Millis::ZERO),
            ("limits.write_timeout", self.limits.write_timeout == Millis::ZERO),
        ];
        if self.limits.connections_max > CONNECTIONS_MAX_HIGHEST {
            return Err(ConfigError::TooLarge("limits.connections_max", CONNECTIONS_MAX_HIGHEST));
        }
        match zero.iter().find(|(_, is_zero)| *is_zero) {
            Some((field, _)) => Err(ConfigError::Zero(field)),
            None => Ok(()),
        }
    }
}
