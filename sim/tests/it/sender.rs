//! Senders of others in the wire world: a right one holds, each wrong one is caught, and told why.

#![expect(clippy::duplicate_mod, reason = "both examples write alike, and each stands by itself")]

use std::collections::BTreeSet;
use std::pin::Pin;
use std::process::ExitCode;

use bytes::Bytes;
use hookproof_core::secret::Secret;
use hookproof_core::time::Millis;
use hookproof_sim::checkers::Invariant;
use hookproof_sim::fault::Fault;
use hookproof_sim::scenario::Scenario;
use hookproof_sim::sender::{Busy, Client, Event, Life, Report, Trial};

#[path = "../../examples/right_sender.rs"]
mod right_sender;
#[path = "../../examples/wrong_sender.rs"]
mod wrong_sender;

use right_sender::signed::request;

/// A queue in which what is where is noted, with the bodies beside it.
#[derive(Clone, Default)]
struct Queue {
    report: Report,
    bodies: std::collections::BTreeMap<String, Bytes>,
    attempts: u32,
}

impl Queue {
    fn accept(&mut self, event: &Event) {
        if self.bodies.insert(event.id.clone(), event.body.clone()).is_none() {
            self.report.pending.insert(event.id.clone());
        }
    }

    fn deliver(&mut self, id: &str) {
        if self.report.pending.remove(id) {
            self.report.delivered.insert(id.to_owned());
        }
    }
}

type Done<T> = Pin<Box<dyn Future<Output = T> + Send>>;

async fn accept(life: Life<Queue>, event: Event) -> Result<(), Busy> {
    life.disk().commit(|queue| queue.accept(&event)).await
}

/// Whether the receiver took what `send` sends for the nth attempt of this life.
type Sending = fn(Life<Queue>, Client, String, Bytes, u32) -> Done<bool>;

/// A sender that makes one attempt after the other, as `send` says.
fn sending(send: Sending) -> Trial {
    let run = move |life, client| work_off(life, client, send);
    Trial::new(run, accept, |queue: &Queue| queue.report.clone())
}

async fn work_off(life: Life<Queue>, client: Client, send: Sending) {
    let mut nth = 0;
    loop {
        let queue = life.disk().read(Queue::clone).await;
        for id in &queue.report.pending {
            nth += 1;
            let body = queue.bodies[id].clone();
            if send(life.clone(), client.clone(), id.clone(), body, nth).await {
                // If the disk is busy it is sent again.
                let _ = life.disk().commit(|queue| queue.deliver(id)).await;
            }
        }
        life.sleep(Millis::from_secs(1)).await;
    }
}

fn right(life: Life<Queue>, client: Client, id: String, body: Bytes, _: u32) -> Done<bool> {
    Box::pin(async move {
        let request = request(&life, &client, &id, body);
        let answer = client.send(request, Millis::from_secs(5)).await;
        answer.is_ok_and(|answer| answer.status().is_success())
    })
}

