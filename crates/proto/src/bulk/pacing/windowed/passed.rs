//! The rate at which the path passed what was sent, in the last rounds: the greatest of them is what a pace
//! may exceed by a little only. A window alone goes out in bursts that a short queue does not hold.
//!
//! A round in which less was sent than might have been says how much passes at least, and no more.

use super::super::super::units::Span;
use super::SECOND;

/// The rounds that count, as in BBR's filter of the bottleneck's rate.
const ROUNDS: usize = 8;

/// The shortest round, in seconds: on a path without a delay it would last no time.
const MIN_ROUND: f64 = 1e-6;

/// Datagrams a second in the last rounds.
#[derive(Clone, Debug)]
pub(super) struct Passed {
    rates: [f64; ROUNDS],
    began: Span,
}

impl Passed {
    /// Nothing has passed `now`, and any rate may.
    pub(super) const fn new(now: Span) -> Self {
        Self { rates: [f64::INFINITY; ROUNDS], began: now }
    }

    /// Datagrams a second that the path is known to pass.
    pub(super) fn most(&self) -> f64 {
        self.rates.iter().copied().fold(0.0, f64::max)
    }

    /// At least this many datagrams a second pass.
    pub(super) fn raise(&mut self, rate: f64) {
        self.rates[0] = self.rates[0].max(rate);
    }

    /// A round ends at `now`, in which this number of datagrams passed. If not `is_full`, more might have.
    pub(super) fn end_round(&mut self, now: Span, datagrams: f64, is_full: bool) {
        let lasted = ((now - self.began) / SECOND).max(MIN_ROUND);
        let rate = datagrams / lasted;
        if is_full || rate > self.most() {
            self.rates.rotate_right(1);
            self.rates[0] = rate;
        }
        self.began = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_with_less_to_send_says_nothing_of_the_path() {
        let (mut passed, mut ms) = (Passed::new(Span::ZERO), 0);
        let mut round = |datagrams, is_full| {
            ms += 10;
            passed.end_round(Span::from_millis(ms), datagrams, is_full);
            passed.most()
        };
        assert!((0..ROUNDS).all(|_| round(20.0, false).is_infinite()));
        assert!((1..ROUNDS).all(|_| round(20.0, true).is_infinite()));
        assert_eq!(round(20.0, true), 2_000.0);
        assert!((0..20).all(|_| round(5.0, false) == 2_000.0));
        assert_eq!(round(25.0, false), 2_500.0, "but it may show that more passes");
        assert!((1..ROUNDS).all(|_| round(5.0, true) == 2_500.0));
        assert_eq!(round(5.0, true), 500.0, "the link has become slower");
    }
}
