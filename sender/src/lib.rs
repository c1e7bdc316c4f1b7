//! The webhook sender.
//!
//! An event is accepted into a durable queue together with one delivery per subscribed endpoint;
//! the [`dispatcher`] claims what is due and admitted, an [`attempt`] is made over the seam, and its
//! outcome is recorded. Every decision is core's; this crate loads, persists, and acts after the
//! commit. There is no timer per delivery: what is due is a query, and recovery after a crash is the
//! same query.

pub mod api;
pub mod attempt;
pub mod config;
mod deletion;
pub mod dispatcher;
mod gates;
pub mod notifier;
pub mod sqlite;
pub mod store;
pub mod tls;
mod under_way;
pub mod url;

use std::future::Future;
use std::sync::Arc;

use hookproof_runtime::host::Host;
use hookproof_runtime::server;
use tokio::sync::{Notify, watch};

use config::SenderConfig;
use deletion::MaybeOrphans;
use dispatcher::Dispatcher;
use gates::Gates;
use notifier::Notifier;
use store::Store;
use under_way::UnderWay;

/// What the parts of a sender share.
pub(crate) struct Shared<H, S> {
    pub(crate) host: H,
    pub(crate) store: S,
    pub(crate) config: SenderConfig,
    pub(crate) tls: tls::Tls,
    pub(crate) gates: Gates<H>,
    pub(crate) under_way: UnderWay,
    pub(crate) orphans: MaybeOrphans,
    /// Wakes the dispatcher: something may be due.
    pub(crate) due: Notify,
    /// Wakes the notifier: a notice may be pending.
    pub(crate) notice: Notify,
}

/// Runs a sender until `shutdown` resolves: then no request and no attempt is begun any more, and
/// those under way are finished and recorded.
pub async fn run<H: Host, S: Store>(
    host: H,
    listener: H::Listener,
    config: SenderConfig,
    tls: tls::Tls,
    store: S,
    shutdown: impl Future<Output = ()> + Send,
) {
    let limits = config.limits;
    let shared = Arc::new(Shared {
        host: host.clone(),
        store,
        gates: Gates::new(host.clone(), &config.policy),
        config,
        tls,
        under_way: UnderWay::default(),
        orphans: MaybeOrphans::default(),
        due: Notify::new(),
        notice: Notify::new(),
    });
    let (stop, stopped) = watch::channel(false);
    let shutdown = async move {
        shutdown.await;
        // Before the server finishes its open requests: in the meantime, no attempt is begun.
        stop.send_replace(true);
    };
    let serve = server::serve(host, listener, limits, api::service(shared.clone()), shutdown);
    let dispatch = Dispatcher::new(shared.clone()).run(stopped.clone());
    let notify = Notifier::new(shared.clone()).run(stopped);
    tokio::join!(serve, dispatch, notify);
}
