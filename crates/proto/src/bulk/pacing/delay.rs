//! The rate of a long transfer beside others that yield as well: the law that keeps the queue short.
//!
//! A flow at rate R accepts a queueing delay up to c / sqrt(R), and reduces its rate by a tenth above that.
//! So the larger of two flows yields first, and they converge to equal rates whatever their round trips.
//! The smallest delay of a round decides, because only a standing queue counts; a round with a mark of ECN
//! counts as one above the target. If others keep the queue
//! full although this flow yields, it competes as TCP does ([`BesideTcp`](super::beside_tcp::BesideTcp)).

use libm::sqrt;

use super::super::tuning::delay::{
    INCREASE, MAX_GROWTH, MAX_YIELDS, MIN_ROOT, MIN_TARGET, REFERENCE, TARGET, YIELDED,
};
use super::super::tuning::flow::{DECREASE, EMPTY, USED};
use super::super::tuning::near::is_fast;
use super::super::tuning::rate_finder::TRAIN_ABOVE;
use super::super::units::{Bytes, Rate, Span};
use super::flow::{Flow, Round};
use super::policer::Finding;

/// A flow that keeps the queue short.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    pub(super) flow: Flow,
    /// The delivered rate at the last standing queue.
    ceiling: Rate,
    /// The relative growth above that in the last round.
    growth: f64,
    /// The decreases since the queue was last empty, and the delivered rate before them.
    yields: u32,
    rate_before: Rate,
    /// The largest rate that the link was known to have.
    known: Rate,
}

/// The target delay of a flow of this rate: it yields above that.
pub(super) fn target(rate: Rate) -> Span {
    (TARGET / sqrt(rate / REFERENCE).max(MIN_ROOT)).max(MIN_TARGET)
}

impl Delay {
    /// Continues a flow; `ceiling` is the known rate of the link.
    pub(super) const fn new(flow: Flow, ceiling: Rate) -> Self {
        Self { flow, ceiling, growth: 0.0, yields: 0, rate_before: Rate::ZERO, known: ceiling }
    }

    /// The link has this rate, by trains. A fast link is learned in steps, and a flow may have begun before
    /// the last of them; what it gave way to since is not taken back.
    pub(super) fn learn(&mut self, known: Rate, packet: Bytes) {
        if known > TRAIN_ABOVE * self.known && is_fast(self.known, packet) {
            (self.known, self.ceiling, self.growth) = (known, known, 0.0);
            self.flow.adjust(known.max(self.flow.rate()));
        }
    }

    /// This was found to be the link's rate, after more was tried.
    pub(super) fn settle(&mut self, rate: Rate) {
        (self.known, self.ceiling, self.growth) = (rate, rate, 0.0);
        self.flow.restart(rate);
    }

    pub(super) fn is_round(&self, lasts: Span, rtt: Span) -> bool {
        self.flow.is_round(lasts, rtt)
    }

    /// Judges a round of this length. If others fill the queue, returns the delay that they cause and the
    /// rate from before this flow yielded.
    pub(super) fn judge(&mut self, lasts: Span, rtt: Span) -> Option<(Span, Rate)> {
        let rate = self.flow.rate();
        let delivered = self.flow.delivered().min(rate);
        let delay = self.flow.round.min_delay;
        let is_unqueued = delay < target(rate);
        match self.flow.policer.judge(&mut self.flow.seen, rate, self.ceiling, is_unqueued) {
            Finding::Nothing => {}
            Finding::Policed => (self.ceiling, self.growth) = (rate, 0.0),
            Finding::Change(rate) => {
                self.flow.restart(rate);
                return None;
            }
        }
        if delay < EMPTY {
            self.yields = 0;
        }
        if self.flow.round.is_marked {
            // All flows on this queue are told: it is no sign that others fill it. It grew in this round,
            // and has to be empty after the next, or that is marked too.
            let longest = self.flow.round.max_delay;
            self.reduce(delivered, longest, rtt);
            return None;
        }
        if delay <= target(rate) {
            if delivered > USED * rate && !self.flow.policer.is_futile() {
                self.grow(lasts);
            }
            self.flow.round = Round::default();
            return None;
        }
        self.give_way(delivered, delay, rtt)
    }

    fn give_way(&mut self, delivered: Rate, delay: Span, rtt: Span) -> Option<(Span, Rate)> {
        if self.yields == 0 {
            self.rate_before = delivered;
        }
        self.yields += 1;
        if self.yields > MAX_YIELDS && delivered < YIELDED * self.rate_before {
            return Some((delay, self.rate_before));
        }
        self.reduce(delivered, delay, rtt);
        None
    }

    fn reduce(&mut self, delivered: Rate, delay: Span, rtt: Span) {
        (self.ceiling, self.growth) = (delivered, 0.0);
        self.flow.restart(delivered * (1.0 - DECREASE));
        self.flow.drain(delay, rtt);
    }

    fn grow(&mut self, lasts: Span) {
        let rate = self.flow.rate();
        let mut part =
            INCREASE * (lasts / Span::from_secs(1)) / sqrt(rate / REFERENCE).max(MIN_ROOT);
        if rate > (1.0 + DECREASE) * self.ceiling && !self.flow.policer.is_found() {
            self.growth = (2.0 * self.growth.max(part)).min(MAX_GROWTH);
            part = part.max(self.growth);
        }
        self.flow.adjust(rate * (1.0 + part.min(MAX_GROWTH)));
    }
}
