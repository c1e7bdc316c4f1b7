//! The two worlds are tied together: what the wire world saw of core's machines is played again, and
//! what the model's stores say is what the real ones said.

use hookproof_core::classify::Signal;
use hookproof_core::delivery::Ctx;
use hookproof_core::time::Millis;
use hookproof_sim::choices::Choices;
use hookproof_sim::scenario::{Scenario, shipped};
use hookproof_sim::tape::{AskedGate, Compared, Event, Tape};
use hookproof_sim::wire;

fn tape(scenario: &Scenario, seed: u64) -> Tape {
    let (history, tape) = wire::run_taped(scenario, &Choices::seeded(seed));
    assert_eq!(history.violation, None, "seed {seed} of {}", scenario.name);
    tape
}

/// Plays each seed's tape again; tells how much was compared.
fn compared(scenario: &Scenario, seeds: u64) -> Compared {
    let mut sum = Compared::default();
    for seed in 0..seeds {
        let tape = tape(scenario, seed);
        sum.add(&tape.check().unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}")));
    }
    sum
}

#[test]
fn what_the_wire_saw_of_each_machine_is_what_core_does_and_each_commit_follows_from_a_decision() {
    let sum = compared(&Scenario::mixed().on_wire(), 36);
    let Compared { deliveries, gates, entries, commits, reads } = sum;
    for (what, count) in [
        ("decisions about deliveries", deliveries),
        ("decisions of gates", gates),
        ("decisions about entries", entries),
        ("commits", commits),
        ("answers of stores", reads),
    ] {
        assert!(count > 36 * 20, "{count} {what}: {sum:?}");
    }
}

#[test]
fn clocks_that_are_set_change_nothing_about_that() {
    compared(&shipped::clock_trouble().on_wire(), 8);
}

/// A tape that is changed by `change` in the first event where that does something is found out.
fn check(change: impl Fn(&mut Event) -> bool, told: &str) {
    let scenario = Scenario::mixed().on_wire();
    let mut tape = (0..).map(|seed| tape(&scenario, seed)).find(|tape| {
        // One that has such an event at all.
        tape.clone().events.iter_mut().any(&change)
    });
    let tape = tape.as_mut().expect("there is one");
    assert!(tape.check().is_ok());
    let place = tape.events.iter_mut().position(change).expect("it was there");
    let wrong = tape.check().expect_err("it is changed");
    assert!(wrong.what.contains(told), "changed in {place}: {wrong}");
    assert!(wrong.place >= place, "changed in {place}: {wrong}");
}

#[test]
fn an_input_that_was_not_the_one_is_found_out() {
    check(
        |event| match event {
            Event::Delivery { by, result: Ok(step), .. } if step.record().is_some() => {
                by.now = by.now.plus(Millis::new(1));
                true
            }
            _ => false,
        },
        "the delivery was",
    );
    check(
        |event| match event {
            Event::Gate { asked: AskedGate::Learn { lesson, .. }, .. } => {
                let was_success = lesson.signal == Signal::Success;
                lesson.signal = Signal::Failure;
                was_success
            }
            _ => false,
        },
        "was",
    );
    check(
        |event| match event {
            Event::Entry { by, result: Ok(_), .. } => {
                by.now = by.now.plus(Millis::new(1));
                true
            }
            _ => false,
        },
        "the entry was",
    );
}

#[test]
fn a_decision_from_a_state_that_was_never_committed_is_found_out() {
    check(
        |event| match event {
            Event::Delivery { state, by, input, result } => {
                state.created_at = state.created_at.minus(Millis::new(1));
                let ctx = Ctx { now: by.now, entropy: by.entropy, policy: &by.rule };
                *result = state.handle(ctx, *input);
                true
            }
            _ => false,
        },
        "which was never committed",
    );
}

#[test]
fn a_commit_that_no_decision_led_to_is_found_out() {
    check(
        |event| match event {
            Event::DeliveryKept(state) if state.version > 0 => {
                state.attempts += 1;
                true
            }
            _ => false,
        },
        "and no decision led there",
    );
    check(
        |event| match event {
            Event::DeliveryKept(state) if state.version == 0 => {
                state.attempts = 1;
                true
            }
            _ => false,
        },
        "and no decision led there",
    );
    check(
        |event| match event {
            Event::EntryKept(entry) if entry.version > 0 => {
                entry.version += 1;
                true
            }
            _ => false,
        },
        "and no decision led there",
    );
}

#[test]
fn a_commit_that_is_missing_is_found_out() {
    let mut tape = tape(&Scenario::mixed().on_wire(), 0);
    let is_late = |event: &Event| matches!(event, Event::DeliveryKept(s) if s.version == 1);
    let place = tape.events.iter().position(is_late).expect("something was claimed");
    tape.events.remove(place);
    let wrong = tape.check().expect_err("it is missing");
    assert!(wrong.what.contains("committed"), "{wrong}");
}

#[test]
fn a_store_that_answers_or_ends_otherwise_than_was_committed_is_found_out() {
    check(
        |event| match event {
            Event::Answered { answer: Ok(state), .. } => {
                state.version += 1;
                true
            }
            _ => false,
        },
        "was said to be committed",
    );
    check(
        |event| match event {
            Event::Hears(_, found) if found.len() > 1 => {
                found.reverse();
                true
            }
            _ => false,
        },
        "by the model's store",
    );
    check(
        |event| match event {
            Event::Stock { deliveries, .. } => {
                deliveries.pop();
                true
            }
            _ => false,
        },
        "is stored at the end",
    );
    check(
        |event| match event {
            Event::Stock { entries: Some(entries), .. } => {
                entries[0].attempts += 1;
                true
            }
            _ => false,
        },
        "is stored at the end",
    );
}
