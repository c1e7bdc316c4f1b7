//! The targets of `core/fuzz` without a fuzzer: each is given random bytes, and well-formed ones with
//! a few changes.

use std::cell::Cell;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestRunner;

use crate::given::laws;

#[expect(unreachable_pub, reason = "the fuzz targets see it as a crate")]
#[path = "../../fuzz/src/lib.rs"]
mod targets;

use targets::{TARGETS, Target};

/// How many times the number of cases of an ordinary law.
const CASES_TIMES: u32 = 16;

/// What may make the difference, wherever it is put.
const PIECES: [&str; 24] = [
    "\0",
    "\n",
    " ",
    "\t",
    "\"",
    "'",
    "\\",
    "%2e",
    "@",
    "#",
    "//",
    ":",
    ".",
    ",",
    ";",
    "=",
    "[",
    "]",
    "{",
    "}",
    "é",
    "-1",
    "0x7f",
    "18446744073709551616",
];

/// A change to some bytes.
#[derive(Clone, Debug)]
enum Change {
    Flip(Index, u8),
    Set(Index, u8),
    Insert(Index, &'static str),
    Remove(Index, Index),
    Repeat(Index, Index),
    Cut(Index),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let place = |index: &Index, bytes: &[u8]| index.index(bytes.len() + 1);
        let range = |one: &Index, other: &Index, bytes: &[u8]| {
            let (one, other) = (place(one, bytes), place(other, bytes));
            // Most changes are small.
            let (first, last) = (one.min(other), one.max(other));
            first..last.min(first + 1 + other % 12)
        };
        match self {
            Self::Flip(at, bit) => {
                let at = place(at, bytes);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << (bit % 8);
                }
            }
            Self::Set(at, value) => {
                let at = place(at, bytes);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = *value;
                }
            }
            Self::Insert(at, piece) => {
                let at = place(at, bytes);
                bytes.splice(at..at, piece.bytes());
            }
            Self::Remove(one, other) => {
                let range = range(one, other, bytes);
                bytes.drain(range);
            }
            Self::Repeat(one, other) => {
                let again = bytes[range(one, other, bytes)].to_vec();
                let at = place(other, bytes);
                bytes.splice(at..at, again);
            }
            Self::Cut(at) => bytes.truncate(place(at, bytes)),
        }
    }
}

fn change() -> impl Strategy<Value = Change> {
    let index = any::<Index>;
    prop_oneof![
        4 => (index(), any::<u8>()).prop_map(|(at, bit)| Change::Flip(at, bit)),
        4 => (index(), any::<u8>()).prop_map(|(at, value)| Change::Set(at, value)),
        4 => (index(), select(&PIECES[..])).prop_map(|(at, piece)| Change::Insert(at, piece)),
        3 => (index(), index()).prop_map(|(one, other)| Change::Remove(one, other)),
        2 => (index(), index()).prop_map(|(one, other)| Change::Repeat(one, other)),
        1 => index().prop_map(Change::Cut),
    ]
}

/// Bytes for a target: one in eight at random, else a seed with up to three changes.
fn bytes_for(target: Target) -> impl Strategy<Value = Vec<u8>> {
    let changed = (select((target.seeds)()), prop::collection::vec(change(), 0..4));
    let changed = changed.prop_map(|(mut bytes, changes)| {
        changes.iter().for_each(|change| change.apply(&mut bytes));
        bytes
    });
    prop_oneof![1 => prop::collection::vec(any::<u8>(), 0..200), 7 => changed]
}

/// Holds the laws of a target against thousands of bytes, some of which are well-formed and some not.
fn check(name: &str) {
    let target = *TARGETS.iter().find(|target| target.name == name).expect(name);
    let mut config = laws();
    config.cases = config.cases.saturating_mul(CASES_TIMES);
    config.max_shrink_iters = 4096;
    let (well_formed, malformed) = (Cell::new(0_u32), Cell::new(0_u32));
    let tried = TestRunner::new(config).run(&bytes_for(target), |bytes| {
        let count = if (target.check)(&bytes) { &well_formed } else { &malformed };
        count.set(count.get() + 1);
        Ok(())
    });
    assert!(tried.is_ok(), "{name}: {}", tried.expect_err("it is not"));
    let (well_formed, malformed) = (well_formed.get(), malformed.get());
    let is_mixed = well_formed.min(malformed) > (well_formed + malformed) / 20;
    assert!(is_mixed, "{name}: {well_formed} well-formed and {malformed} malformed");
}

#[test]
fn no_bytes_break_a_law_of_addresses() {
    check("address");
}

#[test]
fn no_bytes_break_a_law_of_policies_in_json() {
    check("policy_json");
}

#[test]
fn no_bytes_break_a_law_of_policies_in_toml() {
    check("policy_toml");
}

#[test]
fn no_bytes_break_a_law_of_retry_after() {
    check("retry_after");
}

#[test]
fn no_bytes_break_a_law_of_signatures_whichever_the_scheme() {
    check("signature");
}

#[test]
fn each_target_begins_with_well_formed_bytes() {
    for target in TARGETS {
        for seed in (target.seeds)() {
            let text = String::from_utf8_lossy(&seed);
            assert!((target.check)(&seed), "{}: {text}", target.name);
        }
    }
}

#[test]
fn each_target_has_a_binary_for_the_fuzzer_and_each_binary_a_target() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("there is a manifest");
    let manifest: toml::Table = manifest.parse().expect("it is TOML");
    let binaries = manifest["bin"].as_array().expect("it has binaries");
    let names: Vec<_> = binaries.iter().filter_map(|binary| binary["name"].as_str()).collect();
    assert_eq!(names, TARGETS.map(|target| target.name));
    for name in names {
        let source = fs::read_to_string(folder.join(format!("fuzz_targets/{name}.rs")));
        let source = source.expect("each binary has its file");
        assert!(source.contains("fuzz_target!"), "{name}");
        let called = name.replace("policy_", "policy::check_");
        assert!(source.contains(&format!("hookproof_core_fuzz::{called}")), "{name}");
    }
}
