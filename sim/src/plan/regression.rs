//! A plan as a test in Rust, ready to be kept.

use std::fmt::Write as _;

use super::Plan;
use crate::choices::{Draw, Key};
use crate::plan::decision::meaning;
use crate::scenario::{Scenario, shipped};
use crate::suite::World;

impl Plan {
    /// A `#[test]` that runs this history on the real code and demands that every invariant holds.
    ///
    /// # Errors
    ///
    /// If the scenario is none of those that are shipped and cannot be written as JSON.
    pub fn to_rust(&self) -> serde_json::Result<String> {
        let mut test = String::new();
        if let Some(mutant) = self.mutant {
            let _ = writeln!(test, "/// Found in {mutant}; the real code must survive it.");
        }
        let id = self.invariant.id().to_lowercase();
        let name: String = self
            .invariant
            .name()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let _ = writeln!(test, "#[test]\nfn {id}_{name}_holds_where_it_once_did_not() {{");
        test.push_str("    use hookproof_sim::plan::Plan;\n\n");
        match scenario_code(&self.scenario) {
            Some(scenario) => self.write_value(&mut test, &scenario),
            None => {
                let right = Self { mutant: None, ..self.clone() };
                let _ = writeln!(
                    test,
                    "    let plan = Plan::from_json(\n        r##\"{}\"##,\n    )\n    .unwrap();",
                    right.to_json()?.trim_end()
                );
            }
        }
        test.push_str("    assert_eq!(plan.run(false).violation, None);\n}\n");
        Ok(test)
    }

    fn write_value(&self, test: &mut String, scenario: &str) {
        let world = match self.world {
            World::Model => "Model",
            World::Wire => "Wire",
        };
        let _ = writeln!(
            test,
            "    let plan = Plan {{\n        world: hookproof_sim::suite::World::{world},\n        \
             scenario: {scenario},\n        mutant: None,\n        \
             invariant: hookproof_sim::checkers::Invariant::{:?},\n        \
             draws: hookproof_sim::plan::draws(&[",
            self.invariant
        );
        for draw in &self.draws {
            let Draw { key: Key { who, what, nth }, value } = draw;
            let (role, number) = (who.role, who.number);
            let meaning = meaning(draw);
            if !meaning.is_empty() {
                let _ = writeln!(test, "            // {meaning}");
            }
            let _ = writeln!(test, "            ({role:?}, {number}, {what:?}, {nth}, {value}),");
        }
        test.push_str("        ]),\n    };\n");
    }
}

/// The scenario as it is shipped, but for how many events and endpoints there are.
fn scenario_code(scenario: &Scenario) -> Option<String> {
    let shipped = shipped::find(&scenario.name)?;
    let (events, endpoints) = (scenario.events, scenario.endpoints);
    let same = Scenario { events, endpoints, ..shipped.clone() };
    if same != *scenario {
        return None;
    }
    let function = scenario.name.replace('-', "_");
    let path = format!("hookproof_sim::scenario::shipped::{function}()");
    if shipped == *scenario {
        return Some(path);
    }
    Some(format!(
        "hookproof_sim::scenario::Scenario {{\n            events: ({}, {}),\n            \
         endpoints: ({}, {}),\n            ..{path}\n        }}",
        events.0, events.1, endpoints.0, endpoints.1
    ))
}
