//! Endpoints: register, list, hold, resume, delete.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use hookproof_core::address::AddressPolicy;
use hookproof_core::endpoint::{Endpoint, EndpointStatus};
use hookproof_core::event::EventType;
use hookproof_core::gate::{Breaker, StoredGate};
use hookproof_core::id::EndpointId;
use hookproof_core::secret::{Secret, Secrets};
use hookproof_core::time::Timestamp;
use hookproof_runtime::host::Host;
use hookproof_runtime::server::read_body;
use hyper::{Request, StatusCode};
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::{Api, Id};
use crate::Shared;
use crate::store::Store;
use crate::url::Target;

/// More than an endpoint can need.
const ENDPOINT_BYTES_MAX: usize = 64 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewEndpoint {
    url: String,
    /// Generated if absent. Several overlap during a rotation, the newest first.
    secrets: Option<Secrets>,
    #[serde(default)]
    event_types: Vec<EventType>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewSecrets {
    secrets: Secrets,
}

/// An endpoint as it is shown; its secrets only once, when it is made.
#[derive(Serialize)]
struct ShownEndpoint {
    id: EndpointId,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    secrets: Option<Secrets>,
    event_types: Vec<EventType>,
    status: EndpointStatus,
    created_at: Timestamp,
    /// Whether attempts pass, and if not, until when. Only where one endpoint is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    breaker: Option<Breaker>,
}

impl ShownEndpoint {
    fn new(endpoint: Endpoint, with_secrets: bool) -> Self {
        let Endpoint { id, url, secrets, event_types, status, created_at } = endpoint;
        let secrets = with_secrets.then_some(secrets);
        Self { id, url, secrets, event_types, status, created_at, breaker: None }
    }
}

pub(super) async fn create<H: Host, S: Store>(
    State(shared): Api<H, S>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let host = &shared.host;
    let body = read(&shared, request).await?;
    let new: NewEndpoint = serde_json::from_slice(&body).map_err(|error| {
        Problem::bad_request(format!(
            "{error}; give an object such as {{\"url\": \"https://example.com/hooks\"}}, with \
             `secrets` and `event_types` if wanted"
        ))
    })?;
    check_target(&new.url, &shared.config.address)?;
    let secrets = new.secrets.unwrap_or_else(|| {
        let bits = [host.entropy(), host.entropy(), host.entropy(), host.entropy()];
        Secrets::one(Secret::from_entropy(bits))
    });
    let endpoint = Endpoint {
        id: EndpointId::from_entropy([host.entropy(), host.entropy()]),
        url: new.url,
        secrets,
        event_types: new.event_types,
        status: EndpointStatus::Enabled,
        created_at: host.now(),
    };
    shared.store.create_endpoint(endpoint.clone()).await?;
    let shown = ShownEndpoint::new(endpoint, true);
    Ok((StatusCode::CREATED, Json(shown)).into_response())
}

async fn read<H: Host, S: Store>(
    shared: &Shared<H, S>,
    request: Request<Body>,
) -> Result<Vec<u8>, Problem> {
    read_body(&shared.host, request.into_body(), ENDPOINT_BYTES_MAX, shared.config.body_timeout)
        .await
        .map_err(|error| Problem::unreadable(error, ENDPOINT_BYTES_MAX))
}

/// A name is judged by itself here. Where it leads may change, so that is judged at each attempt.
fn check_target(url: &str, policy: &AddressPolicy) -> Result<(), Problem> {
    let target = Target::parse(url).map_err(|error| Problem::bad_request(error.to_string()))?;
    let judgement = target.judge(policy);
    if judgement.allowed {
        return Ok(());
    }
    Err(Problem::bad_request(format!(
        "`{}` {judgement}; the setting `sender.address` says what is allowed",
        url.escape_debug()
    )))
}

pub(super) async fn list<H: Host, S: Store>(State(shared): Api<H, S>) -> Result<Response, Problem> {
    let endpoints = shared.store.endpoints().await?;
    let shown: Vec<_> = endpoints.into_iter().map(|e| ShownEndpoint::new(e, false)).collect();
    Ok(Json(shown).into_response())
}

/// One of them, with what its breaker was when it was last stored.
pub(super) async fn one<H: Host, S: Store>(
    State(shared): Api<H, S>,
    Id(id): Id,
) -> Result<Response, Problem> {
    let id = known(&id)?;
    let gate = shared.store.gate(id.clone()).await?.ok_or_else(|| missing(id.as_str()))?;
    let mut endpoints = shared.store.endpoints().await?.into_iter();
    let endpoint = endpoints.find(|e| e.id == id).ok_or_else(|| missing(id.as_str()))?;
    let breaker = Some(gate.breaker.state);
    Ok(Json(ShownEndpoint { breaker, ..ShownEndpoint::new(endpoint, false) }).into_response())
}

/// Whoever enables an endpoint says that it works again, so its breaker begins anew: in memory
/// first, since what is stored follows that.
pub(super) async fn enable<H: Host, S: Store>(
    State(shared): Api<H, S>,
    Id(id): Id,
) -> Result<Response, Problem> {
    let id = known(&id)?;
    let stored = shared.store.gate(id.clone()).await?.ok_or_else(|| missing(id.as_str()))?;
    let gate = shared.gates.reset(&id, &stored);
    let response = set_status(&shared.store, id, EndpointStatus::Enabled, Some(gate)).await?;
    shared.due.notify_one();
    Ok(response)
}

pub(super) async fn disable<H: Host, S: Store>(
    State(shared): Api<H, S>,
    Id(id): Id,
) -> Result<Response, Problem> {
    set_status(&shared.store, known(&id)?, EndpointStatus::Disabled, None).await
}

/// The next attempt is signed with these. One under way has its signatures already.
pub(super) async fn set_secrets<H: Host, S: Store>(
    State(shared): Api<H, S>,
    Id(id): Id,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let id = known(&id)?;
    let body = read(&shared, request).await?;
    let new: NewSecrets = serde_json::from_slice(&body).map_err(|error| {
        Problem::bad_request(format!(
            "{error}; give an object such as {{\"secrets\": [\"whsec_…\", \"whsec_…\"]}}, the newest \
             first"
        ))
    })?;
    if !shared.store.set_secrets(id.clone(), new.secrets).await? {
        return Err(missing(id.as_str()));
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Its deliveries are cancelled by the dispatcher, which finds them even if this process ends here.
pub(super) async fn delete<H: Host, S: Store>(
    State(shared): Api<H, S>,
    Id(id): Id,
) -> Result<Response, Problem> {
    let id = known(&id)?;
    if !shared.store.delete_endpoint(id.clone()).await? {
        return Err(missing(id.as_str()));
    }
    shared.look_for_orphans();
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn set_status<S: Store>(
    store: &S,
    id: EndpointId,
    status: EndpointStatus,
    gate: Option<StoredGate>,
) -> Result<Response, Problem> {
    if store.set_endpoint_status(id.clone(), status, gate).await? {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Err(missing(id.as_str()))
    }
}

/// A text that cannot be an identifier is that of no endpoint.
fn known(id: &str) -> Result<EndpointId, Problem> {
    EndpointId::new(id).map_err(|_| missing(id))
}

fn missing(id: &str) -> Problem {
    Problem::not_found(format!("there is no endpoint `{}`", id.escape_debug()))
}
