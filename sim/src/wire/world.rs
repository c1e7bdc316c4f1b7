//! One history: build the network, let it happen, hold it against the invariants.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, UNIX_EPOCH};

use hookproof_core::delivery::Phase;
use hookproof_core::id::SourceId;
use hookproof_core::secret::{Secret, Secrets};
use hookproof_core::signature::TOLERANCE;
use hookproof_core::time::{Millis, Timestamp};
use hookproof_receiver::config::{ReceiverConfig, Source};
use hookproof_runtime::server::ServerLimits;
use hookproof_sender::config::SenderConfig;
use hookproof_sender::tls::Tls;
use tempfile::TempDir;

use super::application::{Publish, Script};
use super::checkers::{Checkers, View};
use super::host::{APPLICATION, RECEIVER, SENDER, Stage};
use super::lives::{self, Receiver, Sender, address_policy};
use super::observer::{ReceiverSnapshot, SenderSnapshot, Watch, open, read_receiver, read_sender};
use crate::checkers::{Invariant, Violation};
use crate::choices::Choices;
use crate::fault::{Fault, Faults};
use crate::history::{EPOCH, History, Totals, epoch};
use crate::journal::{Counts, Journal};
use crate::log::Errors;
use crate::scenario::Scenario;
use crate::zoo::Mutant;

/// How long the world goes on after everything has drained: what the network still holds arrives.
const LINGER: Millis = Millis::from_secs(5);

/// Runs one history of `scenario`, which the choices determine to the last byte. With a mutant, that
/// part of the world is wrong.
#[must_use]
pub fn run(scenario: &Scenario, choices: &Choices, mutant: Option<Mutant>) -> History {
    let journal = Journal::default();
    let logged = journal.clone();
    let errors = Errors::new(move |text| logged.breakdown(epoch(), "log", &text));
    tracing::subscriber::with_default(errors, || {
        match World::new(scenario, choices, mutant, journal) {
            Ok(world) => world.run(),
            Err((faults, what)) => History {
                faults,
                violation: Some(Violation { invariant: Invariant::Sound, at: epoch(), what }),
                counts: Counts::default(),
                looks: BTreeMap::new(),
                lines: Vec::new(),
                hash: String::new(),
                simulated: Millis::ZERO,
                draws: choices.draws(),
                totals: Totals::default(),
            },
        }
    })
}

struct World<'a> {
    scenario: &'a Scenario,
    stage: Arc<Stage>,
    sim: turmoil::Sim<'static>,
    checkers: Checkers,
    sender: Watch<SenderSnapshot>,
    receiver: Watch<ReceiverSnapshot>,
    /// How many endpoints there are to register, and events to publish.
    endpoints: usize,
    publishes: usize,
    /// Begin and end of each partition.
    partitions: Vec<(Timestamp, Timestamp)>,
    /// Hosts that are down, and when each starts again.
    down: BTreeMap<&'static str, Timestamp>,
    drained_since: Option<Timestamp>,
    /// The version of each delivery that was told of last.
    told: BTreeMap<String, u64>,
    /// What was there at the last look, beside the stores.
    facts_seen: (usize, usize, usize),
    /// The files of both stores; gone with the world.
    _directory: TempDir,
}

