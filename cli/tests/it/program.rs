//! The real binary, run as a user runs it.

use std::io::Write as _;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// How a run went.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
        }
    }
}

impl std::fmt::Display for Ran {
    /// All that a user sees, for snapshots.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let code = self.code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
        writeln!(f, "exit code: {code}")?;
        for (name, text) in [("standard output", &self.stdout), ("standard error", &self.stderr)] {
            if !text.is_empty() {
                write!(f, "--- {name}\n{text}")?;
            }
        }
        Ok(())
    }
}

/// The program with these arguments, in an environment that says nothing about colour or logs.
pub(crate) fn hookproof(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hookproof"));
    command.args(arguments).env_remove("RUST_LOG").env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

/// Runs the program to its end, with nothing to read.
pub(crate) fn run(arguments: &[&str]) -> Ran {
    hookproof(arguments).output().expect("the program can be run").into()
}

/// Runs the program to its end, with this to read.
pub(crate) fn run_with_input(arguments: &[&str], input: &str) -> Ran {
    let mut child = hookproof(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be run");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    stdin.write_all(input.as_bytes()).expect("the program reads");
    drop(stdin);
    child.wait_with_output().expect("the program ends").into()
}

/// Sends a signal by its name.
#[cfg(unix)]
pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("sh")
        .args(["-c", &format!("kill -{name} {}", child.id())])
        .status()
        .expect("there is a shell");
    assert!(sent.success(), "kill -{name} {}", child.id());
}

/// The exit status of a program that is about to end.
pub(crate) fn ended(child: &mut Child) -> ExitStatus {
    let mut status = None;
    eventually("the program ends", || {
        status = child.try_wait().expect("the program is a child");
        status.is_some()
    });
    status.expect("it has ended")
}

/// Waits for something that takes a moment.
#[expect(clippy::disallowed_methods, reason = "another process is waited for, in real time")]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
