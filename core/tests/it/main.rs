//! The tests of the core: tables of examples, and laws that must hold for whatever is thrown at it.
//!
//! Laws are drawn from a fixed seed, so that a run is the same everywhere. To search elsewhere, or
//! longer: `PROPTEST_RNG_SEED=7 PROPTEST_CASES=20000 cargo test -p hookproof-core`.

mod breaker_off;
mod classify;
mod delivery;
mod delivery_laws;
mod endpoint;
mod gate;
mod gate_laws;
mod given;
mod id;
mod inbox;
mod life;
mod policy;
mod replay;
mod retry_after;
mod schedule;
mod scheme;
mod secret;
mod signature;
mod signature_laws;
mod time;
