//! Your own receiver in the wire world: the reference sender sends to it over the simulated network,
//! through crashes, lost answers and duplicates, and every history is held against the invariants.
//!
//! A [`Trial`] takes two functions. The first starts the receiver for one [`Life`] of its process and
//! returns its service, for example an axum router. What the receiver keeps on its [`Disk`] survives a
//! crash; all else dies with the process. The second reads from the disk how often each event has had
//! its effect.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use axum::Router;
//! use axum::http::{HeaderMap, StatusCode};
//! use axum::routing::post;
//! use hookproof_core::secret::Secrets;
//! use hookproof_core::signature::{Signed, TOLERANCE, verify};
//! use hookproof_sim::receiver::{Life, Trial};
//!
//! /// What survives a crash: event id → how often the event has had its effect.
//! type Ledger = BTreeMap<String, u32>;
//!
//! fn receiver(life: Life<Ledger>) -> Router {
//!     let secrets = Secrets::one(life.secret().clone());
//!     let take = async move |headers: HeaderMap, body: axum::body::Bytes| {
//!         let header = |name| headers.get(name).map(|value| value.as_bytes());
//!         let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
//!         let signed = Signed { id, timestamp, signature: header("webhook-signature"), body: &body };
//!         if verify(&secrets, &signed, life.wall(), TOLERANCE).is_err() {
//!             return StatusCode::UNAUTHORIZED;
//!         }
//!         let id = String::from_utf8_lossy(id.unwrap_or_default()).into_owned();
//!         // The id and the effect in one transaction: neither is ever there without the other.
//!         match life.disk().commit(move |ledger| ledger.entry(id).or_insert(1).to_owned()).await {
//!             Ok(_) => StatusCode::OK,
//!             Err(_) => StatusCode::SERVICE_UNAVAILABLE,
//!         }
//!     };
//!     Router::new().route("/webhooks", post(take))
//! }
//!
//! // In a test:
//! Trial::new(receiver, Ledger::clone).run(0..3);
//! ```
//!
//! # What is judged
//!
//! Of the receiver: no effect of what nobody sent (I2), at most one effect per event (I3), exactly one
//! of what is delivered (I4), no valid request refused and no other taken (I7), nothing acknowledged
//! that is not recorded, and nothing recorded that is lost (I15), no panic and no log at ERROR (S0).
//! What is delivered must have had its effect a minute after the network is quiet.
//!
//! # What the receiver must keep to
//!
//! It lives in simulated time, on one thread. Time passes as [`Life::now`], [`Life::wall`] and
//! [`Life::sleep`] say (`tokio::time` sleeps agree with them, `SystemTime` does not), tasks are
//! started with [`Life::spawn`] and randomness comes from [`Life::entropy`]. A trial runs its first
//! seed twice, and says so if the two histories differ.

mod trial;

use std::collections::{BTreeMap, BTreeSet};

pub use crate::trial::{Busy, Disk, Failure, Held, Life};
pub use trial::Trial;

/// What a receiver has committed, as it says itself.
///
/// It is made of a map from event id to the number of effects, if whatever is recorded has had its
/// effect at once. A receiver that records first and works later gives both.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The ids of the events that it has taken responsibility for.
    pub recorded: BTreeSet<String>,
    /// Event id → how often the event has had its effect.
    pub effects: BTreeMap<String, u32>,
}

impl From<BTreeMap<String, u32>> for Report {
    fn from(effects: BTreeMap<String, u32>) -> Self {
        Self { recorded: effects.keys().cloned().collect(), effects }
    }
}
