//! A program of somebody else's on trial: what a receiver and a sender have in common.

mod histories;
mod life;
mod verdict;

use std::fmt;

pub(crate) use histories::Histories;
pub(crate) use life::lock;
pub use life::{Busy, Disk, Life};
pub use verdict::{Failure, Held};

/// Who is on trial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Receiver,
    Sender,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Receiver => "receiver",
            Self::Sender => "sender",
        })
    }
}
