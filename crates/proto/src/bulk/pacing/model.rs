//! Pacing by the modelled queue of the bottleneck: a slice is sent while the backlog is small.
//!
//! [`Queue`] is the state of that queue at one instant; all laws take it as an argument.

use core::time::Duration;

use super::super::bottleneck::Bottleneck;
use super::super::tuning::TICK;
use super::super::tuning::flow::CATCH_UP;
use super::super::tuning::model::{
    BACKLOG, BACKLOG_PACKETS, CHUNK, MAX_BACKLOG, MAX_BACKLOG_PACKETS, UNCONFIRMED_REDUCTION,
};
use super::super::tuning::near::{is_fast, tick_through};
use super::super::tuning::trains;
use super::super::units::{Bytes, Rate, Span};
use crate::Instant;

/// The queue at the bottleneck, and the next datagram for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    /// The rate at which it drains, and whether that was measured in this transfer.
    rate: Option<Rate>,
    is_measured: bool,
    /// When it will be empty, and how many bytes it can hold.
    idle_at: Span,
    room: Bytes,
    /// The round trip is short: see [`NEAR`](super::super::tuning::near::NEAR).
    pub(super) is_near: bool,
    pub(crate) rtt: Span,
    /// The size of a datagram.
    pub(crate) packet: Bytes,
    /// Slices are sent back to back, to measure the rate.
    pub(crate) is_train: bool,
    /// How late the caller is.
    pub(crate) late: Span,
}

impl Queue {
    pub(crate) fn new(
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
            is_near: bottleneck.is_near(),
            rtt,
            packet,
            is_train,
            late,
        }
    }

    /// The pacing rate: that of the bottleneck, reduced while it is not measured.
    pub(super) fn rate(&self) -> Option<Rate> {
        let rate = self.rate?;
        let bdp = (rate * self.rtt / CHUNK).min(1.0);
        Some(rate * if self.is_measured { 1.0 } else { 1.0 - UNCONFIRMED_REDUCTION * bdp })
    }

    /// The lateness that may be made up for at this rate: what is sent for it must fit the queue, beside the
    /// usual backlog.
    pub(crate) fn lateness_at(&self, rate: Rate) -> Span {
        self.late.min((self.room / rate - BACKLOG).max(Span::ZERO))
    }

    /// The interval at which slices are sent at this rate.
    pub(crate) fn tick_at(&self, rate: Rate) -> Duration {
        if self.is_near { tick_through(rate, self.packet, self.room) } else { TICK }
    }

    /// How late a tick at this rate may be and still be made up for: on near and on fast paths what is sent
    /// for it must fit the queue, and where even a near one's tick does not, less is sent.
    pub(super) fn catch_up_at(&self, rate: Rate) -> Span {
        let fits = self.room / rate;
        match self.is_near {
            true => CATCH_UP.min(fits),
            false if is_fast(rate, self.packet) => CATCH_UP.min(fits.max(TICK.into())),
            false => CATCH_UP,
        }
    }

    /// When the next slice may be sent; `None` if now.
    pub(super) fn opens_at(&self, now: Instant) -> Option<Instant> {
        let rate = self.rate()?;
        let packet = self.packet / rate;
        let max = (MAX_BACKLOG_PACKETS * packet).max(MAX_BACKLOG);
        let mut backlog = (BACKLOG + BACKLOG_PACKETS * packet).min(max);
        if self.is_train {
            backlog = backlog.max(trains::MAX_BACKLOG);
        }
        // Never more than is assumed to fit, less one packet and the one to send.
        let drained = self.rate.map_or(Span::INFINITY, |rate| self.room / rate);
        let fits = (drained - 2.0 * packet).max(packet);
        let at = self.idle_at - (backlog + self.late).min(fits);
        (at > now.into()).then(|| at.instant().max(now + self.tick_at(rate)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_kbps(10_000);

    /// 10 Mbit/s with this backlog at 1 s.
    fn queue(backlog_ms: f64) -> Queue {
        Queue {
            rate: Some(RATE),
            is_measured: true,
            idle_at: Span::from_secs(1) + Span(backlog_ms * 1e3),
            room: Bytes(20_480.0),
            is_near: false,
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
    fn the_backlog_is_four_milliseconds_and_two_packets() {
        assert!(is_open(queue(5.9)) && !is_open(queue(6.1)));
        let opens = queue(8.0).opens_at(Instant::from_millis(1_000)).unwrap();
        assert!(opens > Instant::from_nanos(1_001_999_000) && opens < Instant::from_millis(1_003));
    }

    #[test]
    fn trains_and_late_callers_may_exceed_the_backlog_up_to_the_queue() {
        assert!(is_open(Queue { is_train: true, ..queue(13.5) }));
        assert!(!is_open(Queue { is_train: true, ..queue(15.5) }), "14.4 ms are all that fits");
        assert!(is_open(Queue { late: Span::from_millis(8), ..queue(13.5) }));
        assert!(!is_open(Queue { late: Span::from_millis(50), ..queue(15.5) }));
    }

    #[test]
    fn a_remembered_rate_is_reduced_on_long_paths() {
        let guess = Queue { is_measured: false, ..queue(0.0) };
        let part = |rtt_ms| {
            let queue = Queue { rtt: Span::from_millis(rtt_ms), ..guess };
            queue.rate().unwrap() / RATE
        };
        assert!(part(5) > 0.99 && (0.899..0.901).contains(&part(300)));
        assert!((queue(0.0).rate().unwrap() / RATE - 1.0).abs() < 1e-9);
    }
}
