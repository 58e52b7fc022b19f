//! What a long transfer sends at among others that give way as well: the law that keeps the queue short.
//!
//! Whoever sends at rate R lets the queueing delay go up to c / sqrt(R), and then sends a tenth less: so
//! the larger of two flows gives way first, and they meet at the same rate whatever their round trips.
//! What counts is the smallest delay of a round, for only a queue that stands is one. If others keep the
//! queue full although this one gave way, it does as TCP does ([`BesideTcp`](super::beside_tcp::BesideTcp)).

use libm::sqrt;

use super::super::tuning::delay::{
    EMPTY, GIVEN, MAX_GROWTH, MAX_YIELDS, MIN_ROOT, MIN_TARGET, REFERENCE, TAKEN, TARGET, USED,
    YIELDED,
};
use super::super::units::{Rate, Span};
use super::flow::{Flow, Round};
use super::policer::Finding;

/// A flow that keeps the queue short.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    pub(super) flow: Flow,
    /// What got through when the queue stood last.
    ceiling: Rate,
    /// Growth beyond that, as of the last round.
    growth: f64,
    /// How often it gave way since the queue was empty, and what got through before.
    yields: u32,
    rate_before: Rate,
}

/// The delay up to which a flow of this rate goes on.
pub(super) fn target(rate: Rate) -> Span {
    (TARGET / sqrt(rate / REFERENCE).max(MIN_ROOT)).max(MIN_TARGET)
}

impl Delay {
    /// Takes over a flow; the link was known to carry `ceiling`.
    pub(super) const fn new(flow: Flow, ceiling: Rate) -> Self {
        Self { flow, ceiling, growth: 0.0, yields: 0, rate_before: Rate::ZERO }
    }

    pub(super) fn is_round(&self, lasts: Span, rtt: Span) -> bool {
        self.flow.is_round(lasts, rtt)
    }

    /// Judges a round that lasted so long. Returns with how much delay others fill the queue, if they do, and
    /// the rate that was given up to them.
    pub(super) fn judge(&mut self, lasts: Span, rtt: Span) -> Option<(Span, Rate)> {
        let rate = self.flow.rate();
        let delivered = self.flow.delivered().min(rate);
        let delay = self.flow.round.min_delay;
        let is_unqueued = delay < target(rate);
        match self.flow.policer.judge(&mut self.flow.seen, rate, is_unqueued) {
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
        (self.ceiling, self.growth) = (delivered, 0.0);
        self.flow.restart(delivered * (1.0 - GIVEN));
        self.flow.drain(delay, rtt);
        None
    }

    fn grow(&mut self, lasts: Span) {
        let rate = self.flow.rate();
        let mut part = TAKEN * (lasts / Span::from_secs(1)) / sqrt(rate / REFERENCE).max(MIN_ROOT);
        if rate > (1.0 + GIVEN) * self.ceiling && !self.flow.policer.is_found() {
            self.growth = (2.0 * self.growth.max(part)).min(MAX_GROWTH);
            part = part.max(self.growth);
        }
        self.flow.adjust(rate * (1.0 + part.min(MAX_GROWTH)));
    }
}
