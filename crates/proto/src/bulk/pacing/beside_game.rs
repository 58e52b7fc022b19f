//! What a transfer sends at beside a game: so little that a game's packet meets no queue.
//!
//! The first sign of a queue is too much. It starts slowly, looks for what the link carries, and leaves three
//! tenths of that free; now and then it looks again, for links change.

use super::super::tuning::beside_game::{
    ARRIVALS, CATCH_UP, FIRST_LOOK, GROWTH, LAST_LOOK, LOOK_GROWTH, MAX_DRAINS, MAX_QUEUE, QUEUED,
    ROUNDS, SHARE, SQUEEZED, START,
};
use super::super::tuning::delay::MIN_ROUND;
use super::super::units::{Bytes, Rate, Span};
use super::delay::target;
use super::flow::{Flow, Round};
use super::policer::Finding;
use crate::Instant;

/// A flow that makes no queue.
#[derive(Clone, Debug)]
pub(super) struct BesideGame {
    pub(super) flow: Flow,
    /// What got through when there was a queue last, and when that was.
    ceiling: Rate,
    ceiling_at: Span,
    look_after: Span,
    /// The queue is being emptied.
    drains: bool,
    /// Rounds with a queue, one after the other.
    queued: u32,
}

impl BesideGame {
    /// From datagram `next` on, over a link that carries `known` if anything is known of it.
    pub(super) fn new(floor: Rate, next: u64, known: Option<Rate>) -> Self {
        Self {
            flow: Flow::new(START, floor, next),
            ceiling: known.unwrap_or(Rate::INFINITY),
            ceiling_at: Span::ZERO,
            look_after: FIRST_LOOK,
            drains: false,
            queued: 0,
        }
    }

    /// A datagram went out. What was not sent in time is not made up for: nothing goes back to back.
    pub(super) fn on_sent(&mut self, now: Instant, number: u64, bytes: Bytes) {
        self.flow.on_sent(now, number, bytes, CATCH_UP);
    }

    /// Whether so much time and so many arrivals are a round.
    pub(super) fn is_round(&self, lasts: Span) -> bool {
        self.flow.round.arrivals >= ARRIVALS && lasts >= MIN_ROUND
    }

    /// Judges a round, at `now` by the receiver's clock.
    pub(super) fn judge(&mut self, now: Span, rtt: Span) {
        let rate = self.flow.rate();
        let delay = self.flow.round.newest_delay();
        let is_unqueued = delay < target(rate);
        match self.flow.policer.judge(&mut self.flow.seen, rate, is_unqueued) {
            Finding::Nothing => {}
            Finding::Policed => self.ceiling = rate,
            Finding::Change(rate) => return self.flow.restart(rate),
        }
        if delay > QUEUED {
            self.empty(now, delay, rtt);
        } else {
            self.look(now, rtt);
        }
    }

    /// There is a queue.
    fn empty(&mut self, now: Span, delay: Span, rtt: Span) {
        let mut rate = self.flow.rate();
        let delivered = self.flow.delivered().min(rate);
        self.queued += 1;
        let is_sure = delay > 2.0 * QUEUED && delivered < SQUEEZED * rate;
        if self.queued < ROUNDS && !is_sure {
            return self.flow.round = Round::default();
        }
        if !self.drains || self.queued > MAX_DRAINS {
            let is_known = rate < GROWTH * self.ceiling;
            let later = LAST_LOOK.min(2.0 * self.look_after);
            self.look_after = if is_known { later } else { FIRST_LOOK };
            (self.ceiling, self.ceiling_at) = (delivered, now);
            (self.drains, self.queued) = (true, 0);
            rate = SHARE * delivered;
        }
        self.flow.restart(rate);
        self.flow.drain(delay, rtt);
    }

    /// There is none: it may be that the link carries more.
    fn look(&mut self, now: Span, rtt: Span) {
        (self.drains, self.queued) = (false, 0);
        let rate = self.flow.rate();
        let share = SHARE * self.ceiling;
        if rate < share {
            let growth = GROWTH.min(1.0 + MAX_QUEUE / rtt.max(Span(1.0)));
            self.flow.restart((rate * growth).min(share));
            self.ceiling_at = now;
        } else if !self.flow.policer.is_futile() && now - self.ceiling_at > self.look_after {
            // Far above what it was: the link has changed.
            let is_new = rate > GROWTH * self.ceiling;
            self.flow.restart(rate * if is_new { GROWTH } else { LOOK_GROWTH });
        } else {
            self.flow.round = Round::default();
        }
    }
}
