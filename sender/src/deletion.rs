//! What becomes of the deliveries to an endpoint that is deleted.
//!
//! The deletion is one small transaction; what waits for the endpoint, however much it is, is cancelled
//! afterwards, a part with each pass of the dispatcher. An attempt that is under way comes to its end,
//! and its delivery is cancelled only if it would be tried again. Nothing of this is kept in memory: a
//! new process looks once, whatever the former one knew.

use std::sync::atomic::{AtomicBool, Ordering};

use hookproof_core::delivery::{Delivery, Input, Step};
use hookproof_runtime::database::StoreError;
use hookproof_runtime::host::Host;

use crate::Shared;
use crate::store::Store;

/// Whether something may be left of deleted endpoints.
pub(crate) struct MaybeOrphans(AtomicBool);

impl Default for MaybeOrphans {
    fn default() -> Self {
        Self(AtomicBool::new(true))
    }
}

impl<H: Host, S: Store> Shared<H, S> {
    /// To be called after whatever can leave a delivery waiting for a deleted endpoint.
    pub(crate) fn look_for_orphans(&self) {
        self.orphans.0.store(true, Ordering::Relaxed);
        self.due.notify_one();
    }

    /// Cancels at most `limit` of what waits for deleted endpoints, if there may be anything.
    pub(crate) async fn cancel_orphans(&self, limit: u32) -> Result<(), StoreError> {
        // Before the look: what is deleted during it is looked for the next time.
        if !self.orphans.0.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let is_more = self.cancel_some(limit).await;
        if !matches!(is_more, Ok(false)) {
            self.orphans.0.store(true, Ordering::Relaxed);
        }
        is_more.map(drop)
    }

    async fn cancel_some(&self, limit: u32) -> Result<bool, StoreError> {
        let orphans = self.store.orphans(limit).await?;
        let cancel = |delivery: &Delivery| delivery.handle(self.ctx(), Input::Cancel).ok();
        let steps: Vec<Step> = orphans.waiting.iter().filter_map(cancel).collect();
        if steps.is_empty() {
            return Ok(orphans.is_more);
        }
        for committed in self.store.commit_each(steps).await?.into_iter().flatten() {
            self.perform(committed);
        }
        if orphans.is_more {
            self.due.notify_one();
        }
        Ok(orphans.is_more)
    }
}
