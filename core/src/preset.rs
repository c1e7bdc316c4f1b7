//! Retry schedules of known senders, each with its source.

use crate::schedule::{Backoff, Jitter, Schedule};
use crate::time::Millis;

/// How well a published schedule is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Certainty {
    /// The sender's own documentation, specification or code says so.
    Documented,
    /// Somebody else reports it.
    Secondary,
    /// The sender publishes no intervals; these are a guess that fits what it does publish.
    Unknown,
}

impl Certainty {
    /// One word for people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Documented => "documented",
            Self::Secondary => "secondary",
            Self::Unknown => "unknown",
        }
    }
}

/// A named schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preset {
    /// Its name on the command line.
    pub name: &'static str,
    /// Where it is written down.
    pub source: &'static str,
    /// How well it is known.
    pub certainty: Certainty,
    /// The schedule.
    pub schedule: Schedule,
}

/// All presets, in the order in which they are listed.
#[must_use]
pub fn all() -> Vec<Preset> {
    vec![standard_webhooks(), full_jitter_hour()]
}

/// The preset of this name.
#[must_use]
pub fn find(name: &str) -> Option<Preset> {
    all().into_iter().find(|preset| preset.name == name)
}

/// Ten attempts over 75 h 35 min 5 s.
#[must_use]
pub fn standard_webhooks() -> Preset {
    let hours = |hours: u64| Millis::from_hours(hours);
    Preset {
        name: "standard-webhooks",
        source: "Standard Webhooks 1.0.0, \"Deliverability and reliability\"",
        certainty: Certainty::Documented,
        schedule: Schedule {
            backoff: Backoff::List {
                waits: vec![
                    Millis::from_secs(5),
                    Millis::from_minutes(5),
                    Millis::from_minutes(30),
                    hours(2),
                    hours(5),
                    hours(10),
                    hours(14),
                    hours(20),
                    hours(24),
                ],
            },
            jitter: Jitter::None,
        },
    }
}

/// Full jitter below `min(1 h, 2ⁿ s)`, as the project's second seed document has it.
#[must_use]
pub fn full_jitter_hour() -> Preset {
    Preset {
        name: "seed-2",
        source: "seed document 2: random_int(0, min(3600, 2 ** min(n, 12))) seconds",
        certainty: Certainty::Documented,
        schedule: Schedule {
            backoff: Backoff::Exponential {
                base: Millis::from_secs(2),
                factor: 2,
                cap: Millis::from_hours(1),
                attempts_max: 11,
            },
            jitter: Jitter::Full,
        },
    }
}
