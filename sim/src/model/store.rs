//! The sender's modelled store: what is in here is committed, and outlives every crash.

use std::collections::{BTreeMap, BTreeSet};

use hookproof_core::delivery::{Delivery, Phase};
use hookproof_core::gate::StoredGate;
use hookproof_core::id::{DeliveryId, EndpointId, EventId};
use hookproof_core::time::Timestamp;

use crate::fact::{EndpointNo, EventNo, PublishNo, Route};

/// The sender's tables.
#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) events: BTreeMap<EventNo, EventRow>,
    pub(super) by_publish: BTreeMap<PublishNo, EventNo>,
    pub(super) rows: Vec<Row>,
    pub(super) routes: BTreeMap<Route, usize>,
    pub(super) endpoints: Vec<EndpointRow>,
    pub(super) notices: Vec<NoticeRow>,
    /// Endpoint → what is scheduled, by its time.
    due: Vec<BTreeSet<(Timestamp, usize)>>,
    /// What is in flight, by the end of its lease.
    leased: BTreeSet<(Timestamp, usize)>,
    /// The latest time at which it was written, by the clock of whoever did it.
    pub(super) latest: Timestamp,
    next_event: u32,
    next_attempt: u64,
    /// S38: a wrong sender takes events up to this one to be fanned out.
    pub(super) watermark: EventNo,
    /// B04: the row that was written last, as it was before.
    pub(super) newest: Option<(usize, Delivery)>,
}

/// A row of `events`.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventRow {
    pub(super) publish: PublishNo,
    pub(super) created_at: Timestamp,
}

/// A row of `deliveries`.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) route: Route,
    pub(super) state: Delivery,
}

/// A row of `endpoints`.
#[derive(Clone, Debug)]
pub(super) struct EndpointRow {
    pub(super) is_enabled: bool,
    pub(super) is_deleted: bool,
    pub(super) gate: StoredGate,
    /// The secrets to sign with, the newest first.
    pub(super) keys: Vec<u32>,
    /// Who owns the endpoint's shard, until when, and in which epoch.
    pub(super) shard: Shard,
    id: EndpointId,
}

/// The lease of a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Shard {
    /// The process and its life.
    pub(super) owner: Option<(u32, u32)>,
    pub(super) until: Timestamp,
    pub(super) epoch: u64,
}

/// A row of the outbox of notices.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoticeRow {
    pub(super) route: Route,
    pub(super) is_sent: bool,
}

impl Store {
    #[expect(clippy::expect_used, reason = "letters and digits are an identifier")]
    pub(super) fn add_endpoint(&mut self) {
        let id = EndpointId::new(format!("ep{}", self.endpoints.len())).expect("a valid id");
        self.endpoints.push(EndpointRow {
            is_enabled: true,
            is_deleted: false,
            gate: StoredGate::default(),
            keys: vec![0],
            shard: Shard::default(),
            id,
        });
        self.due.push(BTreeSet::new());
    }

    pub(super) fn endpoint(&self, endpoint: EndpointNo) -> &EndpointRow {
        &self.endpoints[index(endpoint)]
    }

    pub(super) fn endpoint_mut(&mut self, endpoint: EndpointNo) -> &mut EndpointRow {
        &mut self.endpoints[index(endpoint)]
    }

    pub(super) fn endpoint_numbers(&self) -> impl Iterator<Item = EndpointNo> + use<> {
        (0..u32::try_from(self.endpoints.len()).unwrap_or(0)).map(EndpointNo)
    }

    /// The number that the next event gets.
    pub(super) fn new_event_number(&mut self) -> EventNo {
        self.next_event += 1;
        EventNo(self.next_event)
    }

    /// A number for an attempt, of whichever process.
    pub(super) fn new_attempt(&mut self) -> u64 {
        self.next_attempt += 1;
        self.next_attempt
    }

    pub(super) fn add_event(&mut self, event: EventNo, publish: PublishNo, created_at: Timestamp) {
        self.events.insert(event, EventRow { publish, created_at });
        self.by_publish.insert(publish, event);
        self.newest = None;
    }

    /// Events without any delivery.
    pub(super) fn not_fanned_out(&self) -> Vec<EventNo> {
        let first = |event| Route { event, endpoint: EndpointNo(0) };
        self.events
            .keys()
            .copied()
            .filter(|event| !self.routes.contains_key(&first(*event)))
            .collect()
    }

