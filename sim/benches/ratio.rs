//! How much more a request and its response cost in the wire world than bare hyper on bare turmoil, both
//! in turn in one process; ends with exit code 1 if it is more than 1.3 times.

mod bare;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use hookproof_sim::wire::exchanges::{Exchanges, in_the_stores};

/// As many as a history has.
const EXCHANGES: u32 = 40;
/// How often each is measured. The least counts: whatever else runs on the machine only adds to it.
const ROUNDS: u32 = 200;
/// What is promised.
const RATIO_MAX: f64 = 1.3;

#[expect(clippy::print_stdout, reason = "a measurement tells what it measured")]
fn main() -> ExitCode {
    let (mut bare, mut programs) = (Duration::MAX, Duration::MAX);
    let (mut wire, mut stores) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        bare = bare.min(time(|| bare::exchanges(EXCHANGES)));
        programs = programs.min(time(|| bare::by_the_programs(EXCHANGES)));
        let exchanges = Exchanges::new(EXCHANGES).expect("nothing is wrong");
        wire = wire.min(time(|| exchanges.run().expect("nothing goes wrong")));
        stores = stores.min(time(|| in_the_stores(EXCHANGES).expect("nothing goes wrong")));
    }
    let each = |all: Duration| all.as_secs_f64() * 1e6 / f64::from(EXCHANGES);
    let times = |all: Duration| each(all) / each(bare);
    let line = |what: &str, all| {
        println!("{what:<56} {:>7.1} µs {:>6.2} times", each(all), times(all));
    };
    line("an exchange, bare hyper on bare turmoil", bare);
    line("by the programs' own client and server, without faults", programs);
    line("in the wire world, without its stores", wire);
    line("its stores, apart", stores);
    if times(wire) <= RATIO_MAX { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
fn time(work: impl FnOnce() -> u32) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}
