//! What became of the events, counted on both sides, and the verdict.

use std::collections::BTreeSet;
use std::io::{self, Write as _};

use hookproof_core::id::EventId;
use hookproof_core::time::Millis;
use serde::{Deserialize, Serialize};

use super::fan_out::fan_out;
use super::peer::Peer;
use super::publish::Publications;
use crate::output::Output;
use crate::output::number::{Counted, Grouped};
use crate::output::table::{Column, Table};

/// How many questions are asked at once.
const AT_ONCE: usize = 8;
/// How many ids are printed of those that are wrong.
const IDS_PRINTED_MAX: usize = 5;

/// What the sender counts, as far as it matters here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
pub(super) struct SenderTotals {
    pub(super) events: u64,
    pub(super) scheduled: u64,
    pub(super) in_flight: u64,
    pub(super) delivered: u64,
    pub(super) dead: u64,
    pub(super) attempts: u64,
}

/// What the receiver counts, as far as it matters here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
pub(super) struct ReceiverTotals {
    pub(super) pending: u64,
    pub(super) claimed: u64,
    pub(super) effects: u64,
    pub(super) effects_twice: u64,
    pub(super) duplicates: u64,
}

impl SenderTotals {
    /// Deliveries that are not settled.
    pub(super) fn open(self) -> u64 {
        self.scheduled + self.in_flight
    }
}

impl ReceiverTotals {
    /// Events that wait for their effect.
    pub(super) fn open(self) -> u64 {
        self.pending + self.claimed
    }
}

/// What the run itself knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Course {
    pub(super) seed: u64,
    pub(super) events: u64,
    pub(super) kills_sender: u64,
    pub(super) kills_receiver: u64,
    pub(super) kills_at_work: u64,
    pub(super) took_ms: u64,
    /// How long it had stood still when it was given up.
    pub(super) stalled_ms: Option<u64>,
}

/// What became of the events.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Tally {
    #[serde(rename = "proven")]
    is_proven: bool,
    #[serde(flatten)]
    course: Course,
    accepted: u64,
    publishes_repeated: u64,
    acknowledgements_lost: u64,
    in_the_sender: u64,
    attempts: u64,
    undelivered: u64,
    delivered: u64,
    dead: u64,
    received_again: u64,
    unapplied: u64,
    effects: u64,
    twice: u64,
    lost: u64,
    twice_ids: Vec<EventId>,
    lost_ids: Vec<EventId>,
}

/// Asks both sides for their totals.
pub(super) async fn totals(sender: Peer, receiver: Peer) -> Option<(SenderTotals, ReceiverTotals)> {
    // In this order: what the sender has done with, the receiver has recorded by the time it is
    // asked. So if both have nothing open, there is nothing open.
    let sent = sender.get("/totals").await?;
    let received = receiver.get("/effects").await?;
    Some((sent, received))
}

impl Tally {
    /// Counts, and looks up every single accepted event. `None` if a side does not answer.
    pub(super) async fn take(
        sender: Peer,
        receiver: Peer,
        publications: &Publications,
        course: Course,
    ) -> Option<Self> {
        let (sent, received) = totals(sender, receiver).await?;
        let effects = effects_of(receiver, &publications.ids).await?;
        Some(Self::new(course, publications, sent, received, &effects))
    }

    fn new(
        course: Course,
        publications: &Publications,
        sent: SenderTotals,
        received: ReceiverTotals,
        effects: &[(EventId, u64)],
    ) -> Self {
        let ids_where = |wrong: fn(u64) -> bool| -> Vec<EventId> {
            effects.iter().filter(|(_, count)| wrong(*count)).map(|(id, _)| id.clone()).collect()
        };
        let lost_ids = ids_where(|count| count == 0);
        let twice_ids = ids_where(|count| count > 1);
        let accepted = publications.ids.len() as u64;
        let (lost, twice) = (lost_ids.len() as u64, received.effects_twice);
        let is_proven = course.stalled_ms.is_none()
            && accepted == course.events
            && sent.events == accepted
            && received.effects == accepted
            && lost == 0
            && twice == 0
            && twice_ids.is_empty();
        Self {
            is_proven,
            course,
            accepted,
            publishes_repeated: publications.repeated,
            acknowledgements_lost: publications.acknowledgements_lost,
            in_the_sender: sent.events,
            attempts: sent.attempts,
            undelivered: sent.open(),
            delivered: sent.delivered,
            dead: sent.dead,
            received_again: received.duplicates,
            unapplied: received.open(),
            effects: received.effects,
            twice,
            lost,
            twice_ids,
            lost_ids,
        }
    }

