//! What the arrival times that a receiver reports say of single datagrams: how long each was under way,
//! and how much was sent and received up to it.

use alloc::collections::VecDeque;

use super::tuning::samples::{BASE_LIFETIME, REMEMBERED, UNQUEUED};
use super::units::{Bytes, Span};
use crate::transit::{ArrivalsFrame, Datagram, Fate, Ledger, MAX_EARLIER_ARRIVALS};

/// A datagram whose arrival was reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) number: u64,
    pub(crate) bytes: Bytes,
    /// By the receiver's clock.
    pub(crate) at: Span,
    /// By the sender's.
    pub(crate) sent: Span,
    /// Between the two: differences mean something.
    pub(crate) delay: Span,
    /// Bytes sent, and received, up to this one, itself counted.
    pub(crate) passed: Bytes,
    pub(crate) received: Bytes,
}

/// The smallest one-way delay of late, in two halves of its lifetime. While the queue is never seen empty the
/// smallest delay of late is one with a queue, and the older one stays. It stays wrong, then, where the way
/// has become longer by more than a queue that counts: the transfer does as beside others who fill it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BaseDelay {
    now: Span,
    before: Span,
    since: Span,
}

impl BaseDelay {
    pub(crate) const fn new() -> Self {
        Self { now: Span::INFINITY, before: Span::INFINITY, since: Span::ZERO }
    }

    pub(crate) fn on_delay(&mut self, at: Span, delay: Span) {
        if at - self.since > BASE_LIFETIME / 2.0 {
            let was_empty = self.now < self.before + UNQUEUED;
            let before = if was_empty { self.now } else { self.before };
            *self = Self { now: Span::INFINITY, before, since: at };
        }
        self.now = self.now.min(delay);
    }

    pub(crate) fn get(&self) -> Option<Span> {
        let base = self.now.min(self.before);
        base.is_finite().then_some(base)
    }
}

/// The newest of them.
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    newest: VecDeque<Sample>,
    base: BaseDelay,
    /// The number of the first datagram that counts.
    first: u64,
    /// The number up to which bytes are counted, and the counts.
    counted: Option<u64>,
    passed: Bytes,
    received: Bytes,
    /// The receiver's clock, as it was read and without its turns.
    last_micros: Option<u32>,
    clock: Span,
}

impl Samples {
    /// Of a transfer whose first datagram has the number `first`.
    pub(crate) const fn new(first: u64) -> Self {
        Self {
            newest: VecDeque::new(),
            base: BaseDelay::new(),
            first,
            counted: None,
            passed: Bytes::ZERO,
            received: Bytes::ZERO,
            last_micros: None,
            clock: Span::ZERO,
        }
    }

    pub(crate) const fn first(&self) -> u64 {
        self.first
    }

    /// The receiver says when datagrams arrived. Returns how many of these are news.
    pub(crate) fn on_arrivals(&mut self, frame: &ArrivalsFrame, ledger: &Ledger) -> usize {
        let mut reported = [(0, 0); MAX_EARLIER_ARRIVALS + 1];
        let mut count = 0;
        let arrivals = frame.arrivals(ledger.next_number()).into_iter().flatten();
        for (place, arrival) in reported.iter_mut().zip(arrivals) {
            *place = arrival;
            count += 1;
        }
        // The frame has the newest first.
        let in_order = reported.iter().take(count).rev();
        in_order.map(|&(number, at)| usize::from(self.on_arrival(number, at, ledger))).sum()
    }

    fn on_arrival(&mut self, number: u64, at_micros: u32, ledger: &Ledger) -> bool {
        let Some(datagram) = ledger.get(number).filter(|datagram| datagram.fate == Fate::Acked)
        else {
            return false;
        };
        if number < self.first || self.counted.is_some_and(|counted| number <= counted) {
            return false;
        }
        let turned = at_micros.wrapping_sub(self.last_micros.unwrap_or(at_micros));
        // The larger half are steps back: an older arrival, reported late.
        if turned > u32::MAX / 2 {
            return false;
        }
        self.last_micros = Some(at_micros);
        self.clock += Span(f64::from(turned));
        self.count(number, ledger);
        self.push(datagram);
        true
    }

    /// Counts the bytes up to this number.
    fn count(&mut self, number: u64, ledger: &Ledger) {
        let from = ledger.place(self.counted.map_or(self.first, |counted| counted + 1));
        for datagram in ledger.iter_from(from).take_while(|datagram| datagram.number <= number) {
            let bytes = Bytes(datagram.wire_bytes());
            self.passed += bytes;
            self.received += if datagram.fate == Fate::Acked { bytes } else { Bytes::ZERO };
        }
        self.counted = Some(number);
    }

    fn push(&mut self, datagram: &Datagram) {
        let sent = Span::from(datagram.sent_at);
        let delay = self.clock - sent;
        self.base.on_delay(self.clock, delay);
        if self.newest.len() >= REMEMBERED {
            self.newest.pop_front();
        }
        self.newest.push_back(Sample {
            number: datagram.number,
            bytes: Bytes(datagram.wire_bytes()),
            at: self.clock,
            sent,
            delay,
            passed: self.passed,
            received: self.received,
        });
    }

    /// All that are remembered.
    pub(crate) const fn all(&self) -> &VecDeque<Sample> {
        &self.newest
    }

    /// The newest so many.
    pub(crate) fn newest(&self, count: usize) -> impl Iterator<Item = &Sample> {
        self.newest.range(self.newest.len().saturating_sub(count)..)
    }

    /// The smallest delay: that without a queue.
    pub(crate) fn base(&self) -> Option<Span> {
        self.base.get()
    }

    /// The newest datagram, and when the bottleneck was done with it by the sender's clock.
    pub(crate) fn done(&self) -> Option<(u64, Span)> {
        let at = self.base().map_or(Span::ZERO, |base| self.clock - base);
        self.counted.map(|number| (number, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a second of datagrams says of the base, with this delay in microseconds.
    fn seconds(
        base: &mut BaseDelay,
        range: core::ops::Range<u32>,
        delay: impl Fn(f64) -> f64,
    ) -> f64 {
        for ms in range.start * 1_000..range.end * 1_000 {
            let at = Span(f64::from(ms) * 1_000.0);
            base.on_delay(at, Span(delay(f64::from(ms) / 1_000.0)));
        }
        base.get().unwrap().0
    }

    #[test]
    fn a_queue_that_stands_for_a_minute_is_no_base() {
        let mut base = BaseDelay::new();
        seconds(&mut base, 0..1, |_| 25_000.0);
        let standing = seconds(&mut base, 1..60, |_| 77_000.0);
        assert!((standing - 25_000.0).abs() < 1e-9, "{standing}");
    }

    /// Clocks that drift by a part in 10,000, up or down: what is empty stays empty.
    #[test]
    fn the_base_follows_clocks_that_drift() {
        for drift in [-100.0, 100.0] {
            let mut base = BaseDelay::new();
            let delay = |at: f64| 25_000.0 + drift * at + 30_000.0 * (at % 1.0);
            let after = seconds(&mut base, 0..60, delay);
            assert!((after - delay(60.0)).abs() < 1_100.0, "{after}, {drift}");
        }
    }

    #[test]
    fn a_way_that_is_shorter_now_is_believed_at_once() {
        let mut base = BaseDelay::new();
        seconds(&mut base, 0..20, |_| 25_000.0);
        assert!((seconds(&mut base, 20..21, |_| 20_000.0) - 20_000.0).abs() < 1e-9);
    }
}
