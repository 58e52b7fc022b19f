//! The rate that a law has set, and the measurements of datagrams sent at that rate.
//!
//! Each law but a guess has one flow. The start of a transfer judges its rounds; a window only paces by it.
//! The invariant: a round contains only datagrams sent at the rate being judged.

use super::super::samples::Sample;
use super::super::tuning::flow::{DISORDERED_ARRIVALS, DISORDERED_ROUND};
use super::super::units::{Bytes, Rate, Span};
use super::model::Queue;
use super::seen::Seen;
use crate::Instant;

/// Arrivals since the rate was last changed or judged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    first: Option<Sample>,
    last: Option<Sample>,
    /// The number of full datagrams, and their smallest queueing delay.
    pub(super) arrivals: usize,
    pub(super) min_delay: Span,
    /// What became of the datagrams sent since the rate was changed.
    pub(super) fates: Seen,
}

/// A rate, and what was measured at it.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// The least rate: what the application asks for.
    floor: Rate,
    /// The flow's share of the link, as set by the law.
    rate: Rate,
    paced_at: Span,
    /// The number after the last datagram sent. Those before `fresh_from` were sent at another rate.
    next: u64,
    fresh_from: u64,
    /// When the last datagram was sent.
    now: Span,
    /// Datagrams before it do not count in `seen`.
    seen_from: u64,
    /// Datagrams overtake others that were sent so much earlier.
    disorder: Span,
    pub(super) round: Round,
    pub(super) seen: Seen,
}

impl Flow {
    /// A flow at this rate, never below `floor`, from datagram `next` on.
    pub(super) fn new(rate: Rate, floor: Rate, next: u64) -> Self {
        let mut flow = Self {
            floor,
            rate,
            paced_at: Span::ZERO,
            next,
            fresh_from: next,
            now: Span::ZERO,
            seen_from: next,
            disorder: Span::ZERO,
            round: Round::default(),
            seen: Seen::default(),
        };
        flow.restart(rate);
        flow
    }

    /// The last datagram was sent at this time, by another law: what it had not used is not made up for.
    pub(super) fn begin(&mut self, sent_at: Instant) {
        self.paced_at = sent_at.into();
    }

    /// Datagrams from this number on are judged, also those that were sent before the flow began.
    pub(super) const fn judge_from(mut self, number: u64) -> Self {
        self.fresh_from = number;
        self
    }

    /// The flow's share of the link.
    pub(super) const fn rate(&self) -> Rate {
        self.rate
    }

    pub(super) const fn set_disorder(&mut self, disorder: Span) {
        self.disorder = disorder;
    }

    /// Changes the rate. Only datagrams sent from now on are judged.
    pub(super) fn restart(&mut self, rate: Rate) {
        self.go_on(rate);
        self.seen_from = self.next;
        self.seen = Seen::new();
    }

    /// The same, but losses go on to be counted.
    pub(super) fn go_on(&mut self, rate: Rate) {
        self.rate = rate.max(self.floor);
        self.fresh_from = self.next;
        self.round = Round::default();
    }

    /// When the last datagram was sent.
    pub(super) const fn now(&self) -> Span {
        self.now
    }

    /// Changes the rate. Datagrams in flight are judged too.
    pub(super) const fn adjust(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// When the next slice may be sent; `None` if now.
    pub(super) fn opens_at(&self, now: Instant, queue: &Queue) -> Option<Instant> {
        let at = self.paced_at.instant();
        (at > now).then(|| at.max(now + queue.tick_at(self.rate)))
    }

    /// A datagram was sent. Up to `catch_up` of delayed sending is made up for.
    pub(super) fn on_sent(&mut self, now: Instant, number: u64, bytes: Bytes, catch_up: Span) {
        (self.next, self.now) = (number + 1, now.into());
        self.paced_at = self.paced_at.max(Span::from(now) - catch_up) + bytes / self.rate;
    }

    /// The fate of a datagram is settled.
    pub(super) fn on_settled(&mut self, number: u64, is_lost: bool) {
        if number >= self.fresh_from {
            self.round.fates.on_settled(is_lost);
        }
        if number >= self.seen_from {
            self.seen.on_settled(is_lost);
        }
    }

    /// A datagram that counted as lost has arrived.
    pub(super) const fn on_spurious(&mut self, number: u64) {
        if number >= self.fresh_from {
            self.round.fates.on_spurious();
        }
        if number >= self.seen_from {
            self.seen.on_spurious();
        }
    }

    /// A full datagram arrived with this queueing delay. Returns how long the round has lasted; `None`
    /// before its second arrival.
    pub(super) fn on_arrival(&mut self, sample: Sample, delay: Span) -> Option<Span> {
        if sample.number < self.fresh_from {
            return None;
        }
        let Some(first) = self.round.first else {
            (self.round.first, self.round.arrivals) = (Some(sample), 1);
            self.round.min_delay = delay;
            return None;
        };
        let round = &mut self.round;
        (round.last, round.arrivals) = (Some(sample), round.arrivals + 1);
        round.min_delay = round.min_delay.min(delay);
        Some(sample.at - first.at)
    }

    /// Whether a round has lasted so long and has so many arrivals. Where datagrams are held up for longer
    /// than that, it takes more of both: the least of few delays is no queue, but chance.
    pub(super) fn is_judged(&self, lasts: Span, round: Span, arrivals: usize) -> bool {
        let disordered = DISORDERED_ROUND * self.disorder;
        if disordered <= round {
            return lasts >= round && self.round.arrivals >= arrivals;
        }
        lasts >= disordered && self.round.arrivals >= arrivals.max(DISORDERED_ARRIVALS)
    }

    /// The rate at which datagrams arrived in the round.
    pub(super) fn arrived(&self) -> Rate {
        let (Some(first), Some(last)) = (self.round.first, self.round.last) else {
            return self.rate;
        };
        (last.received - first.received) / (last.at - first.at).max(Span(1.0))
    }

    /// The rate at which the bottleneck passed this flow in the round, losses behind it included.
    pub(super) fn delivered(&self) -> Rate {
        let (Some(first), Some(last)) = (self.round.first, self.round.last) else {
            return self.rate;
        };
        (last.passed - first.passed) / (last.at - first.at).max(Span(1.0))
    }
}
