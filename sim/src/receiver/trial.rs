//! A receiver on trial: how its histories are run.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hookproof_core::secret::Secret;
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::host::Host as _;
use hookproof_runtime::server::{self, AfterResponse, ServerLimits};
use hyper::body::{Body, Incoming};
use hyper::{Request, Response};
use tower_service::Service;

use super::life::lock;
use super::{Failure, Held, Life, Report};
use crate::choices::Choices;
use crate::history::History;
use crate::minimise::minimise_by;
use crate::plan::Plan;
use crate::scenario::{Operation, Scenario};
use crate::suite::World;
use crate::wire::{Candidate, Integration, Listener, SimHost, run_candidate};

/// Where the process may end between having made its answer and having written it.
const ANSWER_READY: &str = "answer.ready";

/// The most histories that are run to make a failing one small.
const RUNS_MAX: u64 = 2000;

/// Among how many seeds a history of a single event is looked for that fails the same way: of one
/// that has many, some stay in the way of making it small.
const SINGLE_SEEDS: u64 = 50;

/// A receiver, and the histories that it is to hold in.
pub struct Trial {
    build: Box<dyn Fn(Integration, Secret) -> Candidate>,
    scenario: Scenario,
    path: String,
    secret: Secret,
}

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
        let build = move |integration, secret: Secret| {
            let state = Arc::new(Mutex::new(S::default()));
            let (asked, report, start) = (state.clone(), report.clone(), start.clone());
            Candidate {
                integration,
                start: Arc::new(move |host, listener| {
                    let life = Life::new(host.clone(), state.clone(), secret.clone());
                    let service = start(life);
                    Box::pin(serve(host, listener, service))
                }),
                ask: Box::new(move || report(&lock(&asked)).into()),
            }
        };
        Self {
            build: Box::new(build),
            scenario: Scenario::mixed(),
            path: "/webhooks".to_owned(),
            secret: Secret::from_entropy([0x686f_6f6b, 0x7072_6f6f, 0x6620_7472, 0x6961_6c21]),
        }
    }

    /// What the histories are about, instead of [`Scenario::mixed`]: the events, the policies, the
    /// faults that the wire world has. The receiver is the only endpoint.
    #[must_use]
    pub fn scenario(self, scenario: Scenario) -> Self {
        Self { scenario, ..self }
    }

    /// Where the receiver takes requests, instead of `/webhooks`.
    #[must_use]
    pub fn path(self, path: impl Into<String>) -> Self {
        Self { path: path.into(), ..self }
    }

    /// The secret that the receiver knows, instead of one that it asks its [`Life`] for.
    #[must_use]
    pub fn secret(self, secret: Secret) -> Self {
        Self { secret, ..self }
    }

    /// Runs the history of each seed, and before them one without faults.
    ///
    /// # Panics
    ///
    /// With the [`Failure`] of [`Trial::try_run`].
    #[expect(clippy::panic, reason = "it is to be called by tests, which fail by panicking")]
    pub fn run(&self, seeds: Range<u64>) -> Held {
        self.try_run(seeds).unwrap_or_else(|failure| panic!("{failure}"))
    }

    /// Runs the history of each seed, and before them one without faults.
    ///
    /// # Errors
    ///
    /// [`Failure`] with the first history in which the receiver breaks an invariant, made small; if
    /// it does not take everything while nothing is wrong; if a history cannot be repeated; or if
    /// there is nothing to run.
    pub fn try_run(&self, seeds: Range<u64>) -> Result<Held, Failure> {
        let scenario = self.checked(&seeds)?;
        let calm = Scenario { faults: Vec::new(), ..scenario.clone() };
        let history = self.seeded(&calm, seeds.start)?;
        if history.totals.accepted == 0 || history.totals.delivered < history.totals.deliveries {
            return Err(Failure::calm(seeds.start, &history));
        }
        let mut held = Held::default();
        for seed in seeds.clone() {
            let history = self.seeded(&scenario, seed)?;
            if seed == seeds.start && self.history(&scenario, seed).hash != history.hash {
                return Err(Failure::differs(seed));
            }
            held.add(&history);
        }
        Ok(held)
    }

    /// The trace of a seed's history, byte for byte the same each time: milliseconds, who, what.
    ///
    /// # Errors
    ///
    /// [`Failure`] if there is nothing to run.
    pub fn trace(&self, seed: u64) -> Result<String, Failure> {
        let scenario = self.checked(&(seed..seed.saturating_add(1)))?;
        let lines = self.history(&scenario, seed).lines;
        Ok(lines
            .iter()
            .map(|line| format!("{} {} {}\n", line.at.as_millis(), line.who, line.text))
            .collect())
    }

    /// The scenario as it is run, if it can be.
    fn checked(&self, seeds: &Range<u64>) -> Result<Scenario, Failure> {
        if seeds.is_empty() {
            return Err(Failure::setup(format!("the seeds {seeds:?} are none; give 0..100")));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/".contains(c);
        let path = &self.path;
        if !path.starts_with('/') || path.ends_with('/') || !path.chars().all(is_plain) {
            let right = "give one such as \"/webhooks/shop\": from the root, no slash at its end, \
                         no query";
            return Err(Failure::setup(format!("the path {path:?} cannot be; {right}")));
        }
        let mut scenario = Scenario { endpoints: (1, 1), ..self.scenario.on_wire() };
        // Of a new secret it would have to be told.
        scenario.operations.retain(|operation| *operation != Operation::Rotate);
        scenario.validate().map_err(|error| Failure::setup(format!("the scenario's {error}")))?;
        Ok(scenario)
    }

    fn history(&self, scenario: &Scenario, seed: u64) -> History {
        self.chosen(scenario, &Choices::seeded(seed))
    }

    fn chosen(&self, scenario: &Scenario, choices: &Choices) -> History {
        let text = self.secret.reveal();
        let encoded = text.strip_prefix("whsec_").unwrap_or(&text);
        // What a secret reveals is base64.
        let key = STANDARD.decode(encoded).unwrap_or_default();
        let integration = Integration { path: self.path.clone(), key };
        run_candidate(scenario, choices, (self.build)(integration, self.secret.clone()))
    }

    /// The history of a seed, if nothing is wrong in it.
    fn seeded(&self, scenario: &Scenario, seed: u64) -> Result<History, Failure> {
        let history = self.history(scenario, seed);
        let Some(violation) = &history.violation else { return Ok(history) };
        let plan = Plan {
            world: World::Wire,
            scenario: scenario.clone(),
            mutant: None,
            invariant: violation.invariant,
            draws: history.draws.clone(),
        };
        let plan = self.of_one_event(&plan, seed).unwrap_or(plan);
        let run = |plan: &Plan, _| self.chosen(&plan.scenario, &Choices::recorded(&plan.draws));
        Err(match minimise_by(&run, &plan, RUNS_MAX, &mut || true) {
            Some(small) => Failure::broken(seed, &small.plan, &small.history),
            None => Failure::differs(seed),
        })
    }

    /// A plan with a single event that breaks the same invariant, if a seed from this one on has it.
    fn of_one_event(&self, plan: &Plan, seed: u64) -> Option<Plan> {
        let scenario = Scenario { events: (1, 1), ..plan.scenario.clone() };
        (seed..seed.saturating_add(SINGLE_SEEDS)).find_map(|seed| {
            let history = self.history(&scenario, seed);
            plan.is_broken_by(&history).then(|| Plan {
                scenario: scenario.clone(),
                draws: history.draws,
                ..plan.clone()
            })
        })
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
