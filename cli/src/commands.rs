//! The commands, one a file: each has `Args`, which tell clap what it takes, and `run`.

mod address;
mod breaker;
mod classify;
mod demo;
mod receive;
mod schedule;
mod send;
mod sign;
mod signing;
mod sim;
mod verify;
mod zoo;

use clap::Subcommand;

use crate::failure::{Ending, Failure};
use crate::output::Output;

/// The enum of the commands and its dispatch from one list.
macro_rules! commands {
    ($($(#[$about:meta])* $variant:ident => $module:ident,)*) => {
        /// What to do.
        #[derive(Subcommand, Debug)]
        pub(crate) enum Command {
            $($(#[$about])* $variant($module::Args),)*
        }

        impl Command {
            /// Does it.
            pub(crate) fn run(self, output: &mut Output) -> Result<Ending, Failure> {
                match self {
                    $(Self::$variant(args) => $module::run(args, output),)*
                }
            }
        }
    };
}

commands! {
    /// Say whether requests may go to a URL, a name or an address, and by which registry's row.
    Address => address,
    /// Print a breaker rule, or replay outcomes against it and tell each transition.
    Breaker => breaker,
    /// Tell what an outcome would mean for a delivery and its endpoint, and by which rule.
    Classify => classify,
    /// Kill a real sender and a real receiver again and again, and count what became of the events.
    Demo => demo,
    /// Print the whole timeline of a retry schedule.
    Schedule => schedule,
    /// Prove delivery in simulation: many histories full of faults, and the bugs it must find.
    Sim => sim,
    /// Hunt the known-bad senders, receivers and harnesses that the simulation must find.
    Zoo => zoo,
    /// Sign a request: print the headers that it carries.
    Sign => sign,
    /// Verify a request's signature; if it is wrong, tell why.
    Verify => verify,
    /// Run the sender: accept events over HTTP and deliver them.
    Send => send,
    /// Run the reference receiver: verify, record, acknowledge, apply once.
    Receive => receive,
}
