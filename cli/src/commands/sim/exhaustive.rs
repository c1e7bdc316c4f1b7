//! `hookproof sim --exhaustive`: every history of a small world.

use std::io::{self, Write};

use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use hookproof_sim::choices::{Choices, Draw};
use hookproof_sim::explore::{self, Report, Search, Verdict};
use serde::Serialize;

use super::history;
use crate::args::Format;
use crate::failure::{Ending, Failure};
use crate::output::number::Grouped;
use crate::output::progress::Progress;
use crate::output::table::{Column, Table};
use crate::output::{Output, Paint, say};

/// The searches that were asked for.
#[derive(Clone, Debug)]
pub(super) struct Chosen(Vec<Search>);

/// Reads the name of a search, or `all`.
pub(super) fn chosen(name: &str) -> Result<Chosen, String> {
    let shipped = Search::shipped();
    if name == "all" {
        return Ok(Chosen(shipped));
    }
    match Search::find(name) {
        Some(search) => Ok(Chosen(vec![search])),
        None => {
            let names: Vec<_> = shipped.iter().map(|search| search.name).collect();
            Err(format!("there is no search of this name; give {} or all", names.join(", ")))
        }
    }
}

/// Runs the searches one after the other, and prints what they found.
pub(super) fn run(
    chosen: &Chosen,
    jobs: Option<u16>,
    format: Format,
    output: &mut Output,
) -> Result<Ending, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = jobs.map_or(cores, usize::from);
    let began = TokioHost.now();
    let found: Vec<(&Search, Report)> =
        chosen.0.iter().map(|search| (search, explored(search, jobs))).collect();
    let took = TokioHost.now().since(began);
    let histories = found.iter().map(|(_, report)| report.sum.histories).sum();
    say(format_args!("{} histories in {took}", Grouped(histories)));
    match format {
        Format::Table => {
            let paint = output.paint;
            print(&found, output, paint)?;
        }
        Format::Json => output.json(&document(&found))?,
    }
    let is_right = |(_, report): &(&Search, Report)| {
        matches!(report.verdict, Verdict::Holds | Verdict::Unfinished)
    };
    Ok(if found.iter().all(is_right) { Ending::AsItShould } else { Ending::Found })
}

fn explored(search: &Search, jobs: usize) -> Report {
    let progress = Progress::new(search.histories, "histories");
    let report = explore::run(search, None, jobs, &|so_far| {
        let (percent, rest) = (so_far.share / 10_000, so_far.share % 10_000 / 100);
        let remark = format!(" of {}, {percent}.{rest:02} % of all branches", search.name);
        progress.show(so_far.leaves, remark);
    });
    progress.clear();
    report
}

fn name_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Unfinished => "unfinished",
        Verdict::Violated => "violated",
        Verdict::Invalid => "invalid",
    }
}

fn crashes(report: &Report) -> u64 {
    report.sum.counts.crashed_at.values().sum()
}

/// Prints the reports; the last line is the verdict.
fn print(found: &[(&Search, Report)], to: &mut impl Write, paint: Paint) -> io::Result<()> {
    let mut table = Table::new([
        Column::left("search"),
        Column::right("histories"),
        Column::right("with a crash"),
        Column::right("crashes"),
        Column::right("points"),
        Column::right("depth"),
        Column::left("verdict"),
    ]);
    for (search, report) in found {
        table.row([
            search.name.to_owned(),
            Grouped(report.sum.histories).to_string(),
            Grouped(report.crashed).to_string(),
            Grouped(crashes(report)).to_string(),
            format!("{} of {}", report.sum.counts.crashed_at.len(), CrashPoint::ALL.len()),
            report.depth.to_string(),
            told(search, report),
        ]);
    }
    table.write(to, paint)?;
    writeln!(to)?;
    let mut about = Table::of_facts();
    for (search, _) in found {
        about.fact(search.name, search.about);
    }
    about.write(to, paint)?;
    for (search, report) in found {
        print_failure(search, report, to, paint)?;
    }
    writeln!(to)?;
    let (text, is_good) = summary(found);
    let text = if is_good { paint.good(text) } else { paint.bad(text) };
    writeln!(to, "verdict: {text}")
}

fn told(search: &Search, report: &Report) -> String {
    match report.verdict {
        Verdict::Holds => "holds in all".to_owned(),
        Verdict::Unfinished => {
            format!("holds so far; NOT FINISHED at {}", Grouped(search.histories_max))
        }
        Verdict::Violated => "VIOLATED".to_owned(),
        Verdict::Invalid => "INVALID: a history is not determined by its choices".to_owned(),
    }
}

