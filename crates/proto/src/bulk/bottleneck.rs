//! A model of the narrowest place on the way: how fast it drains, and what waits in front of it now.
//!
//! The rate comes from the arrival times that the receiver tells: packets sent closer together than the
//! bottleneck can pass them arrive at its rate. The queue is a replay: everything sent, at its time, through
//! a queue that drains at that rate, set right by each arrival that is told. So a sender knows what waits
//! before any loss or round trip says so.
//!
//! Times are in microseconds, rates in bytes per microsecond (1 is 8 Mbit/s).

use alloc::collections::VecDeque;

use super::chunk::sqrt;
use super::loss::LossEstimate;
use super::units::micros;
use crate::Instant;
use crate::transit::{ArrivalsFrame, Datagram, Fate, Ledger};

/// The shortest time a rate is measured over: long enough that 0.2 ms of jitter are a few percent.
const WINDOW: f64 = 5_000.0;

/// The fewest arrivals a rate is measured over: two of them, off by 0.2 ms of jitter, are then no great
/// error.
const WINDOW_ARRIVALS: usize = 8;

/// Packets sent within this time of each other are a train.
const TRAIN_SPAN: f64 = 300.0;

/// A train that is said to have arrived in less than this did so at once: a receiver's network card, or its
/// system, hands over what came within some ten microseconds as one. Half a train of 20 is then 1 Gbit/s.
const AT_ONCE: f64 = 100.0;

/// The fewest arrivals of a train that tell a rate.
const LEAST_TRAIN: usize = 8;

/// The fewest that tell that a known rate is too low.
const LONG_TRAIN: usize = 14;

/// Delay above the smallest one that shows no queue.
const UNQUEUED: f64 = 2_000.0;

/// A train whose rate is this much above the known one shows that there is more: less is jitter.
const TRAIN_ABOVE: f64 = 1.3;

/// Arrivals remembered.
const SAMPLES: usize = 128;

/// No more than this part of a window is taken for lost behind the bottleneck.
const MOST_USUAL: f64 = 0.6;

/// Packets that arrive over so much longer than they were sent were held up at the bottleneck.
const SQUEEZED: f64 = 1.2;

/// Delay above the smallest one that shows a queue and no jitter.
const QUEUED: f64 = 4_000.0;

/// A queue that every link has: 16 full packets. The smallest ones seen hold 24 KiB, and others may be in
/// them.
const LEAST_QUEUE: f64 = 20.0 * 1024.0;

/// A caller that comes late needs more of the queue than one that comes in time: so many times what was
/// seen to fit is tried, until that is too much.
const TRIED: f64 = 4.0;

/// What every queue holds even if nothing was seen to wait: three full packets.
const FIRST_SEEN: f64 = 3.0 * 1228.0;

/// After this long the smallest delay is looked for anew, if the queue was empty meanwhile: clocks drift, and
/// paths change.
const BASE_LIFETIME: f64 = 10_000_000.0;

/// How far a measured rate may be from what it was: nonsense from the wire must not become arithmetic.
const RATES: core::ops::RangeInclusive<f64> = 0.000_5..=12_500.0;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) number: u64,
    pub(crate) bytes: f64,
    /// By the receiver's clock.
    pub(crate) at: f64,
    /// By the sender's.
    pub(crate) sent: f64,
    /// Between the two: differences mean something.
    pub(crate) delay: f64,
    /// Bytes sent, and received, up to this one, itself counted.
    pub(crate) passed: f64,
    received: f64,
}

#[cfg(test)]
impl Sample {
    /// One that was made up.
    pub(crate) const fn of(number: u64, bytes: f64, sent: f64, at: f64, passed: f64) -> Self {
        Self { number, bytes, at, sent, delay: at - sent, passed, received: passed }
    }
}

/// The smallest one-way delay of late, in two halves of its lifetime. While the queue is never seen empty the
/// smallest delay of late is one with a queue, and the older one stays. It stays wrong, then, where the way
/// has become longer by more than a queue that counts: the transfer does as beside others who fill it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base {
    now: f64,
    before: f64,
    since: f64,
}

