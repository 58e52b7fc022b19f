//! When the next slice may be sent, and from what is chosen then.
//!
//! Every part that can hold a slice back is asked, and the latest time counts. The invariant: nothing here
//! counts a slice as sent.

use super::super::choice::{Choice, Path};
use super::super::pacing::Queue;
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
    pub(super) fn on_call(&mut self, now: Instant) {
        self.now = now;
        self.silence.on_call(now);
        self.lateness.on_call(now);
        let is_near = self.silence.rtt_span() < NEAR;
        self.bottleneck.set_near(is_near);
        if is_near {
            self.trains.lengthen();
        }
        let is_alone = self.config.urgency == Urgency::LoadScreen;
        self.bottleneck.try_more(is_alone && self.lateness.is_frame());
    }

    /// The next slice to send, if any.
    pub(super) fn choose(&self) -> Option<Choice> {
        if !self.silence.may_send() {
            return None;
        }
        let is_probe = self.silence.is_probe_due();
        let next = if is_probe { None } else { self.chunks.next_of_run() };
        next.or_else(|| self.chunks.choose(is_probe, &self.path()))
    }

    /// The same, and the next search goes on where this one ended.
    #[inline]
    pub(super) fn choose_and_note(&mut self) -> Option<Choice> {
        if !self.silence.may_send() {
            return None;
        }
        let is_probe = self.silence.is_probe_due();
        if let Some(next) = self.chunks.next_of_run().filter(|_| !is_probe) {
            return Some(next);
        }
        let loss = self.loss;
        let path = Path { loss: &loss, ..self.path() };
        self.chunks.choose_and_note(is_probe, &path)
    }

    pub(super) fn path(&self) -> Path<'_> {
        let (rtt, rate) = (self.silence.rtt_span(), self.bottleneck.rate());
        Path { loss: &self.loss, rtt, rate, window: self.window(rtt, rate) }
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
    pub(super) fn opens_at(&self, now: Instant, is_tail: bool) -> Option<Instant> {
        let queue = self.queue();
        let late = queue.lateness_at(self.limit.rate());
        self.limit
            .opens_at(now, self.train_over_limit(), late)
            .or_else(|| self.reader.opens_at(now))
            .or_else(|| self.recalled.and_then(|recalled| recalled.opens_at(now, queue.rtt, late)))
            .or_else(|| self.paced_at(now, &queue))
            .or_else(|| self.tail_at(now, &queue).filter(|_| is_tail))
    }

    /// When the law of this connection alone lets it be sent; `None` if now, or if that law rests.
    fn paced_at(&self, now: Instant, queue: &Queue) -> Option<Instant> {
        let is_paced = !self.is_paced_together || self.pacing.is_beside_game();
        if !is_paced {
            return None;
        }
        // After a timeout what is in flight is given up: slices are probes then, and the silence limits them.
        if self.pacing.is_full() && !self.silence.is_probing() {
            return Some(now + TICK);
        }
        self.pacing.opens_at(now, queue)
    }

    /// The number of datagrams in flight may have changed.
    pub(super) fn note_in_flight(&mut self, ledger: &Ledger) {
        let later = self.lateness.get() + self.silence.later();
        let in_flight = (ledger.in_flight(), ledger.slices_in_flight());
        self.pacing.set_in_flight(in_flight, self.silence.rtt_span(), later);
    }

    /// Sets whether the server paces the connections to this address together. Then the law of this one
    /// rests, but beside a game.
    pub(crate) const fn set_paced_together(&mut self, is_paced: bool) {
        self.is_paced_together = is_paced;
    }

    /// The least queueing delay that the peer's last report shows, in seconds; `None` before one.
    pub(crate) fn queueing_seconds(&self) -> Option<f64> {
        Some(self.bottleneck.queueing_delay()? / Span::from_millis(1_000))
    }

    /// Whether it is this connection's turn: on the server's uplink, and of those to its address. If it is
    /// not, it is asked when it is, and no call before that is late.
    pub(super) fn has_uplink(&mut self, now: Instant) -> bool {
        if matches!(self.uplink, Uplink::Open) {
            return true;
        }
        self.uplink = Uplink::Awaited;
        self.resume_at = now + UPLINK_TIMEOUT;
        self.lateness.set_due(None);
        self.pacing.on_held_back();
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
    pub(crate) fn pace_bps(&self) -> Option<u64> {
        let rate = self.pacing.rate(&self.queue()).or(self.bottleneck.rate())?;
        Some(rate.min(self.max_rate()).bps())
    }

    /// The rate at which it would send: the pace, or what is guessed before it.
    pub(crate) fn first_bps(&self) -> u64 {
        self.pacing.asks(&self.queue()).min(self.max_rate()).bps()
    }

    /// The rate of the bottleneck, in bits per second; `None` while it is not known.
    pub(crate) fn link_bps(&self) -> Option<u64> {
        self.bottleneck.rate().map(Rate::bps)
    }

    /// What the application allows, and the receiver's program takes.
    pub(super) fn max_rate(&self) -> Rate {
        self.limit.rate().min(self.reader.rate())
    }

    /// Whether as much is in flight as may wait for a program that does not read. Not while it is probed
    /// whether it does.
    pub(super) fn is_reader_full(&self, ledger: &Ledger) -> bool {
        let rate = self.bottleneck.rate().unwrap_or(Rate::ZERO);
        let delay = self.silence.rtt_span() + window::ACK_DELAY;
        let in_flight = f64::from(ledger.in_flight()) * self.packet;
        let is_full = in_flight >= self.reader.max_in_flight(rate * delay, self.packet);
        is_full && !self.silence.is_probing()
    }

    pub(super) fn queue(&self) -> Queue {
        let packet = self.last_bytes.max(MIN_PACKET);
        let (rtt, late) = (self.silence.rtt_span(), self.lateness.get());
        Queue::new(&self.bottleneck, rtt, packet, self.trains.is_running(), late)
    }

    /// Bytes of a train that may exceed the limit; zero where the limit is below the initial rate.
    fn train_over_limit(&self) -> Bytes {
        let is_train = self.trains.is_running() && self.bottleneck.rate().is_none();
        if is_train && self.limit.rate() > blind::LATER_RATE {
            self.trains.bytes()
        } else {
            Bytes::ZERO
        }
    }

    /// When the next slice of the tail may be sent; `None` if now. Without a measured rate the tail is not
    /// slowed.
    fn tail_at(&self, now: Instant, queue: &Queue) -> Option<Instant> {
        self.pacing.rate(queue)?;
        Some(self.next_tail).filter(|&next| next > now)
    }

    pub(super) fn tail_gap(&self) -> Span {
        let queue = self.queue();
        self.pacing.rate(&queue).map_or(Span::ZERO, |rate| queue.packet / (rate * TAIL_RATE))
    }
}
