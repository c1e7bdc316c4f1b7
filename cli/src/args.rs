//! The command line: what can be said, checked as far as it can be without looking around.

use std::net::SocketAddr;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, ValueEnum};
use hookproof_core::time::Timestamp;

use crate::commands::Command;
use crate::failure::EXIT_CODES;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Proves that webhooks are delivered: no accepted event is lost, and each effect happens exactly
/// once.
#[derive(Parser, Debug)]
#[command(
    name = "hookproof",
    version,
    styles = STYLES,
    max_term_width = 100,
    after_help = EXIT_CODES,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How a result is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
}

/// An instant as it is given: fixed, or that of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Instant {
    /// `now`
    Now,
    /// A date and time.
    At(Timestamp),
}

/// Reads `now` or an RFC 3339 date and time.
pub(crate) fn instant(text: &str) -> Result<Instant, String> {
    if text == "now" {
        return Ok(Instant::Now);
    }
    let at: jiff::Timestamp = text.parse().map_err(|_| {
        "write a date, a time and an offset as RFC 3339 has them, before 9999-12-30, as in \
         2026-01-01T00:00:00Z, or now"
            .to_owned()
    })?;
    Ok(Instant::At(Timestamp::from_millis(at.as_millisecond())))
}

/// Reads an address to listen on.
pub(crate) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "write an IP address and a port, as in 127.0.0.1:8071 or [::1]:8071 (port 0 takes a free \
         one)"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_instant_needs_an_offset_or_is_now() {
        assert_eq!(instant("now"), Ok(Instant::Now));
        let at = |ms| Ok(Instant::At(Timestamp::from_millis(ms)));
        assert_eq!(instant("1970-01-01T00:00:01Z"), at(1000));
        assert_eq!(instant("1970-01-01T01:00:00.250+01:00"), at(250));
        for wrong in ["", "2026-01-01", "2026-01-01T00:00:00", "tomorrow"] {
            assert!(instant(wrong).is_err(), "{wrong}");
        }
    }
}
