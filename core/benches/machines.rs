//! How long one decision takes. The goal: a step of a delivery or of a gate in at most 200 ns.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use hookproof_core::classify::{Classification, Signal};
use hookproof_core::delivery::{Ctx, Delivery, Input};
use hookproof_core::gate::{Admission, BreakerRule, Gate, GateRule, RateRule, WindowRule};
use hookproof_core::id::{DeliveryId, EndpointId, EventId};
use hookproof_core::outcome::Outcome;
use hookproof_core::policy::Policy;
use hookproof_core::retry_after;
use hookproof_core::time::{Millis, Timestamp};

const ADMITTED: Input = Input::Admitted { held: Millis::ZERO };

fn classify(c: &mut Criterion) {
    let agreement = Classification::default();
    let outcome = Outcome::Answered { status: 503, retry_after: Some(Millis::from_secs(120)) };
    c.bench_function("classify a 503", |b| b.iter(|| agreement.verdict(black_box(&outcome))));
    let now = Timestamp::from_secs(784_111_000);
    for (name, value) in [
        ("seconds", "120"),
        ("IMF-fixdate", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("asctime", "Sun Nov  6 08:49:37 1994"),
    ] {
        c.bench_function(&format!("read a Retry-After: {name}"), |b| {
            b.iter(|| retry_after::parse(black_box(value.as_bytes()), now));
        });
    }
}

fn step_gate(c: &mut Criterion, name: &str, rule: &GateRule) {
    c.bench_function(&format!("admit and record: {name}"), |b| {
        let mut gate = Gate::default();
        let mut now = 0_i64;
        b.iter(|| {
            now += 1000;
            let at = Timestamp::from_millis(now);
            let signal = if now % 3000 == 0 { Signal::Failure } else { Signal::Success };
            if let Admission::Go(permit) = gate.admit(rule, at, Millis::from_secs(15)) {
                gate.record(rule, at, permit, signal);
            }
        });
    });
}

fn gate(c: &mut Criterion) {
    step_gate(c, "failures in a row", &GateRule::default());
    let spans = [
        ("a window of 300 instants", Millis::from_minutes(5)),
        ("a window of 3600 instants, more than are kept apart", Millis::from_hours(1)),
    ];
    for (name, within) in spans {
        let window = WindowRule { within, failures: 200, share_percent: 90, attempts_min: 200 };
        let breaker = Some(BreakerRule { window: Some(window), ..BreakerRule::default() });
        step_gate(c, name, &GateRule { breaker, ..GateRule::default() });
    }
    let rate = Some(RateRule { attempts: 300, per: Millis::from_minutes(5), burst: 10 });
    step_gate(c, "a rate over 300", &GateRule { rate, ..GateRule::default() });
}

fn delivery(c: &mut Criterion) {
    let policy = Policy::default();
    let now = Timestamp::from_secs(1_000);
    let ctx = Ctx { now, entropy: 7, policy: &policy };
    let event = EventId::from_entropy([1, 2]);
    let endpoint = EndpointId::from_entropy([3, 4]);
    let id = DeliveryId::of(&event, &endpoint);
    let scheduled = Delivery::new(id, event, endpoint, now);
    c.bench_function("a delivery's step: claim", |b| {
        b.iter(|| scheduled.handle(ctx, black_box(ADMITTED)));
    });
    let step = scheduled.handle(ctx, ADMITTED).expect("it is due");
    let in_flight = step.next().clone();
    let input = Input::Finished {
        attempt: 1,
        outcome: Outcome::Answered { status: 503, retry_after: None },
    };
    c.bench_function("a delivery's step: finish", |b| {
        b.iter(|| in_flight.handle(ctx, black_box(input)));
    });
}

criterion_group!(benches, classify, gate, delivery);
criterion_main!(benches);
