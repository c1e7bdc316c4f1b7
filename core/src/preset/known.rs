//! The schedules of others, as they publish them.

use super::{Certainty, Preset};
use crate::retry_after::RetryAfterRule;
use crate::schedule::{Backoff, Jitter, Schedule};
use crate::time::Millis;

/// No bounds are published: whatever wait a receiver asks for is a floor.
const UNBOUNDED: RetryAfterRule =
    RetryAfterRule { min: Millis::ZERO, percent_max: None, jitters: false };
/// Svix clamps it to the schedule's wait and twice that, and draws the jitter around the result
/// (`server/svix-server/src/worker.rs`).
const ONE_TO_TWO_WAITS: RetryAfterRule =
    RetryAfterRule { min: Millis::ZERO, percent_max: Some(200), jitters: true };
/// Kit: 1 s to 24 h; the upper bound is that of every policy.
const AT_LEAST_A_SECOND: RetryAfterRule =
    RetryAfterRule { min: Millis::from_secs(1), percent_max: None, jitters: false };

/// The senders whose schedules are known, or known in part.
pub(super) fn senders() -> Vec<Preset> {
    vec![
        Preset {
            name: "svix",
            source: "Svix: documentation of retries, and the server's configuration and code",
            certainty: Certainty::Documented,
            note: "a Retry-After counts for one to two times the wait, before the jitter",
            schedule: spread(list("5s 5m 30m 2h 5h 10h 10h"), Jitter::Proportional { percent: 20 }),
            retry_after: ONE_TO_TWO_WAITS,
            afterwards: Some(
                "the message counts as failed, and its sender gets message.attempt.exhausted; an \
                 endpoint that has failed for 5 days is disabled",
            ),
        },
        Preset {
            name: "convoy-default",
            source: "Convoy: code, the default strategy of a project",
            certainty: Certainty::Documented,
            note: "",
            schedule: linear(Millis::from_secs(100), 10),
            retry_after: UNBOUNDED,
            afterwards: Some(
                "the delivery counts as failed; its endpoint is disabled where the project says \
                 so",
            ),
        },
        Preset {
            name: "convoy-exponential",
            source: "Convoy: code, the exponential strategy",
            certainty: Certainty::Documented,
            note: "the interval and the number of attempts are settings; here those of the default strategy",
            schedule: spread(
                exponential(Millis::from_secs(100), 2, Millis::from_secs(7200), 10),
                Jitter::Additive { most: Millis::from_secs(5) },
            ),
            retry_after: UNBOUNDED,
            afterwards: Some(
                "the delivery counts as failed; its endpoint is disabled where the project says \
                 so",
            ),
        },
        Preset {
            name: "outpost",
            source: "Outpost: documentation and code, the default settings",
            certainty: Certainty::Documented,
            note: "",
            schedule: exponential(Millis::from_secs(30), 2, Millis::from_secs(15_360), 11),
            retry_after: UNBOUNDED,
            afterwards: Some(
                "an alert; after so many failures in a row as are set, a destination can be \
                 disabled",
            ),
        },
        Preset {
            name: "stripe",
            source: "Stripe: documentation, \"exponential up to three days\"",
            certainty: Certainty::Unknown,
            note: "intervals are not published; a doubling from 1m that ends within three days",
            schedule: exponential(Millis::from_minutes(1), 2, Millis::from_hours(72), 13),
            retry_after: UNBOUNDED,
            afterwards: Some(
                "the event counts as failed; it can be sent again by hand for 15 days from its \
                 creation, with the CLI for 30",
            ),
        },
        Preset {
            name: "github",
            source: "GitHub: documentation, failed deliveries are not redelivered by themselves",
            certainty: Certainty::Documented,
            note: "an attempt may take 10s",
            schedule: list(""),
            retry_after: UNBOUNDED,
            afterwards: Some(
                "the delivery counts as failed; it can be sent again by hand or through the API \
                 for 3 days",
            ),
        },
        Preset {
            name: "shopify",
            source: "Shopify: documentation, 8 retries over 4 hours, exponential",
            certainty: Certainty::Unknown,
            note: "intervals are not published; a doubling that fits. An attempt may take 5s",
            schedule: exponential(Millis::from_secs(56), 2, Millis::from_hours(2), 9),
            retry_after: UNBOUNDED,
            afterwards: Some(
                "a subscription made through the Admin API is removed after 8 failures in a row; \
                 a mail warns of it",
            ),
        },
        Preset {
            name: "slack-events",
            source: "Slack Events API, as others report it",
            certainty: Certainty::Secondary,
            note: "an attempt may take 3s",
            schedule: list("0s 1m 5m"),
            retry_after: UNBOUNDED,
            afterwards: Some(
                "nothing is published about the event; subscriptions can be disabled where fewer \
                 than 5 % of the deliveries of the past 60 minutes got a 200",
            ),
        },
        Preset {
            name: "square",
            source: "Square: documentation (an older page)",
            certainty: Certainty::Documented,
            note: "",
            schedule: list_then("1m 2m 4m 8m 16m 32m", "1h", 70),
            retry_after: UNBOUNDED,
            afterwards: Some("the notification is discarded and not sent again"),
        },
        Preset {
            name: "adyen",
            source: "Adyen: documentation",
            certainty: Certainty::Documented,
            note: "",
            schedule: list_then("9s 18s 27s 2m 5m 10m 15m 30m 1h 2h 4h 8h", "8h", 87),
            retry_after: UNBOUNDED,
            afterwards: None,
        },
        Preset {
            name: "paddle",
            source: "Paddle: documentation, 60 retries over 3 days",
            certainty: Certainty::Unknown,
            note: "intervals are not published; even ones that fit. An attempt may take 5s",
            schedule: linear(Millis::from_minutes(72), 61),
            retry_after: UNBOUNDED,
            afterwards: Some(
                "the notification counts as failed; it can be replayed through the API",
            ),
        },
        Preset {
            name: "mailgun",
            source: "Mailgun: documentation",
            certainty: Certainty::Documented,
            note: "a 406 stops the retries",
            schedule: list("5m 10m 15m 1h 2h 4h"),
            retry_after: UNBOUNDED,
            afterwards: None,
        },
        Preset {
            name: "zoom",
            source: "Zoom: documentation",
            certainty: Certainty::Documented,
            note: "an attempt may take 3s",
            schedule: list("5m 20m 1h"),
            retry_after: UNBOUNDED,
            afterwards: Some("nothing more is sent about this event"),
        },
        Preset {
            name: "razorpay",
            source: "Razorpay: documentation, exponential over 24 hours, then disabled",
            certainty: Certainty::Unknown,
            note: "intervals are not published; a doubling that fits",
            schedule: exponential(Millis::from_secs(84), 2, Millis::from_hours(24), 11),
            retry_after: UNBOUNDED,
            afterwards: Some(
                "the endpoint is disabled and its owner told by mail; it must be enabled by hand",
            ),
        },
        Preset {
            name: "kit",
            source: "Kit: documentation",
            certainty: Certainty::Documented,
            note: "a 410 stops the retries; a Retry-After counts from 1s to 24h",
            schedule: list("30s 2m 15m 1h 4h 12h 24h"),
            retry_after: AT_LEAST_A_SECOND,
            afterwards: Some("the delivery counts as failed for good"),
        },
        Preset {
            name: "wix",
            source: "Wix: documentation",
            certainty: Certainty::Documented,
            note: "",
            schedule: list("1m 10m 1h 2h 2h 2h 4h 4h 4h 8h 8h 12h"),
            retry_after: UNBOUNDED,
            afterwards: None,
        },
        Preset {
            name: "circle-cpn",
            source: "Circle Payments Network: documentation",
            certainty: Certainty::Documented,
            note: "",
            schedule: list("1s 10s 30s 1m 15m 1h 3h 5h 6h 10h 11h"),
            retry_after: UNBOUNDED,
            afterwards: None,
        },
        Preset {
            name: "brevo",
            source: "Brevo: documentation",
            certainty: Certainty::Documented,
            note: "a 4xx or 5xx stops the retries, except 429",
            schedule: list("10m 1h 2h 8h"),
            retry_after: UNBOUNDED,
            afterwards: None,
        },
        Preset {
            name: "strike",
            source: "Strike: documentation, 3ⁿ seconds, 12 tries, about 9 days",
            certainty: Certainty::Documented,
            note: "410 and 501 opt out",
            schedule: exponential(Millis::from_secs(3), 3, Millis::from_secs(531_441), 13),
            retry_after: UNBOUNDED,
            afterwards: Some("the events of the account can be fetched through the API"),
        },
        Preset {
            name: "nmi",
            source: "NMI: documentation",
            certainty: Certainty::Documented,
            note: "",
            schedule: list("15s 1m 1m 1m 5m 15m 30m 1h 1h 1h 1h 1h 1h 1h 1h 1h 1h 12h 12h 24h"),
            retry_after: UNBOUNDED,
            afterwards: Some("the notification is not delivered"),
        },
    ]
}

