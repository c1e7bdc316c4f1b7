//! The publisher: publishes each event until the sender says that it has it.
//!
//! No answer means that nobody knows whether the event was accepted. So it is published again under
//! the same idempotency key, and the sender answers with the event that it has or makes.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use hookproof_core::id::EventId;
use hookproof_core::time::Millis;
use hookproof_runtime::client::Answer;
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use http::Request;
use serde::Deserialize;

use super::board::Board;
use super::events::Event;
use super::fan_out::fan_out;
use super::peer::Peer;
use crate::failure::Failure;

/// How many events are published at once.
const AT_ONCE: usize = 8;
/// How long to wait before a publish is repeated.
const PAUSE: Millis = Millis::new(50);

/// What came of publishing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Publications {
    /// The ids of the events that were acknowledged.
    pub(super) ids: BTreeSet<EventId>,
    /// Publishes without an acknowledgement, each of which was repeated.
    pub(super) repeated: u64,
    /// Events that the sender had before it was asked the last time: their acknowledgement was lost.
    pub(super) acknowledgements_lost: u64,
}

/// One event that was acknowledged.
struct Acknowledged {
    id: EventId,
    repeated: u64,
    was_known: bool,
}

/// Publishes all events, as the board allows them. What is acknowledged stands in `publications` at
/// once, even if the rest never is.
pub(super) async fn publish(
    sender: Peer,
    events: Vec<Event>,
    board: Arc<Board>,
    publications: &Mutex<Publications>,
) -> Result<(), Failure> {
    let work_board = board.clone();
    let mut results = fan_out((0..).zip(events), AT_ONCE, move |(index, event)| {
        let board = work_board.clone();
        async move {
            board.may_publish(index).await;
            until_acknowledged(sender, &event).await
        }
    });
    while let Some(result) = results.recv().await {
        let Acknowledged { id, repeated, was_known } = result?;
        let mut publications = publications.lock().unwrap_or_else(PoisonError::into_inner);
        publications.ids.insert(id);
        publications.repeated += repeated;
        publications.acknowledgements_lost += u64::from(was_known);
        drop(publications);
        board.accepted();
    }
    Ok(())
}

async fn until_acknowledged(sender: Peer, event: &Event) -> Result<Acknowledged, Failure> {
    let mut repeated = 0;
    loop {
        let request = Request::post(format!("/events?type={}", event.event_type))
            .header("idempotency-key", event.key.as_str());
        match sender.post(request, event.body.clone()).await {
            Some(answer) if answer.status == 202 => {
                if let Some(id) = id(&answer) {
                    let was_known = answer.headers.contains_key("idempotency-replayed");
                    return Ok(Acknowledged { id, repeated, was_known });
                }
            }
            // The sender cannot now, or the request did not arrive in time.
            Some(answer) if answer.status == 408 || answer.status >= 500 => {}
            Some(answer) => return Err(refused(event, &answer)),
            None => {}
        }
        repeated += 1;
        TokioHost.sleep(PAUSE).await;
    }
}

fn id(answer: &Answer) -> Option<EventId> {
    #[derive(Deserialize)]
    struct Accepted {
        id: EventId,
    }
    let accepted: Accepted = serde_json::from_slice(&answer.body).ok()?;
    Some(accepted.id)
}

fn refused(event: &Event, answer: &Answer) -> Failure {
    #[derive(Deserialize)]
    struct Problem {
        detail: String,
    }
    let detail = serde_json::from_slice(&answer.body)
        .map_or_else(|_| "no reason is given".to_owned(), |problem: Problem| problem.detail);
    Failure::found(
        format!("the sender refused the event \"{}\" with {}", event.key, answer.status),
        detail,
    )
}
