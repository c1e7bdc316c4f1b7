//! Logs of the long-running commands: to standard error, structured, filtered by `RUST_LOG`.

use std::io;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

use crate::failure::Failure;
use crate::output::Paint;

/// How a log line looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// One line of text for each event.
    #[default]
    Text,
    /// One JSON object for each event.
    Json,
}

const FILTER: &str = "RUST_LOG";
const FILTER_DEFAULT: &str = "info";

/// Starts logging for the rest of the process.
pub(crate) fn start(format: LogFormat) -> Result<(), Failure> {
    let wanted = std::env::var(FILTER).unwrap_or_default();
    let directives = if wanted.trim().is_empty() { FILTER_DEFAULT } else { wanted.as_str() };
    let filter = EnvFilter::try_new(directives).map_err(|error| {
        Failure::usage(
            format!("the environment variable {FILTER}=\"{wanted}\" is not a log filter: {error}"),
            "give a level (error, warn, info, debug, trace), or one for each target, as in \
             hookproof_sender=debug,info",
        )
    })?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match format {
        LogFormat::Text => logs.with_ansi(Paint::of_stderr().is_on()).init(),
        LogFormat::Json => logs.json().with_ansi(false).init(),
    }
    Ok(())
}
