//! The last round trips, and how they spread: jitter.

use alloc::boxed::Box;
use core::time::Duration;

/// Samples kept: 4 s at 60 a second, so that a spike every few seconds shows, and 1 KiB.
const SAMPLES: usize = 256;

/// The newest 256 round-trip samples.
#[derive(Clone, Debug)]
pub struct RttHistory {
    /// In microseconds, saturating at 71 minutes.
    samples: Box<[u32; SAMPLES]>,
    len: usize,
    next: usize,
}

/// How the round trips of the history spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RttSpread {
    /// The number of samples, 0 to 256. With 0 all durations are zero.
    pub samples: usize,
    /// The shortest.
    pub min: Duration,
    /// The mean.
    pub mean: Duration,
    /// The longest.
    pub max: Duration,
    /// Jitter: the mean distance of a sample from the mean.
    pub jitter: Duration,
}

impl RttHistory {
    /// No sample yet. Allocates 1 KiB here, and never again.
    #[must_use]
    pub fn new() -> Self {
        Self { samples: Box::new([0; SAMPLES]), len: 0, next: 0 }
    }

    /// Takes a sample, in place of the oldest.
    pub fn on_sample(&mut self, sample: Duration) {
        self.samples[self.next] = u32::try_from(sample.as_micros()).unwrap_or(u32::MAX);
        self.next = (self.next + 1) % SAMPLES;
        self.len = (self.len + 1).min(SAMPLES);
    }

    /// Minimum, mean, maximum and jitter, from all samples.
    #[must_use]
    pub fn spread(&self) -> RttSpread {
        let samples = &self.samples[..self.len];
        let (Some(&min), Some(&max)) = (samples.iter().min(), samples.iter().max()) else {
            return RttSpread::default();
        };
        let mean = |sum: u64| sum / self.len as u64;
        let average = mean(samples.iter().map(|&sample| u64::from(sample)).sum());
        let jitter = mean(samples.iter().map(|&sample| u64::from(sample).abs_diff(average)).sum());
        RttSpread {
            samples: self.len,
            min: Duration::from_micros(min.into()),
            mean: Duration::from_micros(average),
            max: Duration::from_micros(max.into()),
            jitter: Duration::from_micros(jitter),
        }
    }
}

impl Default for RttHistory {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_link_has_no_jitter_and_an_uneven_one_has() {
        let mut history = RttHistory::new();
        assert_eq!(history.spread(), RttSpread::default());
        (0..10).for_each(|_| history.on_sample(Duration::from_millis(40)));
        assert_eq!(history.spread().jitter, Duration::ZERO);
        (0..10).for_each(|_| history.on_sample(Duration::from_millis(60)));
        let spread = history.spread();
        let ms = Duration::from_millis;
        assert_eq!((spread.min, spread.mean, spread.max), (ms(40), ms(50), ms(60)));
        assert_eq!((spread.jitter, spread.samples), (ms(10), 20));
    }

    #[test]
    fn old_samples_are_forgotten() {
        let mut history = RttHistory::new();
        history.on_sample(Duration::from_secs(9));
        (0..SAMPLES).for_each(|_| history.on_sample(Duration::from_millis(1)));
        assert_eq!(history.spread().max, Duration::from_millis(1));
    }
}
