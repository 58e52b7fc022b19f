//! The link at one instant, as far as it decides how much goes at once.

use core::time::Duration;

use crate::belief::bottleneck::Bottleneck;
use crate::tuning::TICK;
use crate::tuning::flow::{BACKLOG, CATCH_UP};
use crate::tuning::near::{is_fast, tick_through};
use crate::units::{Bytes, Rate, Span};

/// What every law knows of the link when it decides about a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Its rate; `None` while it is not known.
    pub(super) rate: Option<Rate>,
    /// Bytes that its queue can hold.
    pub(super) room: Bytes,
    /// The round trip is short: see [`NEAR`](crate::tuning::near::NEAR).
    pub(super) is_near: bool,
    pub(crate) rtt: Span,
    /// The size of a datagram.
    pub(crate) packet: Bytes,
    /// Slices are sent back to back, to measure the rate.
    pub(crate) is_train: bool,
    /// How late the caller is.
    pub(crate) late: Span,
}

impl Link {
    pub(crate) fn new(
        bottleneck: &Bottleneck,
        rtt: Span,
        packet: Bytes,
        is_train: bool,
        late: Span,
    ) -> Self {
        Self {
            rate: bottleneck.rate(),
            room: bottleneck.room(),
            is_near: bottleneck.is_near(),
            rtt,
            packet,
            is_train,
            late,
        }
    }

    /// The lateness that may be made up for at this rate: the slices that make up for it must fit the queue,
    /// beside the usual backlog.
    pub(crate) fn lateness_at(&self, rate: Rate) -> Span {
        self.late.min((self.room / rate - BACKLOG).max(Span::ZERO))
    }

    /// The interval at which slices are sent at this rate.
    pub(crate) fn tick_at(&self, rate: Rate) -> Duration {
        if self.is_near { tick_through(rate, self.packet, self.room) } else { TICK }
    }

    /// How late a tick at this rate may be and still be made up for: on near and on fast paths the slices for
    /// it must fit the queue, and on a near path fewer are sent where not even one tick fits.
    pub(super) fn catch_up_at(&self, rate: Rate) -> Span {
        let fits = self.room / rate;
        match self.is_near {
            true => CATCH_UP.min(fits),
            false if is_fast(rate, self.packet) => CATCH_UP.min(fits.max(TICK.into())),
            false => CATCH_UP,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a late caller sends at once has to fit beside what is in the queue anyway.
    #[test]
    fn a_late_caller_makes_up_for_what_fits() {
        let link = |late_ms| Link {
            rate: None,
            room: Bytes(20_000.0),
            is_near: false,
            rtt: Span::from_millis(50),
            packet: Bytes(1_250.0),
            is_train: false,
            late: Span::from_millis(late_ms),
        };
        let rate = Rate::from_kbps(10_000);
        assert_eq!(link(8).lateness_at(rate), Span::from_millis(8));
        assert_eq!(link(50).lateness_at(rate), Span::from_millis(12), "16 ms fit, less 4");
        assert_eq!(link(50).lateness_at(10.0 * rate), Span::ZERO);
    }
}
