//! How long things take that a scenario says nothing of.

use hookproof_core::time::Millis;

/// Pairs are bounds, both included; what lies between them is drawn. Where both are equal nothing is
/// drawn that a search could branch on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pace {
    /// How long a process that crashed stays away, in steps of 100 ms.
    pub restart: (Millis, Millis),
    /// How long the application waits for an answer before it publishes again, in steps of 100 ms.
    pub patience: (Millis, Millis),
    /// How long a piece of the receiver's work takes.
    pub work: (Millis, Millis),
    /// How long after the original a duplicate arrives; one of these.
    pub duplicates: &'static [Millis],
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            restart: (Millis::new(100), Millis::from_secs(5)),
            patience: (Millis::new(5100), Millis::from_secs(6)),
            work: (Millis::new(1), Millis::new(20)),
            duplicates: DUPLICATES,
        }
    }
}

impl Pace {
    /// One length for each thing, and duplicates that arrive at once: nothing is drawn.
    #[must_use]
    pub fn steady() -> Self {
        Self {
            restart: (Millis::new(500), Millis::new(500)),
            patience: (Millis::from_secs(5), Millis::from_secs(5)),
            work: (Millis::new(10), Millis::new(10)),
            duplicates: &[Millis::ZERO],
        }
    }
}

/// At once more often than not: two copies that race are the harder case.
const DUPLICATES: &[Millis] = &[
    Millis::ZERO,
    Millis::ZERO,
    Millis::ZERO,
    Millis::ZERO,
    Millis::new(250),
    Millis::new(500),
    Millis::new(750),
    Millis::new(1000),
];
