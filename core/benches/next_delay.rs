//! How long the decision takes when the next attempt is due: once per failed attempt.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use hookproof_core::preset;
use hookproof_core::schedule::ATTEMPTS_MAX;

fn next_delay(criterion: &mut Criterion) {
    for name in ["standard-webhooks", "seed-2", "seed-1-php"] {
        let schedule = preset::find(name).expect("a preset").schedule;
        criterion.bench_function(&format!("next delay, {name}"), |bencher| {
            bencher.iter(|| black_box(&schedule).wait(black_box(5), black_box(u64::MAX / 3)));
        });
    }
    let mut longest = preset::full_jitter_hour().schedule;
    if let hookproof_core::schedule::Backoff::Exponential { attempts_max, .. } =
        &mut longest.backoff
    {
        *attempts_max = ATTEMPTS_MAX;
    }
    criterion.bench_function("next delay, attempt 9,999", |bencher| {
        bencher.iter(|| black_box(&longest).wait(black_box(9_999), black_box(u64::MAX / 3)));
    });
}

criterion_group!(benches, next_delay);
criterion_main!(benches);
