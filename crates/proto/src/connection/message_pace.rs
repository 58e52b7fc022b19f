//! How fast messages are sent: a window of bytes in flight, and a pace (RFC 9002, 7).
//!
//! A block measures the link, and each of its slices waits for its time. Messages are sent without any
//! measurement: at first ten datagrams of them, then as many more as were acknowledged, and half as many
//! after a loss or a mark of ECN. What may go is spread over a round trip; where the rate of the link is
//! known from blocks, at that rate. Packets are not counted: they are out of date if they wait. The
//! invariant: bytes in flight are those of parts sent and neither acknowledged nor lost.

use core::time::Duration;

use crate::Instant;
use crate::transit::SentPart;

/// A full datagram, in bytes.
const DATAGRAM_BYTES: u64 = 1200;

/// The window at first, and what may go at once (RFC 9002, 7.2 and 7.7).
const INITIAL_BYTES: u64 = 10 * DATAGRAM_BYTES;

/// The window at least (RFC 9002, 7.2).
const MIN_BYTES: u64 = 2 * DATAGRAM_BYTES;

/// The window at most: what all channels of a peer may hold unread is less.
const MAX_BYTES: u64 = 1 << 26;

/// What a part is counted with beside its bytes: the head of its frame.
const HEAD_BYTES: u64 = 12;

/// The round trip before the first sample (RFC 9002, 6.2.2).
const INITIAL_RTT: Duration = Duration::from_millis(333);

/// What is known of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownPath {
    pub(super) rtt: Option<Duration>,
    /// The rate that a block has measured, in bits per second.
    pub(super) rate_bps: Option<u64>,
}

/// A window that was reduced: its size before, and the losses that reduced it, of datagrams from `from` on.
#[derive(Clone, Copy, Debug)]
struct Reduced {
    window: u64,
    threshold: u64,
    from: u64,
    lost: u32,
    /// Those of them that have arrived after all.
    spurious: u32,
}

/// The window and the pace of messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessagePace {
    window: u64,
    in_flight: u64,
    /// The part of `in_flight` that was in flight when the window was used up: its acks let the window grow.
    counted: u64,
    /// A window that was reduced grows by a datagram in a round trip from here on.
    threshold: u64,
    /// Losses of datagrams before this number say nothing new.
    reduced_at: u64,
    /// By losses, if the last time it was: they may be none.
    reduced: Option<Reduced>,
    /// When all that was sent is within the pace.
    paid_at: Instant,
}

impl Default for MessagePace {
    fn default() -> Self {
        Self {
            window: INITIAL_BYTES,
            in_flight: 0,
            counted: 0,
            threshold: u64::MAX,
            reduced_at: 0,
            reduced: None,
            paid_at: Instant::ZERO,
        }
    }
}

impl MessagePace {
    /// When the next part may go; `None` if not before an ack or a loss.
    pub(super) fn opens_at(&self, path: KnownPath) -> Option<Instant> {
        let at_once = self.takes(INITIAL_BYTES, path).as_nanos();
        let at_once = u64::try_from(at_once).unwrap_or(u64::MAX);
        let at = Instant::from_nanos(self.paid_at.as_nanos().saturating_sub(at_once));
        (self.in_flight < self.window(path)).then_some(at)
    }

    /// A part was sent.
    pub(super) fn on_sent(&mut self, now: Instant, part: SentPart, path: KnownPath) {
        let bytes = bytes_of(part);
        self.in_flight += bytes;
        if self.in_flight + DATAGRAM_BYTES > self.window {
            self.counted = self.in_flight;
        }
        // A clock that went back begins anew.
        let longest = self.takes(2 * INITIAL_BYTES, path);
        let paid_at = if self.paid_at > now + longest { now } else { self.paid_at.max(now) };
        self.paid_at = paid_at + self.takes(bytes, path);
    }

    /// A part was acknowledged. The window grows if it was used.
    pub(super) fn on_acked(&mut self, part: SentPart) {
        let bytes = bytes_of(part);
        self.in_flight = self.in_flight.saturating_sub(bytes);
        if self.counted > 0 {
            self.counted = self.counted.saturating_sub(bytes);
            let is_slow = self.window >= self.threshold;
            let more = if is_slow { DATAGRAM_BYTES * bytes / self.window } else { bytes };
            self.window = (self.window + more).min(MAX_BYTES);
        }
    }

    /// A part was lost, with the datagram of this number. The next one is `next`.
    pub(super) fn on_lost(&mut self, part: SentPart, number: u64, next: u64) {
        self.in_flight = self.in_flight.saturating_sub(bytes_of(part));
        let (window, threshold, from) = (self.window, self.threshold, self.reduced_at);
        if number >= from {
            self.on_congestion(number, next);
            self.reduced = Some(Reduced { window, threshold, from, lost: 1, spurious: 0 });
        } else if let Some(reduced) = self.reduced.as_mut().filter(|it| number >= it.from) {
            reduced.lost += 1;
        }
    }

    /// A part has arrived that counted as lost, with the datagram of this number. If all parts for which the
    /// window was reduced have arrived, the window gets its old size (as in Linux; RFC 9002 leaves it open).
    pub(super) fn on_spurious(&mut self, number: u64) {
        let is_it = |it: &&mut Reduced| number >= it.from && number < self.reduced_at;
        let Some(reduced) = self.reduced.as_mut().filter(is_it) else { return };
        reduced.spurious += 1;
        if reduced.spurious >= reduced.lost {
            (self.window, self.threshold) = (self.window.max(reduced.window), reduced.threshold);
            self.reduced = None;
        }
    }

