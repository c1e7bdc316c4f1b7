//! For benchmarks: what one exchange costs in the wire world, and what its stores cost, each by itself.
//!
//! [`Exchanges`] have all of it but the stores: tasks under a fuse, connections with a tap, the
//! programs' own client and server, the journal, the facts and the checkers. [`in_the_stores`] has the
//! statements of both programs for one event, and the harness's looks into both files. No fault is on.

use std::collections::BTreeMap;
use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use hookproof_core::delivery::{Ctx, Delivery, Input};
use hookproof_core::endpoint::{Endpoint, EndpointStatus};
use hookproof_core::event::{Event, EventType};
use hookproof_core::id::{DeliveryId, EndpointId, EventId, SourceId};
use hookproof_core::outcome::Outcome;
use hookproof_core::secret::{Secret, Secrets};
use hookproof_core::signature::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign};
use hookproof_core::time::Millis;
use hookproof_receiver::sqlite::SqliteInbox;
use hookproof_receiver::store::{InboxStore as _, Moment, Verified};
use hookproof_runtime::client::exchange;
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::host::Host;
use hookproof_runtime::server::{self, AfterResponse, ServerLimits, read_body};
use hookproof_sender::sqlite::SqliteStore;
use hookproof_sender::store::{Beside, Publication, Store as _};
use http_body_util::Full;
use hyper::{Request, Response};

use super::books::Books;
use super::host::{PORT, RECEIVER, RECEIVER_NAME, SENDER, SimHost};
use super::lives::{database, everywhere, live, text};
use super::observer::Eye;
use super::population::Population;
use super::queue::Queue;
use super::setting::{directory, network};
use super::stage::Stage;
use super::witness::Witness;
use crate::choices::Choices;
use crate::fault::Faults;
use crate::history::epoch;
use crate::journal::Journal;
use crate::scenario::Scenario;

/// The body that is sent, and the one that is answered.
pub const BODIES: (&[u8], &[u8]) =
    (b"{ \"type\": \"order.paid\", \"order\": 7, \"total\": 1.0 }", b"{\"status\":\"accepted\"}");

const KEY: [u8; 32] = [7; 32];

/// The header fields of a request, by number.
fn headers(number: u32) -> Result<Vec<(&'static str, String)>, String> {
    let delivery = delivery(number)?;
    let secrets = Secrets::one(Secret::from_bytes(KEY.to_vec()).map_err(text)?);
    let (id, stamp) = (delivery.event_id.as_str(), epoch().as_secs());
    Ok(vec![
        ("host", RECEIVER_NAME.to_owned()),
        ("connection", "close".to_owned()),
        ("content-type", "application/json".to_owned()),
        ("content-length", BODIES.0.len().to_string()),
        (ID_HEADER, id.to_owned()),
        (TIMESTAMP_HEADER, stamp.to_string()),
        (SIGNATURE_HEADER, sign(&secrets, id, stamp, BODIES.0)),
        ("hookproof-delivery", delivery.id.as_str().to_owned()),
        ("hookproof-attempt", "1".to_owned()),
    ])
}

/// The network as the wire world has it.
#[must_use]
pub fn simulation() -> turmoil::Sim<'static> {
    network(&Scenario::default())
}

/// A wire world before its exchanges.
pub struct Exchanges {
    stage: Arc<Stage>,
    count: u32,
}

impl Exchanges {
    /// So many are to happen. What the stores would have told of them is told now.
    ///
    /// # Errors
    ///
    /// What is wrong with the identifiers, which is nothing.
    pub fn new(count: u32) -> Result<Self, String> {
        let stage = stage((PathBuf::new(), PathBuf::new()));
        for number in 0..count {
            stage.witness().assumes(&delivery(number)?, &claimed(number)?, BODIES.0);
        }
        Ok(Self { stage, count })
    }

    /// Lets them happen, once: one after the other, each on a connection of its own. Tells how many were
    /// answered. What was set up before is not taken down by this.
    ///
    /// # Errors
    ///
    /// What went wrong, which is a violation too.
    pub fn run(&self) -> Result<u32, String> {
        let Self { stage, count } = self;
        let count = *count;
        let answered = Arc::new(AtomicU32::new(0));
        let mut sim = simulation();
        let shared = stage.clone();
        sim.host(RECEIVER, move || {
            let stage = shared.clone();
            async move { live(RECEIVER, &stage, serves).await }
        });
        let (shared, answers) = (stage.clone(), answered.clone());
        sim.host(SENDER, move || {
            let (stage, answers) = (shared.clone(), answers.clone());
            async move { live(SENDER, &stage, |host| sends(host, count, answers)).await }
        });
        run(&mut sim, stage, || answered.load(Ordering::Relaxed) == count)?;
        match stage.witness().violation() {
            Some(violation) => Err(format!("{}: {}", violation.invariant, violation.what)),
            None => Ok(count),
        }
    }
}

