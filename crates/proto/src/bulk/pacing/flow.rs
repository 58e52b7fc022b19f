//! The rate that a law has set, and the measurements of datagrams sent at that rate.
//!
//! Each law but a guess has one flow. The start of a transfer and the law beside a game judge its rounds; a
//! window only paces by it. The invariant: a round contains only datagrams sent at the rate being judged.

use super::super::samples::Sample;
use super::super::tuning::FULL_PACKET;
use super::super::tuning::beside_game::{RISING, TAIL};
use super::super::tuning::flow::{
    DISORDERED_ARRIVALS, DISORDERED_ROUND, FLOOR_LOSS, FLOOR_WINDOW, MAX_DRAIN, MIN_ROUND,
};
use super::super::units::{Bytes, Rate, Span};
use super::blamed::Blamed;
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
    /// A router has marked one of them: its queue is too long, whatever their delay.
    pub(super) is_marked: bool,
    /// What became of the datagrams sent since the rate was changed.
    pub(super) fates: Seen,
    /// The smallest delay of the newest one to four, and of the four before them.
    tail: Span,
    tail_before: Span,
}

impl Round {
    fn begin(sample: Sample, delay: Span, is_marked: bool) -> Self {
        Self {
            first: Some(sample),
            last: None,
            arrivals: 1,
            min_delay: delay,
            is_marked,
            fates: Seen::new(),
            tail: delay,
            tail_before: Span::INFINITY,
        }
    }

    fn push(&mut self, sample: Sample, delay: Span) {
        self.last = Some(sample);
        self.arrivals += 1;
        self.min_delay = self.min_delay.min(delay);
        if self.arrivals % TAIL == 1 {
            (self.tail_before, self.tail) = (self.tail, delay);
        }
        self.tail = self.tail.min(delay);
    }

    /// The smallest queueing delay of the newest four to eight arrivals.
    pub(super) const fn newest_delay(&self) -> Span {
        self.tail.min(self.tail_before)
    }

    /// Whether the newest one to four arrivals were all later than the four before them: a queue begins.
    pub(super) fn is_rising(&self) -> bool {
        self.tail > self.tail_before + RISING
    }
}

/// A floor that was lowered: what it was, and why.
#[derive(Clone, Copy, Debug)]
struct Sunk {
    floor: Rate,
    losses: Blamed,
}

