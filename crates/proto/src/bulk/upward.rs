//! Looking upward: a link that is faster than clocks can tell is tried at higher and higher rates.
//!
//! A train that arrives at once says only how fast a link is at least. So what is sent at that rate is watched
//! for a round trip: if it arrived as fast as it was sent, the next step is [`STEP`] times as fast; if not, the
//! link's rate is what arrived. The invariant: a step judges only what was sent at its rate, over
//! [`MIN_TIME`] at least.

use super::samples::Sample;
use super::tuning::upward::{CAME, MIN_TICKS, MIN_TIME, STEP, USED};
use super::units::{Rate, Span};

/// The search for the rate of a link that is known to be faster than was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Upward {
    /// The first datagram sent at the rate that is tried.
    from: u64,
    /// The first of them that arrived.
    first: Option<Sample>,
}

/// What a step has shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// All came through: this is tried next.
    Faster(Rate),
    /// The link has this rate.
    Found(Rate),
}

impl Upward {
    /// Begins with datagram `from`.
    pub(super) const fn new(from: u64) -> Self {
        Self { from, first: None }
    }

    /// A datagram arrived that was sent at `rate`, if it is new enough; `next` is the number of the next one,
    /// and `tick` the time between two batches. Returns what the step has shown, if it is complete.
    pub(super) fn on_arrival(
        &mut self,
        sample: &Sample,
        rate: Rate,
        tick: Span,
        next: u64,
    ) -> Option<Step> {
        if sample.number < self.from {
            return None;
        }
        let first = *self.first.get_or_insert(*sample);
        let (sent, arrived) = (sample.sent - first.sent, sample.at - first.at);
        // Both ends are the first of a batch, or the time between two would be missing at one of them.
        let is_batch = sample.sent > first.sent;
        if !is_batch || sent < MIN_TIME.max(MIN_TICKS * tick) {
            return None;
        }
        let offered = (sample.passed - first.passed) / sent;
        let came = (sample.received - first.received) / arrived.max(Span(1.0));
        *self = Self::new(next);
        if came < CAME * offered {
            return Some(Step::Found(came));
        }
        // If something else limits what is sent, that it came through says nothing.
        (offered > USED * rate).then_some(Step::Faster(rate * STEP))
    }
}
