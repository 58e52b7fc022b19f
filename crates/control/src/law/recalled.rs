//! A rate from an earlier connection, believed as far as the path was seen to deliver it.
//!
//! The rate comes from arrival times, which the receiver reports and may invent. So until acks of this
//! connection cover as much, no more may be unacknowledged than the path was seen to deliver in a round trip
//! ([`delivered`](crate::belief::delivered)); beyond that slices go as they would without any memory.

use super::Blind;
use crate::belief::delivered::Proven;
use crate::tuning::delivered::MIN_TIME;
use crate::tuning::{TICK, trains};
use crate::units::{Bytes, Rate, Span};
use haulier_core::Instant;

/// How far a recalled rate may be used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recalled {
    proven: Proven,
    sent: Bytes,
    acked: Bytes,
    /// The pace without any memory.
    cold: Blind,
}

impl Recalled {
    pub(crate) const fn new(proven: Proven, cold: Blind) -> Self {
        Self { proven, sent: Bytes::ZERO, acked: Bytes::ZERO, cold }
    }

    /// Sets the pace without memory, as measured on the reverse path.
    pub(crate) const fn set_hint(&mut self, rate: Rate) {
        self.cold.set_hint(rate);
    }

    /// What may be sent before there is an answer. The round trip may be shorter than it was.
    fn allowance(&self, rtt: Span) -> Bytes {
        self.proven.bytes.min(self.proven.rate * rtt.max(MIN_TIME)) + trains::BYTES
    }

    pub(crate) fn on_slice_sent(&mut self, now: Instant, bytes: Bytes) {
        self.sent += bytes;
        self.cold.on_sent(now, bytes);
    }

    /// A slice was acknowledged.
    pub(crate) fn on_acked(&mut self, bytes: Bytes) {
        self.acked += bytes;
    }

    /// Whether acks have covered the remembered allowance: the rate is now this connection's own.
    pub(crate) fn is_over(&self, rtt: Span) -> bool {
        self.acked >= self.allowance(rtt)
    }

    /// When the next slice may be sent; `None` if now.
    pub(crate) fn opens_at(&self, now: Instant, rtt: Span, late: Span) -> Option<Instant> {
        let is_used_up = self.sent >= self.allowance(rtt) + 2.0 * self.acked;
        (is_used_up && self.cold.is_early(now, late)).then(|| now + TICK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(50);

    fn recalled(rate: Rate) -> Recalled {
        let proven = Proven { bytes: rate * (2.0 * RTT), rate };
        Recalled::new(proven, Blind::new(None))
    }

    /// Bytes sent in this time without an answer, of a path that was seen to deliver this.
    fn unanswered(rate: Rate, millis: u64) -> f64 {
        let mut recalled = recalled(rate);
        for ms in 0..millis {
            let now = Instant::from_millis(ms);
            let mut sent = 0;
            while recalled.opens_at(now, RTT, Span::ZERO).is_none() && sent < 1_000 {
                recalled.on_slice_sent(now, Bytes(1_250.0));
                sent += 1;
            }
        }
        recalled.sent.0
    }

    /// A round trip of what was proven, and a train; or what goes out without any memory, if that is more.
    #[test]
    fn what_is_unanswered_was_delivered_before() {
        let proven = |mbit: u32, millis| unanswered(Rate::from_kbps(1_000 * mbit), millis);
        assert!((645_000.0..655_000.0).contains(&proven(100, 50)), "{}", proven(100, 50));
        assert!((120_000.0..130_000.0).contains(&proven(0, 50)), "{}", proven(0, 50));
    }

    #[test]
    fn every_answer_allows_twice_as_much_until_it_is_over() {
        let mut recalled = recalled(Rate::from_kbps(8_000));
        let now = Instant::ZERO;
        while recalled.opens_at(now, RTT, Span::ZERO).is_none() {
            recalled.on_slice_sent(now, Bytes(1_250.0));
        }
        recalled.on_acked(Bytes(1_250.0));
        assert!(recalled.opens_at(now, RTT, Span::ZERO).is_none() && !recalled.is_over(RTT));
        recalled.on_acked(Bytes(75_000.0));
        assert!(recalled.is_over(RTT));
    }
}