impl Base {
    pub(crate) const fn new() -> Self {
        Self { now: f64::INFINITY, before: f64::INFINITY, since: 0.0 }
    }

    pub(crate) fn on_delay(&mut self, at: f64, delay: f64) {
        if at - self.since > BASE_LIFETIME / 2.0 {
            let was_empty = self.now < self.before + UNQUEUED;
            let before = if was_empty { self.now } else { self.before };
            *self = Self { now: f64::INFINITY, before, since: at };
        }
        self.now = self.now.min(delay);
    }

    pub(crate) fn get(&self) -> Option<f64> {
        let base = self.now.min(self.before);
        base.is_finite().then_some(base)
    }
}

/// What is known of the bottleneck.
#[derive(Clone, Debug)]
pub(crate) struct Bottleneck {
    /// Bytes per microsecond; `None` before anything was measured.
    rate: Option<f64>,
    /// The rate was measured in this transfer, not brought along.
    is_measured: bool,
    /// Arrivals of the longest train that told a rate.
    train: usize,
    base: Base,
    samples: VecDeque<Sample>,
    /// The number of the first datagram that counts.
    first: u64,
    /// The number up to which received bytes are counted, and the count.
    counted: Option<u64>,
    passed: f64,
    received: f64,
    /// Turns of the receiver's clock.
    last_micros: Option<u32>,
    clock: f64,
    /// The largest number whose arrival is told, and when the bottleneck was done with it.
    anchor: Option<(u64, f64)>,
    /// When it will be done with all that was sent.
    idle_at: f64,
    /// The longest queue that was seen to take a packet, in bytes.
    pub(crate) queue_seen: f64,
    /// Whether more than that is sent at once, and whether such was dropped.
    tries_more: bool,
    is_full: bool,
    /// The smallest queueing delay of the newest window.
    pub(crate) standing: f64,
}

impl Bottleneck {
    /// Of a transfer whose first datagram has the number `first`.
    pub(crate) fn new(rate: Option<f64>, first: u64) -> Self {
        Self {
            rate,
            first,
            is_measured: false,
            train: 0,
            base: Base::new(),
            samples: VecDeque::new(),
            counted: None,
            passed: 0.0,
            received: 0.0,
            last_micros: None,
            clock: 0.0,
            anchor: None,
            idle_at: 0.0,
            queue_seen: FIRST_SEEN,
            tries_more: false,
            is_full: false,
            standing: 0.0,
        }
    }

    /// Bytes per microsecond.
    pub(crate) const fn rate(&self) -> Option<f64> {
        self.rate
    }

    pub(crate) const fn is_measured(&self) -> bool {
        self.is_measured
    }

    /// Whether a whole train has told the rate.
    pub(crate) const fn has_train(&self, packets: usize) -> bool {
        self.train >= packets
    }

    /// When the queue will be empty, if nothing more is sent.
    pub(crate) const fn idle_at(&self) -> f64 {
        self.idle_at
    }

    /// Whether nothing of this transfer was told yet.
    pub(crate) fn set_rate(&mut self, rate: f64) {
        self.rate = Some(rate.clamp(*RATES.start(), *RATES.end()));
    }

    /// Bytes that the queue is believed to hold.
    pub(crate) const fn room(&self) -> f64 {
        let tried = if self.tries_more && !self.is_full { TRIED } else { 1.0 };
        tried * self.queue_seen.max(LEAST_QUEUE)
    }

    /// Whether the caller has to put more into the queue at once than was seen to fit, because it comes late.
    pub(crate) const fn try_more(&mut self, tries_more: bool) {
        self.tries_more = tries_more;
    }

    /// How long a full queue would take to drain; for ever while no rate is known.
    pub(crate) fn room_micros(&self) -> f64 {
        self.rate.map_or(f64::INFINITY, |rate| self.room() / rate)
    }

