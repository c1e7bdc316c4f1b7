//! What happened in one history: the trace and the counts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hookproof_core::time::Timestamp;
use hookproof_runtime::crash_point::CrashPoint;
use sha2::{Digest as _, Sha256};

use crate::fault::Fault;
use crate::sometimes::Sometimes;
use crate::tape::Recorder;

/// One line of the trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// When, by the simulated clock.
    pub at: Timestamp,
    /// Who.
    pub who: &'static str,
    /// What happened.
    pub text: Cow<'static, str>,
}

impl Line {
    /// Whether the line is only a host passing a crash point.
    #[must_use]
    pub fn is_step(&self) -> bool {
        CrashPoint::ALL.iter().any(|point| point.as_str() == self.text)
    }
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<Line>,
    breakdown: Option<String>,
    chosen: BTreeMap<Fault, u64>,
    fired: BTreeMap<Fault, u64>,
    passed: BTreeMap<CrashPoint, u64>,
    crashed_at: BTreeMap<CrashPoint, u64>,
    sometimes: BTreeMap<Sometimes, u64>,
}

/// The record of one history, shared by all its parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    state: Arc<Mutex<State>>,
    tape: Recorder,
}

/// How often what happened.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// How often each fault was decided.
    pub chosen: BTreeMap<Fault, u64>,
    /// How often each fault was seen to have an effect.
    pub fired: BTreeMap<Fault, u64>,
    /// How often each crash point was passed.
    pub passed: BTreeMap<CrashPoint, u64>,
    /// How often a host ended at each crash point.
    pub crashed_at: BTreeMap<CrashPoint, u64>,
    /// How often each interesting state was reached.
    pub sometimes: BTreeMap<Sometimes, u64>,
}

impl Journal {
    /// Adds a line to the trace.
    pub(crate) fn line(
        &self,
        at: Timestamp,
        who: &'static str,
        text: impl Into<Cow<'static, str>>,
    ) {
        self.lock().lines.push(Line { at, who, text: text.into() });
    }

    /// A fault was decided; whether it has an effect is seen later.
    pub(crate) fn chose(&self, fault: Fault) {
        *self.lock().chosen.entry(fault).or_insert(0) += 1;
    }

    /// A state was reached that is worth having been in.
    pub(crate) fn reached(&self, what: Sometimes) {
        *self.lock().sometimes.entry(what).or_insert(0) += 1;
    }

    /// A fault was seen to have an effect.
    pub(crate) fn fired(&self, at: Timestamp, who: &'static str, fault: Fault, detail: &str) {
        let mut state = self.lock();
        *state.fired.entry(fault).or_insert(0) += 1;
        let text = if detail.is_empty() { fault.to_string() } else { format!("{fault}: {detail}") };
        state.lines.push(Line { at, who, text: text.into() });
    }

    /// A host passed a crash point.
    pub(crate) fn passed(&self, at: Timestamp, who: &'static str, point: CrashPoint) {
        let mut state = self.lock();
        *state.passed.entry(point).or_insert(0) += 1;
        state.lines.push(Line { at, who, text: point.as_str().into() });
    }

    /// A host ended at a crash point.
    pub(crate) fn crashed(&self, at: Timestamp, who: &'static str, point: CrashPoint) {
        let mut state = self.lock();
        *state.crashed_at.entry(point).or_insert(0) += 1;
        state.lines.push(Line { at, who, text: format!("CRASH at {point}").into() });
    }

    /// Something broke that no fault explains.
    pub(crate) fn breakdown(&self, at: Timestamp, who: &'static str, what: &str) {
        let mut state = self.lock();
        state.lines.push(Line { at, who, text: format!("BREAKDOWN {what}").into() });
        state.breakdown.get_or_insert_with(|| format!("{who}: {what}"));
    }

    /// The first breakdown, if there was one.
    pub(crate) fn first_breakdown(&self) -> Option<String> {
        self.lock().breakdown.clone()
    }

    /// The tape of what is seen of core's machines.
    pub(crate) fn tape(&self) -> &Recorder {
        &self.tape
    }

    /// The trace so far.
    pub(crate) fn lines(&self) -> Vec<Line> {
        self.lock().lines.clone()
    }

    /// How often what happened so far.
    pub(crate) fn counts(&self) -> Counts {
        let state = self.lock();
        Counts {
            chosen: state.chosen.clone(),
            fired: state.fired.clone(),
            passed: state.passed.clone(),
            crashed_at: state.crashed_at.clone(),
            sometimes: state.sometimes.clone(),
        }
    }

    /// A digest of the whole trace, 16 hexadecimal digits: two runs are the same history if and,
    /// but for collisions, only if it is the same.
    pub(crate) fn hash(&self) -> String {
        let mut hasher = Sha256::new();
        for line in &self.lock().lines {
            hasher.update(line.at.as_millis().to_le_bytes());
            hasher.update(line.who.as_bytes());
            hasher.update([0]);
            hasher.update(line.text.as_bytes());
            hasher.update([0]);
        }
        hasher.finalize().iter().take(8).fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
