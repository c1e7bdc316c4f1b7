//! The list of known-bad variants.

use super::{About, Killer};
use crate::checkers::Invariant::{
    Address, DoneMeansDone, Durable, ExactlyOnce, Fencing, Identity, Isolation, Liveness,
    NoInvention, NoLoss, OnSchedule, Order, Sound, Terminal, WithinGate, WriteAhead,
};
use crate::suite::Gate;

/// Where a mutant lives in the wire world: with everything at once, where it does in the model world, or
/// nowhere.
macro_rules! wire_scenario {
    (both, $scenario:literal) => {
        Some("mixed")
    };
    (both_there, $scenario:literal) => {
        Some($scenario)
    };
    (model, $scenario:literal) => {
        None
    };
}

macro_rules! mutants {
    (
        $(#[$doc:meta])*
        $name:ident {
            $($variant:ident = $id:literal $what:literal $killer:expr, $scenario:literal $worlds:ident
                $why:literal $seen:literal;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name {
            $(#[doc = concat!($id, ": ", $what, ".")] $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// What is known of it.
            #[must_use]
            pub const fn about(self) -> About {
                match self {
                    $(Self::$variant => About {
                        id: $id,
                        what: $what,
                        why: $why,
                        seen: $seen,
                        killer: $killer,
                        scenario: $scenario,
                        wire_scenario: wire_scenario!($worlds, $scenario),
                    },)*
                }
            }
        }
    };
}

use Killer::Invariants as By;

mutants! {
    /// A wrong receiver.
    ReceiverMutant {
        InsertThenProcess = "R01" "inserts the id, then processes" By(&[DoneMeansDone]),
            "crash-everywhere" both
            "A crash between the two commits leaves the id behind, and the retry passes for a duplicate."
            "the first seed document";
        EnqueueInMemory = "R02" "inserts the id, then queues in memory" By(&[DoneMeansDone, Liveness]),
            "crash-everywhere" both
            "What is in the queue when the process ends is gone, and the id says that it was taken."
            "the second seed document's counter-example";
        CheckThenInsert = "R03" "looks for the id, then inserts it" By(&[ExactlyOnce]),
            "mixed" both
            "Two copies at once both find nothing, and both process."
            "the third seed document's pattern";
        AckBeforeCommit = "R04" "answers 2xx before the commit" By(&[DoneMeansDone, Durable]),
            "crash-everywhere" both
            "A crash between answer and commit loses an event that the sender counts as delivered."
            "argo-events#3448";
        ApplyThenMark = "R05" "applies, then marks, separately" By(&[ExactlyOnce]),
            "crash-everywhere" both
            "A crash in between applies the effect again."
            "";
        MarkThenApply = "R06" "marks, then applies, separately" By(&[DoneMeansDone]),
            "crash-everywhere" both
            "A crash in between loses the effect."
            "";
        DedupByUnsignedHeader = "R07" "knows duplicates by an unsigned header" By(&[ExactlyOnce]),
            "unanswered" both_there
            "The header differs between attempts, or is taken off on the way: the same event passes twice."
            "open-mercato#1394";
        DedupInMemory = "R08" "knows duplicates in memory only" By(&[ExactlyOnce]),
            "crash-everywhere" both
            "A restart forgets them all."
            "";
        DedupExpires = "R09" "forgets ids before the last retry" By(&[ExactlyOnce]),
            "unanswered" both
            "The sender's next retry comes after the entry has expired."
            "openlinker#2949";
        DedupForTolerance = "R10" "keeps ids for one tolerance only" By(&[ExactlyOnce]),
            "future-stamps" model
            "A request stamped in the future stays valid for two tolerances: its replay outlives the entry."
            "";
        ConflictOnDuplicate = "R11" "answers 409 to a duplicate" By(&[Identity]),
            "unanswered" both
            "The sender takes the 409 for a refusal, and gives up an event that was taken."
            "";
        SuccessOnStoreError = "R12" "answers 200 when the insert failed" By(&[DoneMeansDone, Durable]),
            "mixed" both
            "The store was busy or full; the event is nowhere, and counts as delivered."
            "PageSpace#1588";
        VerifiesReserialised = "R13" "verifies re-serialised JSON" By(&[Identity]),
            "mixed" both
            "A body that its JSON library would write otherwise is refused."
            "stripe-node#356, octokit/webhooks.js#71";
        OneSidedTolerance = "R14" "checks the timestamp on one side" By(&[Identity]),
            "clock-trouble" both_there
            "A timestamp far in the past passes, so a recorded request can be replayed for ever."
            "";
        TimestampNotSigned = "R15" "does not sign the timestamp" By(&[Identity]),
            "clock-trouble" both_there
            "Whoever recorded a request gives it a new timestamp, and it passes."
            "HSReplay.net#342";
        FirstSignatureOnly = "R16" "checks the first signature only" By(&[Identity]),
            "rotation" both_there
            "During a rotation the right signature is the second."
            "svix-webhooks#2393";
        NoVersionCompare = "R17" "applies older versions over newer" By(&[Order]),
            "reorder" both_there
            "A retried event arrives after its successor and takes the entity back."
            "cashier-stripe#1201";
        ClaimWithoutLease = "R18" "claims work without a lease" By(&[DoneMeansDone, Liveness]),
            "crash-everywhere" both
            "A crash strands the claimed row for ever."
            "";
        LeaseWithoutFence = "R19" "lease shorter than work, no fence" By(&[ExactlyOnce]),
            "lease-and-pause" both_there
            "Another worker takes the row over while the first still works, and both apply."
            "";
        DownstreamWithoutKey = "R20" "no idempotency key downstream" By(&[ExactlyOnce]),
            "downstream-unknown" both_there
            "An answer is lost, the call is made again, and the other side cannot tell."
            "";
        UnknownIsDone = "R20b" "takes an unknown call for done" By(&[DoneMeansDone]),
            "downstream-unknown" both_there
            "The call never took effect, and nobody makes it again."
            "";
        UnknownIsFailed = "R20c" "takes an unknown call for failed" By(&[DoneMeansDone]),
            "downstream-unknown" both_there
            "It is given up as having had no effect, and it has had one."
            "";
        QueueWithoutSweep = "R21" "wakes by a queue only, never sweeps" By(&[DoneMeansDone, Liveness]),
            "crash-everywhere" both
            "A wake-up that is lost in a crash strands its row."
            "";
        DedupAcrossSources = "R22" "one id space for all sources" By(&[DoneMeansDone, Durable]),
            "steady" both
            "The second of two integrations that get the same event id is told that it has it already."
            "";
        RecordsBeforeVerify = "R23" "records ids before verifying" By(&[DoneMeansDone, Durable]),
            "mixed" both
            "A forged request burns the id of the real one that follows."
            "";
        CrashOnMalformed = "R24" "a malformed signature ends the process" By(&[Sound]),
            "mixed" both
            "Anybody can keep the receiver down with one request."
            "";
    }
}

mutants! {
    /// A wrong sender.
    SenderMutant {
        AckBeforeCommit = "S01" "accepts before the commit" By(&[NoLoss, Durable]),
            "crash-everywhere" both
            "A crash between answer and commit loses an event that the application no longer has."
            "";
        PersistThenFanOut = "S02" "stores the event, then its deliveries" By(&[NoLoss]),
            "crash-everywhere" both
            "A crash in between leaves an event that goes nowhere, and the retried publish finds it stored."
            "bunmail#184";
        EnqueueThenPersist = "S03" "queues in memory, stores later" By(&[NoLoss, Durable]),
            "crash-everywhere" both
            "The acknowledged event is in memory only."
            "vexa#614";
        NewIdOnRetry = "S04" "gives each retry a new event id" By(&[Identity, ExactlyOnce, NoInvention]),
            "unanswered" both
            "No receiver can tell the retry from another event."
            "devlane#306";
        FrozenTimestamp = "S05" "signs the timestamp of the creation" By(&[Identity, Liveness]),
            "receiver-outage-24h" both
            "After the tolerance every retry is refused as a replay."
            "better-auth#8844, svix-webhooks#93";
        ReencodedBody = "S06" "encodes the body again for a retry" By(&[Identity, NoInvention]),
            "mixed" both
            "The signature no longer fits, or fits another body."
            "margince#181, svix-webhooks#864";
        UnsignedRetry = "S07" "retries without signature headers" By(&[Identity]),
            "mixed" both
            "The retry path builds its own request and forgets to sign it."
            "foundations#10219, firecrawl#3756";
        TimeoutIsSuccess = "S08" "counts a timeout as success" By(&[DoneMeansDone]),
            "mixed" both
            "Nobody knows whether the receiver has it."
            "";
        RedirectIsSuccess = "S09" "counts a redirect as success" By(&[DoneMeansDone]),
            "mixed" both
            "The event went nowhere."
            "vantage-point#49, ledger#1990";
        RedirectIsFollowed = "S09b" "follows redirects" By(&[Address]),
            "mixed" model
            "Whoever answers chooses where the next request goes, and nobody checks that address."
            "vantage-point#49, ledger#1990";
        GoneIsSuccess = "S10" "counts 404 and 410 as delivered" By(&[DoneMeansDone]),
            "mixed" both
            "The event is dropped, and the owner sees a success."
            "mastodon#37235";
        AttemptsLostOnRestart = "S11" "forgets the attempts at a restart" By(&[OnSchedule]),
            "crash-everywhere" both
            "Deliveries to a dead endpoint never end."
            "";
        OneTooFew = "S12" "makes one attempt too few" By(&[OnSchedule, Liveness]),
            "mixed" both
            "The last wait of the schedule is never used."
            "";
        OneTooMany = "S12b" "makes one attempt too many" By(&[OnSchedule]),
            "few-attempts" model
            "The first attempt is not counted as one of those that the policy allows."
            "";
        TimersInMemory = "S13" "keeps pending retries in memory" By(&[Liveness]),
            "crash-everywhere" both
            "A restart forgets them."
            "";
        SendBeforeClaim = "S14" "sends before the claim is committed" By(&[WriteAhead]),
            "steady" both
            "A crash after the send leaves an attempt that nobody knows of."
            "acapy#3659";
        ClaimInAutocommit = "S15" "claims without a guard" By(&[Fencing, Identity]),
            "lease-and-pause" model
            "Two workers see the same due row and both send."
            "e2a#62, mycelium#192";
        LeaseShorterThanTimeout = "S16" "a lease shorter than the timeout" By(&[Fencing, WithinGate]),
            "slow-endpoint" both_there
            "The claim ends while the request is under way, and a second one begins."
            "endatix#956, foundations#10832";
        InFlightIgnored = "S17" "never looks at rows in flight again" By(&[Liveness]),
            "crash-everywhere" both
            "What was under way in a crash stays so for ever."
            "";
        BackoffOverflow = "S18" "the backoff overflows" By(&[OnSchedule]),
            "long-ladder" model
            "After some dozen attempts the wait is negative, or nothing: a hot loop."
            "bifrost#5249, backrest#618";
        JitterBelowRetryAfter = "S19" "jitter goes below Retry-After" By(&[OnSchedule]),
            "retry-after-storm" both_there
            "The receiver asked for more time than it gets."
            "";
        RetryAfterUnits = "S20" "reads Retry-After in milliseconds" By(&[OnSchedule]),
            "retry-after-storm" both_there
            "120 becomes an eighth of a second."
            "omnidesk#146";
        RetryAfterThousandfold = "S20b" "reads Retry-After a thousandfold" By(&[OnSchedule]),
            "retry-after-storm" model
            "Milliseconds are read as seconds: a minute becomes most of a day."
            "omnidesk#146";
        RetryAfterWraps = "S20c" "a large Retry-After wraps" By(&[OnSchedule]),
            "retry-after-storm" model
            "9999999999 in 32 bits is the past: a hot loop against a receiver that asked for peace."
            "";
        ProbeNotReleased = "S21" "keeps the probe after a refusal" By(&[WithinGate, Liveness]),
            "probe-refused" model
            "The breaker waits for a probe that ended long ago: half-open for ever."
            "nora#585";
        TwoProbes = "S22" "lets two probes through at once" By(&[WithinGate]),
            "backlog-drain" model
            "A receiver that just recovers is hit by more than it was promised."
            "";
        WindowFromFirstError = "S23" "a window that begins at the first error" By(&[WithinGate]),
            "sliding-window" model
            "Failures on both sides of its end are counted apart, and the breaker stays closed."
            "";
        OpenBurnsAttempts = "S24" "the open breaker uses up attempts" By(&[OnSchedule]),
            "receiver-outage-24h" model
            "The schedule ends without a request having been made."
            "";
        PendingHidesStreak = "S25" "pending attempts hide a streak" By(&[WithinGate]),
            "backlog-drain" model
            "As long as something is under way the failures before it do not count."
            "polar#8690";
        FirstComeFirstServed = "S26" "one slow endpoint takes every place" By(&[Isolation, OnSchedule]),
            "slow-endpoint" model
            "All workers wait for a receiver that never answers."
            "metagraphed#9740, keygen-api#771";
        FanOutAsOneUnit = "S27" "retries all endpoints of an event" By(&[Terminal, OnSchedule]),
            "mixed" both
            "One endpoint fails, and those that succeeded get the event again."
            "formbricks#9123, alertmanager#1494";
        FanOutNotIdempotent = "S28" "a repeated fan-out makes new deliveries" By(&[NoLoss]),
            "crash-everywhere" model
            "The publish is repeated after a lost answer, and every endpoint gets two deliveries."
            "";
        ResendEndsSchedule = "S29" "a manual resend ends the schedule" By(&[Terminal]),
            "replay-and-recover" both_there
            "The resend fails, and the automatic retries are gone."
            "";
        ResendClearsLease = "S30" "a resend in flight clears the lease" By(&[Fencing]),
            "replay-and-recover" both_there
            "Two attempts of one delivery are under way."
            "";
        DisabledDropsEvents = "S31" "drops events of disabled endpoints" By(&[NoLoss]),
            "disable-and-delete" both_there
            "The publish is acknowledged, and the event is nowhere."
            "";
        LastSuccessDisables = "S32" "the last attempt disables, successful or not" By(&[Liveness]),
            "few-attempts" both_there
            "An endpoint that works is switched off because its attempts were used up."
            "";
        RestartRearms = "S33" "a restart re-arms dead deliveries" By(&[Terminal, OnSchedule]),
            "crash-everywhere" both
            "What was given up is sent again, without anybody having asked."
            "";
        NoticeTwice = "S34" "sends a notice, then records it" By(&[Liveness]),
            "crash-everywhere" model
            "A crash in between tells the owner twice, under two ids."
            "";
        NoticeRecordedFirst = "S34b" "records a notice as sent, then sends it" By(&[Liveness]),
            "crash-everywhere" model
            "A crash in between: nobody is told that a delivery was given up."
            "";
        RotationWithoutOverlap = "S35" "rotates without overlap" By(&[Identity, Liveness]),
            "rotation" both_there
            "Receivers that have not changed over yet refuse what is signed with the new secret only."
            "ay-framework#407";
        ResolvesTwice = "S36" "resolves again after the check" By(&[Address]),
            "mixed" both
            "The second answer is another address: DNS rebinding."
            "mlflow#24258";
        FirstAnswerOnly = "S37" "checks the first answer only" By(&[Address]),
            "mixed" both
            "The connection goes to the second."
            "GHSA-r2x7-427f-rq69, VibeNVR#297";
        WatermarkScan = "S38" "fans out by a watermark of ids" By(&[NoLoss]),
            "steady" model
            "Rows that commit out of order lie below the mark and are skipped."
            "";
        ReplyBeforeGroupCommit = "S39" "answers before its group commits" By(&[Durable, NoLoss]),
            "crash-everywhere" both
            "The answer says committed, and a crash says otherwise."
            "";
        NoFencing = "S40" "a paused owner writes after its lease" By(&[Fencing]),
            "lease-and-pause" model
            "Two processes believe that they own the shard."
            "";
        WallClock = "S41" "waits by a wall clock that steps back" By(&[OnSchedule]),
            "clock-trouble" both_there
            "Nothing is due for as long as the clock went back."
            "";
        BacklogAtOnce = "S42" "the whole backlog leaves at once" By(&[WithinGate]),
            "backlog-drain" both_there
            "A receiver that has just recovered is knocked over again."
            "alertmanager#2286";
    }
}

mutants! {
    /// A bug in each of the parts that no mutant of the zoo has, by which it is shown that what is
    /// found can be understood.
    SeededBug {
        OutcomeOverCancellation = "B01" "delivery: an outcome overwrites a cancellation" By(&[Terminal]),
            "replay-and-recover" model
            "What somebody cancelled while it was under way is delivered, or tried again."
            "";
        ProbeFailsForFree = "B02" "gate: a failed probe does not prolong the pause" By(&[WithinGate]),
            "backlog-drain" model
            "A receiver that is down for long is probed as often as one that is down for a moment."
            "";
        LostClaimIsApplied = "B03" "inbox: a claim whose owner is lost counts as applied" By(&[DoneMeansDone]),
            "crash-everywhere" model
            "The receiver crashed before the effect, and nobody tries again."
            "";
        NewestCommitLost = "B04" "store: a crash takes back the newest commit" By(&[Terminal, Fencing]),
            "crash-everywhere" model
            "The commit was acknowledged before it was on the disk."
            "";
    }
}

mutants! {
    /// A wrong harness.
    HarnessMutant {
        CrashesNothing = "H01" "a crash fault that crashes nothing" Killer::Gate(Gate::FaultFired),
            "crash-everywhere" both
            "The report says how often a host crashed, and none ever did."
            "";
        FaultNeverFires = "H02" "a network fault that never fires" Killer::Gate(Gate::FaultFired),
            "mixed" both
            "Responses are said to be lost, and arrive."
            "";
        EmptyLedger = "H03" "a checker that sees an empty ledger" Killer::Gate(Gate::CheckerLooked),
            "mixed" both
            "What it looks at is never written."
            "";
        AtLeast = "H04" "at least once where once belongs" Killer::Gate(Gate::ZooKilled),
            "mixed" model
            "The checker of exactly once accepts two effects, and with it every mutant that it alone finds."
            "";
        ForgetsDraws = "H05" "recorded histories are not replayed" Killer::Gate(Gate::Deterministic),
            "mixed" both
            "The same seed gives another history, and a failure cannot be shown again."
            "";
    }
}
