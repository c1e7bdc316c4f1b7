//! What the receiver has in its books: the reference receiver's are looked into, one on trial is
//! asked for its own.

use std::collections::BTreeMap;

use hookproof_core::inbox::Entry;
use hookproof_core::time::Millis;

use super::observer::{EntryEnd, Eye, ReceiverChange, ReceiverSeen};
use crate::receiver::Report;

/// How long the world goes on after everything has drained: what the network still holds arrives.
const LINGER: Millis = Millis::from_secs(5);

/// How long a receiver on trial may take for the effects of what it has recorded.
const PATIENCE: Millis = Millis::from_secs(60);

/// The books of the one receiver of a history.
pub(super) enum Books {
    Reference(Eye<ReceiverSeen>),
    OnTrial(Reported),
}

impl Books {
    /// What has changed since the last look; `None` if nothing has.
    pub(super) fn look(&mut self) -> rusqlite::Result<Option<Vec<ReceiverChange>>> {
        match self {
            Self::Reference(eye) => eye.look(),
            Self::OnTrial(reported) => Ok(Some(reported.look()).filter(|list| !list.is_empty())),
        }
    }

    /// All entries of the reference receiver.
    pub(super) fn stock(&self) -> rusqlite::Result<Option<Vec<Entry>>> {
        match self {
            Self::Reference(eye) => eye.stock().map(Some),
            Self::OnTrial(_) => Ok(None),
        }
    }

    pub(super) fn are_on_trial(&self) -> bool {
        matches!(self, Self::OnTrial(_))
    }

    /// Whether a history cannot end yet. How a receiver on trial goes about its work nobody knows, so
    /// it only gets its time.
    pub(super) fn are_open(&self) -> bool {
        matches!(self, Self::Reference(eye) if !eye.seen.is_settled())
    }

    /// How long the world goes on once it could end.
    pub(super) fn linger(&self) -> Millis {
        match self {
            Self::OnTrial(reported) if !reported.is_settled() => PATIENCE,
            _ => LINGER,
        }
    }

    /// How many effects there are.
    pub(super) fn effects(&self) -> u64 {
        match self {
            Self::Reference(eye) => eye.seen.effects,
            Self::OnTrial(reported) => reported.last.effects.values().copied().map(u64::from).sum(),
        }
    }
}

/// Asks for the books, as they are committed.
type Ask = Box<dyn Fn() -> Report + Send>;

/// What a receiver on trial reports.
pub(super) struct Reported {
    source: String,
    ask: Ask,
    last: Report,
}

impl Reported {
    pub(super) fn new(source: &str, ask: Ask) -> Self {
        Self { source: source.to_owned(), ask, last: Report::default() }
    }

    /// Whether whatever is recorded has had its effect.
    fn is_settled(&self) -> bool {
        self.last.recorded.iter().all(|event| times(&self.last.effects, event) > 0)
    }

    fn look(&mut self) -> Vec<ReceiverChange> {
        let (new, old) = ((self.ask)(), &self.last);
        let mut changes = Vec::new();
        for event in new.recorded.difference(&old.recorded).cloned() {
            let source = self.source.clone();
            changes.push(ReceiverChange::Recorded { source, event, received_at: None });
        }
        for event in old.recorded.difference(&new.recorded).cloned() {
            let source = self.source.clone();
            changes.push(ReceiverChange::Forgotten { source, event });
        }
        for (event, count) in &new.effects {
            let before = times(&old.effects, event);
            for _ in before..*count {
                let (source, event) = (self.source.clone(), event.clone());
                changes.push(ReceiverChange::Effect { source, event });
            }
            if before == 0 && *count > 0 {
                let (source, event) = (self.source.clone(), event.clone());
                let end = EntryEnd::Applied;
                changes.push(ReceiverChange::WorkedOff { source, event, end });
            }
        }
        let is_less = |(event, count): &(&String, &u32)| times(&new.effects, event) < **count;
        for (event, _) in old.effects.iter().filter(is_less) {
            changes.push(ReceiverChange::Lost { event: event.clone() });
        }
        self.last = new;
        changes
    }
}

fn times(effects: &BTreeMap<String, u32>, event: &str) -> u32 {
    effects.get(event).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    use super::{ReceiverChange, Report, Reported};

    /// What is told of each report after the one before.
    fn check(reports: &[&[(&str, u32)]], told: &[&str]) {
        let present = Arc::new(Mutex::new(Report::default()));
        let asked = present.clone();
        let mut reported = Reported::new("shop", Box::new(move || asked.lock().unwrap().clone()));
        let mut all = Vec::new();
        for report in reports {
            let effects: BTreeMap<_, _> =
                report.iter().map(|(event, times)| ((*event).to_owned(), *times)).collect();
            *present.lock().unwrap() = Report::from(effects);
            all.extend(reported.look().into_iter().map(|change| match change {
                ReceiverChange::Recorded { event, .. } => format!("recorded {event}"),
                ReceiverChange::Forgotten { event, .. } => format!("forgotten {event}"),
                ReceiverChange::Stepped(entry) => format!("stepped {}", entry.event_id),
                ReceiverChange::Effect { event, .. } => format!("effect {event}"),
                ReceiverChange::Claimed { event, .. } => format!("claimed {event}"),
                ReceiverChange::WorkedOff { event, .. } => format!("done {event}"),
                ReceiverChange::Lost { event } => format!("lost {event}"),
                ReceiverChange::Entity { entity, .. } => format!("version of {entity}"),
            }));
        }
        assert_eq!(all, told);
    }

    #[test]
    fn each_effect_is_told_once_and_one_that_is_gone_is_lost() {
        check(&[&[("a", 1)]], &["recorded a", "effect a", "done a"]);
        check(&[&[("a", 1)], &[("a", 1)]], &["recorded a", "effect a", "done a"]);
        check(&[&[("a", 2)]], &["recorded a", "effect a", "effect a", "done a"]);
        check(&[&[("a", 1)], &[("a", 2)]], &["recorded a", "effect a", "done a", "effect a"]);
        check(&[&[("a", 0)], &[("a", 1)]], &["recorded a", "effect a", "done a"]);
        let gone = ["recorded a", "effect a", "done a", "forgotten a", "lost a"];
        check(&[&[("a", 1)], &[]], &gone);
    }
}
