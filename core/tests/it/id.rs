//! Identifiers and event types.

use std::collections::BTreeSet;

use hookproof_core::event::{EVENT_TYPE_BYTES_MAX, EventType};
use hookproof_core::id::{
    DELIVERY_ID_BYTES_MAX, DeliveryId, EndpointId, EventId, ID_BYTES_MAX, IdError, SourceId,
};
use proptest::prelude::*;

use crate::given::{check_round_trip, laws};

fn check(text: &str, expected: Result<(), IdError>) {
    assert_eq!(EventId::new(text).map(|_| ()), expected, "event {text:?}");
    assert_eq!(EndpointId::new(text).map(|_| ()), expected, "endpoint {text:?}");
    assert_eq!(SourceId::new(text).map(|_| ()), expected, "source {text:?}");
}

#[test]
fn an_identifier_holds_letters_digits_and_three_marks() {
    check("msg_2KWPBgLlAfxdpx2AI54pPJ85f4W", Ok(()));
    check("0", Ok(()));
    check("_-:", Ok(()));
    check("urn:uuid:0f4f-Z", Ok(()));
}

#[test]
fn an_identifier_without_a_character_is_refused() {
    check("", Err(IdError::Empty));
}

#[test]
fn an_identifier_has_at_most_128_bytes() {
    check(&"x".repeat(ID_BYTES_MAX), Ok(()));
    check(&"x".repeat(ID_BYTES_MAX + 1), Err(IdError::TooLong(128)));
    assert_eq!(ID_BYTES_MAX, 128);
}

#[test]
fn any_other_character_is_refused_the_full_stop_and_the_tilde_above_all() {
    let stops = ["msg.1", ".", "a~b", "~", "a~", "~b"];
    let others = ["a b", " a", "a\n", "a/b", "a,b", "a\0", "é", "a=", "a+b", "a%20b"];
    for text in stops.into_iter().chain(others) {
        check(text, Err(IdError::ForbiddenCharacter));
    }
}

#[test]
fn an_identifier_error_says_what_is_allowed() {
    assert_eq!(IdError::Empty.to_string(), "an identifier may not be empty");
    assert_eq!(IdError::TooLong(128).to_string(), "an identifier may have at most 128 bytes");
    assert_eq!(
        IdError::ForbiddenCharacter.to_string(),
        "an identifier may hold only letters, digits, `_`, `-` and `:` \
         (a `.` would blur the signed boundary between id and timestamp)"
    );
}

#[test]
fn a_fresh_identifier_shows_what_it_names_and_all_its_bits() {
    assert_eq!(EventId::from_entropy([0, 0]).as_str(), "msg_00000000000000000000000000");
    assert_eq!(EndpointId::from_entropy([0, 31]).as_str(), "ep_0000000000000000000000000z");
    assert_eq!(EndpointId::from_entropy([0, 32]).as_str(), "ep_00000000000000000000000010");
    assert_eq!(EventId::from_entropy([u64::MAX; 2]).as_str(), "msg_7zzzzzzzzzzzzzzzzzzzzzzzzz");
    // 2⁶⁴ = 16 · 32¹²
    assert_eq!(EventId::from_entropy([1, 0]).as_str(), "msg_0000000000000g000000000000");
}

#[test]
fn a_delivery_is_named_after_its_event_and_its_endpoint() {
    let event = EventId::new("msg_1").unwrap();
    let endpoint = EndpointId::new("ep_1").unwrap();
    assert_eq!(DeliveryId::of(&event, &endpoint).as_str(), "msg_1~ep_1");
    let longest = "x".repeat(ID_BYTES_MAX);
    let event = EventId::new(longest.as_str()).unwrap();
    let endpoint = EndpointId::new(longest.as_str()).unwrap();
    let id = DeliveryId::of(&event, &endpoint);
    assert_eq!(id.as_str(), format!("{longest}~{longest}"));
    assert_eq!((id.as_str().len(), DELIVERY_ID_BYTES_MAX), (257, 257));
    assert_eq!(DeliveryId::new(id.as_str()), Ok(id));
}

fn check_delivery(text: &str, expected: Result<(), IdError>) {
    assert_eq!(DeliveryId::new(text).map(|_| ()), expected, "delivery {text:?}");
}

