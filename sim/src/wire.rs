//! The wire world: the real sender and the real receiver on turmoil, real HTTP over simulated TCP,
//! real SQLite.

mod application;
mod checkers;
mod fuse;
mod host;
mod lives;
mod observer;
mod request;
mod stream;
mod world;

pub use host::SimHost;
pub use observer::{ReceiverSnapshot, SenderSnapshot};
pub use world::run;
