//! A sender on trial: how it is started, published to and asked.

use std::future::pending;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hookproof_core::secret::Secret;
use hookproof_core::time::Millis;
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::host::Host as _;
use hookproof_runtime::server::{self, AfterResponse, ServerLimits, read_body};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};

use super::{Busy, Client, Event, Failure, Held, Life, Report};
use crate::scenario::Scenario;
use crate::trial::{Histories, Role, lock};
use crate::wire::{Ask, Candidate, Listener, SimHost};

/// Where the reference receiver takes events.
const PATH: &str = "/hooks/shop";

/// How long after the faults everything may take to be delivered or dead, unless the trial says
/// otherwise: a sender that waits longer than that is not to be simulated tick by tick.
const DRAINS: Millis = Millis::from_minutes(2);

/// The longest body that an application publishes, in bytes, and how long that may take.
const BODY_MAX: (usize, Millis) = (64 * 1024, Millis::from_secs(10));

/// A sender, and the histories that it is to hold in.
pub struct Trial(Histories);

impl Trial {
    /// Puts a sender on trial. `run` is called at the start of each life of its process, and sends. It
    /// may end; the process goes on and takes publishes. `publish` is called for each publish, and
    /// what it returns `Ok` for is acknowledged. `report` reads from the disk where each event is; it is
    /// asked after each commit, when the application hears that an event is accepted, and each second.
    pub fn new<S, R, P>(
        run: impl Fn(Life<S>, Client) -> R + Send + Sync + 'static,
        publish: impl Fn(Life<S>, Event) -> P + Send + Sync + 'static,
        report: impl Fn(&S) -> Report + Send + Sync + 'static,
    ) -> Self
    where
        S: Default + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
        P: Future<Output = Result<(), Busy>> + Send + 'static,
    {
        let (run, publish, report) = (Arc::new(run), Arc::new(publish), Arc::new(report));
        let build = move |integration, secret: Secret| {
            let state = Arc::new(Mutex::new(S::default()));
            let (asked, report) = (state.clone(), report.clone());
            let (run, publish) = (run.clone(), publish.clone());
            Candidate {
                integration,
                start: Arc::new(move |host: SimHost, listener| {
                    let life = Life::new(host.clone(), state.clone(), secret.clone());
                    let sending = run(life.clone(), Client::new(host.clone(), PATH));
                    let publish = publish.clone();
                    let take = move |event| publish(life.clone(), event);
                    Box::pin(async move {
                        tokio::join!(serve(host, listener, take), sending);
                    })
                }),
                ask: Ask::Sender(Box::new(move || report(&lock(&asked)))),
            }
        };
        let scenario = Scenario { liveness_bound: DRAINS, ..Scenario::mixed() };
        Self(Histories::new(Role::Sender, PATH, build).scenario(scenario))
    }

    /// What the histories are about, instead of [`Scenario::mixed`]: the events, the faults that the
    /// wire world has, and how long draining may take. The sender has one endpoint, and no policy but
    /// its own.
    #[must_use]
    pub fn scenario(self, scenario: Scenario) -> Self {
        Self(self.0.scenario(scenario))
    }

    /// The secret that the receiver knows, instead of one that the sender asks its [`Life`] for.
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
    /// [`Failure`] with the first history in which the sender breaks an invariant, made small; if it
    /// does not deliver everything while nothing is wrong; if a history cannot be repeated; or if
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

/// Takes what the application publishes, until the process ends.
async fn serve<P>(
    host: SimHost,
    listener: Listener,
    publish: impl Fn(Event) -> P + Clone + Send + Sync + 'static,
) where
    P: Future<Output = Result<(), Busy>> + Send + 'static,
{
    let serving = host.clone();
    let respond = move |request: Request<Incoming>, _| {
        let (host, publish) = (serving.clone(), publish.clone());
        async move {
            // Its one endpoint it need not be told of.
            if request.uri().path() == "/endpoints" {
                return answer(StatusCode::CREATED, String::new());
            }
            let Some(event) = read(&host, request).await else {
                return answer(StatusCode::BAD_REQUEST, String::new());
            };
            host.at(CrashPoint::PublishReceived).await;
            let id = event.id.clone();
            if publish(event).await.is_err() {
                return answer(StatusCode::SERVICE_UNAVAILABLE, String::new());
            }
            host.at(CrashPoint::PublishCommitted).await;
            let accepted = serde_json::json!({ "id": id });
            let mut answer = answer(StatusCode::ACCEPTED, accepted.to_string());
            answer.extensions_mut().insert(AfterResponse(CrashPoint::PublishAcked));
            answer
        }
    };
    server::serve(host, listener, ServerLimits::default(), respond, pending()).await;
}

/// The event of a publish: what the application calls it is its id.
async fn read(host: &SimHost, request: Request<Incoming>) -> Option<Event> {
    let id = request.headers().get("idempotency-key")?.to_str().ok()?.to_owned();
    let (bytes_max, timeout) = BODY_MAX;
    let body = read_body(host, request.into_body(), bytes_max, timeout).await.ok()?;
    Some(Event { id, body: Bytes::from(body) })
}

fn answer(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
}
