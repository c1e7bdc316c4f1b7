//! Deliveries: list, inspect, replay, cancel.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Response};
use hookproof_core::delivery::Input;
use hookproof_core::id::{DeliveryId, EndpointId, EventId};
use hookproof_runtime::host::Host;
use hyper::StatusCode;
use serde::Deserialize;

use super::problem::Problem;
use super::{Api, Id};
use crate::Shared;
use crate::store::{Beside, DeliveryFilter, Store};

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
    if let Some(after) = &parameters.after
        && shared.store.delivery(after.clone()).await?.is_none()
    {
        return Err(Problem::bad_request(format!("`after`: there is no delivery `{after}`")));
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
    Id(id): Id,
) -> Result<Response, Problem> {
    let history = shared.store.history(delivery_id(&id)?).await?;
    Ok(Json(history.ok_or_else(|| missing(&id))?).into_response())
}

pub(super) async fn replay<H: Host, S: Store>(
    State(shared): Api<H, S>,
    Id(id): Id,
) -> Result<Response, Problem> {
    let response = change(&shared, &id, Input::Replay).await?;
    // Its endpoint may have been deleted in between.
    shared.look_for_orphans();
    Ok(response)
}

pub(super) async fn cancel<H: Host, S: Store>(
    State(shared): Api<H, S>,
    Id(id): Id,
) -> Result<Response, Problem> {
    change(&shared, &id, Input::Cancel).await
}

pub(super) async fn totals<H: Host, S: Store>(
    State(shared): Api<H, S>,
) -> Result<Response, Problem> {
    Ok(Json(shared.store.totals().await?).into_response())
}

fn missing(id: &str) -> Problem {
    Problem::not_found(format!("there is no delivery `{}`", id.escape_debug()))
}

/// What cannot be the id of a delivery is the id of none.
fn delivery_id(id: &str) -> Result<DeliveryId, Problem> {
    DeliveryId::new(id).map_err(|_| missing(id))
}

/// Decides on what is stored and commits; if somebody else was faster, decides again.
async fn change<H: Host, S: Store>(
    shared: &Shared<H, S>,
    id: &str,
    input: Input,
) -> Result<Response, Problem> {
    const TRIES: usize = 8;
    for _ in 0..TRIES {
        let listed = shared.store.delivery(delivery_id(id)?).await?.ok_or_else(|| missing(id))?;
        let endpoint = &listed.delivery.endpoint_id;
        if input == Input::Replay && shared.store.gate(endpoint.clone()).await?.is_none() {
            return Err(Problem::conflict(format!("its endpoint `{endpoint}` is deleted")));
        }
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
