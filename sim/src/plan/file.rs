//! A plan as a file: JSON, one decision a line.

use std::fmt;

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Plan, labels};
use crate::checkers::Invariant;
use crate::choices::{Draw, Key, Who};
use crate::scenario::Scenario;
use crate::suite::World;
use crate::zoo::Mutant;

/// The version of the file. A file of another version is refused: its draws would mean something
/// else.
const VERSION: u32 = 1;

/// What is wrong with a file, where, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanError {
    /// The line, from 1.
    pub line: usize,
    /// The path of the field, as in `draws[3].what`; empty if it is none's.
    pub field: String,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub help: String,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.field.is_empty() {
            write!(f, "`{}`: ", self.field)?;
        }
        f.write_str(&self.problem)
    }
}

impl std::error::Error for PlanError {}

impl Plan {
    /// The plan as a file.
    ///
    /// # Errors
    ///
    /// If the scenario cannot be written as JSON, which none of those that can be read cannot.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let head = Head {
            version: VERSION,
            world: self.world.as_str(),
            mutant: self.mutant.map(Mutant::id),
            violated: self.invariant.id(),
            scenario: &self.scenario,
        };
        let head = serde_json::to_string_pretty(&head)?;
        let draws: Vec<String> = self
            .draws
            .iter()
            .map(|Draw { key: Key { who, what, nth }, value }| {
                let row = (who.role, who.number, what, nth, value);
                Ok(format!("    {}", serde_json::to_string(&row)?))
            })
            .collect::<serde_json::Result<_>>()?;
        let head = head.strip_suffix("\n}").unwrap_or(&head);
        let draws = match draws.is_empty() {
            true => "[]".to_owned(),
            false => format!("[\n{}\n  ]", draws.join(",\n")),
        };
        Ok(format!("{head},\n  \"draws\": {draws}\n}}\n"))
    }

    /// The plan in a file.
    ///
    /// # Errors
    ///
    /// What is wrong in it: no JSON, a field that is missing or not known, another version, a name
    /// that is none, a scenario that cannot be.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let _: OnlyVersion = parse(text)?;
        let File { world, scenario, mutant, violated, draws, .. } = parse(text)?;
        let draws = draws.into_iter().map(|DrawRow(draw)| draw).collect();
        Ok(Self { world, scenario, mutant: mutant.map(|id| id.0), invariant: violated, draws })
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, PlanError> {
    let mut json = serde_json::Deserializer::from_str(text);
    let parsed = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = error.path().to_string();
        let is_known = !matches!(field.as_str(), "." | "?");
        PlanError::new(if is_known { field } else { String::new() }, error.inner())
    })?;
    json.end().map_err(|error| PlanError::new(String::new(), &error))?;
    Ok(parsed)
}

impl PlanError {
    fn new(field: String, error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let text = text.split(" at line ").next().unwrap_or_default();
        let (problem, help) = match (text.split_once("; "), text.split_once(", expected ")) {
            (Some((problem, help)), _) => (problem, help.to_owned()),
            (None, Some((problem, allowed))) => (problem, format!("what is allowed is {allowed}")),
            (None, None) => {
                (text, "give a file that `hookproof zoo --only ID --save` wrote".into())
            }
        };
        Self { line: error.line(), field, problem: problem.to_owned(), help }
    }
}

/// What stands before the decisions, in this order.
#[derive(Serialize)]
struct Head<'a> {
    version: u32,
    world: &'static str,
    mutant: Option<&'static str>,
    violated: &'static str,
    scenario: &'a Scenario,
}

/// Read before all else: what another version holds is not known.
#[derive(Deserialize)]
struct OnlyVersion {
    #[serde(rename = "version", deserialize_with = "this_version")]
    _version: (),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "version", deserialize_with = "this_version")]
    _version: (),
    #[serde(deserialize_with = "world")]
    world: World,
    mutant: Option<MutantId>,
    #[serde(deserialize_with = "invariant")]
    violated: Invariant,
    #[serde(deserialize_with = "valid_scenario")]
    scenario: Scenario,
    draws: Vec<DrawRow>,
}

fn this_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    struct Version;

    impl Visitor<'_> for Version {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "the version, which is {VERSION}")
        }

        fn visit_u64<E: serde::de::Error>(self, version: u64) -> Result<(), E> {
            if version == u64::from(VERSION) {
                return Ok(());
            }
            Err(E::custom(format!(
                "the file is of version {version}; this program reads version {VERSION}"
            )))
        }
    }

    deserializer.deserialize_u64(Version)
}

fn world<'de, D: Deserializer<'de>>(deserializer: D) -> Result<World, D::Error> {
    named(deserializer, "a world", |name| {
        World::ALL.iter().copied().find(|world| world.as_str() == name).ok_or_else(|| {
            let known: Vec<_> = World::ALL.iter().map(|world| world.as_str()).collect();
            format!("there is no world \"{}\"; give {}", name.escape_debug(), known.join(" or "))
        })
    })
}

fn invariant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Invariant, D::Error> {
    named(deserializer, "the id of an invariant", |id| {
        let known = || Invariant::ALL.iter().copied();
        known().find(|invariant| invariant.id() == id).ok_or_else(|| {
            let ids: Vec<_> = known().map(Invariant::id).collect();
            format!(
                "there is no invariant \"{}\"; give one of {}",
                id.escape_debug(),
                ids.join(", ")
            )
        })
    })
}

fn valid_scenario<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Scenario, D::Error> {
    let scenario = Scenario::deserialize(deserializer)?;
    scenario.validate().map_err(D::Error::custom)?;
    Ok(scenario)
}

struct MutantId(Mutant);

impl<'de> Deserialize<'de> for MutantId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        named(deserializer, "the id of a mutant", |id| {
            Mutant::find(id).map(MutantId).ok_or_else(|| {
                format!(
                    "there is no mutant \"{}\"; give an id such as S21, or null for the real code",
                    id.escape_debug()
                )
            })
        })
    }
}

/// `["network", 0, "connection", 1, 4]`
struct DrawRow(Draw);

impl<'de> Deserialize<'de> for DrawRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (Role(role), number, Question(what), nth, value) =
            Deserialize::deserialize(deserializer)?;
        let key = Key { who: Who { role, number }, what, nth };
        Ok(Self(Draw { key, value }))
    }
}

struct Role(&'static str);

impl<'de> Deserialize<'de> for Role {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        named(deserializer, "who asks", |name| labels::role(name).map(Role))
    }
}

struct Question(&'static str);

impl<'de> Deserialize<'de> for Question {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        named(deserializer, "what is asked", |name| labels::question(name).map(Question))
    }
}

/// Reads a name while the parser still stands at it, so that an error has its line.
fn named<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expecting: &'static str,
    read: fn(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    struct Name<T> {
        expecting: &'static str,
        read: fn(&str) -> Result<T, String>,
    }

    impl<T> Visitor<'_> for Name<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.expecting)
        }

        fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<T, E> {
            (self.read)(name).map_err(E::custom)
        }
    }

    deserializer.deserialize_str(Name { expecting, read })
}
