//! What went out: the contents of each datagram come back once, acked or lost.
//!
//! The invariants: records lie in the order of their numbers, and the first one is not settled. So
//! what is lost is always at the front, and an empty list means that nothing is in flight.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::AckFrame;
use super::skipped::Skipped;
use super::timing::Timing;
use crate::{Instant, RttEstimator};

/// Datagrams whose contents are remembered: as many as a peer can tell apart, see
/// [`REPLAY_WINDOW`](super::REPLAY_WINDOW). One more, and the oldest is lost.
pub const MAX_SENT_RECORDS: usize = 8192;

/// How many later datagrams must be acked for one to be lost (RFC 9002, 6.1.1).
const PACKET_THRESHOLD: u64 = 3;

/// A datagram sent, with what its sender put aside for the day its fate is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentDatagram<T> {
    /// Its packet number.
    pub number: u64,
    /// When it went out.
    pub sent_at: Instant,
    /// Its bytes as UDP payload.
    pub bytes: u32,
    /// What was in it.
    pub contents: T,
}

/// What one ack has told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckOutcome {
    /// Datagrams acked by it for the first time; 0 if it was no news.
    pub acked: u32,
    /// Their bytes.
    pub acked_bytes: u64,
    /// The round trip with the peer's delay in it, if its largest number is among them.
    pub rtt_sample: Option<Duration>,
}

/// The peer acked a number that was never used: it acks what it did not get, to be sent more. The
/// connection is closed with `protocol` [H-2.2c].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an ack of a datagram that was never sent")]
pub struct NeverSent;

/// Counters since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentStats {
    /// All datagrams sent, and those of acks alone among them.
    pub datagrams: u64,
    /// Bytes of all datagrams sent.
    pub bytes: u64,
    /// Of those to be acked: the ones that were.
    pub acked: u64,
    /// Their bytes.
    pub acked_bytes: u64,
    /// Of those to be acked: the ones that are lost.
    pub lost: u64,
    /// Their bytes.
    pub lost_bytes: u64,
}

#[derive(Clone, Debug)]
struct Record<T> {
    number: u64,
    sent_at: Instant,
    bytes: u32,
    /// `None` once it is acked, until all before it are settled too.
    contents: Option<T>,
}

/// The datagrams sent on one connection: numbers, fates, the round trip. See [the module](super)
/// for an example.
///
/// Heap is taken for what is in flight, and given back the next time that nothing is.
#[derive(Clone, Debug)]
pub struct SentDatagrams<T> {
    records: VecDeque<Record<T>>,
    next: u64,
    largest_acked: Option<u64>,
    /// From when the probe time-out runs: the last datagram to be acked, or the last probe.
    probe_from: Instant,
    timing: Timing,
    skipped: Skipped,
    bytes_in_flight: u64,
    stats: SentStats,
    in_flight: u16,
    /// The most records since the list was last empty: what it keeps room for then.
    peak: u16,
}

