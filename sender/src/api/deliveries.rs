//! Deliveries: list, inspect, replay, cancel.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Response};
use hookproof_core::delivery::Input;
use hookproof_core::id::{DeliveryId, EndpointId, EventId};
use hookproof_runtime::host::Host;
use hyper::StatusCode;
use serde::{Deserialize, Serialize};

use super::Api;
use super::problem::Problem;
use crate::Shared;
use crate::store::{Beside, DeliveryFilter, ListedAttempt, ListedDelivery, Store};

const LIMIT_DEFAULT: u32 = 100;
const LIMIT_MAX: u32 = 1000;
const PHASES: [&str; 5] = ["scheduled", "in_flight", "delivered", "dead", "cancelled"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    event: Option<EventId>,
    endpoint: Option<EndpointId>,
    phase: Option<String>,
    after: Option<DeliveryId>,
    limit: Option<u32>,
}

#[derive(Serialize)]
struct WithAttempts {
    #[serde(flatten)]
    listed: ListedDelivery,
    history: Vec<ListedAttempt>,
}

pub(super) async fn list<H: Host, S: Store>(
    State(shared): Api<H, S>,
    parameters: Result<Query<Parameters>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(parameters) = parameters.map_err(|error| Problem::bad_request(error.body_text()))?;
    if let Some(phase) = parameters.phase.as_deref().filter(|phase| !PHASES.contains(phase)) {
        return Err(Problem::bad_request(format!(
            "`{}` is not a phase; there are {}",
            phase.escape_debug(),
            PHASES.join(", ")
        )));
    }
    let limit = parameters.limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` must be 1 to {LIMIT_MAX}")));
    }
    let filter = DeliveryFilter {
        event: parameters.event,
        endpoint: parameters.endpoint,
        phase: parameters.phase,
        after: parameters.after,
        limit,
    };
    Ok(Json(shared.store.deliveries(filter).await?).into_response())
}

pub(super) async fn one<H: Host, S: Store>(
    State(shared): Api<H, S>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let listed = find(&shared.store, &id).await?;
    let history = shared.store.attempts(listed.delivery.id.clone()).await?;
    Ok(Json(WithAttempts { listed, history }).into_response())
}

pub(super) async fn replay<H: Host, S: Store>(
    State(shared): Api<H, S>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let response = change(&shared, &id, Input::Replay).await?;
    shared.due.notify_one();
    Ok(response)
}

pub(super) async fn cancel<H: Host, S: Store>(
    State(shared): Api<H, S>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    change(&shared, &id, Input::Cancel).await
}

pub(super) async fn totals<H: Host, S: Store>(
    State(shared): Api<H, S>,
) -> Result<Response, Problem> {
    Ok(Json(shared.store.totals().await?).into_response())
}

async fn find<S: Store>(store: &S, id: &str) -> Result<ListedDelivery, Problem> {
    let missing = || Problem::not_found(format!("there is no delivery `{}`", id.escape_debug()));
    let id = DeliveryId::new(id).map_err(|_| missing())?;
    store.delivery(id).await?.ok_or_else(missing)
}

/// Decides on what is stored and commits; if somebody else was faster, decides again.
async fn change<H: Host, S: Store>(
    shared: &Shared<H, S>,
    id: &str,
    input: Input,
) -> Result<Response, Problem> {
    const TRIES: usize = 8;
    for _ in 0..TRIES {
        let listed = find(&shared.store, id).await?;
        let step = listed
            .delivery
            .handle(shared.ctx(), input)
            .map_err(|rejected| Problem::conflict(rejected.to_string()))?;
        if let Ok(committed) = shared.store.commit(step, Beside::default()).await? {
            return Ok((StatusCode::ACCEPTED, Json(committed.delivery)).into_response());
        }
    }
    Err(Problem::conflict("the delivery keeps changing; ask again"))
}
