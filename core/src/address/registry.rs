//! The tables: which addresses and names serve a special purpose, and who says so.
//!
//! Row by row from the registries, of which those of addresses were compared as IANA served them on
//! 2026-07-18 (`core/tests/data/`):
//!
//! - IANA IPv4 Special-Purpose Address Registry (RFC 6890, RFC 8190):
//!   <https://www.iana.org/assignments/iana-ipv4-special-registry>;
//! - IANA IPv6 Special-Purpose Address Registry (the same):
//!   <https://www.iana.org/assignments/iana-ipv6-special-registry>;
//! - the address spaces themselves, for multicast and for what is reserved altogether:
//!   <https://www.iana.org/assignments/ipv4-address-space>,
//!   <https://www.iana.org/assignments/ipv6-address-space>;
//! - IANA Special-Use Domain Names (RFC 6761):
//!   <https://www.iana.org/assignments/special-use-domain-names>;
//! - what clouds serve to every machine under an address that looks public.
//!
//! A new row in a registry is a new row here. Until then IPv6 outside 2000::/3 is denied anyway.

use std::net::IpAddr;

use serde::{Serialize, Serializer};

use super::cidr::Cidr;

/// Who says what an address or a name is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Registry {
    /// IANA IPv4 Special-Purpose Address Registry.
    Ipv4Special,
    /// IANA IPv6 Special-Purpose Address Registry.
    Ipv6Special,
    /// IANA IPv4 Address Space Registry.
    Ipv4Space,
    /// Internet Protocol Version 6 Address Space.
    Ipv6Space,
    /// IANA Special-Use Domain Names.
    SpecialNames,
    /// No registry: what is known of clouds and of the DNS.
    WellKnown,
}

impl Registry {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ipv4Special => "IANA IPv4 Special-Purpose Address Registry",
            Self::Ipv6Special => "IANA IPv6 Special-Purpose Address Registry",
            Self::Ipv4Space => "IANA IPv4 Address Space Registry",
            Self::Ipv6Space => "IANA IPv6 Address Space Registry",
            Self::SpecialNames => "IANA Special-Use Domain Names",
            Self::WellKnown => "well known, in no registry",
        }
    }
}

impl Serialize for Registry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A special block of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Row {
    /// Where the row stands.
    pub registry: Registry,
    /// The addresses.
    pub block: Cidr,
    /// What they are for, in the registry's words.
    pub name: &'static str,
    /// What made it so.
    pub source: &'static str,
    /// The registry's "Globally Reachable"; `None` where it says N/A. Only `Some(true)` is allowed.
    pub globally_reachable: Option<bool>,
}

/// A special domain: the name itself and all names below it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct NameRow {
    /// Where the row stands.
    pub registry: Registry,
    /// The domain, in lower case without a final dot.
    pub domain: &'static str,
    /// What made it so.
    pub source: &'static str,
}

const YES: Option<bool> = Some(true);
const NO: Option<bool> = Some(false);
const NOT_APPLICABLE: Option<bool> = None;

const fn v4(
    octets: [u8; 4],
    prefix: u8,
    name: &'static str,
    source: &'static str,
    reachable: Option<bool>,
) -> Row {
    let block = Cidr::v4(octets, prefix);
    Row { registry: Registry::Ipv4Special, block, name, source, globally_reachable: reachable }
}

const fn v6(
    segments: [u16; 8],
    prefix: u8,
    name: &'static str,
    source: &'static str,
    reachable: Option<bool>,
) -> Row {
    let block = Cidr::v6(segments, prefix);
    Row { registry: Registry::Ipv6Special, block, name, source, globally_reachable: reachable }
}

impl Row {
    const fn within(self, registry: Registry) -> Self {
        Self { registry, ..self }
    }
}

