//! Who sees everything that happens on the wire and in the stores, and tells the checkers.
//!
//! Both stores are looked into after each commit, before anybody is told of it; requests and answers
//! are seen as they pass. What only the process itself can know is told by [`super::watched`].

mod assumed;
mod attempts;
mod commits;
mod entries;
mod trial;

use std::collections::BTreeMap;

use hookproof_core::delivery::{Delivery, Phase};
use hookproof_core::policy::Policy;
use hookproof_core::time::{Millis, Timestamp};

use super::books::Books;
use super::names::Names;
use super::people::Wishes;
use super::population::Population;
use super::queue::Queue;
use super::watched::Gates;
use crate::checkers::{Bounds, Checkers, Violation};
use crate::fact::{End, EndpointNo, EventNo, Fact, Life};
use crate::fault::Fault;
use crate::history::Totals;
use crate::journal::Journal;
use crate::scenario::Break;
use crate::sometimes::Sometimes;
use crate::zoo::HarnessMutant;
pub(super) use attempts::{AttemptName, Track};

/// When something happens on a host, and in which of its lives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// By the true clock.
    pub(super) now: Timestamp,
    /// By the clock that the host waits by.
    pub(super) local: Timestamp,
    /// By the clock on the host's wall.
    pub(super) wall: Timestamp,
    pub(super) life: Life,
}

impl Moment {
    /// How far the clock that the host waits by is ahead, in milliseconds.
    fn ahead(&self) -> i64 {
        self.local.as_millis() - self.now.as_millis()
    }

    /// When, by the true clock, it is `local` for the host.
    fn truly(&self, local: Timestamp) -> Timestamp {
        Timestamp::from_millis(local.as_millis() - self.ahead())
    }
}

/// What is known of a history as a whole.
pub(super) struct Witness {
    checkers: Checkers,
    violation: Option<Violation>,
    journal: Journal,
    pub(super) policy: Policy,
    pub(super) names: Names,
    /// Source → the bytes of the secrets that the receiver knows.
    keys: BTreeMap<String, Vec<Vec<u8>>>,
    /// How often these have changed.
    key_changes: u64,
    population: Population,
    pub(super) wishes: Wishes,
    /// The entity that an event is about, and the version of it.
    versions: BTreeMap<EventNo, (String, u64)>,
    /// The last time that the sender stood still, from and to.
    stood_still: Option<(Timestamp, Timestamp)>,
    /// When the sender's wall clock was set, and by how many milliseconds.
    clock_set: Vec<(Timestamp, i64)>,
    wanted: BTreeMap<String, Vec<u8>>,
    /// The digest of what was published as an event.
    bodies: BTreeMap<EventNo, u64>,
    sender: Queue,
    receiver: Books,
    attempts: BTreeMap<AttemptName, Track>,
    /// Delivery id → the phase that it was last told to be in.
    phases: BTreeMap<String, Phase>,
    pub(super) gates: Gates,
    /// How many endpoints the application has registered.
    pub(super) registered: usize,
    accepted: u64,
    requests: u64,
    /// Effects that a service had which the receiver calls.
    effects_elsewhere: u64,
    /// The latest time that anything was told at.
    latest: Timestamp,
    /// Hosts whose clock was set, and whether that has been seen.
    clocks: BTreeMap<&'static str, ClockSeen>,
}

/// What is seen of a clock that is wrong: what is wrong with it, and by how much at least.
#[derive(Clone, Copy)]
struct ClockSeen {
    fault: Fault,
    ahead_ms: i64,
}

