//! How a command ends, and what its exit code says.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// What the exit codes mean, as `--help` tells it.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  it went as it should
  1  the run found what it must not find
  2  the command line or a file given to it is wrong
  3  something around it failed: a port, a database, a child process
  128 + n  signal n ended it (130: Ctrl-C)";

/// How alike two names must be for one to be meant by the other (1: the same).
const LIKENESS_MIN: f64 = 0.7;

/// How a command ended that could do its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// Nothing is wrong.
    AsItShould,
    /// The run found what it must not find; what it was stands in the output.
    Found,
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::AsItShould => Self::SUCCESS,
            Ending::Found => Self::from(1),
        }
    }
}

/// Why a command could not do its work, by whose fault that is.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The run itself found what it must not find, and cannot go on.
    Found(Message),
    /// The command line, or a file that it names.
    Usage(Message),
    /// What is around us: the operating system, the disk, a child process.
    Environment(Message),
    /// The output could not be written.
    Output(io::Error),
    /// A signal of this number asked for the end.
    Interrupted(u8),
}

/// What was wrong and where, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Message {
    pub(crate) error: String,
    pub(crate) help: Option<String>,
}

impl Message {
    fn new(error: impl fmt::Display, help: impl fmt::Display) -> Self {
        Self { error: error.to_string(), help: Some(help.to_string()) }
    }
}

impl Failure {
    /// A mistake in the command line or in a file that it names.
    pub(crate) fn usage(error: impl fmt::Display, help: impl fmt::Display) -> Self {
        Self::Usage(Message::new(error, help))
    }

    /// A name that is none of those there are. `kind` is what is named, as in `schedule`.
    pub(crate) fn unknown<S: AsRef<str>>(kind: &str, name: &str, known: &[S]) -> Self {
        let known: Vec<&str> = known.iter().map(S::as_ref).collect();
        let nearest = known
            .iter()
            .map(|known| (strsim::jaro_winkler(known, &name.to_lowercase()), known))
            .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
            .max_by(|(a, _), (b, _)| a.total_cmp(b));
        let guess = nearest.map_or(String::new(), |(_, known)| format!("did you mean {known}? "));
        let (_, plural) = kind.rsplit_once(' ').unwrap_or(("", kind));
        Self::usage(
            format!("there is no {kind} \"{}\"", name.escape_debug()),
            format!("{guess}The {plural}s are {}", known.join(", ")),
        )
    }

    /// A fault of what is around us.
    pub(crate) fn environment(error: impl fmt::Display, help: impl fmt::Display) -> Self {
        Self::Environment(Message::new(error, help))
    }

    /// Something that must not be found, which ends the run.
    pub(crate) fn found(error: impl fmt::Display, help: impl fmt::Display) -> Self {
        Self::Found(Message::new(error, help))
    }

    /// The exit code that tells this failure from others.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Found(_) => ExitCode::from(1),
            Self::Usage(_) => ExitCode::from(2),
            Self::Environment(_) | Self::Output(_) => ExitCode::from(3),
            Self::Interrupted(signal) => ExitCode::from(signal.saturating_add(128)),
        }
    }

    /// What to print; nothing for a signal, whose sender knows.
    pub(crate) fn message(&self) -> Option<Message> {
        match self {
            Self::Found(message) | Self::Usage(message) | Self::Environment(message) => {
                Some(message.clone())
            }
            Self::Output(error) => {
                Some(Message { error: format!("cannot write the output: {error}"), help: None })
            }
            Self::Interrupted(_) => None,
        }
    }
}

impl From<io::Error> for Failure {
    /// For what is written to standard output; everything else knows better what failed.
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
