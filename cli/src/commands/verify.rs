//! `hookproof verify`: whether a request is signed, and if not, why.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args as ClapArgs;
use hookproof_core::scheme::{
    Answer, Challenge, ChallengeError, Diagnosis, Fault, Request, Scheme, diagnose,
};
use hookproof_core::time::Millis;
use serde::Serialize;

use super::signing::http::{self, RawRequest};
use super::signing::{SchemeArgs, instant_or_now, key, nth_of, print_list, read, secrets};
use crate::args::{Format, Instant, instant};
use crate::failure::{EXIT_CODES, Ending, Failure};
use crate::output::Output;
use crate::output::table::Table;

/// What `hookproof verify` takes.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(flatten)]
    scheme: SchemeArgs,

    /// A secret that is no longer in use, to tell whether it signed
    #[arg(long, value_name = "SECRET")]
    older_secret: Vec<String>,

    /// A file that holds such a secret
    #[arg(long, value_name = "FILE")]
    older_secret_file: Vec<PathBuf>,

    /// The whole request as HTTP/1.1 has it, in a file; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["header", "body"])]
    request: Option<PathBuf>,

    /// A header of the request, as `Name: value`
    #[arg(long, value_name = "HEADER")]
    header: Vec<String>,

    /// The file that holds the body, byte for byte; `-` is standard input; none is an empty body
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,

    /// The URL as the sender called it, for schemes that sign it
    #[arg(long)]
    url: Option<String>,

    /// The method, for schemes that sign it; of a whole request, its own
    #[arg(long)]
    method: Option<String>,

    /// Verify as if it were this time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = instant)]
    now: Option<Instant>,

    /// How far the timestamp may be from that time, as in 5m; else what the scheme has
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    tolerance: Option<Millis>,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Prints whether the request is signed.
pub(crate) fn run(args: Args, output: &mut Output) -> Result<Ending, Failure> {
    if args.scheme.list {
        print_list(args.format, output)?;
        return Ok(Ending::AsItShould);
    }
    let (format, now) = (args.format, instant_or_now(args.now));
    let older = secrets("--older-secret", &args.older_secret, &args.older_secret_file)?;
    let raw = given(&args)?;
    let signer = args.scheme.signer()?;
    let scheme = &signer.scheme;
    for secret in &older {
        key(scheme, secret)?;
    }
    if args.tolerance.is_some() && !scheme.protects_timestamp() {
        return Err(Failure::usage(
            format!("the scheme {} signs no time, so its age tells nothing", scheme.name),
            "leave --tolerance out",
        ));
    }
    let RawRequest { method, url, headers, body, note } = &raw;
    let request = Request { method, url, headers, body };
    let tolerance = args.tolerance.or(scheme.tolerance);
    let fault = scheme.verify(&signer.keys, &request, now, tolerance).err();
    let diagnosis = fault.as_ref().and_then(|_| {
        let secrets: Vec<_> = signer.secrets.iter().map(String::as_str).collect();
        let older: Vec<_> = older.iter().map(|secret| secret.text.as_str()).collect();
        diagnose(scheme, &secrets, &older, &request, now, tolerance)
    });
    // Nobody signs what is echoed.
    let may_answer = fault.is_none() || scheme.challenge == Some(Challenge::Echo);
    let answer = signer.keys.first().filter(|_| may_answer).map(|key| scheme.answer(key, &request));
    let answer = answer.transpose().map(Option::flatten);
    let found = Found { scheme, fault: fault.as_ref(), diagnosis, note: note.as_deref(), answer };
    match format {
        Format::Table => found.print(output)?,
        Format::Json => output.json(&found.document())?,
    }
    Ok(if fault.is_none() { Ending::AsItShould } else { Ending::Found })
}

