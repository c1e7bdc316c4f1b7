//! Where a policy comes from: a preset by its name, or a file.

use std::collections::BTreeMap;
use std::path::Path;

use hookproof_core::gate::GateRule;
use hookproof_core::life::Life;
use hookproof_core::policy::Policy;
use hookproof_core::preset::{self, Certainty};
use serde::Serialize;

use crate::config;
use crate::failure::Failure;

/// Where policies are described.
const PAGE: &str = "docs/schedule.md";

/// A policy and what is known about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) source: String,
    pub(super) certainty: Option<Certainty>,
    pub(super) note: &'static str,
    pub(super) policy: Policy,
    /// Whether what counts of a `Retry-After` is our assumption: a sender does not publish it.
    pub(super) assumes_retry_after: bool,
    pub(super) afterwards: Afterwards,
}

/// What becomes of a delivery whose last attempt fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Afterwards {
    /// In words; `None` where a sender publishes nothing.
    what: Option<&'static str>,
    /// How our own sender has it.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    own: Option<Own>,
}

impl Afterwards {
    /// In words, in any case.
    pub(super) fn text(&self) -> &'static str {
        self.what.unwrap_or("nothing is published")
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
struct Own {
    phase: &'static str,
    kept_for_replay: bool,
    owner_told: bool,
    /// What becomes of one that still waits when its breaker's rule gives the endpoint up.
    #[serde(skip_serializing_if = "Option::is_none")]
    if_given_up: Option<Waiting>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
struct Waiting {
    phase: &'static str,
    goes_on_once_enabled: bool,
    grows_too_old: bool,
}

/// What our own sender does under a policy with this life, behind this gate.
fn own(life: &Life, gate: &GateRule) -> Afterwards {
    let gives_up = gate.breaker.as_ref().is_some_and(|rule| rule.disable.is_some());
    let grows_too_old = life.age_max.is_some();
    let what = match (gives_up, grows_too_old) {
        (false, _) => "the delivery is dead: kept for replay, and its owner is told",
        (true, false) => {
            "after its last attempt the delivery is dead: kept for replay, and its owner is told; \
             one that still waits when the endpoint is given up is kept, and goes on once somebody \
             enables the endpoint"
        }
        (true, true) => {
            "after its last attempt, or at the greatest age, the delivery is dead: kept for replay, \
             and its owner is told; one that still waits when the endpoint is given up is kept \
             until that age, and goes on if somebody enables the endpoint before"
        }
    };
    let waiting = Waiting { phase: "scheduled", goes_on_once_enabled: true, grows_too_old };
    let if_given_up = gives_up.then_some(waiting);
    let own = Own { phase: "dead", kept_for_replay: true, owner_told: true, if_given_up };
    Afterwards { what: Some(what), own: Some(own) }
}

impl Source {
    /// The preset of this name.
    pub(super) fn preset(name: &str) -> Result<Self, Failure> {
        let preset = preset::find(name).ok_or_else(|| unknown(name))?;
        Ok(Self {
            name: preset.name.to_owned(),
            source: preset.source.to_owned(),
            certainty: Some(preset.certainty),
            note: preset.note,
            policy: preset.policy(),
            assumes_retry_after: !preset.publishes_retry_after(),
            afterwards: Afterwards { what: preset.afterwards, own: None },
        })
    }

    /// The policy in this file: JSON if its name says so, else TOML.
    pub(super) fn file(path: &Path) -> Result<Self, Failure> {
        let policy = checked(path)?;
        Ok(Self {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            source: path.display().to_string(),
            certainty: None,
            note: "",
            afterwards: own(&policy.life, &policy.gate),
            policy,
            assumes_retry_after: false,
        })
    }

    /// The same behind another gate than the policy's.
    pub(super) fn behind(self, gate: &GateRule) -> Self {
        let afterwards = match self.is_preset() {
            true => self.afterwards,
            false => own(&self.policy.life, gate),
        };
        Self { afterwards, ..self }
    }

    /// Whether it is the schedule of somebody else, who says nothing of a gate.
    pub(super) fn is_preset(&self) -> bool {
        self.certainty.is_some()
    }

    /// Each by its name; files whose names are the same go by their paths.
    pub(super) fn all_named(names: &[String]) -> Result<Vec<Self>, Failure> {
        let mut sources: Vec<_> =
            names.iter().map(|name| Self::named(name)).collect::<Result<_, _>>()?;
        let mut seen = BTreeMap::new();
        for source in &sources {
            *seen.entry(source.name.clone()).or_insert(0) += 1;
        }
        for source in sources.iter_mut().filter(|source| !source.is_preset()) {
            if seen.get(&source.name).is_some_and(|count| *count > 1) {
                source.name.clone_from(&source.source);
            }
        }
        Ok(sources)
    }

    /// A file if there is one of this name, else the preset.
    fn named(name: &str) -> Result<Self, Failure> {
        let path = Path::new(name);
        let looks_like_a_file = name.contains(['/', '.']);
        if looks_like_a_file { Self::file(path) } else { Self::preset(name) }
    }
}

fn checked(path: &Path) -> Result<Policy, Failure> {
    let file = config::read::<Policy>(path, PAGE)?;
    match file.content.validate() {
        Ok(()) => Ok(file.content),
        Err(error) => {
            let problem = error.to_string().replacen(&format!("`{}` ", error.field()), "", 1);
            Err(file.invalid(error.field(), &problem))
        }
    }
}

fn unknown(name: &str) -> Failure {
    let names: Vec<_> = preset::all().into_iter().map(|preset| preset.name).collect();
    Failure::unknown("schedule", name, &names)
}
