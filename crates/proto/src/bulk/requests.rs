//! What the copies of a request tell of the link before the first slice is sent.
//!
//! A client sends them back to back, 1200 bytes each: a train. How far apart they arrive is the rate of the
//! way they took; the way back is seldom slower, so it is where a sender begins that knows nothing better. It
//! is believed for one round trip, until the first slices have measured the way that matters.

use super::units::micros;
use crate::Instant;

/// Copies further apart than this are no train: the later one was sent again for want of an answer.
const TRAIN_GAP: f64 = 100_000.0;

/// Together they take at least this long, or the clock that timed them was only read once.
const SHORTEST: f64 = 20.0;

/// The slowest and the fastest rate that are believed, in bytes per microsecond: 1 and 100 Mbit/s. More would
/// risk a queue for the sake of a millisecond.
const RATES: (f64, f64) = (0.125, 12.5);

/// The arrivals of a request's copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestTrain {
    first: Option<f64>,
    last: f64,
    /// Bytes after the first copy, UDP and IP counted.
    bytes: f64,
}

impl RequestTrain {
    pub(crate) const fn new() -> Self {
        Self { first: None, last: 0.0, bytes: 0.0 }
    }

    /// A copy of this many bytes, with UDP and IP, arrived.
    pub(crate) fn on_copy(&mut self, now: Instant, bytes: usize) {
        #[expect(clippy::cast_precision_loss, reason = "a datagram")]
        let bytes = bytes as f64;
        let at = micros(now);
        match self.first {
            Some(_) if at - self.last > TRAIN_GAP => {}
            Some(_) => (self.last, self.bytes) = (self.last.max(at), self.bytes + bytes),
            None => (self.first, self.last) = (Some(at), at),
        }
    }

    /// The rate of the way they took, in bytes per microsecond; `None` if they do not tell.
    pub(crate) fn rate(&self) -> Option<f64> {
        let time = self.last - self.first?;
        (time >= SHORTEST).then(|| (self.bytes / time).clamp(RATES.0, RATES.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(micros: &[u64]) -> Option<f64> {
        let mut train = RequestTrain::new();
        for at in micros {
            train.on_copy(Instant::from_nanos(at * 1000), 1228);
        }
        train.rate()
    }

    #[test]
    fn four_copies_tell_the_rate() {
        let rate = train(&[5000, 5982, 6965, 7947]).unwrap();
        assert!((rate * 8.0 - 10.0).abs() < 0.1, "{rate}");
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
        assert_eq!(train(&[0, 25, 50]), Some(12.5));
        assert_eq!(train(&[0, 90_000]), Some(0.125));
    }
}
