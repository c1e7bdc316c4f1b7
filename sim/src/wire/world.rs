//! One history: build the network, let it happen, hold it against the invariants.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hookproof_core::time::{Millis, Timestamp};
use hookproof_sender::config::SenderConfig;
use hookproof_sender::tls::Tls;
use tempfile::TempDir;

use super::books::{Books, Reported};
use super::calls;
use super::candidate::{Ask, Candidate};
use super::host::{APPLICATION, ATTACKER, DOWNSTREAM, RECEIVER, SENDER};
use super::lives::{self, OnTrial, Receiver, Sender, address_policy};
use super::observer::Eye;
use super::population::Population;
use super::queue::{Queue, Reported as Queued};
use super::setting::{
    clock_steps, directory, full_stores, network, partitions, receiver_config, script, skew_clocks,
};
use super::stage::Stage;
use super::witness::Witness;
use crate::checkers::{Invariant, Violation};
use crate::choices::Choices;
use crate::fact::Fact;
use crate::fault::{Fault, Faults};
use crate::history::{History, Totals, epoch};
use crate::journal::{Counts, Journal};
use crate::log::Errors;
use crate::scenario::Scenario;
use crate::sometimes::Sometimes;
use crate::tape::Tape;
use crate::zoo::{HarnessMutant, Mutant};

/// Runs one history of `scenario`, which the choices determine to the last byte. With a mutant, that
/// part of the world is wrong.
#[must_use]
pub fn run(scenario: &Scenario, choices: &Choices, mutant: Option<Mutant>) -> History {
    run_with(scenario, choices, mutant, None).0
}

/// Runs one history, and tells with it what was seen of core's machines.
#[must_use]
pub fn run_taped(scenario: &Scenario, choices: &Choices) -> (History, Tape) {
    run_with(scenario, choices, None, None)
}

/// Runs one history of a program on trial and the reference program on the other side.
pub(crate) fn run_candidate(
    scenario: &Scenario,
    choices: &Choices,
    candidate: Candidate,
) -> History {
    run_with(scenario, choices, None, Some(candidate)).0
}

