//! Each checker accepts a sound world and names what is wrong with an unsound one.

use hookproof_core::delivery::{DeadReason, Delivery, Origin, Phase};
use hookproof_core::id::{DeliveryId, EndpointId, EventId};
use hookproof_core::secret::{Secret, Secrets};
use hookproof_core::signature::sign;
use hookproof_core::time::Timestamp;

use super::{Checkers, Invariant, View};
use crate::journal::{Facts, Registered, WireRequest};
use crate::wire::{ReceiverSnapshot, SenderSnapshot};

const NOW: Timestamp = Timestamp::from_secs(1_767_225_600);
const KEY: [u8; 32] = [7; 32];
const BODY: &[u8] = b"{\"n\": 1.0}";

/// One event, published, delivered to one endpoint, with its effect.
#[derive(Clone)]
struct Sound {
    facts: Facts,
    sender: SenderSnapshot,
    receiver: ReceiverSnapshot,
}

fn delivery(phase: Phase) -> Delivery {
    let event_id = EventId::new("msg_1").unwrap();
    let endpoint_id = EndpointId::new("ep_1").unwrap();
    let id = DeliveryId::new("msg_1~ep_1").unwrap();
    Delivery {
        version: 2,
        attempts: 1,
        scheduled_attempts: 1,
        phase,
        ..Delivery::new(id, event_id, endpoint_id, NOW)
    }
}

fn request() -> WireRequest {
    let secrets = Secrets::one(Secret::from_bytes(KEY.to_vec()).unwrap());
    let signature = sign(&secrets, "msg_1", NOW.as_secs(), BODY);
    let header = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
    WireRequest {
        at: NOW,
        path: "/hooks/shop".to_owned(),
        headers: vec![
            header("webhook-id", "msg_1"),
            header("webhook-timestamp", &NOW.as_secs().to_string()),
            header("webhook-signature", &signature),
            header("hookproof-delivery", "msg_1~ep_1"),
            header("hookproof-attempt", "1"),
        ],
        body: BODY.to_vec(),
        is_claimed: true,
    }
}

fn sound() -> Sound {
    let key = ("shop".to_owned(), "msg_1".to_owned());
    let mut facts = Facts::default();
    facts.endpoints.push(Registered {
        endpoint_id: "ep_1".to_owned(),
        source: "shop".to_owned(),
        key: KEY.to_vec(),
    });
    facts.wanted.insert("order-1".to_owned(), BODY.to_vec());
    facts.acknowledged.insert("order-1".to_owned(), "msg_1".to_owned());
    facts.requests.push(request());
    facts.taken.insert(key.clone());
    let mut sender = SenderSnapshot::default();
    sender.events.insert("msg_1".to_owned(), ("order-1".to_owned(), BODY.to_vec()));
    sender.deliveries.push(delivery(Phase::Delivered { at: NOW }));
    sender.attempts.insert("msg_1~ep_1".to_owned(), 1);
    let mut receiver = ReceiverSnapshot::default();
    receiver.inbox.insert(key.clone(), "applied".to_owned());
    receiver.effects.insert(key, 1);
    Sound { facts, sender, receiver }
}

impl Sound {
    fn view(&self, is_drained: bool) -> View<'_> {
        View {
            now: NOW,
            facts: &self.facts,
            sender: &self.sender,
            receiver: &self.receiver,
            is_drained,
        }
    }
}

/// The first invariant that `after` breaks, having been `before`.
fn broken(before: &Sound, after: &Sound) -> Option<Invariant> {
    let mut checkers = Checkers::new(None);
    assert_eq!(checkers.look(&before.view(false)), Ok(()), "the world before is sound");
    checkers.look(&after.view(true)).err().map(|violation| violation.invariant)
}

fn check(expected: Invariant, spoil: impl Fn(&mut Sound)) {
    let mut spoilt = sound();
    spoil(&mut spoilt);
    assert_eq!(broken(&sound(), &spoilt), Some(expected));
}

/// Spoils a request and appends it to the sound one.
fn check_request(expected: Invariant, spoil: impl Fn(&mut WireRequest)) {
    check(expected, |world| {
        let mut second = request();
        spoil(&mut second);
        world.facts.requests.push(second);
    });
}

fn set(request: &mut WireRequest, name: &str, value: &str) {
    for (field, old) in &mut request.headers {
        if field == name {
            *old = value.as_bytes().to_vec();
        }
    }
}

