//! People who look after endpoints and deliveries, over the sender's API.
//!
//! What they ask for is noted before they ask, so that the checkers know what a sender did because
//! somebody wanted it: whatever else it cancels, replays or disables it does of its own accord.

use std::collections::BTreeSet;

use hookproof_core::delivery::{AttemptRecord, DeadReason, Delivery, Origin, Phase};
use hookproof_core::outcome::Outcome;
use hookproof_core::secret::{Secret, Secrets};
use hookproof_core::time::Millis;
use hookproof_runtime::host::Host as _;
use hyper::Method;

use super::application::{ask, ask_until, body_of};
use super::host::{RECEIVER, SimHost};
use crate::scenario::{Operation, Scenario};
use crate::sometimes::Sometimes;

/// What people have asked for so far.
#[derive(Default)]
pub(super) struct Wishes {
    replays: BTreeSet<String>,
    cancellations: BTreeSet<String>,
    /// Endpoints that are disabled because somebody wants it.
    held: BTreeSet<String>,
    deletions: BTreeSet<String>,
    /// Sources whose secret is being rotated.
    rotating: BTreeSet<String>,
    /// How many of them still have something to do.
    pub(super) open: u64,
}

impl Wishes {
    /// Whether somebody wants an endpoint to be disabled.
    pub(super) fn is_held(&self, endpoint: &str) -> bool {
        self.held.contains(endpoint)
    }

    /// Whether somebody wants an endpoint to be deleted.
    pub(super) fn is_deletion(&self, endpoint: &str) -> bool {
        self.deletions.contains(endpoint)
    }

    /// Whether a delivery was written because somebody asked for it. An attempt that ended did so by
    /// itself.
    pub(super) fn explain(&self, state: &Delivery, record: Option<&AttemptRecord>) -> bool {
        let id = state.id.as_str();
        match state.phase {
            // To cancel what is under way leaves its attempt without an outcome.
            Phase::Cancelled { .. } if record.is_none_or(|r| r.outcome == Outcome::Unknown) => {
                self.cancellations.contains(id)
            }
            _ if record.is_some() => false,
            Phase::Scheduled { origin: Origin::Replay { .. }, .. } => self.replays.contains(id),
            // To cancel a replay leaves what was there before.
            Phase::Cancelled { .. }
            | Phase::Delivered { .. }
            | Phase::Dead {
                reason: DeadReason::Exhausted | DeadReason::Refused | DeadReason::Gone,
                ..
            } => self.cancellations.contains(id),
            Phase::Dead { reason: DeadReason::Expired, .. }
            | Phase::Scheduled { .. }
            | Phase::InFlight { .. } => false,
        }
    }
}

/// What each person does, and when, while the faults are on.
pub(super) fn act(host: &SimHost, scenario: &Scenario, sources: &[String]) {
    for (index, operation) in scenario.operations.iter().copied().enumerate() {
        let who = ("people", u32::try_from(index).unwrap_or(0));
        let person = Person { who, host: host.clone(), sources: sources.to_vec() };
        let choices = &host.stage.choices;
        for _ in 0..choices.between(person.who, "how often", 0, 4) {
            let at = Millis::new(choices.draw(person.who, "when", scenario.safety.get()));
            host.stage.witness().wishes.open += 1;
            let (host, person) = (host.clone(), person.clone());
            host.clone().spawn(async move {
                host.sleep(at).await;
                if host.stage.are_faults_on() {
                    person.does(operation).await;
                }
                host.stage.witness().wishes.open -= 1;
            });
        }
    }
}

/// Somebody who does one kind of thing.
#[derive(Clone)]
struct Person {
    who: (&'static str, u32),
    host: SimHost,
    /// The names of the sources, by the numbers of the endpoints.
    sources: Vec<String>,
}

impl Person {
    async fn does(&self, operation: Operation) {
        match operation {
            Operation::Disable => self.disables().await,
            Operation::Replay => self.asks_for("replay", |wishes| &mut wishes.replays).await,
            Operation::Cancel => self.asks_for("cancel", |wishes| &mut wishes.cancellations).await,
            Operation::Delete => self.deletes().await,
            Operation::Rotate => self.rotates().await,
        }
    }

    /// One of so many.
    fn one_of(&self, what: &'static str, count: usize) -> usize {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        usize::try_from(self.host.stage.choices.draw(self.who, what, count)).unwrap_or(0)
    }

    /// One of the endpoints that there are: its number and its id.
    fn endpoint(&self) -> Option<(usize, String)> {
        let endpoints: Vec<_> = self.host.stage.witness().endpoints().into_iter().collect();
        let (number, id) = endpoints.get(self.one_of("endpoint", endpoints.len()))?;
        Some((usize::try_from(number.0).unwrap_or(0), id.clone()))
    }

    fn says(&self, text: String) {
        self.host.stage.journal.line(self.host.true_now(), "people", text);
    }

