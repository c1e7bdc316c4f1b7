//! The wire world: the real sender and the real receiver, or one [on trial](crate::receiver), on
//! turmoil, real HTTP over simulated TCP, real SQLite.

mod application;
mod attacker;
mod bent;
mod books;
mod candidate;
mod fuse;
mod host;
mod lives;
mod names;
mod observer;
mod people;
mod population;
mod reached;
mod request;
mod stage;
mod stream;
mod trouble;
mod verify;
mod watched;
mod witness;
mod world;

pub(crate) use application::Integration;
pub(crate) use candidate::{Candidate, Listener};
pub use host::SimHost;
pub use world::run;
pub(crate) use world::run_candidate;
