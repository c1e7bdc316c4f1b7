//! What `sign` and `verify` share: the scheme, its secrets, and a request as it is given.

pub(crate) mod http;

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use hookproof_core::scheme::{Key, Place, Scheme, known};
use hookproof_core::time::Timestamp;
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use serde::Serialize;

use crate::args::{Format, Instant};
use crate::config;
use crate::failure::Failure;
use crate::output::Output;
use crate::output::table::{Column, Table};

/// Where a scheme of one's own is described.
const PAGE: &str = "docs/sign.md";

/// Which scheme, and its secrets.
#[derive(ClapArgs, Debug)]
pub(crate) struct SchemeArgs {
    /// Name of the signature scheme; `--list` shows them all
    #[arg(long, value_name = "NAME", default_value = "standard-webhooks")]
    scheme: String,

    /// Describe the scheme in this TOML file instead
    #[arg(long, value_name = "FILE", conflicts_with = "scheme")]
    scheme_file: Option<PathBuf>,

    /// A secret, the newest first; others on this machine can see it while the command runs
    #[arg(long, value_name = "SECRET")]
    secret: Vec<String>,

    /// A file that holds a secret; the line break at its end does not count
    #[arg(long, value_name = "FILE")]
    secret_file: Vec<PathBuf>,

    /// List the schemes that are known
    #[arg(long)]
    pub(crate) list: bool,
}

/// A scheme with its secrets, as texts and as keys.
pub(crate) struct Signer {
    pub(crate) scheme: Scheme,
    pub(crate) secrets: Vec<String>,
    pub(crate) keys: Vec<Key>,
}

impl SchemeArgs {
    /// Reads all of it.
    pub(crate) fn signer(self) -> Result<Signer, Failure> {
        let scheme = match &self.scheme_file {
            Some(path) => described(path)?,
            None => named(&self.scheme)?,
        };
        let secrets = secrets("--secret", &self.secret, &self.secret_file)?;
        if secrets.is_empty() {
            return Err(Failure::usage("no secret is given", "give --secret or --secret-file"));
        }
        let keys = secrets.iter().map(|secret| key(&scheme, secret)).collect::<Result<_, _>>()?;
        let secrets = secrets.into_iter().map(|secret| secret.text).collect();
        Ok(Signer { scheme, secrets, keys })
    }
}

/// A secret, and where it was given: it is never shown itself.
pub(crate) struct Given {
    pub(crate) text: String,
    place: String,
}

/// The secrets that a flag gives, and then those in files.
pub(crate) fn secrets(
    flag: &str,
    given: &[String],
    files: &[PathBuf],
) -> Result<Vec<Given>, Failure> {
    let of_flag = (1..).zip(given).map(|(nth, text)| {
        let place = nth_of(flag, nth, given.len());
        Ok(Given { text: text.clone(), place })
    });
    let in_files = files.iter().map(|path| {
        let place = format!("what is in {}", path.display());
        Ok(Given { text: secret_in(path)?, place })
    });
    of_flag.chain(in_files).collect()
}

/// A flag, and which one if it is given more than once.
pub(crate) fn nth_of(flag: &str, nth: usize, count: usize) -> String {
    if count > 1 { format!("{flag} number {nth}") } else { flag.to_owned() }
}

/// The key that a secret is for this scheme.
pub(crate) fn key(scheme: &Scheme, secret: &Given) -> Result<Key, Failure> {
    Key::parse(scheme.key, &secret.text).map_err(|error| {
        let form = scheme.key.as_str();
        Failure::usage(
            format!("{} is not a secret of the scheme {}", secret.place, scheme.name),
            format!("{error}. The scheme's form of a secret is {form}"),
        )
    })
}

/// The secret that a file holds.
fn secret_in(path: &Path) -> Result<String, Failure> {
    let bytes = read(path)?;
    let text = String::from_utf8(bytes).map_err(|_| {
        Failure::usage(
            format!("{} holds no secret: it is not text", path.display()),
            "write the secret as its owner shows it, and nothing else, into the file",
        )
    })?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

fn named(name: &str) -> Result<Scheme, Failure> {
    known::find(name).ok_or_else(|| {
        let names: Vec<_> = known::all().into_iter().map(|scheme| scheme.name).collect();
        Failure::unknown("signature scheme", name, &names)
    })
}

fn described(path: &Path) -> Result<Scheme, Failure> {
    let file = config::read::<Scheme>(path, PAGE)?;
    file.content.check().map_err(|error| {
        Failure::usage(format!("{}: {error}", path.display()), config::fields_in(PAGE))
    })?;
    Ok(file.content)
}

/// The bytes of a file; `-` is standard input.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let result = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    result.map_err(|error| {
        Failure::usage(
            format!("cannot read {}: {error}", path.display()),
            "give the path of a file, or - for standard input",
        )
    })
}

/// An instant as it was given, or that of the run.
pub(crate) fn instant_or_now(given: Option<Instant>) -> Timestamp {
    match given {
        Some(Instant::At(at)) => at,
        Some(Instant::Now) | None => TokioHost.wall(),
    }
}

/// Lists the schemes that are known.
pub(crate) fn print_list(format: Format, output: &mut Output) -> io::Result<()> {
    let schemes = known::all();
    if format == Format::Json {
        let listed: Vec<_> =
            schemes.iter().map(|scheme| Listed { scheme, warnings: scheme.warnings() }).collect();
        return output.json(&listed);
    }
    let mut made = Table::new([
        Column::left("scheme"),
        Column::left("algorithm"),
        Column::left("encoding"),
        Column::left("signed"),
        Column::right("tolerance"),
    ]);
    let mut carried = Table::new([Column::left("scheme"), Column::left("where it stands")]);
    for scheme in schemes {
        let tolerance = scheme.tolerance.map_or("-".to_owned(), |span| span.to_string());
        let signed = scheme.signed.to_string();
        let signed = if signed.is_empty() { "-".to_owned() } else { signed };
        let [algorithm, encoding] =
            [scheme.algorithm.as_str(), scheme.encoding.as_str()].map(str::to_owned);
        let places = places(&scheme);
        made.row([scheme.name.clone(), algorithm, encoding, signed, tolerance]);
        carried.row([scheme.name, places]);
    }
    let paint = output.paint;
    made.write(output, paint)?;
    writeln!(output)?;
    carried.write(output, paint)
}

/// Where the values of a scheme stand in a request, in words.
fn places(scheme: &Scheme) -> String {
    let told = |what: &str, place: &Place| {
        let prefix = match &place.separator {
            None if !place.prefix.is_empty() => format!(" after `{}`", place.prefix),
            _ => String::new(),
        };
        format!("{what} {place}{prefix}")
    };
    let mut places = vec![told("signature", &scheme.signature)];
    if let Some(place) = &scheme.timestamp {
        places.push(format!("{} in {}", told("time", place), scheme.timestamp_unit.as_str()));
    }
    places.extend(scheme.id.as_ref().map(|place| told("id", place)));
    places.join(", ")
}

#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    scheme: &'a Scheme,
    warnings: Vec<String>,
}
