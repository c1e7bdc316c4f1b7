//! A report as programs read it, and the reports of several shards as one.

use std::collections::{BTreeMap, BTreeSet};

use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::crash_point::CrashPoint;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{Failure, MutantReport, Part, PartReport, Plan, Report, Sum, Verdict, World, gates};
use crate::checkers::{Invariant, Violation};
use crate::fault::Fault;
use crate::history::{Totals, epoch};
use crate::journal::Counts;
use crate::scenario::Scenario;
use crate::sometimes::Sometimes;
use crate::zoo::Mutant;

/// The version of the format.
const VERSION: u32 = 3;

/// A report as programs read it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Document {
    /// The version of this format.
    pub version: u32,
    /// `proved`, `held`, `violated` or `invalid`.
    pub verdict: String,
    /// Which shard of how many this is, both from 1.
    pub shard: (u64, u64),
    /// A digest of everything that the suite has, by which shards of one suite know each other.
    pub suite: String,
    /// Whether everything had to be reached once all shards are together.
    pub demands_coverage: bool,
    /// Whether it ran out of time.
    pub is_cut_short: bool,
    /// How many histories there were in all.
    pub histories: u64,
    /// How many of them were run twice.
    pub run_twice: u64,
    /// The sums, part by part.
    pub parts: Vec<PartDocument>,
    /// The histories in which an invariant does not hold.
    pub failures: Vec<FailureDocument>,
    /// The mutants.
    pub mutants: Vec<MutantDocument>,
    /// Histories that were not the same the second time.
    pub differences: Vec<String>,
    /// The gates that are not passed, in words.
    pub gates_failed: Vec<String>,
}

/// One part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PartDocument {
    world: String,
    scenario: String,
    faults: Vec<Fault>,
    histories: u64,
    simulated_ms: u64,
    accepted: u64,
    deliveries: u64,
    delivered: u64,
    dead: u64,
    requests: u64,
    effects: u64,
    faults_decided: BTreeMap<String, u64>,
    faults_fired: BTreeMap<String, u64>,
    crash_points_passed: BTreeMap<String, u64>,
    crashes: BTreeMap<String, u64>,
    sometimes: BTreeMap<String, u64>,
    invariants_checked: BTreeMap<String, u64>,
}

/// A history in which an invariant does not hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailureDocument {
    /// `model` or `wire`.
    pub world: String,
    /// The scenario's name.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// In a sweep, at which place the crash was, counted from 1; 0 if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crash_at: Option<u64>,
    /// The invariant's id.
    pub invariant: String,
    /// When it was violated, from the start.
    pub at_ms: u64,
    /// What was seen.
    pub what: String,
}

/// What became of a mutant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MutantDocument {
    id: String,
    what: String,
    world: String,
    killed_by: Option<String>,
    is_expected: bool,
    seeds: u64,
}

/// Counts by the names of what is counted.
fn named<K: Copy>(counts: &BTreeMap<K, u64>, name: fn(K) -> &'static str) -> BTreeMap<String, u64> {
    counts.iter().map(|(key, count)| (name(*key).to_owned(), *count)).collect()
}

/// The same, read back.
fn keyed<K: Copy + Ord>(
    counts: &BTreeMap<String, u64>,
    all: &[K],
    name: fn(K) -> &'static str,
) -> Result<BTreeMap<K, u64>, String> {
    counts
        .iter()
        .map(|(text, count)| {
            let key = all.iter().copied().find(|key| name(*key) == text);
            key.map(|key| (key, *count)).ok_or_else(|| {
                format!("{text:?} is not known here; the report is of another version")
            })
        })
        .collect()
}

impl Document {
    /// A report on a plan.
    #[must_use]
    pub fn new(plan: &Plan, report: &Report) -> Self {
        Self {
            version: VERSION,
            verdict: match report.verdict() {
                Verdict::Proved { .. } => "proved",
                Verdict::Held { .. } => "held",
                Verdict::Violated => "violated",
                Verdict::Invalid => "invalid",
            }
            .to_owned(),
            shard: (plan.shard.0 + 1, plan.shard.1),
            suite: digest(plan),
            demands_coverage: plan.demands_coverage,
            is_cut_short: report.is_cut_short,
            histories: report.sum().histories,
            run_twice: report.run_twice,
            parts: report.parts.iter().map(PartDocument::new).collect(),
            failures: report.failures.iter().map(FailureDocument::new).collect(),
            mutants: report.mutants.iter().map(MutantDocument::new).collect(),
            differences: report.differences.clone(),
            gates_failed: report.gates.iter().map(|gate| gate.what.clone()).collect(),
        }
    }

