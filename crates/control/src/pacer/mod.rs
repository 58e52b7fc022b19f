//! The one pacer: when the next datagram of a block may be sent.
//!
//! All that can hold one back is asked here, and the first that does says until when: the limit that the
//! application sets, what the receiver's program takes, how far a remembered rate is believed, the law of the
//! path, the tail of a chunk, and the server's uplink. The invariants: nothing goes before
//! [`resume_at`](Pacer::resume_at); nothing here counts a datagram as sent before it was; and a caller counts
//! as late only for a time at which one would have been sent.

mod lateness;
mod limit;
mod reader;

use haulier_core::Instant;

use crate::controller::Controller;
use crate::law::Link;
use crate::tuning::{ACK_DELAY, MIN_PACKET, TAIL_RATE, TICK, UPLINK_TIMEOUT, blind};
use crate::units::{Bytes, Rate, Span};
use crate::urgency::Urgency;
use lateness::Lateness;
use limit::Limit;
use reader::Reader;

/// What a server's connections share, and take in turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Uplink {
    Open,
    Closed,
    /// A slice could go as soon as it is open.
    Awaited,
}

/// What asks to go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asking {
    /// Nothing is known to lack it: it is repair for losses that may come, and goes at half of the rate.
    pub is_tail: bool,
    /// All in flight was given up after a timeout: this is a probe, and something else limits probes.
    pub is_probe: bool,
}

/// What limits the time of a datagram, beside the law of its path: one for each connection.
#[derive(Debug)]
pub struct Pacer {
    limit: Limit,
    reader: Reader,
    lateness: Lateness,
    uplink: Uplink,
    /// The server paces the connections to this address together.
    is_paced_together: bool,
    /// No slice is sent before this: the end of the tick, or of the gap between two slices.
    resume_at: Instant,
}

impl Pacer {
    /// It is open. The receiver's socket holds `receive_buffer` bytes, 0 if that is not known.
    #[must_use]
    pub fn new(max_rate_bps: u64, receive_buffer: u64) -> Self {
        Self {
            limit: Limit::new(max_rate_bps),
            reader: Reader::new(receive_buffer),
            lateness: Lateness::new(),
            uplink: Uplink::Open,
            is_paced_together: false,
            resume_at: Instant::ZERO,
        }
    }

    /// The sender is called, perhaps late, to send with this urgency.
    pub fn on_call(&mut self, path: &mut Controller, now: Instant, urgency: Urgency) {
        self.lateness.on_call(now);
        path.on_call(urgency, self.lateness.is_frame());
    }

    /// Input arrived that may make a slice due.
    pub fn on_input(&mut self, now: Instant) {
        self.lateness.on_input(now);
    }

    /// There is a slice to send, or none.
    pub fn set_due(&mut self, now: Instant, is_due: bool) {
        self.lateness.set_due(is_due.then(|| self.resume_at.max(now)));
    }

    /// No slice may be sent, for a reason outside the sender: a later call does not count as late.
    pub const fn on_blocked(&mut self) {
        self.lateness.set_due(None);
    }

    /// How late the sender is called.
    pub const fn lateness(&self) -> Span {
        self.lateness.get()
    }

    /// When the next slice may go, as far as is known.
    pub const fn resume_at(&self) -> Instant {
        self.resume_at
    }

    /// The next slice need not wait any more: it may be asked for now.
    pub fn resume(&mut self, now: Instant) {
        self.resume_at = self.resume_at.min(now);
    }

    /// Whether the slice that asks may go now. If not, it is asked for again when it may.
    #[must_use]
    pub fn admits(&mut self, path: &mut Controller, now: Instant, it: Asking) -> bool {
        if !it.is_probe && self.is_reader_full(path) {
            // An ack makes room, or a timeout: no call before that is late.
            self.resume_at = now + TICK;
            self.lateness.set_due(None);
            return false;
        }
        if let Some(later) = self.opens_at(path, now, it) {
            self.resume_at = later;
            self.lateness.set_due(Some(later));
            return false;
        }
        if !self.has_uplink(now) {
            return false;
        }
        if it.is_tail {
            let (now, late) = (Span::from(now), self.lateness.get());
            let paced_at = Span::from(path.next_tail).clamp(now - late, now);
            path.next_tail = (paced_at + self.tail_gap(path)).instant();
        }
        true
    }

    /// Whether something else may go that shares the rate with slices: the rate that the laws set, the
    /// application or the receiver's program allow is for all of it, and the lanes say what goes first.
    #[must_use]
    pub fn admits_other(&mut self, path: &mut Controller, now: Instant, is_probe: bool) -> bool {
        let it = Asking { is_tail: false, is_probe };
        if now >= self.resume_at
            && let Some(later) = self.opens_at(path, now, it)
        {
            self.resume_at = later;
        }
        now >= self.resume_at && self.has_uplink(now)
    }

