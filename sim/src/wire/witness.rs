//! Who sees everything that happens on the wire and in the stores, and tells the checkers.
//!
//! Both stores are looked into after each commit, before anybody is told of it; requests and answers
//! are seen as they pass. What only the process itself can know is told by [`super::watched`].

mod assumed;
mod attempts;
mod entries;
mod trial;

use std::collections::BTreeMap;

use hookproof_core::delivery::{AttemptRecord, Delivery, Phase};
use hookproof_core::outcome::Outcome;
use hookproof_core::policy::Policy;
use hookproof_core::time::{Millis, Timestamp};

use super::application::{ENTITY_AT, VERSION_AT};
use super::books::Books;
use super::names::Names;
use super::observer::{ReceiverChange, SenderChange};
use super::people::Wishes;
use super::population::Population;
use super::queue::Queue;
use super::verify::digest;
use super::watched::Gates;
use crate::checkers::{Bounds, Checkers, Violation};
use crate::fact::{End, EndpointNo, EventNo, Fact, Life, Written};
use crate::fault::Fault;
use crate::history::Totals;
use crate::journal::Journal;
use crate::scenario::Break;
use crate::sometimes::Sometimes;
use crate::tape;
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

    /// The sender's store has committed. Tells whether anything changed.
    pub(super) fn sender_committed(&mut self, at: &Moment) -> bool {
        let life = if self.is_sender_on_trial() { trial::OWNER } else { at.life };
        let at = &Moment { life, ..*at };
        let changes = match self.sender.look() {
            Ok(Some(changes)) => changes,
            Ok(None) => return false,
            Err(error) => return self.is_blind(at.now, &error),
        };
        let answered_gone: Vec<String> = changes.iter().filter_map(gone_by).collect();
        for change in changes {
            match change {
                SenderChange::Registered { id, url } => {
                    let endpoint = self.names.endpoint_at(&id, &url);
                    let is_sound = self.population.is_sound(endpoint);
                    self.tell(at.now, &Fact::Registered { endpoint, is_sound });
                }
                SenderChange::Stored { id, key, body } => {
                    // A sender on trial does not say with which body.
                    let as_wanted = self.wanted.get(&key).filter(|_| self.is_sender_on_trial());
                    let body = as_wanted.cloned().unwrap_or(body);
                    self.stored(at, &id, &key, &body);
                }
                SenderChange::Written { state, record, has_notice } => {
                    self.written(at, &state, record.as_ref(), has_notice);
                }
                SenderChange::Lost { delivery } => {
                    let event = self.names.route(&delivery).event;
                    self.tell(at.now, &Fact::Lost { event });
                }
                SenderChange::Doubled { delivery } => {
                    let route = self.names.route(&delivery);
                    self.tell(at.now, &Fact::Doubled { route });
                }
                SenderChange::Enabled { id, is_enabled } => {
                    let endpoint = self.names.endpoint(&id);
                    let by_rule =
                        self.policy.gate.breaker.as_ref().is_some_and(|b| b.disable.is_some());
                    let has_cause =
                        by_rule || answered_gone.contains(&id) || self.wishes.is_held(&id);
                    if !is_enabled {
                        self.reached_if_waiting(&id, Sometimes::DisabledWaiting);
                    }
                    let verb = if is_enabled { "enabled" } else { "disabled" };
                    self.journal.line(at.now, super::host::SENDER, format!("{id} is {verb}"));
                    self.tell(
                        at.now,
                        &match is_enabled {
                            true => Fact::Enabled { endpoint },
                            false => Fact::Disabled { endpoint, has_cause },
                        },
                    );
                }
                SenderChange::Deleted { id } => {
                    let endpoint = self.names.endpoint(&id);
                    self.journal.line(at.now, super::host::SENDER, format!("{id} is deleted"));
                    self.reached_if_waiting(&id, Sometimes::DeletedWaiting);
                    if !self.wishes.is_deletion(&id) {
                        self.tell(at.now, &Fact::Disabled { endpoint, has_cause: false });
                    }
                    self.tell(at.now, &Fact::Deleted { endpoint });
                }
                SenderChange::Noticed { delivery } => {
                    let route = self.names.route(&delivery);
                    self.tell(at.now, &Fact::Noticed { route });
                }
            }
        }
        true
    }

    fn stored(&mut self, at: &Moment, id: &str, key: &str, body: &[u8]) {
        let event = self.names.event(id);
        self.bodies.insert(event, digest(body));
        if self.sender.seen().endpoints_known().any(|(_, is_enabled)| !is_enabled) {
            self.reached(Sometimes::PublishedWhileDisabled);
        }
        if let Some(version) = version_in(body) {
            self.versions.insert(event, version);
        }
        // With another body it is not what anybody wanted.
        let publish = match self.wanted.get(key) {
            Some(wanted) if wanted == body => self.names.publish(key),
            _ => self.names.publish(&format!("{key} with the body of {id}")),
        };
        self.tell(at.now, &Fact::Stored { event, publish });
    }

    fn written(
        &mut self,
        at: &Moment,
        state: &Delivery,
        record: Option<&AttemptRecord>,
        has_notice: bool,
    ) {
        self.journal.tape().see(tape::Event::DeliveryKept(state.clone()));
        let id = state.id.as_str();
        let known = self.names.route_of(id, state.event_id.as_str(), state.endpoint_id.as_str());
        let before = self.phases.insert(id.to_owned(), state.phase);
        self.reached_by(before, state, record);
        let asked = record.and_then(|record| self.asked_by(id, record.attempt));
        let written = Written {
            route: known,
            state,
            record,
            asked,
            has_notice,
            by: at.life,
            // Whoever opens the file owns it: each life of the process is an epoch.
            epoch: u64::from(at.life.number),
            is_asked: self.wishes.explain(state, record),
            clock_ahead: at.ahead(),
        };
        self.tell(at.now, &Fact::Written(written));
        if let Some(record) = record {
            self.recorded(at, state, record);
        }
        if let Phase::InFlight { started_at, .. } = state.phase {
            self.see_clock(at.now, super::host::SENDER, started_at);
        }
    }

    /// Tells what became of an attempt, and whether its fault had its effect.
    fn recorded(&mut self, at: &Moment, state: &Delivery, record: &AttemptRecord) {
        let what = match state.phase {
            Phase::Scheduled { due, .. } => format!("next in {}", due.since(at.local)),
            Phase::InFlight { .. } => "in flight".to_owned(),
            Phase::Delivered { .. } => "delivered".to_owned(),
            Phase::Dead { .. } => "dead".to_owned(),
            Phase::Cancelled { .. } => "cancelled".to_owned(),
        };
        let AttemptRecord { attempt, outcome, .. } = record;
        let text = format!("{}: attempt {attempt}: {outcome}; {what}", state.event_id);
        self.journal.line(at.now, super::host::SENDER, text);
        self.judge_fault(at.now, state.id.as_str(), record);
    }

    /// What both stores hold, seen by a look of its own.
    pub(super) fn takes_stock(&mut self) {
        match (self.sender.stock(), self.receiver.stock()) {
            (Ok(deliveries), Ok(entries)) => {
                self.journal.tape().see(tape::Event::Stock { deliveries, entries });
            }
            (Err(error), _) | (_, Err(error)) => {
                self.is_blind(self.latest, &error);
            }
        }
    }

    /// A receiver on trial is asked for its books, for it need not tell when it commits.
    pub(super) fn ask_receiver(&mut self, now: Timestamp) {
        if self.receiver.are_on_trial() {
            self.receiver_committed(now);
        }
    }

    /// The receiver's store has committed. Tells whether anything changed.
    pub(super) fn receiver_committed(&mut self, now: Timestamp) -> bool {
        let changes = match self.receiver.look() {
            Ok(Some(changes)) => changes,
            Ok(None) => return false,
            Err(error) => return self.is_blind(now, &error),
        };
        for change in changes {
            match change {
                ReceiverChange::Recorded { source, event, received_at } => {
                    let (source, event) = (self.names.source(&source), self.names.event(&event));
                    self.tell(now, &Fact::Recorded { source, event });
                    if let Some(received_at) = received_at.map(Timestamp::from_millis) {
                        self.see_clock(now, super::host::RECEIVER, received_at);
                    }
                }
                ReceiverChange::Forgotten { source, event } => {
                    let (source, event) = (self.names.source(&source), self.names.event(&event));
                    self.tell(now, &Fact::Forgotten { source, event });
                }
                ReceiverChange::Stepped(entry) => {
                    self.journal.tape().see(tape::Event::EntryKept(*entry));
                }
                ReceiverChange::Lost { event } => {
                    let event = self.names.event(&event);
                    self.tell(now, &Fact::Lost { event });
                }
                ReceiverChange::Effect { source, event } => {
                    if self.receiver.are_on_trial() {
                        let text = format!("the effect of {event}");
                        self.journal.line(now, super::host::RECEIVER, text);
                    }
                    let (source, event) = (self.names.source(&source), self.names.event(&event));
                    self.tell(now, &Fact::Effect { source, event });
                }
                ReceiverChange::Claimed { source, event } => {
                    let (source, event) = (self.names.source(&source), self.names.event(&event));
                    self.tell(now, &Fact::Claimed { source, event });
                }
                ReceiverChange::WorkedOff { source, event, end } => {
                    self.worked_off(now, &source, &event, end);
                }
                ReceiverChange::Entity { source, entity, version } => {
                    let entity = self.names.entity(&source, &entity);
                    self.tell(now, &Fact::Entity { entity, version });
                }
            }
        }
        true
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
    pub(super) fn fails(&mut self, now: Timestamp, name: &AttemptName) -> Option<Break> {
        let endpoint = self.names.route(&name.delivery).endpoint;
        self.population.fails(endpoint, now)
    }

    fn is_blind(&mut self, now: Timestamp, error: &rusqlite::Error) -> bool {
        self.tell(now, &Fact::Broke { what: &format!("a store cannot be looked into: {error}") });
        false
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

/// The version of an entity that a body says it is about.
fn version_in(body: &[u8]) -> Option<(String, u64)> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let entity = body.pointer(ENTITY_AT)?.as_str()?.to_owned();
    Some((entity, body.pointer(VERSION_AT)?.as_u64()?))
}

/// The endpoint that answered 410 in a change.
fn gone_by(change: &SenderChange) -> Option<String> {
    match change {
        SenderChange::Written { state, record: Some(record), .. } => match record.outcome {
            Outcome::Answered { status: 410, .. } => Some(state.endpoint_id.as_str().to_owned()),
            _ => None,
        },
        _ => None,
    }
}
