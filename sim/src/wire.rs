//! The wire world: the real sender and the real receiver, or one of them [on](crate::receiver)
//! [trial](crate::sender), on turmoil, real HTTP over simulated TCP, real SQLite.

mod application;
mod attacker;
mod bent;
mod books;
mod calls;
mod candidate;
mod downstream;
#[doc(hidden)]
pub mod exchanges;
mod fuse;
mod host;
mod in_attempt;
mod lives;
mod names;
mod observer;
mod people;
mod population;
mod queue;
mod reached;
mod request;
mod setting;
mod stage;
mod stream;
mod trouble;
mod verify;
mod watched;
mod witness;
mod world;

pub(crate) use application::Integration;
pub use calls::{Attempt, Client};
pub(crate) use candidate::{Ask, Candidate, Listener};
pub(crate) use host::SimHost;
pub(crate) use world::run_candidate;
pub use world::{run, run_taped};
