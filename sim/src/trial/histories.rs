//! The histories of a program on trial: how they are run, and how a failing one is made small.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hookproof_core::secret::Secret;

use super::{Failure, Held, Role};
use crate::choices::Choices;
use crate::history::History;
use crate::minimise::minimise_by;
use crate::plan::Plan;
use crate::scenario::{Operation, Scenario};
use crate::suite::World;
use crate::wire::{Candidate, Integration, run_candidate};

/// The most histories that are run to make a failing one small.
const RUNS_MAX: u64 = 2000;

/// Among how many seeds a history of a single event is looked for that fails the same way: of one
/// that has many, some stay in the way of making it small.
const SINGLE_SEEDS: u64 = 50;

/// A program, and the histories that it is to hold in.
pub(crate) struct Histories {
    role: Role,
    build: Box<dyn Fn(Integration, Secret) -> Candidate>,
    scenario: Scenario,
    path: String,
    secret: Secret,
}

impl Histories {
    pub(crate) fn new(
        role: Role,
        path: &str,
        build: impl Fn(Integration, Secret) -> Candidate + 'static,
    ) -> Self {
        Self {
            role,
            build: Box::new(build),
            scenario: Scenario::mixed(),
            path: path.to_owned(),
            secret: Secret::from_entropy([0x686f_6f6b, 0x7072_6f6f, 0x6620_7472, 0x6961_6c21]),
        }
    }

    pub(crate) fn scenario(self, scenario: Scenario) -> Self {
        Self { scenario, ..self }
    }

    pub(crate) fn path(self, path: String) -> Self {
        Self { path, ..self }
    }

    pub(crate) fn secret(self, secret: Secret) -> Self {
        Self { secret, ..self }
    }

    /// Runs the history of each seed, and before them one without faults.
    #[expect(clippy::panic, reason = "it is to be called by tests, which fail by panicking")]
    pub(crate) fn run(&self, seeds: Range<u64>) -> Held {
        self.try_run(seeds).unwrap_or_else(|failure| panic!("{failure}"))
    }

    /// The same, with the first failure.
    pub(crate) fn try_run(&self, seeds: Range<u64>) -> Result<Held, Failure> {
        let scenario = self.checked(&seeds)?;
        let calm = Scenario { faults: Vec::new(), ..scenario.clone() };
        let history = self.seeded(&calm, seeds.start)?;
        if history.totals.accepted == 0 || history.totals.delivered < history.totals.deliveries {
            return Err(Failure::calm(self.role, seeds.start, &history));
        }
        let mut held = Held::new(self.role);
        for seed in seeds.clone() {
            let history = self.seeded(&scenario, seed)?;
            if seed == seeds.start && self.history(&scenario, seed).hash != history.hash {
                return Err(Failure::differs(self.role, seed));
            }
            held.add(&history);
        }
        Ok(held)
    }

    /// The trace of a seed's history, byte for byte the same each time: milliseconds, who, what.
    pub(crate) fn trace(&self, seed: u64) -> Result<String, Failure> {
        let scenario = self.checked(&(seed..seed.saturating_add(1)))?;
        let lines = self.history(&scenario, seed).lines;
        Ok(lines
            .iter()
            .map(|line| format!("{} {} {}\n", line.at.as_millis(), line.who, line.text))
            .collect())
    }

    /// The scenario as it is run, if it can be.
    fn checked(&self, seeds: &Range<u64>) -> Result<Scenario, Failure> {
        if seeds.is_empty() {
            return Err(Failure::setup(format!("the seeds {seeds:?} are none; give 0..100")));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/".contains(c);
        let path = &self.path;
        if !path.starts_with('/') || path.ends_with('/') || !path.chars().all(is_plain) {
            let right = "give one such as \"/webhooks/shop\": from the root, no slash at its end, \
                         no query";
            return Err(Failure::setup(format!("the path {path:?} cannot be; {right}")));
        }
        let mut scenario = Scenario { endpoints: (1, 1), ..self.scenario.on_wire() };
        match self.role {
            // Of a new secret it would have to be told.
            Role::Receiver => scenario.operations.retain(|one| *one != Operation::Rotate),
            // People work through the API of the reference sender.
            Role::Sender => scenario.operations.clear(),
        }
        scenario.validate().map_err(|error| Failure::setup(format!("the scenario's {error}")))?;
        Ok(scenario)
    }

    fn history(&self, scenario: &Scenario, seed: u64) -> History {
        self.chosen(scenario, &Choices::seeded(seed))
    }

    fn chosen(&self, scenario: &Scenario, choices: &Choices) -> History {
        let text = self.secret.reveal();
        let encoded = text.strip_prefix("whsec_").unwrap_or(&text);
        // What a secret reveals is base64.
        let key = STANDARD.decode(encoded).unwrap_or_default();
        let integration = Integration { path: self.path.clone(), key };
        run_candidate(scenario, choices, (self.build)(integration, self.secret.clone()))
    }

    /// The history of a seed, if nothing is wrong in it.
    fn seeded(&self, scenario: &Scenario, seed: u64) -> Result<History, Failure> {
        let history = self.history(scenario, seed);
        let Some(violation) = &history.violation else { return Ok(history) };
        let plan = Plan {
            world: World::Wire,
            scenario: scenario.clone(),
            mutant: None,
            invariant: violation.invariant,
            draws: history.draws.clone(),
        };
        let plan = self.of_one_event(&plan, seed).unwrap_or(plan);
        let run = |plan: &Plan, _| self.chosen(&plan.scenario, &Choices::recorded(&plan.draws));
        Err(match minimise_by(&run, &plan, RUNS_MAX, &mut || true) {
            Some(small) => Failure::broken(seed, &small.plan, &small.history),
            None => Failure::differs(self.role, seed),
        })
    }

    /// A plan with a single event that breaks the same invariant, if a seed from this one on has it.
    fn of_one_event(&self, plan: &Plan, seed: u64) -> Option<Plan> {
        let scenario = Scenario { events: (1, 1), ..plan.scenario.clone() };
        (seed..seed.saturating_add(SINGLE_SEEDS)).find_map(|seed| {
            let history = self.history(&scenario, seed);
            plan.is_broken_by(&history).then(|| Plan {
                scenario: scenario.clone(),
                draws: history.draws,
                ..plan.clone()
            })
        })
    }
}