    fn read(&self) -> Result<Report, String> {
        if self.version != VERSION {
            let version = self.version;
            return Err(format!("the report has version {version}; this program reads {VERSION}"));
        }
        Ok(Report {
            parts: self.parts.iter().map(PartDocument::read).collect::<Result<_, String>>()?,
            run_twice: self.run_twice,
            failures: self
                .failures
                .iter()
                .map(FailureDocument::read)
                .collect::<Result<_, String>>()?,
            mutants: self
                .mutants
                .iter()
                .map(MutantDocument::read)
                .collect::<Result<_, String>>()?,
            differences: self.differences.clone(),
            gates: Vec::new(),
            is_whole: false,
            is_cut_short: self.is_cut_short,
        })
    }
}

/// Puts the reports of all shards of one suite together, and judges them as one.
///
/// # Errors
///
/// A report cannot be read, or the shards are not those of one suite: one is missing, or twice there.
pub fn merge(documents: &[Document]) -> Result<Report, String> {
    let Some(first) = documents.first() else { return Err("there is no report".to_owned()) };
    let (_, of) = first.shard;
    let mut seen = BTreeSet::new();
    let mut whole = Report::default();
    for document in documents {
        let (shard, shards) = document.shard;
        if shards != of {
            return Err(format!("one report is of {of} shards, another of {shards}"));
        }
        if document.suite != first.suite {
            return Err("the shards are of different suites".to_owned());
        }
        if !seen.insert(shard) {
            return Err(format!("shard {shard} of {of} is there twice"));
        }
        add(&mut whole, document.read()?)?;
    }
    if let Some(missing) = (1..=of).find(|shard| !seen.contains(shard)) {
        return Err(format!("shard {missing} of {of} is missing"));
    }
    whole.mutants.sort_by_key(|mutant| (mutant.world, mutant.mutant));
    let has_zoo = super::zoo().iter().all(|(mutant, world)| {
        whole.mutants.iter().any(|found| found.mutant == *mutant && found.world == *world)
    });
    whole.is_whole = first.demands_coverage && has_zoo;
    whole.gates = gates::gates(&whole, first.demands_coverage && !whole.is_cut_short);
    Ok(whole)
}

fn add(whole: &mut Report, shard: Report) -> Result<(), String> {
    if whole.parts.is_empty() {
        whole.parts = shard.parts;
    } else if whole.parts.len() == shard.parts.len() {
        for (part, other) in whole.parts.iter_mut().zip(shard.parts) {
            if part.scenario.name != other.scenario.name || part.world != other.world {
                return Err("the shards are of different suites".to_owned());
            }
            part.sum.merge(&other.sum);
        }
    } else {
        return Err("the shards are of different suites".to_owned());
    }
    whole.run_twice += shard.run_twice;
    whole.failures.extend(shard.failures);
    whole.mutants.extend(shard.mutants);
    whole.differences.extend(shard.differences);
    whole.is_cut_short |= shard.is_cut_short;
    Ok(())
}

