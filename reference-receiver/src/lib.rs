//! The reference webhook receiver: verify, record, acknowledge, and apply each event exactly once.
//!
//! An event comes in by `POST /hooks/{source}`. Its signature is verified over the raw bytes, the
//! event is recorded under the unique key (source, event id) and committed, and then it is
//! acknowledged with 2xx; a duplicate is acknowledged like the first. A worker claims the recorded
//! event, and applies its effect and marks it in one transaction. After a crash at any point either
//! the sender has no acknowledgement and sends again, or the inbox holds the event and the worker
//! finds it: no event is lost, and no effect happens twice.
//!
//! - [`run`]: a receiver over the seam [`Host`];
//! - [`config`]: what it is told;
//! - [`store`]: what it keeps, as a trait, and [`sqlite`]: the store it comes with;
//! - [`ordering`]: which version of which entity an event is about, so that what is late has no effect;
//! - [`effect`]: what an event brings about, which is where your own code goes;
//! - [`downstream`]: an effect that is a call to another service.

mod answer;
pub mod config;
pub mod downstream;
pub mod effect;
mod ingress;
pub mod ordering;
mod routes;
mod source;
pub mod sqlite;
pub mod store;
pub mod verifier;
mod worker;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use hookproof_runtime::host::Host;
use hookproof_runtime::server;
use tokio::sync::{Notify, watch};

use crate::config::ReceiverConfig;
use crate::ingress::Ingress;
use crate::store::InboxStore;
use crate::worker::Worker;

/// Receives events and works them off until `shutdown` resolves; then accepts nothing more, lets
/// open requests finish, finishes the entry in hand, and returns. What is still pending then stays
/// in the store for the next start.
///
/// `config` has passed [`ReceiverConfig::validate`]. Nobody else works on `store` meanwhile: what is
/// claimed in it at the start is taken back, for its owner is gone.
pub async fn run<H, S>(
    host: H,
    listener: H::Listener,
    config: ReceiverConfig,
    store: S,
    shutdown: impl Future<Output = ()> + Send,
) where
    H: Host,
    S: InboxStore,
{
    for source in &config.sources {
        if source.verifier.trusts_unsigned_id() {
            let (source, place) = (&source.id, &source.verifier.event_id);
            tracing::warn!(%source, %place, "the id of its events is not signed: a request can be sent again as another event");
        }
    }
    let wake = Arc::new(Notify::new());
    let mut worker = Worker::new(host.clone(), store.clone(), &config, wake.clone());
    let mut shutdown = pin!(shutdown);
    let recovered = tokio::select! {
        biased;
        () = &mut shutdown => return,
        recovered = worker.recover() => recovered,
    };
    if let Err(error) = recovered {
        // The worker tries again before its first claim. Until the store works, senders are told so,
        // which is better than a socket on which nobody answers.
        tracing::warn!(%error, "the inbox could not be recovered yet");
    }
    let limits = config.limits;
    let ingress = Ingress { host: host.clone(), store, config: Arc::new(config), wake };
    let respond = move |request, peer| routes::respond(ingress.clone(), request, peer);
    let (stop, stopped) = watch::channel(false);
    let serve = async {
        server::serve(host, listener, limits, respond, shutdown).await;
        stop.send_replace(true);
    };
    tokio::join!(serve, worker.run(stopped));
}
