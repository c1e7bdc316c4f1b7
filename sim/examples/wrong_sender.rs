//! A popular mistake: what is being sent is marked so, and nobody looks for it after a crash.
//!
//! `cargo run -p hookproof-sim --example wrong_sender` shows how an event is forgotten, and ends with
//! exit code 1.

mod signed;

use std::collections::BTreeMap;
use std::process::ExitCode;

use bytes::Bytes;
use hookproof_core::time::Millis;
use hookproof_sim::sender::{Busy, Client, Event, Failure, Held, Life, Report, Trial};

/// Event id → row.
type Queue = BTreeMap<String, Row>;

struct Row {
    body: Bytes,
    place: Place,
}

#[derive(PartialEq)]
enum Place {
    Pending,
    Sending,
    Delivered,
}

async fn publish(life: Life<Queue>, event: Event) -> Result<(), Busy> {
    let row = Row { body: event.body, place: Place::Pending };
    life.disk().commit(|queue| _ = queue.entry(event.id).or_insert(row)).await
}

async fn run(life: Life<Queue>, client: Client) {
    loop {
        // Nobody else is to send what this process sends.
        if let Ok(Some((id, body))) = life.disk().commit(take).await {
            let request = signed::request(&life, &client, &id, body);
            let answer = client.send(request, Millis::from_secs(5)).await;
            let is_taken = answer.is_ok_and(|answer| answer.status().is_success());
            // After a crash before this, who looks for what is being sent?
            while life.disk().commit(|queue| settle(queue, &id, is_taken)).await.is_err() {}
        }
        life.sleep(Millis::new(500)).await;
    }
}

fn take(queue: &mut Queue) -> Option<(String, Bytes)> {
    let (id, row) = queue.iter_mut().find(|(_, row)| row.place == Place::Pending)?;
    row.place = Place::Sending;
    Some((id.clone(), row.body.clone()))
}

fn settle(queue: &mut Queue, id: &str, is_taken: bool) {
    if let Some(row) = queue.get_mut(id) {
        row.place = if is_taken { Place::Delivered } else { Place::Pending };
    }
}

fn report(queue: &Queue) -> Report {
    let mut report = Report::default();
    for (id, row) in queue {
        let place = match row.place {
            Place::Pending | Place::Sending => &mut report.pending,
            Place::Delivered => &mut report.delivered,
        };
        place.insert(id.clone());
    }
    report
}

/// Puts the sender on trial.
pub(crate) fn verdict() -> Result<Held, Failure> {
    Trial::new(run, publish, report).try_run(0..40)
}

#[expect(clippy::print_stdout, reason = "an example shows what it found")]
pub(crate) fn main() -> ExitCode {
    match verdict() {
        Ok(held) => {
            println!("{held}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
    }
}
