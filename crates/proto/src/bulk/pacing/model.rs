//! Pacing by the modelled queue of the bottleneck: a slice goes while little waits there.
//!
//! What every law has to know of the queue is a [`Queue`], taken before it is asked.

use super::super::bottleneck::Bottleneck;
use super::super::tuning::TICK;
use super::super::tuning::model::{
    BACKLOG, BACKLOG_PACKETS, CHUNK, MAX_BACKLOG, MAX_BACKLOG_PACKETS, SHYNESS,
};
use super::super::tuning::trains;
use super::super::units::{Bytes, Rate, Span};
use crate::Instant;

/// The queue at the bottleneck, and who sends into it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    /// How fast it drains, and whether that was measured in this transfer.
    rate: Option<Rate>,
    is_measured: bool,
    /// When it will be empty, and what it holds.
    idle_at: Span,
    room: Bytes,
    pub(crate) rtt: Span,
    /// The size of a datagram.
    pub(crate) packet: Bytes,
    /// Slices go back to back, to measure the rate.
    pub(crate) is_train: bool,
    /// How late the caller is.
    pub(crate) late: Span,
}

impl Queue {
    pub(crate) const fn new(
        bottleneck: &Bottleneck,
        rtt: Span,
        packet: Bytes,
        is_train: bool,
        late: Span,
    ) -> Self {
        Self {
            rate: bottleneck.rate(),
            is_measured: bottleneck.finder().is_measured(),
            idle_at: bottleneck.idle_at(),
            room: bottleneck.room(),
            rtt,
            packet,
            is_train,
            late,
        }
    }

    /// What is sent at the rate of the bottleneck: somewhat less while that was not measured.
    pub(super) fn rate(&self) -> Option<Rate> {
        let rate = self.rate?;
        let bdp = (rate * self.rtt / CHUNK).min(1.0);
        Some(rate * if self.is_measured { 1.0 } else { 1.0 - SHYNESS * bdp })
    }

    /// What the caller may send at this rate for being late: no more than fits the queue beside what may wait
    /// there anyway.
    pub(crate) fn lateness_at(&self, rate: Rate) -> Span {
        self.late.min((self.room / rate - BACKLOG).max(Span::ZERO))
    }

    /// When the next slice may go, if not now.
    pub(super) fn opens_at(&self, now: Instant) -> Option<Instant> {
        let rate = self.rate()?;
        let packet = self.packet / rate;
        let max = (MAX_BACKLOG_PACKETS * packet).max(MAX_BACKLOG);
        let mut backlog = (BACKLOG + BACKLOG_PACKETS * packet).min(max);
        if self.is_train {
            backlog = backlog.max(trains::MAX_BACKLOG);
        }
        // Never more than is believed to fit, a packet and the one to be sent left out.
        let drained = self.rate.map_or(Span::INFINITY, |rate| self.room / rate);
        let fits = (drained - 2.0 * packet).max(packet);
        let at = self.idle_at - (backlog + self.late).min(fits);
        (at > now.into()).then(|| at.instant().max(now + TICK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_kbps(10_000);

    /// 10 Mbit/s with so much waiting, in ms, now being 1 s.
    fn queue(waits_ms: f64) -> Queue {
        Queue {
            rate: Some(RATE),
            is_measured: true,
            idle_at: Span::from_secs(1) + Span(waits_ms * 1e3),
            room: Bytes(20_480.0),
            rtt: Span::from_millis(50),
            packet: Bytes(1_250.0),
            is_train: false,
            late: Span::ZERO,
        }
    }

    fn is_open(queue: Queue) -> bool {
        queue.opens_at(Instant::from_millis(1_000)).is_none()
    }

    #[test]
    fn it_lets_four_milliseconds_and_two_packets_wait() {
        assert!(is_open(queue(5.9)) && !is_open(queue(6.1)));
        let opens = queue(8.0).opens_at(Instant::from_millis(1_000)).unwrap();
        assert!(opens > Instant::from_nanos(1_001_999_000) && opens < Instant::from_millis(1_003));
    }

    #[test]
    fn a_train_and_a_late_caller_may_more_but_no_more_than_fits() {
        assert!(is_open(Queue { is_train: true, ..queue(13.5) }));
        assert!(!is_open(Queue { is_train: true, ..queue(15.5) }), "14.4 ms are all that fits");
        assert!(is_open(Queue { late: Span::from_millis(8), ..queue(13.5) }));
        assert!(!is_open(Queue { late: Span::from_millis(50), ..queue(15.5) }));
    }

    #[test]
    fn a_rate_that_was_brought_along_is_not_all_used_on_long_ways() {
        let guess = Queue { is_measured: false, ..queue(0.0) };
        let part = |rtt_ms| {
            let queue = Queue { rtt: Span::from_millis(rtt_ms), ..guess };
            queue.rate().unwrap() / RATE
        };
        assert!(part(5) > 0.99 && (0.899..0.901).contains(&part(300)));
        assert!((queue(0.0).rate().unwrap() / RATE - 1.0).abs() < 1e-9);
    }
}
