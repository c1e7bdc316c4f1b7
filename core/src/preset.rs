//! Retry schedules of known senders, each with its source.

mod known;

use crate::policy::Policy;
use crate::retry_after::RetryAfterRule;
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
    /// What the schedule alone does not say; may be empty.
    pub note: &'static str,
    /// The schedule.
    pub schedule: Schedule,
    /// How much of a `Retry-After` counts.
    pub retry_after: RetryAfterRule,
    /// What becomes of an event whose last attempt fails, and of its endpoint; `None` where nothing
    /// is published.
    pub afterwards: Option<&'static str>,
}

impl Preset {
    /// A policy that makes its attempts when this sender does, and is the default in all else.
    #[must_use]
    pub fn policy(&self) -> Policy {
        Policy {
            schedule: self.schedule.clone(),
            retry_after: self.retry_after,
            ..Policy::default()
        }
    }

    /// Whether the sender publishes what it makes of a `Retry-After`. Of one that does not, it is an
    /// assumption that it waits for as long as it is asked to, up to the policy's own bound.
    #[must_use]
    pub fn publishes_retry_after(&self) -> bool {
        self.retry_after != RetryAfterRule::default()
    }
}

/// All presets, in the order in which they are listed.
#[must_use]
pub fn all() -> Vec<Preset> {
    let mut all = vec![standard_webhooks()];
    all.extend(known::senders());
    all.extend(known::first_seed_document());
    all.push(full_jitter_hour());
    all
}

/// The preset of this name.
#[must_use]
pub fn find(name: &str) -> Option<Preset> {
    all().into_iter().find(|preset| preset.name == name)
}

/// Ten attempts over 75 h 35 min 5 s.
#[must_use]
pub fn standard_webhooks() -> Preset {
    Preset {
        name: "standard-webhooks",
        source: "Standard Webhooks 1.0.0, \"Deliverability and reliability\"",
        certainty: Certainty::Documented,
        note: "",
        schedule: known::list("5s 5m 30m 2h 5h 10h 14h 20h 24h"),
        retry_after: RetryAfterRule::default(),
        afterwards: Some(
            "whoever consumes the events should be told by another way, as by mail; an endpoint that \
             fails for long should be disabled, and failed events be there for replay",
        ),
    }
}

/// Full jitter below `min(1 h, 2ⁿ s)`, as the project's second seed document has it.
#[must_use]
pub fn full_jitter_hour() -> Preset {
    Preset {
        name: "seed-2",
        source: "seed document 2: random_int(0, min(3600, 2 ** min(n, 12))) seconds",
        certainty: Certainty::Documented,
        note: "",
        schedule: Schedule::new(
            Backoff::Exponential {
                base: Millis::from_secs(2),
                factor: 2,
                cap: Millis::from_hours(1),
                attempts_max: 11,
            },
            Jitter::Full,
        ),
        retry_after: RetryAfterRule::default(),
        afterwards: Some("the event has an explicit status and stays available, to be looked into"),
    }
}
