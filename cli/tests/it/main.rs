//! The tests of the workspace's shape and of its command line.

mod address;
mod breaker;
mod classify;
mod demo;
mod docs;
mod graph;
mod program;
mod readme;
mod schedule;
mod schedule_json;
mod schedule_known;
mod schedule_law;
mod serve;
mod sign;
mod sim;
mod tidy;
mod verify;
mod width;
mod zoo;
