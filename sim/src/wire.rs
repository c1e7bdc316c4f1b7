//! The wire world: the real sender and the real receiver on turmoil, real HTTP over simulated TCP,
//! real SQLite.

mod application;
mod attacker;
mod fuse;
mod host;
mod lives;
mod names;
mod observer;
mod request;
mod stage;
mod stream;
mod verify;
mod watched;
mod witness;
mod world;

pub use host::SimHost;
pub use world::run;