/// Caught within twenty seeds, by that invariant.
fn check(invariant: Invariant, trial: &Trial) {
    let failure = trial.try_run(0..20).expect_err("it is wrong");
    assert_eq!(failure.invariant(), Some(invariant), "{failure}");
    let text = failure.to_string();
    assert!(text.starts_with(&format!("{invariant} does not hold: ")), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn the_right_example_holds_through_crashes_lost_answers_and_a_busy_disk() {
    let held = right_sender::verdict().expect("it is right");
    assert_eq!(held.histories, 40);
    for fault in [
        Fault::SenderCrash,
        Fault::ReceiverCrash,
        Fault::StoreBusy,
        Fault::ResponseLost,
        Fault::RequestLost,
        Fault::ConnectRefused,
        Fault::ConnectTimeout,
        Fault::ConnectionReset,
        Fault::Duplicate,
        Fault::ServerError,
        Fault::DnsFailure,
        Fault::DnsRebinding,
        Fault::Partition,
    ] {
        assert!(held.fired.get(&fault).is_some_and(|times| *times > 2), "{fault}: {held:?}");
    }
    assert!(held.to_string().contains("crashes of the sender"), "{held}");
}

#[test]
fn the_right_example_ends_with_0() {
    assert_eq!(right_sender::main(), ExitCode::SUCCESS);
}

#[test]
fn the_wrong_example_is_caught_by_liveness_after_one_crash_and_ends_with_1() {
    let failure = wrong_sender::verdict().expect_err("it is wrong");
    assert_eq!(failure.invariant(), Some(Invariant::Liveness), "{failure}");
    assert!(failure.to_string().contains("CRASH at"), "{failure}");
    assert_eq!(wrong_sender::main(), ExitCode::FAILURE);
}

#[test]
fn accepting_before_the_commit_loses_an_event() {
    let publish = async |life: Life<Queue>, event: Event| {
        let later = life.clone();
        life.spawn(async move {
            later.sleep(Millis::from_secs(1)).await;
            let _ = later.disk().commit(|queue| queue.accept(&event)).await;
        });
        Ok(())
    };
    let publish = move |life, event| Box::pin(publish(life, event)) as Done<Result<(), Busy>>;
    let report = |queue: &Queue| queue.report.clone();
    check(Invariant::Durable, &Trial::new(async |_, _| {}, publish, report));
}

#[test]
fn an_event_that_is_off_the_disk_while_it_is_sent_is_lost() {
    check(
        Invariant::Durable,
        &sending(|life, client, id, body, nth| {
            Box::pin(async move {
                let _ = life.disk().commit(|queue| queue.report.pending.remove(&id)).await;
                let is_taken = right(life.clone(), client, id.clone(), body, nth).await;
                let _ = life.disk().commit(|queue| queue.report.pending.insert(id)).await;
                is_taken
            })
        }),
    );
}

#[test]
fn an_event_in_two_places_is_in_one_too_many() {
    check(
        Invariant::NoLoss,
        &sending(|life, client, id, body, nth| {
            Box::pin(async move {
                let both = |queue: &mut Queue| queue.report.delivered.insert(id.clone());
                let _ = life.disk().commit(both).await;
                right(life.clone(), client, id, body, nth).await
            })
        }),
    );
}

#[test]
fn a_new_id_for_each_attempt_is_of_an_event_that_nobody_published() {
    check(
        Invariant::NoInvention,
        &sending(|life, client, id, body, nth| {
            Box::pin(async move { right(life, client, format!("{id}-{nth}"), body, nth).await })
        }),
    );
}

#[test]
fn a_body_that_is_written_anew_is_another_one() {
    check(
        Invariant::Identity,
        &sending(|life, client, id, body, nth| {
            let body: Vec<u8> = body.iter().copied().filter(|byte| *byte != b' ').collect();
            right(life, client, id, body.into(), nth)
        }),
    );
}

#[test]
fn a_header_that_only_a_retry_has_is_a_change() {
    check(
        Invariant::Identity,
        &sending(|life, client, id, body, nth| {
            Box::pin(async move {
                let mut request = request(&life, &client, &id, body);
                if nth > 1 {
                    request.headers_mut().insert("x-retry", nth.into());
                }
                let answer = client.send(request, Millis::from_secs(5)).await;
                answer.is_ok_and(|answer| answer.status().is_success())
            })
        }),
    );
}

#[test]
fn a_signature_by_another_secret_does_not_hold() {
    check(
        Invariant::Identity,
        &sending(|life, client, id, body, _| {
            Box::pin(async move {
                let mut request = request(&life, &client, &id, body);
                request.headers_mut().insert("webhook-signature", "v1,AAAA".parse().unwrap());
                client.send(request, Millis::from_secs(5)).await.is_ok()
            })
        }),
    );
}

#[test]
fn a_timeout_that_is_taken_for_a_success_is_not_done() {
    check(
        Invariant::DoneMeansDone,
        &sending(|life, client, id, body, _| {
            Box::pin(async move {
                let request = request(&life, &client, &id, body);
                let answer = client.send(request, Millis::from_secs(5)).await;
                answer.map_or(true, |answer| answer.status().is_success())
            })
        }),
    );
}

#[test]
fn dialling_the_first_address_whatever_it_is_goes_where_it_must_not() {
    check(
        Invariant::Address,
        &sending(|life, client, id, body, _| {
            Box::pin(async move {
                let request = request(&life, &client, &id, body);
                let Ok(attempt) = client.resolve(&id).await else { return false };
                let to = attempt.addresses()[0];
                let answer = attempt.send(to, request, Millis::from_secs(5)).await;
                answer.is_ok_and(|answer| answer.status().is_success())
            })
        }),
    );
}

#[test]
fn what_was_delivered_does_not_wait_again() {
    check(
        Invariant::Terminal,
        &sending(|life, client, id, body, nth| {
            Box::pin(async move {
                if right(life.clone(), client, id.clone(), body, nth).await {
                    let _ = life.disk().commit(|queue| queue.deliver(&id)).await;
                    let back = |queue: &mut Queue| {
                        queue.attempts += 1;
                        queue.report.delivered.remove(&id);
                        queue.report.pending.insert(id.clone());
                    };
                    let _ = life.disk().commit(back).await;
                }
                false
            })
        }),
    );
}

#[test]
fn a_panic_of_the_sender_is_a_breakdown() {
    check(Invariant::Sound, &sending(|_, _, id, _, _| panic!("a panic at {id}")));
}

async fn all_at_once(life: Life<Queue>, client: Client) {
    let mut under_way = BTreeSet::new();
    loop {
        let queue = life.disk().read(Queue::clone).await;
        for id in queue.report.pending {
            if under_way.insert(id.clone()) {
                let body = queue.bodies[&id].clone();
                life.spawn(until_taken(life.clone(), client.clone(), id, body));
            }
        }
        life.sleep(Millis::new(100)).await;
    }
}

async fn until_taken(life: Life<Queue>, client: Client, id: String, body: Bytes) {
    loop {
        if let Ok(attempt) = client.resolve(&id).await
            && attempt.addresses().iter().all(|one| *one == client.receiver())
        {
            let to = attempt.addresses()[0];
            let request = request(&life, &client, &id, body.clone());
            let answer = attempt.send(to, request, Millis::from_secs(5)).await;
            let is_taken = answer.is_ok_and(|answer| answer.status().is_success());
            if is_taken && life.disk().commit(|queue| queue.deliver(&id)).await.is_ok() {
                return;
            }
        }
        life.sleep(Millis::from_secs(1)).await;
    }
}

#[test]
fn a_sender_that_judges_the_addresses_itself_and_sends_all_at_once_holds() {
    let report = |queue: &Queue| queue.report.clone();
    let held = Trial::new(all_at_once, accept, report).run(0..10);
    assert!(held.totals.effects > 20, "{held}");
}

#[test]
fn one_seed_is_one_history_and_another_seed_another() {
    for seed in [3, 4] {
        assert_eq!(sending(right).trace(seed), sending(right).trace(seed), "seed {seed}");
    }
    assert_ne!(sending(right).trace(3), sending(right).trace(4));
}

#[test]
fn what_cannot_be_run_is_refused_with_what_would_be_right() {
    let told = |trial: Trial, seeds| trial.try_run(seeds).expect_err("it cannot be").to_string();
    assert_eq!(told(sending(right), 5..5), "the seeds 5..5 are none; give 0..100");
    let scenario = Scenario { events: (0, 0), ..Scenario::default() };
    let scenario = told(sending(right).scenario(scenario), 0..1);
    assert!(scenario.starts_with("the scenario's `events` is [0, 0]; give two"), "{scenario}");
    // It gives each event up at once, which is an end, but not what is wanted in a calm.
    let gives_up: Sending = |life, _, id, _, _| {
        Box::pin(async move {
            let give_up = |queue: &mut Queue| {
                queue.report.pending.remove(&id);
                queue.report.dead.insert(id.clone());
            };
            let _ = life.disk().commit(give_up).await;
            false
        })
    };
    let calm = told(sending(gives_up), 0..1);
    assert!(calm.starts_with("nothing went wrong, and 0 of "), "{calm}");
}

#[test]
fn a_secret_of_ones_own_is_the_one_that_the_receiver_knows() {
    let secret = Secret::from_entropy([1, 2, 3, 4]);
    let held = sending(right).secret(secret).run(0..3);
    assert!(held.totals.delivered > 3, "{held}");
}
