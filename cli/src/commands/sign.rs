//! `hookproof sign`: the headers that a signed request carries.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, ValueEnum};
use hookproof_core::scheme::{Message, Part, Scheme, SignError, Signed, TimestampUnit};
use serde::Serialize;
use serde_json::Value;

use super::signing::{SchemeArgs, instant_or_now, print_list, read};
use crate::args::{Format, Instant, instant};
use crate::failure::{EXIT_CODES, Ending, Failure};
use crate::output::table::{Table, chunks};
use crate::output::{self, Output, WIDTH_MAX, shell};

/// The longest piece of a word in a command, so that its line has room for `  --data-binary '' \`.
const WORD_MAX: usize = WIDTH_MAX - 20;

/// What `hookproof sign` takes.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(flatten)]
    scheme: SchemeArgs,

    /// The event's id, for schemes that have one
    #[arg(long, default_value = "")]
    id: String,

    /// The time of the attempt (RFC 3339), or `now`
    #[arg(long, value_name = "TIME", value_parser = instant, default_value = "now")]
    timestamp: Instant,

    /// The file that holds the body, byte for byte; `-` is standard input; none is an empty body
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,

    /// The URL that is called, for schemes that sign it, and for curl
    #[arg(long, default_value = "")]
    url: String,

    /// The method, for schemes that sign it
    #[arg(long, default_value = "POST")]
    method: String,

    /// The body is a form, not JSON: Twilio signs its fields
    #[arg(long)]
    form: bool,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: SignFormat,
}

/// How headers are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum SignFormat {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
    /// A command that sends the request.
    Curl,
}

/// Prints the headers.
pub(crate) fn run(args: Args, output: &mut Output) -> Result<Ending, Failure> {
    let Args { scheme, id, timestamp, body: path, url, method, form, format } = args;
    if scheme.list {
        let format = if format == SignFormat::Json { Format::Json } else { Format::Table };
        print_list(format, output)?;
        return Ok(Ending::AsItShould);
    }
    let signer = scheme.signer()?;
    let scheme = &signer.scheme;
    let body = path.as_deref().map(read).transpose()?.unwrap_or_default();
    let url = if url.is_empty() { url } else { scheme.url_to_call(&url, &body, form) };
    if format == SignFormat::Curl && url.is_empty() {
        return Err(Failure::usage("a command for curl needs a URL", "give --url"));
    }
    let at = instant_or_now(Some(timestamp));
    let message = Message { id: &id, at, method: &method, url: &url, body: &body };
    let signed = scheme.sign(&signer.keys, &message).map_err(refused)?;
    check_headers(&signed)?;
    warn_of_body(scheme, &signed, &body, format);
    match format {
        SignFormat::Table => print(scheme, &url, &signed, output)?,
        SignFormat::Json => output.json(&Document::new(scheme, &url, &signed))?,
        SignFormat::Curl => curl(&method, &url, &signed, path.as_deref(), output)?,
    }
    Ok(Ending::AsItShould)
}

/// A secret that is sent as it is must not bring a header field of its own.
fn check_headers(signed: &Signed) -> Result<(), Failure> {
    match signed.headers.iter().find(|(_, value)| value.contains(char::is_control)) {
        None => Ok(()),
        Some((name, _)) => Err(Failure::usage(
            format!("nothing is signed: the value of `{name}` would hold a control character"),
            "give a secret without line breaks and other control characters",
        )),
    }
}

/// Says what the body does not carry although a receiver looks for it there: it is sent as it is.
fn warn_of_body(scheme: &Scheme, signed: &Signed, body: &[u8], format: SignFormat) {
    let body = serde_json::from_slice::<Value>(body).ok();
    let found = |pointer: &str| body.as_ref().and_then(|body| body.pointer(pointer));
    let pointer = scheme.timestamp.as_ref().and_then(|place| place.json.as_deref());
    if let Some(pointer) = pointer.filter(|_| scheme.signed.has(&Part::Body))
        && !found(pointer).is_some_and(|value| is_time(value, scheme.timestamp_unit))
    {
        output::warn(&format!(
            "{} has its time at `{pointer}` in the body, in {}, and the body holds none: a receiver \
             that looks at it refuses the request",
            scheme.name,
            scheme.timestamp_unit.as_str()
        ));
    }
    if format != SignFormat::Curl {
        return;
    }
    for (pointer, value) in &signed.fields {
        if found(pointer).and_then(Value::as_str) != Some(value) {
            output::warn(&format!("put {value} at `{pointer}` into the body before it is sent"));
        }
    }
}

