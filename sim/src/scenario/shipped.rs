//! The scenarios that come with the project.

use hookproof_core::gate::{BreakerRule, DrainRule, GateRule, RateRule, WindowRule};
use hookproof_core::life::Life;
use hookproof_core::policy::Policy;
use hookproof_core::preset;
use hookproof_core::schedule::{Backoff, Jitter, Schedule};
use hookproof_core::time::Millis;

use super::{Break, Operation, Outage, Scenario, brisk};
use crate::fault::Fault;

/// Each of them, in the order in which they are listed.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![
        mixed(),
        everything(),
        shared_stores(),
        steady(),
        receiver_outage_24h(),
        crash_everywhere(),
        unanswered(),
        slow_endpoint(),
        thundering_herd(),
        rotation(),
        clock_trouble(),
        future_stamps(),
        reorder(),
        partition(),
        lease_and_pause(),
        downstream_unknown(),
        disable_and_delete(),
        replay_and_recover(),
        retry_after_storm(),
        backlog_drain(),
        sliding_window(),
        long_ladder(),
        few_attempts(),
        probe_refused(),
    ]
}

/// The scenario of this name.
#[must_use]
pub fn find(name: &str) -> Option<Scenario> {
    all().into_iter().find(|scenario| scenario.name == name)
}

fn named(name: &str, about: &str) -> Scenario {
    Scenario { name: name.to_owned(), about: about.to_owned(), ..Scenario::default() }
}

/// Most of what can go wrong, at once.
#[must_use]
pub fn mixed() -> Scenario {
    let not_here = [Fault::ClockStep, Fault::ClockSkew, Fault::Pause, Fault::DownstreamFailure];
    let faults = Fault::ALL.iter().copied().filter(|fault| !not_here.contains(fault)).collect();
    Scenario {
        faults,
        policies: vec![brisk(40), brisk(4)],
        ..named("mixed", "most faults at once")
    }
}

/// All that can go wrong, at once: clocks are set and processes stand still amid every other fault, and
/// people do whatever they can do.
#[must_use]
pub fn everything() -> Scenario {
    Scenario {
        faults: Fault::ALL.to_vec(),
        downstream: true,
        operations: vec![
            Operation::Disable,
            Operation::Delete,
            Operation::Replay,
            Operation::Cancel,
            Operation::Rotate,
        ],
        policies: vec![brisk(40), brisk(4)],
        ..named("everything", "all faults at once, and people")
    }
}

/// The same with two processes on each side, of which each may take over from the other.
#[must_use]
pub fn shared_stores() -> Scenario {
    Scenario {
        senders: 2,
        receivers: 2,
        // Whoever stands still keeps its shards until their lease ends, and may do so again.
        overdue_max: Millis::from_minutes(2),
        isolation_max: Millis::from_minutes(2),
        name: "shared-stores".to_owned(),
        about: "all faults at once, with two processes on each side".to_owned(),
        ..everything()
    }
}

/// No faults.
#[must_use]
pub fn steady() -> Scenario {
    Scenario { endpoints: (2, 4), events: (5, 20), ..named("steady", "nothing goes wrong") }
}

fn outage(fails: Break) -> Outage {
    Outage { from: Millis::from_minutes(5), lasts: Millis::from_hours(24), fails }
}

/// A day's outage under the schedule of Standard Webhooks.
#[must_use]
pub fn receiver_outage_24h() -> Scenario {
    let policy = Policy { schedule: preset::standard_webhooks().schedule, ..Policy::default() };
    Scenario {
        endpoints: (1, 2),
        outage: Some(outage(Break::Refuses)),
        policies: vec![policy],
        faults: vec![Fault::SenderCrash, Fault::ResponseLost],
        publishing: Millis::from_hours(6),
        safety: Millis::from_hours(25),
        liveness_bound: Millis::from_hours(24 * 6),
        ..named("receiver-outage-24h", "a receiver is down for a day")
    }
}

/// Crashes at every named point of both sides.
#[must_use]
pub fn crash_everywhere() -> Scenario {
    Scenario {
        faults: vec![
            Fault::SenderCrash,
            Fault::ReceiverCrash,
            Fault::ResponseLost,
            Fault::ServerError,
            Fault::SlowCommit,
            Fault::StoreBusy,
        ],
        broken_per_mille: 400,
        crashes_max: 12,
        policies: vec![brisk(8), brisk(3)],
        ..named("crash-everywhere", "both sides crash at every named point")
    }
}

/// The receiver has committed, and the answer is lost.
#[must_use]
pub fn unanswered() -> Scenario {
    Scenario {
        faults: vec![Fault::ResponseLost, Fault::ConnectionReset, Fault::SlowResponse],
        policies: vec![brisk(20)],
        ..named("unanswered", "committed, and the response is lost")
    }
}

