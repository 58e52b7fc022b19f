//! Samples of single datagrams from reported arrival times: the one-way delay of each, and the bytes sent
//! and received up to it.

use alloc::vec::Vec;

use crate::history::{History, Sent};
use crate::tuning::samples::{BASE_LIFETIME, HELD_UP, NEXT, REMEMBERED, UNQUEUED};
use crate::units::{Bytes, Rate, Span};

/// Arrivals that a report names at most.
pub const MAX_ARRIVALS: usize = 32;

/// Before the first time.
const NEVER: Span = Span(f64::NEG_INFINITY);

/// A datagram whose arrival was reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) number: u64,
    pub(crate) bytes: Bytes,
    /// When it arrived, by the receiver's clock.
    pub(crate) at: Span,
    /// When it was sent, by the sender's clock.
    pub(crate) sent: Span,
    /// The one-way delay: `at` less `sent`. Only differences have a meaning.
    pub(crate) delay: Span,
    /// The maximum time by which it arrived earlier than the largest datagram would have: the rate may be too
    /// low, as one that an uplink allows. So this counts only where a minimum is looked for.
    pub(crate) saved: Span,
    /// Bytes sent, and received, up to and including this one.
    pub(crate) passed: Bytes,
    pub(crate) received: Bytes,
}

#[cfg(test)]
impl Sample {
    /// One of nothing, at no time.
    pub(crate) const ZERO: Self = Self {
        number: 0,
        bytes: Bytes::ZERO,
        at: Span::ZERO,
        sent: Span::ZERO,
        delay: Span::ZERO,
        saved: Span::ZERO,
        passed: Bytes::ZERO,
        received: Bytes::ZERO,
    };

    /// A datagram that was sent and arrived at these times, and the bytes sent and received up to it.
    pub(crate) fn of(
        (number, bytes): (u64, Bytes),
        [sent, at]: [Span; 2],
        [passed, received]: [Bytes; 2],
    ) -> Self {
        Self { number, bytes, at, sent, delay: at - sent, passed, received, ..Self::ZERO }
    }
}

/// The base delay: the smallest recent one-way delay, kept in two halves of its lifetime.
///
/// While the queue is never seen empty, the recent minimum includes a queue, so the older minimum is kept.
/// If the path itself becomes longer by more than [`UNQUEUED`], the base stays too small until drains have
/// shown it (`law/windowed/others.rs`), and [`shift`](Self::shift) sets it right.
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

    /// Datagrams take longer by this, without any queue: they are larger, or the path is longer.
    pub(crate) fn shift(&mut self, longer: Span) {
        (self.now, self.before) = (self.now + longer, self.before + longer);
    }

    pub(crate) fn get(&self) -> Option<Span> {
        let base = self.now.min(self.before);
        base.is_finite().then_some(base)
    }
}

/// The newest samples.
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    newest: Vec<Sample>,
    base: BaseDelay,
    /// The least delay that the last report named.
    least_delay: Option<Span>,
    /// The number of the transfer's first datagram.
    first: u64,
    /// The size of the largest datagram that arrived.
    largest: Bytes,
    /// The number up to which bytes are counted, and the counts.
    counted: Option<u64>,
    passed: Bytes,
    received: Bytes,
    /// The receiver's clock: as last reported, and extended beyond its 32 bits.
    last_micros: Option<u32>,
    clock: Span,
    /// When datagrams were last seen to overtake others, and to arrive in bunches.
    overtaken_at: Span,
    bunched_at: Span,
}

/// Datagrams that arrive at once: when the first of them was sent, and the last arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bunch {
    first: Span,
    at: Span,
}

impl Bunch {
    pub(crate) const NONE: Self = Self { first: Span::ZERO, at: NEVER };

    /// The next datagram arrived. Returns whether it came at once with one that was sent long before.
    pub(crate) fn takes(&mut self, sample: &Sample) -> bool {
        if sample.at - self.at >= NEXT {
            self.first = sample.sent;
        }
        self.at = sample.at;
        sample.sent - self.first >= HELD_UP
    }
}

