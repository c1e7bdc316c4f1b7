//! The ground that both drivers stand on.
//!
//! - [`host`]: the seam. Sender and receiver reach clock, entropy, tasks, network and their own
//!   mortality only through the trait [`host::Host`]; [`tokio_host::TokioHost`] is the real one, and
//!   the simulator brings its own.
//! - [`decision`]: what a driver tells its host of each decision of core's machines.
//! - [`crash_point`]: the named places between two steps at which a simulated host can end.
//! - [`server`], [`client`]: HTTP/1.1 by hyper over that seam, with every size and wait bounded.
//! - [`database`]: SQLite behind one writer that commits in groups. In production the writer is a
//!   thread; in simulation the same operations run inline, so that a simulation runs the real SQL.

pub mod client;
pub mod clock;
pub mod crash_point;
pub mod database;
pub mod decision;
pub mod host;
pub mod server;
pub mod tokio_host;
