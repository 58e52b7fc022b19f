//! A rate that a law has chosen, and what was seen of the datagrams that were sent at it.
//!
//! The laws of long transfers and of those beside a game ([`Delay`](super::delay::Delay) and others) have
//! one each: they judge a round of it, and set it. The invariant: a round has only what was sent at the
//! rate that is judged.

use super::super::samples::Sample;
use super::super::tuning::TICK;
use super::super::tuning::beside_game::TAIL;
use super::super::tuning::delay::{MAX_DRAIN, MAX_ROUND, MIN_ARRIVALS, MIN_ROUND};
use super::super::units::{Bytes, Rate, Span};
use super::policer::{Policer, Seen};
use crate::Instant;

/// What was seen since the rate was changed or judged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    first: Option<Sample>,
    last: Option<Sample>,
    /// Full datagrams, and the smallest and largest queueing delay of them.
    pub(super) arrivals: usize,
    pub(super) min_delay: Span,
    pub(super) max_delay: Span,
    /// The smallest of the newest, and of four before them.
    tail: Span,
    tail_before: Span,
}

impl Round {
    fn begin(sample: Sample, delay: Span) -> Self {
        Self {
            first: Some(sample),
            last: None,
            arrivals: 1,
            min_delay: delay,
            max_delay: delay,
            tail: delay,
            tail_before: Span::INFINITY,
        }
    }

    fn push(&mut self, sample: Sample, delay: Span) {
        self.last = Some(sample);
        self.arrivals += 1;
        self.min_delay = self.min_delay.min(delay);
        self.max_delay = self.max_delay.max(delay);
        if self.arrivals % TAIL == 1 {
            (self.tail_before, self.tail) = (self.tail, delay);
        }
        self.tail = self.tail.min(delay);
    }

    /// The smallest queueing delay of the newest four to eight.
    pub(super) const fn newest_delay(&self) -> Span {
        self.tail.min(self.tail_before)
    }
}

/// A rate, and how it does.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    floor: Rate,
    /// What the law takes for its share.
    rate: Rate,
    /// What it sends at: less while it drains the queue.
    pace: Rate,
    paced_at: Span,
    /// The number after the last sent. Those before `fresh_from` were sent at another rate.
    next: u64,
    fresh_from: u64,
    pub(super) round: Round,
    pub(super) seen: Seen,
    pub(super) policer: Policer,
}

impl Flow {
    /// A flow at this rate from datagram `next` on, and never below the floor.
    pub(super) fn new(rate: Rate, floor: Rate, next: u64) -> Self {
        let mut flow = Self {
            floor,
            rate,
            pace: rate,
            paced_at: Span::ZERO,
            next,
            fresh_from: next,
            round: Round::default(),
            seen: Seen::default(),
            policer: Policer::default(),
        };
        flow.restart(rate);
        flow
    }

    /// What it takes for its share.
    pub(super) const fn rate(&self) -> Rate {
        self.rate
    }

    /// What is sent now.
    pub(super) const fn pace(&self) -> Rate {
        self.pace
    }

    /// Sends at this rate from now on, and judges by what is sent from now on.
    pub(super) fn restart(&mut self, rate: Rate) {
        self.rate = rate.max(self.floor);
        self.pace = self.rate;
        self.fresh_from = self.next;
        self.round = Round::default();
        self.seen = Seen::default();
    }

    /// Sends at this rate from now on; what is under way counts for it too.
    pub(super) const fn adjust(&mut self, rate: Rate) {
        (self.rate, self.pace) = (rate, rate);
    }

    /// Until something of what is sent from now on arrives, so much less is sent that this flow's part of the
    /// queue drains.
    pub(super) fn drain(&mut self, delay: Span, rtt: Span) {
        let less = (delay / rtt.max(MIN_ROUND)).min(MAX_DRAIN);
        self.pace = (self.rate * (1.0 - less)).max(self.floor);
    }

    /// When the next slice may go, if not now.
    pub(super) fn opens_at(&self, now: Instant) -> Option<Instant> {
        let at = self.paced_at.instant();
        (at > now).then(|| at.max(now + TICK))
    }

    /// A datagram went out. What was not sent in time is made up for, up to `catch_up`.
    pub(super) fn on_sent(&mut self, now: Instant, number: u64, bytes: Bytes, catch_up: Span) {
        self.next = number + 1;
        self.paced_at = self.paced_at.max(Span::from(now) - catch_up) + bytes / self.pace;
    }

    /// What became of a datagram.
    pub(super) fn on_settled(&mut self, number: u64, is_lost: bool) {
        if number >= self.fresh_from {
            self.seen.on_settled(is_lost);
        }
    }

    /// A full datagram arrived after so much queueing delay. Returns for how long the round lasts now;
    /// `None` as long as it has no two.
    pub(super) fn on_arrival(&mut self, sample: Sample, delay: Span) -> Option<Span> {
        if sample.number < self.fresh_from {
            return None;
        }
        let Some(first) = self.round.first else {
            self.round = Round::begin(sample, delay);
            self.pace = self.rate;
            return None;
        };
        self.round.push(sample, delay);
        Some(sample.at - first.at)
    }

    /// Whether so much time and so many arrivals are a round of a long transfer.
    pub(super) fn is_round(&self, lasts: Span, rtt: Span) -> bool {
        lasts >= rtt.clamp(MIN_ROUND, MAX_ROUND) && self.round.arrivals >= MIN_ARRIVALS
    }

    /// What the link carried of this transfer in the round, losses counted.
    pub(super) fn delivered(&self) -> Rate {
        let (Some(first), Some(last)) = (self.round.first, self.round.last) else {
            return self.rate;
        };
        (last.passed - first.passed) / (last.at - first.at).max(Span(1.0))
    }
}
