//! Random numbers from a seed, in integers, so that every machine draws the same.

use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};

/// A seeded generator. Recorded seeds depend on its numbers: with another algorithm they would replay other
/// runs.
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// The generator of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A separate generator for one purpose, so that drawing more for one (loss, say) does not change the
    /// draws of another (jitter).
    #[must_use]
    pub fn stream(seed: u64, purpose: u64) -> Self {
        Self::new(seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`; 0 if the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of a product: off from uniform by at most bound / 2^64.
        let product = u128::from(self.next_u64()) * u128::from(bound);
        (product >> 64) as u64
    }

    /// A number from `min` to `max`, inclusive.
    pub fn between(&mut self, min: u64, max: u64) -> u64 {
        min + self.below((max - min).saturating_add(1))
    }

    /// True with this probability. Draws nothing if it is zero.
    pub fn chance(&mut self, probability: Probability) -> bool {
        probability.0 > 0 && self.next_u64() >> 32 < probability.0
    }

    /// A duration that is exponentially distributed with this mean, by von Neumann's comparison of uniform
    /// numbers: a logarithm would be rounded otherwise on another machine.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        let mean = u64::try_from(mean.as_nanos()).unwrap_or(u64::MAX);
        let mut whole: u64 = 0;
        loop {
            // A first number, and the count of those after it in falling order: it is the fraction if that
            // is odd.
            let first = self.next_u64();
            let (mut last, mut run) = (first, 1_u32);
            loop {
                let next = self.next_u64();
                if next >= last {
                    break;
                }
                (last, run) = (next, run + 1);
            }
            if run % 2 == 1 {
                let part = (u128::from(first) * u128::from(mean)) >> 64;
                let part = u64::try_from(part).unwrap_or(u64::MAX);
                return Duration::from_nanos(mean.saturating_mul(whole).saturating_add(part));
            }
            whole += 1;
        }
    }

    /// One of the choices.
    ///
    /// # Panics
    /// If `choices` is empty.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }

    /// 32 random bytes, as machines begin with.
    pub fn key(&mut self) -> [u8; 32] {
        let mut key = [0; 32];
        self.0.fill_bytes(&mut key);
        key
    }

    /// Random bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.0.fill_bytes(&mut bytes);
        bytes
    }
}

/// A probability, as a part of 2^32: an integer, so that no two machines round it differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(u64);

impl Probability {
    /// Never.
    pub const NEVER: Self = Self(0);

    /// `part` of `whole`, at most 1.
    ///
    /// # Panics
    /// If `whole` is 0.
    #[must_use]
    pub const fn ratio(part: u64, whole: u64) -> Self {
        let scaled = ((part as u128) << 32) / whole as u128;
        Self(if scaled > 1 << 32 { 1 << 32 } else { scaled as u64 })
    }

    /// A probability in percent.
    #[must_use]
    pub const fn percent(percent: u64) -> Self {
        Self::ratio(percent, 100)
    }

    /// A probability in parts per million.
    #[must_use]
    pub const fn ppm(ppm: u64) -> Self {
        Self::ratio(ppm, 1_000_000)
    }

    /// As a fraction, for display and for limits.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / (1u64 << 32) as f64
    }

    /// This probability against its complement, over `parts`: `p / (1 - p) / parts`, at most 1. Divided in
    /// one go: the odds alone may be over 1, and cut to 1 they would draw every burst loss above a half
    /// as a half.
    #[must_use]
    pub(crate) const fn odds_over(self, parts: u64) -> Self {
        let rest = (1u64 << 32).saturating_sub(self.0);
        if rest == 0 { Self(1 << 32) } else { Self::ratio(self.0, rest * parts) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_means_the_same_numbers() {
        // If this fails, recorded seeds no longer replay their runs.
        let mut rng = Rng::new(1);
        assert_eq!(
            [rng.next_u64(), rng.next_u64()],
            [0xcfc5_d07f_6f03_c29b, 0xbf42_4132_963f_e08d]
        );
    }

    #[test]
    fn probabilities_match_their_frequencies() {
        let mut rng = Rng::new(7);
        let mut hits = |p| (0..100_000).filter(|_| rng.chance(p)).count();
        assert_eq!(hits(Probability::NEVER), 0);
        assert_eq!(hits(Probability::percent(100)), 100_000);
        assert!(hits(Probability::percent(20)).abs_diff(20_000) < 600);
    }

    /// The mean, and the shares above one, two and three of it: 1/e, 1/e^2, 1/e^3.
    #[test]
    fn exponential_durations_have_their_distribution() {
        let mut rng = Rng::new(11);
        let mean = Duration::from_micros(200);
        let drawn: Vec<Duration> = (0..100_000).map(|_| rng.exponential(mean)).collect();
        let sum = drawn.iter().sum::<Duration>() / 100_000;
        assert!(sum.abs_diff(mean) < Duration::from_micros(3), "{sum:?}");
        for (times, expected) in [(1, 36_788), (2, 13_534), (3, 4_979)] {
            let above = drawn.iter().filter(|&&delay| delay > mean * times).count();
            assert!(above.abs_diff(expected) < 500, "{above} above {times} means");
        }
        assert_eq!(rng.exponential(Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut rng = Rng::new(9);
        let drawn: Vec<u64> = (0..1_000).map(|_| rng.between(3, 7)).collect();
        assert!((3..=7).all(|n| drawn.contains(&n)) && drawn.iter().all(|n| (3..=7).contains(n)));
        assert_eq!(rng.below(0), 0);
        let _ = rng.between(0, u64::MAX);
    }
}
