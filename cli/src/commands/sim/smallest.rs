//! The first failing history of a suite, made small.

use std::io::Write as _;
use std::path::Path;

use hookproof_core::time::Millis;
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use hookproof_sim::minimise::{Minimised, minimise};
use hookproof_sim::plan::Plan;
use hookproof_sim::suite::{self, Failure as Failing, Report};
use hookproof_sim::timeline;

use super::replay;
use crate::args::Format;
use crate::failure::Failure;
use crate::output::number::Counted;
use crate::output::{Output, say};

/// How long to make it small.
const TIME_MAX: Millis = Millis::from_secs(20);
/// The most histories that are run for it.
const RUNS_MAX: u64 = 20_000;

/// Tells the first failing history as small as it can be made in time, and saves it if that is wanted.
pub(super) fn tell(
    plan: &suite::Plan,
    report: &Report,
    save: Option<&Path>,
    format: Format,
    output: &mut Output,
) -> Result<(), Failure> {
    let Some(small) = report.failures.first().and_then(|failure| smallest(plan, failure)) else {
        if let Some(path) = save {
            say(format_args!("no history failed; {} is not written", path.display()));
        }
        return Ok(());
    };
    if format == Format::Table {
        print(&small, output)?;
    }
    match save {
        Some(path) => {
            replay::write(path, &small.plan)?;
            say(format_args!("replay: hookproof sim --replay {}", path.display()));
            Ok(())
        }
        None => Ok(()),
    }
}

fn smallest(plan: &suite::Plan, failure: &Failing) -> Option<Minimised> {
    let part = plan
        .parts
        .iter()
        .find(|part| part.world == failure.world && part.scenario.name == failure.scenario)?;
    let plan = Plan::of_failure(&part.scenario, failure)?;
    let until = TokioHost.now().plus(TIME_MAX);
    minimise(&plan, RUNS_MAX, &mut || TokioHost.now() < until)
}

fn print(small: &Minimised, output: &mut Output) -> Result<(), Failure> {
    let paint = output.paint;
    let decisions = u64::try_from(small.plan.draws.len()).unwrap_or(u64::MAX);
    let how = if small.is_minimal { "no decision less would do" } else { "the time was over" };
    let told = timeline::story(&small.plan, &small.history, &|tone, text| paint.tone(tone, text));
    writeln!(
        output,
        "the first failing history, made small: {}; {how}\n\n{told}",
        Counted(decisions, "decision")
    )?;
    Ok(())
}
