//! Progress that people can believe: what is verified, where it came from, how fast, and how long it will
//! take.
//!
//! The rate is that of the last three seconds, and counts the bytes of unfinished chunks: on a slow link a
//! chunk takes longer than that. The estimate is shown after one second, counts down with the clock, and
//! follows what is measured by at most a tenth a second: it settles, and does not jump. One that is far too
//! short is not shown, and after three seconds it begins anew; without a rate there is no estimate.

use std::collections::VecDeque;
use std::time::Duration;

use haulier_core::Instant;

/// What the rate is measured over: long enough for a pause of a Wi-Fi link, short enough to see a slow
/// disk.
const RATE_WINDOW: Duration = Duration::from_secs(3);

/// Distance of two measured points: the rate is off by a thirtieth of the window at most.
const STEP: Duration = Duration::from_millis(100);

/// No estimate before this: the first round trips say nothing about the rest.
const FIRST_ESTIMATE: Duration = Duration::from_secs(1);

/// By how much of itself an estimate may change in a second, beside counting down.
const CHANGE_PER_SECOND: f64 = 0.1;

/// An estimate may change by at least this in a second, in seconds: a tenth of a short estimate would be too
/// slow to reach the right one.
const MIN_CHANGE_PER_SECOND: f64 = 0.5;

/// An estimate is far too short if the measured time is longer than this many times the estimate and these
/// seconds: the path became another one. Less than that is a pause, or another rate that is soon followed.
const FAR_TIMES: f64 = 3.0;
const FAR_SECONDS: f64 = 5.0;

/// The longest estimate: a year is "unknown" to everyone.
const MAX_SECONDS: f64 = 31_536_000.0;

/// How far a transfer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Files that are done: stored, here already, or failed. Empty directories are not counted.
    pub files_done: u32,
    /// Files in all, without empty directories.
    pub files: u32,
    /// Bytes that are wanted, as far as sizes are known.
    pub wanted_bytes: u64,
    /// Bytes of these that are here and verified.
    pub verified_bytes: u64,
    /// Bytes that came beside these, of chunks that are not whole or not written yet: about as many.
    pub unfinished_bytes: u64,
    /// Bytes of files that came over the connection, before they were unpacked.
    pub wire_bytes: u64,
    /// Verified bytes that were here from an interrupted transfer.
    pub resumed_bytes: u64,
    /// Verified bytes that were copied from an older version, or from a file with the same content.
    pub copied_bytes: u64,
    /// Verified bytes that came packed, as many as they are unpacked.
    pub packed_bytes: u64,
    /// What packing saved: of these bytes, those that did not come over the connection.
    pub saved_bytes: u64,
    /// Verified bytes of files that were here already.
    pub here_bytes: u64,
    /// The rate at which bytes came over the connection in the last 3 s, those of unfinished chunks
    /// included: bytes a second.
    pub bytes_per_second: u64,
    /// The time that the rest will take; `None` while that is not known.
    pub remaining: Option<Duration>,
}

/// Measures the rate, and estimates the rest.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    started: Instant,
    /// When something came last.
    newest: Instant,
    /// Of the last three seconds: when how many bytes had been verified in all.
    points: VecDeque<(Instant, u64)>,
    verified: u64,
    /// The maximum of these and those of unfinished chunks together.
    bytes: u64,
    estimate: Option<(Instant, f64)>,
    /// Since when the estimate is far too short.
    far_since: Option<Instant>,
}

impl Meter {
    pub(crate) fn new(now: Instant) -> Self {
        let points = VecDeque::from([(now, 0)]);
        let (started, newest, verified, bytes) = (now, now, 0, 0);
        Self { started, newest, points, verified, bytes, estimate: None, far_since: None }
    }

    /// These bytes came, and are verified.
    pub(crate) fn add(&mut self, now: Instant, bytes: u64) {
        self.verified = self.verified.saturating_add(bytes);
        self.reach(now, self.verified);
    }

    /// The bytes of unfinished chunks that are here. They are counted when they come, and not again when they
    /// are verified.
    pub(crate) fn set_unfinished(&mut self, now: Instant, bytes: u64) {
        self.reach(now, self.verified.saturating_add(bytes));
    }

    /// Bytes that have come and are not verified.
    pub(crate) const fn unfinished(&self) -> u64 {
        self.bytes - self.verified
    }

    /// Raises the bytes to this number. The time begins with the first of them, also after a pause: a
    /// handshake, a look at the disk and a dark path say nothing of the rest.
    fn reach(&mut self, now: Instant, bytes: u64) {
        if bytes <= self.bytes {
            return;
        }
        if self.bytes == 0 || now.since(self.newest) >= RATE_WINDOW {
            self.started = now;
            self.points = VecDeque::from([(now, bytes)]);
            self.estimate = None;
        }
        (self.bytes, self.newest) = (bytes, now);
        self.note(now);
    }

