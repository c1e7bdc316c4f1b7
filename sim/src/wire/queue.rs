//! What the sender has in its store: the reference sender's is looked into, one on trial is asked for
//! its own.

use std::collections::BTreeSet;

use hookproof_core::delivery::{DeadReason, Delivery, Origin, Phase};
use hookproof_core::id::{DeliveryId, EndpointId, EventId};
use hookproof_core::time::Timestamp;

use super::observer::{Eye, SenderChange, SenderSeen};
use crate::history::epoch;
use crate::sender::Report;

/// The store of the one sender of a history.
pub(super) enum Queue {
    Reference(Box<Eye<SenderSeen>>),
    OnTrial(Box<Reported>),
}

impl Queue {
    /// What has changed since the last look; `None` if nothing has.
    pub(super) fn look(&mut self) -> rusqlite::Result<Option<Vec<SenderChange>>> {
        match self {
            Self::Reference(eye) => eye.look(),
            Self::OnTrial(reported) => Ok(Some(reported.look()).filter(|list| !list.is_empty())),
        }
    }

    /// What was seen at the last look.
    pub(super) fn seen(&self) -> &SenderSeen {
        match self {
            Self::Reference(eye) => &eye.seen,
            Self::OnTrial(reported) => &reported.seen,
        }
    }

    /// Takes a delivery for stored like this, where there is no store.
    pub(super) fn assumes(&mut self, state: &Delivery) {
        match self {
            Self::Reference(eye) => eye.seen.assumes(state),
            Self::OnTrial(reported) => reported.seen.assumes(state),
        }
    }

    pub(super) fn is_on_trial(&self) -> bool {
        matches!(self, Self::OnTrial(_))
    }

    /// All deliveries, by a look of its own.
    pub(super) fn stock(&self) -> rusqlite::Result<Vec<Delivery>> {
        match self {
            Self::Reference(eye) => eye.stock(),
            Self::OnTrial(reported) => Ok(reported.seen.deliveries().cloned().collect()),
        }
    }
}

/// What a sender on trial reports. It has one endpoint, and of each event one delivery; what these
/// have gone through nobody is told.
pub(super) struct Reported {
    url: String,
    ask: Box<dyn Fn() -> Report + Send>,
    last: Option<Report>,
    seen: SenderSeen,
}

/// The name of the one endpoint.
const ENDPOINT: &str = "endpoint";

impl Reported {
    pub(super) fn new(url: String, ask: Box<dyn Fn() -> Report + Send>) -> Self {
        Self { url, ask, last: None, seen: SenderSeen::default() }
    }

    fn look(&mut self) -> Vec<SenderChange> {
        let new = (self.ask)();
        let mut changes = Vec::new();
        let old = self.last.take().unwrap_or_else(|| {
            changes.push(SenderChange::Registered { id: ENDPOINT.into(), url: self.url.clone() });
            Report::default()
        });
        for id in new.all().difference(&old.all()) {
            let (id, key) = ((*id).to_owned(), (*id).to_owned());
            changes.push(SenderChange::Stored { id, key, body: Vec::new() });
        }
        let places = [
            (&new.pending, &old.pending, waits()),
            (&new.delivered, &old.delivered, Phase::Delivered { at: epoch() }),
            (&new.dead, &old.dead, Phase::Dead { at: epoch(), reason: DeadReason::Refused }),
        ];
        for (place, before, phase) in places {
            changes.extend(place.difference(before).filter_map(|id| self.moves(id, phase)));
        }
        let lost = |id: &&str| !new.all().contains(id);
        for id in old.all().iter().filter(|id| lost(id)) {
            changes.push(SenderChange::Lost { delivery: delivery_of(id).0 });
        }
        let doubled: BTreeSet<&String> = [
            (&new.pending, &new.delivered),
            (&new.pending, &new.dead),
            (&new.delivered, &new.dead),
        ]
        .iter()
        .flat_map(|(one, other)| one.intersection(other))
        .collect();
        for id in doubled {
            changes.push(SenderChange::Doubled { delivery: delivery_of(id).0 });
        }
        self.last = Some(new);
        changes
    }