    /// A datagram no older than `number` was lost or marked: once a round trip this halves the window.
    pub(super) fn on_congestion(&mut self, number: u64, next: u64) {
        if number >= self.reduced_at {
            self.window = (self.window / 2).max(MIN_BYTES);
            (self.threshold, self.reduced_at, self.counted) = (self.window, next, 0);
            self.reduced = None;
        }
    }

    /// The window. Until something is lost it is what a known rate takes to keep the link busy, at least.
    fn window(&self, path: KnownPath) -> u64 {
        let rtt = path.rtt.unwrap_or(INITIAL_RTT).as_micros();
        let busy = u128::from(path.rate_bps.unwrap_or(0)).saturating_mul(rtt) / 8_000_000;
        match self.threshold {
            u64::MAX => self.window.max(u64::try_from(busy).unwrap_or(MAX_BYTES)).min(MAX_BYTES),
            _ => self.window,
        }
    }

    /// How long these bytes take at the pace: the known rate, or a quarter more than the window in a round
    /// trip.
    fn takes(&self, bytes: u64, path: KnownPath) -> Duration {
        let nanos = match path.rate_bps {
            Some(rate_bps) => u128::from(bytes) * 8_000_000_000 / u128::from(rate_bps.max(1)),
            None => {
                let rtt = path.rtt.unwrap_or(INITIAL_RTT).as_nanos();
                u128::from(bytes).saturating_mul(rtt) * 4 / (5 * u128::from(self.window))
            }
        };
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

fn bytes_of(part: SentPart) -> u64 {
    u64::from(part.units) + HEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: SentPart = SentPart { number: 0, offset: 0, units: 1188, channel: 0 };

    const PATH: KnownPath = KnownPath { rtt: Some(Duration::from_millis(100)), rate_bps: None };

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Sends what may go, millisecond by millisecond. Returns when each went.
    fn send(pace: &mut MessagePace, from: u64, to: u64, path: KnownPath) -> alloc::vec::Vec<u64> {
        let mut sent = alloc::vec::Vec::new();
        for now in from..to {
            while pace.opens_at(path).is_some_and(|at| at <= ms(now)) {
                pace.on_sent(ms(now), PART, path);
                sent.push(now);
            }
        }
        sent
    }

    #[test]
    fn ten_datagrams_go_at_once_and_then_as_many_more_as_are_acknowledged() {
        let mut pace = MessagePace::default();
        assert_eq!(send(&mut pace, 1_000, 1_100, PATH), [1_000; 10]);
        for _ in 0..10 {
            pace.on_acked(PART);
        }
        let sent = send(&mut pace, 1_100, 1_200, PATH);
        // 12 kB at once, and the rest of 24 kB at 24 kB in 80 ms.
        assert_eq!((sent.len(), sent.iter().filter(|&&at| at == 1_100).count()), (20, 11));
        assert!((1_125..1_145).contains(sent.last().unwrap()), "{sent:?}");
    }

    #[test]
    fn losses_of_a_round_trip_halve_the_window_once() {
        let mut pace = MessagePace::default();
        send(&mut pace, 1_000, 1_001, PATH);
        (0..10).for_each(|number| pace.on_lost(PART, number, 10));
        assert_eq!(pace.window, INITIAL_BYTES / 2);
        assert_eq!(send(&mut pace, 1_100, 1_200, PATH).len(), 5);
        (0..5).for_each(|_| pace.on_acked(PART));
        assert!(pace.window < INITIAL_BYTES / 2 + DATAGRAM_BYTES, "{}", pace.window);
        (10..30).for_each(|number| pace.on_lost(PART, number, number + 1));
        assert_eq!((pace.window, pace.in_flight), (MIN_BYTES, 0));
    }

    /// Parts that count as lost may be late: if all of them were, the window gets its old size, and grows as
    /// before.
    #[test]
    fn a_window_that_was_halved_for_nothing_is_what_it_was() {
        let after = |late: u64, is_marked: bool| {
            let mut pace = MessagePace::default();
            send(&mut pace, 1_000, 1_001, PATH);
            (2..5).for_each(|number| pace.on_lost(PART, number, 10));
            if is_marked {
                pace.on_congestion(10, 20);
            }
            (2..2 + late).for_each(|number| pace.on_spurious(number));
            (pace.window, pace.threshold)
        };
        assert_eq!(after(3, false), (INITIAL_BYTES, u64::MAX));
        assert_eq!(after(2, false), (INITIAL_BYTES / 2, INITIAL_BYTES / 2));
        assert_eq!(after(3, true).0, INITIAL_BYTES / 4, "a mark is no loss");
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut pace = MessagePace::default();
        for n in 0..100 {
            pace.on_sent(ms(1_000 * n), PART, PATH);
            pace.on_acked(PART);
        }
        assert_eq!(pace.window, INITIAL_BYTES);
    }

    #[test]
    fn a_rate_that_blocks_have_measured_sets_the_pace() {
        let path = KnownPath { rate_bps: Some(9_600_000), ..PATH };
        let mut pace = MessagePace::default();
        let sent = send(&mut pace, 1_000, 1_100, path);
        // A datagram a millisecond, and ten at once; 120 kB of them may be in flight.
        assert!((98..=101).contains(&sent.len()), "{}", sent.len());
        assert_eq!(sent.iter().filter(|&&at| at == 1_000).count(), 11);
    }
}
