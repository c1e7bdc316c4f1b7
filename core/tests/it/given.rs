//! What laws are given: values of every kind, with the extremes more often than chance has them.

use std::fmt::Debug;

use hookproof_core::classify::{Classification, ClientError};
use hookproof_core::delivery::{DeadReason, Delivery, Input, Origin, Phase, Settled};
use hookproof_core::gate::{BreakerRule, GateRule};
use hookproof_core::id::{DeliveryId, EndpointId, EventId};
use hookproof_core::life::Life;
use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::policy::Policy;
use hookproof_core::retry_after::RetryAfterRule;
use hookproof_core::schedule::{ATTEMPTS_MAX, Backoff, Jitter, Schedule};
use hookproof_core::time::{Millis, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

/// How laws are tried: from one seed, unless the environment names another.
pub(crate) fn laws() -> Config {
    let mut config = Config::default();
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(20_260_101);
    }
    config.failure_persistence = None;
    config
}

/// It is due, and the gate never held it back.
pub(crate) const ADMITTED: Input = Input::Admitted { held: Millis::ZERO };

/// An instant in the life of a test, in milliseconds.
pub(crate) fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

pub(crate) fn ms(ms: u64) -> Millis {
    Millis::new(ms)
}

pub(crate) fn secs(secs: u64) -> Millis {
    Millis::from_secs(secs)
}

pub(crate) fn answered(status: u16) -> Outcome {
    Outcome::Answered { status, retry_after: None }
}

pub(crate) fn answered_later(status: u16, retry_after: Millis) -> Outcome {
    Outcome::Answered { status, retry_after: Some(retry_after) }
}

pub(crate) fn failed(failure: Failure) -> Outcome {
    Outcome::Failed { failure }
}

pub(crate) const FAILURES: [Failure; 9] = Failure::ALL;

/// That a value comes back from JSON as it went in.
pub(crate) fn check_round_trip<T>(value: &T) -> Result<(), TestCaseError>
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + Debug,
{
    let text = serde_json::to_string(value).expect("it can be written");
    let back: T = serde_json::from_str(&text)
        .map_err(|error| TestCaseError::fail(format!("{text} cannot be read back: {error}")))?;
    prop_assert_eq!(&back, value, "{}", text);
    Ok(())
}

pub(crate) fn entropy() -> impl Strategy<Value = u64> {
    prop_oneof![2 => any::<u64>(), 1 => Just(0), 1 => Just(u64::MAX)]
}

pub(crate) fn timestamp() -> BoxedStrategy<Timestamp> {
    prop_oneof![
        4 => 0..4_102_444_800_000_i64,
        2 => -5..5_i64,
        1 => any::<i64>(),
        1 => Just(i64::MIN),
        1 => Just(i64::MAX),
    ]
    .prop_map(at)
    .boxed()
}

pub(crate) fn millis() -> BoxedStrategy<Millis> {
    prop_oneof![
        4 => 0..100_000_000_u64,
        2 => 0..5_u64,
        1 => any::<u64>(),
        1 => Just(u64::MAX),
    ]
    .prop_map(ms)
    .boxed()
}

fn some_millis() -> BoxedStrategy<Millis> {
    millis().prop_map(|span| span.max(ms(1))).boxed()
}

fn counter() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0..20_u32, 1 => any::<u32>(), 1 => Just(u32::MAX)]
}

pub(crate) fn version() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..100_u64, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

pub(crate) fn failure() -> impl Strategy<Value = Failure> {
    proptest::sample::select(&FAILURES)
}

pub(crate) fn outcome() -> BoxedStrategy<Outcome> {
    let status = prop_oneof![
        6 => proptest::sample::select(vec![200, 204, 302, 400, 404, 408, 410, 425, 429, 500, 503]),
        2 => 100..1000_u16,
        1 => any::<u16>(),
    ];
    prop_oneof![
        6 => (status, proptest::option::of(millis()))
            .prop_map(|(status, retry_after)| Outcome::Answered { status, retry_after }),
        2 => failure().prop_map(failed),
        1 => Just(Outcome::Unknown),
    ]
    .boxed()
}

