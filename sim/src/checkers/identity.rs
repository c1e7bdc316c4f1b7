//! I6 and I7: what is on the wire, and what a receiver takes from it.

use std::collections::BTreeMap;

use hookproof_core::time::Timestamp;

use super::{Checker, Invariant, Look, NOTHING, RIGHT};
use crate::fact::{Fact, Route, SentRequest};

/// I6. Whether the row was there is noted at the moment the request was written.
pub(super) struct WriteAhead;

impl Checker for WriteAhead {
    fn invariant(&self) -> Invariant {
        Invariant::WriteAhead
    }

    fn see(&mut self, _now: Timestamp, fact: &Fact<'_>) -> Look {
        match fact {
            Fact::Sent(request) if !request.is_claimed => Err(format!(
                "attempt {} of {} was sent, and is not committed as in flight",
                request.attempt, request.route
            )),
            Fact::Sent(_) => RIGHT,
            _ => NOTHING,
        }
    }
}

/// The longest that a request may be written after it was signed, in milliseconds; while its process
/// stands still no time passes for it.
const SIGNED_AGO_MAX: i64 = 10_000;

/// I7.
#[derive(Default)]
pub(super) struct Identity {
    /// The first request of each delivery.
    first: BTreeMap<Route, SentRequest>,
}

impl Identity {
    fn check(&mut self, request: &SentRequest) -> Look {
        let SentRequest { route, attempt, .. } = *request;
        let first = *self.first.entry(route).or_insert(*request);
        if request.event != first.event || request.event != route.event {
            return Err(format!(
                "attempt {attempt} of {route} carries the id of {}",
                request.event
            ));
        }
        if request.body.0 != request.body.1 {
            return Err(format!(
                "attempt {attempt} of {route} has another body than was published"
            ));
        }
        if request.headers != first.headers {
            return Err(format!("the header names of {route} changed with attempt {attempt}"));
        }
        let age_by = |wall: Timestamp| wall.as_millis() - request.timestamp * 1000;
        let (age, age_max) = (age_by(request.wall.0), age_by(request.wall.1));
        let stood_still = i64::try_from(request.stood_still.get()).unwrap_or(i64::MAX);
        if age_max < -1000 || age > SIGNED_AGO_MAX.saturating_add(stood_still) {
            return Err(format!("the timestamp of attempt {attempt} of {route} is {age} ms old"));
        }
        if !request.is_signed {
            return Err(format!("the signature of attempt {attempt} of {route} does not hold"));
        }
        RIGHT
    }
}

impl Checker for Identity {
    fn invariant(&self) -> Invariant {
        Invariant::Identity
    }

    fn see(&mut self, _now: Timestamp, fact: &Fact<'_>) -> Look {
        match fact {
            Fact::Sent(request) => self.check(request),
            Fact::Judged { source, event, is_valid, status } => match (is_valid, status) {
                (true, 400..=407 | 409..=424 | 426..=428 | 430..=499) => {
                    Err(format!("{source} refused a valid request for {event} with {status}"))
                }
                (false, 200..=299) => {
                    Err(format!("{source} took a request for {event} that is not valid"))
                }
                _ => RIGHT,
            },
            _ => NOTHING,
        }
    }
}
