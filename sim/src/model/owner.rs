//! The owner, who is told what was given up: a mailbox that knows a notice by its id.

use std::collections::BTreeSet;

use super::store::Store;
use super::world::World;
use crate::fact::{Fact, Route};
use crate::sometimes::Sometimes;
use crate::zoo::SenderMutant;

/// What the owner has got.
#[derive(Debug, Default)]
pub(super) struct Owner {
    notices: BTreeSet<usize>,
}

impl Owner {
    pub(super) fn is_told(&self, store: &Store) -> bool {
        store.notices.iter().all(|notice| notice.is_sent)
    }
}

impl World<'_> {
    /// A notice arrives. The same id again is the same notice.
    pub(super) fn notify_owner(&mut self, notice: usize, route: Route) {
        let is_new = self.owner.notices.insert(notice);
        if is_new || self.is_sender(SenderMutant::NoticeTwice) {
            self.record.line(self.now, "owner", || format!("is told that {route} is given up"));
            self.fact(&Fact::Noticed { route });
        } else {
            self.sometimes(Sometimes::NoticeRepeated);
        }
    }
}