/// The special blocks of IPv4.
pub const IPV4: [Row; 28] = [
    v4([0, 0, 0, 0], 8, "\"This network\"", "RFC 791 §3.2", NO),
    v4([0, 0, 0, 0], 32, "\"This host on this network\"", "RFC 1122 §3.2.1.3", NO),
    v4([10, 0, 0, 0], 8, "Private-Use", "RFC 1918", NO),
    v4([100, 64, 0, 0], 10, "Shared Address Space", "RFC 6598", NO),
    v4([127, 0, 0, 0], 8, "Loopback", "RFC 1122 §3.2.1.3", NO),
    v4([169, 254, 0, 0], 16, "Link Local", "RFC 3927", NO),
    v4([172, 16, 0, 0], 12, "Private-Use", "RFC 1918", NO),
    v4([192, 0, 0, 0], 24, "IETF Protocol Assignments", "RFC 6890 §2.1", NO),
    v4([192, 0, 0, 0], 29, "IPv4 Service Continuity Prefix", "RFC 7335", NO),
    v4([192, 0, 0, 8], 32, "IPv4 dummy address", "RFC 7600", NO),
    v4([192, 0, 0, 9], 32, "Port Control Protocol Anycast", "RFC 7723", YES),
    v4([192, 0, 0, 10], 32, "Traversal Using Relays around NAT Anycast", "RFC 8155", YES),
    v4([192, 0, 0, 170], 32, "NAT64/DNS64 Discovery", "RFC 8880, RFC 7050 §2.2", NO),
    v4([192, 0, 0, 171], 32, "NAT64/DNS64 Discovery", "RFC 8880, RFC 7050 §2.2", NO),
    v4([192, 0, 2, 0], 24, "Documentation (TEST-NET-1)", "RFC 5737", NO),
    v4([192, 31, 196, 0], 24, "AS112-v4", "RFC 7535", YES),
    v4([192, 52, 193, 0], 24, "AMT", "RFC 7450", YES),
    v4([192, 88, 99, 0], 24, "Deprecated (6to4 Relay Anycast)", "RFC 7526", NOT_APPLICABLE),
    v4([192, 88, 99, 2], 32, "6a44-relay anycast address", "RFC 6751", NO),
    v4([192, 168, 0, 0], 16, "Private-Use", "RFC 1918", NO),
    v4([192, 175, 48, 0], 24, "Direct Delegation AS112 Service", "RFC 7534", YES),
    v4([198, 18, 0, 0], 15, "Benchmarking", "RFC 2544", NO),
    v4([198, 51, 100, 0], 24, "Documentation (TEST-NET-2)", "RFC 5737", NO),
    v4([203, 0, 113, 0], 24, "Documentation (TEST-NET-3)", "RFC 5737", NO),
    v4([240, 0, 0, 0], 4, "Reserved", "RFC 1112 §4", NO),
    v4([255, 255, 255, 255], 32, "Limited Broadcast", "RFC 8190, RFC 919 §7", NO),
    v4([224, 0, 0, 0], 4, "Multicast", "RFC 5771", NO).within(Registry::Ipv4Space),
    // It answers every virtual machine of that cloud, and no one else.
    v4([168, 63, 129, 16], 32, "Azure wire server", "Azure Virtual Network documentation", NO)
        .within(Registry::WellKnown),
];

/// The special blocks of IPv6.
pub const IPV6: [Row; 29] = [
    v6([0, 0, 0, 0, 0, 0, 0, 1], 128, "Loopback Address", "RFC 4291", NO),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 128, "Unspecified Address", "RFC 4291", NO),
    v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, "IPv4-mapped Address", "RFC 4291", NO),
    v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, "IPv4-IPv6 Translat.", "RFC 6052", YES),
    v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "IPv4-IPv6 Translat.", "RFC 8215", NO),
    v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64, "Discard-Only Address Block", "RFC 6666", NO),
    v6([0x100, 0, 0, 1, 0, 0, 0, 0], 64, "Dummy IPv6 Prefix", "RFC 9780", NO),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "IETF Protocol Assignments", "RFC 2928", NO),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, "TEREDO", "RFC 4380, RFC 8190", NOT_APPLICABLE),
    v6([0x2001, 1, 0, 0, 0, 0, 0, 1], 128, "Port Control Protocol Anycast", "RFC 7723", YES),
    v6(
        [0x2001, 1, 0, 0, 0, 0, 0, 2],
        128,
        "Traversal Using Relays around NAT Anycast",
        "RFC 8155",
        YES,
    ),
    v6(
        [0x2001, 1, 0, 0, 0, 0, 0, 3],
        128,
        "DNS-SD Service Registration Protocol Anycast",
        "RFC 9665",
        YES,
    ),
    v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48, "Benchmarking", "RFC 5180, erratum 1752", NO),
    v6([0x2001, 3, 0, 0, 0, 0, 0, 0], 32, "AMT", "RFC 7450", YES),
    v6([0x2001, 4, 0x112, 0, 0, 0, 0, 0], 48, "AS112-v6", "RFC 7535", YES),
    v6(
        [0x2001, 0x10, 0, 0, 0, 0, 0, 0],
        28,
        "Deprecated (previously ORCHID)",
        "RFC 4843",
        NOT_APPLICABLE,
    ),
    v6([0x2001, 0x20, 0, 0, 0, 0, 0, 0], 28, "ORCHIDv2", "RFC 7343", YES),
    v6(
        [0x2001, 0x30, 0, 0, 0, 0, 0, 0],
        28,
        "Drone Remote ID Protocol Entity Tags (DETs) Prefix",
        "RFC 9374",
        YES,
    ),
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "Documentation", "RFC 3849", NO),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "6to4", "RFC 3056", NOT_APPLICABLE),
    v6(
        [0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0],
        48,
        "Direct Delegation AS112 Service",
        "RFC 7534",
        YES,
    ),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "Documentation", "RFC 9637", NO),
    v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16, "Segment Routing (SRv6) SIDs", "RFC 9602", NO),
    v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "Unique-Local", "RFC 4193, RFC 8190", NO),
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "Link-Local Unicast", "RFC 4291", NO),
    v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, "Site-Local Unicast (deprecated)", "RFC 3879", NO)
        .within(Registry::Ipv6Space),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "Multicast", "RFC 4291 §2.7", NO)
        .within(Registry::Ipv6Space),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 96, "IPv4-Compatible (deprecated)", "RFC 4291 §2.5.5.1", NO)
        .within(Registry::Ipv6Space),
    v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, "IPv4-translated", "RFC 2765 §2.1", NO)
        .within(Registry::Ipv6Space),
];