/// A rate, and what was measured at it.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// The least rate: what the application asks for, until that much does not pass.
    floor: Rate,
    /// What became of the newest datagrams sent at that rate.
    at_floor: Seen,
    /// The floor was lowered because of losses.
    sunk: Option<Sunk>,
    /// The flow's share of the link, as set by the law.
    rate: Rate,
    /// The pacing rate: less than `rate` while the queue drains.
    pace: Rate,
    paced_at: Span,
    /// The number after the last datagram sent. Those before `fresh_from` were sent at another rate.
    next: u64,
    fresh_from: u64,
    /// Those before it were sent while the queue still drained; `None` while it does.
    drained_from: Option<u64>,
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
            at_floor: Seen::new(),
            sunk: None,
            rate,
            pace: rate,
            paced_at: Span::ZERO,
            next,
            fresh_from: next,
            drained_from: None,
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

    /// The pacing rate.
    pub(super) const fn pace(&self) -> Rate {
        self.pace
    }

    pub(super) const fn set_disorder(&mut self, disorder: Span) {
        self.disorder = disorder;
    }

    /// Changes the rate. Only datagrams sent from now on are judged.
    pub(super) fn restart(&mut self, rate: Rate) {
        self.go_on(rate);
        self.drained_from = None;
        self.forget_losses();
    }

    /// The same, but losses go on to be counted.
    pub(super) fn go_on(&mut self, rate: Rate) {
        self.rate = rate.max(self.floor);
        self.pace = self.rate;
        self.fresh_from = self.next;
        self.round = Round::default();
    }

    /// Losses are counted from now on.
    pub(super) const fn forget_losses(&mut self) {
        self.seen_from = self.next;
        self.seen = Seen::new();
    }

    /// When the last datagram was sent.
    pub(super) const fn now(&self) -> Span {
        self.now
    }

    /// Changes the rate. Datagrams in flight are judged too.
    pub(super) const fn adjust(&mut self, rate: Rate) {
        (self.rate, self.pace) = (rate, rate);
    }

    /// Lowers the pacing rate until a datagram sent from now on arrives, so that this flow's part of the
    /// queue drains.
    pub(super) fn drain(&mut self, delay: Span, rtt: Span) {
        let less = (delay / rtt.max(MIN_ROUND)).min(MAX_DRAIN);
        self.pace = (self.rate * (1.0 - less)).max(self.floor);
    }

    /// When the next slice may be sent; `None` if now.
    pub(super) fn opens_at(&self, now: Instant, queue: &Queue) -> Option<Instant> {
        let at = self.paced_at.instant();
        (at > now).then(|| at.max(now + queue.tick_at(self.pace)))
    }

    /// A datagram was sent. Up to `catch_up` of delayed sending is made up for.
    pub(super) fn on_sent(&mut self, now: Instant, number: u64, bytes: Bytes, catch_up: Span) {
        (self.next, self.now) = (number + 1, now.into());
        self.paced_at = self.paced_at.max(Span::from(now) - catch_up) + bytes / self.pace;
    }

    /// The fate of a datagram is settled.
    pub(super) fn on_settled(&mut self, number: u64, is_lost: bool, rtt: Span) {
        if number >= self.fresh_from {
            self.round.fates.on_settled(is_lost);
        }
        if number >= self.seen_from {
            self.seen.on_settled(is_lost);
            self.sink(is_lost, rtt);
        }
    }

    /// Where the floor does not pass it is lowered, down to a packet a round trip: an application may ask for
    /// it, but others on the link need not bear it. A floor is no rate: losses that are chance change nothing
    /// unless the law wants less.
    fn sink(&mut self, is_lost: bool, rtt: Span) {
        if self.rate > self.floor {
            self.at_floor = Seen::new();
            return;
        }
        self.at_floor.on_settled(is_lost);
        if self.at_floor.total() < FLOOR_WINDOW {
            return;
        }
        if self.at_floor.share() > FLOOR_LOSS {
            let losses = Blamed::new(self.next, self.at_floor.lost());
            self.sunk = Some(Sunk { floor: self.floor, losses });
            self.floor = self.floor.min((self.floor / 2.0).max(FULL_PACKET / rtt.max(Span(1.0))));
            self.restart(self.floor);
        }
        self.at_floor = Seen::new();
    }

    /// A datagram that counted as lost has arrived. A floor that was lowered because of such is what it was.
    pub(super) fn on_spurious(&mut self, number: u64) {
        if number >= self.fresh_from {
            self.round.fates.on_spurious();
        }
        if number >= self.seen_from {
            self.seen.on_spurious();
            self.at_floor.on_spurious();
        }
        if let Some(sunk) = self.sunk.take_if(|sunk| sunk.losses.is_refuted_by(number)) {
            self.floor = self.floor.max(sunk.floor);
            self.rate = self.rate.max(self.floor);
            self.pace = self.pace.max(self.floor);
        }
    }

    /// A router has marked a datagram no older than `number`. Of those that met the queue for which the rate
    /// was reduced already it says nothing new.
    pub(super) fn on_mark(&mut self, number: u64) {
        self.round.is_marked |= self.drained_from.is_some_and(|from| number >= from);
    }

    /// A full datagram arrived with this queueing delay. Returns how long the round has lasted; `None`
    /// before its second arrival.
    pub(super) fn on_arrival(&mut self, sample: Sample, delay: Span) -> Option<Span> {
        if sample.number < self.fresh_from {
            return None;
        }
        let Some(first) = self.round.first else {
            let fates = self.round.fates;
            self.round = Round { fates, ..Round::begin(sample, delay, self.round.is_marked) };
            self.pace = self.rate;
            self.drained_from.get_or_insert(self.next);
            return None;
        };
        self.round.push(sample, delay);
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
