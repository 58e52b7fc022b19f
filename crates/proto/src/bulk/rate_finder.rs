//! Estimates the bottleneck's rate from the arrival times of datagrams.
//!
//! Packets sent faster than the bottleneck's rate arrive at that rate: trains measure it at once, and
//! windows of a busy link correct it. The input is samples and the output a rate, so another method can
//! replace this file.

use libm::sqrt;

use super::loss::LossEstimate;
use super::samples::{Sample, Samples};
use super::tuning::FULL_PACKET;
use super::tuning::near::{FASTER, is_fast};
use super::tuning::rate_finder::{
    AT_ONCE, FOLLOWED, LONG_TRAIN, MAX_USUAL, MIN_TRAIN, QUEUED, RATES, SMALLER, SQUEEZED,
    TRAIN_ABOVE, TRAIN_BELOW, TRAIN_SPAN, WINDOW, WINDOW_ARRIVALS,
};
use super::tuning::samples::UNQUEUED;
use super::tuning::upward::{SETTLED, STEP};
use super::units::{Bytes, Rate, Span};

/// The rate, and how it was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateFinder {
    /// `None` until it is known.
    rate: Option<Rate>,
    /// It was measured in this transfer, not remembered.
    is_measured: bool,
    /// Arrivals of the longest train that gave a rate.
    train: usize,
    /// The smallest queueing delay of the newest window.
    standing: Span,
    /// The size of a datagram where their number matters.
    packet: Bytes,
    /// The round trip is short: see [`NEAR`](super::tuning::near::NEAR).
    is_near: bool,
    /// The first train arrived at once: the link is at least that fast, and perhaps much faster.
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

    /// Whether it was measured in this transfer, not remembered.
    pub(crate) const fn is_measured(&self) -> bool {
        self.is_measured
    }

    /// Whether a train of at least this many arrivals gave the rate.
    pub(crate) const fn has_train(&self, packets: usize) -> bool {
        self.train >= packets
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
        is_long: bool,
    ) {
        self.measure_trains(samples, count);
        self.measure_window(samples, loss, is_long);
    }

    fn set(&mut self, rate: Rate) {
        self.rate = Some(rate.clamp(RATES.0, RATES.1));
    }

    /// Packets sent back to back arrive at the bottleneck's rate, whatever its backlog. Other traffic
    /// between them lowers the measured rate, so a train mostly raises the estimate.
    fn measure_trains(&mut self, samples: &Samples, count: usize) {
        let first = samples.all().len().saturating_sub(count);
        for end in first..samples.all().len() {
            self.measure_batch(samples, end);
            let is_fast = self.rate.is_some_and(|rate| is_fast(rate, self.packet));
            let is_near = is_fast && self.is_near;
            let Some((rate, arrivals, is_at_once)) = train_ending(samples, end, is_fast, is_near)
            else {
                continue;
            };
            // What arrives at once says how fast the link is at least; no more is believed than is found out
            // in a round trip if it is wrong.
            let rate = self.rate.filter(|_| is_near).map_or(rate, |old| rate.min(FASTER * old));
            let is_better = arrivals > self.train && !self.is_measured;
            match self.rate {
                None => {
                    self.set(rate);
                    self.is_at_least = is_at_once;
                }
                Some(old) if rate > TRAIN_ABOVE * old => {
                    if arrivals >= LONG_TRAIN && (!self.is_measured || self.standing < UNQUEUED) {
                        self.set(rate);
                    }
                }
                Some(old) if is_better && self.train > 0 => self.set(rate.max(TRAIN_BELOW * old)),
                Some(_) => {}
            }
            self.train = self.train.max(arrivals);
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
    fn measure_window(&mut self, samples: &Samples, loss: &LossEstimate, is_long: bool) {
        let Some(Window { first, standing, longest }) = newest_window(samples) else { return };
        let Some(last) = samples.all().back() else { return };
        let is_queued = standing > QUEUED;
        let (arrived, sent) = (last.at - first.at, last.sent - first.sent);
        let is_squeezed = arrived > SQUEEZED * sent;
        // A busy link delivers at its rate, however slowly datagrams were sent in that time.
        let time = if is_queued { arrived } else { arrived.max(sent) };
        if time <= Span::ZERO {
            return;
        }
        let (min, max) = self.passed(&first, last, loss);
        // Without a queue nothing is dropped. One that was full when the window began is no empty one.
        let is_empty = longest < UNQUEUED && self.rate.is_some();
        let min = if is_empty { last.passed - first.passed } else { min };
        let (min, max) = (min / time, max.max(min) / time);
        self.standing = standing;
        match self.rate {
            None if is_squeezed => self.set(min),
            None => {}
            Some(old) if is_queued && !self.is_measured => {
                self.is_measured = true;
                self.set(old.clamp(min, max));
            }
            Some(old) if is_queued && is_long => {
                self.set(old + FOLLOWED * (old.clamp(min, max) - old));
            }
            // The link was busy, and what arrived is all that it passed for sure: the losses may be drops.
            Some(old) if is_queued => {
                self.set(old.max((last.received - first.received) / time));
            }
            Some(old) => self.set(old.max(min)),
        }
    }

    /// The minimum and maximum number of bytes that passed the bottleneck between two arrivals. Datagrams
    /// lost behind it took time there. Those missing beyond the usual losses and twice their standard
    /// deviation were dropped at its queue, and took none.
    fn passed(&self, first: &Sample, last: &Sample, loss: &LossEstimate) -> (Bytes, Bytes) {
        let (sent, received) = (last.passed - first.passed, last.received - first.received);
        let share = loss.share();
        let packets = (sent / self.packet).max(1.0);
        let spread = sqrt(share * (1.0 - share) * loss.inflation() / packets);
        let usual = (share + 2.0 * spread).min(MAX_USUAL);
        let passed = |share: f64| sent.min(received / (1.0 - share));
        (passed(share), passed(usual))
    }

    /// The smallest queueing delay of the newest window.
    #[cfg(test)]
    pub(crate) const fn standing(&self) -> Span {
        self.standing
    }
}

/// The rate of the train whose last arrival is sample `end`, its number of arrivals, and whether it arrived
/// in less time than clocks tell apart. The rate is the
/// smaller of those of the whole train and of its last half: a token bucket may have passed the first half
/// at once, and jitter may have compressed the last. On a fast link, where half of a train arrives within the
/// time that clocks tell apart, it is that of the whole.
fn train_ending(
    samples: &Samples,
    end: usize,
    is_fast: bool,
    is_near: bool,
) -> Option<(Rate, usize, bool)> {
    let samples = samples.all();
    let last = samples.get(end)?;
    // A train is judged when it is complete, or at the newest sample.
    if samples.get(end + 1).is_some_and(|next| next.sent - last.sent < TRAIN_SPAN) {
        return None;
    }
    let arrivals = samples.iter().take(end + 1).rev();
    let arrivals = arrivals.take_while(|sample| last.sent - sample.sent < TRAIN_SPAN).count();
    if arrivals < MIN_TRAIN {
        return None;
    }
    let since = |first: &Sample| {
        let time = (last.at - first.at).max(AT_ONCE);
        let (sent, received) = (last.passed - first.passed, last.received - first.received);
        // A full queue drops the rest of a train, so those missing between arrivals were lost behind it. On
        // fast links hardly any are, and what goes at once is more than a queue holds.
        let is_lost_behind = !is_fast && received > MAX_USUAL * sent;
        let bytes = if is_lost_behind { sent } else { received };
        bytes / time
    };
    let first = samples.get(end + 1 - arrivals)?;
    let (whole, is_at_once) = (since(first), last.at - first.at < AT_ONCE);
    if is_near {
        return Some((whole, arrivals, is_at_once));
    }
    let half = since(samples.get(end - arrivals / 2)?);
    Some((whole.min(half), arrivals, is_at_once))
}

/// The newest window: its first sample, and the smallest and the largest queueing delay in it.
struct Window {
    first: Sample,
    standing: Span,
    longest: Span,
}

fn newest_window(samples: &Samples) -> Option<Window> {
    let newest = samples.all().back()?;
    let base = samples.base()?;
    let (mut standing, mut longest) = (newest.delay - base, newest.delay - base);
    for (back, &first) in samples.all().iter().rev().enumerate().skip(1) {
        let delay = first.delay - base;
        (standing, longest) = (standing.min(delay), longest.max(delay));
        if newest.at - first.at >= WINDOW && back >= WINDOW_ARRIVALS {
            return Some(Window { first, standing, longest });
        }
    }
    None
}
