//! Estimates the bottleneck's rate from the arrival times of datagrams.
//!
//! Packets sent faster than the bottleneck's rate arrive at that rate: trains measure it at once, and
//! windows of a busy link correct it. The input is samples and the output a rate, so another method can
//! replace this file.

use libm::sqrt;

use super::envelope::Envelope;
use super::loss::LossEstimate;
use super::samples::{Sample, Samples};
use crate::tuning::FULL_PACKET;
use crate::tuning::near::{FASTER, is_fast};
use crate::tuning::rate_finder::{
    AT_ONCE, CLEAR, FAST_TRAIN, FOLLOWED, LONG_TRAIN, MAX_USUAL, MIN_DISORDERED, MIN_TRAIN,
    PROVISIONAL, QUEUED, RATES, SMALLER, SQUEEZED, SURE, TRAIN_ABOVE, TRAIN_BELOW, TRAIN_SPAN,
    USED, WINDOW, WINDOW_ARRIVALS,
};
use crate::tuning::samples::{HELD_UP, TOGETHER, UNQUEUED};
use crate::tuning::upward::{SETTLED, STEP};
use crate::units::{Bytes, Rate, Span};

/// The rate, and how it was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateFinder {
    /// `None` until it is known.
    rate: Option<Rate>,
    /// It was measured in this transfer, not remembered.
    is_measured: bool,
    /// Arrivals of the longest train that gave a rate.
    train: u8,
    /// The smallest queueing delay of the newest window.
    standing: Span,
    /// The size of a datagram where their number matters.
    packet: Bytes,
    /// The round trip is short: see [`NEAR`](crate::tuning::near::NEAR).
    is_near: bool,
    /// The part by which the rate may be wrong.
    doubt: f64,
    /// When a faster rate was tried last.
    raised_at: Span,
    /// By how much datagrams are held up behind the bottleneck.
    held_up: Span,
    /// The first train arrived at once on a near path: the link is at least that fast, and perhaps much
    /// faster.
    is_at_least: bool,
}

impl RateFinder {
    /// Starts with the remembered rate, if there is one.
    pub(crate) const fn new(known: Option<Rate>) -> Self {
        let packet = Bytes(FULL_PACKET.0 - SMALLER.0);
        let standing = Span::ZERO;
        Self {
            rate: known,
            is_measured: false,
            train: 0,
            standing,
            packet,
            is_near: false,
            doubt: 0.0,
            raised_at: Span::ZERO,
            held_up: Span::ZERO,
            is_at_least: false,
        }
    }

    /// The size of a full datagram.
    pub(crate) fn set_packet(&mut self, packet: Bytes) {
        self.packet = packet - SMALLER;
    }

    /// Sets whether the round trip is short.
    pub(crate) const fn set_near(&mut self, is_near: bool) {
        self.is_near = is_near;
    }

    /// The rate; `None` until it is known.
    pub(crate) const fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// The time for which datagrams are held up behind the bottleneck, at most times.
    pub(crate) const fn held_up(&self) -> Span {
        self.held_up
    }

    /// Whether a train of at least this many arrivals gave the rate.
    pub(crate) fn has_train(&self, packets: usize) -> bool {
        usize::from(self.train) >= packets
    }

    /// Whether the link may be much faster than this.
    pub(crate) const fn is_at_least(&self) -> bool {
        self.is_at_least
    }

    /// The link is tried at this rate, at least what it has.
    pub(crate) fn try_rate(&mut self, rate: Rate) {
        self.set(rate);
    }

    /// This is the link's rate, and no more. Somewhat less is used: what was tried before it was found has
    /// made a queue, and where that is too short to be seen it must not be full.
    pub(crate) fn settle(&mut self, rate: Rate) {
        (self.is_at_least, self.is_measured) = (false, true);
        self.set(rate * SETTLED);
    }

    /// The newest `count` samples are new.
    pub(crate) fn on_samples(
        &mut self,
        samples: &Samples,
        count: usize,
        loss: &LossEstimate,
        now: Span,
        is_long: bool,
    ) {
        self.measure_trains(samples, count);
        self.measure_window(samples, loss, now, is_long);
    }

    fn set(&mut self, rate: Rate) {
        self.rate = Some(rate.clamp(RATES.0, RATES.1));
    }