/// Whether a value is written as times in this unit are.
fn is_time(value: &Value, unit: TimestampUnit) -> bool {
    let text = value.as_str().unwrap_or_default();
    match unit {
        TimestampUnit::Rfc3339 => matches!(instant(text), Ok(Instant::At(_))),
        TimestampUnit::Seconds | TimestampUnit::Milliseconds => {
            value.is_u64() || text.parse::<u64>().is_ok()
        }
    }
}

fn refused(error: SignError) -> Failure {
    let help = match error {
        SignError::MissingId => "give --id",
        SignError::AmbiguousId => "give an --id of letters, digits, _ and -",
        SignError::MissingUrl => "give --url, exactly as it is called",
        SignError::NoKey | SignError::CannotSign | SignError::OtherKind => {
            "give the secret, or the private key, of the one who sends"
        }
        SignError::OneKeyOnly => "give one secret",
        SignError::TimeOutOfRange => "give a --timestamp from 1970 to 9999",
    };
    Failure::usage(format!("nothing is signed: {error}"), help)
}

fn print(scheme: &Scheme, url: &str, signed: &Signed, output: &mut Output) -> io::Result<()> {
    let paint = output.paint;
    let mut carried = Table::of_facts();
    for (name, value) in &signed.headers {
        carried.fact(name, value.as_str());
    }
    for (pointer, value) in &signed.fields {
        carried.fact(&format!("{pointer} in the body"), value.as_str());
    }
    carried.write(output, paint)?;
    writeln!(output)?;
    let mut facts = Table::of_facts();
    facts.fact("scheme", scheme.name.as_str());
    facts.fact("source", scheme.source.as_str());
    if !url.is_empty() {
        facts.fact("url", url);
    }
    for warning in scheme.warnings() {
        facts.fact("warning", warning);
    }
    facts.write(output, paint)
}

#[derive(Serialize)]
struct Document<'a> {
    scheme: &'a str,
    source: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    url: &'a str,
    headers: Vec<Named<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    body_fields: Vec<Named<'a>>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
    value: &'a str,
}

impl<'a> Document<'a> {
    fn new(scheme: &'a Scheme, url: &'a str, signed: &'a Signed) -> Self {
        let named = |pairs: &'a [(String, String)]| -> Vec<_> {
            pairs.iter().map(|(name, value)| Named { name, value }).collect()
        };
        Self {
            scheme: &scheme.name,
            source: &scheme.source,
            url,
            headers: named(&signed.headers),
            body_fields: named(&signed.fields),
            warnings: scheme.warnings(),
        }
    }
}

fn curl(
    method: &str,
    url: &str,
    signed: &Signed,
    body: Option<&Path>,
    output: &mut Output,
) -> io::Result<()> {
    writeln!(output, "curl --request {} \\", quoted(method))?;
    for (name, value) in &signed.headers {
        writeln!(output, "  --header {} \\", quoted(&format!("{name}: {value}")))?;
    }
    let body = body.map_or_else(String::new, |path| format!("@{}", path.display()));
    writeln!(output, "  --data-binary {} \\", quoted(&body))?;
    writeln!(output, "  {}", quoted(url))
}

/// A word for a shell. A long one goes on in the next line, flush left: there, a space would be part
/// of no word.
fn quoted(text: &str) -> String {
    if text.is_empty() {
        return shell::quoted(text);
    }
    let pieces: Vec<_> = chunks(text, WORD_MAX).iter().map(|piece| shell::quoted(piece)).collect();
    pieces.join("\\\n")
}
