//! IPv4 addresses within IPv6 addresses.
//!
//! An IPv6 address that carries an IPv4 address can lead to it: through the socket layer (mapped), a
//! translator (NAT64) or a tunnel (6to4, Teredo, ISATAP). So the carried one is judged, too.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde::Serialize;

/// How an IPv6 address carries an IPv4 address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// `::ffff:a.b.c.d` (RFC 4291 §2.5.5.2). To a socket, it is that IPv4 address.
    Mapped,
    /// `::a.b.c.d` (RFC 4291 §2.5.5.1), deprecated.
    Compatible,
    /// `::ffff:0:a.b.c.d` (RFC 2765 §2.1).
    Translated,
    /// `64:ff9b::a.b.c.d` (RFC 6052 §2.1).
    Nat64,
    /// In `64:ff9b:1::/48` (RFC 8215), by any of the layouts of RFC 6052 §2.2.
    Nat64Local,
    /// In the 32 bits after `2002:` (RFC 3056 §2).
    SixToFour,
    /// The server of a Teredo address: the 32 bits after `2001:0:` (RFC 4380 §4).
    TeredoServer,
    /// The client of a Teredo address: the last 32 bits, inverted (RFC 4380 §4).
    TeredoClient,
    /// After an interface identifier that begins with `0:5efe` or `200:5efe` (RFC 5214 §6.1).
    Isatap,
}

impl Form {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mapped => "IPv4-mapped",
            Self::Compatible => "IPv4-compatible",
            Self::Translated => "IPv4-translated",
            Self::Nat64 => "NAT64",
            Self::Nat64Local => "local-use NAT64",
            Self::SixToFour => "6to4",
            Self::TeredoServer => "Teredo server",
            Self::TeredoClient => "Teredo client",
            Self::Isatap => "ISATAP",
        }
    }
}

/// An IPv4 address and how it is carried.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Embedded {
    /// How.
    pub form: Form,
    /// The IPv4 address.
    pub address: Ipv4Addr,
}

/// All readings of an IPv6 address as a carrier.
///
/// A local-use translator may lay the IPv4 address out in four ways, and nothing in the address says
/// which it is. The length of `translator`'s prefix does, in bits: a block within `64:ff9b:1::/48` that is
/// allowed is taken for that prefix. One of 48, 56 or 64 bits has its own layout, whatever stands behind
/// the IPv4 address; a longer one has it in the last 32 bits; of any other each layout counts. Without a
/// translator each reading counts whose padding is zero, as RFC 6052 §2.2 asks.
pub fn in_address(address: Ipv6Addr, translator: Option<u8>) -> impl Iterator<Item = Embedded> {
    let bits = address.to_bits();
    let segments = address.segments();
    let mut found: [Option<Embedded>; 5] = [None; 5];
    let mut count = 0;
    let mut add = |form, address| {
        found[count] = Some(Embedded { form, address });
        count += 1;
    };
    let last = at(bits, 96);
    match segments {
        [0, 0, 0, 0, 0, 0xffff, _, _] => add(Form::Mapped, last),
        // `::` and `::1` are themselves, and carry nothing.
        [0, 0, 0, 0, 0, 0, high, low] if (high, low) != (0, 0) && (high, low) != (0, 1) => {
            add(Form::Compatible, last);
        }
        [0, 0, 0, 0, 0xffff, 0, _, _] => add(Form::Translated, last),
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => add(Form::Nat64, last),
        [0x64, 0xff9b, 1, ..] => {
            for address in local_use(bits, translator).into_iter().flatten() {
                add(Form::Nat64Local, address);
            }
        }
        [0x2002, ..] => add(Form::SixToFour, at(bits, 16)),
        [0x2001, 0, ..] => {
            add(Form::TeredoServer, at(bits, 32));
            add(Form::TeredoClient, Ipv4Addr::from_bits(!last.to_bits()));
        }
        _ => {}
    }
    if matches!(segments, [_, _, _, _, 0 | 0x200, 0x5efe, _, _]) {
        add(Form::Isatap, last);
    }
    found.into_iter().flatten()
}

/// The 32 bits from bit `from` on, the most significant being bit 0.
fn at(bits: u128, from: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(low_32(bits >> (96 - from)))
}

fn low_32(bits: u128) -> u32 {
    u32::try_from(bits & u128::from(u32::MAX)).unwrap_or(u32::MAX)
}

/// RFC 6052 §2.2 for prefixes of 48, 56, 64 and 96 bits. Bits 64 to 71 are skipped, and what follows
/// the IPv4 address should be zero.
fn local_use(bits: u128, translator: Option<u8>) -> [Option<Ipv4Addr>; 4] {
    let skipped = (bits >> 56) & 0xff;
    // The address with its skipped octet closed up: the IPv4 address is then in one piece.
    let closed = ((bits >> 64) << 56) | (bits & ((1 << 56) - 1));
    let reading = |prefix: u32| {
        // In `closed`, which has 120 bits.
        let after = 120 - prefix - 32;
        let counts = match translator {
            None => skipped == 0 && closed & ((1 << after) - 1) == 0,
            Some(48 | 56 | 64) => translator.map(u32::from) == Some(prefix),
            Some(length) => length < 64,
        };
        counts.then(|| Ipv4Addr::from_bits(low_32(closed >> after)))
    };
    let whole = low_32(bits);
    let counts = match translator {
        None => whole != 0,
        Some(length) => !matches!(length, 48 | 56 | 64),
    };
    let last = counts.then(|| Ipv4Addr::from_bits(whole));
    [reading(48), reading(56), reading(64), last]
}
