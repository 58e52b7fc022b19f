//! A model of the bottleneck and the queue in front of it.
//!
//! Every datagram sent is replayed, at its send time, through a queue that drains at the rate of
//! [`RateFinder`]; each reported arrival corrects it. So the sender knows the backlog before a loss or a
//! longer round trip shows it.

use super::loss::LossEstimate;
use super::rate_finder::RateFinder;
use super::samples::{Sample, Samples};
use super::tuning::FULL_PACKET;
use super::tuning::bottleneck::{FIRST_SEEN, MIN_QUEUE, TRIED};
use super::tuning::near::{GROWTH, QUEUE_TICKS, tick};
use super::units::{Bytes, Rate, Span};
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
}

impl Bottleneck {
    /// The model for a transfer whose first datagram has the number `first`.
    pub(crate) const fn new(known: Option<Rate>, first: u64) -> Self {
        Self {
            samples: Samples::new(first),
            finder: RateFinder::new(known),
            replayed: (first, Span::ZERO),
            idle_at: Span::ZERO,
            queue_seen: Bytes(FIRST_SEEN * FULL_PACKET.0),
            recalled: Bytes::ZERO,
            packet: FULL_PACKET,
            tries_more: false,
            is_full: false,
            is_near: false,
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
        is_long: bool,
    ) -> usize {
        let count = self.samples.on_arrivals(frame, ledger);
        if count > 0 {
            self.finder.on_samples(&self.samples, count, loss, is_long);
        }
        count
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
    /// whether it is expected to pass the queue.
    pub(crate) fn replay_in_flight(
        &mut self,
        ledger: &Ledger,
        mut visit: impl FnMut(&Datagram, bool),
    ) {
        let (number, mut idle_at) = self.anchor();
        let place = ledger.settled().min(ledger.place(number));
        for datagram in ledger.iter_from(place.max(ledger.place(self.samples.first()))) {
            let is_open = datagram.fate == Fate::InFlight;
            let replayed = self.rate().filter(|_| datagram.number >= number);
            let passes = replayed.is_none_or(|rate| {
                let bytes = Bytes(datagram.wire_bytes());
                let (backlog, done) = join(idle_at, datagram.sent_at.into(), bytes, rate);
                let passes = match datagram.fate {
                    Fate::Acked | Fate::Lost => true,
                    Fate::Dropped | Fate::GivenUp => false,
                    Fate::InFlight => backlog <= self.room(),
                };
                idle_at = if passes { done } else { idle_at };
                passes
            });
            if is_open {
                visit(datagram, passes);
            }
        }
        self.idle_at = idle_at;
    }
}

/// A packet sent at `sent` joins a queue that would be empty at `idle_at`. Returns the backlog with it, and
/// when the queue will be empty.
fn join(idle_at: Span, sent: Span, bytes: Bytes, rate: Rate) -> (Bytes, Span) {
    let backlog = rate * (idle_at - sent).max(Span::ZERO) + bytes;
    (backlog, idle_at.max(sent) + bytes / rate)
}