    /// A packet goes out: it joins the queue, unless the queue is thought to be full. Returns the backlog
    /// with it, in bytes, and whether it is expected to pass.
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: f64) -> (f64, bool) {
        let Some(rate) = self.rate else { return (0.0, true) };
        let backlog = (self.idle_at - micros(now)).max(0.0) * rate + bytes;
        let passes = backlog <= self.room();
        if passes {
            self.idle_at = self.idle_at.max(micros(now)) + bytes / rate;
        }
        (backlog, passes)
    }

    /// The receiver tells when datagrams arrived. Those that are news become samples, and the rate follows.
    /// Returns how many they are.
    pub(crate) fn on_arrivals(
        &mut self,
        frame: &ArrivalsFrame,
        ledger: &Ledger,
        loss: &LossEstimate,
        is_long: bool,
    ) -> usize {
        let mut told = [(0, 0); crate::transit::MAX_EARLIER_ARRIVALS + 1];
        let mut count = 0;
        for (place, arrival) in
            told.iter_mut().zip(frame.arrivals(ledger.next_number()).into_iter().flatten())
        {
            *place = arrival;
            count += 1;
        }
        let mut news = 0;
        for &(number, at) in told.iter().take(count).rev() {
            news += usize::from(self.on_arrival(number, at, ledger));
        }
        if news > 0 {
            self.measure_trains(news);
            self.measure_window(loss, is_long);
        }
        news
    }

    /// The newest so many arrivals.
    pub(crate) fn newest(&self, news: usize) -> impl Iterator<Item = &Sample> {
        self.samples.range(self.samples.len().saturating_sub(news)..)
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
        // The larger half are steps back: an older arrival, told late.
        if turned > u32::MAX / 2 {
            return false;
        }
        self.last_micros = Some(at_micros);
        self.clock += f64::from(turned);
        let from = ledger.place(self.counted.map_or(self.first, |counted| counted + 1));
        for datagram in ledger.from(from).take_while(|datagram| datagram.number <= number) {
            self.passed += datagram.wire_bytes();
            self.received += if datagram.fate == Fate::Acked { datagram.wire_bytes() } else { 0.0 };
        }
        self.counted = Some(number);
        let sent = micros(datagram.sent_at);
        let delay = self.clock - sent;
        self.base.on_delay(self.clock, delay);
        if self.samples.len() >= SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample {
            number,
            bytes: datagram.wire_bytes(),
            at: self.clock,
            sent,
            delay,
            passed: self.passed,
            received: self.received,
        });
        let done = self.base.get().map_or(0.0, |base| self.clock - base);
        self.anchor = Some((number, done));
        true
    }

    /// Packets sent back to back arrive at the rate of the bottleneck, whatever waits there. Only more than
    /// is known is believed: others' packets between them make it less.
    fn measure_trains(&mut self, news: usize) {
        let first = self.samples.len().saturating_sub(news);
        for end in first..self.samples.len() {
            let Some((rate, arrivals)) = self.train_ending(end) else { continue };
            let is_better = arrivals > self.train && !self.is_measured;
            match self.rate {
                None => self.set_rate(rate),
                Some(old) if rate > TRAIN_ABOVE * old => {
                    if arrivals >= LONG_TRAIN && (!self.is_measured || self.standing < UNQUEUED) {
                        self.set_rate(rate);
                    }
                }
                Some(old) if is_better && self.train > 0 => self.set_rate(rate.max(0.7 * old)),
                Some(_) => {}
            }
            self.train = self.train.max(arrivals);
        }
    }

    /// The rate of the train whose last arrival is at this place, and its arrivals: the smaller one of the
    /// whole and of its last half. The first may be what a token bucket had saved up, the second what jitter
    /// has pushed together.
    fn train_ending(&self, end: usize) -> Option<(f64, usize)> {
        let last = self.samples.get(end)?;
        // Judged once, when it is over or all there is.
        if self.samples.get(end + 1).is_some_and(|next| next.sent - last.sent < TRAIN_SPAN) {
            return None;
        }
        let arrivals = self.samples.iter().take(end + 1).rev();
        let arrivals = arrivals.take_while(|sample| last.sent - sample.sent < TRAIN_SPAN).count();
        if arrivals < LEAST_TRAIN {
            return None;
        }
        let since = |first: &Sample| {
            let time = (last.at - first.at).max(AT_ONCE);
            let (sent, received) = (last.passed - first.passed, last.received - first.received);
            // Where a train finds the queue full, all of its rest is dropped, and does not arrive in between.
            let bytes = if received > MOST_USUAL * sent { sent } else { received };
            Some(bytes / time)
        };
        let whole = since(self.samples.get(end + 1 - arrivals)?)?;
        let half = since(self.samples.get(end - arrivals / 2)?)?;
        Some((whole.min(half), arrivals))
    }

    /// What got through in the newest window. While the link was busy all the time that is what it can carry;
    /// else it can carry that at least.
    fn measure_window(&mut self, loss: &LossEstimate, is_long: bool) {
        let Some((first, standing)) = self.newest_window() else { return };
        let Some(last) = self.samples.back() else { return };
        let is_queued = standing > QUEUED;
        let arrived = last.at - first.at;
        let is_squeezed = arrived > SQUEEZED * (last.sent - first.sent);
        // A busy link passed what it can, however slowly it was fed meanwhile.
        let time = if is_queued { arrived } else { arrived.max(last.sent - first.sent) };
        let (least, most) = Self::passed(&first, last, loss);
        if time <= 0.0 {
            return;
        }
        // Nothing is dropped where nothing waits.
        let is_empty = standing < UNQUEUED && self.rate.is_some();
        let least = if is_empty { last.passed - first.passed } else { least };
        let (least, most) = (least / time, most.max(least) / time);
        self.standing = standing;
        match self.rate {
            None if is_squeezed => self.set_rate(least),
            None => {}
            Some(old) if is_queued && !self.is_measured => {
                self.is_measured = true;
                self.set_rate(old.clamp(least, most));
            }
            Some(old) if is_queued && is_long => {
                self.set_rate(old + 0.1 * (old.clamp(least, most) - old));
            }
            Some(old) => self.set_rate(old.max(least)),
        }
    }

    /// Bytes that passed the bottleneck between two arrivals: at least, and at most. What was lost behind it
    /// took its time there; what is missing beyond the usual losses, and twice their spread, was dropped in
    /// front of it and took none.
    fn passed(first: &Sample, last: &Sample, loss: &LossEstimate) -> (f64, f64) {
        let (sent, received) = (last.passed - first.passed, last.received - first.received);
        let share = loss.share();
        let packets = (sent / 1100.0).max(1.0);
        let spread = sqrt(share * (1.0 - share) * loss.inflation() / packets);
        let usual = (share + 2.0 * spread).min(MOST_USUAL);
        let passed = |share: f64| sent.min(received / (1.0 - share));
        (passed(share), passed(usual))
    }

    /// Where the newest window begins, and the smallest queueing delay in it.
    fn newest_window(&self) -> Option<(Sample, f64)> {
        let newest = self.samples.back()?;
        let base = self.base.get()?;
        let mut standing = newest.delay - base;
        for (back, sample) in self.samples.iter().rev().enumerate().skip(1) {
            standing = standing.min(sample.delay - base);
            if newest.at - sample.at >= WINDOW && back >= WINDOW_ARRIVALS {
                return Some((*sample, standing));
            }
        }
        None
    }

    /// Replays what was sent since the last told arrival, with what became of it, and sets `backlog` of those
    /// up to the newest told: so that their fate can be settled.
    pub(crate) fn replay_settled(&mut self, from: (u64, f64), to: u64, ledger: &mut Ledger) {
        let Some(rate) = self.rate else { return };
        let (place, mut idle_at) = (ledger.place(from.0), from.1);
        let mut seen = self.queue_seen;
        for datagram in ledger.from_mut(place).take_while(|datagram| datagram.number <= to) {
            let sent = micros(datagram.sent_at);
            datagram.backlog = (idle_at - sent).max(0.0) * rate + datagram.wire_bytes();
            let passed = datagram.fate == Fate::Acked || datagram.backlog <= seen;
            if datagram.fate == Fate::Acked {
                seen = seen.max(datagram.backlog);
            }
            if passed {
                idle_at = idle_at.max(sent) + datagram.wire_bytes() / rate;
            }
        }
        self.queue_seen = seen;
    }

    /// Where a replay starts: behind the newest told arrival, or at the very beginning.
    pub(crate) fn anchor(&self) -> (u64, f64) {
        self.anchor.map_or((self.first, 0.0), |(number, done)| (number + 1, done))
    }

    /// What became of a datagram that was overtaken: lost behind the bottleneck, or dropped in front of it.
    pub(crate) fn fate_of(&self, datagram: &Datagram) -> Fate {
        if datagram.backlog <= self.queue_seen { Fate::Lost } else { Fate::Dropped }
    }

    /// A datagram did not arrive.
    pub(crate) fn on_lost(&mut self, datagram: &Datagram) {
        self.is_full |= datagram.backlog > self.queue_seen.max(LEAST_QUEUE);
    }

    /// Replays what is in flight behind the newest told arrival. `visit` gets each with whether it is
    /// expected to pass the queue.
    pub(crate) fn replay_in_flight(
        &mut self,
        ledger: &Ledger,
        mut visit: impl FnMut(&Datagram, bool),
    ) {
        let (number, mut idle_at) = self.anchor();
        let room = self.room();
        let first = ledger.settled().min(ledger.place(number)).max(ledger.place(self.first));
        for datagram in ledger.from(first) {
            let is_open = datagram.fate == Fate::InFlight;
            let Some(rate) = self.rate else {
                if is_open {
                    visit(datagram, true);
                }
                continue;
            };
            if datagram.number < number {
                if is_open {
                    visit(datagram, true);
                }
                continue;
            }
            let sent = micros(datagram.sent_at);
            let backlog = (idle_at - sent).max(0.0) * rate + datagram.wire_bytes();
            let passes = match datagram.fate {
                Fate::Acked | Fate::Lost => true,
                Fate::Dropped | Fate::GivenUp => false,
                Fate::InFlight => backlog <= room,
            };
            if passes {
                idle_at = idle_at.max(sent) + datagram.wire_bytes() / rate;
            }
            if is_open {
                visit(datagram, passes);
            }
        }
        self.idle_at = idle_at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a second of datagrams says of the base, with this delay.
    fn seconds(base: &mut Base, range: core::ops::Range<u32>, delay: impl Fn(f64) -> f64) -> f64 {
        for ms in range.start * 1_000..range.end * 1_000 {
            base.on_delay(f64::from(ms) * 1_000.0, delay(f64::from(ms) / 1_000.0));
        }
        base.get().unwrap()
    }

    #[test]
    fn a_queue_that_stands_for_a_minute_is_no_base() {
        let mut base = Base::new();
        seconds(&mut base, 0..1, |_| 25_000.0);
        let standing = seconds(&mut base, 1..60, |_| 77_000.0);
        assert!((standing - 25_000.0).abs() < 1e-9, "{standing}");
    }

    /// Clocks that drift by a part in 10,000, up or down: what is empty stays empty.
    #[test]
    fn the_base_follows_clocks_that_drift() {
        for drift in [-100.0, 100.0] {
            let mut base = Base::new();
            let delay = |at: f64| 25_000.0 + drift * at + 30_000.0 * (at % 1.0);
            let after = seconds(&mut base, 0..60, delay);
            assert!((after - delay(60.0)).abs() < 1_100.0, "{after}, {drift}");
        }
    }

    #[test]
    fn a_way_that_is_shorter_now_is_believed_at_once() {
        let mut base = Base::new();
        seconds(&mut base, 0..20, |_| 25_000.0);
        assert!((seconds(&mut base, 20..21, |_| 20_000.0) - 20_000.0).abs() < 1e-9);
    }
}