    /// Whether each event that was given was accepted, and had its effect exactly once.
    pub(super) fn is_proven(&self) -> bool {
        self.is_proven
    }

    /// Writes the table and the verdict.
    pub(super) fn write(&self, output: &mut Output) -> io::Result<()> {
        let paint = output.paint;
        self.counts().write(output, paint)?;
        writeln!(output)?;
        self.facts().write(output, paint)?;
        writeln!(output)?;
        if self.is_proven {
            let verdict = "each accepted event has had its effect exactly once";
            return writeln!(output, "{} {verdict}", paint.good("proven:"));
        }
        writeln!(output, "{} {}", paint.bad("not proven:"), self.faults().join("; "))
    }

    fn counts(&self) -> Table {
        let mut table = Table::new([Column::left(""), Column::right(""), Column::left("")]);
        let mut row = |name: &str, count: u64, note: String| {
            table.row([name.to_owned(), Grouped(count).to_string(), note]);
        };
        row("events accepted", self.accepted, self.of_publishing());
        row("delivered", self.delivered, format!("in {}", Counted(self.attempts, "attempt")));
        row("dead", self.dead, String::new());
        row("received again", self.received_again, "acknowledged, and without effect".to_owned());
        row("effects", self.effects, String::new());
        row("twice", self.twice, "events with more than one effect".to_owned());
        row("lost", self.lost, "accepted events without an effect".to_owned());
        table
    }

    fn of_publishing(&self) -> String {
        format!(
            "of {}; asked again {}, {} of them for a lost acknowledgement",
            Grouped(self.course.events),
            Counted(self.publishes_repeated, "time"),
            Grouped(self.acknowledgements_lost)
        )
    }

    fn facts(&self) -> Table {
        let Course { seed, kills_sender, kills_receiver, kills_at_work, took_ms, .. } = self.course;
        let mut facts = Table::of_facts();
        let kills = kills_sender + kills_receiver;
        let at_work = if kills_at_work == kills {
            "each with work left to do".to_owned()
        } else {
            format!("{} of {kills} with work left to do", Grouped(kills_at_work))
        };
        if kills > 0 {
            let each = format!("sender {kills_sender}, receiver {kills_receiver}");
            facts.fact("kills (SIGKILL)", format!("{each}; {at_work}"));
        }
        facts.fact("took", format!("{}.{} s", took_ms / 1000, took_ms % 1000 / 100));
        facts.fact("seed", format!("{seed} (--seed {seed} draws the same kills)"));
        facts
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let events = |count: u64| Counted(count, "event");
        if let Some(ms) = self.course.stalled_ms {
            let still = Millis::new(ms);
            let (sender, receiver) = (self.undelivered, self.unapplied);
            faults.push(format!(
                "nothing moved for {still}, with {sender} waiting in the sender and {receiver} in \
                 the receiver"
            ));
        }
        if self.accepted < self.course.events {
            let missing = self.course.events - self.accepted;
            faults.push(format!("{} never accepted", events(missing)));
        }
        if self.in_the_sender != self.accepted {
            let held = events(self.in_the_sender);
            faults.push(format!("the sender holds {held}, but acknowledged {}", self.accepted));
        }
        if self.lost > 0 {
            faults.push(format!("{} lost ({})", events(self.lost), some_of(&self.lost_ids)));
        }
        if self.twice > 0 || !self.twice_ids.is_empty() {
            let twice = self.twice.max(self.twice_ids.len() as u64);
            let ids = some_of(&self.twice_ids);
            faults.push(format!("{} with more than one effect ({ids})", events(twice)));
        }
        if faults.is_empty() {
            faults.push(format!("{} effects of {} events", self.effects, self.accepted));
        }
        faults
    }
}

