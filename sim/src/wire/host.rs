//! The simulated host: the seam's other implementation.

use std::future::{Future, pending};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use hookproof_core::inbox::Input;
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::clock::{Reading, SteadyClock};
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::decision::Decision;
use hookproof_runtime::host::Host;
use tokio::time::Instant;
use turmoil::net::{TcpListener, TcpStream};

use super::fuse::{self, Fuse, Fused};
use super::in_attempt::InAttempt;
use super::reached;
use super::stage::{self, Stage, lock};
use super::stream::{Plan, SimStream};
use super::trouble::{can_strike, plan_of_break};
use super::witness::{AttemptName, Moment};
use crate::fact::{Fact, Life as LifeNo};
use crate::fault::{ConnectionFault, Fault};
use crate::scenario::Break;
use crate::sometimes::Sometimes;
use crate::tape;
use crate::zoo::SenderMutant;

/// The names of the hosts, which are also their names in the network.
pub(super) const SENDER: &str = "sender";
pub(super) const RECEIVER: &str = "receiver";
pub(super) const APPLICATION: &str = "application";
pub(super) const ATTACKER: &str = "attacker";
pub(super) const DOWNSTREAM: &str = "downstream";

/// The name under which the sender knows the receiver: one that its address policy takes for public.
pub(super) const RECEIVER_NAME: &str = "receiver.sim";

/// The one port that everybody serves on.
pub(super) const PORT: u16 = 80;

/// A host in the simulated network. Its clocks are turmoil's, as wrong as the history has them; its
/// entropy and its mortality are choices, and its connections suffer the faults of the history.
#[derive(Clone)]
pub(crate) struct SimHost(Arc<Life>);

/// One life of a host.
pub(crate) struct Life {
    name: &'static str,
    pub(super) stage: Arc<Stage>,
    pub(super) fuse: Fuse,
    boots: u32,
    /// When it began, by turmoil's clock of the host and by the true one.
    born: (Instant, Timestamp),
    /// The clock that everything waits by: production's own.
    clock: Mutex<SteadyClock>,
    /// When the store began the commit that is under way, by the true clock.
    commit_began: AtomicI64,
    /// What that commit meets.
    refused: Mutex<Refused>,
    /// Where the receiver is, once it was looked up.
    receiver: OnceLock<IpAddr>,
}

impl Deref for SimHost {
    type Target = Life;

    fn deref(&self) -> &Life {
        &self.0
    }
}

