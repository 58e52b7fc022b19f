//! When the next slice may be sent, and from what is chosen then.
//!
//! Every part that can hold a slice back is asked, and the latest time counts. The invariant: nothing here
//! counts a slice as sent.

use super::super::choice::{Choice, Conditions};
use super::super::pacing::Queue;
use super::super::path::PathState;
use super::super::tuning::choice::TAIL_RATE;
use super::super::tuning::near::NEAR;
use super::super::tuning::{MIN_PACKET, TICK, UPLINK_TIMEOUT, blind, window};
use super::super::units::{Bytes, Rate, Span};
use super::{Sender, Uplink};
use crate::Instant;
use crate::transit::Ledger;
use crate::urgency::Urgency;

impl Sender {
    /// The sender is called, perhaps late.
    pub(super) fn on_call(&mut self, path: &mut PathState, now: Instant) {
        self.now = now;
        self.silence.on_call(now);
        self.lateness.on_call(now);
        let is_near = path.rtt_span < NEAR;
        path.bottleneck.set_near(is_near);
        if is_near {
            path.trains.lengthen();
        }
        let is_alone = self.config.urgency == Urgency::LoadScreen;
        path.bottleneck.try_more(is_alone && self.lateness.is_frame());
    }

    /// The next slice to send, if any.
    pub(super) fn choose(&self, path: &PathState) -> Option<Choice> {
        if !self.silence.may_send() {
            return None;
        }
        let is_probe = self.silence.is_probe_due();
        let next = if is_probe { None } else { self.chunks.next_of_run() };
        next.or_else(|| self.chunks.choose(is_probe, &self.conditions(path)))
    }

    /// The same, and the next search goes on where this one ended.
    #[inline]
    pub(super) fn choose_and_note(&mut self, path: &PathState) -> Option<Choice> {
        if !self.silence.may_send() {
            return None;
        }
        let is_probe = self.silence.is_probe_due();
        if let Some(next) = self.chunks.next_of_run().filter(|_| !is_probe) {
            return Some(next);
        }
        let conditions = self.conditions(path);
        self.chunks.choose_and_note(is_probe, &conditions)
    }

