//! The named places at which a simulated host can end.

use hookproof_core::named_enum;

named_enum! {
    /// A place between two steps. What stands before it has happened; nothing after it does, in any
    /// task of the host. They stand in the order in which an event passes them.
    pub enum CrashPoint {
        /// The sender has read a publish.
        PublishReceived = "publish.received",
        /// Event and deliveries are committed; nobody knows yet.
        PublishCommitted = "publish.committed",
        /// The publish was acknowledged.
        PublishAcked = "publish.acked",
        /// An attempt is committed as under way; nothing is sent yet.
        AttemptClaimed = "attempt.claimed",
        /// The connection stands.
        AttemptConnected = "attempt.connected",
        /// The whole request is written.
        AttemptSent = "attempt.sent",
        /// The response has arrived; nothing is recorded yet.
        AttemptAnswered = "attempt.answered",
        /// The outcome is committed.
        AttemptRecorded = "attempt.recorded",
        /// A notice left; that it did is not recorded yet.
        NoticeSent = "notice.sent",
        /// The receiver has read a request.
        RequestAccepted = "request.accepted",
        /// Its signature holds.
        RequestVerified = "request.verified",
        /// The event is committed in the inbox; the sender does not know yet.
        InboxCommitted = "inbox.committed",
        /// The acknowledgement was written.
        AckSent = "ack.sent",
        /// A worker's claim is committed.
        WorkClaimed = "work.claimed",
        /// The effect is written, inside the transaction that will mark it; or another service has had
        /// it, and nothing marks it yet.
        EffectApplied = "effect.applied",
        /// Effect and mark are committed.
        WorkMarked = "work.marked",
        /// A store has executed a group of operations and not yet committed it.
        StoreExecuted = "store.executed",
        /// A store has committed a group and told nobody yet.
        StoreCommitted = "store.committed",
    }
}
