//! One wait left to chance: even over a range, and bounded after it was drawn.

use super::Bounds;
use crate::time::Millis;

/// How a wait is drawn: evenly from a range of whole milliseconds, then cut at a ceiling, then
/// raised to a floor. Where a bound cuts into the range, all that lies beyond gathers at the bound.
///
/// More entropy never means a shorter wait, so that the wait at the share `q` of all entropy is the
/// exact quantile `q`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Draw {
    lowest: Millis,
    highest: Millis,
    ceiling: Millis,
    floor: Millis,
    floor_spread: Millis,
}

impl Draw {
    /// Evenly from `lowest` to `highest`, both included; `highest` counts as no less than `lowest`.
    #[must_use]
    pub fn between(lowest: Millis, highest: Millis) -> Self {
        Self {
            lowest,
            highest: highest.max(lowest),
            ceiling: Millis::MAX,
            floor: Millis::ZERO,
            floor_spread: Millis::ZERO,
        }
    }

    /// The same, cut at `ceiling`.
    #[must_use]
    pub fn at_most(self, ceiling: Millis) -> Self {
        Self { ceiling: self.ceiling.min(ceiling), ..self }
    }

    /// The same, raised to at least `floor`, which is itself spread evenly over `spread` upwards. A
    /// floor is stronger than a ceiling: it is what the receiver asked for.
    #[must_use]
    pub fn at_least(self, floor: Millis, spread: Millis) -> Self {
        Self { floor, floor_spread: spread, ..self }
    }

    /// The wait that these 64 bits mean.
    #[must_use]
    pub fn at(self, entropy: u64) -> Millis {
        let width = Millis::new(self.highest.get() - self.lowest.get());
        let drawn = self.lowest.plus(uniform(width, entropy)).min(self.ceiling);
        drawn.max(self.floor.plus(uniform(self.floor_spread, entropy)))
    }

    /// The shortest and the longest wait, both of which can occur.
    #[must_use]
    pub fn bounds(self) -> Bounds {
        Bounds { lowest: self.at(0), highest: self.at(u64::MAX) }
    }

    /// The wait that `percent` of all draws do not exceed.
    #[must_use]
    pub fn percentile(self, percent: u8) -> Millis {
        let share = u128::from(u64::MAX) * u128::from(percent.min(100)) / 100;
        self.at(u64::try_from(share).unwrap_or(u64::MAX))
    }

    /// The mean wait in 65,536ths of a millisecond, rounded down: exact, except under a floor that
    /// is spread, where it is the mean of 65,536 equally likely draws.
    #[must_use]
    pub fn mean_65536(self) -> u128 {
        const STEPS: u64 = 1 << 16;
        // All entropy, 2⁶⁴, in so many steps.
        const STEP: u64 = 1 << 48;
        if self.floor_spread > Millis::ZERO {
            let middle = |at: u64| self.at(at * STEP + STEP / 2);
            return (0..STEPS).map(|at| u128::from(middle(at).get())).sum();
        }
        let [lowest, highest, ceiling, floor] =
            [self.lowest, self.highest, self.ceiling, self.floor]
                .map(|bound| u128::from(bound.get()));
        let ceiling = ceiling.max(floor);
        // What is drawn inside the bounds counts as it is, the rest as the bound that it gathers at.
        let (first, last) = (lowest.max(floor), highest.min(ceiling));
        let inside = if first <= last { (first + last) * (last - first + 1) / 2 } else { 0 };
        let below = floor.min(highest + 1).saturating_sub(lowest);
        let above = (highest + 1).saturating_sub(lowest.max(ceiling + 1));
        let (sum, count) = (inside + below * floor + above * ceiling, highest - lowest + 1);
        sum / count * u128::from(STEPS) + sum % count * u128::from(STEPS) / count
    }
}

/// Uniform in `0..=most`, from 64 bits of entropy, without modulo bias.
fn uniform(most: Millis, entropy: u64) -> Millis {
    let scaled = (u128::from(entropy) * (u128::from(most.get()) + 1)) >> 64;
    // The product is below 2⁶⁴ · (most + 1), so the quotient is at most `most` and fits.
    Millis::new(u64::try_from(scaled).unwrap_or(most.get()))
}