    /// Packets sent back to back arrive at the bottleneck's rate, whatever its backlog. Other traffic
    /// between them lowers the measured rate, so a train mostly raises the estimate.
    fn measure_trains(&mut self, samples: &Samples, count: usize) {
        if samples.is_disordered() {
            return self.measure_disordered_train(samples);
        }
        let all = samples.all();
        let new = all.len().saturating_sub(count);
        // Those that arrived at once with the newest of before have waited for what arrives now.
        let last = new.checked_sub(1).and_then(|last| all.get(last));
        let is_same = |sample: &&Sample| last.is_some_and(|last| last.at - sample.at < TOGETHER);
        let waiting = all.iter().take(new).rev().take_while(is_same).count();
        for end in new - waiting..all.len() {
            if end >= new {
                self.measure_batch(samples, end);
            }
            // What a fast link passes in a tick arrives at once, too.
            let is_known_fast = self.rate.is_some_and(|rate| is_fast(rate, self.packet));
            let is_fast = self.is_near && is_known_fast;
            let Some(train) = Train::ending(samples, end, is_fast) else { continue };
            let waits = train.is_at_once && !self.is_near && !is_known_fast;
            if !if waits { is_followed(all, end, new) } else { end >= new } {
                continue;
            }
            let (rate, arrivals) = (train.rate, train.arrivals);
            // What arrives at once says how fast the link is at least; no more is believed than is found out
            // in a round trip if it is wrong.
            let rate = self.rate.filter(|_| is_fast).map_or(rate, |old| rate.min(FASTER * old));
            let is_better = arrivals > usize::from(self.train) && !self.is_measured;
            match self.rate {
                None => {
                    self.set(rate);
                    self.is_at_least = train.span < AT_ONCE && self.is_near;
                }
                Some(old) if rate > TRAIN_ABOVE * old => {
                    if arrivals >= LONG_TRAIN && (!self.is_measured || self.standing < UNQUEUED) {
                        self.set(rate);
                    }
                }
                Some(old) if is_better && self.train > 0 => self.set(rate.max(TRAIN_BELOW * old)),
                Some(_) => {}
            }
            self.on_train(arrivals);
        }
    }

    /// A train of `packets` packets gave a rate.
    fn on_train(&mut self, packets: usize) {
        self.train = self.train.max(u8::try_from(packets).unwrap_or(u8::MAX));
    }

    /// Measures the rate where few packets of a train arrive in the order of sending, or many at once: the
    /// earliest of them still show the rate, with much doubt.
    fn measure_disordered_train(&mut self, samples: &Samples) {
        if self.is_measured {
            return;
        }
        let all = samples.all();
        let Some(newest) = all.last() else { return };
        // The newest packets may be some of those that arrive together.
        let is_before = |sample: &&Sample| newest.at - sample.at >= AT_ONCE;
        let complete = all.iter().rev().skip_while(|sample| !is_before(sample)).count();
        let all = all.get(..complete).unwrap_or_default();
        // The last train among them.
        let mut end = all.len();
        while let Some(last) = end.checked_sub(1).and_then(|last| all.get(last)) {
            let is_in = |sample: &&Sample| last.sent - sample.sent < TRAIN_SPAN;
            let count = all.iter().take(end).rev().take_while(is_in).count();
            let train = all.get(end - count..end).unwrap_or_default();
            let span = train.first().map_or(0, |first| last.number - first.number);
            let span = usize::try_from(span).unwrap_or(usize::MAX);
            if span >= MIN_TRAIN
                && count >= MIN_DISORDERED
                && let Some(envelope) = Envelope::of(train)
            {
                let Envelope { first, last, .. } = envelope;
                let rate = passed_of_train(&first, &last) / (last.at - first.at);
                let doubt = envelope.doubt().max(PROVISIONAL);
                if self.rate.is_none_or(|old| self.doubt >= PROVISIONAL && rate > old) {
                    self.doubt = doubt;
                    self.on_train(span);
                    self.set(rate);
                }
                return;
            }
            if span >= MIN_TRAIN && self.rate.is_none() {
                // All at once: they passed the bottleneck while the first waited.
                let (Some(first), Some(base)) = (train.first(), samples.base()) else { return };
                let waited = first.delay - base;
                if waited < HELD_UP {
                    return;
                }
                let rate = passed_of_train(first, last) / waited;
                self.doubt = 1.0;
                self.on_train(span);
                self.set(rate);
                return;
            }
            end -= count;
        }
    }