    /// A delivery is in another place. An id that cannot be one is stored, and that is wrong enough.
    fn moves(&mut self, id: &str, phase: Phase) -> Option<SenderChange> {
        let (event, endpoint) = (EventId::new(id).ok()?, EndpointId::new(ENDPOINT).ok()?);
        let key = DeliveryId::of(&event, &endpoint);
        let state = match self.seen.delivery(key.as_str()) {
            Some(before) => Delivery { version: before.version + 1, phase, ..before.clone() },
            None => Delivery { phase, ..Delivery::new(key, event, endpoint, epoch()) },
        };
        self.seen.assumes(&state);
        Some(SenderChange::Written { state: Box::new(state), record: None, has_notice: false })
    }
}

/// When it is due only the sender knows.
fn waits() -> Phase {
    Phase::Scheduled { due: Timestamp::MAX, origin: Origin::Schedule }
}

/// The names of the delivery of an event and of its endpoint.
pub(super) fn delivery_of(event: &str) -> (String, &'static str) {
    (format!("{event}~{ENDPOINT}"), ENDPOINT)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::{Arc, Mutex};

    use super::{Report, Reported, SenderChange};

    fn ids(list: &[&str]) -> BTreeSet<String> {
        list.iter().map(ToString::to_string).collect()
    }

    /// What is told of each report, given as what is pending, delivered and dead, after the one before.
    fn check(reports: &[[&[&str]; 3]], told: &[&str]) {
        let present = Arc::new(Mutex::new(Report::default()));
        let asked = present.clone();
        let ask = Box::new(move || asked.lock().unwrap().clone());
        let mut reported = Reported::new("http://receiver.sim/webhooks".to_owned(), ask);
        assert_eq!(reported.look().len(), 1, "the endpoint");
        let mut all = Vec::new();
        for [pending, delivered, dead] in reports {
            *present.lock().unwrap() =
                Report { pending: ids(pending), delivered: ids(delivered), dead: ids(dead) };
            all.extend(reported.look().into_iter().map(|change| {
                match change {
                    SenderChange::Stored { id, .. } => format!("stored {id}"),
                    SenderChange::Written { state, .. } => {
                        format!("{} of {} is {:?}", state.version, state.event_id, state.phase)
                            .split(" {")
                            .next()
                            .unwrap()
                            .to_owned()
                    }
                    SenderChange::Lost { delivery } => format!("lost {delivery}"),
                    SenderChange::Doubled { delivery } => format!("doubled {delivery}"),
                    other => format!("{other:?}"),
                }
            }));
        }
        assert_eq!(all, told);
    }

    #[test]
    fn each_event_is_told_where_it_goes_and_one_that_is_nowhere_or_twice_too() {
        let stored = ["stored a", "0 of a is Scheduled"];
        check(&[[&["a"], &[], &[]]], &stored);
        check(&[[&["a"], &[], &[]], [&["a"], &[], &[]]], &stored);
        check(
            &[[&["a"], &[], &[]], [&[], &["a"], &[]]],
            &[&stored[..], &["1 of a is Delivered"]].concat(),
        );
        check(
            &[[&["a"], &[], &[]], [&[], &[], &["a"]]],
            &[&stored[..], &["1 of a is Dead"]].concat(),
        );
        check(
            &[[&["a"], &[], &[]], [&[], &[], &[]]],
            &[&stored[..], &["lost a~endpoint"]].concat(),
        );
        let twice = ["1 of a is Delivered", "doubled a~endpoint"];
        check(&[[&["a"], &[], &[]], [&["a"], &["a"], &[]]], &[&stored[..], &twice].concat());
    }
}
