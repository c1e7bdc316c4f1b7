//! The command line of Hookproof: read the arguments, run the command, report how it went.

mod args;
mod commands;
mod config;
mod failure;
mod logging;
mod output;
mod serving;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use args::Cli;
use output::Output;

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| output::refuse(&error));
    let mut output = Output::stdout();
    let ended = cli.command.run(&mut output).and_then(|ending| {
        output.flush()?;
        Ok(ending)
    });
    match ended {
        Ok(ending) => ending.into(),
        Err(failure) => {
            // If standard error is gone too, the exit code is all that can be said.
            let _ = output::write_failure(&failure);
            failure.exit_code()
        }
    }
}
