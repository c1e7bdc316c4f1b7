//! The tests of the core: tables of examples, and laws that must hold for whatever is thrown at it.
//!
//! Laws are drawn from a fixed seed, so that a run is the same everywhere. To search elsewhere, or
//! longer: `PROPTEST_RNG_SEED=7 PROPTEST_CASES=20000 cargo test -p hookproof-core`.

mod address;
mod address_laws;
mod address_registry;
mod breaker;
mod breaker_clock;
mod breaker_off;
mod classify;
mod delivery;
mod delivery_laws;
mod dispatch;
mod endpoint;
mod field;
mod fuzz;
mod gate;
mod gate_laws;
mod given;
mod holds;
mod host_names;
mod id;
mod inbox;
mod life;
mod life_span;
mod limits;
mod ordering;
mod policy;
mod preset;
mod replay;
mod retry_after;
mod rule;
mod schedule;
mod schedule_kinds;
mod scheme;
mod secret;
mod signature;
mod signature_laws;
mod time;
mod window;
