//! The rate of a transfer beside a game: low enough that the game's packets meet no queue.
//!
//! Any sign of a queue reduces the rate. The transfer starts slowly, searches for the link's rate, and
//! leaves three tenths of it free. It searches again from time to time, because links change.

use super::super::tuning::beside_game::{
    ARRIVALS, CAREFUL, CATCH_UP, FIRST_SEARCH, GROWTH, MAX_DRAINS, MAX_QUEUE, MAX_SEARCH,
    MAX_TRAIN, QUEUED, ROUNDS, SEARCH_GROWTH, SHARE, SQUEEZED, START, STEEP_ARRIVALS, STEEP_GROWTH,
};
use super::super::tuning::flow::MIN_ROUND;
use super::super::tuning::near::NEAR;
use super::super::tuning::rate_finder::MIN_TRAIN;
use super::super::tuning::{FULL_PACKET, trains};
use super::super::units::{Bytes, Rate, Span};
use super::flow::{Flow, Round};
use super::policer::{Finding, Policer};
use super::start::target;
use crate::Instant;

/// A flow that builds no queue.
#[derive(Clone, Debug)]
pub(super) struct BesideGame {
    pub(super) flow: Flow,
    policer: Policer,
    /// The delivered rate at the last queue, and when that was.
    ceiling: Rate,
    ceiling_at: Span,
    /// The time from that queue to the next search for a higher rate.
    search_after: Span,
    /// The queue is draining.
    drains: bool,
    /// Consecutive rounds with a queue.
    queued: u32,
    /// No queue was seen yet.
    is_new: bool,
    /// Slices of a train that may go at once: none is known, one has begun, it has shown the rate of the
    /// link.
    train: usize,
    has_begun: bool,
    is_trained: bool,
}

impl BesideGame {
    /// A flow from datagram `next` on, over a link of rate `known`, if that is known: it begins with a
    /// careful part of what it may have. `is_least`: the link may have much more.
    pub(super) fn new(floor: Rate, next: u64, known: Option<Rate>, is_least: bool) -> Self {
        let (start, ceiling) = match known {
            None => (START, Rate::INFINITY),
            Some(rate) if is_least => (CAREFUL * rate, Rate::INFINITY),
            Some(rate) => (CAREFUL * SHARE * rate, rate),
        };
        Self {
            flow: Flow::new(START.max(start), floor, next),
            policer: Policer::default(),
            ceiling,
            ceiling_at: Span::ZERO,
            search_after: FIRST_SEARCH,
            drains: false,
            queued: 0,
            is_new: true,
            train: 0,
            has_begun: known.is_some(),
            is_trained: false,
        }
    }

    /// The way back has this rate, and that to the peer is seldom slower. If a game's packet need not wait
    /// for long behind a train there, it shows the rate within a round trip.
    pub(super) fn set_hint(&mut self, hint: Rate) {
        if !self.has_begun {
            let slices = (hint * MAX_TRAIN).in_units_of(FULL_PACKET);
            // Fewer would show no rate.
            self.train = if slices < MIN_TRAIN { 0 } else { slices.min(trains::PACKETS) };
        }
    }

    /// What was used, if no queue was seen.
    pub(super) fn least_rate(&self) -> Option<Rate> {
        (self.is_new && self.flow.rate() > START).then_some(self.flow.rate())
    }

    /// Whether the next slice of a train may go at once.
    pub(super) const fn has_train(&self) -> bool {
        self.train > 0
    }

    pub(super) const fn on_slice_sent(&mut self) {
        self.has_begun |= self.train > 0;
        self.train = self.train.saturating_sub(1);
    }

    /// A train has shown that the link has this rate: it goes on as with one that was known before.
    pub(super) fn learn(&mut self, known: Rate) {
        if !self.is_new || self.ceiling.is_finite() {
            return;
        }
        (self.ceiling, self.is_trained, self.train) = (known, true, 0);
        // What went at once does not count against the new rate.
        self.flow.begin(Instant::ZERO);
        self.flow.restart(self.flow.rate().max(CAREFUL * SHARE * known));
    }

    /// A datagram was sent. No more than a tick of delay is made up for, so that slices are not sent back to
    /// back.
    pub(super) fn on_sent(&mut self, now: Instant, number: u64, bytes: Bytes) {
        self.flow.on_sent(now, number, bytes, CATCH_UP);
    }

    /// Whether the round is complete, in time and arrivals.
    pub(super) fn is_round(&self, lasts: Span, rtt: Span) -> bool {
        let arrivals = if self.is_steep(rtt) { STEEP_ARRIVALS } else { ARRIVALS };
        self.flow.round.arrivals >= arrivals && lasts >= MIN_ROUND
    }

    /// Whether the rate may double from round to round: on a path so short a queue shows before it is long,
    /// and up to its share of a rate that was just measured there is none.
    fn is_steep(&self, rtt: Span) -> bool {
        self.is_new && (rtt < NEAR || self.is_trained)
    }

    /// Judges a round, at `now` by the receiver's clock.
    pub(super) fn judge(&mut self, now: Span, rtt: Span) {
        let rate = self.flow.rate();
        let delay = self.flow.round.newest_delay();
        let is_unqueued = delay < target(rate);
        match self.policer.judge(&mut self.flow.seen, rate, self.ceiling, is_unqueued) {
            Finding::Nothing => {}
            Finding::Policed => self.ceiling = rate,
            Finding::Change(rate) => return self.flow.restart(rate),
        }
        if delay > QUEUED || self.flow.round.is_marked {
            self.reduce(now, delay, rtt);
        } else {
            self.grow(now, rtt);
        }
    }

    /// Reduces the rate, because there is a queue.
    fn reduce(&mut self, now: Span, delay: Span, rtt: Span) {
        let mut rate = self.flow.rate();
        let delivered = self.flow.delivered().min(rate);
        self.queued += 1;
        self.is_new = false;
        let is_sure =
            self.flow.round.is_marked || delay > 2.0 * QUEUED && delivered < SQUEEZED * rate;
        if self.queued < ROUNDS && !is_sure {
            return self.flow.round = Round::default();
        }
        if !self.drains || self.queued > MAX_DRAINS {
            let is_known = rate < GROWTH * self.ceiling;
            let later = MAX_SEARCH.min(2.0 * self.search_after);
            self.search_after = if is_known { later } else { FIRST_SEARCH };
            (self.ceiling, self.ceiling_at) = (delivered, now);
            (self.drains, self.queued) = (true, 0);
            rate = SHARE * delivered;
        }
        self.flow.restart(rate);
        self.flow.drain(delay, rtt);
    }

    /// Grows if the link may be faster, because there is no queue.
    fn grow(&mut self, now: Span, rtt: Span) {
        (self.drains, self.queued) = (false, 0);
        if self.flow.round.is_rising() {
            return self.flow.round = Round::default();
        }
        let rate = self.flow.rate();
        let share = SHARE * self.ceiling;
        if rate < share {
            let growth = if self.is_steep(rtt) { STEEP_GROWTH } else { GROWTH };
            let growth = growth.min(1.0 + MAX_QUEUE / rtt.max(Span(1.0)));
            self.flow.restart((rate * growth).min(share));
            self.ceiling_at = now;
        } else if !self.policer.is_futile() && now - self.ceiling_at > self.search_after {
            // Far above the last ceiling: the link has changed.
            let is_new = rate > GROWTH * self.ceiling;
            self.flow.restart(rate * if is_new { GROWTH } else { SEARCH_GROWTH });
        } else {
            self.flow.round = Round::default();
        }
    }
}
