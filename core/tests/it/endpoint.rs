//! Which events an endpoint wants.

use hookproof_core::endpoint::{Endpoint, EndpointStatus};
use hookproof_core::event::EventType;
use hookproof_core::id::EndpointId;
use hookproof_core::secret::{Secret, Secrets};

use crate::given::at;

fn check(subscribed: &[&str], published: &str, wanted: bool) {
    let event_type = |text: &&str| EventType::new(*text).expect("an event type");
    let endpoint = Endpoint {
        id: EndpointId::new("ep_1").expect("an id"),
        url: "https://shop.example/hooks".to_owned(),
        secrets: Secrets::one(Secret::from_entropy([1, 2, 3, 4])),
        event_types: subscribed.iter().map(event_type).collect(),
        status: EndpointStatus::Enabled,
        created_at: at(0),
    };
    assert_eq!(endpoint.wants(&event_type(&published)), wanted, "{subscribed:?} {published}");
}

#[test]
fn an_endpoint_wants_what_it_subscribed_to() {
    check(&["order.paid"], "order.paid", true);
    check(&["order.paid", "order.sent"], "order.sent", true);
    check(&["order.paid"], "order.sent", false);
}

#[test]
fn an_endpoint_without_event_types_wants_all() {
    check(&[], "order.paid", true);
}

#[test]
fn an_event_type_is_compared_as_a_whole_and_by_case() {
    check(&["order"], "order.paid", false);
    check(&["order.paid"], "order", false);
    check(&["Order.Paid"], "order.paid", false);
}
