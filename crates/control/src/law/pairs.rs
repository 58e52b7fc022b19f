//! How fast a link is at most, from the first two or three datagrams that arrived.
//!
//! A rate takes five arrivals, and on a link of 64 kbit/s they take a second: a guess has sent it as much as
//! it passes in a minute by then. Two datagrams that were sent together arrive no closer than the link passes
//! them, and one pair that jitter has not driven apart is enough to show it. So this is a bound, for a guess,
//! and never a rate.

use crate::belief::samples::Sample;
use crate::tuning::blind::{MIN_PAIRS, PAIR_GAIN};
use crate::tuning::rate_finder::TRAIN_SPAN;
use crate::tuning::samples::NEXT;
use crate::units::{Bytes, Rate, Span};

/// The rates at which two datagrams arrived that were sent together: the largest of them is at least that of
/// the link, whatever delayed the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pairs {
    /// When the newest datagram was sent and arrived, and the bytes sent up to it.
    newest: Option<(Span, Span, Bytes)>,
    count: u32,
    fastest: Rate,
    /// How many of the newest in succession arrived at once.
    at_once: usize,
}

impl Pairs {
    pub(super) const fn new() -> Self {
        Self { newest: None, count: 0, fastest: Rate::ZERO, at_once: 0 }
    }

    pub(super) fn on_arrival(&mut self, sample: &Sample) {
        let newest = self.newest.replace((sample.sent, sample.at, sample.passed));
        let Some((sent, at, passed)) = newest else { return };
        let is_pair = sample.sent - sent < TRAIN_SPAN;
        self.at_once = if is_pair && sample.at - at < NEXT { self.at_once + 1 } else { 0 };
        if is_pair {
            self.count += 1;
            let rate = (sample.passed - passed) / (sample.at - at).max(Span(1.0));
            self.fastest = self.fastest.max(rate);
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many of the newest pairs in succession arrived at once.
    pub(super) const fn at_once(&self) -> usize {
        self.at_once
    }

    /// What the link has at most, where that is known.
    pub(super) fn bound(&self) -> Rate {
        if self.count < MIN_PAIRS { Rate::INFINITY } else { PAIR_GAIN * self.fastest }
    }
}
