//! How fast a block comes, and how long the rest of it will take.
//!
//! The invariant: bytes that were here before its first slice do not count, so that a block that is resumed
//! does not show a rate that no link has.

use core::time::Duration;

use crate::Instant;

/// What the rate is the mean of: the last second counts as much as all before it, so that a pause of a radio
/// does not move the estimate much, and another rate does within three.
const WINDOW: Duration = Duration::from_secs(1);

/// Before this there is no estimate: the first round trips say nothing about the rest.
const FIRST_ESTIMATE: Duration = Duration::from_millis(250);

/// The rate of one block, measured whenever it is reported to the application.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    at: Instant,
    bytes: u64,
    age: Duration,
    rate_bps: u64,
}

impl Pace {
    /// The first slice came at `now`, when `bytes` bytes of the block were here.
    pub(super) const fn new(now: Instant, bytes: u64) -> Self {
        Self { at: now, bytes, age: Duration::ZERO, rate_bps: 0 }
    }

    /// `bytes` of the `length` bytes are here now. Returns the rate in bit/s, 0 if it is not known, and the
    /// time that the remaining bytes will take.
    pub(super) fn measure(
        &mut self,
        now: Instant,
        bytes: u64,
        length: u64,
    ) -> (u64, Option<Duration>) {
        let passed = now.since(self.at);
        let total = self.age.min(WINDOW) + passed;
        if !passed.is_zero() {
            let before = u128::from(self.rate_bps) * self.age.min(WINDOW).as_nanos();
            let came = u128::from(bytes.saturating_sub(self.bytes)) * 8_000_000_000;
            self.rate_bps = u64::try_from((before + came) / total.as_nanos()).unwrap_or(u64::MAX);
            (self.at, self.bytes) = (now, bytes);
            self.age = self.age.saturating_add(passed);
        }
        let is_known = self.age >= FIRST_ESTIMATE && self.rate_bps > 0;
        let left_bits = u128::from(length.saturating_sub(bytes)) * 8;
        let left_ms = left_bits * 1_000 / u128::from(self.rate_bps.max(1));
        let estimate = Duration::from_millis(u64::try_from(left_ms).unwrap_or(u64::MAX));
        (self.rate_bps, is_known.then_some(estimate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: u64 = 20_000_000;

    /// Measures every 20 ms of the range `ms`, at `rate` bytes a millisecond.
    fn run(
        pace: &mut Pace,
        bytes: &mut u64,
        ms: core::ops::Range<u64>,
        rate: u64,
    ) -> Option<Duration> {
        let mut estimate = None;
        for at in ms.step_by(20) {
            *bytes += 20 * rate;
            estimate = pace.measure(Instant::from_millis(at), *bytes, LENGTH).1;
        }
        estimate
    }

    #[test]
    fn a_steady_block_is_estimated_right_after_a_quarter_of_a_second() {
        let (mut pace, mut bytes) = (Pace::new(Instant::from_millis(1_000), 5_000_000), 5_000_000);
        assert_eq!(run(&mut pace, &mut bytes, 1_020..1_240, 1_000), None);
        let estimate = run(&mut pace, &mut bytes, 1_240..1_300, 1_000).unwrap();
        let right = Duration::from_millis((LENGTH - bytes) / 1_000);
        assert!(estimate.abs_diff(right) < right / 50, "{estimate:?} {right:?}");
    }

    #[test]
    fn another_rate_shows_within_three_seconds_and_a_pause_hardly() {
        let (mut pace, mut bytes) = (Pace::new(Instant::ZERO, 0), 0);
        run(&mut pace, &mut bytes, 20..4_000, 2_000);
        let before = run(&mut pace, &mut bytes, 4_000..4_020, 2_000).unwrap();
        // 200 ms of nothing, and then all of it at once.
        bytes += 400_000;
        let after = pace.measure(Instant::from_millis(4_220), bytes, LENGTH).1.unwrap();
        assert!(
            after < before && before - after < Duration::from_millis(400),
            "{before:?} {after:?}"
        );
        let slower = run(&mut pace, &mut bytes, 4_240..7_240, 500).unwrap();
        let right = Duration::from_millis((LENGTH - bytes) / 500);
        assert!(slower.abs_diff(right) < right / 5, "{slower:?} {right:?}");
    }
}
