//! The rate at which the path passed what was sent, in the last rounds: the greatest of them is what a pace
//! may exceed by a little only. A window alone goes out in bursts that a short queue does not hold.
//!
//! A round in which less was sent than might have been says how much passes at least, and no more.

use super::super::super::units::Span;
use super::SECOND;

/// The rounds that count, as in BBR's filter of the bottleneck's rate.
const ROUNDS: usize = 8;

/// Datagrams a second in the last rounds.
#[derive(Clone, Debug)]
pub(super) struct Passed {
    rates: [f64; ROUNDS],
    /// The same in the last round, whatever it says.
    last: f64,
    /// When the newest datagram was sent and arrived, and the newest of the rounds before.
    newest: (Span, Span),
    began: Option<(Span, Span)>,
}

impl Passed {
    /// Nothing has passed yet, and any rate may.
    pub(super) const fn new() -> Self {
        Self {
            rates: [f64::INFINITY; ROUNDS],
            last: f64::INFINITY,
            newest: (Span(f64::NEG_INFINITY), Span(f64::NEG_INFINITY)),
            began: None,
        }
    }

    /// Datagrams a second that the path is known to pass.
    pub(super) fn most(&self) -> f64 {
        self.rates.iter().copied().fold(0.0, f64::max)
    }

    /// Datagrams a second in the last round.
    pub(super) const fn last(&self) -> f64 {
        self.last
    }

    /// The path passes this many datagrams a second, and no more.
    pub(super) const fn set(&mut self, rate: f64) {
        self.rates = [rate; ROUNDS];
    }

    /// At least this many datagrams a second pass.
    pub(super) fn raise(&mut self, rate: f64) {
        self.rates[0] = self.rates[0].max(rate);
    }

    /// Datagrams have another size: as much is so many times as many.
    pub(super) fn scale(&mut self, times: f64) {
        self.rates = self.rates.map(|rate| rate * times);
    }

    /// A datagram that was sent then has arrived, each by its own clock.
    pub(super) fn on_arrival(&mut self, sent: Span, at: Span) {
        self.newest = (self.newest.0.max(sent), self.newest.1.max(at));
    }

    /// A round ends in which this number of datagrams passed. If not `is_full`, more might have. It lasted as
    /// long as these took to be sent, or to arrive.
    pub(super) fn end_round(&mut self, datagrams: f64, is_full: bool) {
        let ((sent, at), began) = (self.newest, self.began.replace(self.newest));
        let Some((sent_before, at_before)) = began else { return };
        let lasted = (sent - sent_before).max(at - at_before);
        if lasted == Span::ZERO {
            return;
        }
        let rate = datagrams / (lasted / SECOND);
        self.last = rate;
        if is_full || rate > self.most() {
            self.rates.rotate_right(1);
            self.rates[0] = rate;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round of so many datagrams that were sent and arrived in this time; returns what is known.
    fn round(
        passed: &mut Passed,
        datagrams: f64,
        is_full: bool,
        (sent_ms, at_ms): (u16, u16),
    ) -> f64 {
        let (sent, at) = passed.began.unwrap_or((Span::ZERO, Span::ZERO));
        passed.on_arrival(sent + Span::from_millis(sent_ms), at + Span::from_millis(at_ms));
        passed.end_round(datagrams, is_full);
        passed.most()
    }

    #[test]
    fn a_round_with_less_to_send_says_nothing_of_the_path() {
        let mut passed = Passed::new();
        let mut round = |datagrams, is_full| round(&mut passed, datagrams, is_full, (10, 10));
        assert!((0..=ROUNDS).all(|_| round(20.0, false).is_infinite()));
        assert!((1..ROUNDS).all(|_| round(20.0, true).is_infinite()));
        assert_eq!(round(20.0, true), 2_000.0);
        assert!((0..20).all(|_| round(5.0, false) == 2_000.0));
        assert_eq!(round(25.0, false), 2_500.0, "but it may show that more passes");
        assert!((1..ROUNDS).all(|_| round(5.0, true) == 2_500.0));
        assert_eq!(round(5.0, true), 500.0, "the link has become slower");
    }

    /// Where acks get lost the next one names the datagrams of two rounds, and where datagrams arrive in
    /// bunches they have passed before: neither is a fast link. With a third of acks lost one of 23 Mbit/s
    /// was taken for 800, and dropped a fifth.
    #[test]
    fn what_is_heard_at_once_or_arrives_in_a_bunch_has_not_passed_at_once() {
        let mut passed = Passed::new();
        for _ in 0..2 * ROUNDS {
            round(&mut passed, 20.0, true, (10, 1));
            round(&mut passed, 20.0, true, (1, 10));
        }
        assert_eq!(passed.most(), 2_000.0);
    }
}
