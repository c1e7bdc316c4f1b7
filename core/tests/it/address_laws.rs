//! What holds for every address, block and text.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hookproof_core::address::registry::{IPV4, IPV6, Row};
use hookproof_core::address::{AddressPolicy, Cidr, EndpointUrl, Host, Reason};
use proptest::prelude::*;

use crate::given::laws;

fn is_allowed(address: impl Into<IpAddr>) -> bool {
    AddressPolicy::default().judge_ip(address.into()).allowed
}

/// IPv4 addresses, every second of them from a special block.
fn ipv4() -> impl Strategy<Value = Ipv4Addr> {
    let special = (0..IPV4.len(), any::<u32>()).prop_map(|(at, bits)| {
        let block = IPV4[at].block;
        match (block.first(), block.last()) {
            (IpAddr::V4(first), IpAddr::V4(last)) => {
                let span = last.to_bits() - first.to_bits();
                Ipv4Addr::from_bits(first.to_bits() + (bits & span))
            }
            _ => unreachable!("the rows are IPv4"),
        }
    });
    prop_oneof![any::<u32>().prop_map(Ipv4Addr::from_bits), special]
}

fn v6(segments: [u16; 8]) -> Ipv6Addr {
    Ipv6Addr::from(segments)
}

/// The two halves of an IPv4 address, as segments.
fn halves(address: Ipv4Addr) -> [u16; 2] {
    let [a, b, c, d] = address.octets();
    [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]
}

/// Each form, with `free` where the form leaves bits open.
fn forms(address: Ipv4Addr, free: u16) -> Vec<(&'static str, Ipv6Addr)> {
    let [high, low] = halves(address);
    let [a, b, c, d] = address.octets().map(u16::from);
    let mut forms = vec![
        ("mapped", v6([0, 0, 0, 0, 0, 0xffff, high, low])),
        ("translated", v6([0, 0, 0, 0, 0xffff, 0, high, low])),
        ("NAT64", v6([0x64, 0xff9b, 0, 0, 0, 0, high, low])),
        ("6to4", v6([0x2002, high, low, free, free, free, free, free])),
        ("Teredo server", v6([0x2001, 0, high, low, free, free, 0xf7f7, 0xf7f7])),
        ("Teredo client", v6([0x2001, 0, 0x808, 0x808, free, free, !high, !low])),
        ("ISATAP", v6([0x2a00, free, free, free, 0, 0x5efe, high, low])),
        ("global ISATAP", v6([0x2a00, free, free, free, 0x200, 0x5efe, high, low])),
        ("local /48", v6([0x64, 0xff9b, 1, high, c, d << 8, 0, 0])),
        ("local /56", v6([0x64, 0xff9b, 1, a, b, low, 0, 0])),
        ("local /64", v6([0x64, 0xff9b, 1, 0, a, b << 8 | c, d << 8, 0])),
    ];
    if address.to_bits() > 1 {
        forms.push(("compatible", v6([0, 0, 0, 0, 0, 0, high, low])));
        forms.push(("local /96", v6([0x64, 0xff9b, 1, 0, 0, 0, high, low])));
    }
    forms
}

#[test]
fn first_and_last_of_each_special_block_are_judged_by_a_row_that_holds_them() {
    for row in IPV4.iter().chain(&IPV6) {
        for address in [row.block.first(), row.block.last()] {
            let judgement = AddressPolicy::default().judge_ip(address);
            if row.globally_reachable != Some(true) {
                assert!(!judgement.allowed || is_exempt(row, address), "{address} {judgement}");
            } else if judgement.embedded.is_none() {
                assert!(judgement.allowed, "{address} {judgement}");
            }
            match judgement.reason {
                Reason::Row(found) => assert!(
                    judgement.embedded.is_some() || found.block.prefix() >= row.block.prefix(),
                    "{address}: {found:?}"
                ),
                reason => panic!("{address} {reason}"),
            }
        }
    }
}

/// An end of a block that a more specific row calls reachable; there is none so far.
fn is_exempt(row: &Row, address: IpAddr) -> bool {
    IPV4.iter().chain(&IPV6).any(|other| {
        other.globally_reachable == Some(true)
            && other.block.prefix() > row.block.prefix()
            && other.block.contains(address)
    })
}