    /// Keeps a point each tenth of a second, and those of the window.
    fn note(&mut self, now: Instant) {
        if self.points.back().is_none_or(|&(at, _)| now.since(at) >= STEP) {
            self.points.push_back((now, self.bytes));
        }
        // The newest point that is older than the window stays: the window begins there.
        while self.points.get(1).is_some_and(|&(at, _)| now.since(at) >= RATE_WINDOW) {
            self.points.pop_front();
        }
    }

    /// Bytes a second.
    pub(crate) fn rate(&mut self, now: Instant) -> f64 {
        self.note(now);
        if now.since(self.newest) >= RATE_WINDOW {
            return 0.0;
        }
        let Some(&(at, bytes)) = self.points.front() else { return 0.0 };
        let seconds = now.since(at).min(RATE_WINDOW + STEP).max(STEP).as_secs_f64();
        (self.bytes - bytes) as f64 / seconds
    }

    /// How long the rest takes, to be asked for about as often as it is shown.
    pub(crate) fn remaining(&mut self, now: Instant, left_bytes: u64) -> Option<Duration> {
        let rate = self.rate(now);
        if left_bytes == 0 {
            // Before anything came, nothing may be wanted yet.
            return (self.bytes > 0).then_some(Duration::ZERO);
        }
        if rate <= 0.0 || now.since(self.started) < FIRST_ESTIMATE {
            self.estimate = None;
            return None;
        }
        let measured = (left_bytes as f64 / rate).min(MAX_SECONDS);
        let (at, shown) = self.estimate.unwrap_or((now, measured));
        let passed = now.since(at).as_secs_f64();
        let counted_down = (shown - passed).max(0.0);
        if !self.is_far_too_short(now, counted_down, measured) {
            let change = (shown * CHANGE_PER_SECOND).max(MIN_CHANGE_PER_SECOND) * passed;
            // What is too short does not count down.
            let longest = if measured > shown { shown + change } else { counted_down + change };
            let shortest = if measured > shown { shown } else { counted_down - change };
            self.estimate = Some((now, measured.clamp(shortest.max(0.0), longest)));
        } else if self.far_since.is_some_and(|since| now.since(since) >= RATE_WINDOW) {
            self.estimate = Some((now, measured));
        } else {
            self.estimate = Some((now, counted_down));
            return None;
        }
        self.estimate.and_then(|(_, seconds)| Duration::try_from_secs_f64(seconds).ok())
    }

    fn is_far_too_short(&mut self, now: Instant, shown: f64, measured: f64) -> bool {
        let is_far = measured > shown * FAR_TIMES + FAR_SECONDS;
        self.far_since = is_far.then(|| self.far_since.unwrap_or(now));
        is_far
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn the_rate_is_that_of_three_seconds() {
        let mut meter = Meter::new(at(0));
        for millis in (10..=5000).step_by(10) {
            meter.add(at(millis), 10_000);
        }
        assert!((meter.rate(at(5000)) - 1e6).abs() < 4e4, "{}", meter.rate(at(5000)));
        for millis in (5010..=8000).step_by(10) {
            meter.add(at(millis), 20_000);
        }
        assert!((meter.rate(at(8000)) - 2e6).abs() < 8e4, "{}", meter.rate(at(8000)));
        assert!(meter.points.len() < 40);
        assert!(meter.rate(at(11_500)) < 1.0, "nothing came for three seconds");
    }

    /// Estimates the time left of a transfer of `bytes` bytes at each of these arrivals (ms, bytes). Returns
    /// the time after the first arrival from which on the estimate is within a tenth, or 0.2 s, of the right
    /// one at this rate: each arrival may be 0.15 s late.
    fn settles_after(arrivals: &[(u64, u64)], bytes: u64, bytes_per_ms: f64) -> u64 {
        let mut meter = Meter::new(at(0));
        let first = arrivals[0].0;
        let (mut left, mut settled) = (bytes, first);
        for &(millis, bytes) in arrivals {
            left -= bytes;
            meter.add(at(millis), bytes);
            let remaining = meter.remaining(at(millis), left);
            let right = left as f64 / bytes_per_ms / 1000.0;
            let is_right = |it: Duration| (it.as_secs_f64() - right).abs() <= 0.1 * right.max(2.0);
            if !remaining.is_some_and(is_right) {
                settled = millis;
            }
        }
        settled - first
    }

    /// Arrivals at a steady rate, each up to 150 ms late and none before the one before it, from a second
    /// after the beginning on.
    fn jittery(seed: u64, bytes_per_ms: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
        let mut state = seed;
        let mut last = 0;
        let late = |at: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            last = (at + (state >> 33) % 150).max(last);
            (last, 25 * bytes_per_ms(at))
        };
        (1000..31_000).step_by(25).map(late).collect()
    }

    #[test]
    fn the_estimate_of_a_steady_transfer_settles_within_three_seconds() {
        for seed in 1..200 {
            let arrivals = jittery(seed, |_| 1000);
            let settled = settles_after(&arrivals, 31_000_000, 1000.0);
            assert!(settled <= 3000, "seed {seed}: {settled} ms");
        }
    }

