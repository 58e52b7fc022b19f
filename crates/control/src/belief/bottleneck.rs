//! What is known of the bottleneck: its rate, and how much its queue holds.
//!
//! Reported arrivals are the [`Samples`]; [`RateFinder`] makes a rate of them, and their delays are the queue
//! that each has met. A queue that a datagram has passed holds as much; one behind which several were lost
//! may hold no more.

use alloc::boxed::Box;

use super::loss::LossEstimate;
use super::rate_finder::RateFinder;
use super::samples::{Sample, Samples};
use super::upward::{Step, Upward};
use crate::history::History;
use crate::tuning::bottleneck::{FIRST_SEEN, MIN_QUEUE, TRIED};
use crate::tuning::near::{GROWTH, QUEUE_TICKS, tick};
use crate::tuning::rate_finder::AT_ONCE;
use crate::tuning::{FULL_PACKET, TICK};
use crate::units::{Bytes, Rate, Span};
use haulier_core::Instant;

/// The bottleneck of a path.
#[derive(Clone, Debug)]
pub(crate) struct Bottleneck {
    samples: Samples,
    finder: RateFinder,
    /// The longest queueing delay of a datagram that arrived. It is known before the rate is, and right when
    /// that was not.
    longest: Span,
    /// What an earlier transfer saw fit.
    recalled: Bytes,
    /// The size of a full datagram.
    packet: Bytes,
    /// Whether a larger backlog is tried, and whether one was dropped.
    tries_more: bool,
    is_full: bool,
    /// The round trip is short: see [`NEAR`](crate::tuning::near::NEAR).
    is_near: bool,
    /// The link may be much faster than is known.
    upward: Option<Box<Upward>>,
}

impl Bottleneck {
    /// That of a transfer whose first datagram has the number `first`.
    pub(crate) const fn new(known: Option<Rate>, first: u64) -> Self {
        Self {
            samples: Samples::new(first),
            finder: RateFinder::new(known),
            longest: Span::ZERO,
            recalled: Bytes::ZERO,
            packet: FULL_PACKET,
            tries_more: false,
            is_full: false,
            is_near: false,
            upward: None,
        }
    }

    /// Sets the bytes of queue that an earlier transfer saw fit.
    pub(crate) fn recalling(self, recalled: Bytes) -> Self {
        Self { recalled, ..self }
    }

    /// The largest queue that was seen to fit.
    pub(crate) fn queue_seen(&self) -> Bytes {
        let longest = self.rate().map_or(Bytes::ZERO, |rate| rate * self.longest);
        longest.max((FIRST_SEEN - 1.0) * self.packet) + self.packet
    }

    /// The size of a full datagram.
    pub(crate) fn set_packet(&mut self, packet: Bytes) {
        self.packet = packet;
        self.samples.set_packet(packet);
        self.finder.set_packet(packet);
    }

    /// The estimate of its rate.
    pub(crate) const fn finder(&self) -> &RateFinder {
        &self.finder
    }

    /// The rate at which it drains; `None` until it is known.
    pub(crate) const fn rate(&self) -> Option<Rate> {
        self.finder.rate()
    }

    /// Bytes that the queue is assumed to hold: what it was seen to hold, and more while none was dropped.
    pub(crate) fn room(&self) -> Bytes {
        let room = self.queue_seen().max(MIN_QUEUE);
        match self.rate() {
            _ if self.is_full => room,
            _ if self.tries_more => TRIED * room,
            Some(rate) if self.is_near => {
                let needed = QUEUE_TICKS * (rate * Span::from(tick(rate, self.packet)));
                room.max(needed.min(self.recalled.max(GROWTH * room)))
            }
            _ => room,
        }
    }

    /// Sets whether to try a larger backlog than was seen to fit, because the caller is late.
    pub(crate) const fn try_more(&mut self, tries_more: bool) {
        self.tries_more = tries_more;
    }

    /// Sets whether the round trip is short.
    pub(crate) const fn set_near(&mut self, is_near: bool) {
        self.is_near = is_near;
        self.finder.set_near(is_near);
    }

