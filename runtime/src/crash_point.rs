//! The named places at which a simulated host can end.

use std::fmt;

macro_rules! crash_points {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A place between two steps. What stands before it has happened; nothing after it does,
        /// in any task of the host.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum CrashPoint {
            $($(#[$doc])* $variant,)*
        }

        impl CrashPoint {
            /// All of them, in the order in which an event passes them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The stable name, for example `attempt.sent`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

crash_points! {
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
    /// The effect is written, inside the transaction that will mark it.
    EffectApplied = "effect.applied",
    /// Effect and mark are committed.
    WorkMarked = "work.marked",
    /// A store has executed a group of operations and not yet committed it.
    StoreExecuted = "store.executed",
    /// A store has committed a group and told nobody yet.
    StoreCommitted = "store.committed",
}

impl fmt::Display for CrashPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