/// One endpoint never answers, and holds what it can.
#[must_use]
pub fn slow_endpoint() -> Scenario {
    let policy = |attempts| {
        let gate = GateRule { concurrency_max: 32, breaker: None, ..brisk(attempts).gate };
        Policy { gate, ..brisk(attempts) }
    };
    Scenario {
        events: (20, 60),
        endpoints: (2, 3),
        places: 16,
        broken_per_mille: 800,
        breaks: vec![Break::Hangs],
        policies: vec![policy(4)],
        faults: vec![Fault::SlowResponse],
        overdue_max: Millis::from_minutes(10),
        liveness_bound: Millis::from_hours(2),
        ..named("slow-endpoint", "one endpoint never answers, the others must not wait")
    }
}

/// Everything is published at once, under a rate limit.
#[must_use]
pub fn thundering_herd() -> Scenario {
    let policy = Policy {
        gate: GateRule {
            rate: Some(RateRule { attempts: 5, per: Millis::from_secs(2), burst: 0 }),
            ..brisk(12).gate
        },
        ..brisk(12)
    };
    Scenario {
        events: (30, 80),
        publishing: Millis::from_secs(2),
        policies: vec![policy],
        faults: vec![Fault::ServerError, Fault::ConnectRefused],
        ..named("thundering-herd", "many events at once, under a rate limit")
    }
}

/// Secrets are rotated while attempts are under way.
#[must_use]
pub fn rotation() -> Scenario {
    Scenario {
        operations: vec![Operation::Rotate],
        publishing: Millis::from_secs(60),
        safety: Millis::from_secs(120),
        faults: vec![Fault::ServerError, Fault::ResponseLost, Fault::SenderCrash],
        ..named("rotation", "secrets are rotated in mid-flight")
    }
}

/// Clocks are wrong and are set, and requests are replayed.
#[must_use]
pub fn clock_trouble() -> Scenario {
    Scenario {
        faults: vec![
            Fault::ClockSkew,
            Fault::ClockStep,
            Fault::ReplayAttack,
            Fault::ServerError,
            Fault::SenderCrash,
        ],
        events: (8, 24),
        outage: Some(Outage {
            from: Millis::from_minutes(3),
            lasts: Millis::from_minutes(8),
            fails: Break::Answers500,
        }),
        publishing: Millis::from_minutes(12),
        safety: Millis::from_minutes(15),
        ..named("clock-trouble", "clocks are wrong and are set; requests are replayed")
    }
}

/// Clocks differ between several processes, and what was sent is replayed for as long as it is valid:
/// what is stamped in the future is so for longer than one tolerance.
#[must_use]
pub fn future_stamps() -> Scenario {
    Scenario {
        senders: 2,
        receivers: 2,
        endpoints: (4, 6),
        events: (8, 16),
        publishing: Millis::from_secs(60),
        safety: Millis::from_minutes(15),
        faults: vec![Fault::ClockSkew, Fault::ReplayAttack],
        ..named("future-stamps", "requests that are stamped in the future are replayed late")
    }
}

/// Requests overtake each other.
#[must_use]
pub fn reorder() -> Scenario {
    Scenario {
        events: (6, 16),
        entities: 2,
        faults: vec![Fault::Reorder, Fault::ServerError, Fault::Duplicate, Fault::ReceiverCrash],
        ..named("reorder", "events about the same entities overtake each other")
    }
}

/// The network is cut.
#[must_use]
pub fn partition() -> Scenario {
    Scenario {
        faults: vec![Fault::Partition, Fault::ConnectTimeout, Fault::RequestLost],
        ..named("partition", "sender and receiver cannot reach each other for a while")
    }
}

/// Two senders and two receivers, whose processes stand still.
#[must_use]
pub fn lease_and_pause() -> Scenario {
    Scenario {
        senders: 2,
        receivers: 2,
        endpoints: (1, 3),
        faults: vec![Fault::Pause, Fault::SlowWork, Fault::SlowResponse, Fault::SenderCrash],
        overdue_max: Millis::from_secs(30),
        isolation_max: Millis::from_secs(30),
        ..named("lease-and-pause", "processes stand still past their leases")
    }
}

/// Effects are calls whose answers are lost.
#[must_use]
pub fn downstream_unknown() -> Scenario {
    Scenario {
        downstream: true,
        faults: vec![Fault::DownstreamFailure, Fault::ReceiverCrash, Fault::ResponseLost],
        ..named("downstream-unknown", "effects are calls whose answers are lost")
    }
}

/// People disable, enable and delete endpoints.
#[must_use]
pub fn disable_and_delete() -> Scenario {
    Scenario {
        endpoints: (2, 4),
        operations: vec![Operation::Disable, Operation::Delete],
        faults: vec![Fault::ServerError, Fault::Gone, Fault::SenderCrash],
        ..named("disable-and-delete", "endpoints are disabled, enabled and deleted in mid-flight")
    }
}

