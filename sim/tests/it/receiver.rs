//! Receivers of others in the wire world: a right one holds, each wrong one is caught, and told why.

#![expect(clippy::duplicate_mod, reason = "both examples begin alike, and each stands by itself")]

use std::collections::BTreeMap;
use std::process::ExitCode;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use hookproof_core::secret::Secret;
use hookproof_sim::checkers::Invariant;
use hookproof_sim::fault::Fault;
use hookproof_sim::receiver::{Busy, Life, Report, Trial};
use hookproof_sim::scenario::Scenario;

#[path = "../../examples/right_receiver.rs"]
mod right_receiver;
#[path = "../../examples/wrong_receiver.rs"]
mod wrong_receiver;

use right_receiver::request::event_id;

/// A ledger in which each effect is counted and each promise noted.
type Ledger = Report;

/// What a receiver makes of an event whose signature holds.
type Handle = fn(Life<Ledger>, String) -> Handling;
type Handling = std::pin::Pin<Box<dyn Future<Output = Result<(), Busy>> + Send>>;

/// A receiver that verifies, and then does as `handle` says.
fn verifying(handle: Handle) -> Trial {
    trial(move |life, headers, body| {
        Box::pin(async move {
            let id = match event_id(&life, &headers, &body) {
                Ok(id) => id,
                Err(status) => return status,
            };
            match handle(life, id).await {
                Ok(()) => StatusCode::OK,
                Err(Busy) => StatusCode::SERVICE_UNAVAILABLE,
            }
        })
    })
}

type Answering = std::pin::Pin<Box<dyn Future<Output = StatusCode> + Send>>;

fn trial(
    take: impl Fn(Life<Ledger>, HeaderMap, Bytes) -> Answering + Clone + Send + Sync + 'static,
) -> Trial {
    let start = move |life: Life<Ledger>| {
        let take = take.clone();
        let answer = async move |headers: HeaderMap, body: Bytes| take(life, headers, body).await;
        Router::new().route("/webhooks", post(answer))
    };
    Trial::new(start, Ledger::clone)
}

