//! Group commit: what waits goes into one transaction, and is answered after its commit.

use std::fs::File;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hookproof_core::time::{Millis, Timestamp};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::{KeptClock, OpenError, StoreError};
use crate::crash_point::CrashPoint;
use crate::host::Host;

/// The most operations in one transaction: it bounds how long the first of them waits.
const GROUP_MAX: usize = 256;

type Answer = Box<dyn FnOnce(Result<(), &str>) + Send>;

type Operation = dyn FnOnce(Option<&Connection>) -> Result<Answer, Answer> + Send;

/// An operation with the way to answer it. Given no connection it is not executed at all.
pub(super) struct Job(Box<Operation>);

impl Job {
    pub(super) fn new<T: Send + 'static>(
        operation: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
        answer: oneshot::Sender<Result<T, StoreError>>,
    ) -> Self {
        Self(Box::new(move |connection| {
            let result = connection.map_or(Err(StoreError::Closed), |c| guarded(c, operation));
            let undo = result.is_err();
            let reply: Answer = Box::new(move |group| {
                let result = match group {
                    Ok(()) => result,
                    Err(why) => Err(StoreError::NotCommitted(why.to_owned())),
                };
                // Nobody waits any more if the caller was given up; the operation stands.
                let _ = answer.send(result);
            });
            if undo { Err(reply) } else { Ok(reply) }
        }))
    }

    /// Executes the operation. It yields the answer to give once the group's fate is known; `Err`
    /// asks for the operation to be undone first.
    fn execute(self, connection: &Connection) -> Result<Answer, Answer> {
        (self.0)(Some(connection))
    }

    /// The answer of an operation that was not executed because its group failed.
    fn skip(self) -> Answer {
        match (self.0)(None) {
            Ok(answer) | Err(answer) => answer,
        }
    }
}

/// An operation that panics is one that failed: the writer and everybody else's operations go on.
fn guarded<T>(
    connection: &Connection,
    operation: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(|| operation(connection))).unwrap_or_else(|_panic| {
        tracing::error!("an operation of the store panicked; it is undone");
        Err(StoreError::NotCommitted("the operation panicked, and was undone".to_owned()))
    })
}

/// The writer: a thread in production, a task of the host in simulation. It holds the lock on the
/// file for as long as it can write.
pub(super) fn start_writer<H: Host>(
    host: &H,
    connection: Connection,
    lock: File,
    mut jobs: mpsc::Receiver<Job>,
) -> Result<(), OpenError> {
    if H::SIMULATED {
        let task = write_inline(host.clone(), connection, jobs);
        host.spawn(async move {
            task.await;
            drop(lock);
        });
        return Ok(());
    }
    let host = host.clone();
    start_thread("hookproof-writer", move || {
        let mut clock = KeptClock::default();
        while let Some(first) = jobs.blocking_recv() {
            let group = collect(first, &mut jobs);
            let executed = execute(&connection, group);
            let now = host.now();
            let committed =
                executed.and_then(|answers| commit(&connection, &mut clock, now, answers));
            answer(committed);
        }
        drop(lock);
    })
}

/// The reader: each operation sees one snapshot.
pub(super) fn start_reader<H: Host>(
    host: &H,
    connection: Connection,
    mut jobs: mpsc::Receiver<Job>,
) -> Result<(), OpenError> {
    let read = |connection: &Connection, job: Job| {
        let begun = connection.execute_batch("BEGIN DEFERRED").map_err(|error| error.to_string());
        let reply = match job.execute(connection) {
            Ok(reply) | Err(reply) => reply,
        };
        if begun.is_ok() {
            // A read leaves nothing to commit; ROLLBACK ends the snapshot either way.
            let _ = connection.execute_batch("ROLLBACK");
        }
        match &begun {
            Ok(()) => reply(Ok(())),
            Err(why) => reply(Err(why)),
        }
    };
    if H::SIMULATED {
        host.spawn(async move {
            while let Some(job) = jobs.recv().await {
                read(&connection, job);
            }
        });
        return Ok(());
    }
    start_thread("hookproof-reader", move || {
        while let Some(job) = jobs.blocking_recv() {
            read(&connection, job);
        }
    })
}

