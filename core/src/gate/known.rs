//! Breaker rules of known senders, each with its source.

use super::{BreakerRule, DisableRule};
use crate::time::Millis;

/// A named breaker rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownRule {
    /// Its name on the command line.
    pub name: &'static str,
    /// Where it is written down.
    pub source: &'static str,
    /// The rule.
    pub rule: BreakerRule,
}

/// All of them, in the order in which they are listed.
#[must_use]
pub fn known_rules() -> Vec<KnownRule> {
    vec![
        KnownRule { name: "default", source: "project default", rule: BreakerRule::default() },
        KnownRule {
            name: "gitlab",
            source: "GitLab, merge request 166329 and issue 462719 (auto-disabled webhooks): \
                     4 failures in a row pause for 1 min, doubling to 24 h; 40 disable",
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
                     but failures. There they begin to count with several in 24 h, 12 h apart; here 8 \
                     are needed, as many as one message makes in 28 h",
            rule: BreakerRule {
                failures_in_a_row: 0,
                window: None,
                disable: Some(DisableRule {
                    failing_for: Millis::from_hours(5 * 24),
                    failures_min: 8,
                    ..DisableRule::default()
                }),
                ..BreakerRule::default()
            },
        },
    ]
}
