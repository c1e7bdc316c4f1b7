//! A service that the receiver's effects call, which keeps idempotency keys as such services do.

use std::collections::BTreeSet;

use super::hosts::Process;
use super::world::World;
use crate::fact::{EndpointNo, EventNo, Fact};
use crate::fault::Fault;
use crate::sometimes::Sometimes;
use crate::zoo::ReceiverMutant;

/// What the downstream service knows.
#[derive(Debug, Default)]
pub(super) struct Downstream {
    applied: BTreeSet<(EndpointNo, EventNo)>,
    /// Calls that it failed, and that nobody has made again yet.
    failed: BTreeSet<(EndpointNo, EventNo)>,
}

/// What the caller hears.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Heard {
    /// It is done.
    Done,
    /// Nothing; it may be done.
    Nothing,
}

impl World<'_> {
    /// A call with the event's key. The same key again has no second effect.
    pub(super) fn call_downstream(
        &mut self,
        process: Process,
        source: EndpointNo,
        event: EventNo,
    ) -> Heard {
        if self.downstream.failed.remove(&(source, event)) {
            // That it comes again is what the failure did.
            self.record.fired(Fault::DownstreamFailure);
        }
        let fails = self.strikes(process.who(), Fault::DownstreamFailure);
        let arrives = !fails || self.choices.chance(process.who(), "downstream applies", 500);
        if arrives {
            let is_new = self.downstream.applied.insert((source, event));
            let has_key = !self.is_receiver(ReceiverMutant::DownstreamWithoutKey);
            if is_new || !has_key {
                self.record.totals.effects += 1;
                self.record
                    .line(self.now, "downstream", || format!("effect of {event} from {source}"));
                self.fact(&Fact::Effect { source, event });
            } else {
                self.sometimes(Sometimes::DownstreamDeduplicated);
            }
        }
        if !fails {
            return Heard::Done;
        }
        self.downstream.failed.insert((source, event));
        if !self.does(Fault::DownstreamFailure) {
            return Heard::Done;
        }
        self.record.line(self.now, "downstream", || "fails, or loses its answer".to_owned());
        if arrives {
            self.sometimes(Sometimes::DownstreamUnknown);
        }
        Heard::Nothing
    }
}
