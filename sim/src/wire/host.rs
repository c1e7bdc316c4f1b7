//! The simulated host: the seam's other implementation.

use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::host::Host;
use rusqlite::Connection;
use turmoil::net::{TcpListener, TcpStream};

use super::fuse::{Fuse, Fused};
use super::stream::{Plan, SimStream};
use crate::choices::Choices;
use crate::fault::{ConnectionFault, Fault, Faults};
use crate::journal::Journal;
use crate::zoo::HarnessMutant;

/// The names of the hosts, which are also their names in the network.
pub(super) const SENDER: &str = "sender";
pub(super) const RECEIVER: &str = "receiver";
pub(super) const APPLICATION: &str = "application";

/// The one port that everybody serves on.
pub(super) const PORT: u16 = 80;

/// What all hosts of one history share: the choices, the record, and which faults are on.
pub(super) struct Stage {
    pub(super) choices: Choices,
    pub(super) journal: Journal,
    pub(super) faults: Faults,
    pub(super) crashes_max: u64,
    pub(super) harness: Option<HarnessMutant>,
    pub(super) faults_on: AtomicBool,
    pub(super) partition_on: AtomicBool,
    /// Requests forwarded so far, by which overtaking is seen.
    pub(super) forwarded: AtomicU64,
    /// The harness's own look into the sender's store.
    pub(super) sender_store: Mutex<Option<Connection>>,
    lives: Mutex<BTreeMap<&'static str, Life>>,
}

/// The current life of a host.
#[derive(Default)]
struct Life {
    fuse: Fuse,
    boots: u64,
    crashes: u64,
}

impl Stage {
    pub(super) fn new(
        choices: Choices,
        journal: Journal,
        faults: Faults,
        crashes_max: u64,
        harness: Option<HarnessMutant>,
    ) -> Self {
        Self {
            choices,
            journal,
            faults,
            crashes_max,
            harness,
            faults_on: AtomicBool::new(false),
            partition_on: AtomicBool::new(false),
            forwarded: AtomicU64::new(0),
            sender_store: Mutex::new(None),
            lives: Mutex::default(),
        }
    }

    pub(super) fn are_faults_on(&self) -> bool {
        self.faults_on.load(Ordering::Relaxed)
    }

    pub(super) fn is_partitioned(&self) -> bool {
        self.partition_on.load(Ordering::Relaxed)
    }

    /// Whether the current life of a host has ended.
    pub(super) fn has_ended(&self, name: &'static str) -> bool {
        self.lives().get(name).is_some_and(|life| life.fuse.is_blown())
    }

    /// Ends every host: nothing runs on any of them any more.
    pub(super) fn end_all(&self) {
        for life in self.lives().values() {
            life.fuse.blow();
        }
    }

    fn lives(&self) -> MutexGuard<'_, BTreeMap<&'static str, Life>> {
        self.lives.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the sender's store, as committed, holds this attempt as in flight.
    pub(super) fn is_claimed(&self, delivery: &str, attempt: &str) -> bool {
        let store = self.sender_store.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(connection) = store.as_ref() else { return false };
        connection
            .prepare_cached(
                "SELECT count(*) FROM deliveries
                 WHERE id = ?1 AND phase = 'in_flight' AND attempts = ?2",
            )
            .and_then(|mut query| query.query_row([delivery, attempt], |row| row.get::<_, i64>(0)))
            .is_ok_and(|count| count == 1)
    }
}

/// A host in the simulated network. Its clock is turmoil's, its entropy and its mortality are
/// choices, and its connections suffer the faults of the history.
#[derive(Clone)]
pub struct SimHost {
    name: &'static str,
    pub(super) stage: Arc<Stage>,
    fuse: Fuse,
}

impl SimHost {
    /// A new life of the host `name`; to be called on it.
    #[expect(clippy::disallowed_methods, reason = "what ends a host's tasks is not one of them")]
    pub(super) fn boot(name: &'static str, stage: &Arc<Stage>) -> Self {
        let fuse = Fuse::default();
        let boots = {
            let mut lives = stage.lives();
            let life = lives.entry(name).or_default();
            life.fuse = fuse.clone();
            life.boots += 1;
            life.boots
        };
        tokio::spawn(fuse.clone().reap());
        let host = Self { name, stage: stage.clone(), fuse };
        if boots > 1
            && let Some(fault) = host.crash_fault()
        {
            stage.journal.fired(host.now(), name, fault, "and is up again");
        }
        host
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// `task`, which ends with this life of the host.
    pub(super) fn bound(&self, task: impl Future<Output = ()> + Send + 'static) -> Fused {
        let host = self.clone();
        self.fuse.wrap(task, move |message| {
            host.stage.journal.breakdown(host.now(), host.name, &format!("panic: {message}"));
        })
    }

    fn crash_fault(&self) -> Option<Fault> {
        match self.name {
            SENDER => Some(Fault::SenderCrash),
            RECEIVER => Some(Fault::ReceiverCrash),
            _ => None,
        }
    }

    fn crashes_here(&self, point: CrashPoint) -> bool {
        let stage = &self.stage;
        let Some(fault) = self.crash_fault().filter(|_| stage.are_faults_on()) else {
            return false;
        };
        let per_mille = stage.faults.per_mille(fault) * frequency(point) / 4;
        if !stage.choices.chance(self.name, point.as_str(), per_mille) {
            return false;
        }
        let mut lives = stage.lives();
        let life = lives.entry(self.name).or_default();
        if life.crashes >= stage.crashes_max {
            return false;
        }
        life.crashes += 1;
        stage.journal.chose(fault);
        // A broken harness: it says that it crashed the host, and goes on.
        stage.harness != Some(HarnessMutant::CrashesNothing)
    }

    fn plan(&self, fault: Fault) -> Plan {
        let choices = &self.stage.choices;
        let name = self.name;
        match fault {
            Fault::RequestLost => Plan::LoseRequest,
            Fault::ResponseLost => Plan::LoseResponse,
            Fault::ConnectionReset => Plan::Reset,
            Fault::Duplicate => {
                // At once more often than not: two copies that race are the harder case.
                let quarters = choices.draw(name, "duplicate delay", 8).saturating_sub(3);
                Plan::Duplicate(Millis::new(quarters * 250))
            }
            Fault::Reorder => {
                Plan::Hold(Millis::new(choices.between(name, "held for", 1, 30) * 100))
            }
            Fault::ServerError => {
                let status = [500, 502, 503, 504][index(choices.draw(name, "5xx", 4))];
                Plan::Answer { fault, status, retry_after: None }
            }
            Fault::TooManyRequests => {
                let retry_after = choices
                    .chance(name, "has retry-after", 500)
                    .then(|| choices.between(name, "retry-after", 0, 8));
                Plan::Answer { fault, status: 429, retry_after }
            }
            _ => Plan::Clean,
        }
    }
}

/// How often a crash strikes at a point compared with others, in quarters: points that are passed
/// all the time would otherwise take every crash, and those that are rarely passed none.
fn frequency(point: CrashPoint) -> u64 {
    match point {
        CrashPoint::StoreExecuted | CrashPoint::StoreCommitted => 1,
        CrashPoint::NoticeSent => 32,
        _ => 4,
    }
}

/// A small draw as an index.
fn index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(0)
}

#[expect(clippy::disallowed_methods, reason = "this is the seam's implementation on turmoil")]
impl Host for SimHost {
    type Stream = SimStream;
    type Listener = TcpListener;

