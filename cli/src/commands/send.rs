//! `hookproof send`: the sender as a process.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use hookproof_runtime::tokio_host::TokioHost;
use hookproof_sender::config::{ConfigError, SenderConfig};
use hookproof_sender::sqlite::SqliteStore;
use hookproof_sender::tls::Tls;
use serde::Deserialize;

use crate::args::listen_address;
use crate::config::{self, ConfigFile};
use crate::failure::{EXIT_CODES, Ending, Failure};
use crate::logging::{self, LogFormat};
use crate::output::Output;
use crate::serving::{self, announce, block_on, serve};

const LISTEN_DEFAULT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8071);
const DATABASE_DEFAULT: &str = "hookproof-sender.db";

/// What `hookproof send` takes.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// Read settings from this TOML file; what is given here beats it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Listen here; the API asks for no password [default: 127.0.0.1:8071]
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    listen: Option<SocketAddr>,

    /// Keep events and deliveries in this SQLite file [default: ./hookproof-sender.db]
    #[arg(long, value_name = "FILE")]
    database: Option<PathBuf>,

    /// Trust these certificates (PEM) for https endpoints, besides the well-known ones
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,

    /// Let requests go to this machine itself, too: 127.0.0.0/8, ::1 and localhost
    #[arg(long)]
    allow_loopback: bool,

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
    ca_file: Option<PathBuf>,
    #[serde(default)]
    sender: SenderConfig,
}

/// All that is to be known, checked.
struct Settings {
    listen: SocketAddr,
    database: PathBuf,
    tls: Tls,
    sender: SenderConfig,
    log_format: LogFormat,
    stdin_bound: bool,
}

/// Runs the sender until it is told to end.
pub(crate) fn run(args: Args, output: &mut Output) -> Result<Ending, Failure> {
    let settings = settings(args)?;
    logging::start(settings.log_format)?;
    block_on(send(settings, output))
}

fn settings(args: Args) -> Result<Settings, Failure> {
    let file = args.config.as_deref().map(read).transpose()?;
    let content = |pick: fn(&File) -> &Option<PathBuf>| {
        let file = file.as_ref()?;
        pick(&file.content).as_deref().map(|path| file.resolve(path))
    };
    let ca_file = args.ca_file.or_else(|| content(|file| &file.ca_file));
    Ok(Settings {
        listen: args
            .listen
            .or(file.as_ref().and_then(|file| file.content.listen))
            .unwrap_or(LISTEN_DEFAULT),
        database: args
            .database
            .or_else(|| content(|file| &file.database))
            .unwrap_or_else(|| DATABASE_DEFAULT.into()),
        tls: tls(ca_file)?,
        sender: sender(file, args.allow_loopback)?,
        log_format: args.log_format,
        stdin_bound: args.until_stdin_closes,
    })
}

fn tls(ca_file: Option<PathBuf>) -> Result<Tls, Failure> {
    let Some(path) = ca_file else {
        return Tls::new(None).map_err(|error| {
            Failure::environment(format!("cannot set up TLS: {error}"), "this build is broken")
        });
    };
    let unusable = |error| {
        Failure::usage(
            format!("cannot use the certificates in {}: {error}", path.display()),
            "give --ca-file a file of PEM certificates, which begin with -----BEGIN CERTIFICATE-----",
        )
    };
    let pem = fs::read(&path).map_err(unusable)?;
    Tls::new(Some(&pem)).map_err(unusable)
}

fn sender(file: Option<ConfigFile<File>>, allow_loopback: bool) -> Result<SenderConfig, Failure> {
    let mut sender = file.map_or_else(|| Ok(SenderConfig::default()), checked)?;
    if allow_loopback {
        sender.address = sender.address.with_loopback();
    }
    Ok(sender)
}

/// The sender that a configuration file describes.
pub(super) fn configured(path: &Path) -> Result<SenderConfig, Failure> {
    checked(read(path)?)
}

fn read(path: &Path) -> Result<ConfigFile<File>, Failure> {
    config::read(path, "docs/send.md")
}

fn checked(file: ConfigFile<File>) -> Result<SenderConfig, Failure> {
    match file.content.sender.validate() {
        Ok(()) => Ok(file.content.sender),
        Err(ConfigError::Address(error)) => {
            Err(file.invalid(&format!("sender.address.{}", error.field), error.problem))
        }
        Err(ConfigError::Policy(error)) => {
            let text = error.to_string();
            let problem = text.strip_prefix(&format!("`{}` ", error.field())).unwrap_or(&text);
            Err(file.invalid(&format!("sender.policy.{}", error.field()), problem))
        }
        Err(ConfigError::Zero(field)) => {
            Err(file.invalid(&format!("sender.{field}"), "is 0; give at least 1"))
        }
        Err(ConfigError::TooLarge(field, most)) => {
            Err(file
                .invalid(&format!("sender.{field}"), &format!("is too large; give at most {most}")))
        }
    }
}

async fn send(settings: Settings, output: &mut Output) -> Result<Ending, Failure> {
    let (listener, address) = serving::listen(settings.listen).await?;
    let database = serving::database(settings.database);
    let store = SqliteStore::open(&TokioHost, &database).map_err(|e| serving::unopened(&e))?;
    tracing::info!(%address, database = %database.path.display(), "the sender begins");
    if !address.ip().is_loopback() {
        tracing::warn!(
            %address,
            "whoever reaches this address can publish, and register endpoints: the API asks for no \
             password. Listen on a loopback address, or put something in front of it that does"
        );
    }
    announce(output, address)?;
    serve(settings.stdin_bound, |shutdown| {
        hookproof_sender::run(TokioHost, listener, settings.sender, settings.tls, store, shutdown)
    })
    .await
}
