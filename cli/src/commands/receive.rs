//! `hookproof receive`: the reference receiver as a process.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use hookproof_core::id::SourceId;
use hookproof_core::secret::{Secret, Secrets};
use hookproof_receiver::config::{ReceiverConfig, Source};
use hookproof_receiver::sqlite::SqliteInbox;
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use serde::Deserialize;

use crate::args::listen_address;
use crate::config::{self, ConfigFile};
use crate::failure::{EXIT_CODES, Ending, Failure};
use crate::logging::{self, LogFormat};
use crate::output::Output;
use crate::serving::{self, announce, block_on, serve};

const LISTEN_DEFAULT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8072);
const DATABASE_DEFAULT: &str = "hookproof-receiver.db";

/// What `hookproof receive` takes.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// Read settings from this TOML file; what is given here beats it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Listen here [default: 127.0.0.1:8072]
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    listen: Option<SocketAddr>,

    /// Keep the inbox and the effects in this SQLite file [default: ./hookproof-receiver.db]
    #[arg(long, value_name = "FILE")]
    database: Option<PathBuf>,

    /// Accept what this source signs, at POST /hooks/ID; may be repeated. Other users of the machine
    /// can see it: a file given to --config keeps secrets better
    #[arg(long = "source", value_name = "ID=SECRET", value_parser = source)]
    sources: Vec<Source>,

    /// How log lines look on standard error; RUST_LOG says which there are
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    log_format: LogFormat,

    /// End when standard input closes, as it does when the program that started this one dies
    #[arg(long)]
    until_stdin_closes: bool,
}

/// The configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    listen: Option<SocketAddr>,
    database: Option<PathBuf>,
    receiver: Option<ReceiverConfig>,
}

/// All that is to be known, checked.
struct Settings {
    listen: SocketAddr,
    database: PathBuf,
    receiver: ReceiverConfig,
    log_format: LogFormat,
    stdin_bound: bool,
}

/// Runs the receiver until it is told to end.
pub(crate) fn run(args: Args, output: &mut Output) -> Result<Ending, Failure> {
    let settings = settings(args)?;
    logging::start(settings.log_format)?;
    block_on(receive(settings, output))
}

fn settings(args: Args) -> Result<Settings, Failure> {
    let file = args
        .config
        .as_deref()
        .map(|path| config::read::<File>(path, "docs/receive.md"))
        .transpose()?;
    Ok(Settings {
        listen: args
            .listen
            .or(file.as_ref().and_then(|file| file.content.listen))
            .unwrap_or(LISTEN_DEFAULT),
        database: args
            .database
            .or_else(|| {
                let file = file.as_ref()?;
                file.content.database.as_deref().map(|path| file.resolve(path))
            })
            .unwrap_or_else(|| DATABASE_DEFAULT.into()),
        receiver: receiver(args.sources, file.as_ref())?,
        log_format: args.log_format,
        stdin_bound: args.until_stdin_closes,
    })
}

fn receiver(
    sources: Vec<Source>,
    file: Option<&ConfigFile<File>>,
) -> Result<ReceiverConfig, Failure> {
    let from_file = file.and_then(|file| file.content.receiver.clone());
    let are_given = !sources.is_empty();
    let mut receiver = from_file.unwrap_or_else(|| ReceiverConfig::new(Vec::new()));
    if are_given {
        receiver.sources = sources;
    }
    if receiver.sources.is_empty() {
        return Err(Failure::usage(
            "there is no source, so no request could be verified",
            format!(
                "name at least one with the secret that it signs with; with a fresh secret:\n\
                 hookproof receive --source shop={}\nor list [[receiver.sources]] in a file \
                 given to --config",
                fresh_secret().reveal()
            ),
        ));
    }
    receiver.validate().map_err(|error| {
        let text = error.to_string();
        let problem = text.strip_prefix(&format!("`{}` ", error.field())).unwrap_or(&text);
        match file {
            Some(file) if !(are_given && error.field().starts_with("sources")) => {
                file.invalid(&format!("receiver.{}", error.field()), problem)
            }
            _ => Failure::usage(format!("--source: {text}"), "give each source once"),
        }
    })?;
    Ok(receiver)
}

fn fresh_secret() -> Secret {
    Secret::from_entropy(std::array::from_fn(|_| TokioHost.entropy()))
}

/// Reads `ID=whsec_…`.
fn source(text: &str) -> Result<Source, String> {
    let (id, secret) = text.split_once('=').ok_or("write ID=SECRET, as in shop=whsec_…")?;
    let id = SourceId::new(id).map_err(|error| error.to_string())?;
    let secret: Secret = secret.parse().map_err(|error| format!("{error}"))?;
    Ok(Source::new(id, &Secrets::one(secret)))
}

async fn receive(settings: Settings, output: &mut Output) -> Result<Ending, Failure> {
    let (listener, address) = serving::listen(settings.listen).await?;
    let database = serving::database(settings.database);
    let store = SqliteInbox::open(&TokioHost, &database).map_err(|e| serving::unopened(&e))?;
    let sources: Vec<_> = settings.receiver.sources.iter().map(|s| s.id.as_str()).collect();
    tracing::info!(
        %address,
        database = %database.path.display(),
        sources = sources.join(", "),
        "the receiver begins"
    );
    if !address.ip().is_loopback() {
        tracing::warn!(
            %address,
            "whoever reaches this address can ask /effects what was received: let nothing but \
             /hooks/ through to it from outside"
        );
    }
    announce(output, address)?;
    serve(settings.stdin_bound, |shutdown| {
        hookproof_receiver::run(TokioHost, listener, settings.receiver, store, shutdown)
    })
    .await
}