    const SIMULATED: bool = true;

    fn now(&self) -> Timestamp {
        let since_epoch = turmoil::since_epoch().unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }

    fn entropy(&self) -> u64 {
        self.stage.choices.bits(self.name, "entropy")
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(self.bound(task));
    }

    fn sleep(&self, span: Millis) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(span.to_duration())
    }

    async fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        match [SENDER, RECEIVER].into_iter().find(|known| *known == name) {
            Some(known) => Ok(vec![SocketAddr::new(turmoil::lookup(known), port)]),
            None => Err(io::Error::new(io::ErrorKind::NotFound, format!("no host {name}"))),
        }
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<SimStream> {
        let stage = &self.stage;
        let latency = stage.choices.draw(self.name, "latency", 4) * 10;
        let fault = match stage.faults.on_connection(&stage.choices, self.name) {
            ConnectionFault::Kind(fault) if stage.are_faults_on() => Some(fault),
            _ => None,
        };
        self.sleep(Millis::new(latency)).await;
        if stage.is_partitioned() && self.name == SENDER {
            stage.journal.fired(self.now(), self.name, Fault::Partition, "connecting in vain");
            pending::<()>().await;
        }
        if let Some(fault) = fault {
            stage.journal.chose(fault);
        }
        match fault {
            Some(Fault::ConnectRefused) => {
                stage.journal.fired(self.now(), self.name, Fault::ConnectRefused, "");
                Err(io::ErrorKind::ConnectionRefused.into())
            }
            Some(Fault::ConnectTimeout) => {
                stage.journal.fired(self.now(), self.name, Fault::ConnectTimeout, "");
                pending().await
            }
            fault => {
                let plan = fault.map_or(Plan::Clean, |fault| self.plan(fault));
                let stream = TcpStream::connect(to).await?;
                // Both connections stand before the request is written, so that the two copies can
                // arrive in one moment.
                let twin = match plan {
                    Plan::Duplicate(_) => TcpStream::connect(to).await.ok(),
                    _ => None,
                };
                Ok(SimStream::tapped(stream, twin, self.clone(), plan))
            }
        }
    }

    async fn listen(&self, on: SocketAddr) -> io::Result<TcpListener> {
        TcpListener::bind(on).await
    }

    fn local_addr(listener: &TcpListener) -> io::Result<SocketAddr> {
        listener.local_addr()
    }

    async fn accept(&self, listener: &mut TcpListener) -> io::Result<(SimStream, SocketAddr)> {
        let (stream, peer) = listener.accept().await?;
        Ok((SimStream::plain(stream), peer))
    }

    fn passes(&self, point: CrashPoint) -> bool {
        if self.fuse.is_blown() {
            return true;
        }
        self.stage.journal.passed(self.now(), self.name, point);
        if !self.crashes_here(point) {
            return false;
        }
        self.stage.journal.crashed(self.now(), self.name, point);
        self.fuse.blow();
        true
    }

    fn has_ended(&self) -> bool {
        self.fuse.is_blown()
    }

    fn commit_latency(&self) -> Millis {
        let stage = &self.stage;
        let per_mille = stage.faults.per_mille(Fault::SlowCommit);
        let is_slow = stage.choices.chance(self.name, "slow commit", per_mille);
        if !is_slow || !stage.are_faults_on() {
            return Millis::ZERO;
        }
        let latency = Millis::new(stage.choices.between(self.name, "commit takes", 1, 10) * 100);
        stage.journal.chose(Fault::SlowCommit);
        stage.journal.fired(self.now(), self.name, Fault::SlowCommit, &latency.to_string());
        latency
    }
}