#[expect(clippy::disallowed_methods, reason = "a production store runs on threads of its own")]
fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), OpenError> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop).map_err(|error| {
        OpenError::Refused { path: name.into(), why: format!("cannot start its thread: {error}") }
    })
}

/// The same steps as on the thread, with the crash points in between and the latency of a slow disk.
async fn write_inline<H: Host>(host: H, connection: Connection, mut jobs: mpsc::Receiver<Job>) {
    let mut clock = KeptClock::default();
    while let Some(first) = jobs.recv().await {
        let group = collect(first, &mut jobs);
        let executed = execute(&connection, group);
        if host.has_ended() {
            pending::<()>().await;
        }
        host.at(CrashPoint::StoreExecuted).await;
        let latency = host.commit_latency();
        if latency > Millis::ZERO {
            host.sleep(latency).await;
        }
        let committed = executed.and_then(|answers| {
            if host.refuses_commit() {
                refuse(&connection, answers)
            } else {
                commit(&connection, &mut clock, host.now(), answers)
            }
        });
        if committed.is_err() {
            host.commit_failed();
        }
        host.at(CrashPoint::StoreCommitted).await;
        answer(committed);
    }
}

fn collect(first: Job, jobs: &mut mpsc::Receiver<Job>) -> Vec<Job> {
    let mut group = vec![first];
    while group.len() < GROUP_MAX
        && let Ok(job) = jobs.try_recv()
    {
        group.push(job);
    }
    group
}

/// The answers of a group, or those answers with the reason why nothing of it is stored.
type Executed = Result<Vec<Answer>, (Vec<Answer>, String)>;

fn execute(connection: &Connection, group: Vec<Job>) -> Executed {
    let mut answers = Vec::with_capacity(group.len());
    let mut failed =
        connection.execute_batch("BEGIN IMMEDIATE").err().map(|error| error.to_string());
    for job in group {
        if failed.is_some() {
            answers.push(job.skip());
            continue;
        }
        match in_savepoint(connection, job) {
            Ok(answer) => answers.push(answer),
            Err((answer, error)) => {
                answers.push(answer);
                failed = Some(error.to_string());
                // If this fails too, the next BEGIN will, and will say so.
                let _ = connection.execute_batch("ROLLBACK");
            }
        }
    }
    match failed {
        None => Ok(answers),
        Some(why) => Err((answers, why)),
    }
}

fn in_savepoint(connection: &Connection, job: Job) -> Result<Answer, (Answer, rusqlite::Error)> {
    let opened = connection.execute_batch("SAVEPOINT operation");
    match job.execute(connection) {
        Ok(answer) => match opened.and_then(|()| connection.execute_batch("RELEASE operation")) {
            Ok(()) => Ok(answer),
            Err(error) => Err((answer, error)),
        },
        Err(answer) => match connection.execute_batch("ROLLBACK TO operation; RELEASE operation") {
            Ok(()) => Ok(answer),
            Err(error) => Err((answer, error)),
        },
    }
}

fn commit(
    connection: &Connection,
    clock: &mut KeptClock,
    now: Timestamp,
    answers: Vec<Answer>,
) -> Executed {
    let kept = clock.keep(connection, now);
    match kept.and_then(|kept| connection.execute_batch("COMMIT").map(|()| kept)) {
        Ok(kept) => {
            *clock = kept;
            Ok(answers)
        }
        Err(error) => {
            let _ = connection.execute_batch("ROLLBACK");
            Err((answers, error.to_string()))
        }
    }
}

/// What becomes of a group whose commit is refused.
fn refuse(connection: &Connection, answers: Vec<Answer>) -> Executed {
    // If this fails, the next BEGIN will, and will say so.
    let _ = connection.execute_batch("ROLLBACK");
    Err((answers, "the database is busy".to_owned()))
}

fn answer(executed: Executed) {
    match executed {
        Ok(answers) => answers.into_iter().for_each(|answer| answer(Ok(()))),
        Err((answers, why)) => answers.into_iter().for_each(|answer| answer(Err(&why))),
    }
}
