//! The tables of special addresses against the registries of IANA.
//!
//! `tests/data/` holds the columns of both registries that matter here, as IANA served them on
//! 2026-07-18: <https://www.iana.org/assignments/iana-ipv4-special-registry> and
//! <https://www.iana.org/assignments/iana-ipv6-special-registry>, read from the copy of the CSV files
//! in the public repository PDP-Connect/pdpp. Footnotes are left out, and a row with two blocks is two
//! rows. To bring the tables up to date, write the new rows there first.

use std::net::IpAddr;

use hookproof_core::address::registry::{self, IPV4, IPV6, Registry, Row};
use hookproof_core::address::{AddressPolicy, Cidr};

const IPV4_REGISTRY: &str = include_str!("../data/iana-ipv4-special-registry.tsv");
const IPV6_REGISTRY: &str = include_str!("../data/iana-ipv6-special-registry.tsv");

/// The rows of a registry, as the text of each of ours would be.
fn published(registry: &str) -> Vec<[String; 4]> {
    let row = |line: &str| {
        let cells: Vec<_> = line.split('\t').collect();
        let [block, name, source, _, terminated, reachable] = cells[..] else {
            unreachable!("not six cells: {line}")
        };
        // A terminated row says nothing of it.
        let is_terminated = terminated != "N/A";
        assert_eq!(reachable == "-", is_terminated, "{line}");
        let (address, prefix) = block.split_once('/').expect(block);
        let address: IpAddr = address.parse().expect(block);
        let block = format!("{address}/{prefix}");
        [block.as_str(), name, source, if is_terminated { "N/A" } else { reachable }]
            .map(str::to_owned)
    };
    registry.lines().skip(1).map(row).collect()
}

fn ours(table: &[Row], registry: Registry) -> Vec<[String; 4]> {
    let row = |row: &Row| {
        let reachable = match row.globally_reachable {
            Some(true) => "True",
            Some(false) => "False",
            None => "N/A",
        };
        [row.block.to_string(), row.name.to_owned(), row.source.to_owned(), reachable.to_owned()]
    };
    table.iter().filter(|row| row.registry == registry).map(row).collect()
}

#[test]
fn the_rows_are_those_of_iana_no_more_and_no_fewer() {
    let check = |table, registry, text| {
        let (ours, published) = (ours(table, registry), published(text));
        for row in &published {
            assert!(ours.contains(row), "{row:?} is published and no row of ours");
        }
        for row in &ours {
            assert!(published.contains(row), "{row:?} is a row of ours and not published");
        }
        assert_eq!(ours.len(), published.len());
    };
    check(&IPV4, Registry::Ipv4Special, IPV4_REGISTRY);
    check(&IPV6, Registry::Ipv6Special, IPV6_REGISTRY);
}

/// A block, but for the one of mapped addresses: they are IPv4 addresses to us.
fn block_of(text: &str) -> Option<Cidr> {
    (!text.starts_with("::ffff:0.0.0.0/")).then(|| text.parse().expect(text))
}

/// Whether the registries alone call an address globally reachable: by the narrowest block that holds
/// it, and if none does, since nothing says otherwise.
fn is_reachable(published: &[[String; 4]], address: IpAddr) -> bool {
    let blocks = published
        .iter()
        .filter_map(|[block, .., reachable]| Some((block_of(block)?, reachable.as_str())));
    let narrowest =
        blocks.filter(|(block, _)| block.contains(address)).max_by_key(|b| b.0.prefix());
    narrowest.is_none_or(|(_, reachable)| reachable == "True")
}

#[test]
fn the_ends_and_the_neighbours_of_each_block_are_judged_as_the_registries_have_it() {
    let published = [published(IPV4_REGISTRY), published(IPV6_REGISTRY)].concat();
    let mut count = 0;
    for block in published.iter().filter_map(|[block, ..]| block_of(block)) {
        let neighbours = match (block.first(), block.last()) {
            (IpAddr::V4(first), IpAddr::V4(last)) => {
                [first.to_bits().wrapping_sub(1), last.to_bits().wrapping_add(1)]
                    .map(|bits| IpAddr::V4(bits.into()))
            }
            (IpAddr::V6(first), IpAddr::V6(last)) => {
                [first.to_bits().wrapping_sub(1), last.to_bits().wrapping_add(1)]
                    .map(|bits| IpAddr::V6(bits.into()))
            }
            _ => unreachable!("a block is of one family"),
        };
        for address in [block.first(), block.last()].into_iter().chain(neighbours) {
            let judgement = AddressPolicy::default().judge_ip(address);
            // Beyond the registries we deny multicast, what is reserved, and what is carried.
            let is_ours = registry::row_of(address).is_some_and(|row| {
                !matches!(row.registry, Registry::Ipv4Special | Registry::Ipv6Special)
            });
            if is_ours || judgement.embedded.is_some() {
                continue;
            }
            assert_eq!(
                judgement.allowed,
                is_reachable(&published, address),
                "{address} {judgement}"
            );
            count += 1;
        }
    }
    assert!(count > 150, "only {count} addresses were compared");
}