fn given(args: &Args) -> Result<RawRequest, Failure> {
    let mut raw = match &args.request {
        Some(path) => http::parse(&read(path)?)?,
        None => {
            let headers = (1..).zip(&args.header).map(|(nth, text)| {
                http::header(text.as_bytes()).ok_or_else(|| {
                    let which = nth_of("--header", nth, args.header.len());
                    Failure::usage(format!("{which} has no name and colon"), "write 'Name: value'")
                })
            });
            RawRequest {
                method: "POST".to_owned(),
                url: String::new(),
                headers: headers.collect::<Result<_, _>>()?,
                body: args.body.as_deref().map(read).transpose()?.unwrap_or_default(),
                note: None,
            }
        }
    };
    if let Some(url) = &args.url {
        raw.url.clone_from(url);
    }
    if let Some(method) = &args.method {
        raw.method.clone_from(method);
    }
    Ok(raw)
}

/// What there is to say.
struct Found<'a> {
    scheme: &'a Scheme,
    fault: Option<&'a Fault>,
    diagnosis: Option<Diagnosis>,
    note: Option<&'a str>,
    answer: Result<Option<Answer>, ChallengeError>,
}

impl Found<'_> {
    fn print(&self, output: &mut Output) -> io::Result<()> {
        let paint = output.paint;
        match self.fault {
            None => writeln!(output, "{}", paint.good("verified"))?,
            Some(_) => writeln!(output, "{}", paint.bad("not verified"))?,
        }
        writeln!(output)?;
        let mut facts = Table::of_facts();
        facts.fact("scheme", self.scheme.name.as_str());
        facts.fact("source", self.scheme.source.as_str());
        if let Some(fault) = self.fault {
            facts.fact("check", fault.to_string());
            match &self.diagnosis {
                Some(Diagnosis { mistakes }) => {
                    for mistake in mistakes {
                        facts.fact("cause", mistake.to_string());
                    }
                }
                None if matches!(self.answer, Ok(None)) => facts.fact("cause", unexplained(fault)),
                None => facts.fact("cause", "such a challenge is not signed"),
            }
        }
        if let Some(note) = self.note {
            facts.fact("note", note);
        }
        match &self.answer {
            Ok(Some(Answer { content_type, body })) => {
                facts.fact("answer", format!("200, {content_type}: {body}"));
            }
            Ok(None) => {}
            Err(error) => facts.fact("answer", error.to_string()),
        }
        for warning in self.scheme.warnings() {
            facts.fact("warning", warning);
        }
        facts.write(output, paint)
    }

    fn document(&self) -> Document<'_> {
        let mistakes = self.diagnosis.iter().flat_map(|found| &found.mistakes);
        Document {
            verified: self.fault.is_none(),
            scheme: &self.scheme.name,
            source: &self.scheme.source,
            failed_check: self.fault.map(|f| Told { code: f.code(), text: f.to_string() }),
            causes: mistakes.map(|m| Told { code: m.code(), text: m.to_string() }).collect(),
            note: self.note,
            answer: self.answer.as_ref().ok().and_then(Option::as_ref).map(Answered::from),
            answer_refused: self.answer.as_ref().err().map(ToString::to_string),
            warnings: self.scheme.warnings(),
        }
    }
}

/// What is left to do where no usual mistake was found.
fn unexplained(fault: &Fault) -> String {
    let compare = match fault {
        Fault::Mismatch | Fault::BodyHash => {
            "compare the secret with the sender's, and the raw bytes with what was sent"
        }
        Fault::MissingUrl => "give --url as the sender called it",
        _ => "compare the headers with those that were sent, and with what the scheme wants",
    };
    format!("none of the usual mistakes explains it: {compare}")
}

#[derive(Serialize)]
struct Document<'a> {
    verified: bool,
    scheme: &'a str,
    source: &'a str,
    failed_check: Option<Told>,
    causes: Vec<Told>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Answered<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer_refused: Option<String>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Answered<'a> {
    content_type: &'a str,
    body: &'a str,
}

impl<'a> From<&'a Answer> for Answered<'a> {
    fn from(answer: &'a Answer) -> Self {
        Self { content_type: answer.content_type, body: &answer.body }
    }
}

#[derive(Serialize)]
struct Told {
    code: &'static str,
    text: String,
}
