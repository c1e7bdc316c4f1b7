//! `hookproof address`: whether requests may go somewhere, and by which row of which registry.

use std::io;

use clap::Args as ClapArgs;
use hookproof_core::address::{AddressPolicy, Cidr, HostPattern, Judgement};
use serde::Serialize;

use crate::args::Format;
use crate::failure::{EXIT_CODES, Ending, Failure};
use crate::output::Output;
use crate::output::table::{Column, Table};

/// What a target takes of a line, at most.
const TARGET_WIDTH_MAX: usize = 40;
/// What a word of the reason takes of a line, at most.
const WORD_WIDTH_MAX: usize = 45;

/// What `hookproof address` takes.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// URLs, host names or IP addresses; a name is judged as a name and never looked up
    #[arg(value_name = "TARGET", required = true)]
    targets: Vec<String>,

    /// Allow this block of addresses, too, as 10.0.0.0/8; may be repeated
    #[arg(long, value_name = "BLOCK")]
    allow_cidr: Vec<Cidr>,

    /// Deny this block of addresses, whatever else holds; may be repeated
    #[arg(long, value_name = "BLOCK")]
    deny_cidr: Vec<Cidr>,

    /// Allow this name, wherever it leads, or all below it: *.internal; may be repeated
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<HostPattern>,

    /// Allow this machine itself, too: 127.0.0.0/8, ::1 and localhost
    #[arg(long)]
    allow_loopback: bool,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A target and what was decided about it.
#[derive(Serialize)]
struct Judged {
    target: String,
    #[serde(flatten)]
    judgement: Judgement,
}

/// Judges each target and prints the judgements.
pub(crate) fn run(args: Args, output: &mut Output) -> Result<Ending, Failure> {
    let Args { targets, allow_cidr, deny_cidr, allow_host, allow_loopback, format } = args;
    let mut policy = AddressPolicy {
        allow_cidrs: allow_cidr,
        deny_cidrs: deny_cidr,
        allow_hosts: allow_host,
        ..AddressPolicy::default()
    };
    if allow_loopback {
        policy = policy.with_loopback();
    }
    let judged: Vec<_> = targets.into_iter().map(|target| judge(&policy, target)).collect();
    match format {
        Format::Table => print(&judged, output)?,
        Format::Json => output.json(&judged)?,
    }
    let is_all_allowed = judged.iter().all(|judged| judged.judgement.allowed);
    Ok(if is_all_allowed { Ending::AsItShould } else { Ending::Found })
}

fn judge(policy: &AddressPolicy, target: String) -> Judged {
    let judgement = if target.contains("://") {
        policy.judge_url(&target).map_or_else(|denied| denied, |(_, allowed)| allowed)
    } else {
        policy.judge_text(&target)
    };
    Judged { target, judgement }
}

fn print(judged: &[Judged], output: &mut Output) -> io::Result<()> {
    let mut table =
        Table::new([Column::left("target"), Column::left("verdict"), Column::left("why")]);
    for Judged { target, judgement } in judged {
        let verdict = if judgement.allowed { "allowed" } else { "denied" };
        let why = judgement.why();
        let words: Vec<_> = why.split(' ').map(|word| shortened(word, WORD_WIDTH_MAX)).collect();
        let target = shortened(&target.escape_debug().to_string(), TARGET_WIDTH_MAX);
        table.row([target, verdict.to_owned(), words.join(" ")]);
    }
    let paint = output.paint;
    table.write(output, paint)
}

/// The text, or so much of it as fits.
fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}
