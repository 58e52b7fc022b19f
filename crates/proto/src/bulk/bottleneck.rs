//! A model of the bottleneck and the queue in front of it.
//!
//! Every datagram sent is replayed, at its send time, through a queue that drains at the rate of
//! [`RateFinder`]; each reported arrival corrects it. So the sender knows the backlog before a loss or a
//! longer round trip shows it.
//!
//! What is in flight is replayed whole after each ack while what the model says of it decides
//! ([`replay_in_flight`](Bottleneck::replay_in_flight)), and little by little otherwise
//! ([`replay_some`](Bottleneck::replay_some)): the work for a datagram does not grow with what is in flight.

use alloc::boxed::Box;

use super::loss::LossEstimate;
use super::rate_finder::RateFinder;
use super::samples::{Sample, Samples};
use super::tuning::bottleneck::{FIRST_SEEN, MIN_QUEUE, TRIED};
use super::tuning::near::{GROWTH, QUEUE_TICKS, tick};
use super::tuning::rate_finder::AT_ONCE;
use super::tuning::{FULL_PACKET, TICK};
use super::units::{Bytes, Rate, Span};
use super::upward::{Step, Upward};
use crate::Instant;
use crate::transit::{ArrivalsFrame, Datagram, Fate, Ledger};

/// The model of the bottleneck.
#[derive(Clone, Debug)]
pub(crate) struct Bottleneck {
    samples: Samples,
    finder: RateFinder,
    /// Where the next replay of settled datagrams starts: packet number, and when the queue was idle.
    replayed: (u64, Span),
    /// When everything sent will have passed.
    idle_at: Span,
    /// The number of the next datagram of a replay that goes on with each ack, and when the queue was idle.
    replaying: (u64, Span),
    /// The largest backlog with which a packet was not dropped.
    queue_seen: Bytes,
    /// What an earlier transfer saw fit.
    recalled: Bytes,
    /// The size of a full datagram.
    packet: Bytes,
    /// Whether a larger backlog is tried, and whether one was dropped.
    tries_more: bool,
    is_full: bool,
    /// The round trip is short: see [`NEAR`](super::tuning::near::NEAR).
    is_near: bool,
    /// The link may be much faster than is known.
    upward: Option<Box<Upward>>,
}

impl Bottleneck {
    /// The model for a transfer whose first datagram has the number `first`.
    pub(crate) const fn new(known: Option<Rate>, first: u64) -> Self {
        Self {
            samples: Samples::new(first),
            finder: RateFinder::new(known),
            replayed: (first, Span::ZERO),
            idle_at: Span::ZERO,
            replaying: (first, Span::ZERO),
            queue_seen: Bytes(FIRST_SEEN * FULL_PACKET.0),
            recalled: Bytes::ZERO,
            packet: FULL_PACKET,
            tries_more: false,
            is_full: false,
            is_near: false,
            upward: None,
        }
    }

    /// The same, where an earlier transfer saw so much fit.
    pub(crate) fn recalling(self, recalled: Bytes) -> Self {
        Self { recalled, ..self }
    }

    /// The largest backlog that was seen to fit.
    pub(crate) const fn queue_seen(&self) -> Bytes {
        self.queue_seen
    }

