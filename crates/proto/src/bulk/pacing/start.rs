//! What the start of a transfer shows before it has a rate of its own: whether others are on the link.
//!
//! A train tells the rate of the whole link, and not how much of it is free. So what arrives is measured
//! from the first round trip on, as beside a game. Where a queue stands and that is clearly less, the
//! transfer takes a rate of its own at once: a part of what arrived, from which it comes to its share. Where
//! most is lost, what arrives is the pace until then: a full queue passes its rate, however much is sent.

use libm::sqrt;

use super::super::tuning::TICK;
use super::super::tuning::delay::{MIN_ROOT, MIN_TARGET, REFERENCE, TARGET};
use super::super::tuning::flow::MIN_ROUND;
use super::super::tuning::start::{
    ALONE, CROWDED, LOSSY, LOSSY_ALONE, MIN_ARRIVALS, MIN_FATES, PART, RAISE, RAISED_AFTER, SURE,
};
use super::super::units::{Bytes, Rate, Span};
use super::flow::{Flow, Round};
use super::model::Queue;
use crate::Instant;

/// The queueing delay at which flows of this rate neither grow nor yield: the larger of two accepts less.
pub(super) fn target(rate: Rate) -> Span {
    MIN_TARGET + TARGET / sqrt(rate / REFERENCE).max(MIN_ROOT)
}

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
    /// The rate that the link is known to have.
    known: Rate,
    /// What arrived in a round that shows others, and whether their queue was seen.
    crowded: Option<(Rate, bool)>,
    /// Rounds in succession that have shown a queue of others for sure.
    squeezed: u32,
    /// A round was flooded: the flow has a pace of its own, beside that of the modelled queue.
    is_bounded: bool,
    /// No round has shown that less passes than the link has.
    is_alone: bool,
    /// The caller was late in this round: what it sends at once is a queue, and says nothing of others.
    is_framed: bool,
}

impl Start {
    /// Datagrams from `judged` on are judged, also those that were sent on a guess.
    pub(super) const fn new(flow: Flow, judged: u64) -> Self {
        Self {
            known: flow.rate(),
            flow: flow.judge_from(judged),
            crowded: None,
            squeezed: 0,
            is_bounded: false,
            is_alone: true,
            is_framed: false,
        }
    }

    /// When the next slice may be sent; `None` if now.
    pub(super) fn opens_at(&self, now: Instant, queue: &Queue) -> Option<Instant> {
        let at = queue.opens_at(now);
        if self.is_bounded { at.max(self.flow.opens_at(now, queue)) } else { at }
    }

    /// A datagram was sent.
    pub(super) fn on_sent(&mut self, now: Instant, number: u64, bytes: Bytes, queue: &Queue) {
        let pace = self.flow.rate();
        self.flow.on_sent(now, number, bytes, queue.catch_up_at(pace) + queue.lateness_at(pace));
        self.is_framed |= queue.late > Span::from(TICK);
    }

    /// Whether a round is complete: it is shorter than one of a long transfer.
    pub(super) fn is_round(&self, lasts: Span) -> bool {
        self.flow.is_judged(lasts, MIN_ROUND, MIN_ARRIVALS)
    }

    /// Judges a round.
    pub(super) fn judge(&mut self) {
        if core::mem::take(&mut self.is_framed) {
            self.flow.round = Round::default();
            return;
        }
        let (known, round) = (self.known, &self.flow.round);
        let (fates, kept) = (round.fates.total(), 1.0 - round.fates.share());
        let passed = self.flow.delivered().min(known);
        let arrived = self.flow.arrived().max(kept * passed).min(known);
        let is_queued = round.min_delay > target(known);
        let is_flooded = fates >= MIN_FATES && kept < CROWDED * CROWDED;
        // A link that loses much on its own is not squeezed for that, and one round may be jitter.
        let is_squeezed = is_queued && passed < CROWDED * known;
        self.squeezed = if is_squeezed { self.squeezed + 1 } else { 0 };
        self.is_alone &= !(is_queued && passed < ALONE * known);
        if self.is_crowded() || is_flooded {
            self.crowded = Some((arrived, is_queued && arrived < CROWDED * known));
        }
        let is_free = !is_queued && kept >= CROWDED && fates >= RAISED_AFTER;
        if is_flooded && !self.is_bounded {
            self.set_pace(arrived);
        } else if self.is_bounded && is_free {
            self.set_pace((RAISE * self.flow.rate()).min(known));
        }
        self.flow.round = Round::default();
    }

    /// The pace from now on. What was sent until then at the rate of the link is forgotten: it would be a
    /// debt of several round trips.
    fn set_pace(&mut self, pace: Rate) {
        self.flow.begin(Instant::ZERO);
        self.flow.go_on(pace);
        self.is_bounded = true;
    }