    /// Whether the round trip is short.
    pub(crate) const fn is_near(&self) -> bool {
        self.is_near
    }

    /// The receiver reported arrival times. New ones become samples, and update the rate. Returns their
    /// number.
    pub(crate) fn on_arrivals(
        &mut self,
        arrivals: impl Iterator<Item = (u64, u32)>,
        history: &impl History,
        loss: &LossEstimate,
        now: Instant,
        is_long: bool,
    ) -> usize {
        let count = self.samples.on_arrivals(arrivals, history, self.rate());
        if count > 0 {
            self.finder.on_samples(&self.samples, count, loss, now.into(), is_long);
            let met = self.samples.newest(count).filter_map(|sample| self.queue_of(sample));
            self.longest = met.fold(self.longest, Span::max);
        }
        count
    }

    /// Whether a law may use the rate that a train shows: nothing behind the bottleneck holds datagrams up
    /// for longer than clocks can tell.
    pub(crate) fn is_clear(&self) -> bool {
        self.is_near || self.finder.held_up() < AT_ONCE
    }

    /// While the link may be much faster than is known: tries a faster rate, once the newest `count` arrivals
    /// have shown that the datagrams sent came through. Returns the link's rate when it is found.
    pub(crate) fn look_upward(&mut self, count: usize, next: u64) -> Option<Rate> {
        if !self.finder.is_at_least() {
            // It was found by other means, perhaps after too much was tried.
            return self.upward.take().and(self.finder.rate());
        }
        let upward = self.upward.get_or_insert_with(|| Box::new(Upward::new(next)));
        for sample in self.samples.newest(count) {
            let rate = self.finder.rate()?;
            let tick = if self.is_near { tick(rate, self.packet) } else { TICK };
            match upward.on_arrival(sample, rate, tick.into(), next) {
                Some(Step::Faster(rate)) => self.finder.try_rate(rate),
                Some(Step::Found(rate)) => {
                    self.finder.settle(rate);
                    return self.finder.rate();
                }
                None => {}
            }
        }
        None
    }

    /// A datagram was acknowledged, perhaps one that others had overtaken.
    pub(crate) fn on_acked(&mut self, number: u64, bytes: Bytes) {
        self.samples.on_late(number, bytes);
    }

    /// The least queueing delay of the datagrams that the last report named.
    pub(crate) fn queueing_delay(&self) -> Option<Span> {
        Some((self.samples.least_delay()? - self.samples.base()?).max(Span::ZERO))
    }

    /// When the newest datagram that arrived was sent, and the queueing delay that it met.
    pub(crate) fn newest_queue(&self) -> Option<(Span, Span)> {
        let sample = self.samples.newest(1).next()?;
        Some((sample.sent, self.queue_of(sample)?.max(Span::ZERO)))
    }

    /// The path has become longer: the additional delay is no queue.
    pub(crate) fn on_longer(&mut self, by: Span) {
        self.samples.on_longer(by);
    }

    /// Whether datagrams were seen to overtake others lately, or to arrive in bunches.
    pub(crate) fn is_disordered(&self) -> bool {
        self.samples.is_disordered()
    }

    /// The newest `count` arrivals.
    pub(crate) fn newest(&self, count: usize) -> impl Iterator<Item = &Sample> {
        self.samples.newest(count)
    }

    /// How long this datagram has waited in the queue, as far as its delay shows.
    fn queue_of(&self, sample: &Sample) -> Option<Span> {
        Some(sample.delay - self.samples.base()?)
    }

    /// A datagram was lost: if it is not the first in succession, and the one before them met the largest
    /// queue that was seen, there is no more room.
    pub(crate) fn on_lost(&mut self, number: u64) {
        let samples = self.samples.all();
        let before = samples.partition_point(|sample| sample.number < number).checked_sub(1);
        let before = before.and_then(|before| samples.get(before));
        let before = before.filter(|before| before.number + 1 < number);
        let met = before.and_then(|before| Some(self.rate()? * self.queue_of(before)?));
        let full = self.queue_seen().max(MIN_QUEUE);
        self.is_full |= met.is_some_and(|met| met + 2.0 * self.packet > full);
    }
}
