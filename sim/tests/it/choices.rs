//! Laws of the source of choices.

use hookproof_sim::choices::{Choices, Draw, Key};

#[test]
fn the_same_seed_gives_the_same_draws_and_another_seed_others() {
    let draws = |seed| {
        let choices = Choices::seeded(seed);
        (0..100).map(|_| choices.bits("host", "entropy")).collect::<Vec<_>>()
    };
    assert_eq!(draws(7), draws(7));
    assert_ne!(draws(7), draws(8));
}

#[test]
fn what_a_seed_means_never_changes() {
    let choices = Choices::seeded(7);
    assert_eq!(choices.bits("sender", "entropy"), 0x2614_01e9_8b0e_83d2);
    assert_eq!(choices.bits("sender", "entropy"), 0x8aa5_e37d_4924_7da9);
    assert_eq!(choices.draw("plan", "events", 1000), 71);
}

#[test]
fn leaving_one_draw_out_moves_no_other() {
    let with = Choices::seeded(3);
    let _ = with.draw("network", "latency", 100);
    let _ = with.draw("sender", "crash", 100);
    let without = Choices::seeded(3);
    let value = without.draw("sender", "crash", 100);
    assert_eq!(with.draws()[1].value, value);
}

#[test]
fn draws_stay_within_their_bounds_and_reach_them() {
    let choices = Choices::seeded(1);
    let values: Vec<u64> = (0..2000).map(|_| choices.between("a", "b", 3, 7)).collect();
    for value in 3..=7 {
        assert!(values.contains(&value), "{value} was never drawn");
    }
    assert!(values.iter().all(|value| (3..=7).contains(value)));
    assert_eq!(choices.draw("a", "empty", 0), 0);
}

#[test]
fn a_chance_is_about_as_large_as_it_says() {
    let choices = Choices::seeded(1);
    let hits = (0..10_000).filter(|_| choices.chance("a", "b", 250)).count();
    assert!((2300..2700).contains(&hits), "{hits} of 10,000 at 25 %");
    assert!(!(0..1000).any(|_| choices.chance("a", "never", 0)));
    assert!((0..1000).all(|_| choices.chance("a", "always", 1000)));
}

#[test]
fn a_recording_answers_by_key_and_with_zero_where_it_is_silent() {
    let key = Key { who: "sender".into(), what: "crash", nth: 1 };
    let choices = Choices::recorded(&[Draw { key, value: 5 }]);
    assert_eq!(choices.draw("sender", "crash", 10), 0);
    assert_eq!(choices.draw("sender", "crash", 10), 5);
    assert_eq!(choices.draw("sender", "crash", 10), 0);
    assert!(!choices.chance("receiver", "crash", 999), "silence is harmless");
}

#[test]
fn a_recording_that_was_raised_stays_within_the_bound() {
    let key = Key { who: "a".into(), what: "b", nth: 0 };
    let choices = Choices::recorded(&[Draw { key, value: 500 }]);
    assert_eq!(choices.draw("a", "b", 10), 9);
}