#[test]
fn a_sound_world_passes_and_every_checker_sees_something() {
    let world = sound();
    let mut checkers = Checkers::new(None);
    assert_eq!(checkers.look(&world.view(true)), Ok(()));
    for (invariant, looks) in checkers.looks() {
        assert!(*looks > 0, "{invariant} saw nothing");
    }
    assert_eq!(checkers.looks().len(), 8);
}

#[test]
fn an_acknowledged_event_that_is_gone_is_a_loss() {
    check(Invariant::NoLoss, |world| {
        world.sender.events.clear();
        world.sender.deliveries.clear();
    });
}

#[test]
fn an_acknowledgement_that_names_another_event_is_a_loss() {
    check(Invariant::NoLoss, |world| {
        world.facts.acknowledged.insert("order-2".to_owned(), "msg_1".to_owned());
    });
}

#[test]
fn an_event_without_its_delivery_or_with_two_is_a_loss() {
    check(Invariant::NoLoss, |world| world.sender.deliveries.clear());
    check(Invariant::NoLoss, |world| {
        let twin = world.sender.deliveries[0].clone();
        world.sender.deliveries.push(twin);
    });
}

#[test]
fn a_delivery_of_no_event_is_a_loss_in_the_accounts() {
    check(Invariant::NoLoss, |world| {
        let mut stray = delivery(Phase::Delivered { at: NOW });
        stray.event_id = EventId::new("msg_2").unwrap();
        world.sender.deliveries.push(stray);
    });
}

#[test]
fn what_nobody_published_is_an_invention() {
    check(Invariant::NoInvention, |world| {
        world.facts.wanted.clear();
    });
    check(Invariant::NoInvention, |world| {
        world.receiver.effects.insert(("shop".to_owned(), "msg_2".to_owned()), 1);
    });
    check(Invariant::NoInvention, |world| {
        world.receiver.effects.insert(("other".to_owned(), "msg_1".to_owned()), 1);
    });
    check_request(Invariant::NoInvention, |request| set(request, "webhook-id", "msg_2"));
    check_request(Invariant::NoInvention, |request| request.body.push(b'\n'));
}

#[test]
fn a_second_effect_breaks_exactly_once() {
    check(Invariant::ExactlyOnce, |world| {
        world.receiver.effects.insert(("shop".to_owned(), "msg_1".to_owned()), 2);
    });
}

#[test]
fn a_delivered_event_without_an_effect_is_not_done() {
    check(Invariant::DoneMeansDone, |world| world.receiver.effects.clear());
    check(Invariant::DoneMeansDone, |world| {
        let taken = ("shop".to_owned(), "msg_9".to_owned());
        world.receiver.inbox.insert(taken, "applied".to_owned());
    });
    check(Invariant::DoneMeansDone, |world| {
        let key = ("shop".to_owned(), "msg_1".to_owned());
        world.receiver.inbox.insert(key, "pending".to_owned());
    });
}

#[test]
fn a_settled_delivery_that_moves_is_not_terminal() {
    check(Invariant::Terminal, |world| {
        world.sender.deliveries[0] =
            delivery(Phase::Scheduled { due: NOW, origin: Origin::Schedule });
    });
    check(Invariant::Terminal, |world| {
        world.sender.deliveries[0] =
            delivery(Phase::Dead { at: NOW, reason: DeadReason::Exhausted });
    });
}

#[test]
fn a_request_without_its_committed_row_is_not_written_ahead() {
    check_request(Invariant::WriteAhead, |request| request.is_claimed = false);
}

#[test]
fn attempts_that_differ_have_lost_their_identity() {
    check_request(Invariant::Identity, |request| {
        request.headers.retain(|(name, _)| name != "webhook-signature");
    });
    check_request(Invariant::Identity, |request| request.headers.reverse());
    check_request(Invariant::Identity, |request| set(request, "webhook-signature", "v1,AAAA"));
    check_request(Invariant::Identity, |request| {
        request.at = Timestamp::from_secs(NOW.as_secs() + 600);
    });
    check_request(Invariant::Identity, |request| {
        let later = NOW.as_secs() + 5;
        set(request, "webhook-timestamp", &later.to_string());
    });
}

#[test]
fn what_was_taken_or_recorded_and_is_gone_was_not_durable() {
    check(Invariant::Durable, |world| {
        world.receiver.inbox.clear();
    });
    check(Invariant::Durable, |world| world.sender.deliveries[0].version = 1);
    check(Invariant::Durable, |world| world.sender.attempts.clear());
    check(Invariant::Durable, |world| {
        world.sender.attempts.insert("msg_1~ep_1".to_owned(), 2);
    });
}
