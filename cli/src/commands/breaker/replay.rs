//! What a breaker makes of a trace: each attempt asks the real gate, and tells it how it ended.

use hookproof_core::classify::{Classification, Signal, Verdict};
use hookproof_core::gate::{
    Admission, Breaker, BreakerRule, Cause, DeferReason, Gate, GateRule, Permit, Transition,
};
use hookproof_core::time::{Millis, Timestamp};
use serde::Serialize;

use super::trace::{Attempt, End};

/// What happened to an attempt, at its begin or at its end.
#[derive(Serialize)]
pub(super) struct Row {
    /// The line of the trace.
    line: usize,
    pub(super) since_start_ms: u64,
    /// What it ended with; `begins` for one that takes time.
    pub(super) outcome: String,
    /// `None` if the attempt was not made, or has not ended.
    pub(super) signal: Option<Signal>,
    /// Whether it is the breaker's probe.
    probe: bool,
    pub(super) breaker: &'static str,
    transition: Option<Moved>,
    pub(super) why: String,
}

/// How the breaker moved. Times are those of the rows: milliseconds since the first of them.
#[derive(Serialize)]
#[serde(tag = "to", rename_all = "snake_case")]
enum Moved {
    Opened {
        until_since_start_ms: u64,
        why: Cause,
    },
    Closed,
    /// The probe's deadline passed: the next attempt is a probe.
    ProbeExpired,
    Disabled {
        why: Reason,
    },
}

/// Why an endpoint is disabled.
#[derive(Serialize)]
#[serde(untagged)]
enum Reason {
    /// By the breaker.
    Breaker(Cause),
    /// By the agreement, whatever the breaker: the receiver wants no more events.
    Agreement { cause: &'static str },
}

/// An attempt that is under way.
struct UnderWay<'a> {
    attempt: &'a Attempt,
    ends: Timestamp,
    probe: bool,
    /// `None` if it never ends: then it is its deadline that comes.
    permit: Option<Permit>,
}

/// The gate of one endpoint, with what is under way.
struct Replay<'a> {
    rule: GateRule,
    agreement: &'a Classification,
    deadline: Millis,
    start: Timestamp,
    gate: Gate,
    under_way: Vec<UnderWay<'a>>,
    is_disabled: bool,
    rows: Vec<Row>,
}

/// Replays a trace, which has at least one attempt.
pub(super) fn replay(
    rule: BreakerRule,
    agreement: &Classification,
    deadline: Millis,
    trace: &[Attempt],
) -> Vec<Row> {
    // The breaker alone is asked: nothing else holds an attempt back.
    let rule = GateRule { concurrency_max: u32::MAX, breaker: Some(rule), ..GateRule::default() };
    let mut replay = Replay {
        rule,
        agreement,
        deadline,
        start: trace.first().map_or(Timestamp::from_millis(0), |attempt| attempt.at),
        gate: Gate::default(),
        under_way: Vec::new(),
        is_disabled: false,
        rows: Vec::new(),
    };
    for attempt in trace {
        replay.end_until(attempt.at);
        replay.begin(attempt);
    }
    replay.end_until(Timestamp::MAX);
    replay.rows
}

impl<'a> Replay<'a> {
    fn begin(&mut self, attempt: &'a Attempt) {
        let took = match &attempt.end {
            End::After(took, _) => *took,
            End::Never => self.deadline,
        };
        if self.is_disabled {
            let why = "the endpoint is disabled: no attempt is made";
            return self.row(attempt, attempt.at, false, |row| row.why = why.to_owned());
        }
        let permit = match self.gate.admit(&self.rule, attempt.at, self.deadline) {
            Admission::Go(permit) => permit,
            Admission::Defer { until, why } => {
                let why = self.held_back(until, why);
                return self.row(attempt, attempt.at, false, |row| row.why = why);
            }
        };
        let probe = permit.probe;
        if took > Millis::ZERO {
            let why = if probe { self.probing(permit.expires) } else { String::new() };
            self.row(attempt, attempt.at, probe, |row| {
                "begins".clone_into(&mut row.outcome);
                row.why = why;
            });
        }
        let ends = attempt.at.plus(took);
        let permit = matches!(attempt.end, End::After(..)).then_some(permit);
        self.under_way.push(UnderWay { attempt, ends, probe, permit });
        self.end_until(attempt.at);
    }

