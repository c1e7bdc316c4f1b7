//! I15 and S0: what was acknowledged is there, and nothing breaks by itself.

use std::collections::BTreeSet;

use hookproof_core::time::Timestamp;

use super::{Checker, Invariant, Look, NOTHING, RIGHT};
use crate::fact::{EndpointNo, EventNo, Fact};

/// I15. Facts are told when they are committed, so what was acknowledged must have been one before.
#[derive(Default)]
pub(super) struct Durable {
    stored: BTreeSet<EventNo>,
    recorded: BTreeSet<(EndpointNo, EventNo)>,
}

impl Checker for Durable {
    fn invariant(&self) -> Invariant {
        Invariant::Durable
    }

    fn see(&mut self, _now: Timestamp, fact: &Fact<'_>) -> Look {
        match fact {
            Fact::Stored { event, .. } => {
                self.stored.insert(*event);
                NOTHING
            }
            Fact::Accepted { publish, event } if !self.stored.contains(event) => {
                Err(format!("{publish} was accepted as {event}, and is not committed"))
            }
            Fact::Accepted { .. } => RIGHT,
            Fact::Lost { event } => Err(format!("{event} is no longer stored as it was")),
            Fact::Recorded { source, event } => {
                self.recorded.insert((*source, *event));
                NOTHING
            }
            Fact::Judged { source, event, is_valid: true, status } if is_2xx(*status) => {
                if self.recorded.contains(&(*source, *event)) {
                    return RIGHT;
                }
                Err(format!("{event} was answered {status} by {source}, and is not committed"))
            }
            _ => NOTHING,
        }
    }
}

fn is_2xx(status: u16) -> bool {
    (200..300).contains(&status)
}

/// S0.
pub(super) struct Sound;

impl Checker for Sound {
    fn invariant(&self) -> Invariant {
        Invariant::Sound
    }

    fn see(&mut self, _now: Timestamp, fact: &Fact<'_>) -> Look {
        match fact {
            Fact::Broke { what } => Err((*what).to_owned()),
            _ => RIGHT,
        }
    }
}