fn some_of(ids: &[EventId]) -> String {
    let mut some: Vec<_> =
        ids.iter().take(IDS_PRINTED_MAX).map(|id| id.as_str().to_owned()).collect();
    if ids.len() > IDS_PRINTED_MAX {
        some.push(format!("and {} more", ids.len() - IDS_PRINTED_MAX));
    }
    some.join(", ")
}

/// The number of effects of each event, asked one by one.
async fn effects_of(receiver: Peer, ids: &BTreeSet<EventId>) -> Option<Vec<(EventId, u64)>> {
    #[derive(Deserialize)]
    struct Effects {
        count: u64,
    }
    let mut results = fan_out(ids.iter().cloned(), AT_ONCE, move |id: EventId| async move {
        let effects: Option<Effects> = receiver.get(&format!("/effects/{id}")).await;
        effects.map(|effects| (id, effects.count))
    });
    let mut counted = Vec::with_capacity(ids.len());
    while let Some(result) = results.recv().await {
        counted.push(result?);
    }
    Some(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> EventId {
        EventId::from_entropy([0, number])
    }

    /// A run of three events in which each has had `effects[n]` effects.
    fn tally(effects: [u64; 3]) -> Tally {
        let course = Course {
            seed: 7,
            events: 3,
            kills_sender: 1,
            kills_receiver: 1,
            kills_at_work: 2,
            took_ms: 1234,
            stalled_ms: None,
        };
        let publications =
            Publications { ids: (0..3).map(id).collect(), ..Publications::default() };
        let sent = SenderTotals { events: 3, delivered: 3, attempts: 4, ..SenderTotals::default() };
        let received = ReceiverTotals {
            effects: effects.iter().sum(),
            effects_twice: effects.iter().filter(|count| **count > 1).count() as u64,
            ..ReceiverTotals::default()
        };
        let effects: Vec<_> = (0..3).map(id).zip(effects).collect();
        Tally::new(course, &publications, sent, received, &effects)
    }

    #[test]
    fn one_effect_for_each_event_proves_it() {
        assert!(tally([1, 1, 1]).is_proven());
    }

    #[test]
    fn a_lost_event_disproves_it_by_name() {
        let tally = tally([1, 0, 1]);
        assert!(!tally.is_proven());
        assert_eq!(tally.lost_ids, [id(1)]);
        assert_eq!(tally.faults(), [format!("1 event lost ({})", id(1))]);
    }

    #[test]
    fn a_second_effect_disproves_it_even_if_the_sum_is_right() {
        let tally = tally([2, 0, 1]);
        assert_eq!(tally.effects, 3);
        assert!(!tally.is_proven());
        assert_eq!(tally.faults().len(), 2);
    }

    #[test]
    fn an_event_that_was_not_accepted_disproves_it() {
        let mut tally = tally([1, 1, 1]);
        tally.course.events = 4;
        let sent = SenderTotals { events: 3, ..SenderTotals::default() };
        let received = ReceiverTotals { effects: 3, ..ReceiverTotals::default() };
        let ids: BTreeSet<_> = (0..3).map(id).collect();
        let effects: Vec<_> = ids.iter().cloned().map(|id| (id, 1)).collect();
        let publications = Publications { ids, ..Publications::default() };
        let tally = Tally::new(tally.course, &publications, sent, received, &effects);
        assert!(!tally.is_proven());
        assert_eq!(tally.faults(), ["1 event never accepted"]);
    }

    #[test]
    fn a_run_that_stood_still_proves_nothing() {
        let mut tally = tally([1, 1, 1]);
        let course = Course { stalled_ms: Some(120_000), ..tally.course };
        tally = Tally { course, is_proven: false, ..tally };
        assert_eq!(
            tally.faults(),
            ["nothing moved for 2m, with 0 waiting in the sender and 0 in the receiver"]
        );
    }

    #[test]
    fn only_a_few_ids_are_printed() {
        let ids: Vec<_> = (0..7).map(id).collect();
        assert!(some_of(&ids).ends_with("and 2 more"));
        assert_eq!(some_of(&ids[..1]), id(0).as_str());
    }
}
