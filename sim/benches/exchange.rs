//! What a request and its response cost in the wire world, and without it.

mod bare;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use hookproof_sim::wire::exchanges::{Exchanges, in_the_stores};

/// As many as a history has.
const EXCHANGES: u32 = 40;

fn exchanges(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("exchange");
    group.throughput(Throughput::Elements(u64::from(EXCHANGES)));
    group.bench_function("bare hyper on bare turmoil", |bencher| {
        bencher.iter(|| bare::exchanges(EXCHANGES));
    });
    group.bench_function("by the programs' own client and server", |bencher| {
        bencher.iter(|| bare::by_the_programs(EXCHANGES));
    });
    group.bench_function("in the wire world, without stores", |bencher| {
        let prepare = || Exchanges::new(EXCHANGES).expect("nothing is wrong");
        let run = |exchanges: &mut Exchanges| exchanges.run().expect("nothing goes wrong");
        bencher.iter_batched_ref(prepare, run, BatchSize::SmallInput);
    });
    group.bench_function("its stores", |bencher| {
        bencher.iter(|| in_the_stores(EXCHANGES).expect("nothing goes wrong"));
    });
    group.finish();
}

criterion_group!(benches, exchanges);
criterion_main!(benches);