impl Samples {
    /// The samples of a transfer whose first datagram has the number `first`.
    pub(crate) const fn new(first: u64) -> Self {
        Self {
            newest: Vec::new(),
            base: BaseDelay::new(),
            least_delay: None,
            first,
            largest: Bytes::ZERO,
            counted: None,
            passed: Bytes::ZERO,
            received: Bytes::ZERO,
            last_micros: None,
            clock: Span::ZERO,
            overtaken_at: NEVER,
            bunched_at: NEVER,
        }
    }

    /// No datagram is larger than this from now on.
    pub(crate) const fn set_packet(&mut self, packet: Bytes) {
        self.largest = self.largest.min(packet);
    }

    /// The receiver reported arrival times: numbers, the newest first, and microseconds by its clock. Returns
    /// how many of them are new. The bottleneck may have a known `rate`.
    pub(crate) fn on_arrivals(
        &mut self,
        arrivals: impl Iterator<Item = (u64, u32)>,
        history: &impl History,
        rate: Option<Rate>,
    ) -> usize {
        let mut reported = [(0, 0); MAX_ARRIVALS];
        let mut count = 0;
        for (place, arrival) in reported.iter_mut().zip(arrivals) {
            *place = arrival;
            count += 1;
        }
        let in_order = reported.iter().take(count).rev();
        let new = in_order
            .map(|&(number, at)| usize::from(self.on_arrival(number, at, history, rate)))
            .sum();
        let delays = self.newest(new).map(|sample| sample.delay);
        self.least_delay = delays.reduce(Span::min).or(self.least_delay);
        if self.has_bunch() {
            self.bunched_at = self.clock;
        }
        new
    }

    fn on_arrival(
        &mut self,
        number: u64,
        at_micros: u32,
        history: &impl History,
        rate: Option<Rate>,
    ) -> bool {
        if number < self.first || self.counted.is_some_and(|counted| number <= counted) {
            return false;
        }
        let Some(sent) = history.get(number).filter(|sent| sent.is_acked) else { return false };
        let elapsed = at_micros.wrapping_sub(self.last_micros.unwrap_or(at_micros));
        // A step back is an older arrival, reported late.
        if elapsed > u32::MAX / 2 {
            return false;
        }
        self.last_micros = Some(at_micros);
        self.clock += Span(f64::from(elapsed));
        self.count(number, history);
        self.push(&sent, rate);
        true
    }

    /// Whether of the newest samples some were sent long after others and followed them at once: no queue of
    /// theirs held those up.
    fn has_bunch(&self) -> bool {
        let mut bunch = Bunch::NONE;
        self.newest(2 * (MAX_ARRIVALS - 1)).any(|sample| bunch.takes(sample))
    }

    /// Counts the bytes up to this number.
    fn count(&mut self, number: u64, history: &impl History) {
        let from = self.counted.map_or(self.first, |counted| counted + 1);
        for sent in history.from(from).take_while(|sent| sent.number <= number) {
            self.passed += sent.bytes;
            self.received += if sent.is_acked { sent.bytes } else { Bytes::ZERO };
        }
        self.counted = Some(number);
    }

    /// A datagram was acknowledged that others had overtaken: it was counted as missing.
    pub(crate) fn on_late(&mut self, number: u64, bytes: Bytes) {
        if number < self.first || self.counted.is_none_or(|counted| number > counted) {
            return;
        }
        self.overtaken_at = self.clock;
        self.received += bytes;
        let later = self.newest.iter_mut().rev().take_while(|sample| sample.number > number);
        later.for_each(|sample| sample.received += bytes);
    }

