//! What must hold of a suite for its verdict to mean anything.

use std::collections::{BTreeMap, BTreeSet};

use hookproof_core::named_enum;
use hookproof_runtime::crash_point::CrashPoint;

use super::{PartReport, Report, Sum, World};
use crate::checkers::Invariant;
use crate::fault::Fault;
use crate::sometimes::Sometimes;

named_enum! {
    /// What must hold of a suite for its verdict to mean anything.
    pub enum Gate {
        /// Each fault that was decided often enough was seen to have an effect.
        FaultFired = "each fault has an effect",
        /// Each checker looked at something.
        CheckerLooked = "each checker sees something",
        /// Each fault fired, a host crashed at each crash point, and each interesting state was
        /// reached.
        Coverage = "everything is reached",
        /// A history that is run twice is the same history.
        Deterministic = "each history can be replayed",
        /// Each mutant was killed by what must kill it.
        ZooKilled = "each mutant is killed",
    }
}

/// A gate that is not passed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GateFailure {
    /// Which.
    pub gate: Gate,
    /// What is missing.
    pub what: String,
}

/// How often a fault must have been decided before it must also have had an effect.
const CHOSEN_ENOUGH: u64 = 10;

/// The invariants that every scenario has something of.
const ALWAYS: &[Invariant] = &[
    Invariant::NoLoss,
    Invariant::NoInvention,
    Invariant::ExactlyOnce,
    Invariant::DoneMeansDone,
    Invariant::Terminal,
    Invariant::WriteAhead,
    Invariant::Identity,
    Invariant::Liveness,
    Invariant::Durable,
    Invariant::Sound,
];

/// What a suite must be able to say for itself.
pub(super) fn gates(report: &Report, demands_coverage: bool) -> Vec<GateFailure> {
    let mut failures = Vec::new();
    // A shard, or what the time sufficed for, can have nothing of a world. A suite without any history
    // shows nothing, and is to be told so.
    let may_lack_worlds = !demands_coverage && (report.sum().histories > 0 || report.is_cut_short);
    for world in World::ALL {
        let parts: Vec<&PartReport> =
            report.parts.iter().filter(|part| part.world == *world).collect();
        let sum = report.sum_in(*world);
        if !parts.is_empty() && (sum.histories > 0 || !may_lack_worlds) {
            let faults: BTreeSet<Fault> =
                parts.iter().flat_map(|part| part.scenario.faults.iter().copied()).collect();
            failures.extend(faults_fired(&sum, &faults, *world, demands_coverage));
            // A history that breaks an invariant ends there, before others have seen anything.
            if report.failures.is_empty() {
                failures.extend(checkers_looked(&sum, *world, demands_coverage));
            }
            if demands_coverage {
                failures.extend(reached(&sum, *world));
            }
        }
    }
    for difference in &report.differences {
        failures.push(GateFailure { gate: Gate::Deterministic, what: difference.clone() });
    }
    for mutant in report.mutants.iter().filter(|mutant| !mutant.is_expected) {
        let what = match &mutant.killed_by {
            None => format!("{} survived {} seeds ({})", mutant.mutant, mutant.seeds, mutant.world),
            Some(other) => format!("{} was killed by {other} ({})", mutant.mutant, mutant.world),
        };
        failures.push(GateFailure { gate: Gate::ZooKilled, what });
    }
    failures
}

/// A fault that was decided and never had an effect is none.
pub(super) fn faults_fired(
    sum: &Sum,
    faults: &BTreeSet<Fault>,
    world: World,
    demands_coverage: bool,
) -> Vec<GateFailure> {
    let count = |counts: &BTreeMap<Fault, u64>, fault| counts.get(fault).copied().unwrap_or(0);
    let mut failures = Vec::new();
    for fault in faults {
        let (chosen, fired) = (count(&sum.counts.chosen, fault), count(&sum.counts.fired, fault));
        if fired == 0 && chosen >= CHOSEN_ENOUGH {
            let what = format!("{fault} was decided {chosen} times, to no effect ({world})");
            failures.push(GateFailure { gate: Gate::FaultFired, what });
        } else if fired == 0 && demands_coverage {
            let what = format!("{fault} never happened ({world})");
            failures.push(GateFailure { gate: Gate::Coverage, what });
        }
    }
    failures
}

/// A checker that saw nothing has proved nothing. What a scenario has nothing of, its checker cannot
/// see: only a suite that must reach everything demands every one.
pub(super) fn checkers_looked(sum: &Sum, world: World, demands_all: bool) -> Vec<GateFailure> {
    let wanted = if demands_all { Invariant::ALL } else { ALWAYS };
    wanted
        .iter()
        .filter(|invariant| sum.looks.get(invariant).copied().unwrap_or(0) == 0)
        .map(|invariant| GateFailure {
            gate: Gate::CheckerLooked,
            what: format!("the checker of {invariant} saw nothing ({world})"),
        })
        .collect()
}

fn reached(sum: &Sum, world: World) -> Vec<GateFailure> {
    let mut missing = Vec::new();
    for point in CrashPoint::ALL {
        if sum.counts.crashed_at.get(point).copied().unwrap_or(0) == 0 {
            missing.push(format!("no host crashed at {point} ({world})"));
        }
    }
    let is_seen = |state: &&Sometimes| world == World::Model || state.is_on_wire();
    for state in Sometimes::ALL.iter().filter(is_seen) {
        if sum.counts.sometimes.get(state).copied().unwrap_or(0) == 0 {
            missing.push(format!("never reached: {state} ({world})"));
        }
    }
    missing.into_iter().map(|what| GateFailure { gate: Gate::Coverage, what }).collect()
}