/// Of the whole of a plan, whichever shard of it is run.
fn digest(plan: &Plan) -> String {
    let Plan { parts, twice_every, mutants, mutant_seeds, demands_coverage, .. } = plan;
    let mut hash = Sha256::new();
    for Part { world, scenario, seeds, sweeps } in parts {
        // A scenario is plain values, which all have a JSON form.
        let scenario = serde_json::to_string(scenario).unwrap_or_default();
        hash.update(format!("{} {scenario} {seeds:?} {sweeps}\n", world.as_str()));
    }
    for (mutant, world) in mutants {
        hash.update(format!("{} {}\n", mutant.id(), world.as_str()));
    }
    hash.update(format!("{twice_every} {mutant_seeds} {demands_coverage}"));
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn world(name: &str) -> Result<World, String> {
    let found = World::ALL.iter().copied().find(|world| world.as_str() == name);
    found.ok_or_else(|| format!("there is no world {name:?}; there are model and wire"))
}

impl PartDocument {
    fn new(part: &PartReport) -> Self {
        let Sum { histories, simulated, counts, looks, totals } = &part.sum;
        Self {
            world: part.world.as_str().to_owned(),
            scenario: part.scenario.name.clone(),
            faults: part.scenario.faults.clone(),
            histories: *histories,
            simulated_ms: simulated.get(),
            accepted: totals.accepted,
            deliveries: totals.deliveries,
            delivered: totals.delivered,
            dead: totals.dead,
            requests: totals.requests,
            effects: totals.effects,
            faults_decided: named(&counts.chosen, Fault::as_str),
            faults_fired: named(&counts.fired, Fault::as_str),
            crash_points_passed: named(&counts.passed, CrashPoint::as_str),
            crashes: named(&counts.crashed_at, CrashPoint::as_str),
            sometimes: named(&counts.sometimes, Sometimes::as_str),
            invariants_checked: named(looks, Invariant::id),
        }
    }

    fn read(&self) -> Result<PartReport, String> {
        let counts = Counts {
            chosen: keyed(&self.faults_decided, Fault::ALL, Fault::as_str)?,
            fired: keyed(&self.faults_fired, Fault::ALL, Fault::as_str)?,
            passed: keyed(&self.crash_points_passed, CrashPoint::ALL, CrashPoint::as_str)?,
            crashed_at: keyed(&self.crashes, CrashPoint::ALL, CrashPoint::as_str)?,
            sometimes: keyed(&self.sometimes, Sometimes::ALL, Sometimes::as_str)?,
        };
        let totals = Totals {
            accepted: self.accepted,
            deliveries: self.deliveries,
            delivered: self.delivered,
            dead: self.dead,
            requests: self.requests,
            effects: self.effects,
        };
        let looks = keyed(&self.invariants_checked, Invariant::ALL, Invariant::id)?;
        let simulated = Millis::new(self.simulated_ms);
        Ok(PartReport {
            world: world(&self.world)?,
            scenario: Scenario {
                name: self.scenario.clone(),
                faults: self.faults.clone(),
                ..Scenario::default()
            },
            sum: Sum { histories: self.histories, simulated, counts, looks, totals },
        })
    }
}

impl FailureDocument {
    fn new(failure: &Failure) -> Self {
        let Failure { world, scenario, seed, crash_at, violation } = failure;
        Self {
            world: world.as_str().to_owned(),
            scenario: scenario.clone(),
            seed: *seed,
            crash_at: *crash_at,
            invariant: violation.invariant.id().to_owned(),
            at_ms: violation.at.since(epoch()).get(),
            what: violation.what.clone(),
        }
    }

    fn read(&self) -> Result<Failure, String> {
        let found = Invariant::ALL.iter().copied().find(|known| known.id() == self.invariant);
        let invariant =
            found.ok_or_else(|| format!("there is no invariant {:?}", self.invariant))?;
        let at: Timestamp = epoch().plus(Millis::new(self.at_ms));
        Ok(Failure {
            world: world(&self.world)?,
            scenario: self.scenario.clone(),
            seed: self.seed,
            crash_at: self.crash_at,
            violation: Violation { invariant, at, what: self.what.clone() },
        })
    }
}

impl MutantDocument {
    fn new(report: &MutantReport) -> Self {
        let MutantReport { mutant, world, killed_by, is_expected, seeds } = report;
        Self {
            id: mutant.id().to_owned(),
            what: mutant.what().to_owned(),
            world: world.as_str().to_owned(),
            killed_by: killed_by.clone(),
            is_expected: *is_expected,
            seeds: *seeds,
        }
    }

    fn read(&self) -> Result<MutantReport, String> {
        Ok(MutantReport {
            mutant: Mutant::find(&self.id)
                .ok_or_else(|| format!("there is no mutant {:?}", self.id))?,
            world: world(&self.world)?,
            killed_by: self.killed_by.clone(),
            is_expected: self.is_expected,
            seeds: self.seeds,
        })
    }
}