/// People replay and cancel deliveries.
#[must_use]
pub fn replay_and_recover() -> Scenario {
    Scenario {
        operations: vec![Operation::Replay, Operation::Cancel, Operation::Replay],
        outage: Some(Outage {
            from: Millis::from_secs(8),
            lasts: Millis::from_secs(20),
            fails: Break::Answers500,
        }),
        faults: vec![
            Fault::ServerError,
            Fault::RequestLost,
            Fault::SlowResponse,
            Fault::SenderCrash,
        ],
        policies: vec![brisk(3), brisk(12)],
        ..named("replay-and-recover", "deliveries are replayed and cancelled by hand")
    }
}

/// Gateways ask for time, in every form.
#[must_use]
pub fn retry_after_storm() -> Scenario {
    let gate = GateRule { throttle_max: Millis::from_secs(30), ..brisk(20).gate };
    Scenario {
        policies: vec![Policy { gate, ..brisk(20) }, brisk(20)],
        faults: vec![Fault::TooManyRequests, Fault::ServerError],
        events: (10, 30),
        liveness_bound: Millis::from_hours(24 * 30),
        ..named("retry-after-storm", "Retry-After in every form")
    }
}

/// A backlog leaves at the drain rate.
#[must_use]
pub fn backlog_drain() -> Scenario {
    let policy = Policy {
        gate: GateRule {
            drain: Some(DrainRule {
                attempts: 3,
                per: Millis::from_secs(5),
                lasts: Millis::from_minutes(5),
            }),
            ..brisk(60).gate
        },
        ..brisk(60)
    };
    Scenario {
        events: (20, 40),
        outage: Some(Outage {
            from: Millis::from_secs(5),
            lasts: Millis::from_secs(60),
            fails: Break::Answers500,
        }),
        policies: vec![policy],
        faults: vec![Fault::SlowResponse],
        ..named("backlog-drain", "a backlog leaves slowly once its receiver is back")
    }
}

/// Failures that only an exact window adds up.
#[must_use]
pub fn sliding_window() -> Scenario {
    let breaker = BreakerRule {
        failures_in_a_row: 0,
        window: Some(WindowRule {
            within: Millis::from_secs(10),
            failures: 4,
            share_percent: 0,
            attempts_min: 1,
        }),
        pause: Millis::from_secs(5),
        pause_max: Millis::from_secs(20),
        ..BreakerRule::default()
    };
    let schedule = Schedule::new(
        Backoff::Linear {
            base: Millis::from_secs(6),
            step: Millis::ZERO,
            cap: Millis::from_secs(6),
            attempts_max: 60,
        },
        Jitter::Full,
    );
    let gate = GateRule { breaker: Some(breaker), ..brisk(30).gate };
    Scenario {
        events: (1, 4),
        outage: Some(Outage {
            from: Millis::from_secs(2),
            lasts: Millis::from_secs(90),
            fails: Break::Answers500,
        }),
        policies: vec![Policy { schedule, gate, ..brisk(30) }],
        faults: vec![Fault::ServerError, Fault::ConnectRefused],
        ..named("sliding-window", "a breaker counts failures in an exact window")
    }
}

/// Sixty attempts that double.
#[must_use]
pub fn long_ladder() -> Scenario {
    let schedule = Schedule::new(
        Backoff::Exponential {
            base: Millis::from_secs(1),
            factor: 2,
            cap: Millis::from_hours(1),
            attempts_max: 60,
        },
        Jitter::Equal,
    );
    Scenario {
        events: (1, 3),
        endpoints: (2, 3),
        broken_per_mille: 700,
        policies: vec![Policy { schedule, ..brisk(60) }],
        liveness_bound: Millis::from_hours(24 * 30),
        ..named("long-ladder", "sixty attempts to an endpoint that never recovers")
    }
}

/// Two attempts and an age limit.
#[must_use]
pub fn few_attempts() -> Scenario {
    let aged = Policy {
        life: Life { age_max: Some(Millis::from_secs(20)), ..Life::default() },
        ..brisk(30)
    };
    Scenario {
        policies: vec![brisk(2), aged],
        faults: vec![Fault::ServerError, Fault::ConnectTimeout, Fault::SenderCrash],
        broken_per_mille: 300,
        ..named("few-attempts", "attempts and age run out")
    }
}

/// A breaker's probe is refused rather than failed.
#[must_use]
pub fn probe_refused() -> Scenario {
    Scenario {
        events: (10, 30),
        outage: Some(Outage {
            from: Millis::from_secs(2),
            lasts: Millis::from_secs(30),
            fails: Break::Refuses,
        }),
        policies: vec![brisk(60)],
        faults: vec![Fault::ClientError],
        ..named("probe-refused", "a breaker's probe ends with neither success nor failure")
    }
}