impl<T> SentDatagrams<T> {
    /// Nothing sent; the first number is 0.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            records: VecDeque::new(),
            next: 0,
            largest_acked: None,
            probe_from: Instant::ZERO,
            timing: Timing::new(),
            skipped: Skipped::new(),
            bytes_in_flight: 0,
            stats: SentStats {
                datagrams: 0,
                bytes: 0,
                acked: 0,
                acked_bytes: 0,
                lost: 0,
                lost_bytes: 0,
            },
            in_flight: 0,
            peak: 0,
        }
    }

    /// The round trip to go by before the first sample, as from an earlier connection. Default 333
    /// ms.
    pub const fn set_initial_rtt(&mut self, rtt: Duration) {
        self.timing.set_initial_rtt(rtt);
    }

    /// The number of the next datagram. They end at 2^64, which no connection lives to see.
    #[must_use]
    pub const fn next_number(&self) -> u64 {
        self.next
    }

    /// Leaves the next `count` numbers out, so that a peer that acks them is caught. When, and how
    /// many, is the caller's to draw [H-2.2c]. The newest 16 calls are remembered.
    pub fn skip(&mut self, count: u8) {
        if count > 0 {
            self.skipped.insert(self.next, count);
            self.next = self.next.saturating_add(u64::from(count));
        }
    }

    /// A datagram of `bytes` bytes went out as [`next_number`](Self::next_number) (asserted).
    /// `contents` is `Some` if any frame in it is to be acknowledged, and comes back from
    /// [`on_ack`](Self::on_ack) or [`poll_lost`](Self::poll_lost). Returns the oldest datagram in
    /// flight if it had to make room, above [`MAX_SENT_RECORDS`]: it is lost.
    #[must_use]
    pub fn on_sent(
        &mut self,
        now: Instant,
        number: u64,
        bytes: u32,
        contents: Option<T>,
    ) -> Option<SentDatagram<T>> {
        assert_eq!(number, self.next, "numbers are used in order");
        self.next = self.next.saturating_add(1);
        self.stats.datagrams += 1;
        self.stats.bytes += u64::from(bytes);
        let contents = Some(contents?);
        let is_full = self.records.len() >= MAX_SENT_RECORDS;
        let pushed_out = if is_full { self.lose_front() } else { None };
        self.records.push_back(Record { number, sent_at: now, bytes, contents });
        self.peak = self.peak.max(u16::try_from(self.records.len()).unwrap_or(u16::MAX));
        self.in_flight += 1;
        self.bytes_in_flight += u64::from(bytes);
        self.probe_from = now;
        pushed_out
    }

    /// Takes in what the peer received; `acked` is called once for each datagram that is news, in
    /// no promised order. What was acked before, is lost already or asked for no ack is passed
    /// over. The work is 32 searches, and a step for each datagram named that is still remembered:
    /// at most 1024.
    ///
    /// # Errors
    /// [`NeverSent`]; nothing was changed then.
    pub fn on_ack(
        &mut self,
        now: Instant,
        ack: &AckFrame,
        mut acked: impl FnMut(SentDatagram<T>),
    ) -> Result<AckOutcome, NeverSent> {
        let ranges = ack.ranges(self.next).ok_or(NeverSent)?;
        if ranges.clone().any(|range| self.skipped.count_within(*range.start(), *range.end()) > 0) {
            return Err(NeverSent);
        }
        let largest = ack.largest(self.next);
        let mut outcome = AckOutcome::default();
        for range in ranges {
            let start = self.records.partition_point(|record| record.number < *range.start());
            let named = self.records.range_mut(start..);
            for record in named.take_while(|record| record.number <= *range.end()) {
                let Some(contents) = record.contents.take() else { continue };
                let Record { number, sent_at, bytes, .. } = *record;
                outcome.acked += 1;
                outcome.acked_bytes += u64::from(bytes);
                // A datagram from a time to come tells that the clock went back, not how long it
                // took.
                if number == largest && sent_at <= now {
                    outcome.rtt_sample = Some(now.since(sent_at));
                }
                acked(SentDatagram { number, sent_at, bytes, contents });
            }
        }
        self.largest_acked = self.largest_acked.max(Some(largest));
        self.on_acked(&mut outcome, ack.delay());
        Ok(outcome)
    }

    /// The next datagram that is lost by `now`, in the order in which they were sent: one sent 3
    /// later, or 9/8 round trips later, was acked. Ask until `None`, after each ack and each
    /// time-out.
    pub fn poll_lost(&mut self, now: Instant) -> Option<SentDatagram<T>> {
        // A clock that jumped ahead and came back: the time begins anew.
        self.probe_from = self.probe_from.min(now);
        let delay = self.timing.loss_delay();
        let front = self.records.front_mut()?;
        front.sent_at = front.sent_at.min(now);
        let largest = self.largest_acked.filter(|&largest| largest > front.number)?;
        let later = largest - front.number - self.skipped.count_within(front.number, largest);
        if later < PACKET_THRESHOLD && now.since(front.sent_at) < delay {
            return None;
        }
        self.lose_front()
    }

    /// When to call [`poll_lost`](Self::poll_lost) and then [`on_pto`](Self::on_pto) next; `None`
    /// while nothing is in flight.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let front = self.records.front()?;
        if self.largest_acked > Some(front.number) {
            return Some(front.sent_at + self.timing.loss_delay());
        }
        Some(self.probe_from + self.timing.backed_off_timeout())
    }

    /// Whether a probe is due: nothing was acked for a probe time-out (RFC 9002, 6.2) since the
    /// last datagram to be acked. Any such datagram is a probe, a ping if there is nothing else.
    /// Nothing is lost by it. The next one is due after twice the time, at most 2 s.
    #[must_use]
    pub fn on_pto(&mut self, now: Instant) -> bool {
        let is_due = self.records.front().is_some_and(|front| {
            self.largest_acked < Some(front.number)
                && now >= self.probe_from + self.timing.backed_off_timeout()
        });
        if is_due {
            self.timing.on_probe();
            self.probe_from = now;
        }
        is_due
    }

    /// The round trip so far.
    #[must_use]
    pub const fn rtt(&self) -> &RttEstimator {
        self.timing.rtt()
    }

    /// The probe time-out without back-off: what an end waits before it repeats itself. At most 2
    /// s.
    #[must_use]
    pub fn probe_timeout(&self) -> Duration {
        self.timing.probe_timeout()
    }

    /// The largest number acked; `None` before the first.
    #[must_use]
    pub const fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    /// Datagrams to be acked that are neither acked nor lost; 0 to [`MAX_SENT_RECORDS`].
    #[must_use]
    pub const fn in_flight(&self) -> u16 {
        self.in_flight
    }

    /// Their bytes.
    #[must_use]
    pub const fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    /// Counters since the connection began.
    #[must_use]
    pub const fn stats(&self) -> &SentStats {
        &self.stats
    }

    /// Panics if the records contradict each other. For tests, fuzzers and the simulator.
    pub fn check_invariants(&self) {
        let open = || self.records.iter().filter(|record| record.contents.is_some());
        assert_eq!(open().count(), usize::from(self.in_flight), "datagrams in flight");
        let bytes: u64 = open().map(|record| u64::from(record.bytes)).sum();
        assert_eq!(bytes, self.bytes_in_flight, "bytes in flight");
        assert!(self.records.len() <= MAX_SENT_RECORDS, "too many records");
        let front = self.records.front();
        assert!(front.is_none_or(|record| record.contents.is_some()), "a settled front");
        let numbers = || self.records.iter().map(|record| record.number);
        assert!(numbers().zip(numbers().skip(1)).all(|(a, b)| a < b), "not in order");
        assert!(self.records.back().is_none_or(|last| last.number < self.next), "from the future");
        assert_eq!(
            self.poll_timeout().is_some(),
            self.in_flight > 0,
            "a deadline for those in flight"
        );
    }

    /// Records there is room for.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.records.capacity()
    }

    fn on_acked(&mut self, outcome: &mut AckOutcome, delay: Option<Duration>) {
        if outcome.acked == 0 {
            return;
        }
        self.stats.acked += u64::from(outcome.acked);
        self.stats.acked_bytes += outcome.acked_bytes;
        self.in_flight -= u16::try_from(outcome.acked).unwrap_or(u16::MAX);
        self.bytes_in_flight -= outcome.acked_bytes;
        self.timing.on_news();
        // With a delay longer than the wire can say nobody knows how long the way was.
        outcome.rtt_sample = outcome
            .rtt_sample
            .filter(|&sample| delay.is_some_and(|delay| self.timing.on_sample(sample, delay)));
        self.pass_settled();
    }

    /// The front is lost.
    fn lose_front(&mut self) -> Option<SentDatagram<T>> {
        let Record { number, sent_at, bytes, contents } = self.records.pop_front()?;
        self.pass_settled();
        let contents = contents?;
        self.in_flight -= 1;
        self.bytes_in_flight -= u64::from(bytes);
        self.stats.lost += 1;
        self.stats.lost_bytes += u64::from(bytes);
        Some(SentDatagram { number, sent_at, bytes, contents })
    }

    fn pass_settled(&mut self) {
        while self.records.front().is_some_and(|record| record.contents.is_none()) {
            self.records.pop_front();
        }
        if self.records.is_empty() {
            // Not to nothing: whoever sends a little all the time would allocate for each datagram.
            let kept = usize::from(self.peak.max(2));
            if self.records.capacity() > 2 * kept {
                self.records.shrink_to(kept);
            }
            self.peak = 0;
        }
    }
}

impl<T> Default for SentDatagrams<T> {
    fn default() -> Self {
        Self::new()
    }
}