    /// When it may go; `None` if now.
    fn opens_at(&self, path: &Controller, now: Instant, it: Asking) -> Option<Instant> {
        let link = self.link(path);
        let late = link.lateness_at(self.limit.rate());
        self.limit
            .opens_at(now, self.train_over_limit(path), late)
            .or_else(|| self.reader.opens_at(now))
            .or_else(|| path.recalled.and_then(|recalled| recalled.opens_at(now, link.rtt, late)))
            .or_else(|| self.paced_at(path, now, &link, it))
            .or_else(|| tail_at(path, now).filter(|_| it.is_tail))
    }

    /// When the law of this connection alone lets it go; `None` if now, or if that law rests.
    fn paced_at(
        &self,
        path: &Controller,
        now: Instant,
        link: &Link,
        it: Asking,
    ) -> Option<Instant> {
        let is_paced = !self.is_paced_together || path.pacing.is_beside_game();
        if !is_paced {
            return None;
        }
        if path.pacing.is_full() && !it.is_probe {
            return Some(now + TICK);
        }
        path.pacing.opens_at(now, link)
    }

    /// Bytes of a train that may exceed the limit; zero where the limit is below the initial rate.
    fn train_over_limit(&self, path: &Controller) -> Bytes {
        let is_train = path.trains.is_running() && path.bottleneck.rate().is_none();
        if is_train && self.limit.rate() > blind::LATER_RATE {
            path.trains.bytes()
        } else {
            Bytes::ZERO
        }
    }

    /// Whether as much is in flight as may wait for a program that does not read.
    fn is_reader_full(&self, path: &Controller) -> bool {
        let rate = path.bottleneck.rate().unwrap_or(Rate::ZERO);
        let delay = path.rtt_span + ACK_DELAY;
        let in_flight = f64::from(path.pacing.in_flight()) * path.packet;
        in_flight >= self.reader.max_in_flight(rate * delay, path.packet)
    }

    /// Whether it is this connection's turn: on the server's uplink, and of those to its address. If it is
    /// not, it is asked when it is, and no call before that is late.
    fn has_uplink(&mut self, now: Instant) -> bool {
        if matches!(self.uplink, Uplink::Open) {
            return true;
        }
        self.uplink = Uplink::Awaited;
        self.resume_at = now + UPLINK_TIMEOUT;
        self.lateness.set_due(None);
        false
    }

    /// Opens or closes the server's uplink to this connection. Returns whether that ends a wait for it.
    pub fn set_uplink_open(&mut self, now: Instant, is_open: bool) -> bool {
        let was_awaited = self.awaits_uplink();
        if is_open {
            self.uplink = Uplink::Open;
            self.resume_at = if was_awaited { now } else { self.resume_at };
        } else if !was_awaited {
            self.uplink = Uplink::Closed;
        }
        is_open && was_awaited
    }

    /// Whether a slice could go as soon as the server's uplink is open.
    pub const fn awaits_uplink(&self) -> bool {
        matches!(self.uplink, Uplink::Awaited)
    }

    /// Sets whether the server paces the connections to this address together. Then the law of this one
    /// rests, but beside a game.
    pub const fn set_paced_together(&mut self, is_paced: bool) {
        self.is_paced_together = is_paced;
    }

    /// Changes the limit, in bits per second.
    pub fn set_limit(&mut self, max_rate_bps: u64) {
        self.limit.set(max_rate_bps);
    }

    /// The peer's program reads this late. No more is sent in that time than can wait for it.
    pub fn set_reader_lateness(&mut self, late: Span, floor: Rate) {
        self.reader.set_lateness(late, floor);
    }

    /// A datagram was sent with this number; `is_slice` if it carries a part of a block. Others count, and
    /// never wait.
    pub fn on_sent(
        &mut self,
        path: &mut Controller,
        now: Instant,
        number: u64,
        bytes: Bytes,
        is_slice: bool,
    ) {
        let link = self.link(path);
        self.limit.on_sent(now, bytes);
        self.reader.on_sent(now, bytes);
        path.on_sent(now, (number, bytes), is_slice, &link);
    }

    /// What the application allows, and the receiver's program takes.
    pub fn max_rate(&self) -> Rate {
        self.limit.rate().min(self.reader.rate())
    }

    /// The rate at which slices go; `None` while no rate is known.
    pub fn pace(&self, path: &Controller) -> Option<Rate> {
        let rate = path.pacing.rate().or(path.bottleneck.rate())?;
        Some(rate.min(self.max_rate()))
    }

    /// The link as the next datagram finds it.
    fn link(&self, path: &Controller) -> Link {
        let packet = path.last_bytes.max(MIN_PACKET);
        let (rtt, late) = (path.rtt_span, self.lateness.get());
        Link::new(&path.bottleneck, rtt, packet, path.trains.is_running(), late)
    }

    fn tail_gap(&self, path: &Controller) -> Span {
        let packet = path.last_bytes.max(MIN_PACKET);
        path.pacing.rate().map_or(Span::ZERO, |rate| packet / (rate * TAIL_RATE))
    }
}

/// When the next slice of the tail may be sent; `None` if now. Without a measured rate the tail is not
/// slowed.
fn tail_at(path: &Controller, now: Instant) -> Option<Instant> {
    path.pacing.rate()?;
    Some(path.next_tail).filter(|&next| next > now)
}