/// An outcome that neither mode of the agreement takes for the last word: the schedule goes on.
pub(crate) fn setback() -> BoxedStrategy<Outcome> {
    let status = prop_oneof![
        2 => proptest::sample::select(vec![101, 302, 408, 425, 429, 500, 503, 599, 999]),
        1 => 500..600_u16,
        1 => 300..400_u16,
    ];
    let failures: Vec<_> =
        FAILURES.into_iter().filter(|failure| *failure != Failure::Blocked).collect();
    prop_oneof![
        2 => (status, proptest::option::of(millis()))
            .prop_map(|(status, retry_after)| Outcome::Answered { status, retry_after }),
        1 => proptest::sample::select(failures).prop_map(failed),
        1 => Just(Outcome::Unknown),
    ]
    .boxed()
}

fn jitter() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        2 => Just(Jitter::None),
        2 => Just(Jitter::Full),
        1 => Just(Jitter::Equal),
        1 => (0..=100_u32).prop_map(|percent| Jitter::Proportional { percent }),
        1 => millis().prop_map(|most| Jitter::Additive { most }),
    ]
}

fn linear(attempts_max: u32) -> BoxedStrategy<Backoff> {
    (some_millis(), millis(), some_millis(), 1..=attempts_max)
        .prop_map(|(one, step, other, attempts_max)| Backoff::Linear {
            base: one.min(other),
            step,
            cap: one.max(other),
            attempts_max,
        })
        .boxed()
}

/// A backoff with a jitter that goes with it, and often a cap after the jitter.
fn spread(backoff: BoxedStrategy<Backoff>) -> BoxedStrategy<Schedule> {
    let cap = prop_oneof![3 => Just(None), 1 => some_millis().prop_map(Some)];
    (backoff, jitter(), cap, proptest::bool::weighted(0.2))
        .prop_map(|(mut backoff, mut jitter, cap_after_jitter, decorrelates)| {
            if let (Backoff::Exponential { factor, .. }, true) = (&mut backoff, decorrelates) {
                *factor = (*factor).max(2);
                jitter = Jitter::Decorrelated;
            }
            Schedule { backoff, jitter, cap_after_jitter }
        })
        .boxed()
}

fn list(longest: usize) -> BoxedStrategy<Backoff> {
    proptest::collection::vec(millis(), 0..=longest)
        .prop_map(|waits| Backoff::List { waits })
        .boxed()
}

fn exponential(attempts_max: u32) -> BoxedStrategy<Backoff> {
    let factor = prop_oneof![4 => 1..5_u32, 1 => 1..=u32::MAX];
    (some_millis(), factor, some_millis(), 1..=attempts_max)
        .prop_map(|(one, factor, other, attempts_max)| Backoff::Exponential {
            base: one.min(other),
            factor,
            cap: one.max(other),
            attempts_max,
        })
        .boxed()
}

/// Any schedule that validates, up to the most attempts that are allowed.
pub(crate) fn schedule() -> BoxedStrategy<Schedule> {
    let few = prop_oneof![list(20), exponential(20), linear(20)];
    spread(prop_oneof![few, exponential(ATTEMPTS_MAX - 1), linear(ATTEMPTS_MAX - 1)].boxed())
}

/// A schedule of few attempts, which a test can live through.
pub(crate) fn short_schedule() -> BoxedStrategy<Schedule> {
    spread(prop_oneof![list(8), exponential(9), linear(9)].boxed())
}

pub(crate) fn breaker_rule() -> BoxedStrategy<BreakerRule> {
    (1..=u32::MAX, some_millis(), some_millis())
        .prop_map(|(failures_in_a_row, one, other)| BreakerRule {
            failures_in_a_row,
            pause: one.min(other),
            pause_max: one.max(other),
            ..BreakerRule::default()
        })
        .boxed()
}

fn gate_rule() -> BoxedStrategy<GateRule> {
    (1..=u32::MAX, proptest::option::of(breaker_rule()))
        .prop_map(|(concurrency_max, breaker)| GateRule {
            concurrency_max,
            breaker,
            ..GateRule::default()
        })
        .boxed()
}