impl<'a> World<'a> {
    fn new(
        scenario: &'a Scenario,
        choices: &Choices,
        mutant: Option<Mutant>,
        journal: Journal,
    ) -> Result<Self, (Faults, String)> {
        let harness = match mutant {
            Some(Mutant::Harness(mutant)) => Some(mutant),
            _ => None,
        };
        let faults = Faults::swarm(choices, &scenario.faults);
        let directory = directory().map_err(|error| (faults.clone(), error.to_string()))?;
        let tls = Tls::new(None).map_err(|error| (faults.clone(), error.to_string()))?;
        let stage = Arc::new(Stage::new(
            choices.clone(),
            journal,
            faults.clone(),
            scenario.crashes_max,
            harness,
        ));
        let script = script(scenario, choices);
        let sender_path = directory.path().join("sender.db");
        let receiver_path = directory.path().join("receiver.db");
        let mut sim = network(scenario);
        let sender = Sender {
            stage: stage.clone(),
            path: sender_path.clone(),
            config: SenderConfig {
                policy: scenario.policy(choices),
                address: address_policy(),
                ..SenderConfig::default()
            },
            tls,
            mutant,
        };
        let receiver = Receiver {
            stage: stage.clone(),
            path: receiver_path.clone(),
            config: receiver_config(&script),
            mutant,
        };
        sim.host(SENDER, move || sender.clone().life());
        sim.host(RECEIVER, move || receiver.clone().life());
        let (actor, plot) = (stage.clone(), script.clone());
        sim.host(APPLICATION, move || lives::application(actor.clone(), plot.clone()));
        Ok(Self {
            scenario,
            partitions: partitions(scenario, choices, &faults),
            endpoints: script.endpoints.len(),
            publishes: script.publishes.len(),
            stage,
            sim,
            checkers: Checkers::new(harness),
            sender: Watch::new(sender_path, read_sender),
            receiver: Watch::new(receiver_path, read_receiver),
            down: BTreeMap::new(),
            drained_since: None,
            told: BTreeMap::new(),
            facts_seen: (0, 0, 0),
            _directory: directory,
        })
    }

