//! Tells owners what became of deliveries that ended badly.
//!
//! A notice is a row that was written with the step which made it necessary, so it cannot be lost;
//! it is sent, then marked. A crash in between sends it again under the same number.

use std::sync::Arc;

use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::database::StoreError;
use hookproof_runtime::host::Host;
use tokio::sync::watch;

use crate::Shared;
use crate::store::Store;

const BATCH_MAX: u32 = 100;

pub(crate) struct Notifier<H, S> {
    shared: Arc<Shared<H, S>>,
}

impl<H: Host, S: Store> Notifier<H, S> {
    pub(crate) fn new(shared: Arc<Shared<H, S>>) -> Self {
        Self { shared }
    }

    /// Sends notices until told to stop.
    pub(crate) async fn run(self, mut stopped: watch::Receiver<bool>) {
        while !*stopped.borrow() {
            if let Err(error) = self.pass().await {
                tracing::warn!(%error, "notices could not be sent; they are kept");
            }
            tokio::select! {
                biased;
                _ = stopped.changed() => {}
                () = self.shared.notice.notified() => {}
                () = self.shared.host.sleep(self.shared.config.sweep_interval) => {}
            }
        }
    }

    async fn pass(&self) -> Result<(), StoreError> {
        for notice in self.shared.store.pending_notices(BATCH_MAX).await? {
            tracing::warn!(
                notice = notice.id,
                delivery = %notice.delivery_id,
                endpoint = %notice.endpoint_id,
                reason = ?notice.reason,
                endpoint_disabled = notice.disables_endpoint,
                "a delivery is dead; it stays available for replay"
            );
            self.shared.host.at(CrashPoint::NoticeSent).await;
            self.shared.store.notice_sent(notice.id, self.shared.host.now()).await?;
        }
        Ok(())
    }
}
