//! The tests of the runtime: the seam on real sockets, HTTP over it, and the group-commit database.

#![expect(clippy::panic, reason = "a helper that finds something wrong ends the test")]

mod client;
mod clock;
mod crash_point;
mod given;
mod group;
mod mortal;
mod open;
mod reader;
mod server;
mod tokio_host;