    fn run(mut self) -> History {
        let violation = loop {
            match self.step() {
                Ok(false) => {}
                Ok(true) => break None,
                Err(violation) => break Some(violation),
            }
        };
        if let Some(violation) = &violation {
            let text = format!("VIOLATION {}: {}", violation.invariant, violation.what);
            self.stage.journal.line(violation.at, "checker", text);
        }
        // Tasks that are dropped with the network must not start others.
        self.stage.end_all();
        let totals = self.totals();
        let journal = &self.stage.journal;
        History {
            faults: self.stage.faults.clone(),
            violation,
            counts: journal.counts(),
            looks: self.checkers.looks().clone(),
            lines: journal.lines(),
            hash: journal.hash(),
            simulated: self.now().since(epoch()),
            draws: self.stage.choices.draws(),
            totals,
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(
            i64::try_from(self.sim.since_epoch().as_millis()).unwrap_or(i64::MAX),
        )
    }

    /// One tick of the network, and what follows from it. `true` when the history is over.
    fn step(&mut self) -> Result<bool, Violation> {
        if let Err(error) = self.sim.step() {
            self.stage.journal.breakdown(self.now(), "network", &error.to_string());
        }
        self.crash_and_restart();
        self.switch_faults();
        self.observe()?;
        if !self.is_drained() {
            self.drained_since = None;
            return self.is_in_time();
        }
        let now = self.now();
        let since = *self.drained_since.get_or_insert(now);
        if now.since(since) < LINGER {
            return Ok(false);
        }
        self.look(true)?;
        self.checkers.note(Invariant::Liveness);
        Ok(true)
    }

    /// Ends the hosts whose fuse is blown, and starts those whose time has come.
    fn crash_and_restart(&mut self) {
        let now = self.now();
        for name in [SENDER, RECEIVER] {
            if self.stage.has_ended(name) && !self.down.contains_key(name) {
                self.sim.crash(name);
                let pause = self.stage.choices.between(name, "restart after", 1, 50) * 100;
                self.down.insert(name, now.plus(Millis::new(pause)));
            }
            if self.down.get(name).is_some_and(|up_at| *up_at <= now) {
                self.down.remove(name);
                self.sim.bounce(name);
                self.stage.journal.line(now, name, "starts again");
            }
        }
    }

    /// Faults begin once the endpoints are registered and end with the safety phase.
    fn switch_faults(&mut self) {
        let now = self.now();
        let is_safety = now.since(epoch()) < self.scenario.safety;
        let registered = self.stage.journal.facts(|facts| facts.endpoints.len());
        let is_ready = registered == self.endpoints;
        let was_on = self.stage.faults_on.swap(is_safety && is_ready, Ordering::Relaxed);
        if was_on && !is_safety {
            self.stage.journal.line(now, "plan", "faults end");
        }
        let wanted = self.stage.are_faults_on()
            && self.partitions.iter().any(|(begin, end)| *begin <= now && now < *end);
        let is_partitioned = self.stage.partition_on.swap(wanted, Ordering::Relaxed);
        if wanted && !is_partitioned {
            self.sim.partition(SENDER, RECEIVER);
            self.stage.journal.chose(Fault::Partition);
            self.stage.journal.line(now, "plan", "partition begins");
        } else if !wanted && is_partitioned {
            self.sim.repair(SENDER, RECEIVER);
            self.stage.journal.line(now, "plan", "partition ends");
        }
    }

    /// Looks whenever something was committed or became known.
    fn observe(&mut self) -> Result<(), Violation> {
        self.lend_sender_store();
        let committed = self.sender.look().and_then(|sender| {
            let receiver = self.receiver.look()?;
            Ok(sender || receiver)
        });
        let committed = committed.map_err(|error| self.violation(Invariant::Sound, &error))?;
        let facts = self
            .stage
            .journal
            .facts(|facts| (facts.endpoints.len(), facts.requests.len(), facts.acknowledged.len()));
        let breakdown = self.stage.journal.facts(|facts| facts.breakdowns.first().cloned());
        if let Some(what) = breakdown {
            return Err(self.violation(Invariant::Sound, &what));
        }
        self.checkers.note(Invariant::Sound);
        if committed {
            self.tell_progress();
        }
        if committed || facts != self.facts_seen {
            self.facts_seen = facts;
            self.look(false)?;
        }
        Ok(())
    }

    /// Tells what became of attempts, as the sender's store has it.
    fn tell_progress(&mut self) {
        let now = self.now();
        for delivery in &self.sender.snapshot.deliveries {
            let id = delivery.id.as_str();
            if self.told.insert(id.to_owned(), delivery.version) == Some(delivery.version) {
                continue;
            }
            let outcome = self.sender.snapshot.outcomes.get(id).map_or("", String::as_str);
            let what = match delivery.phase {
                Phase::Scheduled { due, .. } if delivery.attempts > 0 => {
                    format!("next in {}", due.since(now))
                }
                Phase::Scheduled { .. } | Phase::InFlight { .. } => continue,
                Phase::Delivered { .. } => "delivered".to_owned(),
                Phase::Dead { .. } => "dead".to_owned(),
                Phase::Cancelled { .. } => "cancelled".to_owned(),
            };
            let attempt = delivery.attempts;
            let text = format!("{}: attempt {attempt}: {outcome}; {what}", delivery.event_id);
            self.stage.journal.line(now, SENDER, text);
        }
    }

    /// Gives the tap on the wire a look into the sender's store of its own.
    fn lend_sender_store(&mut self) {
        if self.sender.snapshot.deliveries.is_empty() {
            return;
        }
        let mut lent =
            self.stage.sender_store.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if lent.is_none() {
            *lent = open(self.sender.path()).ok();
        }
    }

    fn look(&mut self, is_drained: bool) -> Result<(), Violation> {
        let now = self.now();
        let (sender, receiver) = (&self.sender.snapshot, &self.receiver.snapshot);
        let checkers = &mut self.checkers;
        self.stage
            .journal
            .facts(|facts| checkers.look(&View { now, facts, sender, receiver, is_drained }))
    }

    fn is_drained(&self) -> bool {
        let accepted = self.stage.journal.facts(|facts| facts.acknowledged.len());
        let is_settled = |phase| !matches!(phase, Phase::Scheduled { .. } | Phase::InFlight { .. });
        self.down.is_empty()
            && accepted == self.publishes
            && self.sender.snapshot.deliveries.iter().all(|delivery| is_settled(delivery.phase))
            && self
                .receiver
                .snapshot
                .inbox
                .values()
                .all(|phase| matches!(phase.as_str(), "applied" | "dead"))
    }

    /// I13: once the faults have ended, everything drains within the bound.
    fn is_in_time(&self) -> Result<bool, Violation> {
        let limit = self.scenario.safety.plus(self.scenario.liveness_bound);
        if self.now().since(epoch()) <= limit {
            return Ok(false);
        }
        let unsettled = self.sender.snapshot.deliveries.iter().filter(|d| d.wake_at().is_some());
        let what = format!(
            "{} after the faults ended, {} of {} publishes are accepted and {} deliveries open",
            self.scenario.liveness_bound,
            self.stage.journal.facts(|facts| facts.acknowledged.len()),
            self.publishes,
            unsettled.count(),
        );
        Err(self.violation(Invariant::Liveness, &what))
    }

    fn violation(&self, invariant: Invariant, what: &dyn std::fmt::Display) -> Violation {
        Violation { invariant, at: self.now(), what: what.to_string() }
    }

    fn totals(&self) -> Totals {
        let number = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
        let deliveries = &self.sender.snapshot.deliveries;
        let in_phase = |wanted: fn(&Phase) -> bool| {
            number(deliveries.iter().filter(|delivery| wanted(&delivery.phase)).count())
        };
        let (accepted, requests) = self
            .stage
            .journal
            .facts(|facts| (number(facts.acknowledged.len()), number(facts.requests.len())));
        Totals {
            accepted,
            deliveries: number(deliveries.len()),
            delivered: in_phase(|phase| matches!(phase, Phase::Delivered { .. })),
            dead: in_phase(|phase| matches!(phase, Phase::Dead { .. })),
            requests,
            effects: self.receiver.snapshot.effects.values().sum(),
        }
    }
}

/// A folder for the stores: in memory where the system offers that, since nothing in it is to last.
fn directory() -> std::io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir()
        && let Ok(directory) = TempDir::with_prefix_in("hookproof-", memory)
    {
        return Ok(directory);
    }
    TempDir::with_prefix("hookproof-")
}

