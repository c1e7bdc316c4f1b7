//! Every known-bad variant is killed, by what must kill it, on seeds that the real code survives.

use hookproof_sim::choices::Choices;
use hookproof_sim::scenario::Scenario;
use hookproof_sim::suite::{self, Plan, Verdict};
use hookproof_sim::wire;
use hookproof_sim::zoo::{HarnessMutant, Killer, Mutant, ReceiverMutant, SenderMutant};

/// How many seeds a mutant may survive.
const SEEDS_MAX: u64 = 60;

fn is_killed(mutant: Mutant) {
    let Killer::Invariants(expected) = mutant.killer() else {
        panic!("{mutant} is a harness");
    };
    for seed in 0..SEEDS_MAX {
        let wrong = wire::run(&Scenario::mixed().on_wire(), &Choices::seeded(seed), Some(mutant));
        let Some(violation) = wrong.violation else { continue };
        assert!(
            expected.contains(&violation.invariant),
            "{mutant} broke {} on seed {seed}: {}",
            violation.invariant,
            violation.what
        );
        let right = wire::run(&Scenario::mixed().on_wire(), &Choices::seeded(seed), None);
        assert_eq!(right.violation, None, "the real code on seed {seed}");
        return;
    }
    panic!("{mutant} survived {SEEDS_MAX} seeds");
}

fn is_caught(mutant: HarnessMutant) {
    let mutant = Mutant::Harness(mutant);
    let plan = Plan {
        scenario: Scenario::mixed().on_wire(),
        seeds: 0..1,
        twice_every: 0,
        mutants: vec![mutant],
        mutant_seeds: 12,
        demands_coverage: false,
        jobs: 1,
    };
    let report = suite::run(&plan, &|_, _| {});
    assert!(report.mutants[0].is_expected, "{:?}", report.mutants);
    let unharmed = Plan { mutants: Vec::new(), seeds: 0..12, ..plan };
    let report = suite::run(&unharmed, &|_, _| {});
    assert_eq!(report.verdict(), Verdict::Held { histories: 12 }, "{:?}", report.gates);
}

#[test]
fn r01_insert_then_process_loses_an_event() {
    is_killed(Mutant::Receiver(ReceiverMutant::InsertThenProcess));
}

#[test]
fn r03_check_then_insert_lets_two_copies_through() {
    is_killed(Mutant::Receiver(ReceiverMutant::CheckThenInsert));
}

#[test]
fn r04_acknowledging_before_the_commit_loses_an_event() {
    is_killed(Mutant::Receiver(ReceiverMutant::AckBeforeCommit));
}

#[test]
fn r05_apply_then_mark_applies_twice() {
    is_killed(Mutant::Receiver(ReceiverMutant::ApplyThenMark));
}

#[test]
fn r08_dedup_in_memory_forgets_at_a_restart() {
    is_killed(Mutant::Receiver(ReceiverMutant::DedupInMemory));
}

#[test]
fn s01_accepting_before_the_commit_loses_an_event() {
    is_killed(Mutant::Sender(SenderMutant::AckBeforeCommit));
}

#[test]
fn s04_a_new_event_id_on_each_retry_is_another_event() {
    is_killed(Mutant::Sender(SenderMutant::NewIdOnRetry));
}

#[test]
fn s08_a_timeout_counted_as_success_is_not_done() {
    is_killed(Mutant::Sender(SenderMutant::TimeoutIsSuccess));
}

#[test]
fn s14_sending_before_the_claim_is_not_written_ahead() {
    is_killed(Mutant::Sender(SenderMutant::SendBeforeClaim));
}

#[test]
fn h01_a_crash_that_crashes_nothing_is_seen_to_have_no_effect() {
    is_caught(HarnessMutant::CrashesNothing);
}

#[test]
fn h03_a_checker_of_an_empty_ledger_is_seen_to_see_nothing() {
    is_caught(HarnessMutant::EmptyLedger);
}

#[test]
fn every_mutant_has_a_test_above() {
    let ids: Vec<_> = Mutant::on_wire().into_iter().map(Mutant::id).collect();
    assert_eq!(ids.len(), 11);
    for id in ids {
        let name = format!("fn {}_", id.to_lowercase());
        assert!(include_str!("zoo.rs").contains(&name), "{id} has no test");
    }
}
