//! One seed is one history, byte for byte.

use hookproof_sim::choices::Choices;
use hookproof_sim::scenario::Scenario;
use hookproof_sim::wire;

#[test]
fn a_seed_gives_the_same_trace_again_whatever_ran_before_it() {
    let first: Vec<_> = (0..6)
        .map(|seed| (seed, wire::run(&Scenario::mixed().on_wire(), &Choices::seeded(seed), None)))
        .collect();
    for (seed, before) in first.into_iter().rev() {
        let again = wire::run(&Scenario::mixed().on_wire(), &Choices::seeded(seed), None);
        assert_eq!(again.lines, before.lines, "seed {seed}");
        assert_eq!(again.hash, before.hash, "seed {seed}");
    }
}

#[test]
fn a_seed_gives_the_same_trace_on_another_thread() {
    let hashes = |_| {
        (0..4)
            .map(|seed| wire::run(&Scenario::mixed().on_wire(), &Choices::seeded(seed), None).hash)
            .collect::<Vec<_>>()
    };
    let threads: Vec<_> = (0..2).map(|n| std::thread::spawn(move || hashes(n))).collect();
    let found: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0].iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
}

#[test]
fn the_recorded_choices_of_a_seed_replay_it() {
    for seed in [1, 4] {
        let seeded = wire::run(&Scenario::mixed().on_wire(), &Choices::seeded(seed), None);
        let replayed =
            wire::run(&Scenario::mixed().on_wire(), &Choices::recorded(&seeded.draws), None);
        assert_eq!(replayed.lines, seeded.lines, "seed {seed}");
    }
}

#[test]
fn without_any_choice_nothing_goes_wrong_and_nothing_is_sent_twice() {
    let history = wire::run(&Scenario::mixed().on_wire(), &Choices::recorded(&[]), None);
    assert_eq!(history.violation, None);
    assert!(history.counts.fired.is_empty(), "{:?}", history.counts.fired);
    assert_eq!(history.totals.accepted, 3);
    assert_eq!(history.totals.requests, 3, "one request per delivery");
    assert_eq!(history.totals.effects, 3);
}
