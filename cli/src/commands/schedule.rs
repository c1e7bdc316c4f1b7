//! `hookproof schedule`: when each attempt of a schedule is made, and what comes after the last.

mod timeline;

use std::io::{self, Write as _};

use clap::Args as ClapArgs;
use hookproof_core::preset::{self, Certainty, Preset};
use hookproof_core::schedule::Jitter;
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use jiff::Timestamp as Calendar;
use serde::Serialize;

use crate::args::{Format, Instant, instant};
use crate::failure::{EXIT_CODES, Ending, Failure};
use crate::output::Output;
use crate::output::table::{Column, Table};
use timeline::{Entry, Spread, Timeline};

const PRESET_DEFAULT: &str = "standard-webhooks";

/// How alike two names must be for one to be meant by the other (1: the same).
const LIKENESS_MIN: f64 = 0.7;

/// What `hookproof schedule` takes.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// Name of the schedule; `--list` shows them all
    #[arg(default_value = PRESET_DEFAULT)]
    preset: String,

    /// Also print when each attempt is made if the event happens at this time (RFC 3339), or `now`
    #[arg(long, value_name = "TIME", value_parser = instant)]
    from: Option<Instant>,

    /// List the schedules that are known
    #[arg(long, conflicts_with_all = ["preset", "from"])]
    list: bool,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Prints a timeline, or the list of presets.
pub(crate) fn run(args: Args, output: &mut Output) -> Result<Ending, Failure> {
    let Args { preset, from, list, format } = args;
    if list {
        print_list(format, output)?;
        return Ok(Ending::AsItShould);
    }
    let preset = find(&preset)?;
    let timeline = Timeline::new(&preset.schedule);
    let from = from.map(|from| calendar(from, &timeline)).transpose()?;
    match format {
        Format::Table => print(&preset, &timeline, from, output)?,
        Format::Json => output.json(&document(&preset, &timeline, from))?,
    }
    Ok(Ending::AsItShould)
}

fn find(name: &str) -> Result<Preset, Failure> {
    preset::find(name).ok_or_else(|| {
        let names: Vec<_> = preset::all().into_iter().map(|preset| preset.name).collect();
        let nearest = names
            .iter()
            .map(|known| (strsim::jaro_winkler(known, &name.to_lowercase()), known))
            .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
            .max_by(|(a, _), (b, _)| a.total_cmp(b));
        let guess = nearest.map_or(String::new(), |(_, known)| format!("did you mean {known}? "));
        Failure::usage(
            format!("there is no schedule \"{}\"", name.escape_debug()),
            format!("{guess}The schedules are {}", names.join(", ")),
        )
    })
}

/// The start on the calendar, which must hold the whole timeline.
fn calendar(from: Instant, timeline: &Timeline) -> Result<Calendar, Failure> {
    let from = match from {
        // Nobody plans by the millisecond.
        Instant::Now => Timestamp::from_secs(TokioHost.now().as_secs()),
        Instant::At(at) => at,
    };
    let out_of_range = || {
        Failure::usage(
            "the last attempt would be after the year 9999, where RFC 3339 ends",
            "give an earlier --from",
        )
    };
    let start = Calendar::from_millisecond(from.as_millis()).map_err(|_| out_of_range())?;
    after(start, timeline.last().since_event.highest_ms).ok_or_else(out_of_range)?;
    Ok(start)
}

fn after(start: Calendar, ms: u64) -> Option<Calendar> {
    let ms = i64::try_from(ms).ok()?;
    Calendar::from_millisecond(start.as_millisecond().checked_add(ms)?).ok()
}

fn print(
    preset: &Preset,
    timeline: &Timeline,
    from: Option<Calendar>,
    output: &mut Output,
) -> io::Result<()> {
    let paint = output.paint;
    table(timeline, from).write(output, paint)?;
    writeln!(output)?;
    facts(preset, timeline, from).write(output, paint)
}

fn table(timeline: &Timeline, from: Option<Calendar>) -> Table {
    let spreads = timeline.is_spread();
    let span = |column: Column| if spreads { vec![] } else { vec![column] };
    let bounds = |group| {
        let columns = ["lowest", "mean", "highest"];
        columns.map(|name| Column::right(name).within(group)).into_iter().filter(move |_| spreads)
    };
    let times = |names: &'static [&'static str]| {
        names.iter().map(|name| Column::left(name).within(if spreads { "at, in UTC" } else { "" }))
    };
    let mut columns = vec![Column::right("attempt")];
    columns.extend(span(Column::right("wait")));
    columns.extend(bounds("wait"));
    columns.extend(span(Column::right("since the event")));
    columns.extend(bounds("since the event"));
    if from.is_some() {
        columns.extend(times(if spreads { &["earliest", "latest"] } else { &["at, in UTC"] }));
    }
    let mut table = Table::new(columns);
    for entry in &timeline.entries {
        table.row(row(entry, spreads, from));
    }
    table.drop_if_wide("since the event", "lowest");
    table.drop_if_wide("since the event", "mean");
    table.drop_if_wide("since the event", "highest");
    table
}

