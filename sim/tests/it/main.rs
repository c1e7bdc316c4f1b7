//! The simulator's own proof: that it replays, that it kills what it must, that it cannot be blind.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod choices;
mod replay;
mod seeds;
mod suite;
mod zoo;
