//! The sender and the receiver as child processes, and how they are killed.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use hookproof_core::time::Millis;
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::board::Board;
use super::plan::{Kill, Side};
use crate::failure::Failure;

/// The longest wait for a process to listen.
const START_TIMEOUT: Millis = Millis::from_secs(30);
/// The longest wait for a process to end by itself.
const STOP_TIMEOUT: Millis = Millis::from_secs(5);

/// How a process is started, the first time and every other time.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// Which one it is.
    pub(super) side: Side,
    /// What comes after the name of this program.
    pub(super) arguments: Vec<OsString>,
    /// What it says on standard error is added here.
    pub(super) log: PathBuf,
}

/// A process that listens. It dies with this value, and with us.
#[derive(Debug)]
pub(super) struct Running {
    program: Program,
    child: Child,
    /// The process ends when this closes. It is not left in `child`, which closes it on each wait.
    stdin: ChildStdin,
    /// Kept, so that the other end does not break.
    _stdout: BufReader<ChildStdout>,
}

impl Program {
    /// Starts the process and waits until it listens.
    pub(super) async fn start(&self) -> Result<Running, Failure> {
        let cannot = |error: io::Error| {
            Failure::environment(
                format!("cannot start the {}: {error}", self.side.as_str()),
                "look at the limits on processes, memory and open files",
            )
        };
        let log = File::options().create(true).append(true).open(&self.log).map_err(cannot)?;
        let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
        command
            .args(&self.arguments)
            // It closes when we end, however we end, and then the process ends as well.
            .arg("--until-stdin-closes")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true);
        // Ctrl-C is for us; what becomes of the processes then is ours to say.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(cannot)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(cannot(io::ErrorKind::BrokenPipe.into()));
        };
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        match TokioHost.within(START_TIMEOUT, stdout.read_line(&mut line)).await {
            Some(Ok(length)) if length > 0 => {
                Ok(Running { program: self.clone(), child, stdin, _stdout: stdout })
            }
            Some(_) => Err(self.ended(child.wait().await.ok())),
            None => Err(Failure::environment(
                format!(
                    "the {} did not begin to listen within {START_TIMEOUT}",
                    self.side.as_str()
                ),
                self.last_words(),
            )),
        }
    }

    fn ended(&self, status: Option<ExitStatus>) -> Failure {
        let status = status.map_or_else(|| "unknown".to_owned(), |status| status.to_string());
        Failure::environment(
            format!("the {} ended by itself ({status})", self.side.as_str()),
            self.last_words(),
        )
    }

    fn last_words(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        match log.lines().rev().find(|line| line.starts_with("error:")).or(log.lines().last()) {
            Some(line) => format!("its log says: {line}"),
            None => "its log is empty".to_owned(),
        }
    }
}

impl Running {
    /// Makes the kills that are planned, each followed by a restart, then stays with the process
    /// until nothing is left to do.
    pub(super) async fn endure(mut self, kills: &[Kill], board: &Board) -> Result<Self, Failure> {
        for kill in kills {
            self.unless_ended(board.reached(self.program.side, kill.at)).await?;
            self.unless_ended(TokioHost.sleep(kill.delay)).await?;
            self.kill().await?;
            board.killed(self.program.side);
            TokioHost.sleep(kill.pause).await;
            if kill.holds {
                board.published().await;
            }
            self = self.program.start().await?;
        }
        self.unless_ended(board.is_drained()).await?;
        Ok(self)
    }

    /// Asks the process to end; kills it if it does not.
    pub(super) async fn stop(self) {
        let Self { mut child, stdin, .. } = self;
        drop(stdin);
        // Dropped after that, it is killed if it still lives.
        let _ = TokioHost.within(STOP_TIMEOUT, child.wait()).await;
    }

    async fn unless_ended(&mut self, other: impl Future<Output = ()>) -> Result<(), Failure> {
        tokio::select! {
            biased;
            status = self.child.wait() => Err(self.program.ended(status.ok())),
            () = other => Ok(()),
        }
    }

    /// SIGKILL: nothing is flushed, nothing is finished.
    async fn kill(&mut self) -> Result<(), Failure> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Err(self.program.ended(Some(status)));
        }
        self.child.kill().await.map_err(|error| {
            Failure::environment(
                format!("cannot kill the {}: {error}", self.program.side.as_str()),
                "it is a process of our own, so this should not happen",
            )
        })
    }
}
