//! Tests as `hookproof sim --replay FILE --format rust` prints them.

/// Found in R01 inserts the id, then processes; the real code must survive it.
#[test]
fn i4_done_means_done_holds_where_it_once_did_not() {
    use hookproof_sim::plan::Plan;

    let plan = Plan {
        world: hookproof_sim::suite::World::Model,
        scenario: hookproof_sim::scenario::Scenario {
            events: (1, 1),
            endpoints: (1, 1),
            ..hookproof_sim::scenario::shipped::crash_everywhere()
        },
        mutant: None,
        invariant: hookproof_sim::checkers::Invariant::DoneMeansDone,
        draws: hookproof_sim::plan::draws(&[
            // on, with weight 1
            ("plan", 0, "receiver crash", 0, 1),
            // crashes here
            ("receiver", 0, "store.committed", 0, 1),
        ]),
    };
    assert_eq!(plan.run(false).violation, None);
}

/// Found in S01 accepts before the commit; the real code must survive it.
#[test]
fn i15_durable_holds_where_it_once_did_not() {
    use hookproof_sim::plan::Plan;

    let plan = Plan::from_json(
        r##"{
  "version": 1,
  "world": "model",
  "mutant": null,
  "violated": "I15",
  "scenario": {
    "name": "my own",
    "about": "both sides crash at every named point",
    "events": [
      1,
      1
    ],
    "endpoints": [
      1,
      1
    ],
    "broken_per_mille": 400,
    "breaks": [
      "answers500",
      "hangs",
      "refuses"
    ],
    "outage": null,
    "policies": [
      {
        "schedule": {
          "backoff": {
            "kind": "exponential",
            "base": "500ms",
            "factor": 2,
            "cap": "20s",
            "attempts_max": 8
          },
          "jitter": "full"
        },
        "life": {
          "while_held": "runs"
        },
        "retry_after_spread": "0s",
        "classification": {
          "client_error": "final",
          "retry_after_max": "2m"
        },
        "connect_timeout": "3s",
        "total_timeout": "10s",
        "lease_margin": "5s",
        "gate": {
          "concurrency_max": 4,
          "throttle_max": "0s",
          "breaker": {
            "failures_in_a_row": 6,
            "pause": "5s",
            "pause_factor": 2,
            "pause_max": "20s"
          }
        }
      },
      {
        "schedule": {
          "backoff": {
            "kind": "exponential",
            "base": "500ms",
            "factor": 2,
            "cap": "20s",
            "attempts_max": 3
          },
          "jitter": "full"
        },
        "life": {
          "while_held": "runs"
        },
        "retry_after_spread": "0s",
        "classification": {
          "client_error": "final",
          "retry_after_max": "2m"
        },
        "connect_timeout": "3s",
        "total_timeout": "10s",
        "lease_margin": "5s",
        "gate": {
          "concurrency_max": 4,
          "throttle_max": "0s",
          "breaker": {
            "failures_in_a_row": 6,
            "pause": "5s",
            "pause_factor": 2,
            "pause_max": "20s"
          }
        }
      }
    ],
    "faults": [
      "sender crash",
      "receiver crash",
      "response lost",
      "5xx",
      "slow commit",
      "store busy"
    ],
    "publishing": "20s",
    "safety": "40s",
    "liveness_bound": "6h",
    "crashes_max": 12,
    "senders": 1,
    "receivers": 1,
    "places": 64,
    "shard_lease": "10s",
    "entities": 0,
    "downstream": false,
    "operations": [],
    "latency": [
      "1ms",
      "30ms"
    ],
    "commit": [
      "1ms",
      "3ms"
    ],
    "overdue_max": "15s",
    "isolation_max": "15s",
    "tick": "10ms"
  },
  "draws": []
}"##,
    )
    .unwrap();
    assert_eq!(plan.run(false).violation, None);
}
