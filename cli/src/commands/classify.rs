//! `hookproof classify`: what an outcome would mean, and by which rule.

use std::io;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use hookproof_core::classify::{Classification, DecidedBy, Judgement, PRESETS, Signal, Verdict};
use hookproof_core::gate::GateRule;
use hookproof_core::outcome::{Failure as Kind, Outcome};
use hookproof_core::retry_after;
use hookproof_core::rule::Action;
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use serde::Serialize;

use crate::args::{Format, Instant, instant};
use crate::config;
use crate::failure::{EXIT_CODES, Ending, Failure};
use crate::output::Output;
use crate::output::table::{Column, Table};

/// What `hookproof classify` takes.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// A status such as 503, or how an attempt ended without one: dns, connect_refused,
    /// connect_timeout, tls, reset, timeout, protocol, oversize, blocked, unknown
    #[arg(value_parser = read_outcome, required_unless_present = "list")]
    outcome: Option<Outcome>,

    /// The value of the answer's Retry-After
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    retry_after: Option<String>,

    /// When the answer arrived (RFC 3339), or `now`: a Retry-After that is a date counts from then
    #[arg(long, value_name = "TIME", value_parser = instant, default_value = "now")]
    at: Instant,

    /// Name of the agreement
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(PRESETS), default_value = "seed")]
    preset: String,

    /// A TOML or JSON file of your own agreement: what stands in [sender.policy.classification]
    #[arg(long, value_name = "FILE", conflicts_with = "preset")]
    rules: Option<PathBuf>,

    /// List the rules, in the order in which they are looked at
    #[arg(long, conflicts_with_all = ["outcome", "retry_after", "at"])]
    list: bool,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Reads what a trace or an argument calls an outcome.
pub(crate) fn read_outcome(text: &str) -> Result<Outcome, String> {
    if text == "unknown" {
        return Ok(Outcome::Unknown);
    }
    if let Some(failure) = Kind::ALL.into_iter().find(|failure| failure.as_str() == text) {
        return Ok(Outcome::Failed { failure });
    }
    match text.parse() {
        Ok(status @ 100..=999) if text.len() == 3 => {
            Ok(Outcome::Answered { status, retry_after: None })
        }
        _ => {
            let names = Kind::ALL.map(Kind::as_str).join(", ");
            Err(format!("write a status of three digits, or one of {names}, unknown"))
        }
    }
}

/// Prints what an outcome means, or the rules.
pub(crate) fn run(args: Args, output: &mut Output) -> Result<Ending, Failure> {
    let Args { outcome, retry_after, at, preset, rules, list, format } = args;
    let (name, agreement) = match rules {
        Some(path) => {
            (path.display().to_string(), config::read(&path, "docs/classify.md")?.content)
        }
        None => {
            let agreement = Classification::preset(&preset).unwrap_or_default();
            (preset, agreement)
        }
    };
    let Some(outcome) = outcome.filter(|_| !list) else {
        print_rules(&agreement, format, output)?;
        return Ok(Ending::AsItShould);
    };
    let now = match at {
        Instant::Now => TokioHost.wall(),
        Instant::At(at) => at,
    };
    let header = retry_after.map(|value| Header::new(value, now));
    let outcome = with_header(outcome, header.as_ref())?;
    let explained = Explained { name, agreement, outcome, header };
    match format {
        Format::Table => explained.print(output)?,
        Format::Json => output.json(&explained.document())?,
    }
    Ok(Ending::AsItShould)
}

/// A `Retry-After` as it arrived and as it is read.
#[derive(Serialize)]
struct Header {
    value: String,
    wait: Option<Millis>,
}

impl Header {
    fn new(value: String, now: Timestamp) -> Self {
        let wait = retry_after::parse(value.as_bytes(), now);
        Self { value, wait }
    }
}

fn with_header(outcome: Outcome, header: Option<&Header>) -> Result<Outcome, Failure> {
    match (outcome, header) {
        (Outcome::Answered { status, .. }, Some(header)) => {
            Ok(Outcome::Answered { status, retry_after: header.wait })
        }
        (outcome, None) => Ok(outcome),
        (outcome, Some(_)) => Err(Failure::usage(
            format!("an attempt that ended with {outcome} has no Retry-After"),
            "give a status, or leave --retry-after out",
        )),
    }
}

struct Explained {
    name: String,
    agreement: Classification,
    outcome: Outcome,
    header: Option<Header>,
}

/// An explanation as JSON; waits in whole milliseconds.
#[derive(Serialize)]
struct Document {
    outcome: Outcome,
    agreement: String,
    verdict: Verdict,
    signal: Signal,
    throttles: bool,
    retry_after: Option<Header>,
    rule: RuleText,
}

#[derive(Serialize)]
struct RuleText {
    when: String,
    then: String,
    source: String,
}

impl Explained {
    fn rule(&self, judgement: &Judgement) -> RuleText {
        match judgement.by {
            DecidedBy::Rule(at) => {
                let rule = &self.agreement.rules[at];
                RuleText {
                    when: rule.when.to_string(),
                    then: action(rule.then).to_owned(),
                    source: format!("rule {} of {}", at + 1, self.name),
                }
            }
            DecidedBy::Agreement(line) => RuleText {
                when: line.when.to_owned(),
                then: line.then.to_owned(),
                source: line.source.to_owned(),
            },
        }
    }

