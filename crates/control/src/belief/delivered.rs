//! What the path was seen to deliver, by the sender's own clock: a lower bound of its rate that the receiver
//! cannot raise by what it reports.
//!
//! Between the sending of a datagram and its ack at least the bytes acknowledged in that time have arrived.
//! A receiver that holds its acks back makes the time longer. One that acknowledges datagrams that it did not
//! receive names a skipped number sooner or later (H-2.2c): the connection is closed, and what it proved is
//! forgotten. Arrival times, which set the pace, are the receiver's word.

use alloc::collections::VecDeque;

use crate::tuning::delivered::{MARK_EVERY, MAX_MARKS, MIN_TIME};
use crate::units::{Bytes, Rate, Span};
use haulier_core::Instant;

/// A datagram, when it was sent, and the bytes acknowledged before.
#[derive(Clone, Copy, Debug)]
struct Mark {
    number: u64,
    sent_at: Instant,
    acked: Bytes,
}

/// Bytes that were acknowledged between the sending of a datagram and its ack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proven {
    /// Bytes, UDP and IP included.
    pub bytes: Bytes,
    /// How fast they were acknowledged.
    pub rate: Rate,
}

impl Proven {
    /// Nothing was acknowledged.
    pub const NOTHING: Self = Self { bytes: Bytes::ZERO, rate: Rate::ZERO };
}

/// The largest rate at which bytes were acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Delivered {
    marks: VecDeque<Mark>,
    acked: Bytes,
    proven: Proven,
}

impl Delivered {
    /// Starts with what an earlier transfer on this connection proved.
    pub(crate) const fn new(proven: Proven) -> Self {
        Self { marks: VecDeque::new(), acked: Bytes::ZERO, proven }
    }

    /// The largest rate, and the bytes that gave it.
    pub(crate) const fn proven(&self) -> Proven {
        self.proven
    }

    /// A datagram was sent.
    pub(crate) fn on_sent(&mut self, now: Instant, number: u64) {
        let is_due = self.marks.back().is_none_or(|mark| number >= mark.number + MARK_EVERY);
        if is_due && self.marks.len() < MAX_MARKS {
            self.marks.push_back(Mark { number, sent_at: now, acked: self.acked });
        }
    }

    /// A datagram was acknowledged for the first time.
    pub(crate) fn on_acked(&mut self, bytes: Bytes) {
        self.acked += bytes;
    }

    /// All datagrams of an ack, up to this number, were passed to [`on_acked`](Self::on_acked).
    pub(crate) fn end_ack(&mut self, now: Instant, largest: u64) {
        while let Some(&mark) = self.marks.front()
            && mark.number <= largest
        {
            self.marks.pop_front();
            let time = Span::from(now.since(mark.sent_at)).max(MIN_TIME);
            let bytes = self.acked - mark.acked;
            if bytes / time > self.proven.rate {
                self.proven = Proven { bytes, rate: bytes / time };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes(1_250.0);

    /// A flight of 128 packets at a time, acknowledged after this time, ten times; in Mbit/s.
    fn proven(rtt_ms: u64) -> f64 {
        let mut delivered = Delivered::new(Proven::NOTHING);
        for flight in 0..10 {
            let at = |ms| Instant::from_millis(flight * rtt_ms + ms);
            let first = flight * 128;
            (first..first + 128).for_each(|number| delivered.on_sent(at(0), number));
            for ack in 0..8 {
                (0..16).for_each(|_| delivered.on_acked(PACKET));
                delivered.end_ack(at(rtt_ms), first + ack * 16 + 15);
            }
        }
        assert!((160_000.0 - delivered.proven().bytes.0).abs() < 20_001.0);
        delivered.proven().rate / Rate::from_kbps(1_000)
    }

    /// 160 kB in flight are what the path takes in a round trip, and an ack that is held back lowers it.
    #[test]
    fn it_is_a_flight_in_a_round_trip() {
        let [at_once, soon, held_back] = [0, 50, 1_000].map(proven);
        assert!((20.0..26.0).contains(&soon), "{soon}");
        assert!((1.0..1.3).contains(&held_back), "{held_back}");
        assert!(at_once < 130.0, "no time is not an infinite rate: {at_once}");
    }

    #[test]
    fn memory_is_bounded_and_what_is_not_acknowledged_proves_nothing() {
        let mut delivered = Delivered::new(Proven::NOTHING);
        (0..100_000).for_each(|number| delivered.on_sent(Instant::ZERO, number));
        assert_eq!(delivered.marks.len(), MAX_MARKS);
        delivered.end_ack(Instant::from_millis(50), 0);
        assert_eq!(delivered.proven(), Proven::NOTHING);
    }
}