    /// Whether others are on the link for sure: their queue is seen.
    pub(super) const fn is_crowded(&self) -> bool {
        self.squeezed >= SURE
    }

    /// What arrived in a round that shows others.
    pub(super) fn arrived(&self) -> Option<Rate> {
        self.crowded.map(|(arrived, _)| arrived)
    }

    /// How to begin; `rate` is what the link has.
    pub(super) fn begin(&self, rate: Rate) -> Begin {
        let kept = 1.0 - self.flow.seen.share();
        let usual = if self.is_alone { LOSSY_ALONE } else { LOSSY };
        match self.crowded {
            Some((arrived, true)) => Begin::Beside(PART * arrived),
            Some((arrived, false)) => Begin::Trial(PART * arrived),
            None if kept < 1.0 - usual => Begin::Trial(PART * kept * rate),
            None => Begin::Alone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::samples::Sample;
    use super::*;

    const PACKET: Bytes = Bytes(1_250.0);
    const RTT: Span = Span::from_millis(50);

    /// Of 100 Mbit/s one datagram of this many arrives, in order and without a queue of its own, from 20 on.
    fn arrive(start: &mut Start, numbers: core::ops::Range<u64>, one_in: u64) {
        for number in numbers {
            let is_lost = !number.is_multiple_of(one_in);
            start.flow.on_settled(number, is_lost);
            if is_lost {
                continue;
            }
            let sent = f64::from(u32::try_from(number).unwrap()) * Span(100.0);
            let passed = Rate::from_kbps(100_000) * sent;
            let received = passed * (1.0 / f64::from(u32::try_from(one_in).unwrap()));
            let at = sent + RTT;
            let sample = Sample { number, bytes: PACKET, at, sent, delay: RTT, passed, received };
            if start.flow.on_arrival(sample, Span::ZERO).is_some_and(|lasts| start.is_round(lasts))
            {
                start.judge();
            }
        }
    }

    /// In a crowd each train shows the rate of the whole link, and each flow went on at that until it was
    /// long: nine tenths of it were dropped.
    #[test]
    fn a_flooded_start_goes_on_at_what_arrives_and_feels_its_way_up() {
        let known = Rate::from_kbps(100_000);
        let mut start = Start::new(Flow::new(known, Rate::MIN, 800), 20);
        let part = |start: &Start| start.flow.rate() / known;
        arrive(&mut start, 20..400, 10);
        let flooded = part(&start);
        assert!((flooded - 0.1).abs() < 0.02 && start.is_bounded, "{flooded}");
        arrive(&mut start, 800..1_100, 1);
        assert!(
            (part(&start) / flooded - 2.0).abs() < 1e-9,
            "as in a slow start: {}",
            part(&start)
        );
    }

    /// What is lost at a lower pace, too, is the link's own: with a bound after each round a link that loses
    /// seven of ten was at the floor after a few.
    #[test]
    fn a_start_is_bounded_once() {
        let known = Rate::from_kbps(100_000);
        let mut start = Start::new(Flow::new(known, Rate::MIN, 20), 20);
        arrive(&mut start, 20..400, 10);
        arrive(&mut start, 400..4_000, 100);
        let part = start.flow.rate() / known;
        assert!((part - 0.1).abs() < 0.02, "{part}");
    }

    /// A round of 20 ms that looks squeezed may be jitter: when one was enough, 16 MiB over jitter in order
    /// began with half of what had arrived.
    #[test]
    fn one_squeezed_round_is_no_crowd() {
        let known = Rate::from_kbps(100_000);
        let mut start = Start::new(Flow::new(known, Rate::MIN, 0), 0);
        let mut squeezed = |number: u32| {
            let sent = f64::from(number) * Span(1_000.0);
            let passed = 0.5 * known * sent;
            let (at, delay) = (sent + RTT, Span::from_millis(30));
            let (bytes, received, number) = (PACKET, passed, number.into());
            let sample = Sample { number, bytes, at, sent, delay, passed, received };
            if start.flow.on_arrival(sample, delay).is_some_and(|lasts| start.is_round(lasts)) {
                start.judge();
            }
            start.begin(known)
        };
        assert!((0..25).all(|number| squeezed(number) == Begin::Alone));
        assert!(matches!((25..60).map(squeezed).last(), Some(Begin::Beside(_))));
    }

    /// A link that loses half, each other datagram, is not yet taken for a flooded one.
    #[test]
    fn a_lossy_link_keeps_its_rate() {
        let known = Rate::from_kbps(100_000);
        let mut start = Start::new(Flow::new(known, Rate::MIN, 20), 20);
        arrive(&mut start, 20..2_000, 2);
        assert!(!start.is_bounded && (start.flow.rate() / known - 1.0).abs() < 1e-9);
    }
}
