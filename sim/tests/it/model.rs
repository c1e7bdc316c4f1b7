//! The model world: replay, calm, scenarios as files.

use hookproof_core::schedule::{ATTEMPTS_MAX, Backoff};
use hookproof_core::time::Millis;
use hookproof_sim::choices::Choices;
use hookproof_sim::model::{self, Options};
use hookproof_sim::scenario::{Scenario, shipped};
use hookproof_sim::suite::World;

fn traced() -> Options {
    Options { is_traced: true, ..Options::default() }
}

#[test]
fn a_seed_gives_the_same_history_again_and_its_recording_too() {
    for scenario in shipped::all() {
        let seeded = model::run(&scenario, &Choices::seeded(5), None, traced());
        let again = model::run(&scenario, &Choices::seeded(5), None, traced());
        let recorded = model::run(&scenario, &Choices::recorded(&seeded.draws), None, traced());
        for other in [again, recorded] {
            assert_eq!(other.lines, seeded.lines, "{}", scenario.name);
            assert_eq!(other.hash, seeded.hash, "{}", scenario.name);
        }
    }
}

#[test]
fn whether_it_is_traced_changes_nothing() {
    let scenario = Scenario::mixed();
    for seed in 0..20 {
        let traced = model::run(&scenario, &Choices::seeded(seed), None, traced());
        let silent = model::run(&scenario, &Choices::seeded(seed), None, Options::default());
        assert_eq!(traced.hash, silent.hash);
        assert_eq!(silent.lines, []);
    }
}

#[test]
fn without_any_choice_nothing_goes_wrong_and_nothing_is_sent_twice() {
    for scenario in shipped::all().into_iter().filter(|scenario| scenario.outage.is_none()) {
        let history = model::run(&scenario, &Choices::recorded(&[]), None, Options::default());
        assert_eq!(history.violation, None, "{}", scenario.name);
        let fired: Vec<_> = history.counts.fired.keys().collect();
        assert!(fired.is_empty(), "{}: {fired:?}", scenario.name);
        assert_eq!(history.totals.requests, history.totals.deliveries, "{}", scenario.name);
    }
}

#[test]
fn no_bytes_of_a_fuzzer_break_an_invariant() {
    for scenario in shipped::all() {
        for seed in 0_u64..10 {
            let bytes: Vec<u8> =
                (0..400_u64).map(|n| (seed * 97 + n * n * 31 + n / 7).to_le_bytes()[0]).collect();
            let history =
                model::run(&scenario, &Choices::from_bytes(&bytes), None, Options::default());
            assert_eq!(history.violation, None, "{} {seed}", scenario.name);
        }
    }
}

#[test]
fn a_day_of_outage_is_survived_by_the_schedule_of_standard_webhooks() {
    let scenario = shipped::find("receiver-outage-24h").expect("it is shipped");
    let history = model::run(&scenario, &Choices::seeded(1), None, Options::default());
    assert_eq!(history.totals.delivered, history.totals.deliveries);
    assert!(history.simulated.get() > 24 * 3_600_000);
}

#[test]
fn where_the_age_alone_ends_a_delivery_it_does() {
    let mut scenario =
        Scenario { broken_per_mille: 1000, endpoints: (2, 3), ..Scenario::default() };
    let policy = &mut scenario.policies[0];
    let (base, cap) = (Millis::new(500), Millis::from_secs(5));
    policy.schedule.backoff =
        Backoff::Exponential { base, factor: 2, cap, attempts_max: ATTEMPTS_MAX };
    policy.life.age_max = Some(Millis::from_minutes(10));
    assert_eq!(scenario.validate(), Ok(()));
    let mut dead = 0;
    for seed in 0..40 {
        let history = model::run(&scenario, &Choices::seeded(seed), None, Options::default());
        assert_eq!(history.violation, None, "seed {seed}");
        dead += history.totals.dead;
    }
    assert!(dead > 100, "{dead}");
}

#[test]
fn a_scenario_is_the_same_read_back_from_toml() {
    for scenario in shipped::all() {
        scenario.validate().expect("what is shipped can be");
        let text = toml::to_string(&scenario).expect("a scenario is plain");
        let read: Scenario = toml::from_str(&text).expect("what was written can be read");
        assert_eq!(read, scenario);
    }
}

#[test]
fn names_of_scenarios_are_different_and_lead_to_them() {
    for scenario in shipped::all() {
        assert_eq!(shipped::find(&scenario.name), Some(scenario));
    }
    assert_eq!(shipped::find("nothing"), None);
}

#[test]
fn a_scenario_that_cannot_be_is_told_with_its_field() {
    let check = |field: &str, spoil: fn(&mut Scenario)| {
        let mut scenario = Scenario::default();
        spoil(&mut scenario);
        assert_eq!(scenario.validate().expect_err("it cannot be").field, field);
    };
    check("events", |scenario| scenario.events = (0, 3));
    check("events", |scenario| scenario.events = (4, 3));
    check("endpoints", |scenario| scenario.endpoints = (1, 10_001));
    check("policies", |scenario| scenario.policies.clear());
    check("policies", |scenario| scenario.policies[0].gate.concurrency_max = 0);
    check("senders", |scenario| scenario.senders = 0);
    check("places", |scenario| scenario.places = 0);
    check("breaks", |scenario| {
        scenario.broken_per_mille = 1;
        scenario.breaks.clear();
    });
    check("tick", |scenario| scenario.tick = Millis::ZERO);
    check("tick", |scenario| scenario.tick = Millis::from_secs(5));
    check("shard_lease", |scenario| scenario.shard_lease = Millis::ZERO);
    check("latency", |scenario| scenario.latency.1 = Millis::ZERO);
}

#[test]
fn both_worlds_tell_what_happens_line_by_line() {
    for world in World::ALL {
        let scenario = Scenario::mixed().on_wire();
        let history = world.trace(&scenario, &Choices::seeded(3), None);
        assert!(history.lines.iter().any(|line| line.text.starts_with("POST")), "{world}");
    }
}
