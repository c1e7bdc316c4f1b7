//! Every known-bad variant is killed, by what must kill it, on seeds that the real code survives.

use hookproof_sim::checkers::Invariant;
use hookproof_sim::choices::Choices;
use hookproof_sim::scenario::{Scenario, shipped};
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
fn r02_what_is_queued_in_memory_is_lost_in_a_crash() {
    is_killed(Mutant::Receiver(ReceiverMutant::EnqueueInMemory));
}

#[test]
fn r13_verifying_json_that_was_written_again_refuses_what_is_valid() {
    is_killed(Mutant::Receiver(ReceiverMutant::VerifiesReserialised));
}

#[test]
fn r14_a_tolerance_on_one_side_takes_what_is_long_past() {
    is_killed(Mutant::Receiver(ReceiverMutant::OneSidedTolerance));
}

#[test]
fn r15_a_timestamp_that_is_not_signed_can_be_changed() {
    is_killed(Mutant::Receiver(ReceiverMutant::TimestampNotSigned));
}

#[test]
fn r16_the_first_signature_only_is_the_wrong_one_in_a_rotation() {
    is_killed(Mutant::Receiver(ReceiverMutant::FirstSignatureOnly));
}

#[test]
fn r17_no_version_compare_takes_an_entity_back() {
    is_killed(Mutant::Receiver(ReceiverMutant::NoVersionCompare));
}

#[test]
fn r21_a_wake_up_that_is_lost_strands_its_row() {
    is_killed(Mutant::Receiver(ReceiverMutant::QueueWithoutSweep));
}

#[test]
fn r23_a_forged_request_burns_the_id_of_the_real_one() {
    is_killed(Mutant::Receiver(ReceiverMutant::RecordsBeforeVerify));
}

#[test]
fn r24_a_malformed_signature_breaks_the_receiver_down() {
    is_killed(Mutant::Receiver(ReceiverMutant::CrashOnMalformed));
}

#[test]
fn s03_what_is_accepted_into_a_queue_is_not_durable() {
    is_killed(Mutant::Sender(SenderMutant::EnqueueThenPersist));
}

#[test]
fn s05_the_timestamp_of_the_creation_is_not_that_of_the_attempt() {
    is_killed(Mutant::Sender(SenderMutant::FrozenTimestamp));
}

#[test]
fn s07_a_retry_without_signature_is_another_request() {
    is_killed(Mutant::Sender(SenderMutant::UnsignedRetry));
}

#[test]
fn s16_a_lease_shorter_than_the_timeout_lets_two_attempts_run() {
    is_killed(Mutant::Sender(SenderMutant::LeaseShorterThanTimeout));
}

#[test]
fn s19_jitter_below_retry_after_is_off_schedule() {
    is_killed(Mutant::Sender(SenderMutant::JitterBelowRetryAfter));
}

#[test]
fn s20_retry_after_in_milliseconds_is_off_schedule() {
    is_killed(Mutant::Sender(SenderMutant::RetryAfterUnits));
}

#[test]
fn s27_a_fan_out_as_one_unit_sends_again_what_was_delivered() {
    is_killed(Mutant::Sender(SenderMutant::FanOutAsOneUnit));
}

#[test]
fn s29_a_resend_that_ends_the_schedule_is_not_terminal() {
    is_killed(Mutant::Sender(SenderMutant::ResendEndsSchedule));
}

#[test]
fn s30_a_resend_in_flight_clears_the_live_lease() {
    is_killed(Mutant::Sender(SenderMutant::ResendClearsLease));
}

#[test]
fn s31_an_event_to_a_disabled_endpoint_is_dropped() {
    is_killed(Mutant::Sender(SenderMutant::DisabledDropsEvents));
}

#[test]
fn s32_a_last_attempt_that_succeeds_disables_its_endpoint() {
    is_killed(Mutant::Sender(SenderMutant::LastSuccessDisables));
}

#[test]
fn s35_a_rotation_without_overlap_signs_with_what_nobody_knows_yet() {
    is_killed(Mutant::Sender(SenderMutant::RotationWithoutOverlap));
}

#[test]
fn s36_resolving_again_leads_to_a_denied_address() {
    is_killed(Mutant::Sender(SenderMutant::ResolvesTwice));
}

#[test]
fn s37_checking_the_first_answer_only_leads_to_a_denied_address() {
    is_killed(Mutant::Sender(SenderMutant::FirstAnswerOnly));
}

#[test]
fn s39_an_answer_before_the_commit_is_not_durable() {
    is_killed(Mutant::Sender(SenderMutant::ReplyBeforeGroupCommit));
}

#[test]
fn s41_a_wall_clock_that_steps_back_keeps_what_is_due_waiting() {
    is_killed(Mutant::Sender(SenderMutant::WallClock));
}

#[test]
fn s42_a_backlog_that_leaves_at_once_is_beyond_the_drain_rate() {
    is_killed(Mutant::Sender(SenderMutant::BacklogAtOnce));
}

#[test]
fn r07_an_unsigned_header_is_no_name_of_an_event() {
    is_killed(Mutant::Receiver(ReceiverMutant::DedupByUnsignedHeader));
}

#[test]
fn r19_a_lease_shorter_than_the_work_applies_twice() {
    is_killed(Mutant::Receiver(ReceiverMutant::LeaseWithoutFence));
}

#[test]
fn s02_an_event_that_is_stored_before_its_deliveries_goes_nowhere() {
    is_killed(Mutant::Sender(SenderMutant::PersistThenFanOut));
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
fn h05_choices_that_are_not_replayed_are_seen_to_differ() {
    is_caught(HarnessMutant::ForgetsDraws);
}

/// Those that need no fault and no person to go wrong.
const ALWAYS_WRONG: &[&str] = &["R13", "R22", "S03", "S14"];

#[test]
fn a_mutant_is_wrong_in_nothing_else_where_nothing_goes_wrong() {
    let calm = Scenario { events: (4, 4), ..shipped::steady() }.on_wire();
    for mutant in Mutant::on_wire() {
        let found = wire::run(&calm, &Choices::seeded(0), Some(mutant)).violation;
        let is_to_be_found = ALWAYS_WRONG.contains(&mutant.id());
        assert_eq!(found.is_some(), is_to_be_found, "{mutant}: {found:?}");
    }
}

#[test]
fn every_mutant_has_a_test_above() {
    let ids: Vec<_> = Mutant::on_wire().into_iter().map(Mutant::id).collect();
    assert_eq!(ids.len(), 59);
    for id in ids {
        let name = format!("fn {}_", id.to_lowercase());
        assert!(include_str!("zoo.rs").contains(&name), "{id} has no test");
    }
}
