//! What the sending half knows of the path, and what the application has set: kept for the next sender, and
//! passed to the present one.

use core::time::Duration;

use super::blocks::OutgoingBlocks;
use crate::Instant;
use crate::bulk::{Known, RequestTrain, Trust};
use crate::urgency::Urgency;

impl OutgoingBlocks {
    /// Bytes that a slice frame may have: what the path carries less the header of a datagram and its tag, at
    /// least 1036. Open chunks keep their cut.
    pub(crate) fn set_slice_room(&mut self, room: usize) {
        self.slice_room = room;
        if let Some(sender) = &mut self.sender {
            sender.set_slice_room(room);
        }
    }

    /// The path no longer carries what it did, and [`set_slice_room`](Self::set_slice_room) has said what it
    /// does: open chunks are cut anew. So too when the path has changed.
    pub(crate) fn on_black_hole(&mut self) {
        if let Some(sender) = &mut self.sender {
            sender.on_black_hole();
        }
    }

    /// The peer's program reads so late.
    pub(super) fn set_lateness_ms(&mut self, lateness_ms: u16) {
        self.lateness_ms = lateness_ms;
        let lateness = self.lateness();
        if let Some(sender) = &mut self.sender {
            sender.set_lateness(lateness);
        }
    }

    /// By how much the peer's program reads late, as far as it is believed.
    pub(crate) const fn lateness(&self) -> Duration {
        Duration::from_millis(self.lateness_ms as u64)
    }

    /// A copy of the request arrived; `bytes` includes UDP and IP headers.
    pub(crate) fn on_request(&mut self, now: Instant, bytes: usize) {
        self.requests.on_copy(now, bytes);
        if let (Some(rate), Some(sender)) = (self.requests.rate(), &mut self.sender) {
            sender.set_hint(rate);
        }
    }

    /// What was measured of the path, for the client's next visit.
    pub(crate) fn known(&self) -> Known {
        self.sender.as_ref().map_or(self.known, |sender| sender.known())
    }

    /// The rate that acks have shown on this connection, in bits per second.
    pub(crate) fn proven_rate_bps(&self) -> Option<u64> {
        let known = self.sender.as_ref().map_or(self.known, |sender| sender.known());
        let rate = known.rate.filter(|_| known.trust == Trust::Own)?.min(known.proven.rate);
        Some(rate.bps()).filter(|&bps| bps > 0)
    }

    /// Starts from what an earlier connection measured of the path.
    pub(crate) const fn set_known(&mut self, known: Known) {
        self.known = known;
    }

    /// The client's address has changed: what was measured does not apply to its new path.
    pub(crate) fn forget_path(&mut self) {
        (self.known, self.requests) = (Known::NOTHING, RequestTrain::new());
        if let Some(sender) = &mut self.sender {
            sender.forget_path();
        }
    }

    pub(crate) fn set_max_rate_bps(&mut self, rate_bps: u64) {
        self.max_rate_bps = rate_bps.min(self.rate_cap_bps);
        if let Some(sender) = &mut self.sender {
            sender.set_max_rate_bps(self.max_rate_bps);
        }
    }

    /// Limits this and every later maximum rate.
    pub(crate) fn cap_rate_bps(&mut self, rate_cap_bps: u64) {
        self.rate_cap_bps = rate_cap_bps;
        self.set_max_rate_bps(self.max_rate_bps);
    }

    /// How much of the link blocks may take that are sent without an urgency of their own.
    pub(crate) fn set_urgency(&mut self, now: Instant, urgency: Urgency) {
        self.config.urgency = urgency;
        self.poll(now);
    }

    /// The connection measured a round trip; `rtt` is the smoothed value.
    pub(crate) fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = Some(rtt);
        if let Some(sender) = &mut self.sender {
            sender.set_rtt(rtt);
        }
    }
}