    /// A new delivery, due at once.
    #[expect(clippy::expect_used, reason = "letters and digits are an identifier")]
    pub(super) fn new_delivery(&self, route: Route, now: Timestamp) -> Delivery {
        let event = EventId::new(format!("e{}", route.event.0)).expect("a valid id");
        let endpoint = self.endpoint(route.endpoint).id.clone();
        Delivery::new(DeliveryId::of(&event, &endpoint), event, endpoint, now)
    }

    pub(super) fn add_row(&mut self, route: Route, state: Delivery) -> usize {
        let row = self.rows.len();
        self.rows.push(Row { route, state });
        self.routes.insert(route, row);
        self.index(row);
        row
    }

    pub(super) fn write(&mut self, row: usize, state: Delivery) {
        self.unindex(row);
        self.rows[row].state = state;
        self.index(row);
    }

    fn index(&mut self, row: usize) {
        let Row { route, state } = &self.rows[row];
        match state.phase {
            Phase::Scheduled { due, .. } => {
                self.due[index(route.endpoint)].insert((due, row));
            }
            Phase::InFlight { lease_until, .. } => {
                self.leased.insert((lease_until, row));
            }
            Phase::Delivered { .. } | Phase::Dead { .. } | Phase::Cancelled { .. } => {}
        }
    }

    fn unindex(&mut self, row: usize) {
        let Row { route, state } = &self.rows[row];
        match state.phase {
            Phase::Scheduled { due, .. } => {
                self.due[index(route.endpoint)].remove(&(due, row));
            }
            Phase::InFlight { lease_until, .. } => {
                self.leased.remove(&(lease_until, row));
            }
            Phase::Delivered { .. } | Phase::Dead { .. } | Phase::Cancelled { .. } => {}
        }
    }

    /// What is scheduled for an endpoint, the longest due first.
    pub(super) fn due(&self, endpoint: EndpointNo) -> &BTreeSet<(Timestamp, usize)> {
        &self.due[index(endpoint)]
    }

    /// The rows of an endpoint that are due by then, the longest due first.
    pub(super) fn due_by(
        &self,
        endpoint: EndpointNo,
        now: Timestamp,
    ) -> impl Iterator<Item = usize> {
        self.due(endpoint).iter().take_while(move |(due, _)| *due <= now).map(|(_, row)| *row)
    }

    /// The rows in flight whose lease has ended by then, those first that ended first.
    pub(super) fn leased_until(&self, until: Timestamp) -> impl Iterator<Item = usize> {
        self.leased.iter().take_while(move |(end, _)| *end <= until).map(|(_, row)| *row)
    }

    /// What is in flight, those first whose lease ends first.
    pub(super) fn leased(&self) -> &BTreeSet<(Timestamp, usize)> {
        &self.leased
    }

    /// The rows of an endpoint that are not settled.
    pub(super) fn open_rows(&self, endpoint: EndpointNo) -> Vec<usize> {
        let waiting = self.due[index(endpoint)].iter();
        let under_way =
            self.leased.iter().filter(|(_, row)| self.rows[*row].route.endpoint == endpoint);
        waiting.chain(under_way).map(|(_, row)| *row).collect()
    }

    /// Whether nothing waits, but for endpoints that are disabled.
    pub(super) fn is_settled(&self) -> bool {
        self.leased.is_empty()
            && self
                .due
                .iter()
                .zip(&self.endpoints)
                .all(|(due, row)| !row.is_enabled || due.is_empty())
    }

    /// How many deliveries there are, how many are delivered, and how many dead.
    pub(super) fn totals(&self) -> (u64, u64, u64) {
        let count = |wanted: fn(&Phase) -> bool| {
            let found = self.rows.iter().filter(|row| wanted(&row.state.phase)).count();
            u64::try_from(found).unwrap_or(u64::MAX)
        };
        (
            count(|_| true),
            count(|phase| matches!(phase, Phase::Delivered { .. })),
            count(|phase| matches!(phase, Phase::Dead { .. })),
        )
    }
}

fn index(endpoint: EndpointNo) -> usize {
    usize::try_from(endpoint.0).unwrap_or(usize::MAX)
}
