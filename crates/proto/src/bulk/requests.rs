//! What the copies of a request tell of the link before the first slice is sent.
//!
//! A client sends them back to back, 1200 bytes each: a train. How far apart they arrive is the rate of the
//! way they took; the way back is seldom slower, so it is where a sender begins that knows nothing better. It
//! is believed for one round trip, until the first slices have measured the way that matters.

use super::tuning::requests::{RATES, SHORTEST, TRAIN_GAP};
use super::units::{Bytes, Rate, Span};
use crate::Instant;

/// The arrivals of a request's copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestTrain {
    first: Option<Span>,
    last: Span,
    /// Bytes after the first copy, UDP and IP counted.
    bytes: Bytes,
}

impl RequestTrain {
    pub(crate) const fn new() -> Self {
        Self { first: None, last: Span::ZERO, bytes: Bytes::ZERO }
    }

    /// A copy of this many bytes, with UDP and IP, arrived.
    pub(crate) fn on_copy(&mut self, now: Instant, bytes: usize) {
        let at = Span::from(now);
        match self.first {
            Some(_) if at - self.last > TRAIN_GAP => {}
            Some(_) => {
                self.last = self.last.max(at);
                self.bytes += bytes.into();
            }
            None => (self.first, self.last) = (Some(at), at),
        }
    }

    /// The rate of the way they took; `None` if they do not tell.
    pub(crate) fn rate(&self) -> Option<Rate> {
        let time = self.last - self.first?;
        (time >= SHORTEST).then(|| (self.bytes / time).clamp(RATES.0, RATES.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(micros: &[u64]) -> Option<Rate> {
        let mut train = RequestTrain::new();
        for at in micros {
            train.on_copy(Instant::from_nanos(at * 1000), 1228);
        }
        train.rate()
    }

    #[test]
    fn four_copies_tell_the_rate() {
        let rate = train(&[5000, 5982, 6965, 7947]).unwrap();
        assert!((rate.0 * 8.0 - 10.0).abs() < 0.1, "{rate:?}");
    }

    #[test]
    fn one_copy_or_one_moment_tells_nothing() {
        assert_eq!(train(&[]), None);
        assert_eq!(train(&[5000]), None);
        assert_eq!(train(&[5000, 5000, 5001]), None);
        assert_eq!(train(&[5000, 255_000]), None, "sent again");
    }

    #[test]
    fn no_rate_is_beyond_belief() {
        assert_eq!(train(&[0, 25, 50]), Some(Rate(12.5)));
        assert_eq!(train(&[0, 90_000]), Some(Rate(0.125)));
    }
}
