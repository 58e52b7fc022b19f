//! An initial rate from the copies of a client's request, before the first slice is sent.
//!
//! A client sends the copies back to back, 1200 bytes each: a train. The spacing of their arrivals gives the
//! rate of the client's upstream path. The downstream path is seldom slower, so a server without a better
//! estimate starts at that rate. It is used for one round trip, until the first slices have measured the
//! downstream path.

use crate::tuning::requests::{AT_ONCE, IRREGULAR, MIN_TIME, RATES, REGULAR, TRAIN_GAP};
use crate::units::{Bytes, Rate, Span};
use haulier_core::Instant;

/// The arrivals of a request's copies. Every connection has one, so it is small.
#[derive(Clone, Copy, Debug)]
pub struct RequestTrain {
    first: Option<Instant>,
    /// Nanoseconds from the first to the last copy, and between two of them: the least and the most.
    last: u32,
    gaps: (u32, u32),
    /// Bytes after the first copy, UDP and IP included.
    bytes: u32,
    /// The check of the newest one.
    newest: u32,
}

impl Default for RequestTrain {
    fn default() -> Self {
        Self::new()
    }
}

impl RequestTrain {
    /// No copy has arrived.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: None, last: 0, gaps: (u32::MAX, 0), bytes: 0, newest: 0 }
    }

    /// A copy arrived; `bytes` is its size with UDP and IP. Each has its own padding, and so its own `check`:
    /// one with that of the newest is the same, which the network has doubled, and was not sent in the train.
    pub fn on_copy(&mut self, now: Instant, bytes: usize, check: u32) {
        let newest = core::mem::replace(&mut self.newest, check);
        let Some(first) = self.first else {
            self.first = Some(now);
            return;
        };
        if check == newest {
            return;
        }
        let after = u32::try_from(now.since(first).as_nanos()).unwrap_or(u32::MAX);
        let gap = after.saturating_sub(self.last);
        if span(gap) > TRAIN_GAP {
            return;
        }
        self.gaps = (self.gaps.0.min(gap), self.gaps.1.max(gap));
        self.last = self.last.max(after);
        self.bytes = self.bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// The rate of the path they took; `None` if the spacing does not show one.
    pub fn rate(&self) -> Option<Rate> {
        let (time, shortest, longest) = (span(self.last), span(self.gaps.0), span(self.gaps.1));
        if time < MIN_TIME {
            return (Bytes(self.bytes.into()) >= AT_ONCE.0).then_some(AT_ONCE.1);
        }
        let rate = Bytes(self.bytes.into()) / time;
        // Irregular gaps are not those of a link: the time of all of them is longer than the link needs.
        let is_regular = longest <= REGULAR * shortest + MIN_TIME;
        let guess = if is_regular { rate } else { (IRREGULAR.0 * rate).min(IRREGULAR.1) };
        Some(rate.max(guess).clamp(RATES.0, RATES.1))
    }
}

fn span(nanos: u32) -> Span {
    Span(f64::from(nanos) / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(micros: &[u64]) -> Option<Rate> {
        let mut train = RequestTrain::new();
        for (check, at) in (0..).zip(micros) {
            train.on_copy(Instant::from_nanos(at * 1000), 1228, check);
        }
        train.rate()
    }

    /// A copy that arrived twice at once made the gaps irregular, and the guess eight times the rate: of 256
    /// KiB over 3.7 Mbit/s two fifths were dropped.
    #[test]
    fn a_copy_that_the_network_has_doubled_is_one() {
        let mut train = RequestTrain::new();
        for (check, at) in [(1, 5000), (2, 7600), (2, 7600), (3, 10_200), (3, 10_201), (4, 12_800)]
        {
            train.on_copy(Instant::from_nanos(at * 1000), 1228, check);
        }
        let rate = train.rate().unwrap();
        assert!((rate.0 * 8.0 - 3.78).abs() < 0.01, "{rate:?}");
    }

    #[test]
    fn four_copies_give_the_rate() {
        let rate = train(&[5000, 5982, 6965, 7947]).unwrap();
        assert!((rate.0 * 8.0 - 10.0).abs() < 0.1, "{rate:?}");
    }

    /// Jitter of some milliseconds on a fast link.
    #[test]
    fn irregular_gaps_give_a_guess() {
        let rate = |micros| train(micros).unwrap().0 * 8.0;
        assert!((40.0..40.1).contains(&rate(&[5000, 5300, 9800, 10_100])), "up to a bound");
        assert!((20.0..30.0).contains(&rate(&[5000, 5600, 15_300, 15_900])));
        assert!((80.0..100.1).contains(&rate(&[5000, 5010, 5250, 5300])), "or what they show");
    }

    #[test]
    fn copies_at_once_give_a_guess() {
        assert_eq!(train(&[5000, 5000]), None, "two may be so close by chance");
        assert_eq!(train(&[5000, 5000, 5001]), Some(AT_ONCE.1));
    }

    #[test]
    fn one_copy_gives_no_rate() {
        assert_eq!(train(&[]), None);
        assert_eq!(train(&[5000]), None);
        assert_eq!(train(&[5000, 255_000]), None, "sent again");
    }

    #[test]
    fn the_rate_stays_within_its_range() {
        assert_eq!(train(&[0, 20, 40]), Some(Rate(16.25)));
        assert_eq!(train(&[0, 90_000]), Some(Rate(0.125)));
    }
}
