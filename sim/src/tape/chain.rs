//! What was committed, each state from the one before by a decision.

use std::collections::BTreeMap;
use std::fmt::Debug;

use hookproof_core::delivery::{Delivery, Rejected};
use hookproof_core::id::{DeliveryId, EventId, SourceId};
use hookproof_core::inbox::{Entry, Receipt};

use super::{AskedGate, Compared, Event};

/// A machine's state.
trait State: Clone + PartialEq + Debug {
    fn version(&self) -> u64;
}

impl State for Delivery {
    fn version(&self) -> u64 {
        self.version
    }
}

impl State for Entry {
    fn version(&self) -> u64 {
        self.version
    }
}

/// Everything that was committed of one delivery or entry, and what may be next.
#[derive(Debug)]
struct Chain<S> {
    committed: Vec<S>,
    /// From what to what, as was decided: what is committed next must be one of these.
    decided: Vec<(Option<S>, S)>,
}

impl<S> Default for Chain<S> {
    fn default() -> Self {
        Self { committed: Vec::new(), decided: Vec::new() }
    }
}

impl<S: State> Chain<S> {
    /// A decision was made from `state`. Inside the transaction that is to write it, that may be what
    /// the same transaction has written before.
    fn decides(&mut self, state: &S, next: Option<&S>, in_transaction: bool) -> Result<(), String> {
        let is_committed = self.committed.contains(state);
        let is_being_written = in_transaction && self.decided.iter().any(|(_, to)| to == state);
        if !is_committed && !is_being_written {
            return Err(format!("a decision was made from {state:?}, which was never committed"));
        }
        if let Some(next) = next {
            self.decided.push((Some(state.clone()), next.clone()));
        }
        Ok(())
    }

    /// A state is committed.
    fn keeps(&mut self, state: &S) -> Result<(), String> {
        if !self.leads_to(state) {
            let last = self.committed.last();
            return Err(format!("{state:?} is committed, and no decision led there from {last:?}"));
        }
        self.decided.retain(|(_, to)| to.version() > state.version());
        self.committed.push(state.clone());
        Ok(())
    }

    /// Whether decisions lead to `state` from what was committed last, version by version.
    fn leads_to(&self, state: &S) -> bool {
        self.decided.iter().filter(|(_, to)| to == state).any(|(from, _)| {
            from.as_ref() == self.committed.last()
                || from.as_ref().is_some_and(|from| {
                    from.version().wrapping_add(1) == state.version() && self.leads_to(from)
                })
        })
    }

    fn ends_with(&self, stored: Option<&S>) -> Result<(), String> {
        if self.committed.last() == stored {
            return Ok(());
        }
        Err(format!("{stored:?} is stored at the end, and was last {:?}", self.committed.last()))
    }
}

/// The chains of both sides.
#[derive(Default)]
pub(super) struct Chains {
    deliveries: BTreeMap<DeliveryId, Chain<Delivery>>,
    entries: BTreeMap<(SourceId, EventId), Chain<Entry>>,
}

impl Chains {
    pub(super) fn see(&mut self, event: &Event, compared: &mut Compared) -> Result<(), String> {
        match event {
            Event::Delivery { state, result, .. }
            | Event::Gate { asked: AskedGate::Expire { state, result, .. }, .. } => {
                self.delivery(state, result.as_ref().ok().map(|step| step.next()))
            }
            Event::Gate { asked: AskedGate::Want { state, result, .. }, .. } => {
                self.delivery(state, result.step().map(|step| step.next()))
            }
            Event::DeliveryKept(delivery) => {
                compared.commits += 1;
                self.keeps(delivery)
            }
            Event::Answered { id, answer } => self.answered(id, answer),
            Event::Receipt { receipt: Receipt::New(entry), .. } => {
                self.entry(entry).decided.push((None, entry.clone()));
                Ok(())
            }
            Event::Receipt { stored: Some(stored), receipt: Receipt::Duplicate, .. } => {
                self.entry(stored).decides(stored, None, true)
            }
            Event::Entry { state, result, .. } => {
                let next = result.as_ref().ok().map(|step| step.next());
                self.entry(state).decides(state, next, true)
            }
            Event::EntryKept(entry) => {
                compared.commits += 1;
                self.entry(entry).keeps(entry)
            }
            Event::Stock { deliveries, entries } => self.stock(deliveries, entries.as_deref()),
            _ => Ok(()),
        }
    }

    fn delivery(&mut self, state: &Delivery, next: Option<&Delivery>) -> Result<(), String> {
        let chain = self.deliveries.entry(state.id.clone()).or_default();
        chain.decides(state, next, false)
    }

    fn entry(&mut self, entry: &Entry) -> &mut Chain<Entry> {
        self.entries.entry((entry.source.clone(), entry.event_id.clone())).or_default()
    }

    /// The first state of a delivery is written with its event, and needs no decision.
    fn keeps(&mut self, delivery: &Delivery) -> Result<(), String> {
        let chain = self.deliveries.entry(delivery.id.clone()).or_default();
        let Delivery { id, event_id, endpoint_id, created_at, .. } = delivery.clone();
        let first = Delivery::new(id, event_id, endpoint_id, created_at);
        if chain.committed.is_empty() {
            chain.decided.push((None, first));
        }
        chain.keeps(delivery)
    }

    /// Whoever had a step written is told the truth about it.
    fn answered(&self, id: &DeliveryId, answer: &Result<Delivery, Rejected>) -> Result<(), String> {
        let chain = self.deliveries.get(id).ok_or_else(|| format!("{id} was never committed"))?;
        let last = chain.committed.last().map_or(0, |last| last.version);
        match answer {
            Ok(delivery) if !chain.committed.contains(delivery) => {
                Err(format!("{delivery:?} was said to be committed, and is not"))
            }
            Err(Rejected::Stale { expected, stored }) if expected == stored || *stored > last => {
                Err(format!("{id} was said to be in version {stored}, and is in version {last}"))
            }
            _ => Ok(()),
        }
    }

    fn stock(&self, deliveries: &[Delivery], entries: Option<&[Entry]>) -> Result<(), String> {
        for (id, chain) in &self.deliveries {
            chain.ends_with(deliveries.iter().find(|stored| stored.id == *id))?;
        }
        let unknown = deliveries.iter().find(|stored| !self.deliveries.contains_key(&stored.id));
        if let Some(unknown) = unknown {
            return Err(format!("{unknown:?} is stored at the end, and was never committed"));
        }
        let Some(entries) = entries else { return Ok(()) };
        for ((source, event), chain) in &self.entries {
            let is_it = |stored: &&Entry| stored.source == *source && stored.event_id == *event;
            chain.ends_with(entries.iter().find(is_it))?;
        }
        match entries.len() == self.entries.values().filter(|c| !c.committed.is_empty()).count() {
            true => Ok(()),
            false => Err(format!("{} entries are stored at the end", entries.len())),
        }
    }
}
