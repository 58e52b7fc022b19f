//! The rate that was set as a limit (`max_rate_bps`): kept on average, overdrawn by no more than a tick
//! needs.

use super::tuning::TICK;
use super::tuning::limit::AHEAD;
use super::units::{Bytes, Rate, Span};
use crate::Instant;

/// A limit and how far it is used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    rate: Rate,
    /// When all that was sent is paid for.
    paid_at: Span,
}

impl Limit {
    pub(super) fn new(max_bps: u64) -> Self {
        let mut limit = Self { rate: Rate::ZERO, paid_at: Span::ZERO };
        limit.set(max_bps);
        limit
    }

    /// Another limit from now on, in bits per second.
    pub(super) fn set(&mut self, max_bps: u64) {
        self.rate = Rate::from_bps(max_bps).max(Rate::LEAST);
    }

    pub(super) const fn rate(&self) -> Rate {
        self.rate
    }

    pub(super) fn on_sent(&mut self, now: Instant, bytes: Bytes) {
        self.paid_at = self.paid_at.max(now.into()) + bytes / self.rate;
    }

    /// When the next datagram may go, if not now. It may overdraw by a tick; by `train`, if that is more,
    /// for a train goes whole and is made good for after it: without one no rate would ever be known
    /// under a limit that lets a few packets pass at a time; and by what the caller is late.
    pub(super) fn opens_at(&self, now: Instant, train: Bytes, late: Span) -> Option<Instant> {
        let at = self.paid_at - AHEAD.max(train / self.rate) - late;
        (at > now.into()).then(|| at.instant().max(now + TICK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Datagrams of 1000 bytes that go in a second, asked every so many ms.
    fn sent(every: u64, train: Bytes, late: Span) -> u64 {
        let mut limit = Limit::new(8_000_000);
        let mut sent = 0;
        for ms in (1_000..2_000).step_by(usize::try_from(every).unwrap()) {
            let now = Instant::from_millis(ms);
            while limit.opens_at(now, train, late).is_none() {
                limit.on_sent(now, Bytes(1_000.0));
                sent += 1;
            }
        }
        sent
    }

    #[test]
    fn it_is_kept_to_a_tick() {
        assert!((1_000..1_004).contains(&sent(1, Bytes::ZERO, Span::ZERO)));
    }

    #[test]
    fn a_train_goes_whole_and_is_made_good_for() {
        assert!((1_018..1_024).contains(&sent(1, Bytes(20_000.0), Span::ZERO)));
    }

    #[test]
    fn a_caller_with_frames_needs_what_it_is_late_by() {
        assert!(sent(20, Bytes::ZERO, Span::ZERO) < 200);
        assert!((980..1_024).contains(&sent(20, Bytes::ZERO, Span::from_millis(19))));
    }
}
