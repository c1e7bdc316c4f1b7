//! When a breaker held back whatever was due: its pauses, and its probes while they were under way.
//!
//! Between the end of a pause and the next probe it holds nothing: if nobody asked for a permit, then
//! for another reason, for instance because the sender was down.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::time::{Millis, Timestamp};

/// The most holds that are remembered. Of more, the two oldest are taken for one: in doubt a delivery
/// lives longer.
const HOLDS_MAX: usize = 32;

/// The holds of one breaker, in order.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Holds {
    spans: VecDeque<(Timestamp, Timestamp)>,
}

impl Holds {
    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// It holds from `from` until `until`; a hold that begins where the last one ends prolongs it.
    pub(super) fn add(&mut self, from: Timestamp, until: Timestamp) {
        match self.spans.back_mut() {
            Some((_, end)) if from <= *end => *end = (*end).max(until),
            _ => self.spans.push_back((from, until)),
        }
        if self.spans.len() > HOLDS_MAX
            && let Some((from, _)) = self.spans.pop_front()
            && let Some(oldest) = self.spans.front_mut()
        {
            oldest.0 = from;
        }
    }

    /// The last hold, a probe's, goes on until now.
    pub(super) fn prolong(&mut self, now: Timestamp) {
        if let Some((_, end)) = self.spans.back_mut() {
            *end = (*end).max(now);
        }
    }

    /// For how long of the time from `from` to `now` it held; if it `holds_on`, the last hold has not
    /// ended yet.
    pub(super) fn within(&self, from: Timestamp, now: Timestamp, holds_on: bool) -> Millis {
        let last = self.spans.len().wrapping_sub(1);
        let overlap = |(at, &(start, end)): (usize, &(Timestamp, Timestamp))| {
            let end = if holds_on && at == last { now } else { end.min(now) };
            end.since(start.max(from))
        };
        self.spans.iter().enumerate().map(overlap).fold(Millis::ZERO, Millis::plus)
    }
}