fn run_with(
    scenario: &Scenario,
    choices: &Choices,
    mutant: Option<Mutant>,
    candidate: Option<Candidate>,
) -> (History, Tape) {
    let journal = Journal::default();
    let (logged, taped) = (journal.clone(), journal.clone());
    let errors = Errors::new(move |text| logged.breakdown(epoch(), "log", &text));
    let history = tracing::subscriber::with_default(errors, || {
        match World::new(scenario, choices, mutant, candidate, journal) {
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
    });
    (history, taped.tape().take())
}

struct World<'a> {
    scenario: &'a Scenario,
    stage: Arc<Stage>,
    sim: turmoil::Sim<'static>,
    /// How many endpoints there are to register, and events to publish.
    endpoints: usize,
    publishes: usize,
    /// Begin and end of each partition.
    partitions: Vec<(Timestamp, Timestamp)>,
    /// When a wall clock is set, whose, and by how many milliseconds.
    clock_steps: Vec<(Timestamp, &'static str, i64)>,
    /// Hosts that are down, and when each starts again.
    down: BTreeMap<&'static str, Timestamp>,
    /// Whether a partition was decided for this moment.
    is_partitioned: bool,
    drained_since: Option<Timestamp>,
    /// The files of both stores; gone with the world.
    _directory: TempDir,
}

impl<'a> World<'a> {
    fn new(
        scenario: &'a Scenario,
        choices: &Choices,
        mutant: Option<Mutant>,
        candidate: Option<Candidate>,
        journal: Journal,
    ) -> Result<Self, (Faults, String)> {
        let harness = match mutant {
            Some(Mutant::Harness(mutant)) => Some(mutant),
            _ => None,
        };
        let choices = &HarnessMutant::choices_under(harness, choices);
        let faults = Faults::swarm(choices, &scenario.faults);
        let directory = directory().map_err(|error| (faults.clone(), error.to_string()))?;
        let tls = Tls::new(None).map_err(|error| (faults.clone(), error.to_string()))?;
        let integration = candidate.as_ref().map(|candidate| candidate.integration.clone());
        let script = script(scenario, choices, integration);
        let policy = scenario.policy(choices);
        let sender_path = directory.path().join("sender.db");
        let receiver_path = directory.path().join("receiver.db");
        let (mut queue, mut books) = (
            Queue::Reference(Box::new(Eye::new(sender_path.clone()))),
            Books::Reference(Eye::new(receiver_path.clone())),
        );
        let mut on_trial = None;
        if let Some(Candidate { integration, start, ask }) = candidate {
            let name = match ask {
                Ask::Receiver(ask) => {
                    books = Books::OnTrial(Reported::new(integration.source(), ask));
                    RECEIVER
                }
                Ask::Sender(ask) => {
                    let url = calls::url(&integration.path);
                    queue = Queue::OnTrial(Box::new(Queued::new(url, ask)));
                    SENDER
                }
            };
            on_trial = Some((name, start));
        }
        let sources =
            script.endpoints.iter().map(|one| (one.source().to_owned(), one.key.clone())).collect();
        let witness = Witness::new(
            (scenario.bounds(), harness),
            &policy,
            (sources, Population::draw(scenario, choices, script.endpoints.len())),
            journal.clone(),
            (queue, books),
        );
        let full = full_stores(scenario, choices, &faults, &journal);
        let stage = Arc::new(Stage::new(
            choices.clone(),
            journal,
            faults.clone(),
            scenario.crashes_max,
            mutant,
            full,
            witness,
        ));
        let mut sim = network(scenario);
        let on_trial = on_trial.map(|(name, start)| OnTrial { name, stage: stage.clone(), start });
        if let Some(receiver) = on_trial.clone().filter(|one| one.name == RECEIVER) {
            sim.host(RECEIVER, move || receiver.clone().life());
        } else {
            let config = receiver_config(scenario, &script);
            let receiver = Receiver { stage: stage.clone(), path: receiver_path, config, mutant };
            sim.host(RECEIVER, move || receiver.clone().life());
        }
        if let Some(sender) = on_trial.filter(|one| one.name == SENDER) {
            sim.host(SENDER, move || sender.clone().life());
        } else {
            let config = SenderConfig {
                policy,
                address: address_policy(sim.lookup(RECEIVER)),
                attempts_max: scenario.places,
                ..SenderConfig::default()
            };
            let stage = stage.clone();
            let sender = Sender { stage, path: sender_path, config, tls, mutant };
            sim.host(SENDER, move || sender.clone().life());
        }
        let (actor, plot, about) = (stage.clone(), script.clone(), scenario.clone());
        sim.host(APPLICATION, move || {
            lives::application(actor.clone(), plot.clone(), about.clone())
        });
        if scenario.downstream {
            let actor = stage.clone();
            sim.host(DOWNSTREAM, move || lives::downstream(actor.clone()));
        }
        let actor = stage.clone();
        sim.host(ATTACKER, move || lives::attacker(actor.clone()));
        skew_clocks(&stage);
        Ok(Self {
            scenario,
            partitions: partitions(scenario, choices, &faults),
            clock_steps: clock_steps(scenario, choices, &faults),
            endpoints: script.endpoints.len(),
            publishes: script.publishes.len(),
            stage,
            sim,
            down: BTreeMap::new(),
            is_partitioned: false,
            drained_since: None,
            _directory: directory,
        })
    }

    fn run(mut self) -> History {
        while !self.step() {}
        self.play_again();
        let violation = self.stage.witness().violation().cloned();
        if let Some(violation) = &violation {
            let text = format!("VIOLATION {}: {}", violation.invariant, violation.what);
            self.stage.journal.line(violation.at, "checker", text);
        }
        // Tasks that are dropped with the network must not start others.
        self.stage.end_all();
        let witness = self.stage.witness();
        let journal = &self.stage.journal;
        History {
            faults: self.stage.faults.clone(),
            violation,
            counts: journal.counts(),
            looks: witness.checkers().looks(),
            lines: journal.lines(),
            hash: journal.hash(),
            simulated: self.now().since(epoch()),
            draws: self.stage.choices.draws(),
            totals: witness.totals(),
        }
    }

    /// What was seen of core's machines must be what they do, and what the stores hold must follow.
    /// A mutant changes just that, and a sender on trial has other machines.
    fn play_again(&self) {
        let mut witness = self.stage.witness();
        let is_other = self.stage.mutant.is_some() || witness.is_sender_on_trial();
        if is_other || witness.violation().is_some() {
            return;
        }
        witness.takes_stock();
        if let Err(mismatch) = self.stage.journal.tape().check() {
            witness.tell(self.now(), &Fact::Broke { what: &mismatch.to_string() });
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(
            i64::try_from(self.sim.since_epoch().as_millis()).unwrap_or(i64::MAX),
        )
    }

    /// One tick of the network, and what follows from it. `true` when the history is over.
    fn step(&mut self) -> bool {
        if let Err(error) = self.sim.step() {
            self.stage.journal.breakdown(self.now(), "network", &error.to_string());
        }
        self.crash_and_restart();
        self.switch_faults();
        self.set_clocks();
        let now = self.now();
        let mut witness = self.stage.witness();
        if let Some(what) = self.stage.journal.first_breakdown() {
            witness.tell(now, &Fact::Broke { what: &what });
        }
        if now.as_millis() % 1000 == 0 {
            witness.ask_receiver(now);
            witness.ask_sender(now);
        }
        if witness.violation().is_some() {
            return true;
        }
        let is_drained = self.down.is_empty()
            && self.stage.attacks_left() == 0
            && witness.wishes.open == 0
            && witness.is_drained(self.publishes);
        let is_over = if is_drained {
            now.since(*self.drained_since.get_or_insert(now)) >= witness.linger()
        } else {
            self.drained_since = None;
            now.since(epoch()) > self.scenario.safety.plus(self.scenario.liveness_bound)
        };
        if is_over {
            witness.end(now, is_drained);
        }
        is_over
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
        let is_ready = self.stage.witness().registered == self.endpoints;
        let was_on = self.stage.faults_on.swap(is_safety && is_ready, Ordering::Relaxed);
        if was_on && !is_safety {
            self.stage.journal.line(now, "plan", "faults end");
        }
        let wanted = self.stage.are_faults_on()
            && self.partitions.iter().any(|(begin, end)| *begin <= now && now < *end);
        let is_cut = wanted && self.stage.does(Fault::Partition);
        self.stage.partition_on.store(is_cut, Ordering::Relaxed);
        let is_partitioned = std::mem::replace(&mut self.is_partitioned, wanted);
        if wanted && !is_partitioned {
            if is_cut {
                self.sim.partition(SENDER, RECEIVER);
            }
            self.stage.journal.chose(Fault::Partition);
            self.stage.journal.line(now, "plan", "partition begins");
        } else if !wanted && is_partitioned {
            self.sim.repair(SENDER, RECEIVER);
            self.stage.journal.line(now, "plan", "partition ends");
        }
    }

    /// Sets the wall clocks whose time has come.
    fn set_clocks(&mut self) {
        let now = self.now();
        let is_on = self.stage.are_faults_on();
        for (_, host, by) in self.clock_steps.extract_if(.., |(at, ..)| *at <= now) {
            if is_on {
                let ahead = self.stage.wall_ahead(host) + by;
                self.stage.set_wall(host, Fault::ClockStep, ahead);
                if host == SENDER {
                    self.stage.witness().sets_clock(now, by);
                }
                if by < 0 {
                    self.stage.journal.reached(Sometimes::ClockSteppedBack);
                }
                self.stage.journal.line(now, host, format!("its clock is set by {by} ms"));
                // It may be later than it thought: until now it could not know.
                self.stage.witness().tell(now, &Fact::Hindered { until: now });
            }
        }
    }
}