    /// The size of a full datagram.
    pub(crate) fn set_packet(&mut self, packet: Bytes) {
        self.queue_seen = self.queue_seen.max(FIRST_SEEN * packet);
        self.packet = packet;
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

    /// No train of the start gave a rate.
    pub(crate) const fn do_without_trains(&mut self) {
        self.finder.do_without_trains();
    }

    /// When the queue will be empty if nothing more is sent.
    pub(crate) const fn idle_at(&self) -> Span {
        self.idle_at
    }

    /// Bytes that the queue is assumed to hold: what it was seen to hold, and more while none was dropped.
    pub(crate) fn room(&self) -> Bytes {
        let room = self.queue_seen.max(MIN_QUEUE);
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

    /// A packet is sent: it joins the queue, unless the model says the queue is full. Returns the backlog
    /// with it, and whether it is expected to pass.
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: Bytes) -> (Bytes, bool) {
        let Some(rate) = self.rate() else { return (Bytes::ZERO, true) };
        let (backlog, done) = join(self.idle_at, now.into(), bytes, rate);
        let passes = backlog <= self.room();
        if passes {
            self.idle_at = done;
        }
        (backlog, passes)
    }

    /// The receiver reported arrival times. New ones become samples, and update the rate. Returns their
    /// number.
    pub(crate) fn on_arrivals(
        &mut self,
        frame: &ArrivalsFrame,
        ledger: &Ledger,
        loss: &LossEstimate,
        now: Instant,
        is_long: bool,
    ) -> usize {
        let count = self.samples.on_arrivals(frame, ledger);
        if count > 0 {
            self.finder.on_samples(&self.samples, count, loss, now.into(), is_long);
            self.samples.set_drain(self.finder.rate(), self.finder.held_up());
        }
        count
    }

    /// Whether what a train shows may be taken over by a law: nothing behind the bottleneck holds datagrams
    /// up for longer than clocks tell.
    pub(crate) fn is_clear(&self) -> bool {
        self.is_near || self.finder.held_up() < AT_ONCE
    }

    /// While the link may be much faster than is known: tries that, once the newest `count` arrivals have
    /// shown that what was sent came through. Returns the link's rate when it is found.
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

    /// The path has become longer, which is no queue.
    pub(crate) fn on_longer(&mut self, by: Span) {
        self.samples.on_longer(by);
    }

    /// The newest `count` arrivals.
    pub(crate) fn newest(&self, count: usize) -> impl Iterator<Item = &Sample> {
        self.samples.newest(count)
    }

    /// Where a replay starts: after the newest reported arrival, or at the first datagram.
    fn anchor(&self) -> (u64, Span) {
        let beginning = (self.samples.first(), Span::ZERO);
        self.samples.done().map_or(beginning, |(number, done)| (number + 1, done))
    }

    /// Replays the datagrams sent since the last reported arrival, with their fates, and corrects `backlog`
    /// of those up to the newest acknowledged, so that their fates can be settled.
    pub(crate) fn replay_settled(&mut self, ledger: &mut Ledger) {
        let anchor = self.anchor();
        let from = core::mem::replace(&mut self.replayed, anchor);
        let newest = ledger.largest_acked().filter(|&number| number >= self.samples.first());
        let (Some(rate), Some(newest)) = (self.rate(), newest) else { return };
        let (place, mut idle_at) = (ledger.place(from.0), from.1);
        for datagram in ledger.iter_mut_from(place).take_while(|datagram| datagram.number <= newest)
        {
            let bytes = Bytes(datagram.wire_bytes());
            let (backlog, done) = join(idle_at, datagram.sent_at.into(), bytes, rate);
            datagram.backlog = backlog.0;
            let is_acked = datagram.fate == Fate::Acked;
            if is_acked || backlog <= self.queue_seen {
                idle_at = done;
            }
            if is_acked {
                self.queue_seen = self.queue_seen.max(backlog);
            }
        }
    }

    /// The fate of a datagram that was overtaken: lost behind the bottleneck, or dropped at its queue.
    pub(crate) fn fate_of(&self, datagram: &Datagram) -> Fate {
        if Bytes(datagram.backlog) <= self.queue_seen { Fate::Lost } else { Fate::Dropped }
    }

    /// A datagram was lost.
    pub(crate) fn on_lost(&mut self, datagram: &Datagram) {
        self.is_full |= Bytes(datagram.backlog) > self.queue_seen.max(MIN_QUEUE);
    }

    /// Replays the datagrams in flight after the newest reported arrival. Calls `visit` with each, and
    /// whether it is expected to pass the queue. Returns how many were looked at.
    pub(crate) fn replay_in_flight(
        &mut self,
        ledger: &mut Ledger,
        mut visit: impl FnMut(&mut Datagram, bool),
    ) -> usize {
        let (number, mut idle_at) = self.anchor();
        let place = ledger.settled().min(ledger.place(number));
        let place = place.max(ledger.place(self.samples.first()));
        let mut looked_at = 0;
        for datagram in ledger.iter_mut_from(place) {
            let is_replayed = datagram.number >= number;
            let passes = !is_replayed || self.replay(&mut idle_at, datagram);
            if datagram.fate == Fate::InFlight {
                visit(datagram, passes);
            }
            looked_at += 1;
        }
        self.idle_at = idle_at;
        self.replaying = (ledger.next_number(), idle_at);
        looked_at
    }

    /// Replays up to `max` more of the datagrams in flight after the newest reported arrival; at the last of
    /// them it is known when all will have passed, and the next replay begins. Returns how many were looked
    /// at.
    pub(crate) fn replay_some(&mut self, ledger: &Ledger, max: usize) -> usize {
        let anchor = self.anchor();
        let is_over = self.replaying.0 >= ledger.next_number();
        if is_over || self.replaying.0 < anchor.0 {
            self.replaying = anchor;
        }
        let (number, mut idle_at) = self.replaying;
        let mut next = number;
        let mut looked_at = 0;
        for datagram in ledger.iter_from(ledger.place(number)).take(max) {
            self.replay(&mut idle_at, datagram);
            (next, looked_at) = (datagram.number + 1, looked_at + 1);
        }
        if looked_at < max {
            (next, self.idle_at) = (ledger.next_number(), idle_at);
        }
        self.replaying = (next, idle_at);
        looked_at
    }

    /// A datagram joins a queue that would be empty at `idle_at`, if it passes; returns whether it does.
    fn replay(&self, idle_at: &mut Span, datagram: &Datagram) -> bool {
        let Some(rate) = self.rate() else { return true };
        let bytes = Bytes(datagram.wire_bytes());
        let (backlog, done) = join(*idle_at, datagram.sent_at.into(), bytes, rate);
        let passes = match datagram.fate {
            Fate::Acked | Fate::Lost => true,
            Fate::Dropped | Fate::GivenUp => false,
            Fate::InFlight => backlog <= self.room(),
        };
        if passes {
            *idle_at = done;
        }
        passes
    }
}

/// A packet sent at `sent` joins a queue that would be empty at `idle_at`. Returns the backlog with it, and
/// when the queue will be empty.
fn join(idle_at: Span, sent: Span, bytes: Bytes, rate: Rate) -> (Bytes, Span) {
    let backlog = rate * (idle_at - sent).max(Span::ZERO) + bytes;
    (backlog, idle_at.max(sent) + bytes / rate)
}
