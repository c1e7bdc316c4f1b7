//! Where requests may go (server-side request forgery, as OWASP calls the attack).
//!
//! Whoever can register an endpoint can make the sender connect: to the services beside it, to the
//! metadata of its cloud, to itself. An [`AddressPolicy`] says which addresses, names, ports and
//! schemes are allowed. It denies by default what the registries do not call globally reachable, and
//! judges
//!
//! - each address that a name resolves to, since a name proves nothing ([`AddressPolicy::judge_resolved`]),
//! - each IPv4 address that an IPv6 address carries ([`embedded`]),
//! - the host as it will be dialled: what two programs could read in two ways is refused ([`host`]).
//!
//! Looking names up is up to the driver, which must connect to the very addresses that were judged,
//! at each attempt anew. Every judgement says by which row of which registry it was made.

pub mod cidr;
pub mod embedded;
pub mod host;
mod idna;
pub mod judgement;
pub mod policy;
pub mod registry;
pub mod url;

pub use cidr::Cidr;
pub use host::{Host, HostPattern};
pub use judgement::{Judgement, Reason};
pub use policy::AddressPolicy;
pub use url::EndpointUrl;
