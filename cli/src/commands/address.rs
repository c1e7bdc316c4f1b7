//! `hookproof address`: whether requests may go somewhere, and by which row of which registry.

use std::io;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use hookproof_core::address::url::Scheme;
use hookproof_core::address::{AddressPolicy, Cidr, HostPattern, Judgement};
use serde::Serialize;

use super::send;

use crate::args::Format;
use crate::failure::{EXIT_CODES, Ending, Failure};
use crate::output::table::{Column, Table};
use crate::output::{Output, shortened};

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

    /// Judge as `hookproof send` would with this file; what is given here adds to its lists, and
    /// --scheme and --port take the place of its own
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Let URLs have this scheme only, http or https; may be repeated [default: both]
    #[arg(long, value_name = "SCHEME", value_parser = scheme)]
    scheme: Vec<Scheme>,

    /// Let URLs have this port only; may be repeated [default: any]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Vec<u16>,

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

fn scheme(text: &str) -> Result<Scheme, String> {
    text.parse().map_err(|_| "write http or https".to_owned())
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
    let policy = policy(&args)?;
    let judged: Vec<_> = args.targets.into_iter().map(|target| judge(&policy, target)).collect();
    match args.format {
        Format::Table => print(&judged, output)?,
        Format::Json => output.json(&judged)?,
    }
    let is_all_allowed = judged.iter().all(|judged| judged.judgement.allowed);
    Ok(if is_all_allowed { Ending::AsItShould } else { Ending::Found })
}

/// What the file says, else the default, and what is given beside it.
fn policy(args: &Args) -> Result<AddressPolicy, Failure> {
    let mut policy = match &args.config {
        Some(path) => send::configured(path)?.address,
        None => AddressPolicy::default(),
    };
    policy.allow_cidrs.extend(&args.allow_cidr);
    policy.deny_cidrs.extend(&args.deny_cidr);
    policy.allow_hosts.extend(args.allow_host.iter().cloned());
    if !args.scheme.is_empty() {
        policy.schemes.clone_from(&args.scheme);
    }
    if !args.port.is_empty() {
        policy.ports.clone_from(&args.port);
    }
    Ok(if args.allow_loopback { policy.with_loopback() } else { policy })
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
