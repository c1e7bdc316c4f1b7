//! A sender that keeps each event on its disk until the receiver has taken it.
//!
//! `cargo run -p hookproof-sim --example right_sender` takes it through forty histories, and ends with
//! exit code 0.

pub(crate) mod signed;

use std::collections::BTreeMap;
use std::process::ExitCode;

use bytes::Bytes;
use hookproof_core::time::{Millis, Timestamp};
use hookproof_sim::sender::{Busy, Client, Event, Failure, Held, Life, Report, Trial};

/// The most attempts, and the longest wait for an answer and between two of them.
const ATTEMPTS_MAX: u32 = 30;
const TIMEOUT: Millis = Millis::from_secs(5);
const WAIT_MAX: Millis = Millis::from_secs(16);

/// The sender's one table: event id → row.
type Queue = BTreeMap<String, Row>;

#[derive(Clone)]
struct Row {
    body: Bytes,
    attempts: u32,
    place: Place,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Pending { due: Timestamp },
    Delivered,
    Dead,
}

/// Commits before it speaks. The event may have been published before, and then stays as it is.
async fn publish(life: Life<Queue>, event: Event) -> Result<(), Busy> {
    let row = Row { body: event.body, attempts: 0, place: Place::Pending { due: life.now() } };
    life.disk().commit(|queue| _ = queue.entry(event.id).or_insert(row)).await
}

async fn run(life: Life<Queue>, client: Client) {
    loop {
        let now = life.now();
        let is_due = |row: &Row| matches!(row.place, Place::Pending { due } if due <= now);
        let queue = life.disk().read(Queue::clone).await;
        for (id, row) in queue.into_iter().filter(|(_, row)| is_due(row)) {
            attempt(&life, &client, id, row).await;
        }
        life.sleep(Millis::new(200)).await;
    }
}

/// What came of an attempt is written over what is on the disk. If the process ends before that, or the
/// disk is busy, the event is still pending: it is sent again, and the receiver knows it by its id.
async fn attempt(life: &Life<Queue>, client: &Client, id: String, row: Row) {
    let request = signed::request(life, client, &id, row.body.clone());
    let answer = client.send(request, TIMEOUT).await;
    let attempts = row.attempts + 1;
    let place = match answer {
        Ok(answer) if answer.status().is_success() => Place::Delivered,
        _ if attempts >= ATTEMPTS_MAX => Place::Dead,
        _ => Place::Pending { due: life.now().plus(wait(attempts)) },
    };
    let next = Row { attempts, place, ..row };
    // The error is that the disk is busy.
    let _ = life.disk().commit(|queue| queue.insert(id, next)).await;
}

fn wait(attempts: u32) -> Millis {
    Millis::new(250 << attempts.min(10)).min(WAIT_MAX)
}

fn report(queue: &Queue) -> Report {
    let mut report = Report::default();
    for (id, row) in queue {
        let place = match row.place {
            Place::Pending { .. } => &mut report.pending,
            Place::Delivered => &mut report.delivered,
            Place::Dead => &mut report.dead,
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
