//! The probe of the tail of a stream, RFC 8985, 7: nothing later shows that its last segments are lost, so
//! the last one is sent again long before the retransmission timeout.

use std::time::Duration;

use haulier_proto::Instant;

use super::{Flight, Timer};

/// A probe is due after `ROUND_TRIPS` smoothed round trips (RFC 8985, 7.2). If one segment alone is in
/// flight, its ack may be delayed, and the probe is due `DELAYED` later: Linux's minimum timeout.
const ROUND_TRIPS: u32 = 2;
const DELAYED: Duration = Duration::from_millis(200);

/// When the tail is probed: once for each time that something arrives.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Tail {
    due: Option<Instant>,
    is_probed: bool,
}

impl Tail {
    /// Something was sent, or has arrived: perhaps everything is sent now.
    pub(in super::super) fn update(
        &mut self,
        now: Instant,
        flight: &Flight,
        timer: &Timer,
        has_arrived: bool,
    ) {
        self.is_probed &= !has_arrived;
        let is_tail = !flight.has_more() && flight.in_flight() > 0 && !self.is_probed;
        self.due = timer.smoothed_rtt().filter(|_| is_tail).map(|rtt| {
            let delayed = if flight.in_flight() == 1 { DELAYED } else { Duration::ZERO };
            now + rtt * ROUND_TRIPS + delayed
        });
    }

    /// Whether the probe is to be sent now.
    pub(in super::super) fn expires(&mut self, now: Instant) -> bool {
        let is_over = self.due.is_some_and(|at| at <= now);
        if is_over {
            (self.due, self.is_probed) = (None, true);
        }
        is_over
    }

    /// When the probe is due.
    pub(in super::super) const fn due(&self) -> Option<Instant> {
        self.due
    }
}