    /// A batch sent in one call that takes longer to arrive than clocks tell apart has the link's rate: that
    /// ends the doubt of a train that arrived at once.
    fn measure_batch(&mut self, samples: &Samples, end: usize) {
        let Some(old) = self.rate.filter(|_| self.is_at_least) else { return };
        let Some(last) = samples.all().get(end) else { return };
        let batch = samples.all().iter().take(end + 1).rev();
        let mut batch = batch.take_while(|sample| last.sent - sample.sent < AT_ONCE / 2.0);
        let Some((n, first)) = batch.by_ref().enumerate().last() else { return };
        let time = last.at - first.at;
        if n >= MIN_TRAIN && time > AT_ONCE {
            let rate = (last.received - first.received) / time;
            self.settle(rate.max(old / STEP));
        }
    }

    /// The delivered rate of the newest window. If the link was busy all the time, this is its rate;
    /// otherwise it is a lower bound.
    fn measure_window(&mut self, samples: &Samples, loss: &LossEstimate, now: Span, is_long: bool) {
        let Some(window) = newest_window(samples) else { return };
        let Window { envelope: Envelope { first, last, .. }, standing, longest, .. } = window;
        let doubt = window.envelope.doubt();
        let is_queued = standing > QUEUED;
        let (arrived, sent) = (last.at - first.at, last.sent - first.sent);
        let is_squeezed = (1.0 - doubt) * arrived > SQUEEZED * sent;
        // A busy link delivers at its rate, however slowly datagrams were sent in that time.
        let time = if is_queued { arrived } else { arrived.max(sent) };
        if time <= Span::ZERO {
            return;
        }
        // What arrived is all that passed for sure: what was lost may have been dropped.
        let min = (last.received - first.received) / time;
        let max = min.max(self.most_passed(&first, &last, loss) / time);
        self.standing = standing;
        self.held_up = 2.0 * window.envelope.noise;
        match self.rate {
            None if is_squeezed => self.set(min),
            // Where arrivals are in order a train says more, if one gets through, and a guess has brakes.
            None if !samples.is_overtaken() => {}
            None if last.received - first.received < SURE * (last.passed - first.passed) => {}
            None => {
                (self.doubt, self.raised_at) = (1.0, now);
                self.set(min);
            }
            Some(old) if is_queued && !self.is_measured => {
                self.is_measured = true;
                self.doubt = doubt;
                self.set(old.clamp(min / (1.0 + doubt), (1.0 + doubt) * max));
            }
            Some(old) if is_queued && is_long => {
                self.set(old + FOLLOWED * (old.clamp(min, max) - old));
            }
            Some(old) => {
                self.set(old.max(min));
                let is_empty = !is_queued && longest < UNQUEUED;
                if is_empty && !is_long && self.doubt >= PROVISIONAL {
                    self.look_up(&window, now);
                }
            }
        }
    }

    /// What was sent at the rate came through without a queue: the link may be faster.
    fn look_up(&mut self, window: &Window, now: Span) {
        let (Some(rate), Window { oldest, newest, .. }) = (self.rate, window) else { return };
        // What others keep full looks empty, but does not take all that is sent.
        let (bytes, sent) = (newest.received - oldest.received, newest.sent - oldest.sent);
        if oldest.sent < self.raised_at || bytes < USED * (rate * sent) {
            return;
        }
        let step = (2.0 * self.doubt).clamp(0.1, 1.5);
        (self.doubt, self.raised_at, self.is_measured) = (step, now, false);
        self.set((1.0 + step) * rate);
    }

    /// The maximum number of bytes that passed the bottleneck between two arrivals. Datagrams lost behind it
    /// took time there. Those missing beyond the usual losses and twice their standard deviation were dropped
    /// at its queue, and took none.
    fn most_passed(&self, first: &Sample, last: &Sample, loss: &LossEstimate) -> Bytes {
        let (sent, received) = (last.passed - first.passed, last.received - first.received);
        let share = loss.share();
        let packets = (sent / self.packet).max(1.0);
        let spread = sqrt(share * (1.0 - share) * loss.inflation() / packets);
        let usual = (share + 2.0 * spread).min(MAX_USUAL);
        sent.min(received / (1.0 - usual))
    }

    /// The smallest queueing delay of the newest window.
    #[cfg(test)]
    pub(crate) const fn standing(&self) -> Span {
        self.standing
    }
}

/// Whether the datagrams sent next after sample `end` are among the new ones, from `new` on, and arrived
/// later by about the time by which they were sent later: otherwise the train before them was held up for a
/// bunch.
fn is_followed(samples: &[Sample], end: usize, new: usize) -> bool {
    let (Some(last), Some(next)) = (samples.get(end), samples.get(end + 1)) else { return false };
    let (sent, at) = (next.sent - last.sent, next.at - last.at);
    end + 1 >= new && 0.5 * sent <= at && at <= 2.0 * sent
}

