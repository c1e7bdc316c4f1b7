//! `hookproof demo`: a real sender and a real receiver, killed again and again, and the count of what
//! became of the events.

mod board;
mod events;
mod fan_out;
mod peer;
mod plan;
mod process;
mod publish;
mod random;
mod rig;
mod tally;

use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args as ClapArgs;
use hookproof_core::time::Millis;
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;

use crate::args::Format;
use crate::failure::{EXIT_CODES, Ending, Failure};
use crate::output::number::Counted;
use crate::output::progress::Progress;
use crate::output::{Output, say};
use crate::serving::{Signals, block_on};
use board::{Board, Counts};
use events::{Event, Origin};
use plan::Plan;
use process::Running;
use publish::{Publications, publish};
use random::SplitMix64;
use rig::Rig;
use tally::{Course, Tally, totals};

/// How long a run may stand still before it is given up.
const PATIENCE: Millis = Millis::from_secs(120);
/// How often both sides are asked how far they are.
const POLL_INTERVAL: Millis = Millis::new(20);

/// What `hookproof demo` takes.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// Publish these events: JSON lines with "type", "data" and, if wanted, "key"; - reads standard
    /// input [default: 1,000 built-in events]
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,

    /// Kill each of the two processes so many times
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=1000))]
    kills: u64,

    /// Draw the moments of the kills from this number [default: another one each time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Keep the folder with databases, configuration and logs, and print where it is
    #[arg(long)]
    keep: bool,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Runs the demo and prints what it counted.
pub(crate) fn run(args: Args, output: &mut Output) -> Result<Ending, Failure> {
    let events = events::read(&Origin::new(args.events))?;
    // Half of the bits are easier to type, and enough.
    let seed = args.seed.unwrap_or_else(|| TokioHost.entropy() >> 32);
    let tally = block_on(run_in_a_folder(seed, args.kills, events, args.keep))?;
    match args.format {
        Format::Table => tally.write(output)?,
        Format::Json => output.json(&tally)?,
    }
    Ok(if tally.is_proven() { Ending::AsItShould } else { Ending::Found })
}

/// Builds the rig, runs, and leaves the folder only if it is wanted or can explain a failure.
async fn run_in_a_folder(
    seed: u64,
    kills_each: u64,
    events: Vec<Event>,
    keep: bool,
) -> Result<Tally, Failure> {
    let mut signals = Signals::new()?;
    let count = events.len() as u64;
    let plan = Plan::draw(&mut SplitMix64::new(seed).branch(), count, kills_each);
    say(format_args!(
        "{} through a sender and a receiver that are killed {} each (seed {seed})",
        Counted(count, "event"),
        Counted(kills_each, "time")
    ));
    let rig = Rig::build().await?;
    let result = {
        let mut run = pin!(run_on(&rig, seed, plan, events));
        tokio::select! {
            biased;
            signal = signals.next() => Err(Failure::Interrupted(signal)),
            result = &mut run => result,
        }
    };
    let is_clear = match &result {
        Ok(tally) => tally.is_proven(),
        Err(failure) => matches!(failure, Failure::Interrupted(_)),
    };
    if keep || !is_clear {
        say(format_args!("kept: {}", rig.keep().display()));
    } else {
        rig.remove().await;
    }
    result
}

/// The run itself. Its processes live in it, and die with it.
async fn run_on(rig: &Rig, seed: u64, plan: Plan, events: Vec<Event>) -> Result<Tally, Failure> {
    let count = events.len() as u64;
    let (kills_sender, kills_receiver) = (plan.sender.len() as u64, plan.receiver.len() as u64);
    let (sender, receiver) = rig.start().await?;
    let begun = TokioHost.now();
    let board = Arc::new(Board::new(plan, count));
    let publications = Mutex::default();
    // It holds the processes, so it must outlive the count even if it never gets done.
    let mut work = pin!(work(rig, &board, (sender, receiver), events, &publications));
    let ended = tokio::select! {
        biased;
        ended = &mut work => Some(ended?),
        () = board.stalled(PATIENCE) => None,
    };
    let course = Course {
        seed,
        events: count,
        kills_sender,
        kills_receiver,
        kills_at_work: board.counts().kills_at_work,
        took_ms: TokioHost.now().since(begun).get(),
        stalled_ms: ended.is_none().then_some(PATIENCE.get()),
    };
    let publications = publications.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let tally = Tally::take(rig.sender(), rig.receiver(), &publications, course).await;
    if let Some((sender, receiver)) = ended {
        tokio::join!(sender.stop(), receiver.stop());
    }
    tally.ok_or_else(|| match course.stalled_ms {
        Some(_) => stalled(&board),
        None => Failure::environment("a side did not answer when effects were counted", LOOK),
    })
}

const LOOK: &str = "look into the logs in the folder that is kept";

/// Nothing moves any more, and not even the effects can be counted.
fn stalled(board: &Board) -> Failure {
    let Counts { accepted, delivered, effects, kills, .. } = board.counts();
    let (events, planned) = (board.events(), board.plan().kills());
    Failure::found(
        format!(
            "nothing has moved for {PATIENCE}, and a side does not answer: of {events} events, \
             {accepted} were accepted, {delivered} delivered and {effects} applied; {kills} of \
             {planned} kills were made"
        ),
        LOOK,
    )
}

/// Publishing, killing and watching, side by side until nothing is left to do.
async fn work(
    rig: &Rig,
    board: &Arc<Board>,
    (sender, receiver): (Running, Running),
    events: Vec<Event>,
    publications: &Mutex<Publications>,
) -> Result<(Running, Running), Failure> {
    let plan = board.plan();
    let ((), sender, receiver, ()) = tokio::try_join!(
        publish(rig.sender(), events, board.clone(), publications),
        sender.endure(&plan.sender, board),
        receiver.endure(&plan.receiver, board),
        async {
            watch(rig, board).await;
            Ok(())
        },
    )?;
    Ok((sender, receiver))
}

/// Asks both sides how far they are until nothing is left to do, and shows it.
async fn watch(rig: &Rig, board: &Board) {
    let progress = Progress::new(board.events(), "effects");
    loop {
        // Asked for before the totals, which must be about all of it.
        let is_all_done = board.is_all_done();
        if let Some((sent, received)) = totals(rig.sender(), rig.receiver()).await {
            board.seen(sent.delivered, received.effects);
            if is_all_done && sent.open() + received.open() == 0 {
                break;
            }
        }
        let counts = board.counts();
        let (accepted, kills, planned) = (counts.accepted, counts.kills, board.plan().kills());
        let remark = format!(", {accepted} accepted, {kills} of {planned} kills");
        progress.show(counts.effects, remark);
        TokioHost.sleep(POLL_INTERVAL).await;
    }
    progress.clear();
    board.drained();
}
