//! What the commands share that serve until they are told to stop.

use std::future::{Future, pending};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use hookproof_runtime::database::{DatabaseConfig, Durability, OpenError};
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::failure::{Ending, Failure};
use crate::output::Output;

/// Runs `work` on a runtime of its own and leaves nothing of it behind.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| environment(format!("cannot start the runtime: {error}")))?;
    let result = runtime.block_on(work);
    // A thread that still reads standard input would hold up the end.
    runtime.shutdown_background();
    result
}

fn environment(error: String) -> Failure {
    Failure::environment(error, "look at the limits on processes, memory and open files")
}

/// Binds the socket.
pub(crate) async fn listen(on: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let failed = |error: io::Error| {
        Failure::environment(
            format!("cannot listen on {on}: {error}"),
            "stop what listens there, or give another --listen; port 0 takes a free one",
        )
    };
    let listener = TokioHost.listen(on).await.map_err(failed)?;
    let address = TokioHost::local_addr(&listener).map_err(failed)?;
    Ok((listener, address))
}

/// Where the database is; its commits survive a loss of power.
pub(crate) fn database(path: PathBuf) -> DatabaseConfig {
    DatabaseConfig { path, durability: Durability::PowerLoss }
}

/// What to do about a database that does not open.
pub(crate) fn unopened(error: &OpenError) -> Failure {
    let (what, help) = match error {
        OpenError::Refused { path, .. } => {
            (error.to_string(), format!("check {} and the rights on it", folder_of(path)))
        }
        OpenError::Foreign { path, expected } => (
            format!("{} is not a hookproof {expected} database", path.display()),
            "give another --database; a file that does not exist yet is created".to_owned(),
        ),
        OpenError::InUse { path } => (
            format!("{} is in use by another process", path.display()),
            "stop that process, or give another --database".to_owned(),
        ),
        OpenError::Newer { path, found, known } => (
            format!(
                "{} has schema version {found}, and this build knows versions up to {known}",
                path.display()
            ),
            "use the newer build that wrote it, or give another --database".to_owned(),
        ),
    };
    Failure::environment(what, help)
}

fn folder_of(path: &Path) -> String {
    match path.parent() {
        Some(parent) if parent != Path::new("") => format!("the folder {}", parent.display()),
        _ => "the current folder".to_owned(),
    }
}

/// Tells where it listens, in one line on standard output, for people and programs.
pub(crate) fn announce(output: &mut Output, address: SocketAddr) -> io::Result<()> {
    writeln!(output, "listening on http://{address}")?;
    output.flush()
}

/// Runs `server` until the first signal, or the end of standard input if `stdin_bound`, and then for
/// as long as it needs to come to a graceful end. The second signal ends it at once.
pub(crate) async fn serve<F: Future<Output = ()>>(
    stdin_bound: bool,
    server: impl FnOnce(Shutdown) -> F,
) -> Result<Ending, Failure> {
    let mut signals = Signals::new()?;
    let (stop, stopped) = oneshot::channel();
    let ask_and_watch = async {
        tokio::select! {
            biased;
            signal = signals.next() => {
                tracing::info!(signal, "ending; a second signal ends at once");
            }
            () = end_of_stdin(stdin_bound) => tracing::info!("standard input is closed; ending"),
        }
        // The server is gone already if nobody listens.
        let _ = stop.send(());
        signals.next().await
    };
    let shutdown = async {
        // It only ever ends by being asked.
        let _ = stopped.await;
    };
    tokio::select! {
        biased;
        () = server(Box::pin(shutdown)) => {
            tracing::info!("ended");
            Ok(Ending::AsItShould)
        }
        signal = ask_and_watch => Err(Failure::Interrupted(signal)),
    }
}

/// Resolves when a server is to end.
pub(crate) type Shutdown = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

async fn end_of_stdin(is_awaited: bool) {
    if !is_awaited {
        pending::<()>().await;
    }
    let mut stdin = tokio::io::stdin();
    let mut bytes = [0; 256];
    // What is said there is not listened to; an error ends it as the end of the file does.
    while stdin.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
}

/// The signals that ask a process to end.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// From now on, the signals do not end the process by themselves.
    pub(crate) fn new() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let failed = |error| environment(format!("cannot listen for signals: {error}"));
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
        })
    }

    /// Waits for the next one, and tells its number.
    pub(crate) async fn next(&mut self) -> u8 {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => 2,
            _ = self.terminate.recv() => 15,
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    /// From now on, Ctrl-C does not end the process by itself.
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Self {})
    }

    /// Waits for the next one, and tells its number.
    #[expect(clippy::disallowed_methods, reason = "the command line is what listens for signals")]
    pub(crate) async fn next(&mut self) -> u8 {
        if tokio::signal::ctrl_c().await.is_err() {
            pending::<()>().await;
        }
        2
    }
}
