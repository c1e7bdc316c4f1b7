//! Your own sender in the wire world: an application publishes through it, and it sends to the
//! reference receiver over the simulated network, through crashes, lost answers and refused
//! connections. Every history is held against the invariants.
//!
//! A [`Trial`] takes three functions. The first runs for one [`Life`] of the sender's process and sends
//! what is to be sent, through a [`Client`]. The second takes a publish: what it returns `Ok` for is
//! acknowledged. The third reads from the disk where each event is. What the sender keeps on its
//! [`Disk`] survives a crash; all else dies with the process.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use bytes::Bytes;
//! use hookproof_core::secret::Secrets;
//! use hookproof_core::signature::sign;
//! use hookproof_core::time::Millis;
//! use hookproof_sim::sender::{Busy, Client, Event, Life, Report, Trial};
//!
//! /// What survives a crash: event id → its body, and whether it is delivered.
//! type Queue = BTreeMap<String, (Bytes, bool)>;
//!
//! async fn publish(life: Life<Queue>, event: Event) -> Result<(), Busy> {
//!     // The same event is published again until the application hears that it was accepted.
//!     let row = (event.body, false);
//!     life.disk().commit(|queue| _ = queue.entry(event.id).or_insert(row)).await
//! }
//!
//! async fn run(life: Life<Queue>, client: Client) {
//!     let secrets = Secrets::one(life.secret().clone());
//!     loop {
//!         let all = life.disk().read(Queue::clone).await;
//!         for (id, (body, _)) in all.into_iter().filter(|(_, (_, is_done))| !is_done) {
//!             let now = life.wall().as_secs();
//!             let request = hyper::Request::post(client.url())
//!                 .header("webhook-id", &id)
//!                 .header("webhook-timestamp", now)
//!                 .header("webhook-signature", sign(&secrets, &id, now, &body))
//!                 .body(body);
//!             let answer = client.send(request.unwrap(), Millis::from_secs(5)).await;
//!             if answer.is_ok_and(|answer| answer.status().is_success()) {
//!                 // If the disk is busy it is sent again: the receiver knows it by its id.
//!                 let _ = life.disk().commit(|queue| queue.get_mut(&id).unwrap().1 = true).await;
//!             }
//!         }
//!         life.sleep(Millis::from_secs(1)).await;
//!     }
//! }
//!
//! fn report(queue: &Queue) -> Report {
//!     let ids = |done| queue.iter().filter(move |(_, row)| row.1 == done).map(|(id, _)| id.clone());
//!     Report { pending: ids(false).collect(), delivered: ids(true).collect(), ..Report::default() }
//! }
//!
//! // In a test:
//! Trial::new(run, publish, report).run(0..3);
//! ```
//!
//! # What is judged
//!
//! Of the sender: what is accepted is in one place, pending, delivered or dead (I1), and stays
//! there or in the next (I5, I15); nothing is sent that nobody published (I2); what is delivered has had
//! its effect, once (I3, I4); id and body are those of the event each time, header names do not change,
//! the timestamp is the attempt's, and an independent verifier accepts the signature (I7); no
//! connection goes to an address but the receiver's (I12); everything is delivered or dead
//! within two minutes after the faults have ended (I13); no panic and no log at ERROR (S0). When it
//! sends, how often, and how many at once, is the sender's own affair.
//!
//! # What the sender must keep to
//!
//! As with a [receiver](crate::receiver#what-the-receiver-must-keep-to), time, tasks and randomness come
//! from its [`Life`], and connections from the [`Client`].

mod trial;

use std::collections::BTreeSet;

use bytes::Bytes;

pub use crate::trial::{Busy, Disk, Failure, Held, Life};
pub use crate::wire::{Attempt, Client};
pub use trial::Trial;

/// An event that the application publishes. It does so again, with the same id, until it is accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Its id, which is to be sent as `webhook-id`.
    pub id: String,
    /// Its body, which is to be sent byte for byte.
    pub body: Bytes,
}

/// Where each event is, as the sender has committed it: by its id, in one of three places.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// It is to be sent, or under way.
    pub pending: BTreeSet<String>,
    /// The receiver has taken it.
    pub delivered: BTreeSet<String>,
    /// It is given up.
    pub dead: BTreeSet<String>,
}

impl Report {
    /// The ids of all events.
    pub(crate) fn all(&self) -> BTreeSet<&str> {
        let places = [&self.pending, &self.delivered, &self.dead];
        places.into_iter().flatten().map(String::as_str).collect()
    }
}
