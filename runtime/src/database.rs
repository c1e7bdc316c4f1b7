//! SQLite behind one writer that commits in groups.
//!
//! WAL, `synchronous=FULL`. Operations queue up, bounded; the writer takes what waits, executes it
//! in one transaction, each operation in a savepoint of its own, commits, and only then answers. An
//! answer therefore means that the operation is durable. Reads run beside it on a connection of
//! their own, each in one snapshot.

mod group;
mod kept_clock;
mod open;

use std::fmt;
use std::path::PathBuf;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::host::Host;
use group::Job;
use kept_clock::KeptClock;

pub use open::{Migration, OpenError, Schema};

/// The most operations that wait for the writer; further ones wait to be queued.
const QUEUE_MAX: usize = 1024;

/// Where a database is and how it is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DatabaseConfig {
    /// The file. Beside it stand `-wal`, `-shm` and `.lock`.
    pub path: PathBuf,
    /// What a commit survives.
    pub durability: Durability,
}

/// What a commit survives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// Loss of power: each commit is synced to the disk.
    #[default]
    PowerLoss,
    /// The end of the process, but not loss of power. For simulations, which model the former only.
    ProcessEnd,
}

/// Why an operation was not done.
#[derive(Debug)]
pub enum StoreError {
    /// SQLite refused; nothing of the operation is stored.
    Sqlite(rusqlite::Error),
    /// The group that held the operation was not committed; nothing of it is stored.
    NotCommitted(String),
    /// What is stored cannot be understood.
    Corrupt(String),
    /// The store has ended.
    Closed,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(error) => write!(f, "the store refused: {error}"),
            Self::NotCommitted(why) => write!(f, "the store could not commit: {why}"),
            Self::Corrupt(what) => write!(f, "the store holds what cannot be understood: {what}"),
            Self::Closed => f.write_str("the store has ended"),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// A handle to an open database; cheap to clone. The last one dropped ends the writer.
#[derive(Clone, Debug)]
pub struct Database {
    writer: mpsc::Sender<Job>,
    reader: mpsc::Sender<Job>,
}

impl Database {
    /// Opens a database, creates or migrates its schema, and starts its writer and reader. From then on
    /// the host's time is not before the latest at which the database was written, to a second.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if the file cannot be opened, belongs to something else, is in use, or was
    /// written by a newer version.
    pub fn open<H: Host>(
        host: &H,
        config: &DatabaseConfig,
        schema: &Schema,
    ) -> Result<Self, OpenError> {
        let opened = open::open(config, schema)?;
        if let Some(latest) = opened.latest {
            host.not_before(latest);
        }
        let (writer, writes) = mpsc::channel(QUEUE_MAX);
        let (reader, reads) = mpsc::channel(QUEUE_MAX);
        group::start_writer(host, opened.writer, opened.lock, writes)?;
        group::start_reader(host, opened.reader, reads)?;
        Ok(Self { writer, reader })
    }

    /// Executes `operation` in a transaction and answers once that is committed.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; nothing of the operation is stored then.
    pub async fn write<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        submit(&self.writer, operation).await
    }

    /// Executes `operation` on one snapshot of what is committed.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn read<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        submit(&self.reader, operation).await
    }
}

async fn submit<T: Send + 'static>(
    queue: &mpsc::Sender<Job>,
    operation: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let (answer, answered) = oneshot::channel();
    let job = Job::new(operation, answer);
    queue.send(job).await.map_err(|_| StoreError::Closed)?;
    answered.await.map_err(|_| StoreError::Closed)?
}
