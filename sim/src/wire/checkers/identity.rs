//! I6 and I7: what is on the wire.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hookproof_core::time::Timestamp;
use sha2::{Digest as _, Sha256};

use super::{Checker, Invariant, Look, View, count};
use crate::journal::{Registered, WireRequest};

/// I6. Whether the row was there is noted at the moment the request was written.
#[derive(Default)]
pub(super) struct WriteAhead {
    seen: usize,
}

impl Checker for WriteAhead {
    fn invariant(&self) -> Invariant {
        Invariant::WriteAhead
    }

    fn look(&mut self, view: &View<'_>) -> Look {
        let new = &view.facts.requests[self.seen..];
        if let Some(request) = new.iter().find(|request| !request.is_claimed) {
            return Err(format!(
                "attempt {} of {} was sent, and is not committed as in flight",
                request.header("hookproof-attempt").unwrap_or("?"),
                request.header("hookproof-delivery").unwrap_or("?"),
            ));
        }
        self.seen = view.facts.requests.len();
        Ok(count(new.len()))
    }
}

/// I7.
#[derive(Default)]
pub(super) struct Identity {
    seen: usize,
    /// The first request of each delivery.
    first: BTreeMap<String, WireRequest>,
}

impl Checker for Identity {
    fn invariant(&self) -> Invariant {
        Invariant::Identity
    }

    fn look(&mut self, view: &View<'_>) -> Look {
        let new = &view.facts.requests[self.seen..];
        for request in new {
            let delivery = request.header("hookproof-delivery").unwrap_or_default();
            let first = self.first.entry(delivery.to_owned()).or_insert_with(|| request.clone());
            same_event(first, request)?;
            fresh(request)?;
            let endpoint = view
                .facts
                .endpoints
                .iter()
                .find(|endpoint| request.path.ends_with(&format!("/{}", endpoint.source)))
                .ok_or_else(|| format!("a request went to {}", request.path))?;
            verify(request, endpoint)?;
        }
        self.seen = view.facts.requests.len();
        Ok(count(new.len()))
    }
}

fn same_event(first: &WireRequest, request: &WireRequest) -> Result<(), String> {
    let id = |request: &WireRequest| request.header("webhook-id").map(ToOwned::to_owned);
    let names = |request: &WireRequest| -> Vec<String> {
        request.headers.iter().map(|(name, _)| name.clone()).collect()
    };
    if id(first) != id(request) {
        return Err(format!("the event id changed from {:?} to {:?}", id(first), id(request)));
    }
    if first.body != request.body {
        return Err(format!("the body of {:?} changed between attempts", id(request)));
    }
    if names(first) != names(request) {
        return Err(format!("the header names of {:?} changed between attempts", id(request)));
    }
    Ok(())
}

/// The timestamp is that of the attempt, not of the event: at most the connection's time ago.
fn fresh(request: &WireRequest) -> Result<(), String> {
    let seconds = request.header("webhook-timestamp").and_then(|text| text.parse::<i64>().ok());
    let seconds = seconds.ok_or("a request has no timestamp")?;
    let age = request.at.since(Timestamp::from_secs(seconds));
    let ahead = Timestamp::from_secs(seconds).since(request.at);
    if age.get() > 10_000 || ahead.get() > 0 {
        return Err(format!("the timestamp of an attempt was {age} old and {ahead} ahead"));
    }
    Ok(())
}

/// Verifies by RFC 2104 on the bare hash function, independent of the code that signs.
fn verify(request: &WireRequest, endpoint: &Registered) -> Result<(), String> {
    let id = request.header("webhook-id").unwrap_or_default();
    let timestamp = request.header("webhook-timestamp").unwrap_or_default();
    let mut message = format!("{id}.{timestamp}.").into_bytes();
    message.extend_from_slice(&request.body);
    let expected = format!("v1,{}", STANDARD.encode(hmac_sha256(&endpoint.key, &message)));
    match request.header("webhook-signature") {
        Some(found) if found == expected => Ok(()),
        found => Err(format!("the signature of {id} is {found:?}, and should be {expected}")),
    }
}

fn hmac_sha256(key: &[u8], message: &[u8]) -> Vec<u8> {
    // Keys here are shorter than the hash's block of 64 bytes.
    let pad = |byte: u8| -> Vec<u8> {
        (0..64).map(|i| key.get(i).copied().unwrap_or(0) ^ byte).collect()
    };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().to_vec()
}