fn row(entry: &Entry, spreads: bool, from: Option<Calendar>) -> Vec<String> {
    let mut row = vec![entry.attempt.to_string()];
    for spread in [entry.wait, entry.since_event] {
        let cells = [spread.lowest_ms, spread.mean_ms, spread.highest_ms].map(span_text);
        row.extend(cells.into_iter().take(if spreads { 3 } else { 1 }));
    }
    if let Some(start) = from {
        let ends = [entry.since_event.lowest_ms, entry.since_event.highest_ms];
        let times = ends.map(|ms| time_text(start, ms));
        row.extend(times.into_iter().take(if spreads { 2 } else { 1 }));
    }
    row
}

fn facts(preset: &Preset, timeline: &Timeline, from: Option<Calendar>) -> Table {
    let Spread { lowest_ms, mean_ms, highest_ms } = timeline.last().since_event;
    let (lowest, mean, highest) = (span_text(lowest_ms), span_text(mean_ms), span_text(highest_ms));
    let mut last = if timeline.is_spread() {
        format!("{lowest} to {highest} after the event, {mean} on average")
    } else {
        format!("{highest} after the event")
    };
    if let Some(start) = from {
        let bound = if timeline.is_spread() { " at the latest" } else { "" };
        last.push_str(&format!("; at {}{bound}", time_text(start, highest_ms)));
    }
    let mut facts = Table::of_facts();
    facts.fact("schedule", preset.name);
    facts.fact("source", preset.source);
    facts.fact("certainty", format!("{}: {}", preset.certainty.as_str(), grounds(preset)));
    facts.fact("attempts", timeline.entries.len().to_string());
    facts.fact("last attempt", last);
    facts.fact("if it fails", "the delivery is dead: kept for replay, and its owner is told");
    facts
}

fn grounds(preset: &Preset) -> &'static str {
    match preset.certainty {
        Certainty::Documented => "the sender's own documentation, specification or code says so",
        Certainty::Secondary => "somebody else reports it",
        Certainty::Unknown => "a guess that fits what the sender does publish",
    }
}

fn span_text(ms: u64) -> String {
    Millis::new(ms).to_string()
}

/// An instant of the timeline, as RFC 3339 has it. That it is on the calendar was checked.
fn time_text(start: Calendar, ms: u64) -> String {
    after(start, ms).map_or_else(|| "after 9999".to_owned(), |at| at.to_string())
}

/// The timeline as JSON: spans in whole milliseconds, times as RFC 3339.
#[derive(Serialize)]
struct Document {
    schedule: &'static str,
    source: &'static str,
    certainty: &'static str,
    jitter: Jitter,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    attempts: Vec<Attempt>,
    last_attempt_since_event: Spread,
    afterwards: Afterwards,
}

#[derive(Serialize)]
struct Attempt {
    #[serde(flatten)]
    entry: Entry,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<At>,
}

#[derive(Serialize)]
struct At {
    earliest: String,
    mean: String,
    latest: String,
}

/// What becomes of a delivery whose last attempt fails.
#[derive(Serialize)]
struct Afterwards {
    phase: &'static str,
    kept_for_replay: bool,
    owner_told: bool,
}

fn document(preset: &Preset, timeline: &Timeline, from: Option<Calendar>) -> Document {
    let at = |spread: Spread| {
        from.map(|start| At {
            earliest: time_text(start, spread.lowest_ms),
            mean: time_text(start, spread.mean_ms),
            latest: time_text(start, spread.highest_ms),
        })
    };
    Document {
        schedule: preset.name,
        source: preset.source,
        certainty: preset.certainty.as_str(),
        jitter: preset.schedule.jitter,
        from: from.map(|start| start.to_string()),
        attempts: timeline
            .entries
            .iter()
            .map(|entry| Attempt { entry: *entry, at: at(entry.since_event) })
            .collect(),
        last_attempt_since_event: timeline.last().since_event,
        afterwards: Afterwards { phase: "dead", kept_for_replay: true, owner_told: true },
    }
}

fn print_list(format: Format, output: &mut Output) -> io::Result<()> {
    let presets = preset::all();
    if format == Format::Json {
        let listed: Vec<_> = presets.iter().map(Listed::new).collect();
        return output.json(&listed);
    }
    let mut table = Table::new([
        Column::left("schedule"),
        Column::right("attempts"),
        Column::left("last attempt"),
        Column::left("certainty"),
        Column::left("source"),
    ]);
    for preset in &presets {
        let Listed { attempts, last_attempt_since_event: last, .. } = Listed::new(preset);
        let highest = span_text(last.highest_ms);
        let last = if last.lowest_ms == last.highest_ms {
            highest
        } else {
            format!("{} to {highest}", span_text(last.lowest_ms))
        };
        let (name, certainty) = (preset.name.to_owned(), preset.certainty.as_str().to_owned());
        table.row([name, attempts.to_string(), last, certainty, preset.source.to_owned()]);
    }
    let paint = output.paint;
    table.write(output, paint)
}

#[derive(Serialize)]
struct Listed {
    schedule: &'static str,
    source: &'static str,
    certainty: &'static str,
    attempts: usize,
    last_attempt_since_event: Spread,
}

impl Listed {
    fn new(preset: &Preset) -> Self {
        let timeline = Timeline::new(&preset.schedule);
        Self {
            schedule: preset.name,
            source: preset.source,
            certainty: preset.certainty.as_str(),
            attempts: timeline.entries.len(),
            last_attempt_since_event: timeline.last().since_event,
        }
    }
}
