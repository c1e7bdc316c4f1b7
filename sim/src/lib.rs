//! Deterministic simulation of webhook delivery.
//!
//! The real sender and the real receiver run on a simulated network, through crashes at named
//! points, lost responses, partitions, duplicates and reordering, and every history is checked
//! against the invariants of delivery. One seed is one history, byte for byte.
//!
//! What is public, and for whom:
//!
//! | for | what |
//! | --- | --- |
//! | a receiver of yours, in a test of a dozen lines | [`receiver`] |
//! | a sender of yours, likewise | [`sender`] |
//! | a kind of history of your own | [`scenario`], with [`fault`] |
//! | running one history, or many with a verdict | [`model`], [`wire`], [`suite`]; [`history`] and [`checkers::Invariant`] are what comes out |
//! | every history of a small world | [`explore`] |
//! | a failing history as a file, made small, and told | [`plan`], [`minimise`], [`timeline`] |
//! | trust in the harness itself | [`zoo`]; [`tape`]: what the wire world saw of core's machines, played again |
//! | a history from bytes, as a fuzzer has them | [`choices`], the one source of nondeterminism |
//!
//! What the checkers are told, the hosts of both worlds and their records are nobody's but the
//! simulation's: they change with it.

mod asked;
pub mod checkers;
pub mod choices;
pub mod explore;
mod fact;
pub mod fault;
pub mod history;
mod journal;
mod log;
pub mod minimise;
pub mod model;
pub mod plan;
pub mod receiver;
pub mod scenario;
pub mod sender;
mod sometimes;
pub mod suite;
pub mod tape;
pub mod timeline;
mod trial;
pub mod wire;
pub mod zoo;
