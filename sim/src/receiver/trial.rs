//! A receiver on trial: how it is started, served and asked.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hookproof_core::secret::Secret;
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::host::Host as _;
use hookproof_runtime::server::{self, AfterResponse, ServerLimits};
use hyper::body::{Body, Incoming};
use hyper::{Request, Response};
use tower_service::Service;

use super::{Failure, Held, Life, Report};
use crate::scenario::Scenario;
use crate::trial::{Histories, Role, lock};
use crate::wire::{Ask, Candidate, Listener, SimHost};

/// Where a receiver takes requests unless the trial says otherwise.
const PATH: &str = "/webhooks";

/// Where the process may end between having made its answer and having written it.
const ANSWER_READY: &str = "answer.ready";

/// A receiver, and the histories that it is to hold in.
pub struct Trial(Histories);

impl Trial {
    /// Puts a receiver on trial. `start` is called at the start of each life of its process, and
    /// gives the service that answers requests: an axum router, or any other
    /// [`Service`] that does not fail. `report` reads the books from the disk; it is asked after each
    /// commit, before each answer, and each second.
    pub fn new<S, V, B, R>(
        start: impl Fn(Life<S>) -> V + Send + Sync + 'static,
        report: impl Fn(&S) -> R + Send + Sync + 'static,
    ) -> Self
    where
        S: Default + Send + 'static,
        V: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
        V: Clone + Send + Sync + 'static,
        V::Future: Send,
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: std::error::Error + Send + Sync,
        R: Into<Report>,
    {
        let (start, report) = (Arc::new(start), Arc::new(report));
        Self(Histories::new(Role::Receiver, PATH, move |integration, secret: Secret| {
            let state = Arc::new(Mutex::new(S::default()));
            let (asked, report, start) = (state.clone(), report.clone(), start.clone());
            Candidate {
                integration,
                start: Arc::new(move |host, listener| {
                    let life = Life::new(host.clone(), state.clone(), secret.clone());
                    let service = start(life);
                    Box::pin(serve(host, listener, service))
                }),
                ask: Ask::Receiver(Box::new(move || report(&lock(&asked)).into())),
            }
        }))
    }

    /// What the histories are about, instead of [`Scenario::mixed`]: the events, the policies, the
    /// faults that the wire world has. The receiver is the only endpoint.
    #[must_use]
    pub fn scenario(self, scenario: Scenario) -> Self {
        Self(self.0.scenario(scenario))
    }

    /// Where the receiver takes requests, instead of `/webhooks`.
    #[must_use]
    pub fn path(self, path: impl Into<String>) -> Self {
        Self(self.0.path(path.into()))
    }

    /// The secret that the receiver knows, instead of one that it asks its [`Life`] for.
    #[must_use]
    pub fn secret(self, secret: Secret) -> Self {
        Self(self.0.secret(secret))
    }

    /// Runs the history of each seed, and before them one without faults.
    ///
    /// # Panics
    ///
    /// With the [`Failure`] of [`Trial::try_run`].
    pub fn run(&self, seeds: Range<u64>) -> Held {
        self.0.run(seeds)
    }

    /// Runs the history of each seed, and before them one without faults.
    ///
    /// # Errors
    ///
    /// [`Failure`] with the first history in which the receiver breaks an invariant, made small; if
    /// it does not take everything while nothing is wrong; if a history cannot be repeated; or if
    /// there is nothing to run.
    pub fn try_run(&self, seeds: Range<u64>) -> Result<Held, Failure> {
        self.0.try_run(seeds)
    }

    /// The trace of a seed's history, byte for byte the same each time: milliseconds, who, what.
    ///
    /// # Errors
    ///
    /// [`Failure`] if there is nothing to run.
    pub fn trace(&self, seed: u64) -> Result<String, Failure> {
        self.0.trace(seed)
    }
}

/// Serves until the process ends.
async fn serve<V, B>(host: SimHost, listener: Listener, service: V)
where
    V: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    V: Clone + Send + Sync + 'static,
    V::Future: Send,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::error::Error + Send + Sync,
{
    let answering = host.clone();
    let respond = move |request: Request<Incoming>, _| {
        let (host, mut service) = (answering.clone(), service.clone());
        async move {
            host.at(CrashPoint::RequestAccepted).await;
            let Ok(()) = poll_fn(|cx| service.poll_ready(cx)).await;
            let Ok(mut response) = service.call(request).await;
            host.passes_place(ANSWER_READY).await;
            response.extensions_mut().insert(AfterResponse(CrashPoint::AckSent));
            response
        }
    };
    server::serve(host, listener, ServerLimits::default(), respond, pending()).await;
}
