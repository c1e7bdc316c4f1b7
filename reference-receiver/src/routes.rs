//! Which path leads where, and the questions that anybody may ask.
//!
//! - `POST /hooks/{source}` takes in an event;
//! - `GET /effects/{event id}?source=…` counts the effects of an event, over all sources unless one
//!   is named;
//! - `GET /effects` says how much there is of what;
//! - `GET /health` says that the server answers.
//!
//! The questions are for tests and for whoever runs the receiver: they ask for no password, so a
//! receiver on the Internet answers them only behind a proxy that passes `/hooks/` and nothing else.

use std::net::SocketAddr;

use hookproof_core::id::{EventId, SourceId};
use hookproof_runtime::database::StoreError;
use hookproof_runtime::host::Host;
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use serde_json::json;

use crate::answer::{Answer, json, method_not_allowed, problem};
use crate::ingress::Ingress;
use crate::store::InboxStore;

/// Answers one request.
pub(crate) async fn respond<H: Host, S: InboxStore>(
    ingress: Ingress<H, S>,
    request: Request<Incoming>,
    peer: SocketAddr,
) -> Answer {
    let path = request.uri().path().to_owned();
    let mut segments = path.split('/').skip(1).map(decode);
    let question = match (segments.next().flatten().as_deref(), segments.next(), segments.next()) {
        (Some("hooks"), Some(Some(id)), None) => {
            return match ingress.source(&id) {
                None => problem(StatusCode::NOT_FOUND, "there is no source of that name"),
                Some(_) if request.method() != Method::POST => method_not_allowed("POST"),
                Some(source) => ingress.receive(source, request, peer).await,
            };
        }
        (Some("effects"), Some(Some(id)), None) if !id.is_empty() => Question::EffectsOf(id),
        (Some("effects"), None, None) => Question::Totals,
        (Some("health"), None, None) => Question::Health,
        _ => {
            return problem(
                StatusCode::NOT_FOUND,
                "the paths are /hooks/{source}, /effects, /effects/{event id} and /health",
            );
        }
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return method_not_allowed("GET, HEAD");
    }
    match question {
        Question::EffectsOf(id) => effects_of(&ingress.store, &id, request.uri().query()).await,
        Question::Totals => totals(&ingress.store).await,
        Question::Health => json(StatusCode::OK, &json!({ "status": "ok" })),
    }
}

/// What can be asked.
enum Question {
    EffectsOf(String),
    Totals,
    Health,
}

async fn totals<S: InboxStore>(store: &S) -> Answer {
    match store.totals().await {
        Ok(totals) => json(StatusCode::OK, &totals),
        Err(error) => unanswerable(&error),
    }
}

/// A text that cannot be an identifier has had no effect, which is an answer and no error.
async fn effects_of<S: InboxStore>(store: &S, id: &str, query: Option<&str>) -> Answer {
    let source = match source_of(query.unwrap_or_default()) {
        Ok(source) => source,
        Err(detail) => return problem(StatusCode::BAD_REQUEST, detail),
    };
    let event_id = EventId::new(id).ok();
    let source = source.map(SourceId::new).transpose().ok();
    let count = match (event_id, source) {
        (Some(event_id), Some(source)) => store.effects_of(event_id, source).await,
        _ => Ok(0),
    };
    match count {
        Ok(count) => json(StatusCode::OK, &json!({ "event_id": id, "count": count })),
        Err(error) => unanswerable(&error),
    }
}

/// The only parameter that there is: a misspelt one would count something else than was asked for.
fn source_of(query: &str) -> Result<Option<String>, &'static str> {
    let mut parameters = query.split('&').filter(|parameter| !parameter.is_empty());
    let Some(parameter) = parameters.next() else { return Ok(None) };
    let source = parameter.strip_prefix("source=").and_then(decode);
    match (source, parameters.next()) {
        (Some(source), None) => Ok(Some(source)),
        _ => Err("the query may hold one parameter: `source`, with the id of a source"),
    }
}

fn unanswerable(error: &StoreError) -> Answer {
    tracing::warn!(%error, "a question could not be answered");
    problem(StatusCode::SERVICE_UNAVAILABLE, "the store does not answer; ask again")
}

/// A segment of a path or a value of a query without its percent-encoding (RFC 3986, 2.1).
fn decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(if byte == b'%' {
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            let (high, low) = (digit()?, digit()?);
            u8::try_from(high * 16 + low).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::{decode, source_of};

    #[test]
    fn percent_encoding_is_undone_and_a_malformed_one_refused() {
        let check = |text: &str, decoded: Option<&str>| {
            assert_eq!(decode(text).as_deref(), decoded, "{text}");
        };
        check("msg_1", Some("msg_1"));
        check("a%3Ab%3ac", Some("a:b:c"));
        check("a+b", Some("a+b"));
        check("%C3%A4", Some("ä"));
        check("", Some(""));
        check("a%3", None);
        check("a%", None);
        check("a%+1", None);
        check("%FF", None);
    }

    #[test]
    fn a_query_names_at_most_one_source_and_nothing_else() {
        let check = |query: &str, source: Option<Option<&str>>| {
            let found = source_of(query).ok();
            assert_eq!(found.as_ref().map(Option::as_deref), source, "{query}");
        };
        check("", Some(None));
        check("source=shop", Some(Some("shop")));
        check("source=a%3Ab&", Some(Some("a:b")));
        check("sorce=shop", None);
        check("source=a&source=b", None);
        check("source=a&verbose", None);
        check("source", None);
    }
}