impl SimHost {
    /// A new life of the host `name`; to be called on it.
    #[expect(clippy::disallowed_methods, reason = "what ends a host's tasks is not one of them")]
    pub(super) fn boot(name: &'static str, stage: &Arc<Stage>) -> Self {
        let fuse = Fuse::new(name, stage.journal.clone());
        let (boots, is_restart) = {
            let mut lives = lock(&stage.lives);
            let life = lives.entry(name).or_default();
            life.fuse = fuse.clone();
            life.boots += 1;
            (life.boots, std::mem::take(&mut life.is_restart))
        };
        tokio::spawn(fuse.clone().reap());
        let born = (fuse::now(), stage::true_now());
        let clock = SteadyClock::new(reading(born.1, stage.wall_ahead(name)));
        let host = Self(Arc::new(Life {
            name,
            stage: stage.clone(),
            fuse,
            boots,
            born,
            clock: Mutex::new(clock),
            commit_began: AtomicI64::default(),
            refused: Mutex::default(),
            receiver: OnceLock::new(),
        }));
        if name == SENDER {
            lock(&stage.claimed).clear();
            stage.journal.tape().see(tape::Event::SenderStarts);
            stage.witness().sender_starts(&host.moment());
        }
        if let Some(fault) = host.crash_fault().filter(|_| boots > 1 && !is_restart) {
            stage.journal.fired(born.1, name, fault, "and is up again");
        }
        host
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The clock that is never wrong, without a question to the network.
    pub(super) fn true_now(&self) -> Timestamp {
        let (instant, at) = self.born;
        let lived = fuse::now().saturating_duration_since(instant).as_millis();
        at.plus(Millis::new(u64::try_from(lived).unwrap_or(u64::MAX)))
    }

    /// What all clocks of the host show.
    pub(super) fn moment(&self) -> Moment {
        let life = LifeNo { process: 0, number: self.boots };
        let now = self.true_now();
        Moment { now, local: self.reads(now), wall: self.wall_at(now), life }
    }

    /// The clock that everything waits by.
    fn reads(&self, now: Timestamp) -> Timestamp {
        if self.name == SENDER && self.stage.is_sender_mutant(SenderMutant::WallClock) {
            return self.wall_at(now);
        }
        lock(&self.clock).read(reading(now, self.stage.wall_ahead(self.name))).0
    }

    /// The clock on the wall.
    fn wall_at(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_millis(now.as_millis() + self.stage.wall_ahead(self.name))
    }

    /// `task`, which ends with this life of the host.
    pub(super) fn bound(&self, task: impl Future<Output = ()> + Send + 'static) -> Fused {
        self.fuse.wrap(task)
    }

    /// `work`, which is part of an attempt.
    pub(super) fn in_attempt<T: Future>(&self, name: AttemptName, work: T) -> InAttempt<T> {
        InAttempt::new(name, work, self.stage.clone())
    }

    /// Where the receiver is.
    fn receiver_address(&self) -> IpAddr {
        *self.receiver.get_or_init(|| turmoil::lookup(RECEIVER))
    }

    fn crash_fault(&self) -> Option<Fault> {
        match self.name {
            SENDER => Some(Fault::SenderCrash),
            RECEIVER => Some(Fault::ReceiverCrash),
            _ => None,
        }
    }

    /// Passes a place that has no [`CrashPoint`]; never returns if the host ends there.
    pub(crate) async fn passes_place(&self, name: &'static str) {
        if !self.has_ended() && self.crashes_here(name, USUAL) {
            self.stage.journal.line(self.true_now(), self.name, format!("CRASH at {name}"));
            self.fuse.blow();
        }
        if self.has_ended() {
            pending::<()>().await;
        }
    }

    /// Says in the trace what happens on the host.
    pub(crate) fn says(&self, text: String) {
        self.stage.journal.line(self.true_now(), self.name, text);
    }

    /// How long a disk of the host takes for what it is asked: little, but not nothing.
    pub(crate) fn disk_latency(&self) -> Millis {
        // Never nothing: whoever asks again and again must not stop the time.
        Millis::new(1 + self.stage.choices.draw(self.name, "disk takes", 3))
    }

    /// Whether the host ends at a place that has this name and that share of the crashes.
    fn crashes_here(&self, point: &'static str, frequency: u64) -> bool {
        let stage = &self.stage;
        let Some(fault) = self.crash_fault().filter(|_| stage.are_faults_on()) else {
            return false;
        };
        let per_mille = stage.faults.per_mille(fault) * frequency / USUAL;
        if !stage.choices.crash(self.name, point, per_mille) {
            return false;
        }
        let mut lives = lock(&stage.lives);
        let life = lives.entry(self.name).or_default();
        if life.crashes >= stage.crashes_max {
            return false;
        }
        life.crashes += 1;
        stage.journal.chose(fault);
        stage.does(fault)
    }

    /// The store has committed, or tried to: both are looked into before anybody is told.
    fn committed(&self) {
        let at = self.moment();
        let has_changed = match self.name {
            SENDER => self.stage.witness().sender_committed(&at),
            RECEIVER => self.stage.witness().receiver_committed(at.now),
            _ => return,
        };
        let began = Timestamp::from_millis(self.commit_began.load(Ordering::Relaxed));
        let took = at.now.since(began);
        let journal = &self.stage.journal;
        if took >= Millis::new(100) {
            journal.fired(at.now, self.name, Fault::SlowCommit, &took.to_string());
        }
        let failed_by = std::mem::take(&mut *lock(&self.refused)).failed_by;
        if let Some(fault) = failed_by.filter(|_| !has_changed) {
            journal.fired(at.now, self.name, fault, "nothing is stored");
            journal.reached(Sometimes::StoreRefused);
            if self.name == SENDER {
                let until = at.now.plus(STORE_PAUSE);
                self.stage.witness().tell(at.now, &Fact::Hindered { until });
            }
        }
    }

    /// Draws what happens to a connection; for an attempt of the sender once, and it is remembered.
    fn draw_fault(&self) -> Option<Fault> {
        let stage = &self.stage;
        match stage.faults.on_connection(&stage.choices, self.name) {
            ConnectionFault::Kind(fault) if stage.are_faults_on() => Some(fault),
            _ => None,
        }
    }

    /// What was drawn for the attempt whose task this is.
    fn fault_of(&self, attempt: AttemptName) -> Option<Fault> {
        self.stage.witness().track(attempt).fault
    }
}

/// What a commit met.
#[derive(Default)]
struct Refused {
    /// By which fault it was to be refused.
    decided: Option<Fault>,
    /// By which it failed.
    failed_by: Option<Fault>,
}

/// How long the sender waits after its store refused.
const STORE_PAUSE: Millis = Millis::new(200);

/// What both clocks of a host show at a moment whose wall clock is so far ahead.
fn reading(now: Timestamp, wall_ahead_ms: i64) -> Reading {
    let now = now.as_millis().saturating_mul(1_000_000);
    Reading { wall_ns: now + wall_ahead_ms * 1_000_000, monotonic_ns: now }
}

/// How often a crash strikes at a point compared with others, in quarters: points that are passed
/// all the time would otherwise take every crash, and those that are rarely passed none.
fn frequency(point: CrashPoint) -> u64 {
    match point {
        CrashPoint::StoreExecuted | CrashPoint::StoreCommitted => 1,
        CrashPoint::NoticeSent => 32,
        _ => USUAL,
    }
}

/// How often a crash strikes at most points, in quarters.
const USUAL: u64 = 4;

#[expect(clippy::disallowed_methods, reason = "this is the seam's implementation on turmoil")]
impl Host for SimHost {
    type Stream = SimStream;
    type Listener = TcpListener;

