//! The simulator's own proof: that it replays, that it kills what it must, that it cannot be blind.

#![expect(clippy::panic, reason = "tests fail by panicking")]
#![expect(clippy::disallowed_methods, reason = "histories are compared across threads")]

mod choices;
mod differential;
mod explore;
mod found;
mod hunt;
mod idle;
mod minimise;
mod model;
mod plan;
mod receiver;
mod regressions;
mod replay;
mod seeds;
mod sender;
mod suite;
mod timeline;
mod wire;
mod zoo;
