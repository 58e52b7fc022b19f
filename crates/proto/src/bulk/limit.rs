//! The rate that was set as a limit (`max_rate_bps`): kept on average, overdrawn by no more than a tick
//! needs.

use super::units::micros;
use crate::Instant;

/// What may be sent at once: so many microseconds' worth.
const AHEAD: f64 = 2_000.0;

/// A limit and how far it is used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// Bytes per microsecond.
    rate: f64,
    /// When all that was sent is paid for, in microseconds.
    paid_at: f64,
}

impl Limit {
    pub(super) fn new(max_bps: u64) -> Self {
        let mut limit = Self { rate: 0.0, paid_at: 0.0 };
        limit.set(max_bps);
        limit
    }

    /// Another limit from now on, in bits per second.
    #[expect(clippy::cast_precision_loss, reason = "a limit is not that exact")]
    pub(super) fn set(&mut self, max_bps: u64) {
        self.rate = (max_bps.max(1) as f64 / 8e6).max(1e-6);
    }

    /// Bytes per microsecond.
    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn on_sent(&mut self, now: Instant, bytes: f64) {
        self.paid_at = self.paid_at.max(micros(now)) + bytes / self.rate;
    }

    /// When the next datagram may go, in microseconds, if not now. It may overdraw by a tick; by `train`
    /// bytes, if they are more, for a train goes whole and is made good for after it: without one no rate
    /// would ever be known under a limit that lets a few packets pass at a time; and by `late`
    /// microseconds.
    pub(super) fn opens_at(&self, now: Instant, train: f64, late: f64) -> Option<f64> {
        let at = self.paid_at - AHEAD.max(train / self.rate) - late;
        (at > micros(now)).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Datagrams of 1000 bytes that go in a second, asked every so many ms.
    fn sent(every: u64, train: f64, late: f64) -> u64 {
        let mut limit = Limit::new(8_000_000);
        let mut sent = 0;
        for ms in (1_000..2_000).step_by(usize::try_from(every).unwrap()) {
            let now = Instant::from_millis(ms);
            while limit.opens_at(now, train, late).is_none() {
                limit.on_sent(now, 1_000.0);
                sent += 1;
            }
        }
        sent
    }

    #[test]
    fn it_is_kept_to_a_tick() {
        assert!((1_000..1_004).contains(&sent(1, 0.0, 0.0)));
    }

    #[test]
    fn a_train_goes_whole_and_is_made_good_for() {
        assert!((1_018..1_024).contains(&sent(1, 20_000.0, 0.0)));
    }

    #[test]
    fn a_caller_with_frames_needs_what_it_is_late_by() {
        assert!(sent(20, 0.0, 0.0) < 200);
        assert!((980..1_024).contains(&sent(20, 0.0, 19_000.0)));
    }
}