/// Where global unicast addresses are assigned (RFC 4291 §2.4, IANA IPv6 Address Space Registry).
pub const IPV6_GLOBAL_UNICAST: Cidr = Cidr::v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// All that is neither in a row nor in [`IPV6_GLOBAL_UNICAST`].
pub const IPV6_RESERVED: Row =
    v6([0; 8], 0, "Reserved by IETF", "RFC 4291 §2.4", NO).within(Registry::Ipv6Space);

const fn name(domain: &'static str, source: &'static str) -> NameRow {
    NameRow { registry: Registry::SpecialNames, domain, source }
}

/// The special domains. `example.com` and its like are in the registry too, but are ordinary names.
pub const NAMES: [NameRow; 15] = [
    name("localhost", "RFC 6761 §6.3"),
    name("test", "RFC 6761 §6.2"),
    name("invalid", "RFC 6761 §6.4"),
    name("example", "RFC 6761 §6.5"),
    name("local", "RFC 6762"),
    name("onion", "RFC 7686"),
    name("alt", "RFC 9476"),
    // It holds home.arpa, ipv4only.arpa and the rest of the infrastructure, and no web server.
    name("arpa", "RFC 3172, RFC 8375"),
    NameRow {
        registry: Registry::WellKnown,
        domain: "internal",
        source: "reserved by ICANN for private use in 2024",
    },
    NameRow {
        registry: Registry::WellKnown,
        domain: "localdomain",
        source: "common in hosts files",
    },
    in_use("corp"),
    in_use("home"),
    in_use("intranet"),
    in_use("lan"),
    in_use("private"),
];

/// What private networks are known to use.
const fn in_use(domain: &'static str) -> NameRow {
    NameRow { registry: Registry::WellKnown, domain, source: "RFC 6762 appendix G" }
}

/// A name of one label: no public name has one, and search domains complete it.
pub const DOTLESS: NameRow =
    NameRow { registry: Registry::WellKnown, domain: "a name of one label", source: "RFC 7085" };

/// The most specific row that holds an address.
#[must_use]
pub fn row_of(address: IpAddr) -> Option<Row> {
    let rows: &[Row] = if address.is_ipv4() { &IPV4 } else { &IPV6 };
    let row = rows.iter().filter(|row| row.block.contains(address));
    let row = row.max_by_key(|row| row.block.prefix()).copied();
    let is_reserved = address.is_ipv6() && !IPV6_GLOBAL_UNICAST.contains(address);
    row.or(is_reserved.then_some(IPV6_RESERVED))
}

/// The row of a name in lower case without a final dot.
#[must_use]
pub fn row_of_name(name: &str) -> Option<NameRow> {
    let is_below = |domain: &str| {
        name.strip_suffix(domain).is_some_and(|above| above.is_empty() || above.ends_with('.'))
    };
    let row = NAMES.iter().find(|row| is_below(row.domain)).copied();
    row.or_else(|| (!name.contains('.')).then_some(DOTLESS))
}
