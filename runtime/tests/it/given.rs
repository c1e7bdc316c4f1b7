//! What the tests start from: databases, connections, and patience.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc;

use hookproof_core::time::Millis;
use hookproof_runtime::database::{
    Database, DatabaseConfig, Durability, OpenError, Schema, StoreError,
};
use hookproof_runtime::host::Host;
use hookproof_runtime::tokio_host::TokioHost;
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

pub(crate) const HOST: TokioHost = TokioHost;

/// How long a test waits for what must happen. None is meant to come near it.
const PATIENCE: Millis = Millis::from_secs(20);

/// What `work` results in; it must do so in time.
pub(crate) async fn soon<T: Send>(what: &str, work: impl Future<Output = T> + Send) -> T {
    match HOST.within(PATIENCE, work).await {
        Some(result) => result,
        None => panic!("{what}: not within {PATIENCE}"),
    }
}

/// Looks again and again until `look` finds something.
pub(crate) async fn eventually<T: Send>(
    what: &str,
    mut look: impl FnMut() -> Option<T> + Send,
) -> T {
    let found = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            HOST.sleep(Millis::new(5)).await;
        }
    };
    soon(what, found).await
}

/// Lets every task that is ready have its turn.
pub(crate) async fn pause() {
    HOST.sleep(Millis::new(20)).await;
}

/// Starts `work` as a task, and gives its result to whoever waits.
pub(crate) fn start<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> oneshot::Receiver<T> {
    let (tell, told) = oneshot::channel();
    HOST.spawn(async move {
        let _ = tell.send(work.await);
    });
    told
}

/// The result of started work.
pub(crate) async fn result<T: Send>(started: oneshot::Receiver<T>) -> T {
    soon("started work", started).await.expect("it does not panic")
}

/// One table, `notes`, with a number and a text.
pub(crate) const NOTES: Schema = Schema {
    name: "notes",
    application_id: 0x6e6f_7465,
    migrations: &["CREATE TABLE notes (n INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;"],
};

/// A directory for one database.
pub(crate) struct Home {
    directory: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { directory: TempDir::new().expect("a temporary directory") }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("notes.db")
    }

    pub(crate) fn config(&self) -> DatabaseConfig {
        DatabaseConfig { path: self.path(), durability: Durability::PowerLoss }
    }

    pub(crate) fn notes(&self) -> Database {
        Database::open(&HOST, &self.config(), &NOTES).expect("a database")
    }

    /// Opens the database, or fails to, once nobody else has it: whoever had it before may still be
    /// letting go of it.
    pub(crate) async fn reopen(&self, schema: &Schema) -> Result<Database, OpenError> {
        eventually("the file is free", || match Database::open(&HOST, &self.config(), schema) {
            Err(OpenError::InUse { .. }) => None,
            opened => Some(opened),
        })
        .await
    }

    /// A connection beside those of the database.
    pub(crate) fn beside(&self) -> Connection {
        Connection::open(self.path()).expect("the file opens")
    }

    /// The numbers in `notes` that are committed.
    pub(crate) fn numbers(&self) -> Vec<i64> {
        let connection = self.beside();
        let mut statement = connection.prepare("SELECT n FROM notes ORDER BY n").expect("SQL");
        let rows = statement.query_map([], |row| row.get(0)).expect("rows");
        rows.map(|n| n.expect("a number")).collect()
    }
}

/// An operation that stores a number.
pub(crate) fn note(n: i64) -> impl FnOnce(&Connection) -> Result<(), StoreError> + Send + 'static {
    move |connection| {
        connection.execute("INSERT INTO notes VALUES (?1, 'as asked')", [n])?;
        Ok(())
    }
}

/// An operation that says when it has begun, and goes on when it is told to.
pub(crate) struct Hold {
    go_on: mpsc::Sender<()>,
    began: Option<oneshot::Receiver<()>>,
}

impl Hold {
    pub(crate) fn new<T>(
        then: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> (Self, impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static) {
        let (go_on, wait) = mpsc::channel();
        let (begin, began) = oneshot::channel();
        let operation = move |connection: &Connection| {
            let _ = begin.send(());
            let _ = wait.recv();
            then(connection)
        };
        (Self { go_on, began: Some(began) }, operation)
    }

    /// Holds the writer up, so that what comes next waits in its queue.
    pub(crate) async fn writer(database: &Database) -> Self {
        let (mut hold, operation) = Self::new(|_| Ok(()));
        let database = database.clone();
        start(async move { database.write(operation).await });
        hold.began().await;
        hold
    }

    pub(crate) async fn began(&mut self) {
        let began = self.began.take().expect("it is asked once");
        soon("the operation begins", began).await.expect("it is executed");
    }

    pub(crate) fn go_on(self) {
        self.go_on.send(()).expect("it waits");
    }
}

/// Gives each connection to `serve`.
pub(crate) async fn accepting<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut listener = HOST.listen(LOOPBACK).await.expect("a port");
    let address = TokioHost::local_addr(&listener).expect("its number");
    HOST.spawn(async move {
        while let Ok((stream, _)) = HOST.accept(&mut listener).await {
            HOST.spawn(serve(stream));
        }
    });
    address
}

pub(crate) const LOOPBACK: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// A connection that speaks bytes.
pub(crate) struct Wire(TcpStream);

impl Wire {
    pub(crate) async fn to(address: SocketAddr) -> Self {
        Self(HOST.connect(address).await.expect("a connection"))
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.expect("it is written");
    }

    /// What arrives until a text that ends so.
    pub(crate) async fn hear(&mut self, end: &str) -> String {
        let mut heard = Vec::new();
        while !heard.ends_with(end.as_bytes()) {
            let count = soon("something arrives", self.0.read_buf(&mut heard)).await;
            let so_far = String::from_utf8_lossy(&heard);
            assert_ne!(count.expect("it is readable"), 0, "the end comes after `{so_far}`");
        }
        String::from_utf8(heard).expect("UTF-8")
    }

    /// What arrives until the other side closes or resets.
    pub(crate) async fn hear_all(&mut self) -> String {
        let mut heard = Vec::new();
        while let Ok(1..) = soon("the end", self.0.read_buf(&mut heard)).await {}
        String::from_utf8(heard).expect("UTF-8")
    }
}
