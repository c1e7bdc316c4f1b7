//! The receiver over real sockets and real files: what it acknowledges, what it refuses, and what is
//! left of an event wherever a process ends.

mod acceptance;
mod config;
mod downstream;
mod given;
mod limits;
mod ordering;
mod queries;
mod refusal;
mod restart;
mod schemes;
mod worker;
