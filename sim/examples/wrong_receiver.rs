//! A popular mistake: look for the event's id, do the work, then note the id.
//!
//! `cargo run -p hookproof-sim --example wrong_receiver` shows how an event has its effect twice, and
//! ends with exit code 1.

mod request;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use hookproof_sim::receiver::{Busy, Failure, Held, Life, Report, Trial};

/// The tables of the shop's database.
#[derive(Default)]
struct Shop {
    /// The ids of the events that are done.
    seen: BTreeSet<String>,
    /// Event id → how many parcels were sent for it.
    parcels: BTreeMap<String, u32>,
}

fn receiver(life: Life<Shop>) -> Router {
    let take = async move |headers: HeaderMap, body: Bytes| {
        let id = match request::event_id(&life, &headers, &body) {
            Ok(id) => id,
            Err(status) => return status,
        };
        match handle(&life, &id).await {
            Ok(()) => StatusCode::OK,
            Err(Busy) => StatusCode::SERVICE_UNAVAILABLE,
        }
    };
    Router::new().route("/webhooks", post(take))
}

async fn handle(life: &Life<Shop>, id: &str) -> Result<(), Busy> {
    if life.disk().read(|shop| shop.seen.contains(id)).await {
        return Ok(());
    }
    life.disk().commit(|shop| *shop.parcels.entry(id.to_owned()).or_insert(0) += 1).await?;
    // Whoever asks before the next commit, or after a crash, finds no id, and sends a second parcel.
    life.crash_point("parcel.sent").await;
    life.disk().commit(|shop| shop.seen.insert(id.to_owned())).await?;
    Ok(())
}

fn report(shop: &Shop) -> Report {
    Report { recorded: shop.seen.clone(), effects: shop.parcels.clone() }
}

/// Puts the receiver on trial.
pub(crate) fn verdict() -> Result<Held, Failure> {
    Trial::new(receiver, report).try_run(0..40)
}

#[expect(clippy::print_stdout, reason = "an example shows what it found")]
pub(crate) fn main() -> ExitCode {
    match verdict() {
        Ok(held) => {
            println!("{held}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
    }
}
