//! What the receiver's program can take: it reads late, and until then its socket's buffer holds the bytes.
//!
//! What does not fit a socket's buffer is dropped by the receiver's own system, and would look like the
//! path's loss. So in the time that a datagram may wait for the program, no more is sent than the buffer
//! holds; and no more than that is in flight, in case the program stops reading altogether. The invariant: an
//! unknown buffer limits nothing, and nothing here is lower than the floor of the rate.

use crate::tuning::reader::{MIN_PACKETS, PATHS, PROBES};
use crate::units::{Bytes, Rate, Span};
use haulier_core::Instant;

/// The receiver's program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    /// How much waits for it at most; infinite if that is not known.
    buffer: Bytes,
    /// How late it reads.
    late: Span,
    rate: Rate,
    /// What was sent and is not within the rate yet, and when that was.
    ahead: Bytes,
    at: Span,
}

impl Reader {
    /// A program that reads at once. `buffer_bytes` is what its socket holds, 0 if that is not known.
    pub(super) fn new(buffer_bytes: u64) -> Self {
        let known = usize::try_from(buffer_bytes).ok().filter(|&bytes| bytes > 0);
        let buffer = known.map_or(Bytes::INFINITY, Bytes::from);
        Self { buffer, late: Span::ZERO, rate: Rate::INFINITY, ahead: Bytes::ZERO, at: Span::ZERO }
    }

    /// Sets how late it reads.
    pub(super) fn set_lateness(&mut self, late: Span, floor: Rate) {
        self.late = late;
        // Half of the buffer may be sent at once, after a pause, and half while that waits.
        let rate = if late > Span::ZERO { self.buffer / late / 2.0 } else { Rate::INFINITY };
        self.rate = rate.max(floor).max(Rate::MIN);
    }

    /// What it can take on average.
    pub(super) const fn rate(&self) -> Rate {
        self.rate
    }

    pub(super) fn on_sent(&mut self, now: Instant, bytes: Bytes) {
        let now = Span::from(now);
        // A rate without limit, or a clock that went back: nothing is left.
        let left = self.at + self.ahead / self.rate - now;
        let is_left = left > Span::ZERO && now >= self.at;
        self.ahead = bytes + if is_left { self.rate * left } else { Bytes::ZERO };
        self.at = now;
    }

    /// When the next datagram may be sent; `None` if now.
    pub(super) fn opens_at(&self, now: Instant) -> Option<Instant> {
        let at = self.at + self.ahead / self.rate - self.late;
        (at > now.into()).then(|| at.instant())
    }

    /// Bytes that may be in flight: what the path holds has to be.
    pub(super) fn max_in_flight(&self, path: Bytes, packet: Bytes) -> Bytes {
        (self.buffer - PROBES * packet).max(PATHS * path).max(MIN_PACKETS * packet)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const PACKET: Bytes = Bytes(1_000.0);

    /// Sends what it may, as soon as it may, for a second. Returns what was sent in it, and the most in any
    /// time of `late_ms`.
    fn sent(reader: &mut Reader, late_ms: u64) -> (usize, usize) {
        let mut at = Vec::new();
        for ms in 1_000..2_000 {
            let now = Instant::from_millis(ms);
            while at.len() < 4_000 && reader.opens_at(now).is_none() {
                reader.on_sent(now, PACKET);
                at.push(ms);
            }
        }
        let within =
            |&from: &u64| at.iter().filter(|&&ms| ms >= from && ms < from + late_ms).count();
        (at.len(), at.iter().map(within).max().unwrap_or(0))
    }

    #[test]
    fn what_waits_for_a_late_reader_fits_its_buffer() {
        for late_ms in [16, 100] {
            let mut reader = Reader::new(100_000);
            reader.set_lateness(Span::from_millis(late_ms), Rate::from_kbps(200));
            let (all, at_once) = sent(&mut reader, late_ms.into());
            assert!(at_once <= 102, "{late_ms} ms: {at_once}");
            let expected = 50_000 / usize::from(late_ms);
            assert!((expected..=expected + 51).contains(&all), "{late_ms} ms: {all}");
        }
    }

    #[test]
    fn neither_a_punctual_reader_nor_an_unknown_buffer_limits() {
        let mut reader = Reader::new(100_000);
        reader.set_lateness(Span::ZERO, Rate::MIN);
        assert_eq!(sent(&mut reader, 1).0, 4_000);
        let mut reader = Reader::new(0);
        reader.set_lateness(Span::from_millis(100), Rate::MIN);
        assert_eq!(sent(&mut reader, 1).0, 4_000);
        assert_eq!(reader.max_in_flight(PACKET, PACKET), Bytes::INFINITY);
    }

    #[test]
    fn a_tiny_buffer_does_not_stop_the_sender() {
        let mut reader = Reader::new(1);
        reader.set_lateness(Span::from_millis(1_000), Rate::from_kbps(200));
        assert!(sent(&mut reader, 1_000).0 >= 25);
        assert!(reader.max_in_flight(PACKET, PACKET) >= 16.0 * PACKET);
    }
}