/// Steps until it is done.
fn run(
    sim: &mut turmoil::Sim<'static>,
    stage: &Stage,
    is_done: impl Fn() -> bool,
) -> Result<(), String> {
    while !is_done() {
        sim.step().map_err(text)?;
        if let Some(what) = stage.journal.first_breakdown() {
            return Err(what);
        }
    }
    stage.end_all();
    Ok(())
}

fn stage((sender, receiver): (PathBuf, PathBuf)) -> Arc<Stage> {
    let journal = Journal::default();
    let policy = crate::scenario::brisk(40);
    let bounds = Scenario::default().bounds();
    let sources = vec![("shop".to_owned(), KEY.to_vec())];
    let population = Population::default();
    let books = Books::Reference(Eye::new(receiver));
    let queue = Queue::Reference(Box::new(Eye::new(sender)));
    let witness = Witness::new(
        (bounds, None),
        &policy,
        (sources, population),
        journal.clone(),
        (queue, books),
    );
    Arc::new(Stage::new(
        Choices::seeded(0),
        journal,
        Faults::none(),
        0,
        None,
        BTreeMap::new(),
        witness,
    ))
}

/// Serves as the receiver does, but without verifying or recording anything.
///
/// # Errors
///
/// If it cannot listen.
pub async fn serves<H: Host>(host: H) -> Result<(), String> {
    let listener = host.listen(everywhere()).await.map_err(text)?;
    let reader = host.clone();
    let respond = move |request: Request<hyper::body::Incoming>, _| {
        let host = reader.clone();
        async move {
            let body = read_body(&host, request.into_body(), 1024, Millis::from_secs(10)).await;
            host.at(CrashPoint::RequestAccepted).await;
            let status = if body.is_ok() { 202 } else { 400 };
            let mut response = Response::new(Full::new(Bytes::from_static(BODIES.1)));
            *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
            response.extensions_mut().insert(AfterResponse(CrashPoint::AckSent));
            response
        }
    };
    server::serve(host, listener, ServerLimits::default(), respond, pending()).await;
    Ok(())
}

/// The request of an exchange, by its number.
///
/// # Errors
///
/// What is wrong with it, which is nothing.
pub fn request(number: u32) -> Result<Request<Full<Bytes>>, String> {
    let mut request = Request::post("/hooks/shop");
    for (name, value) in headers(number)? {
        request = request.header(name, value);
    }
    request.body(Full::new(Bytes::from_static(BODIES.0))).map_err(text)
}

async fn sends(host: SimHost, exchanges: u32, answered: Arc<AtomicU32>) -> Result<(), String> {
    for number in 0..exchanges {
        let request = request(number)?;
        host.stage.attempt_follows(delivery(number)?.id.as_str(), 1);
        let (tell, told) = tokio::sync::oneshot::channel();
        let task = host.clone();
        host.spawn(async move {
            // Whoever waits is told by the end of the channel if this fails.
            let _ = tell.send(attempt(&task, request).await);
        });
        match told.await {
            Ok(Ok(202)) => answered.fetch_add(1, Ordering::Relaxed),
            other => return Err(format!("exchange {number} ended with {other:?}")),
        };
    }
    pending().await
}

/// Makes an attempt as the sender does; tells the status.
///
/// # Errors
///
/// What came instead of an answer.
pub async fn attempt<H: Host>(host: &H, request: Request<Full<Bytes>>) -> Result<u16, String> {
    let deadline = host.sleep(Millis::from_secs(10));
    let work = async {
        let address = host.resolve(RECEIVER_NAME, PORT).await.map_err(text)?;
        let stream = host.connect(*address.first().ok_or("no address")?).await.map_err(text)?;
        let sent = Some(CrashPoint::AttemptSent);
        let exchange = exchange(host, stream, request, sent).await.map_err(text)?;
        Ok(exchange.read(1024, deadline).await.status)
    };
    host.within(Millis::from_secs(10), work).await.unwrap_or_else(|| Err("a timeout".to_owned()))
}

fn delivery(number: u32) -> Result<Delivery, String> {
    let event = EventId::new(format!("msg_{number}")).map_err(text)?;
    let endpoint = EndpointId::new("ep_1").map_err(text)?;
    Ok(Delivery::new(DeliveryId::of(&event, &endpoint), event, endpoint, epoch()))
}