#[test]
fn the_neighbours_of_the_blocks_of_private_use_are_public() {
    for text in ["9.255.255.255", "11.0.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255"] {
        assert!(is_allowed(text.parse::<Ipv4Addr>().expect(text)), "{text}");
    }
    for text in ["192.167.255.255", "192.169.0.0", "169.255.0.0", "192.0.1.0", "192.0.3.0"] {
        assert!(is_allowed(text.parse::<Ipv4Addr>().expect(text)), "{text}");
    }
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn a_denied_ipv4_address_is_denied_in_each_form(address in ipv4(), free: u16) {
        prop_assume!(!is_allowed(address));
        for (form, carrier) in forms(address, free) {
            prop_assert!(!is_allowed(carrier), "{address} as {form}: {carrier}");
        }
    }

    #[test]
    fn an_allowed_ipv4_address_is_allowed_mapped_by_nat64_and_by_isatap_only(
        address in ipv4(),
        free: u16,
    ) {
        prop_assume!(is_allowed(address));
        for (form, carrier) in forms(address, free) {
            let expected = ["mapped", "NAT64", "ISATAP", "global ISATAP"].contains(&form);
            prop_assert_eq!(is_allowed(carrier), expected, "{} as {}: {}", address, form, carrier);
        }
    }

    #[test]
    fn a_form_can_be_allowed_by_its_block_but_never_what_it_carries(address in ipv4(), free: u16) {
        let blocks = ["::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "2001::/32", "2002::/16"];
        let allow_cidrs = blocks.map(|text| text.parse().expect(text)).to_vec();
        let policy = AddressPolicy { allow_cidrs, ..AddressPolicy::default() };
        // A local-use layout has further readings, each of which must be allowed as well.
        for (form, carrier) in forms(address, free).into_iter().filter(|f| !f.0.starts_with("local")) {
            let judged = policy.judge_ip(carrier.into()).allowed;
            prop_assert_eq!(judged, is_allowed(address), "{} as {}: {}", address, form, carrier);
        }
    }

    #[test]
    fn behind_an_allowed_translator_its_own_layout_decides_whatever_stands_around_it(
        address in ipv4(),
        bits: u128,
        layout in 0_usize..4,
    ) {
        // RFC 6052 §2.2: the prefix, and by how far the first and the last part of the IPv4 address
        // are moved around the octet that is skipped.
        let (length, bits_before_skipped) = [(48, 16), (56, 8), (64, 0), (96, 0)][layout];
        let v4 = u128::from(address.to_bits());
        let (high, low) = (v4 >> (32 - bits_before_skipped), v4 & (u128::MAX >> (96 + bits_before_skipped)));
        let (carried, mask) = match length {
            96 => (v4, u128::from(u32::MAX)),
            _ => {
                let below = 56 - (32 - bits_before_skipped);
                let mask_low = (u128::MAX >> (96 + bits_before_skipped)) << below;
                let mask_high = ((1 << bits_before_skipped) - 1) << 64;
                ((high << 64) | (low << below), mask_high | mask_low)
            }
        };
        let start = 0x64_ff9b_0001_u128 << 80;
        let carrier = Ipv6Addr::from_bits(start | (bits >> 48) & !mask | carried);
        let block = Cidr::v6(carrier.segments(), length);
        let policy = AddressPolicy { allow_cidrs: vec![block], ..AddressPolicy::default() };
        let judged = policy.judge_ip(carrier.into()).allowed;
        prop_assert_eq!(judged, is_allowed(address), "{} in {} by {}", address, carrier, block);
    }

    #[test]
    fn only_what_is_global_is_allowed(bits: u128) {
        let address = Ipv6Addr::from_bits(bits);
        let is_nat64 = address.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0];
        let is_mapped = address.to_ipv4_mapped().is_some();
        if is_allowed(address) {
            prop_assert!(bits >> 125 == 1 || is_nat64 || is_mapped, "{address}");
        }
    }

    #[test]
    fn a_block_is_read_back_as_it_was_written(bits: u128, byte: u8, prefix in 0_u8..=128) {
        let segments = Ipv6Addr::from_bits(bits).segments();
        let v4 = Cidr::v4([byte, 7, 77, 201], prefix);
        for block in [Cidr::v6(segments, prefix), v4] {
            prop_assert_eq!(block.to_string().parse::<Cidr>().ok(), Some(block));
            prop_assert!(block.contains(block.first()) && block.contains(block.last()));
            prop_assert!(block.first() <= block.last());
        }
    }

    #[test]
    fn a_block_ends_where_it_ends(bits in 1_u32..u32::MAX, prefix in 1_u8..=32) {
        let block = Cidr::v4(Ipv4Addr::from_bits(bits).octets(), prefix);
        let (IpAddr::V4(first), IpAddr::V4(last)) = (block.first(), block.last()) else {
            unreachable!("the block is IPv4")
        };
        let before = first.to_bits().checked_sub(1).map(Ipv4Addr::from_bits);
        let after = last.to_bits().checked_add(1).map(Ipv4Addr::from_bits);
        for outside in [before, after].into_iter().flatten() {
            prop_assert!(!block.contains(outside.into()), "{outside} in {block}");
        }
    }

    #[test]
    fn no_text_ends_the_judge(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let text = String::from_utf8_lossy(&bytes);
        let policy = AddressPolicy::default();
        for text in [text.to_string(), format!("http://{text}"), format!("https://[{text}]:1/")] {
            let said = match policy.judge_url(&text) {
                Ok((_, judgement)) | Err(judgement) => judgement.to_string(),
            };
            prop_assert!(said.starts_with("is "));
            let _ = policy.judge_text(&text);
            let _ = text.parse::<Cidr>();
        }
    }

    #[test]
    fn what_is_dialled_is_what_was_judged(text in "(https?://)[a-z0-9.:@\\[\\]%x/?-]{1,30}") {
        // Whatever is taken for a URL has a host that reads back as itself: nobody downstream can
        // take it for another.
        if let Ok(url) = EndpointUrl::parse(&text) {
            let again: Result<Host, _> = url.host.to_string().parse();
            prop_assert_eq!(again.ok(), Some(url.host.clone()), "{}", text);
            let uri: http::Uri = text.parse().expect("another parser takes it, too");
            let theirs = uri.host().expect("it has a host").parse::<Host>();
            prop_assert_eq!(theirs.ok(), Some(url.host), "{}", text);
            prop_assert!(!url.authority.contains('@'));
        }
    }
}
