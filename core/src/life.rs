//! How old a delivery may become.

use serde::{Deserialize, Serialize};

use crate::time::Millis;

/// How old a delivery may become. Its schedule bounds the attempts; this bounds the time, too.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Life {
    /// No attempt begins later than this after the publish was accepted. Without it only the
    /// schedule ends a delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_max: Option<Millis>,
    /// Whether the age runs on while an attempt is due and an open breaker holds it back.
    pub while_held: WhileHeld,
}

/// Whether the age runs on while an attempt is due and the breaker holds it back: while it pauses, and
/// while the probe is under way that is to end the pause. It always runs on while a limit holds an
/// attempt back, or the sender is down.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhileHeld {
    /// It does: the age is the time since the publish, whatever happened meanwhile.
    #[default]
    Runs,
    /// It does not.
    Stops,
}

impl Life {
    /// Whether a delivery of this age may still begin an attempt.
    #[must_use]
    pub fn allows(&self, age: Millis) -> bool {
        self.age_max.is_none_or(|most| age <= most)
    }
}