/// A delivery whose first attempt is committed as in flight.
fn claimed(number: u32) -> Result<Delivery, String> {
    let policy = crate::scenario::brisk(40);
    let ctx = Ctx { now: epoch(), entropy: 0, policy: &policy };
    let state = delivery(number)?;
    let admitted = Input::Admitted { held: Millis::ZERO };
    let step = state.handle(ctx, admitted).map_err(text)?;
    Ok(step.onto(&state).map_err(text)?.delivery)
}

/// Takes so many events through the stores of both programs: published, found due, claimed and recorded
/// as delivered; received, claimed and applied.
///
/// # Errors
///
/// What went wrong.
pub fn in_the_stores(events: u32) -> Result<u32, String> {
    let directory = directory().map_err(text)?;
    let path = |name: &str| directory.path().join(name);
    let stage = stage((path("sender.db"), path("receiver.db")));
    let done = Arc::new(AtomicU32::new(0));
    let mut sim = simulation();
    let (shared, count, file) = (stage.clone(), done.clone(), path("sender.db"));
    sim.host(SENDER, move || {
        let (stage, count, file) = (shared.clone(), count.clone(), file.clone());
        async move { live(SENDER, &stage, |host| keeps(host, file, events, count)).await }
    });
    let (shared, count, file) = (stage.clone(), done.clone(), path("receiver.db"));
    sim.host(RECEIVER, move || {
        let (stage, count, file) = (shared.clone(), count.clone(), file.clone());
        async move { live(RECEIVER, &stage, |host| receives(host, file, events, count)).await }
    });
    run(&mut sim, &stage, || done.load(Ordering::Relaxed) == 2)?;
    Ok(events)
}

async fn keeps(
    host: SimHost,
    file: PathBuf,
    events: u32,
    done: Arc<AtomicU32>,
) -> Result<(), String> {
    let store = SqliteStore::open(&host, &database(file)).map_err(text)?;
    let policy = crate::scenario::brisk(40);
    let endpoint = Endpoint {
        id: EndpointId::new("ep_1").map_err(text)?,
        url: format!("http://{RECEIVER_NAME}/hooks/shop"),
        secrets: Secrets::one(Secret::from_bytes(KEY.to_vec()).map_err(text)?),
        event_types: Vec::new(),
        status: EndpointStatus::Enabled,
        created_at: host.now(),
    };
    store.create_endpoint(endpoint.clone()).await.map_err(text)?;
    for number in 0..events {
        let (now, key) = (host.now(), format!("order-{number}"));
        let event = Event {
            id: delivery(number)?.event_id,
            event_type: EventType::new("order.paid").map_err(text)?,
            content_type: "application/json".to_owned(),
            body: BODIES.0.into(),
            created_at: now,
        };
        let publication = Publication { event, idempotency_key: Some(key) };
        store.publish(publication).await.map_err(text)?;
        store.due_endpoints(now).await.map_err(text)?;
        let due = store.due_deliveries(endpoint.id.clone(), now, 4).await.map_err(text)?;
        let state = due.first().ok_or("nothing is due")?;
        let ctx = Ctx { now, entropy: 0, policy: &policy };
        let step = state.handle(ctx, Input::Admitted { held: Millis::ZERO }).map_err(text)?;
        let claims = store.claim(vec![step], Vec::new()).await.map_err(text)?;
        let claim = claims.into_iter().next().ok_or("no claim")?.map_err(text)?;
        let answered = Outcome::Answered { status: 202, retry_after: None };
        let input = Input::Finished { attempt: 1, outcome: answered };
        let step = claim.delivery.handle(ctx, input).map_err(text)?;
        store.commit(step, Beside::default()).await.map_err(text)?.map_err(text)?;
    }
    done.fetch_add(1, Ordering::Relaxed);
    pending().await
}

async fn receives(
    host: SimHost,
    file: PathBuf,
    events: u32,
    done: Arc<AtomicU32>,
) -> Result<(), String> {
    let inbox = SqliteInbox::open(&host, &database(file)).map_err(text)?;
    let rule = Arc::new(Scenario::inbox_rule());
    for number in 0..events {
        let event_id = delivery(number)?.event_id;
        let verified = Verified {
            source: SourceId::new("shop").map_err(text)?,
            event_id,
            body: BODIES.0.to_vec(),
            content_type: "application/json".to_owned(),
            received_at: host.now(),
        };
        inbox.record(verified).await.map_err(text)?;
        let moment = Moment { now: host.now(), entropy: 0, rule: rule.clone() };
        let work = inbox.claim(moment.clone()).await.map_err(text)?.ok_or("nothing is due")?;
        inbox.apply(&work, None, moment).await.map_err(text)?;
    }
    done.fetch_add(1, Ordering::Relaxed);
    pending().await
}
