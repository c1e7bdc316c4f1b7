//! Seeded draws: the same seed, the same plan.

use std::ops::RangeInclusive;

use hookproof_core::time::Millis;

/// SplitMix64 (Steele, Lea and Flood, 2014): a counter that grows by a fixed odd number, each value
/// mixed. Small, fast, and good enough to spread kills; not for secrets.
#[derive(Clone, Debug)]
pub(super) struct SplitMix64(u64);

impl SplitMix64 {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in a range, which is not empty.
    pub(super) fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (from, to) = range.into_inner();
        let size = u128::from(to.saturating_sub(from)) + 1;
        let scaled = (u128::from(self.next()) * size) >> 64;
        // Below `size`, so it fits; the bias is below size / 2⁶⁴.
        from + u64::try_from(scaled).unwrap_or(0)
    }

    /// Uniform in a range of milliseconds.
    pub(super) fn span(&mut self, ms: RangeInclusive<u64>) -> Millis {
        Millis::new(self.within(ms))
    }

    /// A generator whose draws do not shift when this one's do.
    pub(super) fn branch(&mut self) -> Self {
        Self(self.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_published_generator() {
        let mut random = SplitMix64::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
        ];
        assert_eq!(expected.map(|_| random.next()), expected);
    }

    #[test]
    fn draws_reach_both_ends_of_their_range_and_nothing_beyond() {
        let mut random = SplitMix64::new(1);
        let draws: Vec<_> = (0..1000).map(|_| random.within(3..=7)).collect();
        assert_eq!(draws.iter().min(), Some(&3));
        assert_eq!(draws.iter().max(), Some(&7));
        assert_eq!(random.within(5..=5), 5);
        let _whole_range = random.within(0..=u64::MAX);
    }
}