fn summary(found: &[(&Search, Report)]) -> (String, bool) {
    let has = |verdict| found.iter().any(|(_, report)| report.verdict == verdict);
    let histories: u64 = found.iter().map(|(_, report)| report.sum.histories).sum();
    if has(Verdict::Violated) {
        ("violated".to_owned(), false)
    } else if has(Verdict::Invalid) {
        ("invalid: the search cannot tell".to_owned(), false)
    } else if has(Verdict::Unfinished) {
        (format!("no violation in {} histories, and there are more", Grouped(histories)), true)
    } else {
        (format!("every invariant holds in all {} histories", Grouped(histories)), true)
    }
}

/// The history in which an invariant does not hold, told from its start.
fn print_failure(
    search: &Search,
    report: &Report,
    to: &mut impl Write,
    paint: Paint,
) -> io::Result<()> {
    let Some(failure) = &report.failure else { return Ok(()) };
    let violation = &failure.violation;
    let mut head = Table::of_facts();
    head.fact("search", format!("{}, history {}", search.name, Grouped(report.sum.histories)));
    head.fact("violated", format!("{}: {}", violation.invariant, violation.what));
    writeln!(to)?;
    head.write(to, paint)?;
    writeln!(to)?;
    let again = search.history(&Choices::recorded(&failure.draws), None, true);
    history::timeline(&again, true).write(to, paint)
}

/// The reports as programs read them.
#[derive(Serialize)]
struct Document {
    name: &'static str,
    about: &'static str,
    verdict: &'static str,
    histories: u64,
    histories_max: u64,
    histories_with_a_crash: u64,
    crashes: u64,
    crash_points: usize,
    depth: usize,
    failure: Option<FailureDocument>,
}

#[derive(Serialize)]
struct FailureDocument {
    invariant: &'static str,
    what: String,
    /// The alternatives taken, from the top of the tree.
    path: Vec<u64>,
    draws: Vec<DrawDocument>,
}

#[derive(Serialize)]
struct DrawDocument {
    who: String,
    what: &'static str,
    nth: u32,
    value: u64,
}

fn document(found: &[(&Search, Report)]) -> Vec<Document> {
    let draw = |draw: &Draw| DrawDocument {
        who: draw.key.who.to_string(),
        what: draw.key.what,
        nth: draw.key.nth,
        value: draw.value,
    };
    let failure = |failure: &explore::Failure| FailureDocument {
        invariant: failure.violation.invariant.id(),
        what: failure.violation.what.clone(),
        path: failure.path.iter().map(|branch| branch.value).collect(),
        draws: failure.draws.iter().map(draw).collect(),
    };
    found
        .iter()
        .map(|(search, report)| Document {
            name: search.name,
            about: search.about,
            verdict: name_of(report.verdict),
            histories: report.sum.histories,
            histories_max: search.histories_max,
            histories_with_a_crash: report.crashed,
            crashes: crashes(report),
            crash_points: report.sum.counts.crashed_at.len(),
            depth: report.depth,
            failure: report.failure.as_ref().map(failure),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use hookproof_sim::zoo::{Mutant, ReceiverMutant};

    use super::*;
    use crate::output::WIDTH_MAX;

    fn search() -> Search {
        Search::find("one-crash").unwrap()
    }

    fn printed(search: &Search, report: Report) -> String {
        let mut bytes = Vec::new();
        print(&[(search, report)], &mut bytes, Paint::OFF).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    fn explored(search: &Search, mutant: Option<Mutant>) -> Report {
        explore::run(search, mutant, 1, &|_| {})
    }

    const WRONG: Option<Mutant> = Some(Mutant::Receiver(ReceiverMutant::InsertThenProcess));

    #[test]
    fn a_tree_that_was_not_finished_is_told_to_be_so() {
        let search = Search { histories_max: 20, ..search() };
        let report = explored(&search, None);
        assert_eq!(document(&[(&search, report.clone())])[0].verdict, "unfinished");
        let text = printed(&search, report);
        assert!(text.contains("holds so far; NOT FINISHED at 20\n"), "{text}");
        assert!(text.ends_with("verdict: no violation in 20 histories, and there are more\n"));
    }

    #[test]
    fn a_violation_is_told_with_its_history() {
        let search = search();
        let text = printed(&search, explored(&search, WRONG));
        assert!(text.contains("violated  I4 done means done: event 1 is delivered"), "{text}");
        assert!(text.contains("receiver     CRASH at inbox.committed\n"), "{text}");
        assert!(text.ends_with("\nverdict: violated\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH_MAX), "{text}");
    }

    #[test]
    fn a_violation_as_json_holds_the_path_and_the_draws() {
        let search = search();
        let documents = document(&[(&search, explored(&search, WRONG))]);
        let failure = documents[0].failure.as_ref().unwrap();
        assert_eq!((documents[0].verdict, failure.invariant), ("violated", "I4"));
        let crash = failure.draws.iter().find(|draw| draw.what == "inbox.committed").unwrap();
        assert_eq!((crash.who.as_str(), crash.value), ("receiver", 1));
        assert_eq!(failure.path.iter().filter(|value| **value > 0).count(), 1);
    }
}