    fn push(&mut self, datagram: &Sent, rate: Option<Rate>) {
        let sent = Span::from(datagram.at);
        let (delay, saved) = (self.clock - sent, self.saved(datagram.bytes, rate));
        self.base.on_delay(self.clock, delay + saved);
        if self.newest.len() >= REMEMBERED + REMEMBERED / 2 {
            self.newest.drain(..REMEMBERED / 2);
        }
        self.newest.push(Sample {
            number: datagram.number,
            bytes: datagram.bytes,
            at: self.clock,
            sent,
            delay,
            saved,
            passed: self.passed,
            received: self.received,
        });
    }

    /// By how much less time than the largest datagram one of these bytes takes at a bottleneck of this rate.
    ///
    /// The datagram that ends a chunk is smaller, and met no shorter queue. When its delay was the base
    /// delay, a queue was seen that never existed, and the losses of a path that loses a fifth on its own
    /// were taken for those of others. A larger datagram than those before takes longer: so does the path
    /// without a queue.
    fn saved(&mut self, bytes: Bytes, rate: Option<Rate>) -> Span {
        let larger = (bytes - self.largest).max(Bytes::ZERO);
        self.largest += larger;
        // A datagram of no bytes says nothing of the path.
        let Some(rate) = rate.filter(|_| bytes > Bytes::ZERO) else { return Span::ZERO };
        self.base.shift(larger / rate);
        (self.largest - bytes) / rate
    }

    /// All remembered samples, oldest first.
    pub(crate) fn all(&self) -> &[Sample] {
        self.newest.get(self.newest.len().saturating_sub(REMEMBERED)..).unwrap_or_default()
    }

    /// The newest `count` samples.
    pub(crate) fn newest(&self, count: usize) -> impl Iterator<Item = &Sample> {
        self.newest.iter().skip(self.newest.len().saturating_sub(count))
    }

    /// Whether datagrams were seen to overtake others lately, or to arrive in bunches.
    pub(crate) fn is_disordered(&self) -> bool {
        self.is_overtaken() || self.clock - self.bunched_at < BASE_LIFETIME
    }

    /// Whether datagrams were seen to overtake others lately.
    pub(crate) fn is_overtaken(&self) -> bool {
        self.clock - self.overtaken_at < BASE_LIFETIME
    }

    /// The least delay that the last report named; `None` before there was one.
    pub(crate) const fn least_delay(&self) -> Option<Span> {
        self.least_delay
    }

    /// The path has become longer by this.
    pub(crate) fn on_longer(&mut self, by: Span) {
        self.base.shift(by);
    }

    /// The base delay: the one-way delay without a queue.
    pub(crate) fn base(&self) -> Option<Span> {
        self.base.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The base after some seconds of datagrams with this delay, in microseconds.
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

    /// A path that reorders once is not taken for one that does for the rest of a transfer.
    #[test]
    fn disorder_that_is_over_is_forgotten() {
        let mut samples = Samples::new(0);
        samples.counted = Some(9);
        assert!(!samples.is_disordered());
        samples.on_late(3, Bytes(1_228.0));
        samples.clock += 0.9 * BASE_LIFETIME;
        assert!(samples.is_overtaken() && samples.is_disordered());
        samples.bunched_at = samples.clock;
        samples.clock += 0.2 * BASE_LIFETIME;
        assert!(!samples.is_overtaken() && samples.is_disordered());
        samples.clock += BASE_LIFETIME;
        assert!(!samples.is_disordered());
    }

    #[test]
    fn a_standing_queue_does_not_change_the_base() {
        let mut base = BaseDelay::new();
        seconds(&mut base, 0..1, |_| 25_000.0);
        let standing = seconds(&mut base, 1..60, |_| 77_000.0);
        assert!((standing - 25_000.0).abs() < 1e-9, "{standing}");
    }

    /// Clocks that drift by a part in 10,000, up or down: an empty queue still reads as empty.
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
    fn a_shorter_path_changes_the_base_at_once() {
        let mut base = BaseDelay::new();
        seconds(&mut base, 0..20, |_| 25_000.0);
        assert!((seconds(&mut base, 20..21, |_| 20_000.0) - 20_000.0).abs() < 1e-9);
    }
}
