//! The receiver's modelled store: the inbox and the entities that its effects change.

use std::collections::{BTreeMap, BTreeSet};

use hookproof_core::inbox::{Entry, Phase};
use hookproof_core::time::Timestamp;

use super::network::Body;
use crate::fact::{EndpointNo, EventNo};

/// What the receiver knows an event by.
pub(super) type Key = (EndpointNo, u64);

/// The receiver's tables.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) entries: BTreeMap<Key, EntryRow>,
    /// The latest time at which it was written, by the clock of whoever did it.
    pub(super) latest: Timestamp,
    /// What is not final, by the time at which somebody must look at it.
    wake: BTreeSet<(Timestamp, Key)>,
    /// Entity → the version that it has.
    pub(super) entities: BTreeMap<u32, u64>,
    /// R23: ids that were recorded before they were verified.
    pub(super) burnt: BTreeSet<(EndpointNo, EventNo)>,
}

/// A row of the inbox.
#[derive(Clone, Debug)]
pub(super) struct EntryRow {
    pub(super) source: EndpointNo,
    pub(super) event: EventNo,
    pub(super) body: Body,
    pub(super) entry: Entry,
    pub(super) recorded_at: Timestamp,
}

impl Inbox {
    pub(super) fn insert(&mut self, key: Key, row: EntryRow) {
        if let Some(at) = row.entry.wake_at() {
            self.wake.insert((at, key));
        }
        self.entries.insert(key, row);
    }

    pub(super) fn write(&mut self, key: Key, entry: Entry) {
        let Some(row) = self.entries.get_mut(&key) else { return };
        if let Some(at) = row.entry.wake_at() {
            self.wake.remove(&(at, key));
        }
        if let Some(at) = entry.wake_at() {
            self.wake.insert((at, key));
        }
        row.entry = entry;
    }

    /// An entry is forgotten.
    pub(super) fn remove(&mut self, key: Key) {
        if let Some(row) = self.entries.remove(&key)
            && let Some(at) = row.entry.wake_at()
        {
            self.wake.remove(&(at, key));
        }
    }

    /// What is not final, in the order in which somebody must look.
    pub(super) fn waiting(&self) -> &BTreeSet<(Timestamp, Key)> {
        &self.wake
    }

    /// What waits for a worker and has been due longest.
    pub(super) fn first_due(&self, now: Timestamp) -> Option<Key> {
        let mut due = self.wake.iter().take_while(|(at, _)| *at <= now).map(|(_, key)| *key);
        due.find(|key| matches!(self.entries[key].entry.phase, Phase::Pending { .. }))
    }

    pub(super) fn is_settled(&self) -> bool {
        self.wake.is_empty()
    }

    /// What is claimed at this moment.
    pub(super) fn claimed(&self) -> Vec<Key> {
        let is_claimed = |key: &Key| matches!(self.entries[key].entry.phase, Phase::Claimed { .. });
        self.wake.iter().map(|(_, key)| *key).filter(is_claimed).collect()
    }
}
