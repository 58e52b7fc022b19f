//! The configured maximum rate (`max_rate_bps`): kept on average, exceeded by no more than one tick needs.

use crate::tuning::TICK;
use crate::tuning::limit::AHEAD;
use crate::units::{Bytes, Rate, Span};
use haulier_core::Instant;

/// A limit of the rate, and its use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    rate: Rate,
    /// The time at which all that was sent until now is within the limit.
    paid_at: Span,
}

impl Limit {
    pub(super) fn new(max_bps: u64) -> Self {
        let mut limit = Self { rate: Rate::ZERO, paid_at: Span::ZERO };
        limit.set(max_bps);
        limit
    }

    /// Changes the limit, in bits per second.
    pub(super) fn set(&mut self, max_bps: u64) {
        self.rate = Rate::from_bps(max_bps).max(Rate::MIN);
    }

    pub(super) const fn rate(&self) -> Rate {
        self.rate
    }

    pub(super) fn on_sent(&mut self, now: Instant, bytes: Bytes) {
        self.paid_at = self.paid_at.max(now.into()) + bytes / self.rate;
    }

    /// When the next datagram may be sent; `None` if now. The limit may be exceeded by [`AHEAD`], by the
    /// bytes of `train` if they are more, and by the time that the caller is `late`. A train is sent whole
    /// and compensated for later: a limit that passes a few packets at a time would otherwise never let a
    /// rate be measured.
    pub(super) fn opens_at(&self, now: Instant, train: Bytes, late: Span) -> Option<Instant> {
        let at = self.paid_at - AHEAD.max(train / self.rate) - late;
        (at > now.into()).then(|| at.instant().max(now + TICK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The datagrams of 1000 bytes sent in a second by a caller that asks every `every_ms`.
    fn sent(every_ms: u64, train: Bytes, late: Span) -> u64 {
        let mut limit = Limit::new(8_000_000);
        let mut sent = 0;
        for ms in (1_000..2_000).step_by(usize::try_from(every_ms).unwrap()) {
            let now = Instant::from_millis(ms);
            while limit.opens_at(now, train, late).is_none() {
                limit.on_sent(now, Bytes(1_000.0));
                sent += 1;
            }
        }
        sent
    }

    #[test]
    fn the_limit_is_kept_within_a_tick() {
        assert!((1_000..1_004).contains(&sent(1, Bytes::ZERO, Span::ZERO)));
    }

    #[test]
    fn a_train_is_sent_whole_and_compensated_for() {
        assert!((1_018..1_024).contains(&sent(1, Bytes(20_000.0), Span::ZERO)));
    }

    #[test]
    fn a_late_caller_may_send_what_it_missed() {
        assert!(sent(20, Bytes::ZERO, Span::ZERO) < 200);
        assert!((980..1_024).contains(&sent(20, Bytes::ZERO, Span::from_millis(19))));
    }
}
