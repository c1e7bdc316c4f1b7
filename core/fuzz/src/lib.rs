//! What must hold of the readers of the core, whatever bytes they are given.
//!
//! A target is a function of bytes that panics when a law is broken, and tells whether the bytes were
//! well-formed. `fuzz_targets/` hands it what libFuzzer finds, `core/tests/it/fuzz.rs` what proptest
//! draws: random bytes and well-formed ones with changes. So each law stands here once, and is tried
//! without nightly at each run of the tests.

pub mod address;
pub mod policy;
pub mod retry_after;
pub mod signature;

/// A reader under test.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name of its binary in `fuzz_targets/`.
    pub name: &'static str,
    /// Holds the laws against these bytes; `true` if they were well-formed.
    pub check: fn(&[u8]) -> bool,
    /// Well-formed bytes to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them, in the order of their names.
pub const TARGETS: [Target; 5] = [
    Target { name: "address", check: address::check, seeds: address::seeds },
    Target { name: "policy_json", check: policy::check_json, seeds: policy::seeds_json },
    Target { name: "policy_toml", check: policy::check_toml, seeds: policy::seeds_toml },
    Target { name: "retry_after", check: retry_after::check, seeds: retry_after::seeds },
    Target { name: "signature", check: signature::check, seeds: signature::seeds },
];
