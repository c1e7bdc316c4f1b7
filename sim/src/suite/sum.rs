//! The sum of many histories.

use std::collections::BTreeMap;

use hookproof_core::time::Millis;

use crate::checkers::Invariant;
use crate::history::{History, Totals};
use crate::journal::Counts;

/// The sum of many histories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many.
    pub histories: u64,
    /// How much simulated time.
    pub simulated: Millis,
    /// How often what happened.
    pub counts: Counts,
    /// How much each checker looked at.
    pub looks: BTreeMap<Invariant, u64>,
    /// What came of them.
    pub totals: Totals,
}

impl Sum {
    /// Adds one history.
    pub(crate) fn add(&mut self, history: &History) {
        self.merge(&Self {
            histories: 1,
            simulated: history.simulated,
            counts: history.counts.clone(),
            looks: history.looks.clone(),
            totals: history.totals,
        });
    }

    /// Adds many.
    pub fn merge(&mut self, other: &Self) {
        self.histories += other.histories;
        self.simulated = self.simulated.plus(other.simulated);
        add_counts(&mut self.counts.chosen, &other.counts.chosen);
        add_counts(&mut self.counts.fired, &other.counts.fired);
        add_counts(&mut self.counts.passed, &other.counts.passed);
        add_counts(&mut self.counts.crashed_at, &other.counts.crashed_at);
        add_counts(&mut self.counts.sometimes, &other.counts.sometimes);
        add_counts(&mut self.looks, &other.looks);
        self.totals.add(&other.totals);
    }
}

fn add_counts<K: Ord + Copy>(sum: &mut BTreeMap<K, u64>, counts: &BTreeMap<K, u64>) {
    for (key, count) in counts {
        *sum.entry(*key).or_insert(0) += count;
    }
}
