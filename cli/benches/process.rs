//! What a user waits for: whole processes, from their start to their exit code, against one that only
//! says its version.

use std::io;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use hookproof_core::policy::Policy;
use hookproof_core::preset;
use hookproof_core::time::Millis;
use hookproof_sim::scenario::{Break, Outage, Scenario};

/// How often each is run. The least counts: whatever else runs on the machine only adds to it.
const ROUNDS: u32 = 5;
/// How many histories a process runs, where it runs some: on one thread, so that they can be divided.
const HISTORIES: u32 = 100;

/// A hundred events, published as an outage of a day begins, under three days of Standard Webhooks.
fn day() -> Scenario {
    let schedule = preset::standard_webhooks().schedule;
    Scenario {
        name: "day".to_owned(),
        events: (100, 100),
        endpoints: (1, 1),
        outage: Some(Outage {
            from: Millis::ZERO,
            lasts: Millis::from_hours(24),
            fails: Break::Refuses,
        }),
        policies: vec![Policy { schedule, ..Policy::default() }],
        publishing: Millis::from_minutes(10),
        liveness_bound: Millis::from_hours(24 * 7),
        ..Scenario::default()
    }
}

#[expect(clippy::print_stdout, reason = "a measurement tells what it measured")]
fn main() -> io::Result<ExitCode> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("day.toml");
    std::fs::write(&file, toml::to_string(&day()).map_err(io::Error::other)?)?;
    let file = file.to_string_lossy().into_owned();
    let seeds = format!("0..{HISTORIES}");
    let sim = |world, which: [&str; 2]| {
        ["sim", "--jobs", "1", "--world", world, "--seeds", &seeds, which[0], which[1]]
            .map(str::to_owned)
            .to_vec()
    };
    let bare = least(&["--version".to_owned()])?;
    println!("{:<64} {:>9.2} ms", "hookproof --version", millis(bare));
    let runs = [
        ("100 events against an outage of 24 h, model", sim("model", ["--scenario-file", &file])),
        ("mixed, model", sim("model", ["--scenario", "mixed"])),
        ("mixed, wire", sim("wire", ["--scenario", "mixed"])),
    ];
    for (what, arguments) in runs {
        let whole = least(&arguments)?;
        let each = millis(whole.saturating_sub(bare)) / f64::from(HISTORIES);
        let times = whole.as_secs_f64() / bare.as_secs_f64();
        println!("{what:<44} {each:>9.2} ms a history, {times:>7.1} times a bare start");
    }
    let shown = ["schedule", "svix", "--outage", "1h..1d"].map(str::to_owned);
    println!(
        "{:<64} {:>9.2} ms",
        "hookproof schedule svix --outage 1h..1d",
        millis(least(&shown)?)
    );
    Ok(ExitCode::SUCCESS)
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// The shortest of some runs, each of which must do what it should.
#[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
fn least(arguments: &[String]) -> io::Result<Duration> {
    let mut least = Duration::MAX;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let mut command = Command::new(env!("CARGO_BIN_EXE_hookproof"));
        let command = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status()?;
        least = least.min(began.elapsed());
        if !status.success() {
            return Err(io::Error::other(format!("{arguments:?} ended with {status}")));
        }
    }
    Ok(least)
}
