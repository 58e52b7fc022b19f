//! What a path loses, as far as it is counted.
//!
//! Datagrams lost before a rate is known were sent too fast, and show nothing of the path. Where no train
//! gives a rate, these losses are all that a plan can use. Of the datagrams given up after a silence a few
//! count as lost, until they arrive after all.

use super::loss::LossEstimate;
use crate::tuning::{MAX_COUNTED_LOST, blind};

/// The estimate of what a path loses, and what is in it.
#[derive(Debug)]
pub(crate) struct PathLoss {
    estimate: LossEstimate,
    /// Datagrams from this number on are in it.
    from: u64,
    /// Those in it that were given up.
    given_up: usize,
    /// Datagrams whose fate was settled while no rate was known.
    without_rate: usize,
}

impl PathLoss {
    /// The estimate for a path of which this is known.
    pub(crate) const fn new(estimate: LossEstimate) -> Self {
        Self { estimate, from: u64::MAX, given_up: 0, without_rate: 0 }
    }

    pub(crate) const fn estimate(&self) -> &LossEstimate {
        &self.estimate
    }

    /// The fate of the next datagram is settled, while a rate is known or not.
    pub(crate) fn on_settled(&mut self, number: u64, is_lost: bool, has_rate: bool) {
        self.without_rate += usize::from(!has_rate);
        let is_counted = has_rate || self.without_rate > blind::BELIEVED_SLICES;
        if is_counted && self.from == u64::MAX {
            self.from = number;
        }
        if number >= self.from {
            self.estimate.on_packet(is_lost);
        }
    }

    /// This many datagrams are given up.
    pub(crate) fn on_given_up(&mut self, datagrams: usize) {
        let counted = datagrams.min(MAX_COUNTED_LOST);
        (0..counted).for_each(|_| self.estimate.on_packet(true));
        self.given_up += counted;
    }

    /// A datagram was acknowledged that counted as lost.
    pub(crate) fn on_spurious(&mut self, number: u64) {
        if number >= self.from {
            self.estimate.on_late();
        }
    }

    /// One that was given up was acknowledged.
    pub(crate) fn on_back(&mut self) {
        if self.given_up > 0 {
            self.given_up -= 1;
            self.estimate.on_late();
        }
    }
}
