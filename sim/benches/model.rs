//! How fast histories of the model world are.

use criterion::{Criterion, criterion_group, criterion_main};
use hookproof_core::policy::Policy;
use hookproof_core::preset;
use hookproof_core::time::Millis;
use hookproof_sim::choices::Choices;
use hookproof_sim::model::{self, Options};
use hookproof_sim::scenario::{Break, Outage, Scenario, shipped};

/// A hundred events, published as an outage of a day begins, under three days of Standard Webhooks.
fn outage() -> Scenario {
    Scenario {
        events: (100, 100),
        endpoints: (1, 1),
        outage: Some(Outage {
            from: Millis::ZERO,
            lasts: Millis::from_hours(24),
            fails: Break::Refuses,
        }),
        policies: vec![Policy {
            schedule: preset::standard_webhooks().schedule,
            ..Policy::default()
        }],
        publishing: Millis::from_minutes(10),
        liveness_bound: Millis::from_hours(24 * 7),
        ..Scenario::default()
    }
}

fn histories(criterion: &mut Criterion) {
    let day = outage();
    criterion.bench_function("100 events against an outage of 24 h", |bencher| {
        bencher.iter(|| model::run(&day, &Choices::seeded(1), None, Options::default()));
    });
    for name in ["mixed", "crash-everywhere", "lease-and-pause"] {
        let Some(scenario) = shipped::find(name) else { continue };
        let mut seed = 0;
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| {
                seed += 1;
                model::run(&scenario, &Choices::seeded(seed), None, Options::default())
            });
        });
    }
}

criterion_group!(benches, histories);
criterion_main!(benches);