    pub(super) fn conditions<'a>(&self, path: &'a PathState) -> Conditions<'a> {
        let (rtt, rate) = (path.rtt_span, path.bottleneck.rate());
        Conditions { loss: &path.loss, rtt, rate, window: self.window(rtt, rate) }
    }

    /// Chunks that may be open: what is on the way in some round trips, and some.
    fn window(&self, rtt: Span, rate: Option<Rate>) -> usize {
        let rate = rate.map_or(Rate::ZERO, |rate| rate.min(self.max_rate()));
        let bytes = window::ROUND_TRIPS * (rate * (rtt + window::ACK_DELAY));
        window::MIN_CHUNKS
            .saturating_add(bytes.in_units_of(window::CHUNK))
            .min(self.config.max_open)
    }

    /// When it may be sent; `None` if now.
    pub(super) fn opens_at(
        &self,
        path: &PathState,
        now: Instant,
        is_tail: bool,
    ) -> Option<Instant> {
        let queue = self.queue(path);
        let late = queue.lateness_at(self.limit.rate());
        self.limit
            .opens_at(now, self.train_over_limit(path), late)
            .or_else(|| self.reader.opens_at(now))
            .or_else(|| path.recalled.and_then(|recalled| recalled.opens_at(now, queue.rtt, late)))
            .or_else(|| self.paced_at(path, now, &queue))
            .or_else(|| tail_at(path, now, &queue).filter(|_| is_tail))
    }

    /// When the law of this connection alone lets it be sent; `None` if now, or if that law rests.
    fn paced_at(&self, path: &PathState, now: Instant, queue: &Queue) -> Option<Instant> {
        let is_paced = !self.is_paced_together || path.pacing.is_beside_game();
        if !is_paced {
            return None;
        }
        // After a timeout what is in flight is given up: slices are probes then, and the silence limits them.
        if path.pacing.is_full() && !self.silence.is_probing() {
            return Some(now + TICK);
        }
        path.pacing.opens_at(now, queue)
    }

    /// The number of datagrams in flight may have changed.
    pub(super) fn note_in_flight(&self, path: &mut PathState, ledger: &Ledger) {
        let later = self.lateness.get() + self.silence.later();
        let in_flight = (ledger.in_flight(), ledger.slices_in_flight());
        path.pacing.set_in_flight(in_flight, path.rtt_span, later);
    }

    /// Sets whether the server paces the connections to this address together. Then the law of this one
    /// rests, but beside a game.
    pub(crate) const fn set_paced_together(&mut self, is_paced: bool) {
        self.is_paced_together = is_paced;
    }

    /// Whether it is this connection's turn: on the server's uplink, and of those to its address. If it is
    /// not, it is asked when it is, and no call before that is late.
    pub(super) fn has_uplink(&mut self, path: &mut PathState, now: Instant) -> bool {
        if matches!(self.uplink, Uplink::Open) {
            return true;
        }
        self.uplink = Uplink::Awaited;
        self.resume_at = now + UPLINK_TIMEOUT;
        self.lateness.set_due(None);
        path.pacing.on_held_back();
        false
    }

    /// Opens or closes the server's uplink to this connection.
    pub(crate) fn set_uplink_open(&mut self, now: Instant, is_open: bool) {
        let was_awaited = self.uplink == Uplink::Awaited;
        if is_open {
            if was_awaited {
                // Nobody could make progress meanwhile.
                self.silence.on_progress(now);
            }
            self.uplink = Uplink::Open;
            self.resume_at = if was_awaited { now } else { self.resume_at };
        } else if !was_awaited {
            self.uplink = Uplink::Closed;
        }
    }

    /// Whether a slice could go as soon as the server's uplink is open.
    pub(crate) const fn awaits_uplink(&self) -> bool {
        matches!(self.uplink, Uplink::Awaited)
    }

    /// The rate at which slices go, in bits per second; `None` while no rate is known.
    pub(crate) fn pace_bps(&self, path: &PathState) -> Option<u64> {
        let rate = path.pacing.rate(&self.queue(path)).or(path.bottleneck.rate())?;
        Some(rate.min(self.max_rate()).bps())
    }

    /// The rate at which it would send: the pace, or what is guessed before it.
    pub(crate) fn first_bps(&self, path: &PathState) -> u64 {
        path.pacing.asks(&self.queue(path)).min(self.max_rate()).bps()
    }

    /// What the application allows, and the receiver's program takes.
    pub(super) fn max_rate(&self) -> Rate {
        self.limit.rate().min(self.reader.rate())
    }

    /// Whether as much is in flight as may wait for a program that does not read. Not while it is probed
    /// whether it does.
    pub(super) fn is_reader_full(&self, path: &PathState, ledger: &Ledger) -> bool {
        let rate = path.bottleneck.rate().unwrap_or(Rate::ZERO);
        let delay = path.rtt_span + window::ACK_DELAY;
        let in_flight = f64::from(ledger.in_flight()) * path.packet;
        let is_full = in_flight >= self.reader.max_in_flight(rate * delay, path.packet);
        is_full && !self.silence.is_probing()
    }

    pub(super) fn queue(&self, path: &PathState) -> Queue {
        let packet = path.last_bytes.max(MIN_PACKET);
        let (rtt, late) = (path.rtt_span, self.lateness.get());
        Queue::new(&path.bottleneck, rtt, packet, path.trains.is_running(), late)
    }

    /// Bytes of a train that may exceed the limit; zero where the limit is below the initial rate.
    fn train_over_limit(&self, path: &PathState) -> Bytes {
        let is_train = path.trains.is_running() && path.bottleneck.rate().is_none();
        if is_train && self.limit.rate() > blind::LATER_RATE {
            path.trains.bytes()
        } else {
            Bytes::ZERO
        }
    }

    pub(super) fn tail_gap(&self, path: &PathState) -> Span {
        let queue = self.queue(path);
        path.pacing.rate(&queue).map_or(Span::ZERO, |rate| queue.packet / (rate * TAIL_RATE))
    }
}

/// When the next slice of the tail may be sent; `None` if now. Without a measured rate the tail is not
/// slowed.
fn tail_at(path: &PathState, now: Instant, queue: &Queue) -> Option<Instant> {
    path.pacing.rate(queue)?;
    Some(path.next_tail).filter(|&next| next > now)
}
