//! Opening a database file: whose it is, who else has it, and which version it has.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hookproof_core::time::Timestamp;
use rusqlite::{Connection, OpenFlags};

use super::{DatabaseConfig, Durability, KeptClock};

/// What a kind of database looks like.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// What it is called in messages, for example `sender`.
    pub name: &'static str,
    /// SQLite's `application_id`, so that one kind is never opened as another.
    pub application_id: i32,
    /// In order; number `n` leads to `user_version` `n`, counted from 1.
    pub migrations: &'static [Migration],
}

/// One step of a schema, in SQL.
pub type Migration = &'static str;

/// Why a database could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// SQLite or the operating system refused.
    Refused {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The file belongs to another kind of database.
    Foreign {
        /// The file.
        path: PathBuf,
        /// What was expected.
        expected: &'static str,
    },
    /// Another process has it open.
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A newer version wrote it.
    Newer {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: usize,
        /// The newest version that is understood.
        known: usize,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { path, why } => write!(f, "cannot open {}: {why}", path.display()),
            Self::Foreign { path, expected } => write!(
                f,
                "{} is not a hookproof {expected} database; give another --database",
                path.display()
            ),
            Self::InUse { path } => write!(
                f,
                "{} is in use by another process; stop it, or give another --database",
                path.display()
            ),
            Self::Newer { path, found, known } => write!(
                f,
                "{} has schema version {found}, and this build knows versions up to {known}; use \
                 the newer build that wrote it",
                path.display()
            ),
        }
    }
}

impl std::error::Error for OpenError {}

/// An open database.
pub(super) struct Opened {
    pub(super) writer: Connection,
    pub(super) reader: Connection,
    pub(super) lock: File,
    /// The latest time at which it was written.
    pub(super) latest: Option<Timestamp>,
}

pub(super) fn open(config: &DatabaseConfig, schema: &Schema) -> Result<Opened, OpenError> {
    let path = &config.path;
    let refused =
        |why: &dyn fmt::Display| OpenError::Refused { path: path.clone(), why: why.to_string() };
    let lock = lock(path)?;
    let mut writer = Connection::open(path).map_err(|error| refused(&error))?;
    let found = version(&writer, path, schema)?;
    // Not sooner: this changes the file, which might have been somebody else's.
    prepare(&writer, config.durability).map_err(|error| refused(&error))?;
    migrate(&mut writer, found, schema).map_err(|error| refused(&error))?;
    let latest = KeptClock::read(&writer).map_err(|error| refused(&error))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let reader = Connection::open_with_flags(path, flags).map_err(|error| refused(&error))?;
    reader.busy_timeout(BUSY_TIMEOUT).map_err(|error| refused(&error))?;
    Ok(Opened { writer, reader, lock, latest })
}

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

fn lock(path: &Path) -> Result<File, OpenError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let refused = |why: String| OpenError::Refused { path: path.to_owned(), why };
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&name)
        .map_err(|error| refused(error.to_string()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(error)) => Err(refused(format!("cannot lock it: {error}"))),
    }
}

fn prepare(connection: &Connection, durability: Durability) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // SQLite answers with the mode that it took, which is another where it cannot have this one.
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if !mode.eq_ignore_ascii_case("wal") {
        let why = format!("the journal mode here is {mode}, and WAL cannot be had");
        return Err(rusqlite::Error::ToSqlConversionFailure(why.into()));
    }
    connection.pragma_update(None, "foreign_keys", true)?;
    let synchronous = match durability {
        Durability::PowerLoss => "FULL",
        Durability::ProcessEnd => "OFF",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// The version of a file that is ours to open; nothing is written for it.
fn version(connection: &Connection, path: &Path, schema: &Schema) -> Result<usize, OpenError> {
    let refused = |error: rusqlite::Error| OpenError::Refused {
        path: path.to_owned(),
        why: error.to_string(),
    };
    let pragma = |connection: &Connection, name: &str| {
        connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0)).map_err(refused)
    };
    let application_id = pragma(connection, "application_id")?;
    let version = pragma(connection, "user_version")?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(refused)?;
    let fresh = tables == 0 && application_id == 0 && version == 0;
    if !fresh && application_id != schema.application_id {
        return Err(OpenError::Foreign { path: path.to_owned(), expected: schema.name });
    }
    let found = usize::try_from(version).unwrap_or(usize::MAX);
    if found > schema.migrations.len() {
        let known = schema.migrations.len();
        return Err(OpenError::Newer { path: path.to_owned(), found, known });
    }
    Ok(found)
}

fn migrate(connection: &mut Connection, found: usize, schema: &Schema) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for migration in &schema.migrations[found..] {
        transaction.execute_batch(migration)?;
    }
    KeptClock::create(&transaction)?;
    transaction.pragma_update(None, "application_id", schema.application_id)?;
    let newest = i32::try_from(schema.migrations.len()).unwrap_or(i32::MAX);
    transaction.pragma_update(None, "user_version", newest)?;
    transaction.commit()
}