    const SIMULATED: bool = true;

    fn now(&self) -> Timestamp {
        self.reads(self.true_now())
    }

    fn not_before(&self, at: Timestamp) {
        lock(&self.clock).not_before(at);
    }

    fn wall(&self) -> Timestamp {
        if self.stage.is_sender_mutant(SenderMutant::FrozenTimestamp)
            && let Some(attempt) = self.stage.attempt()
            && let Some(created_at) = self.stage.witness().created_at(attempt)
        {
            return created_at;
        }
        self.wall_at(self.true_now())
    }

    fn entropy(&self) -> u64 {
        self.stage.choices.bits(self.name, "entropy")
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let attempt = match self.name {
            SENDER => lock(&self.stage.claimed).pop_front(),
            _ => None,
        };
        match attempt {
            None => tokio::spawn(self.bound(task)),
            Some(name) => {
                let task = self.in_attempt(name, task);
                tokio::spawn(self.bound(task))
            }
        };
    }

    fn sleep(&self, span: Millis) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(span.to_duration())
    }

    async fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let address = match name {
            RECEIVER_NAME => self.receiver_address(),
            SENDER | DOWNSTREAM => turmoil::lookup(name),
            _ => return Err(io::Error::new(io::ErrorKind::NotFound, format!("no host {name}"))),
        };
        let mut answers = vec![address];
        if let Some(attempt) = self.stage.attempt() {
            let fails = self.stage.witness().fails(self.true_now(), attempt);
            let fault = self.draw_fault().filter(|fault| can_strike(*fault, fails));
            if let Some(fault) = fault {
                self.stage.journal.chose(fault);
            }
            self.stage.witness().track(attempt).fault = fault;
            match fault.filter(|fault| self.stage.does(*fault)) {
                Some(Fault::DnsFailure) => {
                    return Err(io::Error::new(io::ErrorKind::NotFound, "the resolver fails"));
                }
                Some(Fault::DnsRebinding) => {
                    answers = self.rebound(address);
                    if self.is_deceived(&answers) {
                        // What is judged is right, and what is dialled is something else.
                        self.stage.witness().track(attempt).is_diverted = true;
                        answers = vec![address];
                    }
                }
                _ => {}
            }
        }
        Ok(answers.into_iter().map(|answer| SocketAddr::new(answer, port)).collect())
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<SimStream> {
        let stage = &self.stage;
        let latency = stage.choices.draw(self.name, "latency", 4) * 10;
        let attempt = stage.attempt();
        let fault = match attempt {
            Some(attempt) => self.fault_of(attempt),
            None => self.draw_fault(),
        };
        if let Some(attempt) = attempt {
            let is_diverted = stage.witness().track(attempt).is_diverted;
            let is_denied = is_diverted || to.ip() != self.receiver_address();
            stage.witness().dialled(self.true_now(), attempt, is_denied);
            if is_denied {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
        }
        self.sleep(Millis::new(latency)).await;
        let fails = attempt.and_then(|name| stage.witness().fails(self.true_now(), name));
        if let Some(attempt) = attempt.filter(|_| stage.is_partitioned()) {
            stage.witness().track(attempt).met_partition = true;
            pending::<()>().await;
        }
        match (fault.filter(|fault| stage.does(*fault)), fails) {
            (Some(Fault::ConnectTimeout), _) => pending().await,
            (Some(Fault::ConnectRefused), _) | (_, Some(Break::Refuses)) => {
                Err(io::ErrorKind::ConnectionRefused.into())
            }
            (fault, fails) => {
                let of_fault = || fault.map_or(Plan::Clean, |fault| self.plan(fault));
                let plan = fails.map_or_else(of_fault, plan_of_break);
                if let Some(attempt) = attempt {
                    stage.witness().track(attempt).has_dialled = true;
                }
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
        let stream = SimStream::accepted(stream, self);
        Ok((stream, peer))
    }

    fn passes(&self, point: CrashPoint) -> bool {
        if self.fuse.is_blown() {
            return true;
        }
        match point {
            CrashPoint::StoreExecuted => {
                self.commit_began.store(self.true_now().as_millis(), Ordering::Relaxed);
            }
            CrashPoint::StoreCommitted => self.committed(),
            _ => {}
        }
        self.stage.journal.passed(self.true_now(), self.name, point);
        if !self.crashes_here(point.as_str(), frequency(point)) {
            return false;
        }
        self.stage.journal.crashed(self.true_now(), self.name, point);
        if let Some(what) = reached::by_crash(point) {
            self.stage.journal.reached(what);
        }
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
        stage.journal.chose(Fault::SlowCommit);
        let span = Millis::new(stage.choices.between(self.name, "commit takes", 1, 10) * 100);
        if stage.does(Fault::SlowCommit) { span } else { Millis::ZERO }
    }

    fn decided(&self, decision: &Decision<'_>) {
        self.stage.journal.tape().decided(decision);
        if let Decision::Entry { state, input: Input::Failed { .. }, .. } = decision
            && self.stage.has_failed_call(&format!("{}.{}", state.source, state.event_id))
        {
            let (fault, event) = (Fault::DownstreamFailure, state.event_id.as_str());
            self.stage.journal.fired(self.true_now(), self.name, fault, event);
        }
        if let Decision::Gate { endpoint, asked, .. } = decision {
            let at = self.moment();
            self.stage.witness().gate_asked(&at, endpoint, asked);
        }
    }

    fn refuses_commit(&self) -> bool {
        let fault = self.refusal();
        *lock(&self.refused) = Refused { decided: fault, failed_by: None };
        fault.is_some_and(|fault| self.stage.does(fault))
    }

    fn commit_failed(&self) {
        let mut refused = lock(&self.refused);
        refused.failed_by = refused.decided;
    }

    async fn at(&self, point: CrashPoint) {
        if self.passes(point) {
            pending::<()>().await;
        }
        self.may_be_held_up(point).await;
    }
}