impl Witness {
    pub(super) fn new(
        (bounds, harness): (Bounds, Option<HarnessMutant>),
        policy: &Policy,
        (sources, population): (Vec<(String, Vec<u8>)>, Population),
        journal: Journal,
        (sender, receiver): (Queue, Books),
    ) -> Self {
        let mut names = Names::default();
        for (source, _) in &sources {
            // They are numbered as the population is.
            names.source(source);
        }
        let keys = sources.into_iter().map(|(source, key)| (source, vec![key])).collect();
        let mut witness = Self {
            checkers: Checkers::new(bounds, harness),
            violation: None,
            journal,
            policy: policy.clone(),
            names,
            keys,
            key_changes: 0,
            population,
            wishes: Wishes::default(),
            versions: BTreeMap::new(),
            stood_still: None,
            clock_set: Vec::new(),
            wanted: BTreeMap::new(),
            bodies: BTreeMap::new(),
            sender,
            receiver,
            attempts: BTreeMap::new(),
            phases: BTreeMap::new(),
            gates: Gates::default(),
            registered: 0,
            accepted: 0,
            requests: 0,
            effects_elsewhere: 0,
            latest: Timestamp::from_millis(0),
            clocks: BTreeMap::new(),
        };
        if !witness.is_sender_on_trial() {
            // When a sender on trial means to send, nobody is told.
            witness.tell(crate::history::epoch(), &Fact::Served { policy });
        }
        witness
    }

    /// Tells the checkers; the first violation ends the history.
    pub(super) fn tell(&mut self, now: Timestamp, fact: &Fact<'_>) {
        self.latest = self.latest.max(now);
        if self.violation.is_none()
            && let Err(violation) = self.checkers.see(now, fact)
        {
            self.violation = Some(violation);
        }
    }

    /// Tells that the history is over.
    pub(super) fn end(&mut self, now: Timestamp, is_drained: bool) {
        if self.violation.is_none()
            && let Err(violation) = self.checkers.end(now, &End { is_drained })
        {
            self.violation = Some(violation);
        }
    }

    pub(super) fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    pub(super) fn checkers(&self) -> &Checkers {
        &self.checkers
    }

    pub(super) fn latest(&self) -> Timestamp {
        self.latest
    }

    /// The application wants something published.
    pub(super) fn wants(&mut self, now: Timestamp, key: &str, body: &[u8]) {
        self.wanted.insert(key.to_owned(), body.to_vec());
        let publish = self.names.publish(key);
        self.tell(now, &Fact::Wanted { publish });
    }

    /// The application was told that it is accepted.
    pub(super) fn accepted(&mut self, now: Timestamp, key: &str, event: &str) {
        self.accepted += 1;
        self.ask_sender(now);
        let (publish, event) = (self.names.publish(key), self.names.event(event));
        self.tell(now, &Fact::Accepted { publish, event });
    }

    /// Whether everything that was published is settled on both sides.
    pub(super) fn is_drained(&self, publishes: usize) -> bool {
        let seen = self.sender.seen();
        let is_open = |state: &Delivery| {
            matches!(state.phase, Phase::Scheduled { .. } | Phase::InFlight { .. })
        };
        usize::try_from(self.accepted) == Ok(publishes)
            && !seen.deliveries().any(is_open)
            && seen.all_noticed()
            && !self.receiver.are_open()
    }

    /// How long the world goes on after everything has drained.
    pub(super) fn linger(&self) -> Millis {
        self.receiver.linger()
    }

    /// The endpoints that are disabled and that nobody wants to be, by their ids.
    pub(super) fn disabled(&self) -> Vec<String> {
        let endpoints = self.sender.seen().endpoints_known();
        let is_wrong = |(id, is_enabled): &(&str, bool)| !is_enabled && !self.wishes.is_held(id);
        endpoints.filter(is_wrong).map(|(id, _)| id.to_owned()).collect()
    }

    /// The ids of the endpoints that there are, by their numbers.
    pub(super) fn endpoints(&mut self) -> BTreeMap<EndpointNo, String> {
        let known: Vec<String> =
            self.sender.seen().endpoints_known().map(|(id, _)| id.to_owned()).collect();
        known.into_iter().map(|id| (self.names.endpoint(&id), id)).collect()
    }

    /// Whether an endpoint is enabled.
    pub(super) fn is_enabled(&self, id: &str) -> bool {
        self.sender.seen().endpoints_known().any(|(known, is_enabled)| known == id && is_enabled)
    }

    pub(super) fn totals(&self) -> Totals {
        let in_phase = |wanted: fn(&Phase) -> bool| {
            let phases = self.sender.seen().deliveries().map(|delivery| &delivery.phase);
            u64::try_from(phases.filter(|phase| wanted(phase)).count()).unwrap_or(u64::MAX)
        };
        Totals {
            accepted: self.accepted,
            deliveries: in_phase(|_| true),
            delivered: in_phase(|phase| matches!(phase, Phase::Delivered { .. })),
            dead: in_phase(|phase| matches!(phase, Phase::Dead { .. })),
            requests: self.requests,
            effects: self.receiver.effects() + self.effects_elsewhere,
        }
    }

