//! For stores around another one.

/// What the macro's signatures are made of.
#[doc(hidden)]
pub mod types {
    pub use hookproof_core::delivery::{Committed, Delivery, Rejected, Step};
    pub use hookproof_core::endpoint::{Endpoint, EndpointStatus};
    pub use hookproof_core::event::Event;
    pub use hookproof_core::gate::StoredGate;
    pub use hookproof_core::id::{DeliveryId, EndpointId, EventId};
    pub use hookproof_core::secret::Secrets;
    pub use hookproof_core::time::Timestamp;
    pub use hookproof_runtime::database::StoreError;
}

/// Writes those methods of a [`Store`](crate::store::Store) that a store around another one leaves to
/// it: `|this, method| inner => names of methods`. `inner` is an expression for the other store, in
/// which `this` is the one around it and `method` the name of the method; it may return early.
///
/// ```
/// use hookproof_runtime::database::StoreError;
/// use hookproof_sender::pass_on;
/// use hookproof_sender::store::{Publication, Published, Store};
///
/// /// A store that says when something is published.
/// #[derive(Clone)]
/// struct Talkative<S>(S);
///
/// impl<S: Store> Store for Talkative<S> {
///     async fn publish(&self, publication: Publication) -> Result<Published, StoreError> {
///         println!("{}", publication.event.id);
///         self.0.publish(publication).await
///     }
///
///     pass_on! { |this, _method| this.0 =>
///         create_endpoint, endpoints, gate, set_endpoint_status, set_secrets, delete_endpoint, orphans,
///         event, due_endpoints, due_deliveries, aged_deliveries, claim, commit, commit_each, leased,
///         next_lease_end, delivery, deliveries, history, totals, pending_notices, notice_sent
///     }
/// }
/// ```
#[macro_export]
macro_rules! pass_on {
    (|$this:ident, $name:ident| $inner:expr => $($method:ident),+ $(,)?) => {
        $( $crate::pass_on!(@ $method, $this, $name, $inner); )+
    };
    (# $method:ident($($arg:ident: $type:ty),*) -> $ok:ty, $this:ident, $name:ident, $inner:expr) => {
        async fn $method(
            &self,
            $($arg: $type),*
        ) -> Result<$ok, $crate::store::types::StoreError> {
            let ($this, $name) = (self, stringify!($method));
            let _ = $name;
            ($inner).$method($($arg),*).await
        }
    };
    (@ create_endpoint, $($rest:tt)+) => {
        $crate::pass_on! {
            # create_endpoint(endpoint: $crate::store::types::Endpoint) -> (),
            $($rest)+
        }
    };
    (@ endpoints, $($rest:tt)+) => {
        $crate::pass_on! {
            # endpoints() -> Vec<$crate::store::types::Endpoint>,
            $($rest)+
        }
    };
    (@ gate, $($rest:tt)+) => {
        $crate::pass_on! {
            # gate(
                id: $crate::store::types::EndpointId
            ) -> Option<$crate::store::types::StoredGate>,
            $($rest)+
        }
    };
    (@ set_endpoint_status, $($rest:tt)+) => {
        $crate::pass_on! {
            # set_endpoint_status(
                id: $crate::store::types::EndpointId,
                status: $crate::store::types::EndpointStatus,
                gate: Option<$crate::store::types::StoredGate>
            ) -> bool,
            $($rest)+
        }
    };
    (@ set_secrets, $($rest:tt)+) => {
        $crate::pass_on! {
            # set_secrets(
                id: $crate::store::types::EndpointId,
                secrets: $crate::store::types::Secrets
            ) -> bool,
            $($rest)+
        }
    };
    (@ delete_endpoint, $($rest:tt)+) => {
        $crate::pass_on! {
            # delete_endpoint(id: $crate::store::types::EndpointId) -> bool,
            $($rest)+
        }
    };
    (@ orphans, $($rest:tt)+) => {
        $crate::pass_on! {
            # orphans(limit: u32) -> $crate::store::Orphans,
            $($rest)+
        }
    };
    (@ publish, $($rest:tt)+) => {
        $crate::pass_on! {
            # publish(publication: $crate::store::Publication) -> $crate::store::Published,
            $($rest)+
        }
    };
    (@ event, $($rest:tt)+) => {
        $crate::pass_on! {
            # event(id: $crate::store::types::EventId) -> Option<$crate::store::types::Event>,
            $($rest)+
        }
    };
    (@ due_endpoints, $($rest:tt)+) => {
        $crate::pass_on! {
            # due_endpoints(
                now: $crate::store::types::Timestamp
            ) -> Vec<$crate::store::DueEndpoint>,
            $($rest)+
        }
    };
    (@ due_deliveries, $($rest:tt)+) => {
        $crate::pass_on! {
            # due_deliveries(
                endpoint: $crate::store::types::EndpointId,
                now: $crate::store::types::Timestamp,
                limit: u32
            ) -> Vec<$crate::store::types::Delivery>,
            $($rest)+
        }
    };
    (@ aged_deliveries, $($rest:tt)+) => {
        $crate::pass_on! {
            # aged_deliveries(
                endpoint: $crate::store::types::EndpointId,
                before: $crate::store::types::Timestamp,
                limit: u32
            ) -> $crate::store::Aged,
            $($rest)+
        }
    };
    (@ claim, $($rest:tt)+) => {
        $crate::pass_on! {
            # claim(
                steps: Vec<$crate::store::types::Step>,
                gates: Vec<($crate::store::types::EndpointId, $crate::store::types::StoredGate)>
            ) -> Vec<Result<$crate::store::Claimed, $crate::store::types::Rejected>>,
            $($rest)+
        }
    };
    (@ commit, $($rest:tt)+) => {
        $crate::pass_on! {
            # commit(
                step: $crate::store::types::Step,
                beside: $crate::store::Beside
            ) -> Result<$crate::store::types::Committed, $crate::store::types::Rejected>,
            $($rest)+
        }
    };
    (@ commit_each, $($rest:tt)+) => {
        $crate::pass_on! {
            # commit_each(
                steps: Vec<$crate::store::types::Step>
            ) -> Vec<Result<$crate::store::types::Committed, $crate::store::types::Rejected>>,
            $($rest)+
        }
    };
    (@ leased, $($rest:tt)+) => {
        $crate::pass_on! {
            # leased(
                until: $crate::store::types::Timestamp,
                limit: u32
            ) -> Vec<$crate::store::types::Delivery>,
            $($rest)+
        }
    };
    (@ next_lease_end, $($rest:tt)+) => {
        $crate::pass_on! {
            # next_lease_end(
                after: $crate::store::types::Timestamp
            ) -> Option<$crate::store::types::Timestamp>,
            $($rest)+
        }
    };
    (@ delivery, $($rest:tt)+) => {
        $crate::pass_on! {
            # delivery(
                id: $crate::store::types::DeliveryId
            ) -> Option<$crate::store::ListedDelivery>,
            $($rest)+
        }
    };
    (@ deliveries, $($rest:tt)+) => {
        $crate::pass_on! {
            # deliveries(
                filter: $crate::store::DeliveryFilter
            ) -> Vec<$crate::store::ListedDelivery>,
            $($rest)+
        }
    };
    (@ history, $($rest:tt)+) => {
        $crate::pass_on! {
            # history(id: $crate::store::types::DeliveryId) -> Option<$crate::store::History>,
            $($rest)+
        }
    };
    (@ totals, $($rest:tt)+) => {
        $crate::pass_on! {
            # totals() -> $crate::store::Totals,
            $($rest)+
        }
    };
    (@ pending_notices, $($rest:tt)+) => {
        $crate::pass_on! {
            # pending_notices(limit: u32) -> Vec<$crate::store::PendingNotice>,
            $($rest)+
        }
    };
    (@ notice_sent, $($rest:tt)+) => {
        $crate::pass_on! {
            # notice_sent(id: i64, now: $crate::store::types::Timestamp) -> (),
            $($rest)+
        }
    };
}
