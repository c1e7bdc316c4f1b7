//! A sender and a receiver in a folder of their own, on ports of their own.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use hookproof_core::secret::Secret;
use hookproof_core::time::Millis;
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use http::Request;
use serde_json::json;
use tempfile::TempDir;

use super::peer::Peer;
use super::plan::Side;
use super::process::{Program, Running};
use super::random::SplitMix64;
use crate::failure::Failure;

/// Ports below those that systems give to outgoing connections: else one of our own connections
/// could take the port of a process that is dead just now.
const PORTS: std::ops::RangeInclusive<u64> = 15_000..=29_999;
/// How many ports are tried.
const PORTS_TRIED_MAX: u32 = 100;

/// The source as which the sender is known to the receiver.
const SOURCE: &str = "demo";

/// A policy under which a run takes seconds: short waits, many attempts.
const SENDER_POLICY: &str = r#"
[sender.address]
allow_cidrs = ["127.0.0.1/32"]

[sender.policy]
connect_timeout = "1s"
total_timeout = "3s"
lease_margin = "2s"

[sender.policy.schedule]
jitter = "full"

[sender.policy.schedule.backoff]
kind = "exponential"
base = "100ms"
factor = 2
cap = "1s"
attempts_max = 200

[sender.policy.gate]
concurrency_max = 16

[sender.policy.gate.breaker]
failures_in_a_row = 20
pause = "50ms"
pause_max = "200ms"
"#;

/// A sender and a receiver that know each other.
#[derive(Debug)]
pub(super) struct Rig {
    folder: TempDir,
    secret: Secret,
    sender: SocketAddr,
    receiver: SocketAddr,
}

impl Rig {
    /// Makes the folder, finds the ports, writes the configuration files. Neither the secret nor the
    /// ports are drawn from the seed: two runs with the same seed must not want the same ports.
    pub(super) async fn build() -> Result<Self, Failure> {
        let mut random = SplitMix64::new(TokioHost.entropy());
        let secret = Secret::from_entropy(std::array::from_fn(|_| TokioHost.entropy()));
        let folder = tempfile::Builder::new().prefix("hookproof-demo-").tempdir();
        let folder = folder.map_err(|error| {
            Failure::environment(
                format!("cannot make a folder in {}: {error}", std::env::temp_dir().display()),
                "set TMPDIR to a folder that can be written",
            )
        })?;
        let sender = free_address(&mut random).await?;
        let receiver = loop {
            let address = free_address(&mut random).await?;
            if address != sender {
                break address;
            }
        };
        let rig = Self { folder, secret, sender, receiver };
        rig.write_configuration().map_err(|error| {
            Failure::environment(
                format!("cannot write to {}: {error}", rig.folder().display()),
                "make room there, or set TMPDIR to another folder",
            )
        })?;
        Ok(rig)
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn sender(&self) -> Peer {
        Peer::new(self.sender)
    }

    pub(super) fn receiver(&self) -> Peer {
        Peer::new(self.receiver)
    }

    /// Leaves the folder where it is.
    pub(super) fn keep(self) -> PathBuf {
        self.folder.keep()
    }

    /// Removes the folder. A process that was just killed may still be about to end.
    pub(super) async fn remove(self) {
        const TRIES: u32 = 50;
        for _ in 0..TRIES {
            let removed = fs::remove_dir_all(self.folder());
            if removed.is_ok() {
                return;
            }
            TokioHost.sleep(Millis::new(20)).await;
        }
    }

    /// Starts both processes and registers the receiver at the sender.
    pub(super) async fn start(&self) -> Result<(Running, Running), Failure> {
        let receiver = self.program(Side::Receiver, "receive").start().await?;
        let sender = self.program(Side::Sender, "send").start().await?;
        let endpoint = json!({
            "url": format!("http://{}/hooks/{SOURCE}", self.receiver),
            "secrets": [self.secret.reveal()],
        });
        let body = Bytes::from(endpoint.to_string());
        match self.sender().post(Request::post("/endpoints"), body).await {
            Some(answer) if answer.status == 201 => Ok((sender, receiver)),
            answer => Err(Failure::found(
                "the sender did not register the endpoint",
                answer.map_or_else(
                    || "it did not answer".to_owned(),
                    |answer| String::from_utf8_lossy(&answer.body).into_owned(),
                ),
            )),
        }
    }

    fn program(&self, side: Side, command: &'static str) -> Program {
        let name = side.as_str();
        let configuration = self.folder().join(format!("{name}.toml"));
        Program {
            side,
            arguments: vec![command.into(), "--config".into(), configuration.into()],
            log: self.folder().join(format!("{name}.log")),
        }
    }

    fn write_configuration(&self) -> io::Result<()> {
        let (sender, receiver) = (self.sender, self.receiver);
        fs::write(
            self.folder().join("sender.toml"),
            format!("listen = \"{sender}\"\ndatabase = \"sender.db\"\n{SENDER_POLICY}"),
        )?;
        fs::write(
            self.folder().join("receiver.toml"),
            format!(
                "listen = \"{receiver}\"\ndatabase = \"receiver.db\"\n\n[[receiver.sources]]\nid = \
                 \"{SOURCE}\"\nsecrets = [\"{}\"]\n",
                self.secret.reveal()
            ),
        )
    }
}

/// A loopback address on which nobody listens now.
async fn free_address(random: &mut SplitMix64) -> Result<SocketAddr, Failure> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..PORTS_TRIED_MAX {
        let port = u16::try_from(random.within(PORTS)).unwrap_or(u16::MAX);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        match TokioHost.listen(address).await {
            Ok(_listener) => return Ok(address),
            Err(error) => last = error,
        }
    }
    Err(Failure::environment(
        format!("found no free port from {} to {}: {last}", PORTS.start(), PORTS.end()),
        "look at what listens on this machine",
    ))
}
