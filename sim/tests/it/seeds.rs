//! Seeds that once failed must never fail again.

use hookproof_sim::choices::Choices;
use hookproof_sim::scenario::Scenario;
use hookproof_sim::wire;

#[test]
fn seeds_that_once_failed_hold() {
    let seeds: Vec<u64> = include_str!("seeds.txt")
        .lines()
        .filter_map(|line| line.split('#').next().map(str::trim).filter(|seed| !seed.is_empty()))
        .map(|seed| seed.parse().unwrap())
        .collect();
    assert!(!seeds.is_empty());
    for seed in seeds {
        let history = wire::run(&Scenario::mixed().on_wire(), &Choices::seeded(seed), None);
        let again = wire::run(&Scenario::mixed().on_wire(), &Choices::seeded(seed), None);
        assert_eq!(history.violation, None, "seed {seed}");
        assert_eq!(history.hash, again.hash, "seed {seed}");
    }
}
