//! The tests of the workspace's shape and of its command line.

mod graph;
mod tidy;
