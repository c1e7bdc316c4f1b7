//! What happens next.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use hookproof_core::time::Timestamp;

/// A heap of (time, sequence, event): of what happens at one moment, that comes first which was
/// planned first.
#[derive(Debug)]
pub(super) struct Queue<E> {
    heap: BinaryHeap<Reverse<Planned<E>>>,
    planned: u64,
}

#[derive(Debug)]
struct Planned<E> {
    at: Timestamp,
    sequence: u64,
    event: E,
}

impl<E> PartialEq for Planned<E> {
    fn eq(&self, other: &Self) -> bool {
        self.sequence == other.sequence
    }
}

impl<E> Eq for Planned<E> {}

impl<E> PartialOrd for Planned<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Planned<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), planned: 0 }
    }
}

impl<E> Queue<E> {
    pub(super) fn plan(&mut self, at: Timestamp, event: E) {
        self.heap.push(Reverse(Planned { at, sequence: self.planned, event }));
        self.planned += 1;
    }

    pub(super) fn next(&mut self) -> Option<(Timestamp, E)> {
        self.heap.pop().map(|Reverse(planned)| (planned.at, planned.event))
    }
}