    fn document(self) -> Document {
        let judgement = self.agreement.judge(&self.outcome);
        let rule = self.rule(&judgement);
        Document {
            outcome: self.outcome,
            verdict: judgement.verdict,
            signal: judgement.signal,
            throttles: judgement.throttle.is_some(),
            rule,
            agreement: self.name,
            retry_after: self.header,
        }
    }

    fn print(&self, output: &mut Output) -> io::Result<()> {
        let judgement = self.agreement.judge(&self.outcome);
        let rule = self.rule(&judgement);
        let mut facts = Table::of_facts();
        facts.fact("outcome", self.outcome.to_string());
        facts.fact("delivery", delivery(&judgement));
        facts.fact("endpoint", endpoint(judgement.verdict, judgement.signal));
        if let Some(throttle) = judgement.throttle {
            let hold = throttle.wait.map_or(String::new(), hold);
            facts.fact("throttle", format!("{hold}half as many attempts go at once"));
        }
        if let Some(header) = &self.header {
            facts.fact("Retry-After", self.header_text(header, judgement.verdict));
        }
        let when = match self.outcome {
            Outcome::Failed { failure } if rule.when != failure.as_str() => {
                format!("{}, here {}", rule.when, told(failure))
            }
            _ => rule.when,
        };
        facts.fact("rule", format!("{when}: {}", rule.then));
        facts.fact("source", rule.source);
        facts.fact("agreement", self.name.clone());
        let paint = output.paint;
        facts.write(output, paint)
    }

    fn header_text(&self, header: &Header, verdict: Verdict) -> String {
        let max = self.agreement.retry_after_max;
        let heeded = matches!(verdict, Verdict::Retry { floor: Some(_) });
        match header.wait {
            None => "malformed, so it is ignored".to_owned(),
            Some(wait) if !heeded => format!("asks for {wait}; not heeded after this outcome"),
            Some(Millis::ZERO) => "asks for no wait".to_owned(),
            Some(wait) if wait > max => format!("asks for {wait}; cut to retry_after_max, {max}"),
            Some(wait) => format!("asks for {wait}"),
        }
    }
}

/// A kind of failure in words.
fn told(failure: Kind) -> &'static str {
    match failure {
        Kind::Dns => "the name did not resolve",
        Kind::ConnectRefused => "the connection was refused",
        Kind::ConnectTimeout => "the connection was not made in time",
        Kind::Tls => "the TLS handshake failed",
        Kind::Reset => "the connection broke",
        Kind::Timeout => "none came in time",
        Kind::Protocol => "what came was not HTTP",
        Kind::Oversize => "its head was too large",
        Kind::Blocked => "our own settings forbid the request",
    }
}

/// How long an endpoint is left alone that asks for this wait. The longest is a setting of the gate,
/// which an agreement does not have.
fn hold(wait: Millis) -> String {
    let most = GateRule::default().throttle_max;
    match wait {
        Millis::ZERO => String::new(),
        wait if wait > most => {
            format!(
                "it is left alone for {most} (throttle_max by default; it asks for {wait}), and "
            )
        }
        wait => {
            format!("it is left alone for {wait} (at most throttle_max, by default {most}), and ")
        }
    }
}

fn delivery(judgement: &Judgement) -> String {
    match judgement.verdict {
        Verdict::Delivered if matches!(judgement.by, DecidedBy::Rule(_)) => {
            "counts as delivered, since the rule calls it so".to_owned()
        }
        Verdict::Delivered => "delivered: the receiver took responsibility".to_owned(),
        Verdict::Retry { floor: None | Some(Millis::ZERO) } => {
            "retried when the schedule says so".to_owned()
        }
        Verdict::Retry { floor: Some(floor) } => {
            format!("retried when the schedule says so, but not before {floor} have passed")
        }
        Verdict::Final => "dead at once: no retry can help; its owner is told".to_owned(),
        Verdict::Gone => "dead at once; its owner is told".to_owned(),
    }
}

fn endpoint(verdict: Verdict, signal: Signal) -> &'static str {
    match (verdict, signal) {
        (Verdict::Gone, _) => "disabled",
        (_, Signal::Success) => "the breaker counts a success",
        (_, Signal::Failure) => "the breaker counts a failure",
        (_, Signal::Neither) => "the breaker counts neither a success nor a failure",
    }
}

fn action(action: Action) -> &'static str {
    match action {
        Action::Delivered => "delivered",
        Action::Retry => "retried, whatever Retry-After asks for",
        Action::RetryAfter => "retried, not before Retry-After",
        Action::Fail => "final and told to the owner",
        Action::DisableEndpoint => "the delivery ends and the endpoint is disabled",
    }
}

fn print_rules(agreement: &Classification, format: Format, output: &mut Output) -> io::Result<()> {
    let own = agreement.rules.iter().map(|rule| RuleText {
        when: rule.when.to_string(),
        then: action(rule.then).to_owned(),
        source: "a rule of your own".to_owned(),
    });
    let agreed = agreement.lines().map(|line| RuleText {
        when: line.when.to_owned(),
        then: line.then.to_owned(),
        source: line.source.to_owned(),
    });
    let rules: Vec<_> = own.chain(agreed).collect();
    if format == Format::Json {
        return output.json(&rules);
    }
    let mut table =
        Table::new([Column::left("outcome"), Column::left("meaning"), Column::left("source")]);
    for RuleText { when, then, source } in rules {
        table.row([when, then, source]);
    }
    let paint = output.paint;
    table.write(output, paint)
}
