//! What is kept of a history while it happens: the checkers' findings, the counts, and, if it is
//! wanted, the trace.

use std::collections::BTreeMap;

use hookproof_core::time::Timestamp;
use hookproof_runtime::crash_point::CrashPoint;

use crate::checkers::{Bounds, Checkers, Violation};
use crate::fact::{End, Fact};
use crate::fault::Fault;
use crate::history::Totals;
use crate::journal::{Counts, Line};
use crate::sometimes::Sometimes;
use crate::zoo::HarnessMutant;

/// The record of one history.
pub(super) struct Record {
    pub(super) checkers: Checkers,
    pub(super) violation: Option<Violation>,
    pub(super) counts: Counts,
    pub(super) sometimes: BTreeMap<Sometimes, u64>,
    pub(super) totals: Totals,
    lines: Option<Vec<Line>>,
}

impl Record {
    pub(super) fn new(bounds: Bounds, harness: Option<HarnessMutant>, traced: bool) -> Self {
        Self {
            checkers: Checkers::new(bounds, harness),
            violation: None,
            counts: Counts::default(),
            sometimes: BTreeMap::new(),
            totals: Totals::default(),
            lines: traced.then(Vec::new),
        }
    }

    /// Tells the checkers; the first violation ends the history.
    pub(super) fn fact(&mut self, now: Timestamp, fact: &Fact<'_>) {
        if self.violation.is_none()
            && let Err(violation) = self.checkers.see(now, fact)
        {
            self.violation = Some(violation);
        }
    }

    pub(super) fn end(&mut self, now: Timestamp, end: &End) {
        if self.violation.is_none()
            && let Err(violation) = self.checkers.end(now, end)
        {
            self.violation = Some(violation);
        }
    }

    /// Adds a line to the trace, if there is one; `text` is not even made otherwise.
    pub(super) fn line(
        &mut self,
        now: Timestamp,
        who: &'static str,
        text: impl FnOnce() -> String,
    ) {
        if let Some(lines) = &mut self.lines {
            lines.push(Line { at: now, who, text: text().into() });
        }
    }

    pub(super) fn take_lines(&mut self) -> Vec<Line> {
        self.lines.take().unwrap_or_default()
    }

    pub(super) fn sometimes(&mut self, what: Sometimes) {
        *self.sometimes.entry(what).or_insert(0) += 1;
    }

    pub(super) fn chose(&mut self, fault: Fault) {
        *self.counts.chosen.entry(fault).or_insert(0) += 1;
    }

    /// A fault was seen to have had an effect.
    pub(super) fn fired(&mut self, fault: Fault) {
        *self.counts.fired.entry(fault).or_insert(0) += 1;
    }

    pub(super) fn passed(&mut self, point: CrashPoint) {
        *self.counts.passed.entry(point).or_insert(0) += 1;
    }

    pub(super) fn crashed(&mut self, point: CrashPoint) {
        *self.counts.crashed_at.entry(point).or_insert(0) += 1;
    }
}
