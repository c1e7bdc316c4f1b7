//! Blocks of addresses: `10.0.0.0/8`, `fc00::/7`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A block of addresses (RFC 4632 §3.1, RFC 4291 §2.3). No bit is set beyond the prefix, and an
/// IPv4-mapped block is not written as IPv6, so that each block has one spelling.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cidr {
    network: IpAddr,
    prefix: u8,
}

/// Why a text is no block of addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CidrError {
    /// It does not begin with an address, or does not go on with a prefix length that this allows.
    Malformed(String),
    /// Bits are set beyond the prefix; this block may be meant.
    BitsBeyondPrefix(Cidr),
    /// It is an IPv4 block in the clothes of IPv6.
    Mapped,
}

impl fmt::Display for CidrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(text) => write!(
                f,
                "`{}` is no block of addresses; write 10.0.0.0/8, fd00::/8 or a single address",
                text.escape_debug()
            ),
            Self::BitsBeyondPrefix(meant) => {
                write!(f, "the address has bits beyond its prefix; the block is {meant}")
            }
            Self::Mapped => f.write_str("an IPv4-mapped block is judged as IPv4; write it as IPv4"),
        }
    }
}

impl std::error::Error for CidrError {}

impl Cidr {
    /// A block of IPv4 addresses. Bits beyond the prefix are cleared, and a prefix is at most 32.
    #[must_use]
    pub const fn v4(octets: [u8; 4], prefix: u8) -> Self {
        let prefix = if prefix > 32 { 32 } else { prefix };
        let bits = u32::from_be_bytes(octets) & mask_v4(prefix);
        Self { network: IpAddr::V4(Ipv4Addr::from_bits(bits)), prefix }
    }

    /// A block of IPv6 addresses. Bits beyond the prefix are cleared, and a prefix is at most 128.
    #[must_use]
    pub const fn v6(segments: [u16; 8], prefix: u8) -> Self {
        let [a, b, c, d, e, f, g, h] = segments;
        let prefix = if prefix > 128 { 128 } else { prefix };
        let bits = Ipv6Addr::new(a, b, c, d, e, f, g, h).to_bits() & mask_v6(prefix);
        Self { network: IpAddr::V6(Ipv6Addr::from_bits(bits)), prefix }
    }

    /// The block that holds this address alone.
    #[must_use]
    pub const fn of(address: IpAddr) -> Self {
        let prefix = if address.is_ipv4() { 32 } else { 128 };
        Self { network: address, prefix }
    }

    /// The first address.
    #[must_use]
    pub const fn first(&self) -> IpAddr {
        self.network
    }

    /// The last address.
    #[must_use]
    pub const fn last(&self) -> IpAddr {
        match self.network {
            IpAddr::V4(v4) => IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() | !mask_v4(self.prefix))),
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() | !mask_v6(self.prefix))),
        }
    }

    /// How many leading bits its addresses share.
    #[must_use]
    pub const fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Whether it holds an address. An address of the other family never is in it.
    #[must_use]
    pub const fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                network.to_bits() == address.to_bits() & mask_v4(self.prefix)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                network.to_bits() == address.to_bits() & mask_v6(self.prefix)
            }
            _ => false,
        }
    }
}

/// A shift by all bits would be an overflow.
const fn mask_v4(prefix: u8) -> u32 {
    if prefix == 0 { 0 } else { u32::MAX << (32 - prefix) }
}

const fn mask_v6(prefix: u8) -> u128 {
    if prefix == 0 { 0 } else { u128::MAX << (128 - prefix) }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let malformed = || CidrError::Malformed(text.chars().take(100).collect());
        let (address, prefix) = match text.split_once('/') {
            None => (text, None),
            Some((address, prefix)) => (address, Some(prefix)),
        };
        let address: IpAddr = address.parse().map_err(|_| malformed())?;
        if let IpAddr::V6(v6) = address
            && v6.to_ipv4_mapped().is_some()
        {
            return Err(CidrError::Mapped);
        }
        let prefix_max = Self::of(address).prefix;
        let prefix = match prefix {
            None => prefix_max,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok().filter(|prefix| *prefix <= prefix_max).ok_or_else(malformed)?
            }
            Some(_) => return Err(malformed()),
        };
        let block = match address {
            IpAddr::V4(v4) => Self::v4(v4.octets(), prefix),
            IpAddr::V6(v6) => Self::v6(v6.segments(), prefix),
        };
        if block.network == address { Ok(block) } else { Err(CidrError::BitsBeyondPrefix(block)) }
    }
}

impl Serialize for Cidr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cidr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
