//! The rate at which the path passes what is sent: the greatest of the last eight round trips (BBR's filter
//! of the bottleneck's rate).
//!
//! A round in which less was sent than might have been says how much passes at least, and no more.

use super::super::super::units::Span;
use super::SECOND;

/// The round trips that count, how long one is at least, and how many of them a round makes it forget at
/// most: what it was sent in may have been dark.
const TRIPS: usize = 8;
const MIN_TRIP: Span = Span::from_millis(25);
const MAX_FORGOTTEN: usize = TRIPS / 2;

/// Datagrams a second in the last round trips.
#[derive(Clone, Debug)]
pub(super) struct Passed {
    rates: [f64; TRIPS],
    /// What is expected, until the first was measured.
    expected: f64,
    /// How much of the newest round trip is over.
    over: Span,
    /// The rate of the last round, whatever it says.
    last: f64,
}

impl Passed {
    /// Nothing has passed yet, and this is expected to.
    pub(super) const fn new(expected: f64) -> Self {
        Self { rates: [0.0; TRIPS], expected, over: Span::ZERO, last: expected }
    }

    /// Datagrams a second that the path is known to pass.
    pub(super) fn most(&self) -> f64 {
        let most = self.rates.iter().copied().fold(0.0, f64::max);
        if most > 0.0 { most } else { self.expected }
    }

    /// Datagrams a second in the last round.
    pub(super) const fn last(&self) -> f64 {
        self.last
    }

    /// The path passes this many datagrams a second, and no more.
    pub(super) const fn set(&mut self, rate: f64) {
        self.rates = [rate; TRIPS];
    }

    /// At least this many datagrams a second pass.
    pub(super) fn raise(&mut self, rate: f64) {
        self.rates[0] = self.rates[0].max(rate);
    }

    /// So many times as much passes, or as many datagrams of another size.
    pub(super) fn scale(&mut self, times: f64) {
        self.rates = self.rates.map(|rate| rate * times);
        self.expected *= times;
    }

    /// A round ends in which this number of datagrams passed, over a path of this round trip. They took so
    /// long to be sent, or to arrive. If not `is_full`, more might have passed.
    pub(super) fn end_round(&mut self, datagrams: f64, lasted: Span, is_full: bool, trip: Span) {
        if lasted <= Span::ZERO {
            return;
        }
        self.last = datagrams / (lasted / SECOND);
        if is_full {
            self.forget(lasted, trip.max(MIN_TRIP));
        }
        if is_full || self.last > self.most() {
            self.raise(self.last);
        }
    }

    /// This much time has passed, in round trips of such a length.
    fn forget(&mut self, lasted: Span, trip: Span) {
        self.over += lasted;
        let mut left = MAX_FORGOTTEN;
        while self.over >= trip && left > 0 {
            self.over = self.over - trip;
            self.rates.rotate_right(1);
            self.rates[0] = 0.0;
            left -= 1;
        }
        self.over = self.over.min(trip);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIP: Span = Span::from_millis(10);

    /// A round of so many datagrams in this time; returns what is known.
    fn round(passed: &mut Passed, datagrams: f64, is_full: bool, ms: u16) -> f64 {
        passed.end_round(datagrams, Span::from_millis(ms), is_full, TRIP);
        passed.most()
    }

    #[test]
    fn a_round_with_less_to_send_says_nothing_of_the_path() {
        let mut passed = Passed::new(3_000.0);
        let mut round = |datagrams, is_full| round(&mut passed, datagrams, is_full, 25);
        assert_eq!(round(50.0, false), 3_000.0, "what is expected");
        assert_eq!(round(50.0, false), 3_000.0);
        assert_eq!(round(50.0, true), 2_000.0);
        assert!((0..20).all(|_| round(10.0, false) == 2_000.0));
        assert_eq!(round(62.5, false), 2_500.0, "but it may show that more passes");
        assert!((1..TRIPS).all(|_| round(10.0, true) == 2_500.0));
        assert_eq!(round(10.0, true), 400.0, "the link has become slower");
    }

    /// Behind a queue of seconds eight rounds are half a minute, and in one of them nothing may have passed.
    #[test]
    fn what_passed_is_forgotten_by_time_but_not_by_one_round() {
        let mut passed = Passed::new(2_000.0);
        round(&mut passed, 50.0, true, 25);
        assert_eq!(round(&mut passed, 50.0, true, 25), 2_000.0);
        assert_eq!(round(&mut passed, 50.0, true, 500), 2_000.0);
        assert_eq!(round(&mut passed, 50.0, true, 500), 100.0);
    }
}