/// The bytes of a train that passed the bottleneck between two arrivals. A full queue drops the rest of a
/// train, so those missing between arrivals were lost behind it, unless most are.
fn passed_of_train(first: &Sample, last: &Sample) -> Bytes {
    let (sent, received) = (last.passed - first.passed, last.received - first.received);
    if received > MAX_USUAL * sent { sent } else { received }
}

/// A train, and what it shows.
struct Train {
    rate: Rate,
    arrivals: usize,
    /// It arrived at once: from a fast link, or from one that delivers in bunches. Those that are sent next
    /// say which.
    is_at_once: bool,
    /// The time from its first arrival to its last.
    span: Span,
}

impl Train {
    /// The train whose last arrival is sample `end`. The rate is the smaller of those of the whole train and
    /// of its last half: a token bucket may have passed the first half at once, and jitter may have
    /// compressed the last. On a fast link, where half of a train arrives within the time that clocks tell
    /// apart, it is that of the whole.
    fn ending(samples: &Samples, end: usize, is_fast: bool) -> Option<Self> {
        let samples = samples.all();
        let last = samples.get(end)?;
        // A train is judged when it is complete, or at the newest sample.
        if samples.get(end + 1).is_some_and(|next| next.sent - last.sent < TRAIN_SPAN) {
            return None;
        }
        let arrivals = samples.iter().take(end + 1).rev();
        let arrivals = arrivals.take_while(|sample| last.sent - sample.sent < TRAIN_SPAN).count();
        // On fast links hardly any is lost behind the bottleneck, and what goes at once is more than a queue
        // holds.
        let passed = |first: &Sample| match is_fast {
            true => last.received - first.received,
            false => passed_of_train(first, last),
        };
        let since = |first: &Sample| passed(first) / (last.at - first.at).max(AT_ONCE);
        let first = samples.get(end + 1 - arrivals)?;
        let span = last.at - first.at;
        if arrivals < if span < AT_ONCE { FAST_TRAIN } else { MIN_TRAIN } {
            return None;
        }
        let (whole, half) = (since(first), since(samples.get(end - arrivals / 2)?));
        let rate = if is_fast { whole } else { whole.min(half) };
        Some(Self { rate, arrivals, is_at_once: span < TOGETHER, span })
    }
}

/// A stretch of samples up to the newest.
struct Window {
    oldest: Sample,
    newest: Sample,
    envelope: Envelope,
    /// The smallest queueing delay in it, and the largest of those that were not held up.
    standing: Span,
    longest: Span,
}

/// The shortest window that shows the rate without much doubt, or with the least doubt.
fn newest_window(samples: &Samples) -> Option<Window> {
    let (all, base) = (samples.all(), samples.base()?);
    let newest = *all.last()?;
    let is_long = |(back, sample): (usize, &Sample)| {
        newest.at - sample.at >= WINDOW && back >= WINDOW_ARRIVALS
    };
    let mut count = all.iter().rev().enumerate().position(is_long)? + 1;
    let stretch = all.get(all.len() - count..)?;
    if !samples.is_disordered() {
        let oldest = *stretch.first()?;
        let envelope = Envelope::between(oldest, newest);
        let (standing, longest) = delays(stretch, base);
        return Some(Window { oldest, newest, envelope, standing, longest });
    }
    let mut best: Option<Window> = None;
    loop {
        let stretch = all.get(all.len() - count..)?;
        if let Some(envelope) = Envelope::of(stretch) {
            let doubt = envelope.doubt();
            if best.as_ref().is_none_or(|best| doubt < best.envelope.doubt()) {
                let (oldest, (standing, _)) = (*stretch.first()?, delays(stretch, base));
                best = Some(Window { oldest, newest, envelope, standing, longest: standing });
            }
            if doubt < CLEAR {
                return best;
            }
        }
        if count == all.len() {
            return best;
        }
        count = (2 * count).min(all.len());
    }
}

/// The smallest and the largest queueing delay of these samples.
fn delays(samples: &[Sample], base: Span) -> (Span, Span) {
    let delays = samples.iter().map(|sample| sample.delay - base);
    delays.fold((Span::INFINITY, Span::ZERO), |(min, max), it| (min.min(it), max.max(it)))
}
