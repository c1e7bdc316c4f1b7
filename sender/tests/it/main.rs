//! The tests of the sender: a real one on loopback sockets and a temporary database, and receivers
//! that answer as a test needs it.
//!
//! Nothing here waits for the sweep: in [`running::config`] it comes once an hour, so a wake-up
//! that gets lost makes a test fail instead of making it slow.

#![expect(clippy::panic, reason = "a helper that finds something wrong ends the test")]

mod address;
mod api;
mod attempt;
mod breaker;
mod clock;
mod concurrency;
mod config;
mod deletion;
mod delivery;
mod endpoint;
mod expiry;
mod failing;
mod faults;
mod limits;
mod listing;
mod publish;
mod receiver;
mod replay;
mod restart;
mod running;
mod shutdown;
mod store;
mod tls;
mod unreadable;
mod url;
