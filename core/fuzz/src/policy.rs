//! Files of settings, as TOML and as JSON: a policy, an address policy or a signature scheme.

use std::fmt::Debug;

use hookproof_core::address::AddressPolicy;
use hookproof_core::policy::Policy;
use hookproof_core::preset;
use hookproof_core::scheme::{Request, Scheme, known};
use hookproof_core::time::{Millis, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How many attempts of a schedule are looked at.
const ATTEMPTS: u32 = 40;

/// A notation: what reads and writes it.
#[derive(Clone, Copy)]
enum Notation {
    Json,
    Toml,
}

impl Notation {
    fn read<T: DeserializeOwned>(self, text: &str) -> Result<T, String> {
        match self {
            Self::Json => serde_json::from_str(text).map_err(|error| error.to_string()),
            Self::Toml => toml::from_str(text).map_err(|error| error.to_string()),
        }
    }

    fn write<T: Serialize>(self, value: &T) -> Result<String, String> {
        match self {
            Self::Json => serde_json::to_string(value).map_err(|error| error.to_string()),
            Self::Toml => toml::to_string(value).map_err(|error| error.to_string()),
        }
    }
}

/// Every preset and every scheme, as JSON.
#[must_use]
pub fn seeds_json() -> Vec<Vec<u8>> {
    seeds(Notation::Json)
}

/// Every preset and every scheme, as TOML.
#[must_use]
pub fn seeds_toml() -> Vec<Vec<u8>> {
    seeds(Notation::Toml)
}

/// Holds the laws against a file of JSON; whether it was one of settings.
pub fn check_json(bytes: &[u8]) -> bool {
    check(Notation::Json, bytes)
}

/// Holds the laws against a file of TOML; whether it was one of settings.
pub fn check_toml(bytes: &[u8]) -> bool {
    check(Notation::Toml, bytes)
}

fn seeds(notation: Notation) -> Vec<Vec<u8>> {
    let written =
        |text: Result<String, String>| text.expect("a preset can be written").into_bytes();
    let presets = preset::all().into_iter().map(|preset| {
        written(notation.write(&Policy { schedule: preset.schedule, ..Policy::default() }))
    });
    let schemes = known::all().into_iter().map(|scheme| written(notation.write(&scheme)));
    let address = written(notation.write(&AddressPolicy::default().with_loopback()));
    presets.chain(schemes).chain([address]).collect()
}

fn check(notation: Notation, bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let policy = read::<Policy>(notation, text).inspect(usable);
    let address = read::<AddressPolicy>(notation, text).inspect(|policy| {
        if policy.validate().is_ok() {
            let judgement = policy.judge_ip([169, 254, 169, 254].into());
            assert!(!judgement.allowed || !policy.allow_cidrs.is_empty(), "{judgement}");
        }
    });
    let scheme = read::<Scheme>(notation, text).inspect(|scheme| {
        if scheme.check().is_ok() {
            let _ = scheme.warnings();
            let now = Timestamp::from_secs(0);
            let verified = scheme.verify(&[], &Request::default(), now, scheme.tolerance);
            assert!(verified.is_err(), "without a key nothing is verified");
        }
    });
    policy.is_some() || address.is_some() || scheme.is_some()
}

/// Reads a value, if the text is one. What is read can be written in each notation, and is then read
/// as the same; what is no value is told.
fn read<T>(notation: Notation, text: &str) -> Option<T>
where
    T: DeserializeOwned + Serialize + PartialEq + Debug,
{
    let value: T = match notation.read(text) {
        Ok(value) => value,
        Err(told) => {
            assert!(!told.is_empty(), "an error says something");
            return None;
        }
    };
    for notation in [Notation::Json, Notation::Toml] {
        let written = notation.write(&value).expect("what was read can be written");
        let again: T = notation.read(&written).expect(&written);
        assert_eq!(again, value, "{written}");
    }
    Some(value)
}

/// A valid policy can be served by: each attempt has a lease that covers it, and its wait.
fn usable(policy: &Policy) {
    let valid = policy.validate();
    if let Err(error) = &valid {
        assert!(!error.field().is_empty() && error.to_string().contains(error.field()));
        return;
    }
    assert!(policy.lease() > policy.total_timeout || policy.lease() == Millis::MAX);
    let mut previous = None;
    for attempt in 1..policy.schedule.attempts_max().min(ATTEMPTS) {
        let floor = (attempt % 2 == 0).then_some(Millis::from_secs(1));
        let draw = policy.draw(attempt, previous, floor).expect("an attempt follows");
        let bounds = draw.bounds();
        let (first, last) = (draw.at(0), draw.at(u64::MAX));
        assert!(bounds.lowest <= first && first <= last && last <= bounds.highest, "{bounds:?}");
        assert!(floor.is_none_or(|floor| bounds.lowest >= floor), "{bounds:?}");
        previous = Some(last);
    }
    let last = policy.schedule.attempts_max();
    assert!(policy.draw(last, previous, None).is_none(), "no attempt follows the last");
}
