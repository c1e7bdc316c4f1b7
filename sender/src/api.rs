//! The HTTP API: endpoints, events, deliveries.
//!
//! | request | does |
//! | --- | --- |
//! | `POST /endpoints` | registers an endpoint; answers with its id and secret |
//! | `GET /endpoints` | lists endpoints, without secrets |
//! | `PUT /endpoints/{id}/secrets` | replaces its secrets, as a rotation does |
//! | `DELETE /endpoints/{id}` | deletes it, and cancels what waits for it |
//! | `POST /endpoints/{id}/enable`, `…/disable` | resumes or holds its deliveries |
//! | `POST /events?type=order.paid` | publishes the request body, byte for byte |
//! | `GET /deliveries` | lists deliveries; filters `event`, `endpoint`, `phase`, `after`, `limit` |
//! | `GET /deliveries/{id}` | one delivery with its attempts |
//! | `POST /deliveries/{id}/replay`, `…/cancel` | one extra attempt; no further attempt |
//! | `GET /totals` | how much there is of what |
//! | `GET /health` | 200 while the sender runs |
//!
//! Errors are problem details (RFC 9457).

mod deliveries;
mod endpoints;
mod events;
mod problem;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post, put};
use hookproof_runtime::host::Host;
use hyper::Request;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use tower_service::Service as _;

use crate::Shared;
use crate::store::Store;
use problem::Problem;

type Api<H, S> = State<Arc<Shared<H, S>>>;

/// The `{id}` of a path. One that is not text is a problem like any other.
struct Id(String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(id)) => Ok(Self(id)),
            Err(rejection) => Err(Problem::bad_request(rejection.body_text())),
        }
    }
}

/// The API as the function that [`hookproof_runtime::server::serve`] calls for each request.
pub(crate) fn service<H: Host, S: Store>(
    shared: Arc<Shared<H, S>>,
) -> impl Fn(Request<Incoming>, SocketAddr) -> ResponseFuture + Clone {
    let router = router(shared);
    move |request, _peer| {
        let mut router = router.clone();
        Box::pin(async move {
            match router.call(request.map(Body::new)).await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        })
    }
}

type ResponseFuture = std::pin::Pin<Box<dyn Future<Output = Response> + Send>>;

fn router<H: Host, S: Store>(shared: Arc<Shared<H, S>>) -> Router {
    Router::new()
        .route("/endpoints", get(endpoints::list::<H, S>).post(endpoints::create::<H, S>))
        .route("/endpoints/{id}", get(endpoints::one::<H, S>).delete(endpoints::delete::<H, S>))
        .route("/endpoints/{id}/secrets", put(endpoints::set_secrets::<H, S>))
        .route("/endpoints/{id}/enable", post(endpoints::enable::<H, S>))
        .route("/endpoints/{id}/disable", post(endpoints::disable::<H, S>))
        .route("/events", post(events::publish::<H, S>))
        .route("/deliveries", get(deliveries::list::<H, S>))
        .route("/deliveries/{id}", get(deliveries::one::<H, S>))
        .route("/deliveries/{id}/replay", post(deliveries::replay::<H, S>))
        .route("/deliveries/{id}/cancel", post(deliveries::cancel::<H, S>))
        .route("/totals", get(deliveries::totals::<H, S>))
        .route("/health", get(|| async { "ok\n" }))
        .fallback(|| async { Problem::not_found("there is no such resource").into_response() })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed().into_response() })
        .with_state(shared)
}
