//! What all hosts of one history share.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hookproof_core::time::Timestamp;

use super::attacker::Attack;
use super::fuse::Fuse;
use super::host::RECEIVER;
use super::request::RawRequest;
use super::witness::{AttemptName, Witness};
use crate::choices::Choices;
use crate::fault::{Fault, Faults};
use crate::journal::Journal;
use crate::zoo::{Mutant, SenderMutant};

/// What all hosts of one history share: the choices, the record, and which faults are on.
pub(super) struct Stage {
    pub(super) choices: Choices,
    pub(super) journal: Journal,
    pub(super) faults: Faults,
    pub(super) crashes_max: u64,
    pub(super) mutant: Option<Mutant>,
    pub(super) faults_on: AtomicBool,
    pub(super) partition_on: AtomicBool,
    /// Requests forwarded so far, by which overtaking is seen.
    pub(super) forwarded: AtomicU64,
    witness: Mutex<Witness>,
    pub(super) lives: Mutex<BTreeMap<&'static str, Life>>,
    /// How far each wall clock is ahead of the true one, in milliseconds.
    walls: Mutex<BTreeMap<&'static str, i64>>,
    /// Claims that are committed, in the order in which the tasks of their attempts start.
    pub(super) claimed: Mutex<VecDeque<AttemptName>>,
    /// The attempt whose task runs at this moment.
    pub(super) current: Mutex<Option<AttemptName>>,
    attacks: Mutex<Vec<Attack>>,
    /// R07 and R23: what wrong receivers know of requests, verified or not.
    met: Mutex<Met>,
    /// The keys of the calls that the downstream service failed.
    failed_calls: Mutex<BTreeSet<String>>,
    /// When a host's store refuses every write, from and to.
    full: BTreeMap<&'static str, (Timestamp, Timestamp)>,
}

/// A request: where it goes, and the id of its event.
type Request = (String, String);

/// What wrong receivers know requests by.
#[derive(Default)]
struct Met {
    /// The names under which each came.
    names: BTreeSet<(Request, String)>,
    /// Whether the last name of each was one of them before.
    is_known: BTreeMap<Request, bool>,
}

/// The current life of a host.
#[derive(Default)]
pub(super) struct Life {
    pub(super) fuse: Fuse,
    pub(super) boots: u32,
    pub(super) crashes: u64,
    /// It was ended on purpose, to start again.
    pub(super) is_restart: bool,
}

impl Stage {
    pub(super) fn new(
        choices: Choices,
        journal: Journal,
        faults: Faults,
        crashes_max: u64,
        mutant: Option<Mutant>,
        full: BTreeMap<&'static str, (Timestamp, Timestamp)>,
        witness: Witness,
    ) -> Self {
        Self {
            choices,
            journal,
            faults,
            crashes_max,
            mutant,
            faults_on: AtomicBool::new(false),
            partition_on: AtomicBool::new(false),
            forwarded: AtomicU64::new(0),
            witness: Mutex::new(witness),
            lives: Mutex::default(),
            walls: Mutex::default(),
            claimed: Mutex::default(),
            current: Mutex::default(),
            attacks: Mutex::default(),
            met: Mutex::default(),
            failed_calls: Mutex::default(),
            full,
        }
    }

    pub(super) fn are_faults_on(&self) -> bool {
        self.faults_on.load(Ordering::Relaxed)
    }

    pub(super) fn is_partitioned(&self) -> bool {
        self.partition_on.load(Ordering::Relaxed)
    }

    /// R07 and R23: a request for an event has reached a source, under a name that nobody signed.
    pub(super) fn meets(&self, source: &str, event: &str, name: &str) {
        let request = (source.to_owned(), event.to_owned());
        let mut met = lock(&self.met);
        let is_new = met.names.insert((request.clone(), name.to_owned()));
        met.is_known.insert(request, !is_new);
    }

    /// R07 and R23: whether the name of the last of these requests was known before.
    pub(super) fn was_met(&self, source: &str, event: &str) -> bool {
        let request = (source.to_owned(), event.to_owned());
        lock(&self.met).is_known.get(&request).copied().unwrap_or(false)
    }

