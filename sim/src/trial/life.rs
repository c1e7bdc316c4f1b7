//! One life of a process on trial, and the disk that outlives it.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hookproof_core::secret::Secret;
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::host::Host as _;

use crate::wire::SimHost;

/// One life of the process, from its start to its crash: the machine as the program has it.
pub struct Life<S> {
    host: SimHost,
    disk: Disk<S>,
    secret: Secret,
}

impl<S> Clone for Life<S> {
    fn clone(&self) -> Self {
        Self { host: self.host.clone(), disk: self.disk.clone(), secret: self.secret.clone() }
    }
}

impl<S> Life<S> {
    pub(crate) fn new(host: SimHost, state: Arc<Mutex<S>>, secret: Secret) -> Self {
        Self { disk: Disk { host: host.clone(), state }, host, secret }
    }

    /// What survives a crash.
    #[must_use]
    pub fn disk(&self) -> &Disk<S> {
        &self.disk
    }

    /// The secret that sender and receiver share.
    #[must_use]
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// The clock that never goes back: for everything that waits.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.host.now()
    }

    /// The clock on the wall, which may be wrong and set: for the timestamps of signatures.
    #[must_use]
    pub fn wall(&self) -> Timestamp {
        self.host.wall()
    }

    /// 64 random bits.
    #[must_use]
    pub fn entropy(&self) -> u64 {
        self.host.entropy()
    }

    /// Starts a task that ends with the process. One that is started otherwise lives on for a moment
    /// after a crash.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.host.spawn(task);
    }

    /// Waits.
    pub async fn sleep(&self, span: Millis) {
        self.host.sleep(span).await;
    }

    /// A place at which the process may end: then this never returns, and no task of the process
    /// goes on. Without any, it may end when a request has arrived, before and after a commit to the
    /// [`Disk`], before and after an answer is written, and around what is sent.
    pub async fn crash_point(&self, name: &'static str) {
        self.host.says(format!("passes {name}"));
        self.host.passes_place(name).await;
    }
}

/// A disk: what is committed to it survives a crash, and nothing else does.
///
/// The state can be anything that lasts for a history. Where it is a handle to a store of your own,
/// a file of `SQLite` in a temporary folder for example, ask for that with [`Disk::read`] and commit
/// there; the crash points around a commit are then yours to place, with [`Life::crash_point`].
pub struct Disk<S> {
    host: SimHost,
    state: Arc<Mutex<S>>,
}

impl<S> Clone for Disk<S> {
    fn clone(&self) -> Self {
        Self { host: self.host.clone(), state: self.state.clone() }
    }
}

/// The disk refused a commit, as a database that is locked does; nothing is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the disk is busy: nothing is committed, try again or answer 503")
    }
}

impl std::error::Error for Busy {}

impl<S> Disk<S> {
    /// Reads what is committed. It takes a moment, in which other tasks go on.
    pub async fn read<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        self.host.sleep(self.host.disk_latency()).await;
        look(&lock(&self.state))
    }

    /// A serialisable transaction: all of `change` happens at once and stays, or nothing does. The
    /// process may end before it or after it.
    ///
    /// # Errors
    ///
    /// [`Busy`] if the disk refuses; `change` was not called.
    pub async fn commit<R>(&self, change: impl FnOnce(&mut S) -> R) -> Result<R, Busy> {
        let host = &self.host;
        host.at(CrashPoint::StoreExecuted).await;
        host.sleep(host.disk_latency().plus(host.commit_latency())).await;
        let result = if host.refuses_commit() {
            host.commit_failed();
            Err(Busy)
        } else {
            Ok(change(&mut lock(&self.state)))
        };
        host.at(CrashPoint::StoreCommitted).await;
        result
    }
}

pub(crate) fn lock<S>(state: &Mutex<S>) -> MutexGuard<'_, S> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
