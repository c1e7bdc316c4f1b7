//! The numbers by which the checkers know what the wire knows by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::fact::{EndpointNo, EventNo, PublishNo, Route};

/// Names of one kind, numbered in the order in which they were first heard of.
#[derive(Default)]
struct Numbers(BTreeMap<Arc<str>, u32>);

impl Numbers {
    fn of(&mut self, name: &str) -> u32 {
        if let Some(number) = self.0.get(name) {
            return *number;
        }
        let number = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0.insert(name.into(), number);
        number
    }
}

/// A delivery, numbered in the order in which they were first heard of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct DeliveryNo(u32);

/// All names. One that nobody knows gets a number of its own, which is then an invention.
#[derive(Default)]
pub(super) struct Names {
    publishes: Numbers,
    events: Numbers,
    sources: Numbers,
    entities: Numbers,
    /// The source that an endpoint, by its id, leads to.
    endpoints: BTreeMap<String, EndpointNo>,
    deliveries: Numbers,
    /// What each delivery is of, by its number.
    routes: Vec<Route>,
}

impl Names {
    /// The publish that the application calls so.
    pub(super) fn publish(&mut self, key: &str) -> PublishNo {
        PublishNo(self.publishes.of(key))
    }

    pub(super) fn event(&mut self, id: &str) -> EventNo {
        EventNo(self.events.of(id))
    }

    /// The receiver's integration of that name.
    pub(super) fn source(&mut self, name: &str) -> EndpointNo {
        EndpointNo(self.sources.of(name))
    }

    /// The entity of that name, of which every integration has one of its own.
    pub(super) fn entity(&mut self, source: &str, name: &str) -> u32 {
        self.entities.of(&format!("{source} {name}"))
    }

    /// The endpoint with that id, which leads to `url`. It is the source at the end of the path,
    /// unless that has an endpoint already.
    pub(super) fn endpoint_at(&mut self, id: &str, url: &str) -> EndpointNo {
        let source = self.source(url.rsplit('/').next().unwrap_or_default());
        let is_taken =
            self.endpoints.iter().any(|(other, number)| other != id && *number == source);
        let number = if is_taken { self.source(id) } else { source };
        self.endpoints.insert(id.to_owned(), number);
        number
    }

    /// The endpoint with that id.
    pub(super) fn endpoint(&mut self, id: &str) -> EndpointNo {
        match self.endpoints.get(id) {
            Some(number) => *number,
            None => self.source(id),
        }
    }

    /// The delivery with that id, which is of `event` to `endpoint`.
    pub(super) fn route_of(&mut self, id: &str, event: &str, endpoint: &str) -> Route {
        let route = Route { event: self.event(event), endpoint: self.endpoint(endpoint) };
        let number = self.deliveries.of(id);
        match self.routes.get_mut(index(number)) {
            Some(known) => *known = route,
            None => self.routes.push(route),
        }
        route
    }

    /// The delivery with that id. One that was never stored is of nothing.
    pub(super) fn delivery(&mut self, id: &str) -> DeliveryNo {
        let number = self.deliveries.of(id);
        if self.routes.len() <= index(number) {
            let nothing = Route { event: self.event(id), endpoint: self.source(id) };
            self.routes.push(nothing);
        }
        DeliveryNo(number)
    }

    pub(super) fn delivery_id(&self, delivery: DeliveryNo) -> &str {
        let known = self.deliveries.0.iter().find(|(_, number)| **number == delivery.0);
        known.map_or("", |(id, _)| id)
    }

    /// What a delivery is of, as its row said.
    pub(super) fn route(&self, delivery: DeliveryNo) -> Route {
        self.routes[index(delivery.0)]
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn a_name_keeps_its_number_and_a_new_one_gets_the_next() {
        let mut names = Names::default();
        let (first, second) = (names.event("msg_1"), names.event("msg_2"));
        assert_eq!((first.0, second.0), (0, 1));
        assert_eq!(names.event("msg_1"), first);
        assert_eq!(names.publish("msg_1").0, 0, "publishes are numbered by themselves");
    }

    #[test]
    fn an_endpoint_is_the_source_that_it_leads_to_and_a_second_one_is_not() {
        let mut names = Names::default();
        let source = names.source("shop");
        assert_eq!(names.endpoint_at("ep_1", "http://receiver/hooks/shop"), source);
        assert_eq!(names.endpoint("ep_1"), source);
        assert_ne!(names.endpoint_at("ep_2", "http://receiver/hooks/shop"), source);
        assert_ne!(names.endpoint("ep_3"), source);
    }

    #[test]
    fn a_delivery_that_was_never_stored_is_of_nothing_that_is_known() {
        let mut names = Names::default();
        let known = names.route_of("msg_1~ep_1", "msg_1", "ep_1");
        let delivery = names.delivery("msg_1~ep_1");
        assert_eq!(names.route(delivery), known);
        let delivery = names.delivery("msg_2~ep_1");
        let unknown = names.route(delivery);
        assert_ne!(unknown.event, known.event);
        assert_ne!(unknown.endpoint, known.endpoint);
        let stored = names.route_of("msg_2~ep_1", "msg_2", "ep_1");
        assert_eq!(names.route(delivery), stored, "its row was seen later than the attempt");
    }
}
