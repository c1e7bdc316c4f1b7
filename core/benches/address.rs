//! How long it takes to judge where a request may go. It is done for each attempt.

use std::hint::black_box;
use std::net::IpAddr;

use criterion::{Criterion, criterion_group, criterion_main};
use hookproof_core::address::AddressPolicy;

fn judging(criterion: &mut Criterion) {
    let policy = AddressPolicy::default();
    let mut group = criterion.benchmark_group("address");
    for (name, text) in [
        ("public IPv4", "93.184.215.14"),
        ("private IPv4", "192.168.0.1"),
        ("public IPv6", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"),
        ("IPv4 by NAT64", "64:ff9b::5db8:d70e"),
    ] {
        let address: IpAddr = text.parse().expect("it is an address");
        group.bench_function(name, |bencher| {
            bencher.iter(|| policy.judge_ip(black_box(address)));
        });
    }
    group.bench_function("URL of a name", |bencher| {
        bencher.iter(|| policy.judge_url(black_box("https://hooks.example.com:8443/v1/in?a=b")));
    });
    group.finish();
}

criterion_group!(benches, judging);
criterion_main!(benches);