/// The two formulas of the project's first seed document.
pub(super) fn first_seed_document() -> Vec<Preset> {
    vec![
        Preset {
            name: "seed-1-python",
            source: "seed document 1: min(uniform(0, 30 * 2 ** attempt), 3600) seconds",
            certainty: Certainty::Documented,
            note: "the cap comes after the jitter, so waits gather at it; the labels of the text are the means of the jitter, and the eighth, 64 min, is beyond the cap and never waited for: the table allows eight attempts, which have seven waits",
            schedule: Schedule {
                cap_after_jitter: Some(Millis::from_hours(1)),
                ..spread(
                    exponential(Millis::from_secs(60), 2, Millis::from_secs(3840), 8),
                    Jitter::Full,
                )
            },
            retry_after: UNBOUNDED,
            afterwards: Some(
                "the delivery counts as failed, and the owner of the subscription is told",
            ),
        },
        Preset {
            name: "seed-1-php",
            source: "seed document 1: min(30 * 2 ** attempt * random_int(50, 150) / 100, 3600) seconds",
            certainty: Certainty::Documented,
            note: "the cap comes after the jitter, so waits gather at it",
            schedule: Schedule {
                cap_after_jitter: Some(Millis::from_hours(1)),
                ..spread(
                    exponential(Millis::from_secs(60), 2, Millis::from_secs(3840), 8),
                    Jitter::Proportional { percent: 50 },
                )
            },
            retry_after: UNBOUNDED,
            afterwards: Some(
                "the delivery counts as failed, and the owner of the subscription is told",
            ),
        },
    ]
}

/// Waits one by one, without jitter. Each is well-formed: a test reads them all.
pub(super) fn list(waits: &str) -> Schedule {
    let waits = waits.split_whitespace().map(|wait| wait.parse().unwrap_or(Millis::MAX));
    Schedule::new(Backoff::List { waits: waits.collect() }, Jitter::None)
}

/// The same, and then `count` times the wait `last`.
fn list_then(waits: &str, last: &str, count: usize) -> Schedule {
    list(&format!("{waits}{}", format!(" {last}").repeat(count)))
}

/// Ever the same wait, without jitter.
fn linear(base: Millis, attempts_max: u32) -> Schedule {
    let backoff = Backoff::Linear { base, step: Millis::ZERO, cap: base, attempts_max };
    Schedule::new(backoff, Jitter::None)
}

fn exponential(base: Millis, factor: u32, cap: Millis, attempts_max: u32) -> Schedule {
    Schedule::new(Backoff::Exponential { base, factor, cap, attempts_max }, Jitter::None)
}

fn spread(schedule: Schedule, jitter: Jitter) -> Schedule {
    Schedule { jitter, ..schedule }
}
