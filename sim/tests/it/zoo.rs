//! Every known-bad variant is killed, by what must kill it, on seeds that the real code survives.

use hookproof_sim::checkers::Invariant;
use hookproof_sim::choices::Choices;
use hookproof_sim::scenario::Scenario;
use hookproof_sim::suite::{self, Part, Plan, Verdict, World};
use hookproof_sim::wire;
use hookproof_sim::zoo::hunt::{Weapon, hunt};
use hookproof_sim::zoo::{HarnessMutant, Killer, Mutant, ReceiverMutant, SenderMutant};

/// How many seeds a mutant may survive.
const SEEDS_MAX: u64 = 60;

fn is_killed(mutant: Mutant) {
    let Killer::Invariants(expected) = mutant.killer() else {
        panic!("{mutant} is a harness");
    };
    let scenario = mutant.ground(World::Wire);
    for seed in 0..SEEDS_MAX {
        let wrong = wire::run(&scenario, &Choices::seeded(seed), Some(mutant));
        let Some(violation) = wrong.violation else { continue };
        assert!(
            expected.contains(&violation.invariant),
            "{mutant} broke {} on seed {seed}: {}",
            violation.invariant,
            violation.what
        );
        let right = wire::run(&scenario, &Choices::seeded(seed), None);
        assert_eq!(right.violation, None, "the real code on seed {seed}");
        return;
    }
    panic!("{mutant} survived {SEEDS_MAX} seeds");
}

fn is_caught(mutant: HarnessMutant) {
    let part =
        Part { world: World::Wire, scenario: Scenario::mixed().on_wire(), seeds: 0..12, sweeps: 0 };
    let unharmed = Plan::of(vec![part], 1);
    let report = suite::run(&unharmed, &|_, _| {});
    assert_eq!(report.verdict(), Verdict::Held { histories: 12 }, "{:?}", report.gates);
    let wrong = Plan {
        mutants: vec![(Mutant::Harness(mutant), World::Wire)],
        mutant_seeds: 12,
        ..Plan::of(Vec::new(), 1)
    };
    let report = suite::run(&wrong, &|_, _| {});
    assert!(report.mutants[0].is_expected, "{:?}", report.mutants);
}

#[test]
fn every_mutant_is_killed_in_the_model_world_by_what_must_kill_it() {
    let mutants = Mutant::all().into_iter().map(|mutant| (mutant, World::Model)).collect();
    let report = suite::run(&Plan { mutants, ..Plan::of(Vec::new(), 2) }, &|_, _| {});
    let survivors: Vec<_> = report.mutants.iter().filter(|found| !found.is_expected).collect();
    assert!(survivors.is_empty(), "{survivors:#?}");
    assert_eq!(report.mutants.len(), 78);
}

/// By what one mutant is found, and by nothing else, wherever its runs begin.
fn is_found_by(id: &str, invariant: Invariant) {
    let mutant = Mutant::find(id).expect("a mutant of the zoo");
    let Killer::Invariants(expected) = mutant.killer() else { panic!("{mutant} is a harness") };
    assert_eq!(expected, [invariant], "{mutant}");
    let trophy = hunt(mutant, 4);
    let found: Vec<_> = trophy.killed_by.into_keys().collect();
    assert_eq!((found, trophy.survived), (vec![Weapon::Invariant(invariant)], 0), "{mutant}");
}

#[test]
fn each_form_of_a_mutant_is_found_by_itself() {
    is_found_by("R20", Invariant::ExactlyOnce);
    is_found_by("R20b", Invariant::DoneMeansDone);
    is_found_by("R20c", Invariant::DoneMeansDone);
    is_found_by("S09", Invariant::DoneMeansDone);
    is_found_by("S09b", Invariant::Address);
    is_found_by("S12b", Invariant::OnSchedule);
    is_found_by("S20", Invariant::OnSchedule);
    is_found_by("S20b", Invariant::OnSchedule);
    is_found_by("S20c", Invariant::OnSchedule);
    is_found_by("S34", Invariant::Liveness);
    is_found_by("S34b", Invariant::Liveness);
}