    /// A host's clock is wrong from now on, by so much.
    pub(super) fn clock_is_wrong(&mut self, host: &'static str, fault: Fault, ahead_ms: i64) {
        self.clocks.insert(host, ClockSeen { fault, ahead_ms });
    }

    /// A time by the clock of a host is seen in what it stores or sends.
    fn see_clock(&mut self, now: Timestamp, host: &'static str, shown: Timestamp) {
        let ahead = shown.as_millis() - now.as_millis();
        let seen = self.clocks.get(host).copied();
        // Whatever is stamped was stamped a little before it is seen.
        let is_it = |seen: &ClockSeen| (ahead - seen.ahead_ms).abs() < 5_000;
        if let Some(seen) = seen.filter(is_it) {
            self.clocks.remove(host);
            self.journal.fired(now, host, seen.fault, &format!("{} ms", seen.ahead_ms));
        }
    }

    /// The sender stands still from now on, until then.
    pub(super) fn stands_still(&mut self, now: Timestamp, until: Timestamp) {
        self.stood_still = Some((now, until));
        self.tell(now, &Fact::Hindered { until });
    }

    /// The sender's wall clock is set, by so many milliseconds.
    pub(super) fn sets_clock(&mut self, now: Timestamp, by_ms: i64) {
        self.clock_set.push((now, by_ms));
    }

    /// The earliest and the latest that the sender's wall clock can have shown for the moment at which
    /// it shows `wall`, had it not been set since then.
    fn walls_since(&self, since: Timestamp, wall: Timestamp) -> (Timestamp, Timestamp) {
        let recent = self.clock_set.iter().rev().take_while(|(at, _)| *at >= since);
        let (mut before, mut walls) = (wall, (wall, wall));
        for (_, by_ms) in recent {
            before = Timestamp::from_millis(before.as_millis() - by_ms);
            walls = (walls.0.min(before), walls.1.max(before));
        }
        walls
    }

    /// How long the sender has stood still since then.
    fn stood_still_since(&self, since: Timestamp, now: Timestamp) -> Millis {
        self.stood_still.map_or(Millis::ZERO, |(from, to)| now.min(to).since(since.max(from)))
    }

    /// A state was reached that is worth having been in.
    pub(super) fn reached(&self, what: Sometimes) {
        self.journal.reached(what);
    }

    /// Whether an attempt of a delivery is under way.
    pub(super) fn is_in_flight(&self, delivery: &str) -> bool {
        matches!(self.phases.get(delivery), Some(Phase::InFlight { .. }))
    }

    /// All deliveries as they are stored.
    pub(super) fn deliveries(&self) -> impl Iterator<Item = &Delivery> {
        self.sender.seen().deliveries()
    }

    /// Whether the sender has stood still since then.
    pub(super) fn has_stood_still_since(&self, since: Timestamp) -> bool {
        self.stood_still.is_some_and(|(_, to)| to > since)
    }

    /// The receiver knows these secrets of a source from now on.
    pub(super) fn receiver_knows(&mut self, source: &str, keys: Vec<Vec<u8>>) {
        self.keys.insert(source.to_owned(), keys);
        self.key_changes += 1;
    }

    /// The secrets of a source that the receiver knows.
    pub(super) fn known_to_receiver(&self, source: &str) -> Vec<Vec<u8>> {
        self.keys.get(source).cloned().unwrap_or_default()
    }

    /// How the endpoint of an attempt fails now.
    pub(super) fn fails(&mut self, now: Timestamp, attempt: AttemptName) -> Option<Break> {
        let endpoint = self.names.route(attempt.delivery).endpoint;
        self.population.fails(endpoint, now)
    }

    /// How long a claim lasts.
    pub(super) fn lease(&self) -> Millis {
        self.policy.lease()
    }

    /// How long an attempt may take.
    pub(super) fn total_timeout(&self) -> Millis {
        self.policy.total_timeout
    }
}