    /// At twice the rate, or half of it, from 11 s on: the window has to pass, and a tenth a second.
    #[test]
    fn the_estimate_follows_a_change_of_rate() {
        for seed in 1..50 {
            let faster = jittery(seed, |at| if at < 11_000 { 1000 } else { 2000 });
            let settled = settles_after(&faster, 10_000_000 + 60_000_000, 2000.0);
            assert!((10_000..22_000).contains(&settled), "seed {seed}: {settled} ms");
            let slower = jittery(seed, |at| if at < 11_000 { 1000 } else { 500 });
            let settled = settles_after(&slower, 10_000_000 + 25_000_000, 500.0);
            assert!((10_000..22_000).contains(&settled), "seed {seed}: {settled} ms");
        }
    }

    #[test]
    fn an_estimate_comes_after_a_second_and_counts_down() {
        let mut meter = Meter::new(at(0));
        let mut left = 20_000_000_u64;
        for millis in (100..=10_000).step_by(100) {
            meter.add(at(millis), 100_000);
            left -= 100_000;
            let remaining = meter.remaining(at(millis), left);
            assert_eq!(remaining.is_none(), millis < 1100, "a second after the first arrival");
            if let Some(remaining) = remaining {
                let right = left as f64 / 1e6;
                assert!(
                    (remaining.as_secs_f64() - right).abs() < 0.6,
                    "{millis}: {remaining:?} {right}"
                );
            }
        }
        assert_eq!(meter.remaining(at(10_100), 0), Some(Duration::ZERO));
    }

    /// The rate falls to a half at once: the estimate rises by no more than a tenth a second.
    #[test]
    fn an_estimate_does_not_jump() {
        let mut meter = Meter::new(at(0));
        let mut last = None::<f64>;
        for step in 1..=200_u64 {
            meter.add(at(step * 100), if step < 100 { 100_000 } else { 50_000 });
            let Some(remaining) = meter.remaining(at(step * 100), 60_000_000) else { continue };
            let now = remaining.as_secs_f64();
            if let Some(before) = last {
                let change = before * 0.011 + 0.02;
                assert!(now <= before + change, "{step}: {before} {now}");
                assert!(now >= before - 0.1 - change, "{step}: {before} {now}");
            }
            last = Some(now);
        }
        assert!(last.unwrap() > 100.0);
    }

    /// The way of a person who moves away from their Wi-Fi: 8 Mbit/s with 3 s to go, then 200 kbit/s.
    #[test]
    fn an_estimate_never_says_that_it_is_about_to_end_when_it_is_not() {
        let mut meter = Meter::new(at(0));
        let mut left = 13_000_000_u64;
        let mut shown = 0;
        for millis in (10..=60_000_u64).step_by(10) {
            let came = if millis <= 10_000 { 10_000 } else { 250 };
            meter.add(at(millis), came);
            left -= came;
            let right = if millis <= 10_000 { left / 1_000 } else { left / 25 };
            let Some(remaining) = meter.remaining(at(millis), left) else { continue };
            if millis > 13_000 {
                shown += 1;
                let remaining = remaining.as_millis();
                assert!(remaining > u128::from(right / 4), "{millis}: {remaining} of {right} ms");
            }
        }
        assert!(shown > 4_000, "an estimate for 40 of the 47 s: {shown}");
    }

    #[test]
    fn before_anything_came_no_end_is_promised() {
        assert_eq!(Meter::new(at(0)).remaining(at(2_000), 0), None);
    }

    /// A dark path: nothing is promised, and afterwards the pause says nothing of the rate.
    #[test]
    fn without_a_rate_there_is_no_estimate() {
        let mut meter = Meter::new(at(0));
        let mut left = 40_000_000_u64;
        for millis in (100..=30_000).step_by(100) {
            let is_dark = (10_000..25_000).contains(&millis);
            if !is_dark {
                meter.add(at(millis), 100_000);
                left -= 100_000;
            }
            let remaining = meter.remaining(at(millis), left);
            match millis {
                13_000..25_000 => assert_eq!(remaining, None, "{millis}"),
                26_100.. => {
                    let (is, right) = (remaining.unwrap().as_secs_f64(), left as f64 / 1e6);
                    assert!((is - right).abs() < 0.15 * right, "{millis}: {is} {right}");
                }
                _ => {}
            }
        }
    }

    /// 200 kbit/s: a chunk of 256 KiB takes ten seconds, and its slices come all the time.
    #[test]
    fn slices_of_unfinished_chunks_are_a_rate() {
        let mut meter = Meter::new(at(0));
        let (chunk, slice) = (262_144_u64, 1_250_u64);
        let mut here = 0;
        for millis in (50..=60_000).step_by(50) {
            here += slice;
            if here >= chunk {
                // It is whole, and on its way to the disk.
                here -= chunk;
                meter.set_unfinished(at(millis), here);
                meter.add(at(millis + 20), chunk);
            }
            meter.set_unfinished(at(millis), here);
            assert!(meter.unfinished() < chunk + slice);
            if millis > 3_000 {
                let rate = meter.rate(at(millis));
                assert!((rate - 25_000.0).abs() < 1_500.0, "{millis}: {rate}");
            }
        }
    }
}