#[test]
fn what_breaks_several_promises_is_found_by_the_one_that_it_is_about() {
    is_found_by("S30", Invariant::Fencing);
    is_found_by("S40", Invariant::Fencing);
    is_found_by("S41", Invariant::OnSchedule);
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
fn r06_marking_then_applying_loses_an_effect() {
    is_killed(Mutant::Receiver(ReceiverMutant::MarkThenApply));
}

#[test]
fn r09_dedup_that_expires_before_the_last_retry_applies_twice() {
    is_killed(Mutant::Receiver(ReceiverMutant::DedupExpires));
}

#[test]
fn r11_a_409_to_a_duplicate_refuses_what_is_valid() {
    is_killed(Mutant::Receiver(ReceiverMutant::ConflictOnDuplicate));
}

#[test]
fn r12_a_2xx_when_the_store_refused_loses_an_event() {
    is_killed(Mutant::Receiver(ReceiverMutant::SuccessOnStoreError));
}

#[test]
fn r18_a_claim_without_a_lease_is_stranded_by_a_crash() {
    is_killed(Mutant::Receiver(ReceiverMutant::ClaimWithoutLease));
}

#[test]
fn r22_one_id_space_for_all_sources_loses_an_event() {
    is_killed(Mutant::Receiver(ReceiverMutant::DedupAcrossSources));
}

#[test]
fn r20_a_call_without_a_key_takes_effect_twice() {
    is_killed(Mutant::Receiver(ReceiverMutant::DownstreamWithoutKey));
}

#[test]
fn r20b_an_unknown_call_taken_for_done_loses_an_effect() {
    is_killed(Mutant::Receiver(ReceiverMutant::UnknownIsDone));
}

#[test]
fn r20c_an_unknown_call_taken_for_failed_is_given_up_after_its_effect() {
    is_killed(Mutant::Receiver(ReceiverMutant::UnknownIsFailed));
}

#[test]
fn s06_a_body_that_is_encoded_again_is_another_body() {
    is_killed(Mutant::Sender(SenderMutant::ReencodedBody));
}

#[test]
fn s09_a_redirect_counted_as_success_is_not_done() {
    is_killed(Mutant::Sender(SenderMutant::RedirectIsSuccess));
}

#[test]
fn s10_a_410_counted_as_success_is_not_done() {
    is_killed(Mutant::Sender(SenderMutant::GoneIsSuccess));
}

#[test]
fn s11_attempts_that_a_restart_forgets_are_too_many() {
    is_killed(Mutant::Sender(SenderMutant::AttemptsLostOnRestart));
}

#[test]
fn s12_one_attempt_too_few_is_off_schedule() {
    is_killed(Mutant::Sender(SenderMutant::OneTooFew));
}

#[test]
fn s13_timers_in_memory_are_lost_in_a_crash() {
    is_killed(Mutant::Sender(SenderMutant::TimersInMemory));
}

#[test]
fn s17_what_is_in_flight_and_ignored_stays_so() {
    is_killed(Mutant::Sender(SenderMutant::InFlightIgnored));
}

#[test]
fn s33_a_restart_that_tries_again_what_is_dead_is_not_terminal() {
    is_killed(Mutant::Sender(SenderMutant::RestartRearms));
}

#[test]
fn h01_a_crash_that_crashes_nothing_is_seen_to_have_no_effect() {
    is_caught(HarnessMutant::CrashesNothing);
}

#[test]
fn h02_a_network_fault_that_never_fires_is_seen_to_have_no_effect() {
    is_caught(HarnessMutant::FaultNeverFires);
}

#[test]
fn h03_a_checker_of_an_empty_ledger_is_seen_to_see_nothing() {
    is_caught(HarnessMutant::EmptyLedger);
}

#[test]
fn every_mutant_has_a_test_above() {
    let ids: Vec<_> = Mutant::on_wire().into_iter().map(Mutant::id).collect();
    assert_eq!(ids.len(), 29);
    for id in ids {
        let name = format!("fn {}_", id.to_lowercase());
        assert!(include_str!("zoo.rs").contains(&name), "{id} has no test");
    }
}
