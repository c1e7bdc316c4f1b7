//! `hookproof schedule`: when each attempt of a schedule is made, and what comes after the last.

mod burst;
mod compared;
mod crowd;
mod csv;
mod document;
mod facts;
mod limits;
mod lives;
mod picture;
mod printed;
mod source;
mod timeline;
mod wording;

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use hookproof_core::gate::{BreakerRule, RATE_ATTEMPTS_MAX};
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use jiff::Timestamp as Calendar;

use crate::args::{Instant, instant};
use crate::failure::{EXIT_CODES, Ending, Failure};
use crate::output::{Output, Paint};
use crowd::{Crowd, Limited};
use facts::{Facts, Window};
use limits::{Limits, breaker};
use source::Source;
use timeline::{Entry, Spread, Timeline};

/// The most requests that are made to tell what becomes of many events.
const REQUESTS_MAX: u64 = 10_000_000;

const PRESET_DEFAULT: &str = "standard-webhooks";

/// What `hookproof schedule` takes.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// Name of the schedule; `--list` shows them all
    #[arg(default_value = PRESET_DEFAULT)]
    preset: String,

    /// A policy of your own instead: a TOML or JSON file, with the fields of `[sender.policy]`
    #[arg(long, value_name = "FILE", conflicts_with = "preset")]
    policy: Option<PathBuf>,

    /// Also print when each attempt is made if the event happens at this time (RFC 3339), or `now`
    #[arg(long, value_name = "TIME", value_parser = instant)]
    from: Option<Instant>,

    /// Show how an outage goes, from one time after the event to another, as in `0s..24h`; with
    /// `--from` also as RFC 3339 times
    #[arg(long, value_name = "START..END")]
    outage: Option<String>,

    /// So many events that fail at once, on their way to one endpoint that stays down
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    events: Option<u32>,

    /// The receiver answers each attempt with a `Retry-After` of this span
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    retry_after: Option<Millis>,

    /// A breaker: failures in a row, first pause and perhaps the longest, as in `20:1m:1h`
    #[arg(long, value_name = "FAILURES:PAUSE[:LONGEST]", value_parser = breaker)]
    breaker: Option<BreakerRule>,

    /// A rate limit, in requests a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=RATE_ATTEMPTS_MAX as i64))]
    rate: Option<u32>,

    /// Put these schedules side by side: names, or files of policies
    #[arg(long, value_name = "SCHEDULE", num_args = 2.., conflicts_with_all = ["preset", "policy"])]
    compare: Vec<String>,

    /// List the schedules that are known
    #[arg(long, conflicts_with_all = ["preset", "policy", "from", "outage", "events", "retry_after",
        "breaker", "rate", "compare"])]
    list: bool,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// How a timeline is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
    /// For spreadsheets.
    Csv,
    /// A picture.
    Svg,
    /// A page with the picture.
    Html,
}

/// All that there is to print about one policy.
struct Inspected {
    source: Source,
    timeline: Timeline,
    limits: Limits,
    /// What became of events, if any were asked about.
    crowd: Option<Crowd>,
    facts: Facts,
    window: Option<Window>,
    from: Option<Calendar>,
    /// The `Retry-After` of each answer, as the receiver gives it.
    asked: Option<Millis>,
}

impl Inspected {
    /// What the limits make of an attempt; `None` without limits, and where no event comes to it.
    fn limited(&self, entry: &Entry) -> Option<Limited> {
        self.crowd.as_ref().filter(|_| self.facts.with_limits)?.attempt(entry.attempt)
    }

    /// When an attempt is made, behind the limits if there are any; `None` if no event comes to it.
    fn made(&self, entry: &Entry) -> Option<Spread> {
        if self.facts.with_limits {
            Some(self.limited(entry)?.made)
        } else {
            Some(entry.since_event)
        }
    }

    /// The end of a range of times as people are told it: of what was drawn, the milliseconds mean
    /// nothing.
    fn shown(&self, ms: u64) -> u64 {
        if self.facts.with_limits { ms / 1000 * 1000 } else { ms }
    }
}

/// Prints a timeline, a comparison, or the list of presets.
#[expect(clippy::needless_pass_by_value, reason = "each command takes its arguments as its own")]
pub(crate) fn run(args: Args, output: &mut Output) -> Result<Ending, Failure> {
    let format = args.format;
    if args.list {
        match format {
            Format::Table => printed::list(output)?,
            Format::Json => output.json(&document::list())?,
            _ => {
                return Err(Failure::usage(
                    "--list can be printed as a table or as JSON only",
                    "give --format table or --format json",
                ));
            }
        }
        return Ok(Ending::AsItShould);
    }
    if !args.compare.is_empty() {
        let sources = Source::all_named(&args.compare)?;
        let inspected = sources
            .into_iter()
            .map(|source| inspect(source, &args))
            .collect::<Result<Vec<_>, _>>()?;
        print_comparison(&inspected, format, output)?;
        return Ok(Ending::AsItShould);
    }
    let source = match &args.policy {
        Some(path) => Source::file(path)?,
        None => Source::preset(&args.preset)?,
    };
    let inspected = inspect(source, &args)?;
    print(&inspected, format, output)?;
    Ok(Ending::AsItShould)
}

