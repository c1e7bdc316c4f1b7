//! What must happen sometimes.
//!
//! An invariant says what never happens. A search that never gets into an interesting state holds
//! every invariant, so these conditions say where it must have been: the default suite fails unless
//! each was reached.

use hookproof_core::named_enum;

named_enum! {
    /// A state that is worth having been in.
    pub enum Sometimes {
        /// The receiver has committed, and the sender ran into its timeout.
        CommittedButUnanswered = "the receiver committed, and the response was lost",
        /// A retry met an entry that was there.
        DuplicateDeduplicated = "a duplicate was recognised",
        /// Two copies of one request were under way at the receiver at once.
        CopiesRaced = "two copies of a request were at the receiver at once",
        /// A 2xx arrived after the sender had given up waiting.
        LateSuccess = "a 2xx arrived after the timeout",
        /// `Retry-After` asked for more than the backoff.
        RetryAfterBeatBackoff = "Retry-After was later than the backoff",
        /// The backoff asked for more than `Retry-After`.
        BackoffBeatRetryAfter = "the backoff was later than Retry-After",
        /// A `Retry-After` was cut.
        RetryAfterCut = "a Retry-After was cut to its maximum",
        /// A `Retry-After` was no number and no date.
        RetryAfterJunk = "a malformed Retry-After was ignored",
        /// A `Retry-After` was a date.
        RetryAfterDate = "a Retry-After was a date",
        /// A publish was repeated after its answer was lost.
        PublishReplayed = "a publish was repeated, and recognised",
        /// The sender ended between commit and answer of a publish.
        CrashedBeforeAck = "the sender crashed between commit and answer of a publish",
        /// The sender ended while an attempt was under way.
        CrashedInFlight = "the sender crashed with an attempt under way",
        /// An attempt's outcome is unknown.
        UnknownOutcome = "an attempt ended unknown",
        /// A claim was settled by the end of its lease.
        LeaseExpired = "a lease expired",
        /// The receiver ended with a claimed entry.
        CrashedAtWork = "the receiver crashed with work claimed",
        /// The receiver ended between commit and answer.
        CrashedBeforeAnswer = "the receiver crashed between commit and answer",
        /// An entry was claimed a second time.
        WorkRetried = "a received event was claimed again",
        /// A breaker opened.
        BreakerOpened = "a breaker opened",
        /// A probe failed.
        ProbeFailed = "a probe failed, and the pause grew",
        /// A probe ended with neither success nor failure.
        ProbeNeither = "a probe ended with neither success nor failure",
        /// A breaker closed.
        BreakerClosed = "a breaker closed",
        /// An attempt was deferred by the open breaker.
        DeferredByBreaker = "an attempt was held back by an open breaker",
        /// An attempt was deferred by the limit on concurrency.
        DeferredByConcurrency = "an attempt was held back by the concurrency limit",
        /// An attempt was deferred by the rate.
        DeferredByRate = "an attempt was held back by the rate limit",
        /// An attempt was deferred because the endpoint asked for it.
        DeferredByThrottle = "an attempt was held back by a throttle",
        /// All places were taken.
        PlacesShort = "more was due than there were places",
        /// A delivery's last attempt failed.
        Exhausted = "a delivery used up its attempts",
        /// A delivery became too old.
        Expired = "a delivery became too old",
        /// A delivery was refused.
        Refused = "a delivery was refused for good",
        /// An endpoint answered 410.
        Gone = "an endpoint answered 410 and was disabled",
        /// An endpoint was disabled with deliveries waiting.
        DisabledWaiting = "an endpoint was disabled with deliveries waiting",
        /// An endpoint was deleted with deliveries waiting.
        DeletedWaiting = "an endpoint was deleted with deliveries waiting",
        /// An event was published while an endpoint was disabled.
        PublishedWhileDisabled = "an event was published to a disabled endpoint",
        /// A waiting delivery was replayed.
        ReplayedWaiting = "a waiting delivery was replayed",
        /// A dead delivery was replayed.
        ReplayedDead = "a dead delivery was replayed",
        /// A replay was refused because an attempt was under way.
        ReplayRefused = "a replay was refused while an attempt was under way",
        /// A replay failed.
        ReplayFailed = "a replay failed, and left what was there before",
        /// A delivery was cancelled in flight.
        CancelledInFlight = "a delivery was cancelled in flight",
        /// An attempt was signed with two secrets.
        SignedTwice = "an attempt was signed with two secrets",
        /// The second of two signatures was the one that held.
        SecondSignatureHeld = "the second of two signatures was the right one",
        /// A request was refused because of its timestamp.
        TimestampRefused = "a request was refused because of its timestamp",
        /// A forged request was refused.
        ForgeryRefused = "a forged request was refused",
        /// A replayed request was within the tolerance, and a duplicate.
        ReplayedRequest = "a recorded request was sent again, and recognised",
        /// A malformed signature was refused.
        MalformedRefused = "a malformed signature was refused",
        /// An older version arrived after a newer one.
        OlderArrivedLate = "an older version arrived late, and was not applied",
        /// A downstream call's answer was lost.
        DownstreamUnknown = "a downstream call was applied, and its answer lost",
        /// A repeated downstream call was recognised.
        DownstreamDeduplicated = "a repeated downstream call was recognised",
        /// A process was paused past its lease.
        PausedPastLease = "a process stood still past its lease",
        /// A write of a former owner was refused.
        FencedOff = "a former owner's write was refused",
        /// A shard changed its owner.
        ShardTakenOver = "a shard was taken over",
        /// A denied address was refused.
        AddressDenied = "a connection to a denied address was refused",
        /// A clock stepped back.
        ClockSteppedBack = "a clock stepped back",
        /// A store refused a write.
        StoreRefused = "a store refused a write",
        /// An outcome could not be recorded at first.
        OutcomeWaited = "an outcome waited for the store",
        /// A notice was sent twice, and recognised.
        NoticeRepeated = "a notice was sent again, and recognised",
        /// A backlog was drained at the drain rate.
        DrainLimited = "a backlog was held to its drain rate",
    }
}

impl Sometimes {
    /// Whether it is seen on the wire, too: what is between the processes, in their stores, or asked for
    /// by people. The rest only the model world can see, or has.
    #[must_use]
    pub const fn is_on_wire(self) -> bool {
        matches!(
            self,
            Self::CommittedButUnanswered
                | Self::DuplicateDeduplicated
                | Self::RetryAfterJunk
                | Self::RetryAfterDate
                | Self::PublishReplayed
                | Self::CrashedBeforeAck
                | Self::CrashedInFlight
                | Self::UnknownOutcome
                | Self::CrashedAtWork
                | Self::CrashedBeforeAnswer
                | Self::BreakerOpened
                | Self::ProbeFailed
                | Self::ProbeNeither
                | Self::BreakerClosed
                | Self::Exhausted
                | Self::Expired
                | Self::Refused
                | Self::Gone
                | Self::DisabledWaiting
                | Self::DeletedWaiting
                | Self::PublishedWhileDisabled
                | Self::ReplayedWaiting
                | Self::ReplayedDead
                | Self::ReplayRefused
                | Self::ReplayFailed
                | Self::CancelledInFlight
                | Self::SignedTwice
                | Self::SecondSignatureHeld
                | Self::TimestampRefused
                | Self::ForgeryRefused
                | Self::ReplayedRequest
                | Self::MalformedRefused
                | Self::OlderArrivedLate
                | Self::PausedPastLease
                | Self::AddressDenied
                | Self::ClockSteppedBack
                | Self::StoreRefused
        )
    }
}
