//! The rate of a long transfer where others fill the queue: like TCP's.
//!
//! It grows by a datagram each round trip, and is reduced by three tenths on a mark of ECN, or on a loss
//! while the queue is long.
//! When the queue is empty, the others are gone.

use libm::sqrt;

use super::super::tuning::FULL_PACKET;
use super::super::tuning::beside_tcp::{CUT, FULL_QUEUE, SIGMAS};
use super::super::tuning::flow::{EMPTY, USED};
use super::super::units::{Rate, Span};
use super::flow::{Flow, Round};
use super::policer::Seen;

/// A flow that competes for its share of a full queue.
#[derive(Clone, Debug)]
pub(super) struct BesideTcp {
    pub(super) flow: Flow,
    /// The longest queueing delay since this law began.
    longest: Span,
}

impl BesideTcp {
    /// Restores the rate from before the decreases; `delay` is the queueing delay that others cause.
    pub(super) fn new(mut flow: Flow, rate: Rate, delay: Span) -> Self {
        flow.restart(rate);
        Self { flow, longest: delay }
    }

    pub(super) fn is_round(&self, lasts: Span, rtt: Span) -> bool {
        self.flow.is_round(lasts, rtt)
    }

    /// Judges a round of this length. Returns the rate to continue with if the queue was empty: the others
    /// are gone.
    pub(super) fn judge(&mut self, lasts: Span, rtt: Span) -> Option<Rate> {
        let flow = &mut self.flow;
        self.longest = self.longest.max(flow.round.max_delay);
        let is_empty = flow.round.min_delay < EMPTY;
        let is_full =
            !is_empty && is_unusual(flow) && flow.round.max_delay > FULL_QUEUE * self.longest;
        if is_full || flow.round.is_marked {
            flow.restart(CUT * flow.rate());
            return None;
        }
        let before = flow.rate();
        let mut rate = before;
        if flow.delivered() > USED * rate {
            rate += FULL_PACKET / rtt * (lasts / rtt);
        }
        flow.adjust(rate);
        (flow.seen, flow.round) = (Seen::default(), Round::default());
        is_empty.then_some(before)
    }
}

/// Whether more is lost than usual.
fn is_unusual(flow: &Flow) -> bool {
    let (usual, seen) = (flow.policer.usual(), f64::from(flow.seen.total()));
    flow.seen.lost() > usual * seen + SIGMAS * sqrt(usual * (1.0 - usual) * seen)
}