fn print(inspected: &Inspected, format: Format, output: &mut Output) -> io::Result<()> {
    let paint = output.paint;
    let picture = || picture::svg(inspected);
    match format {
        Format::Table => printed::timeline(inspected, output, paint),
        Format::Json => output.json(&document::timeline(inspected)),
        Format::Csv => csv::timeline(inspected, output),
        Format::Svg => output.write_all(picture().as_bytes()),
        Format::Html => {
            let mut text = Vec::new();
            printed::timeline(inspected, &mut text, Paint::OFF)?;
            let text = String::from_utf8_lossy(&text);
            let page = picture::html(&inspected.source.name, &picture(), "wide", &text);
            output.write_all(page.as_bytes())
        }
    }
}

fn print_comparison(
    inspected: &[Inspected],
    format: Format,
    output: &mut Output,
) -> io::Result<()> {
    let paint = output.paint;
    match format {
        Format::Table => compared::table(inspected, output, paint),
        Format::Json => output.json(&document::comparison(inspected)),
        Format::Csv => csv::comparison(inspected, output),
        Format::Svg => output.write_all(compared::svg(inspected).as_bytes()),
        Format::Html => {
            let mut text = Vec::new();
            compared::table(inspected, &mut text, Paint::OFF)?;
            let text = String::from_utf8_lossy(&text);
            let page = picture::html(compared::TITLE, &compared::svg(inspected), "narrow", &text);
            output.write_all(page.as_bytes())
        }
    }
}

fn inspect(source: Source, args: &Args) -> Result<Inspected, Failure> {
    let Args { from, outage, events, retry_after: asked, breaker, rate, .. } = args;
    // The policy bounds what a receiver may ask for, as the sender does.
    let most = source.policy.classification.retry_after_max;
    let retry_after = asked.map(|asked| asked.min(most));
    let timeline = Timeline::new(&source.policy, retry_after);
    let from = from.map(|from| calendar(from, &timeline)).transpose()?;
    let window = outage.as_deref().map(|text| window(text, from)).transpose()?;
    // Whoever asks about a limit and says nothing of events asks about one.
    let events = events.or_else(|| (breaker.is_some() || rate.is_some()).then_some(1));
    if let Some(events) = events {
        bounded(events, &source)?;
    }
    let limits = Limits::new(&source, breaker.as_ref(), *rate, retry_after);
    let source = source.behind(&limits.gate);
    let crowd = events.map(|events| Crowd::new(&source.policy, &timeline, events, limits.clone()));
    let facts = Facts::new(&source, &timeline, crowd.as_ref(), window);
    let asked = *asked;
    Ok(Inspected { source, timeline, limits, crowd, facts, window, from, asked })
}

/// All attempts of all events are made one by one, which must come to an end.
fn bounded(events: u32, source: &Source) -> Result<(), Failure> {
    let attempts = source.policy.schedule.attempts_max();
    if u64::from(events) * u64::from(attempts) <= REQUESTS_MAX {
        return Ok(());
    }
    Err(Failure::usage(
        format!(
            "{events} events with {attempts} attempts each of \"{}\" are more than {REQUESTS_MAX} \
             requests",
            source.name.escape_debug()
        ),
        format!("give --events of at most {}", REQUESTS_MAX / u64::from(attempts)),
    ))
}

fn window(text: &str, from: Option<Calendar>) -> Result<Window, Failure> {
    let end = |text: &str| {
        if let Ok(span) = text.parse::<Millis>() {
            return Some(span.get());
        }
        let at: Calendar = text.parse().ok()?;
        // An outage that began before the event is, for this event, one from the event on.
        let since = at.as_millisecond().saturating_sub(from?.as_millisecond());
        Some(u64::try_from(since).unwrap_or(0))
    };
    let read = || {
        let (start, stop) = text.split_once("..")?;
        let window = Window { start_ms: end(start)?, end_ms: end(stop)? };
        (window.start_ms < window.end_ms).then_some(window)
    };
    read().ok_or_else(|| {
        Failure::usage(
            format!("\"{}\" is not an outage", text.escape_debug()),
            "write two times after the event, as in 0s..24h, the first before the second; with \
             --from also RFC 3339 times, as in 2026-01-01T00:00:00Z..2026-01-02T00:00:00Z",
        )
    })
}

/// The start on the calendar, which must hold the whole timeline.
fn calendar(from: Instant, timeline: &Timeline) -> Result<Calendar, Failure> {
    let from = match from {
        // Nobody plans by the millisecond.
        Instant::Now => Timestamp::from_secs(TokioHost.wall().as_secs()),
        Instant::At(at) => at,
    };
    let out_of_range = || {
        Failure::usage(
            "the last attempt would be after the year 9999, where RFC 3339 ends",
            "give an earlier --from",
        )
    };
    let start = Calendar::from_millisecond(from.as_millis()).map_err(|_| out_of_range())?;
    after(start, timeline.last.highest_ms).ok_or_else(out_of_range)?;
    Ok(start)
}

fn after(start: Calendar, ms: u64) -> Option<Calendar> {
    let ms = i64::try_from(ms).ok()?;
    Calendar::from_millisecond(start.as_millisecond().checked_add(ms)?).ok()
}

/// An instant of the timeline, as RFC 3339 has it. That it is on the calendar was checked.
fn time_text(start: Calendar, ms: u64) -> String {
    after(start, ms).map_or_else(|| "after 9999".to_owned(), |at| at.to_string())
}

fn span_text(ms: u64) -> String {
    Millis::new(ms).to_string()
}

/// A mean or a percentile: above a minute, nobody asks for its milliseconds.
fn about(ms: u64) -> String {
    if ms < 60_000 { span_text(ms) } else { span_text(ms.saturating_add(500) / 1000 * 1000) }
}