    /// Ends what is over at `now`, in the order in which it ends.
    fn end_until(&mut self, now: Timestamp) {
        loop {
            let due = self.under_way.iter().enumerate().filter(|(_, it)| it.ends <= now);
            let next = due.min_by_key(|(_, it)| (it.ends, it.attempt.line)).map(|(at, _)| at);
            let Some(next) = next else { return };
            let UnderWay { attempt, ends, probe, permit } = self.under_way.remove(next);
            match permit {
                Some(permit) => self.end(attempt, ends, permit),
                None => self.expire(attempt, ends, probe),
            }
        }
    }

    fn end(&mut self, attempt: &Attempt, now: Timestamp, permit: Permit) {
        let End::After(_, outcome) = &attempt.end else { return };
        let judgement = self.agreement.judge(outcome);
        let probe = permit.probe;
        let moved = self.gate.record(&self.rule, now, permit, judgement.signal);
        let (moved, why) = if judgement.verdict == Verdict::Gone {
            let why = Reason::Agreement { cause: "gone" };
            let told = "it wants no more events: disabled, its owner is told";
            (Some(Moved::Disabled { why }), told.to_owned())
        } else {
            let nothing = if probe { "the probe tells nothing" } else { "" };
            let why = moved.map_or_else(|| nothing.to_owned(), |moved| self.told(moved));
            (moved.map(|moved| self.moved(moved)), why)
        };
        self.is_disabled |= matches!(moved, Some(Moved::Disabled { .. }));
        self.row(attempt, now, probe, |row| {
            row.signal = Some(judgement.signal);
            row.transition = moved;
            row.why = why;
        });
    }

    /// The deadline of an attempt that never ended: its permit ends by itself.
    fn expire(&mut self, attempt: &Attempt, now: Timestamp, probe: bool) {
        // Whoever asks for room finds it.
        let _ = self.gate.room(&self.rule, now);
        let (moved, why) = if probe {
            let why = "the probe's deadline passed: another may go";
            (Some(Moved::ProbeExpired), why)
        } else {
            (None, "its deadline passed: it tells nothing")
        };
        self.row(attempt, now, probe, |row| {
            row.transition = moved;
            why.clone_into(&mut row.why);
        });
    }

    fn row(&mut self, attempt: &Attempt, now: Timestamp, probe: bool, fill: impl FnOnce(&mut Row)) {
        let outcome = match &attempt.end {
            End::After(_, outcome) => outcome.to_string(),
            End::Never => "never ended".to_owned(),
        };
        let breaker = match self.gate.breaker() {
            _ if self.is_disabled => "disabled",
            Breaker::Closed { .. } => "closed",
            Breaker::Open { .. } => "open",
            Breaker::HalfOpen { .. } => "half-open",
        };
        let since_start_ms = self.since(now).get();
        let mut row = Row {
            line: attempt.line,
            since_start_ms,
            outcome,
            signal: None,
            probe,
            breaker,
            transition: None,
            why: String::new(),
        };
        fill(&mut row);
        self.rows.push(row);
    }

    fn since(&self, at: Timestamp) -> Millis {
        at.since(self.start)
    }

    fn probing(&self, expires: Timestamp) -> String {
        format!("a probe, until {} at the latest", self.since(expires))
    }

    fn held_back(&self, until: Timestamp, why: DeferReason) -> String {
        let until = self.since(until);
        match why {
            DeferReason::ProbeUnderWay => {
                format!("a probe is under way, until {until} at the latest")
            }
            _ => format!("no attempt is made before {until}"),
        }
    }

    fn moved(&self, transition: Transition) -> Moved {
        match transition {
            Transition::Opened { until, why } => {
                Moved::Opened { until_since_start_ms: self.since(until).get(), why }
            }
            Transition::Closed => Moved::Closed,
            Transition::Disabled { why } => Moved::Disabled { why: Reason::Breaker(why) },
        }
    }

    fn told(&self, transition: Transition) -> String {
        match transition {
            Transition::Opened { until, why } => {
                format!("{}: pauses until {}", cause(why), self.since(until))
            }
            Transition::Closed => "the probe succeeded: resumes".to_owned(),
            Transition::Disabled { why } => format!("{}: disabled, its owner is told", cause(why)),
        }
    }
}

fn cause(why: Cause) -> String {
    match why {
        Cause::FailuresInARow { failures } => format!("{failures} failures in a row"),
        Cause::Window { failures, attempts } => {
            format!("{failures} of {attempts} in the window failed")
        }
        Cause::ProbeFailed => "the probe failed".to_owned(),
        Cause::FailingFor { span } => format!("nothing but failures for {span}"),
    }
}
