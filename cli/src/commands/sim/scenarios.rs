//! Kinds of history: by name, from a file, listed.

use std::path::Path;

use hookproof_sim::scenario::{Scenario, shipped};
use serde::Serialize;

use crate::args::Format;
use crate::config::{self, ConfigFile};
use crate::failure::{Ending, Failure};
use crate::output::Output;
use crate::output::table::{Column, Table};

/// What was chosen.
pub(super) enum Chosen {
    /// One kind.
    One(Box<Scenario>),
    /// Every shipped one.
    All,
}

/// The kind of history that the command line names; everything at once unless given.
pub(super) fn chosen(name: Option<&str>, file: Option<&Path>) -> Result<Chosen, Failure> {
    if let Some(path) = file {
        let file: ConfigFile<Scenario> = config::read(path, "docs/sim.md")?;
        let checked = file.content.validate();
        checked.map_err(|error| file.invalid(&error.field, &error.problem))?;
        return Ok(Chosen::One(Box::new(file.content)));
    }
    match name {
        None => Ok(Chosen::One(Box::new(Scenario::mixed()))),
        Some("all") => Ok(Chosen::All),
        Some(name) => match shipped::find(name) {
            Some(scenario) => Ok(Chosen::One(Box::new(scenario))),
            None => {
                let all = shipped::all();
                let names: Vec<&str> = all.iter().map(|known| known.name.as_str()).collect();
                Err(Failure::unknown("scenario", name, &names))
            }
        },
    }
}

#[derive(Serialize)]
struct Listed {
    name: String,
    about: String,
    faults: Vec<&'static str>,
}

/// Lists the shipped ones.
pub(super) fn list(format: Format, output: &mut Output) -> Result<Ending, Failure> {
    match format {
        Format::Table => {
            let mut table = Table::new([
                Column::left("scenario"),
                Column::left("what happens in it"),
                Column::right("faults"),
            ]);
            for scenario in shipped::all() {
                table.row([scenario.name, scenario.about, scenario.faults.len().to_string()]);
            }
            let paint = output.paint;
            table.write(output, paint)?;
        }
        Format::Json => {
            let listed: Vec<Listed> = shipped::all()
                .into_iter()
                .map(|scenario| Listed {
                    faults: scenario.faults.iter().map(|fault| fault.as_str()).collect(),
                    name: scenario.name,
                    about: scenario.about,
                })
                .collect();
            output.json(&listed)?;
        }
    }
    Ok(Ending::AsItShould)
}