    /// The downstream service fails the call with this key.
    pub(super) fn fails_call(&self, key: &str) {
        lock(&self.failed_calls).insert(key.to_owned());
    }

    /// Whether it failed the last call with this key, which is told once.
    pub(super) fn has_failed_call(&self, key: &str) -> bool {
        lock(&self.failed_calls).remove(key)
    }

    pub(super) fn is_sender_mutant(&self, mutant: SenderMutant) -> bool {
        self.mutant == Some(Mutant::Sender(mutant))
    }

    /// Whether a host's store refuses every write at that time.
    pub(super) fn is_full(&self, host: &'static str, now: Timestamp) -> bool {
        self.full.get(host).is_some_and(|(from, to)| *from <= now && now < *to)
    }

    /// Whether a fault does what was decided. Under a broken harness it does nothing.
    pub(super) fn does(&self, fault: Fault) -> bool {
        !self.mutant.is_some_and(|mutant| mutant.idles(fault))
    }

    /// Whether the current life of a host has ended.
    pub(super) fn has_ended(&self, name: &'static str) -> bool {
        lock(&self.lives).get(name).is_some_and(|life| life.fuse.is_blown())
    }

    /// Ends the current life of a host, so that another one begins, with what it finds then.
    pub(super) fn restart(&self, name: &'static str) {
        let mut lives = lock(&self.lives);
        let life = lives.entry(name).or_default();
        if !life.fuse.is_blown() {
            life.is_restart = true;
            life.fuse.blow();
        }
    }

    /// Ends every host: nothing runs on any of them any more.
    pub(super) fn end_all(&self) {
        for life in lock(&self.lives).values() {
            life.fuse.blow();
        }
    }

    pub(super) fn witness(&self) -> MutexGuard<'_, Witness> {
        lock(&self.witness)
    }

    /// How far a host's wall clock is ahead of the true one, in milliseconds.
    pub(super) fn wall_ahead(&self, host: &'static str) -> i64 {
        lock(&self.walls).get(host).copied().unwrap_or(0)
    }

    /// Sets a host's wall clock.
    pub(super) fn set_wall(&self, host: &'static str, fault: Fault, ahead_ms: i64) {
        self.journal.chose(fault);
        if self.does(fault) {
            lock(&self.walls).insert(host, ahead_ms);
        }
        self.witness().clock_is_wrong(host, fault, ahead_ms);
    }

    /// The next task that the sender starts makes this attempt, or one of the next.
    pub(super) fn attempt_follows(&self, delivery: &str, number: u32) {
        let attempt = self.witness().attempt(delivery, number);
        lock(&self.claimed).push_back(attempt);
    }

    /// The attempt whose task runs at this moment.
    pub(super) fn attempt(&self) -> Option<AttemptName> {
        *lock(&self.current)
    }

    pub(super) fn add_attacks(&self, attacks: Vec<Attack>) {
        lock(&self.attacks).extend(attacks);
    }

    /// What the attacker planned and has not sent.
    pub(super) fn attacks_left(&self) -> usize {
        lock(&self.attacks).len()
    }

    /// What is to be sent now.
    pub(super) fn attacks_due(&self, now: Timestamp) -> Vec<Attack> {
        lock(&self.attacks).extract_if(.., |attack| attack.at <= now).collect()
    }

    fn receiver_wall(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_millis(now.as_millis() + self.wall_ahead(RECEIVER))
    }

    /// Whether the receiver must take a request, if it looks now.
    pub(super) fn is_valid_for_receiver(
        &self,
        now: Timestamp,
        request: &RawRequest,
    ) -> Option<bool> {
        let wall = self.receiver_wall(now);
        self.witness().is_valid(request, wall)
    }

    /// The receiver answers a request, which was valid or not when it left.
    pub(super) fn judged(
        &self,
        now: Timestamp,
        request: &RawRequest,
        was_valid: Option<bool>,
        status: u16,
    ) {
        let wall = self.receiver_wall(now);
        self.witness().judged(now, wall, request, was_valid, status);
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The clock that is never wrong.
pub(super) fn true_now() -> Timestamp {
    let since_epoch = turmoil::since_epoch().unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}
