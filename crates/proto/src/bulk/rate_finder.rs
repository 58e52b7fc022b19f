//! How fast the bottleneck drains, from the times at which datagrams arrived.
//!
//! Packets sent closer together than the bottleneck can pass them arrive at its rate: trains say it at
//! once, and windows of a link that was busy correct it. It is handed samples and says a rate; another
//! way to find it takes the place of this file.

use libm::sqrt;

use super::loss::LossEstimate;
use super::samples::{Sample, Samples};
use super::tuning::rate_finder::{
    AT_ONCE, FOLLOWED, LONG_TRAIN, MAX_USUAL, MIN_TRAIN, PACKET, QUEUED, RATES, SQUEEZED,
    TRAIN_ABOVE, TRAIN_BELOW, TRAIN_SPAN, WINDOW, WINDOW_ARRIVALS,
};
use super::tuning::samples::UNQUEUED;
use super::units::{Bytes, Rate, Span};

/// The rate, and what it rests on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateFinder {
    /// `None` before anything was measured.
    rate: Option<Rate>,
    /// It was measured in this transfer, not brought along.
    is_measured: bool,
    /// Arrivals of the longest train that told a rate.
    train: usize,
    /// The smallest queueing delay of the newest window.
    standing: Span,
}

impl RateFinder {
    /// One that begins with the rate that is known, if there is one.
    pub(crate) const fn new(known: Option<Rate>) -> Self {
        Self { rate: known, is_measured: false, train: 0, standing: Span::ZERO }
    }

    /// `None` before anything was measured.
    pub(crate) const fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Whether it was measured in this transfer, not brought along.
    pub(crate) const fn is_measured(&self) -> bool {
        self.is_measured
    }

    /// Whether a train of so many arrivals has told the rate.
    pub(crate) const fn has_train(&self, packets: usize) -> bool {
        self.train >= packets
    }

    /// The newest so many samples are news.
    pub(crate) fn on_samples(
        &mut self,
        samples: &Samples,
        news: usize,
        loss: &LossEstimate,
        is_long: bool,
    ) {
        self.measure_trains(samples, news);
        self.measure_window(samples, loss, is_long);
    }

    fn set(&mut self, rate: Rate) {
        self.rate = Some(rate.clamp(RATES.0, RATES.1));
    }

    /// Packets sent back to back arrive at the rate of the bottleneck, whatever waits there. Only more than
    /// is known is believed: others' packets between them make it less.
    fn measure_trains(&mut self, samples: &Samples, news: usize) {
        let first = samples.all().len().saturating_sub(news);
        for end in first..samples.all().len() {
            let Some((rate, arrivals)) = train_ending(samples, end) else { continue };
            let is_better = arrivals > self.train && !self.is_measured;
            match self.rate {
                None => self.set(rate),
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

    /// What got through in the newest window. While the link was busy all the time that is what it can carry;
    /// else it can carry that at least.
    fn measure_window(&mut self, samples: &Samples, loss: &LossEstimate, is_long: bool) {
        let Some((first, standing)) = newest_window(samples) else { return };
        let Some(last) = samples.all().back() else { return };
        let is_queued = standing > QUEUED;
        let (arrived, sent) = (last.at - first.at, last.sent - first.sent);
        let is_squeezed = arrived > SQUEEZED * sent;
        // A busy link passed what it can, however slowly it was fed meanwhile.
        let time = if is_queued { arrived } else { arrived.max(sent) };
        if time <= Span::ZERO {
            return;
        }
        let (least, most) = passed(&first, last, loss);
        // Nothing is dropped where nothing waits.
        let is_empty = standing < UNQUEUED && self.rate.is_some();
        let least = if is_empty { last.passed - first.passed } else { least };
        let (least, most) = (least / time, most.max(least) / time);
        self.standing = standing;
        match self.rate {
            None if is_squeezed => self.set(least),
            None => {}
            Some(old) if is_queued && !self.is_measured => {
                self.is_measured = true;
                self.set(old.clamp(least, most));
            }
            Some(old) if is_queued && is_long => {
                self.set(old + FOLLOWED * (old.clamp(least, most) - old));
            }
            Some(old) => self.set(old.max(least)),
        }
    }

    /// The smallest queueing delay of the newest window.
    #[cfg(test)]
    pub(crate) const fn standing(&self) -> Span {
        self.standing
    }
}

/// The rate of the train whose last arrival is at this place, and its arrivals: the smaller one of the
/// whole and of its last half. The first may be what a token bucket had saved up, the second what jitter
/// has pushed together.
fn train_ending(samples: &Samples, end: usize) -> Option<(Rate, usize)> {
    let samples = samples.all();
    let last = samples.get(end)?;
    // Judged once, when it is over or all there is.
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
        // Where a train finds the queue full, all of its rest is dropped, and does not arrive in between.
        let bytes = if received > MAX_USUAL * sent { sent } else { received };
        bytes / time
    };
    let whole = since(samples.get(end + 1 - arrivals)?);
    let half = since(samples.get(end - arrivals / 2)?);
    Some((whole.min(half), arrivals))
}

/// Where the newest window begins, and the smallest queueing delay in it.
fn newest_window(samples: &Samples) -> Option<(Sample, Span)> {
    let newest = samples.all().back()?;
    let base = samples.base()?;
    let mut standing = newest.delay - base;
    for (back, sample) in samples.all().iter().rev().enumerate().skip(1) {
        standing = standing.min(sample.delay - base);
        if newest.at - sample.at >= WINDOW && back >= WINDOW_ARRIVALS {
            return Some((*sample, standing));
        }
    }
    None
}

/// Bytes that passed the bottleneck between two arrivals: at least, and at most. What was lost behind it
/// took its time there; what is missing beyond the usual losses, and twice their spread, was dropped in
/// front of it and took none.
fn passed(first: &Sample, last: &Sample, loss: &LossEstimate) -> (Bytes, Bytes) {
    let (sent, received) = (last.passed - first.passed, last.received - first.received);
    let share = loss.share();
    let packets = (sent / PACKET).max(1.0);
    let spread = sqrt(share * (1.0 - share) * loss.inflation() / packets);
    let usual = (share + 2.0 * spread).min(MAX_USUAL);
    let passed = |share: f64| sent.min(received / (1.0 - share));
    (passed(share), passed(usual))
}
