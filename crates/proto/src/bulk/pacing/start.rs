//! What the start of a transfer shows before it has a rate of its own: whether others are on the link.
//!
//! A train tells the rate of the whole link, and not how much of it is free. So what is delivered is measured
//! from the first round trip on, as in a law of long transfers. Where that is clearly less, the transfer
//! takes a rate of its own at once: a part of what was delivered, from which it comes to its share.

use super::super::tuning::flow::MIN_ROUND;
use super::super::tuning::start::{CROWDED, LOSSY, MIN_ARRIVALS, MIN_FATES, PART, ROUNDS};
use super::super::units::{Rate, Span};
use super::delay::target;
use super::flow::Flow;

/// How a transfer begins with a rate of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Begin {
    /// At the known rate: nobody else is seen.
    Alone,
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
}

impl Start {
    pub(super) const fn new(flow: Flow) -> Self {
        Self { flow, crowded: None }
    }

    /// Whether a round is complete: it is shorter than one of a long transfer.
    pub(super) fn is_round(&self, lasts: Span, rtt: Span) -> bool {
        lasts >= (rtt / ROUNDS).max(MIN_ROUND / 2.0) && self.flow.round.arrivals >= MIN_ARRIVALS
    }

    /// Judges a round; the link is known to have the flow's rate.
    pub(super) fn judge(&mut self) {
        let (rate, round) = (self.flow.rate(), &self.flow.round);
        let kept = 1.0 - round.fates.share();
        let delivered = self.flow.delivered().min(rate) * kept;
        let is_squeezed = round.min_delay > target(rate) && delivered < CROWDED * rate;
        let is_flooded = round.fates.total() >= MIN_FATES && kept < CROWDED * CROWDED;
        if is_squeezed || is_flooded {
            self.crowded = Some((delivered, is_squeezed));
        }
        self.flow.round = super::flow::Round::default();
    }

    /// How to begin; `rate` is what the link has.
    pub(super) fn begin(&self, rate: Rate) -> Begin {
        let kept = 1.0 - self.flow.seen.share();
        match self.crowded {
            Some((delivered, true)) => Begin::Beside(PART * delivered),
            Some((delivered, false)) => Begin::Trial(PART * delivered),
            None if kept < 1.0 - LOSSY => Begin::Trial(PART * kept * rate),
            None => Begin::Alone,
        }
    }
}
