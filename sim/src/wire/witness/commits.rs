//! What both stores hold, looked into after each of their commits.

use hookproof_core::delivery::{AttemptRecord, Delivery, Phase};
use hookproof_core::outcome::Outcome;
use hookproof_core::time::Timestamp;

use super::{Moment, Witness, trial};
use crate::fact::{Fact, Written};
use crate::sometimes::Sometimes;
use crate::tape;
use crate::wire::application::{ENTITY_AT, VERSION_AT};
use crate::wire::host::{RECEIVER, SENDER};
use crate::wire::observer::{ReceiverChange, SenderChange};
use crate::wire::verify::digest;

impl Witness {
    /// The sender's store has committed. Tells whether anything changed.
    pub(in crate::wire) fn sender_committed(&mut self, at: &Moment) -> bool {
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
                    let delivery = self.names.delivery(&delivery);
                    let event = self.names.route(delivery).event;
                    self.tell(at.now, &Fact::Lost { event });
                }
                SenderChange::Doubled { delivery } => {
                    let delivery = self.names.delivery(&delivery);
                    let route = self.names.route(delivery);
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
                    self.journal.line(at.now, SENDER, format!("{id} is {verb}"));
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
                    self.journal.line(at.now, SENDER, format!("{id} is deleted"));
                    self.reached_if_waiting(&id, Sometimes::DeletedWaiting);
                    if !self.wishes.is_deletion(&id) {
                        self.tell(at.now, &Fact::Disabled { endpoint, has_cause: false });
                    }
                    self.tell(at.now, &Fact::Deleted { endpoint });
                }
                SenderChange::Noticed { delivery } => {
                    let delivery = self.names.delivery(&delivery);
                    let route = self.names.route(delivery);
                    self.tell(at.now, &Fact::Noticed { route });
                }
            }
        }
        true
    }

    pub(super) fn stored(&mut self, at: &Moment, id: &str, key: &str, body: &[u8]) {
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

    pub(super) fn written(
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
            self.see_clock(at.now, SENDER, started_at);
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
        self.journal.line(at.now, SENDER, text);
        self.judge_fault(at.now, state.id.as_str(), record);
    }

    /// What both stores hold, seen by a look of its own.
    pub(in crate::wire) fn takes_stock(&mut self) {
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
    pub(in crate::wire) fn ask_receiver(&mut self, now: Timestamp) {
        if self.receiver.are_on_trial() {
            self.receiver_committed(now);
        }
    }

    /// The receiver's store has committed. Tells whether anything changed.
    pub(in crate::wire) fn receiver_committed(&mut self, now: Timestamp) -> bool {
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
                        self.see_clock(now, RECEIVER, received_at);
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
                        self.journal.line(now, RECEIVER, text);
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

    fn is_blind(&mut self, now: Timestamp, error: &rusqlite::Error) -> bool {
        self.tell(now, &Fact::Broke { what: &format!("a store cannot be looked into: {error}") });
        false
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