/// Caught within twenty seeds, by that invariant.
fn check(invariant: Invariant, trial: &Trial) {
    let failure = trial.try_run(0..20).expect_err("it is wrong");
    assert_eq!(failure.invariant(), Some(invariant), "{failure}");
    let text = failure.to_string();
    assert!(text.starts_with(&format!("{invariant} does not hold: ")), "{text}");
    let seed = failure.seed().expect("a history shows it");
    assert!(text.ends_with(&format!("the same trial over the seeds {seed}..{}", seed + 1)));
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

fn apply(ledger: &mut Ledger, id: &str) {
    ledger.recorded.insert(id.to_owned());
    ledger.effects.entry(id.to_owned()).or_insert(1);
}

#[test]
fn the_right_example_holds_through_crashes_forgeries_and_a_busy_disk() {
    let held = right_receiver::verdict().expect("it is right");
    assert_eq!(held.histories, 40);
    for fault in [Fault::ReceiverCrash, Fault::Forgery, Fault::StoreBusy, Fault::ResponseLost] {
        assert!(held.fired[&fault] > 5, "{fault}: {held}");
    }
}

#[test]
fn the_right_example_ends_with_0() {
    assert_eq!(right_receiver::main(), ExitCode::SUCCESS);
}

#[test]
fn the_wrong_example_is_caught_by_exactly_once_and_ends_with_1() {
    let failure = wrong_receiver::verdict().expect_err("it is wrong");
    assert_eq!(failure.invariant(), Some(Invariant::ExactlyOnce), "{failure}");
    assert!(failure.seed().is_some_and(|seed| seed < 5), "{failure}");
    assert_eq!(wrong_receiver::main(), ExitCode::FAILURE);
}

#[test]
fn the_readme_shows_what_the_wrong_example_prints() {
    let readme = include_str!("../../../README.md");
    let start = "```console\n$ cargo run -p hookproof-sim --example wrong_receiver\n";
    let (_, rest) = readme.split_once(start).expect("the README shows this command");
    let (shown, _) = rest.split_once("```").expect("the block ends");
    let failure = wrong_receiver::verdict().expect_err("it is wrong");
    assert_eq!(format!("{failure}\n"), shown, "copy the left one into README.md");
}

#[test]
fn noting_the_id_before_the_work_loses_an_event_at_a_crash() {
    check(
        Invariant::DoneMeansDone,
        &verifying(|life, id| {
            Box::pin(async move {
                if !life.disk().commit(|ledger| ledger.recorded.insert(id.clone())).await? {
                    return Ok(());
                }
                life.disk().commit(|ledger| *ledger.effects.entry(id).or_insert(0) += 1).await
            })
        }),
    );
}

#[test]
fn answering_before_the_commit_acknowledges_what_is_not_recorded() {
    check(
        Invariant::Durable,
        &verifying(|life, id| {
            Box::pin(async move {
                let worker = life.clone();
                life.spawn(async move {
                    while worker.disk().commit(|ledger| apply(ledger, &id)).await.is_err() {}
                });
                Ok(())
            })
        }),
    );
}

#[test]
fn a_receiver_that_does_not_verify_takes_what_is_forged() {
    check(
        Invariant::Identity,
        &trial(|life, headers, _| {
            Box::pin(async move {
                let id = String::from_utf8_lossy(headers["webhook-id"].as_bytes()).into_owned();
                match life.disk().commit(|ledger| apply(ledger, &id)).await {
                    Ok(()) => StatusCode::OK,
                    Err(Busy) => StatusCode::SERVICE_UNAVAILABLE,
                }
            })
        }),
    );
}

#[test]
fn a_receiver_with_another_secret_refuses_what_is_valid() {
    let other = Secret::from_entropy([1, 2, 3, 4]);
    let start = move |life: Life<Ledger>| {
        assert_eq!(*life.secret(), other, "the trial was given it");
        Router::new().route("/webhooks", post(async || StatusCode::UNAUTHORIZED))
    };
    let other = Secret::from_entropy([1, 2, 3, 4]);
    check(Invariant::Identity, &Trial::new(start, Ledger::clone).secret(other));
}

#[test]
fn a_panic_of_the_receiver_is_a_breakdown() {
    check(Invariant::Sound, &trial(|_, headers, _| panic!("a panic with {}", headers.len())));
}

#[test]
fn a_worker_that_picks_up_at_a_start_what_a_crash_left_holds() {
    let start = |life: Life<Ledger>| {
        let worker = life.clone();
        life.spawn(async move {
            loop {
                worker.sleep(hookproof_core::time::Millis::new(500)).await;
                let is_open = |ledger: &Ledger| ledger.effects.len() < ledger.recorded.len();
                if worker.disk().read(is_open).await {
                    // If the disk is busy, the next round tries again.
                    let work_off = |ledger: &mut Ledger| {
                        for id in &ledger.recorded {
                            ledger.effects.entry(id.clone()).or_insert(1);
                        }
                    };
                    let _ = worker.disk().commit(work_off).await;
                }
            }
        });
        let take = async move |headers: HeaderMap, body: Bytes| {
            let id = match event_id(&life, &headers, &body) {
                Ok(id) => id,
                Err(status) => return status,
            };
            match life.disk().commit(|ledger| ledger.recorded.insert(id)).await {
                Ok(_) => StatusCode::ACCEPTED,
                Err(Busy) => StatusCode::SERVICE_UNAVAILABLE,
            }
        };
        Router::new().route("/in/shop", post(take))
    };
    let trial = Trial::new(start, Ledger::clone).path("/in/shop");
    let held = trial.run(0..10);
    assert!(held.totals.effects > 20, "{held}");
}

#[test]
fn a_store_of_ones_own_is_asked_before_each_answer() {
    // The disk holds only the way to the store, which commits without anybody being told.
    type Way = std::sync::Arc<std::sync::Mutex<Ledger>>;
    let start = |life: Life<Way>| {
        let take = async move |headers: HeaderMap, body: Bytes| {
            let id = match event_id(&life, &headers, &body) {
                Ok(id) => id,
                Err(status) => return status,
            };
            let store = life.disk().read(Way::clone).await;
            apply(&mut store.lock().unwrap(), &id);
            life.crash_point("store.committed by itself").await;
            StatusCode::OK
        };
        Router::new().route("/webhooks", post(take))
    };
    let held = Trial::new(start, |store: &Way| store.lock().unwrap().clone()).run(0..10);
    assert!(held.totals.effects > 20, "{held}");
}

#[test]
fn one_seed_is_one_history_and_another_seed_another() {
    let trial = || {
        verifying(|life, id| Box::pin(async move { life.disk().commit(|l| apply(l, &id)).await }))
    };
    for seed in [3, 4, 5] {
        assert_eq!(trial().trace(seed), trial().trace(seed), "seed {seed}");
    }
    assert_ne!(trial().trace(3), trial().trace(4));
}

#[test]
fn a_receiver_that_remembers_over_histories_is_told_that_it_cannot_be_repeated() {
    let starts = std::sync::atomic::AtomicU32::new(0);
    let start = move |life: Life<BTreeMap<String, u32>>| {
        let nth = starts.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        life.spawn({
            let life = life.clone();
            async move {
                life.sleep(hookproof_core::time::Millis::new(nth.into())).await;
                life.crash_point("started").await;
            }
        });
        let take = async move |headers: HeaderMap, body: Bytes| {
            let Ok(id) = event_id(&life, &headers, &body) else { return StatusCode::UNAUTHORIZED };
            match life.disk().commit(|ledger| ledger.entry(id).or_insert(1).to_owned()).await {
                Ok(_) => StatusCode::OK,
                Err(Busy) => StatusCode::SERVICE_UNAVAILABLE,
            }
        };
        Router::new().route("/webhooks", post(take))
    };
    let failure = Trial::new(start, BTreeMap::clone).try_run(0..5).expect_err("it is not repeated");
    assert!(failure.to_string().starts_with("seed 0 was two histories"), "{failure}");
}

#[test]
fn what_cannot_be_run_is_refused_with_what_would_be_right() {
    let deaf = || trial(|_, _, _| Box::pin(async { StatusCode::SERVICE_UNAVAILABLE }));
    let told = |trial: Trial, seeds| trial.try_run(seeds).expect_err("it cannot be").to_string();
    assert_eq!(told(deaf(), 5..5), "the seeds 5..5 are none; give 0..100");
    let path = told(deaf().path("webhooks?x=1"), 0..1);
    assert!(path.starts_with("the path \"webhooks?x=1\" cannot be; give one such as"), "{path}");
    let scenario = Scenario { events: (0, 0), ..Scenario::default() };
    let scenario = told(deaf().scenario(scenario), 0..1);
    assert!(scenario.starts_with("the scenario's `events` is [0, 0]; give two"), "{scenario}");
    let calm = told(deaf(), 0..1);
    assert!(calm.starts_with("nothing went wrong, and 0 of "), "{calm}");
}