    /// Disables an endpoint, and enables it again later.
    async fn disables(&self) {
        let Some((_, endpoint)) = self.endpoint() else { return };
        {
            let mut witness = self.host.stage.witness();
            if !witness.is_enabled(&endpoint) || !witness.wishes.held.insert(endpoint.clone()) {
                return;
            }
        }
        self.says(format!("disable {endpoint}"));
        ask_until(&self.host, Method::POST, &format!("/endpoints/{endpoint}/disable"), None).await;
        let seconds = self.host.stage.choices.between(self.who, "disabled for", 5, 60);
        self.host.sleep(Millis::from_secs(seconds)).await;
        self.says(format!("enable {endpoint}"));
        ask_until(&self.host, Method::POST, &format!("/endpoints/{endpoint}/enable"), None).await;
        self.host.stage.witness().wishes.held.remove(&endpoint);
    }

    /// Deletes an endpoint, but never the first.
    async fn deletes(&self) {
        let Some((1.., endpoint)) = self.endpoint() else { return };
        self.host.stage.witness().wishes.deletions.insert(endpoint.clone());
        self.says(format!("delete {endpoint}"));
        ask_until(&self.host, Method::DELETE, &format!("/endpoints/{endpoint}"), None).await;
    }

    /// The sender signs with both secrets; the receiver learns the new one, and then forgets the old
    /// one, each time by starting again; at last the sender drops the old one.
    async fn rotates(&self) {
        let Some((number, endpoint)) = self.endpoint() else { return };
        let Some(source) = self.sources.get(number) else { return };
        let stage = &self.host.stage;
        let new: Vec<u8> =
            (0..4).flat_map(|_| stage.choices.bits(self.who, "secret").to_be_bytes()).collect();
        let old = {
            let mut witness = stage.witness();
            if !witness.wishes.rotating.insert(source.clone()) {
                // One at a time: the old secret of the last must be gone.
                return;
            }
            witness.known_to_receiver(source)
        };
        let both: Vec<Vec<u8>> = [new.clone()].into_iter().chain(old).collect();
        self.says(format!("rotate the secret of {endpoint}"));
        self.signs_with(&endpoint, &both).await;
        for known in [both, vec![new.clone()]] {
            self.all_is_old().await;
            self.says(format!("restart the receiver with {} secrets of {source}", known.len()));
            stage.witness().receiver_knows(source, known);
            stage.restart(RECEIVER);
        }
        self.host.sleep(Millis::from_secs(20)).await;
        self.signs_with(&endpoint, &[new]).await;
        stage.witness().wishes.rotating.remove(source);
    }

    /// Has a sender sign with these secrets.
    async fn signs_with(&self, endpoint: &str, keys: &[Vec<u8>]) {
        let secrets = keys.iter().filter_map(|key| Secret::from_bytes(key.clone()).ok()).collect();
        let Ok(secrets) = Secrets::new(secrets) else { return };
        let body = serde_json::json!({ "secrets": secrets }).to_string().into_bytes();
        let path = format!("/endpoints/{endpoint}/secrets");
        ask_until(&self.host, Method::PUT, &path, Some(body)).await;
    }

    /// Waits until what was signed before can no longer be sent.
    async fn all_is_old(&self) {
        let attempt = self.host.stage.witness().total_timeout();
        loop {
            self.host.sleep(attempt).await;
            let since = self.host.true_now().minus(attempt);
            if !self.host.stage.witness().has_stood_still_since(since) {
                return;
            }
        }
    }

    /// Has a look at what there is, and asks for something to be done with one delivery.
    async fn asks_for(&self, what: &str, wished: fn(&mut Wishes) -> &mut BTreeSet<String>) {
        let listed = ask(&self.host, Method::GET, "/deliveries?limit=100", None).await;
        let Some(serde_json::Value::Array(listed)) = listed.as_ref().and_then(body_of) else {
            return;
        };
        let Some(id) = self.one_delivery(&listed) else { return };
        wished(&mut self.host.stage.witness().wishes).insert(id.clone());
        self.says(format!("{what} {id}"));
        let path = format!("/deliveries/{id}/{what}");
        let status = ask_until(&self.host, Method::POST, &path, None).await;
        let is_refused_replay = what == "replay" && status == 409;
        if is_refused_replay && self.host.stage.witness().is_in_flight(&id) {
            self.host.stage.journal.reached(Sometimes::ReplayRefused);
        }
    }

    /// The id of any delivery, but rather one that is under way, or waits: there is where bugs live.
    fn one_delivery(&self, listed: &[serde_json::Value]) -> Option<String> {
        let in_phase = |name: &str| {
            let is_in_it = |one: &&serde_json::Value| {
                one.pointer("/phase/name").and_then(serde_json::Value::as_str) == Some(name)
            };
            listed.iter().filter(is_in_it).collect::<Vec<_>>()
        };
        let open = ["in_flight", "scheduled"].map(in_phase).into_iter().find(|all| !all.is_empty());
        let wants_open = self.host.stage.choices.chance(self.who, "an open one", 600);
        let delivery = match open.filter(|_| wants_open) {
            Some(open) => open.get(self.one_of("open delivery", open.len())).copied(),
            None => listed.get(self.one_of("delivery", listed.len())),
        };
        Some(delivery?.get("id")?.as_str()?.to_owned())
    }
}
