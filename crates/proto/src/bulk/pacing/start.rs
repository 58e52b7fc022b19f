//! What the start of a transfer shows before it has a rate of its own: whether others are on the link.
//!
//! A train tells the rate of the whole link, and not how much of it is free. So what is delivered is measured
//! from the first round trip on, as beside a game. Where that is clearly less, the transfer
//! takes a rate of its own at once: a part of what was delivered, from which it comes to its share.

use libm::sqrt;

use super::super::tuning::delay::{MIN_ROOT, MIN_TARGET, REFERENCE, TARGET};
use super::super::tuning::flow::MIN_ROUND;
use super::super::tuning::start::{
    ALONE, CROWDED, LOSSY, LOSSY_ALONE, MIN_ARRIVALS, MIN_FATES, PART, ROUNDS, SURE,
};
use super::super::units::{Rate, Span};
use super::flow::Flow;

/// The queueing delay at which flows of this rate neither grow nor yield: the larger of two accepts less.
pub(super) fn target(rate: Rate) -> Span {
    MIN_TARGET + TARGET / sqrt(rate / REFERENCE).max(MIN_ROOT)
}

/// How a transfer begins with a rate of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Begin {
    /// At the known rate: nobody else is seen, and if that is sure, what was lost is the link's own.
    Alone { is_sure: bool },
    /// At this rate, beside others.
    Beside(Rate),
    /// At this rate, which shows whether what is lost is the link's own doing.
    Trial(Rate),
}

/// The measurements of the start.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) flow: Flow,
    /// What was delivered in a round that shows others, and whether their queue was seen.
    crowded: Option<(Rate, bool)>,
    /// What arrived in that round: a full queue passes its rate, however much more than that is sent.
    arrived: Option<Rate>,
    /// Rounds in succession with a queue that shows others.
    squeezed: u32,
    /// No round has shown that less passes than the link has.
    is_alone: bool,
    /// The caller was late in this round: what it sends at once is a queue, and says nothing of others.
    pub(super) is_framed: bool,
}

impl Start {
    pub(super) const fn new(flow: Flow) -> Self {
        Self { flow, crowded: None, arrived: None, squeezed: 0, is_alone: true, is_framed: false }
    }

    /// Whether a round is complete: it is shorter than one of a long transfer.
    pub(super) fn is_round(&self, lasts: Span, rtt: Span) -> bool {
        self.flow.is_judged(lasts, (rtt / ROUNDS).max(MIN_ROUND / 2.0), MIN_ARRIVALS)
    }

    /// Judges a round; the link is known to have the flow's rate.
    pub(super) fn judge(&mut self) {
        if core::mem::take(&mut self.is_framed) {
            self.flow.round = super::flow::Round::default();
            return;
        }
        let (rate, round) = (self.flow.rate(), &self.flow.round);
        let kept = 1.0 - round.fates.share();
        let passed = self.flow.delivered().min(rate);
        let delivered = passed * kept;
        let is_queued = round.min_delay > target(rate);
        let is_squeezed = is_queued && delivered < CROWDED * rate;
        // One that loses much on its own is not squeezed for that.
        let is_sure = is_queued && passed < CROWDED * rate;
        self.is_alone &= !(is_queued && passed < ALONE * rate);
        self.squeezed = if is_sure { self.squeezed + 1 } else { 0 };
        let is_flooded = round.fates.total() >= MIN_FATES && kept < CROWDED * CROWDED;
        if is_squeezed || is_flooded {
            self.crowded = Some((delivered, is_squeezed));
            self.arrived = Some((self.flow.delivered() * kept).min(rate));
        }
        self.flow.round = super::flow::Round::default();
    }

    /// Whether others are on the link for sure: their queue is seen.
    pub(super) fn is_crowded(&self) -> bool {
        self.squeezed >= SURE
    }

    /// What arrived in a round that shows others.
    pub(super) const fn arrived(&self) -> Option<Rate> {
        self.arrived
    }

    /// How to begin; `rate` is what the link has.
    pub(super) fn begin(&self, rate: Rate) -> Begin {
        let kept = 1.0 - self.flow.seen.share();
        let usual = if self.is_alone { LOSSY_ALONE } else { LOSSY };
        match self.crowded {
            Some((delivered, true)) => Begin::Beside(PART * delivered),
            Some((delivered, false)) => Begin::Trial(PART * delivered),
            None if kept < 1.0 - usual => Begin::Trial(PART * kept * rate),
            None => Begin::Alone { is_sure: self.is_alone },
        }
    }
}
