//! Breaker rules of known senders, each with its source.

use super::{BreakerRule, ClockRule, DisableRule};
use crate::time::Millis;

/// A named breaker rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownRule {
    /// Its name on the command line.
    pub name: &'static str,
    /// Where it is written down.
    pub source: &'static str,
    /// The agreement by which it tells failures, one of [`PRESETS`](crate::classify::PRESETS): both
    /// senders take any answer but a 2xx for a failure.
    pub agreement: &'static str,
    /// The rule.
    pub rule: BreakerRule,
}

/// All of them, in the order in which they are listed.
#[must_use]
pub fn known_rules() -> Vec<KnownRule> {
    vec![
        KnownRule {
            name: "default",
            source: "project default",
            agreement: "seed",
            rule: BreakerRule::default(),
        },
        KnownRule {
            name: "gitlab",
            source: "GitLab, merge request 166329 and issue 462719 (auto-disabled webhooks): \
                     4 failures in a row pause for 1 min, doubling to 24 h; 40 disable. There every \
                     attempt goes again after a pause, here one probe",
            agreement: "standard-webhooks",
            rule: BreakerRule {
                failures_in_a_row: 4,
                pause: Millis::from_minutes(1),
                pause_factor: 2,
                pause_max: Millis::from_hours(24),
                window: None,
                disable: Some(DisableRule { failures_in_a_row: 40, ..DisableRule::default() }),
            },
        },
        KnownRule {
            name: "svix",
            source: "docs.svix.com/retries, \"Disabling failing endpoints\": five days of nothing \
                     but failures, from the failure on that comes within 24 h of another and at \
                     least 12 h after it",
            agreement: "standard-webhooks",
            rule: BreakerRule {
                failures_in_a_row: 0,
                window: None,
                disable: Some(DisableRule {
                    failing_for: Millis::from_hours(5 * 24),
                    clock: Some(ClockRule {
                        within: Millis::from_hours(24),
                        apart: Millis::from_hours(12),
                    }),
                    ..DisableRule::default()
                }),
                ..BreakerRule::default()
            },
        },
    ]
}