#[test]
fn a_delivery_identifier_is_an_event_and_an_endpoint_with_one_tilde_between() {
    check_delivery("msg_1~ep_1", Ok(()));
    check_delivery("a~b", Ok(()));
    check_delivery(":_-~-_:", Ok(()));
    for text in ["msg_1", ""] {
        check_delivery(text, Err(IdError::NoDelivery));
    }
    for text in ["a~b~c", "a~~b", "a~b~", "a.b~c", "a~b.c", "a b~c", "a~é", "a~b\n"] {
        check_delivery(text, Err(IdError::ForbiddenCharacter));
    }
    for text in ["~ep_1", "msg_1~", "~"] {
        check_delivery(text, Err(IdError::Empty));
    }
}

#[test]
fn neither_part_of_a_delivery_identifier_may_be_too_long() {
    let (longest, longer) = ("x".repeat(ID_BYTES_MAX), "x".repeat(ID_BYTES_MAX + 1));
    check_delivery(&format!("{longest}~{longest}"), Ok(()));
    check_delivery(&format!("{longer}~b"), Err(IdError::TooLong(128)));
    check_delivery(&format!("a~{longer}"), Err(IdError::TooLong(128)));
    check_delivery(&format!("{longer}~{longest}"), Err(IdError::TooLong(257)));
    let told = DeliveryId::new("é".repeat(10_000)).unwrap_err().to_string();
    assert_eq!(told, "an identifier may have at most 257 bytes");
}

#[test]
fn no_two_deliveries_of_different_events_or_endpoints_are_named_alike() {
    // Every text of up to four such characters, of which some are identifiers.
    let mut texts = vec![String::new()];
    for length in 0..4 {
        let shorter: Vec<_> = texts.iter().filter(|text| text.len() == length).cloned().collect();
        for end in ["a", "~", ":"] {
            texts.extend(shorter.iter().map(|text| format!("{text}{end}")));
        }
    }
    let events: Vec<_> = texts.iter().filter_map(|text| EventId::new(text.as_str()).ok()).collect();
    let endpoints: Vec<_> =
        texts.iter().filter_map(|text| EndpointId::new(text.as_str()).ok()).collect();
    let of = |event| endpoints.iter().map(move |endpoint| DeliveryId::of(event, endpoint));
    let names: BTreeSet<_> = events.iter().flat_map(of).collect();
    assert_eq!(names.len(), events.len() * endpoints.len());
    assert_eq!((texts.len(), events.len()), (121, 30));
}

