//! The searches that come with the project.

use hookproof_core::policy::Policy;
use hookproof_core::schedule::{Backoff, Jitter, Schedule};
use hookproof_core::time::Millis;

use super::Search;
use crate::fault::{Fault, Faults};
use crate::model::{Options, Pace};
use crate::scenario::{Scenario, brisk};

/// Each of them, the smallest first.
pub(super) fn all() -> Vec<Search> {
    vec![one_crash(), two_crashes(), two_events()]
}

fn one_crash() -> Search {
    Search {
        name: "one-crash",
        about: "one event, three attempts: each request or response lost or not, and one crash \
                anywhere",
        scenario: small(1),
        options: options(&[Fault::RequestLost, Fault::ResponseLost], 1),
        histories: 695,
        histories_max: 100_000,
    }
}

fn two_crashes() -> Search {
    let crashes_in_all = Some(2);
    let one = one_crash();
    Search {
        name: "two-crashes",
        about: "the same with two crashes, of one side or of both",
        options: Options { crashes_in_all, ..one.options },
        histories: 14_633,
        histories_max: 1_000_000,
        ..one
    }
}

fn two_events() -> Search {
    let options = options(&[Fault::Duplicate, Fault::ResponseLost], 1);
    let pace = Pace { duplicates: AT_ONCE_OR_LATE, ..options.pace };
    Search {
        name: "two-events",
        about: "two events at once: each request duplicated, at once or late, or its response lost, \
                and one crash anywhere",
        scenario: small(2),
        options: Options { pace, ..options },
        histories: 24_049,
        histories_max: 1_000_000,
    }
}

/// Two copies that race, and one that comes after all has been done.
const AT_ONCE_OR_LATE: &[Millis] = &[Millis::ZERO, Millis::from_secs(2)];

/// A few events to one endpoint, three attempts each, and one length for every wait.
fn small(events: u64) -> Scenario {
    let waits = vec![Millis::from_secs(1), Millis::from_secs(2)];
    let policy = Policy {
        schedule: Schedule::new(Backoff::List { waits }, Jitter::None),
        connect_timeout: Millis::from_secs(1),
        total_timeout: Millis::from_secs(3),
        lease_margin: Millis::from_secs(2),
        ..brisk(3)
    };
    Scenario {
        name: "small".to_owned(),
        about: "a few events to one endpoint".to_owned(),
        events: (events, events),
        endpoints: (1, 1),
        policies: vec![policy],
        publishing: Millis::from_secs(1),
        // Nothing goes wrong any more long before that.
        safety: Millis::from_minutes(5),
        latency: (Millis::new(10), Millis::new(10)),
        commit: (Millis::new(2), Millis::new(2)),
        ..Scenario::default()
    }
}

/// These faults may meet each connection, and so many crashes a history.
fn options(on_connections: &[Fault], crashes: u64) -> Options {
    // To a search a weight says only whether something can happen.
    let crashing = [(Fault::SenderCrash, 4), (Fault::ReceiverCrash, 4)];
    let weights: Vec<_> =
        on_connections.iter().map(|fault| (*fault, 100)).chain(crashing).collect();
    Options {
        faults: Some(Faults::fixed(&weights)),
        crashes_in_all: Some(crashes),
        // What happens to a publish is decided by crashes alone.
        troubles_application: false,
        pace: Pace::steady(),
        ..Options::default()
    }
}