/// Any policy that validates, with the given schedule.
pub(crate) fn policy_with(schedule: BoxedStrategy<Schedule>) -> BoxedStrategy<Policy> {
    let client_error = prop_oneof![Just(ClientError::Final), Just(ClientError::Retry)];
    let classification = (client_error, millis()).prop_map(|(client_error, retry_after_max)| {
        Classification { client_error, retry_after_max, rules: Vec::new() }
    });
    (schedule, classification, some_millis(), some_millis(), some_millis(), gate_rule())
        .prop_map(|(schedule, classification, one, other, lease_margin, gate)| Policy {
            schedule,
            life: Life::default(),
            retry_after_spread: lease_margin,
            retry_after: RetryAfterRule::default(),
            classification,
            connect_timeout: one.min(other),
            total_timeout: one.max(other),
            lease_margin,
            gate,
        })
        .boxed()
}

/// Any policy that validates.
pub(crate) fn policy() -> impl Strategy<Value = Policy> {
    policy_with(schedule())
}

fn dead_reason() -> impl Strategy<Value = DeadReason> {
    proptest::sample::select(&[
        DeadReason::Exhausted,
        DeadReason::Expired,
        DeadReason::Refused,
        DeadReason::Gone,
    ])
}

pub(crate) fn settled() -> BoxedStrategy<Settled> {
    prop_oneof![
        timestamp().prop_map(|due| Settled::Scheduled { due }),
        timestamp().prop_map(|at| Settled::Delivered { at }),
        (timestamp(), dead_reason()).prop_map(|(at, reason)| Settled::Dead { at, reason }),
        timestamp().prop_map(|at| Settled::Cancelled { at }),
    ]
    .boxed()
}

fn origin() -> BoxedStrategy<Origin> {
    prop_oneof![Just(Origin::Schedule), settled().prop_map(|settled| Origin::Replay { settled }),]
        .boxed()
}

pub(crate) fn final_phase() -> BoxedStrategy<Phase> {
    prop_oneof![
        timestamp().prop_map(|at| Phase::Delivered { at }),
        (timestamp(), dead_reason()).prop_map(|(at, reason)| Phase::Dead { at, reason }),
        timestamp().prop_map(|at| Phase::Cancelled { at }),
    ]
    .boxed()
}

fn phase() -> BoxedStrategy<Phase> {
    prop_oneof![
        (timestamp(), origin()).prop_map(|(due, origin)| Phase::Scheduled { due, origin }),
        (counter(), timestamp(), timestamp(), origin()).prop_map(
            |(attempt, started_at, lease_until, origin)| Phase::InFlight {
                attempt,
                started_at,
                lease_until,
                origin,
            }
        ),
        final_phase(),
    ]
    .boxed()
}

/// A delivery in a phase, with its counters at zero.
pub(crate) fn delivery_in(phase: Phase) -> Delivery {
    let event_id = EventId::new("msg_1").expect("an id");
    let endpoint_id = EndpointId::new("ep_1").expect("an id");
    let id = DeliveryId::of(&event_id, &endpoint_id);
    Delivery { phase, ..Delivery::new(id, event_id, endpoint_id, at(0)) }
}

/// Any delivery in one of these phases, reachable or not.
pub(crate) fn delivery_of(phase: BoxedStrategy<Phase>) -> BoxedStrategy<Delivery> {
    (phase, version(), counter(), counter(), timestamp())
        .prop_map(|(phase, version, attempts, scheduled_attempts, created_at)| Delivery {
            created_at,
            version,
            attempts,
            scheduled_attempts,
            ..delivery_in(phase)
        })
        .boxed()
}

/// Any delivery, reachable or not.
pub(crate) fn delivery() -> impl Strategy<Value = Delivery> {
    delivery_of(phase())
}

/// Any input; when it names an attempt, often the one that is under way in `delivery`.
pub(crate) fn input(delivery: &Delivery) -> BoxedStrategy<Input> {
    let current = match delivery.phase {
        Phase::InFlight { attempt, .. } => attempt,
        _ => delivery.attempts,
    };
    let attempt = prop_oneof![3 => Just(current), 1 => counter()];
    prop_oneof![
        millis().prop_map(|held| Input::Admitted { held }),
        millis().prop_map(|held| Input::LifeExpired { held }),
        (attempt, outcome()).prop_map(|(attempt, outcome)| Input::Finished { attempt, outcome }),
        Just(Input::LeaseExpired),
        Just(Input::OwnerLost),
        Just(Input::Cancel),
        Just(Input::Replay),
    ]
    .boxed()
}