#[test]
fn an_identifier_is_checked_when_it_is_read_from_json() {
    assert_eq!(serde_json::from_str::<EventId>(r#""a""#).unwrap(), EventId::new("a").unwrap());
    let error = serde_json::from_str::<EventId>(r#""a.b""#).unwrap_err();
    assert!(error.to_string().starts_with("an identifier may hold only letters"), "{error}");
}

#[test]
fn an_identifier_is_padded_where_a_table_asks_for_it() {
    assert_eq!(format!("{:>4}|", EventId::new("a").unwrap()), "   a|");
}

fn check_event_type(text: &str, valid: bool) {
    match EventType::new(text) {
        Ok(event_type) => {
            assert!(valid, "{text:?} was taken");
            assert_eq!(event_type.as_str(), text);
            assert_eq!(event_type.to_string(), text);
        }
        Err(error) => {
            assert!(!valid, "{error}");
            assert_eq!(
                error.to_string(),
                format!(
                    "`{}` is not an event type: write groups of letters, digits, `_` and `-` \
                     separated by full stops, as in `order.paid`, at most 128 bytes",
                    text.escape_debug()
                )
            );
        }
    }
}

#[test]
fn an_event_type_is_groups_separated_by_full_stops() {
    for text in ["order", "order.paid", "a.b.c.d", "Order-1.is_paid", "1.2", "-._"] {
        check_event_type(text, true);
    }
    for text in ["", ".", "order.", ".paid", "order..paid", "order paid", "order/paid", "é.b"] {
        check_event_type(text, false);
    }
    for text in ["order.paid\n", "order:paid", "*", "order.*"] {
        check_event_type(text, false);
    }
}

#[test]
fn an_event_type_has_at_most_128_bytes() {
    check_event_type(&"x".repeat(EVENT_TYPE_BYTES_MAX), true);
    check_event_type(&"x".repeat(EVENT_TYPE_BYTES_MAX + 1), false);
    assert_eq!(EVENT_TYPE_BYTES_MAX, 128);
}

#[test]
fn an_event_type_error_prints_no_control_character() {
    let error = EventType::new("a\u{1b}[31m\nb").unwrap_err().to_string();
    assert!(error.starts_with(r"`a\u{1b}[31m\nb` is not"), "{error}");
}

#[test]
fn an_event_type_is_checked_when_it_is_read_from_json() {
    assert_eq!(serde_json::to_string(&EventType::new("a.b").unwrap()).unwrap(), r#""a.b""#);
    assert!(serde_json::from_str::<EventType>(r#""a..b""#).is_err());
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn a_fresh_identifier_is_valid(bits in any::<[u64; 2]>()) {
        let id = EventId::from_entropy(bits);
        prop_assert_eq!(EventId::new(id.as_str()), Ok(id.clone()));
        check_round_trip(&id)?;
        check_round_trip(&EndpointId::from_entropy(bits))?;
        check_round_trip(&DeliveryId::of(&id, &EndpointId::from_entropy(bits)))?;
        check_round_trip(&SourceId::new(id.as_str()).unwrap())?;
    }

    #[test]
    fn fresh_identifiers_differ_and_sort_as_their_bits(
        one in any::<[u64; 2]>(),
        other in any::<[u64; 2]>(),
    ) {
        prop_assert_eq!(
            EventId::from_entropy(one).cmp(&EventId::from_entropy(other)),
            one.cmp(&other)
        );
    }

    #[test]
    fn a_fan_out_made_again_makes_the_same_deliveries_and_no_two_alike(
        events in any::<[[u64; 2]; 2]>(),
        endpoints in any::<[[u64; 2]; 2]>(),
    ) {
        let of = |event, endpoint| {
            DeliveryId::of(&EventId::from_entropy(event), &EndpointId::from_entropy(endpoint))
        };
        let first = of(events[0], endpoints[0]);
        prop_assert_eq!(&of(events[0], endpoints[0]), &first);
        prop_assert_eq!(of(events[1], endpoints[0]) == first, events[0] == events[1]);
        prop_assert_eq!(of(events[0], endpoints[1]) == first, endpoints[0] == endpoints[1]);
    }

    #[test]
    fn a_delivery_tells_its_event_and_its_endpoint_apart(
        event in "[A-Za-z0-9_:-]{1,128}",
        endpoint in "[A-Za-z0-9_:-]{1,128}",
    ) {
        let event = EventId::new(event).expect("an id");
        let endpoint = EndpointId::new(endpoint).expect("an id");
        let id = DeliveryId::of(&event, &endpoint);
        prop_assert_eq!(id.as_str().split_once('~'), Some((event.as_str(), endpoint.as_str())));
        prop_assert_eq!(DeliveryId::new(id.as_str()), Ok(id));
    }

    #[test]
    fn a_text_names_a_delivery_exactly_if_it_is_an_event_a_tilde_and_an_endpoint(
        text in prop_oneof!["[a_:~.é]{0,6}", "[a~]{120,140}", "a{120,140}~a{120,140}"],
    ) {
        // However it is cut, at most one way leaves two identifiers.
        let named = text.match_indices('~').filter_map(|(cut, _)| {
            let event = EventId::new(&text[..cut]).ok()?;
            let endpoint = EndpointId::new(&text[cut + 1..]).ok()?;
            Some(DeliveryId::of(&event, &endpoint))
        });
        let named: Vec<_> = named.collect();
        prop_assert!(named.len() <= 1, "{:?}", named);
        prop_assert_eq!(DeliveryId::new(text.as_str()).ok(), named.into_iter().next());
    }

    #[test]
    fn any_text_is_either_taken_as_it_is_or_refused(text in "\\PC{0,140}", close in "[a-z._:~ ]*") {
        for text in [text, close] {
            if let Ok(id) = EventId::new(text.clone()) {
                prop_assert_eq!(id.as_str(), &text);
                prop_assert!(!text.is_empty() && !text.contains(['.', '~']));
            }
            if let Ok(event_type) = EventType::new(text.clone()) {
                prop_assert_eq!(event_type.as_str(), &text);
                check_round_trip(&event_type)?;
            }
        }
    }
}
