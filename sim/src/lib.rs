//! Deterministic simulation of webhook delivery.
//!
//! The real sender and the real receiver run on a simulated network, through crashes at named
//! points, lost responses, partitions, duplicates and reordering, and every history is checked
//! against the invariants of delivery. One seed is one history, byte for byte.
//!
//! - [`choices`]: the one source of nondeterminism;
//! - [`scenario`], [`fault`]: what a history is about, and what goes wrong in it;
//! - [`receiver`]: your own receiver in the wire world, in a test of a dozen lines;
//! - [`sender`]: your own sender there;
//! - [`wire`]: the world on turmoil, with real HTTP and real SQLite;
//! - [`tape`]: what the wire world saw of core's machines, and how it is played again;
//! - [`checkers`]: the invariants;
//! - [`zoo`]: bugs that the suite must find, or it proves nothing;
//! - [`plan`], [`minimise`], [`timeline`]: a failing history as a file, made small, and told;
//! - [`model`]: the world of events over modelled stores, in which a history takes microseconds;
//! - [`explore`]: every history of a small world, one after the other;
//! - [`suite`]: many histories, the zoo, and a verdict.

mod asked;
pub mod checkers;
pub mod choices;
pub mod explore;
pub mod fact;
pub mod fault;
pub mod history;
pub mod journal;
mod log;
pub mod minimise;
pub mod model;
pub mod plan;
pub mod receiver;
pub mod scenario;
pub mod sender;
pub mod sometimes;
pub mod suite;
pub mod tape;
pub mod timeline;
mod trial;
pub mod wire;
pub mod zoo;