fn network(scenario: &Scenario) -> turmoil::Sim<'static> {
    let tick = scenario.tick.to_duration();
    turmoil::Builder::new()
        .epoch(UNIX_EPOCH + EPOCH)
        .simulation_duration(Duration::from_secs(24 * 3600))
        .tick_duration(tick)
        // Latencies are choices, drawn per connection; the network itself adds one tick.
        .min_message_latency(tick)
        .max_message_latency(tick)
        .fail_rate(0.0)
        .rng_seed(0)
        .build()
}

fn script(scenario: &Scenario, choices: &Choices) -> Script {
    let endpoints =
        choices.between("plan", "endpoints", scenario.endpoints.0, scenario.endpoints.1);
    let events = choices.between("plan", "events", scenario.events.0, scenario.events.1);
    let endpoints = (0..endpoints)
        .map(|number| {
            let key = (0..4).flat_map(|_| choices.bits("plan", "secret").to_be_bytes()).collect();
            (format!("shop-{number}"), key)
        })
        .collect();
    let mut publishes: Vec<Publish> = (0..events)
        .map(|number| {
            // Some events are published together: what interleaves is where bugs live.
            let slot = choices.draw("plan", "published at", scenario.publishing.get() / 1000);
            let at = epoch().plus(Millis::from_secs(1 + slot));
            let body = format!(
                "{{ \"type\": \"order.paid\", \"order\": {number}, \"total\": 1.0, \"note\": \"\u{2665}\" }}"
            );
            Publish { at, key: format!("order-{number}"), body: body.into_bytes() }
        })
        .collect();
    publishes.sort_by_key(|publish| publish.at);
    Script { endpoints, publishes }
}

fn partitions(
    scenario: &Scenario,
    choices: &Choices,
    faults: &Faults,
) -> Vec<(Timestamp, Timestamp)> {
    let per_mille = faults.per_mille(Fault::Partition);
    let mut partitions = Vec::new();
    for _ in 0..2 {
        let is_on = choices.chance("plan", "partition", per_mille);
        let begin = choices.draw("plan", "partition at", scenario.safety.get());
        let length = choices.between("plan", "partition for", 1, 15);
        if is_on {
            let begin = epoch().plus(Millis::new(begin));
            partitions.push((begin, begin.plus(Millis::from_secs(length))));
        }
    }
    partitions
}

fn receiver_config(script: &Script) -> ReceiverConfig {
    let sources = script
        .endpoints
        .iter()
        .filter_map(|(source, key)| {
            Some(Source {
                id: SourceId::new(source.as_str()).ok()?,
                secrets: Secrets::one(Secret::from_bytes(key.clone()).ok()?),
                tolerance: TOLERANCE,
                ordering: None,
            })
        })
        .collect();
    ReceiverConfig {
        sources,
        inbox: Scenario::inbox_rule(),
        body_bytes_max: 1024 * 1024,
        body_timeout: Millis::from_secs(10),
        limits: ServerLimits::default(),
        sweep_interval: Millis::from_secs(1),
    }
}
