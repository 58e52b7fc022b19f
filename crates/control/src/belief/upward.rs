//! Looking upward: a link that is faster than clocks can tell is tried at higher and higher rates.
//!
//! A train that arrives at once shows only the minimum rate of a link. So the datagrams sent at that rate are
//! watched for a round trip: if they arrived as fast as they were sent, the next step is [`STEP`] times as
//! fast; if not, the link's rate is that of the arrivals. The invariant: a step judges only datagrams sent at
//! its rate, over [`MIN_TIME`] at least.

use super::samples::Sample;
use crate::tuning::upward::{CAME, MIN_TICKS, MIN_TIME, STEP, USED};
use crate::units::{Rate, Span};

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
    /// All datagrams came through: this rate is tried next.
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
        // Where something else limits the sender, arrivals at that rate show nothing.
        (offered > USED * rate).then_some(Step::Faster(rate * STEP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    const TICK: Span = Span(100.0);
    const GBIT: Rate = Rate(125.0);

    /// The steps of some milliseconds on a link of this rate, from `rate` on, of which `part` is used.
    fn search(link: Rate, mut rate: Rate, part: f64, millis: u32) -> (Rate, Option<Rate>) {
        let mut upward = Upward::new(0);
        let (mut number, mut passed, mut free_at) = (0, Bytes::ZERO, Span::ZERO);
        for tick in 0..millis * 10 {
            let sent = f64::from(tick) * TICK;
            let end = passed + part * (rate * TICK);
            while passed < end {
                passed += Bytes(1_500.0);
                free_at = free_at.max(sent) + Bytes(1_500.0) / link;
                let (at, bytes) = (Span(5e6) + free_at, Bytes(1_500.0));
                let sample = Sample {
                    number,
                    bytes,
                    at,
                    sent,
                    delay: at - sent,
                    passed,
                    received: passed,
                    ..Sample::ZERO
                };
                number += 1;
                match upward.on_arrival(&sample, rate, TICK, number + 20) {
                    Some(Step::Faster(faster)) => rate = faster,
                    Some(Step::Found(found)) => return (rate, Some(found)),
                    None => {}
                }
            }
        }
        (rate, None)
    }

    #[test]
    fn the_rate_is_found_from_below() {
        for mbit in [2_100, 2_500, 5_000, 10_000] {
            let link = Rate::from_kbps(mbit * 1_000);
            let found = search(link, 2.0 * GBIT, 1.0, 40).1.unwrap();
            assert!((0.95..1.05).contains(&(found / link)), "{mbit}: {found:?}");
        }
    }

    #[test]
    fn a_rate_that_is_too_high_is_found_out_in_a_step() {
        let found = search(GBIT, 2.0 * GBIT, 1.0, 3).1.unwrap();
        assert!((0.95..1.05).contains(&(found / GBIT)), "{found:?}");
    }

    #[test]
    fn what_is_not_used_is_not_raised() {
        let (rate, found) = search(10.0 * GBIT, 2.0 * GBIT, 0.5, 40);
        assert!(found.is_none() && (rate / GBIT - 2.0).abs() < 1e-9, "{rate:?}");
    }
}
