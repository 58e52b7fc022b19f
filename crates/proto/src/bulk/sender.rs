//! Sends the chunks of blocks: a scheduler of slices, which asks the path (`docs/SENDER.md`).
//!
//! [`choice`](super::choice) selects the next slice; `gate` says when it may go, and asks the
//! [`pacing`](super::pacing) of the path; and [`silence`](super::silence) says when all in flight is given
//! up.
//!
//! Blocks come from `outgoing`, which announces them and hears how far they are. The sender connects the
//! parts. It passes the fates of datagrams and the reported arrival times to what belongs to the path that
//! they went ([`PathState`]): what is known of the bottleneck, the loss estimate and the pacing, which decide
//! about the next slice. The caller hands in the path to send on. The invariant: a slice is
//! returned only if it may be sent now.

mod gate;
#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "numbers of a test")]
mod tests;
mod told;
mod wanted;

use core::time::Duration;

use super::choice::{Choice, Chosen, Conditions};
use super::chunks::{Chunks, Cutting};
use super::config::{SenderConfig, SenderStats};
use super::path::PathState;
use super::silence::Silence;
use super::tuning::near::{NEAR, is_fast};
use super::tuning::rate_finder::{TRAIN_ABOVE, TRAINLESS_AFTER};
use super::tuning::{FULL_PACKET, flow, window};
use super::units::{Bytes, Rate, Span};
use crate::Instant;
use crate::time::earliest;
use crate::transit::{Acked, ArrivalsFrame, ChunkAt, Datagram, Fate, Ledger, Symbol};
use crate::urgency::Urgency;
use gate::{Asking, Gate};

/// Sends the chunks of blocks.
#[derive(Debug)]
pub(crate) struct Sender {
    config: SenderConfig,
    chunks: Chunks,
    gate: Gate,
    silence: Silence,
    /// The ack being handled acknowledges a slice.
    has_progress: bool,
    /// When it was last called.
    now: Instant,
    /// The number after the last datagram sent.
    next_number: u64,
    /// A full datagram by the cut of the newest chunk, UDP and IP included.
    packet: Bytes,
    stats: SenderStats,
}

impl Sender {
    /// A sender that begins on this path.
    pub(crate) fn new(now: Instant, config: SenderConfig, path: &mut PathState) -> Self {
        let SenderConfig { slice_room: room, max_slice, has_repair, .. } = config;
        let mut sender = Self {
            chunks: Chunks::new(
                Cutting { room, is_fine: false, max_slice, has_repair },
                config.credit,
            ),
            gate: Gate::new(config.max_rate_bps, config.receive_buffer),
            silence: Silence::new(now, config.idle_timeout),
            has_progress: false,
            now,
            next_number: config.first_number,
            packet: FULL_PACKET,
            stats: SenderStats::default(),
            config,
        };
        sender.set_slice_room(path, room);
        sender
    }

    pub(crate) const fn stats(&self) -> SenderStats {
        self.stats
    }

    /// Chunks that may be open.
    #[cfg(test)]
    pub(crate) fn open_at_most(&self, path: &PathState) -> usize {
        self.conditions(path).window
    }

    /// The sender is called, perhaps late.
    fn on_call(&mut self, path: &mut PathState, now: Instant) {
        self.now = now;
        self.silence.on_call(now);
        self.gate.on_call(now);
        let is_near = path.rtt_span < NEAR;
        path.bottleneck.set_near(is_near);
        if is_near {
            path.trains.lengthen();
        }
        let is_alone = self.config.urgency == Urgency::LoadScreen;
        path.bottleneck.try_more(is_alone && self.gate.is_called_by_frame());
    }

    /// Whether to ask for a slice now, whose frame may have `room` bytes. To be asked whenever something may
    /// be sent: if nothing was due when the caller called, no later call is late.
    pub(crate) fn is_slice_due(&mut self, path: &mut PathState, now: Instant, room: usize) -> bool {
        self.on_call(path, now);
        let choice = self.choose_and_note(path);
        self.gate.set_due(now, choice.is_some());
        choice.is_some_and(|choice| self.chunks.frame_bytes(choice) <= room)
            && now >= self.gate.resume_at()
    }

    /// The slice to send now, if its frame fits in `room` bytes. The datagram with it must be reported by
    /// [`on_sent`](Self::on_sent).
    pub(crate) fn poll_slice(
        &mut self,
        path: &mut PathState,
        now: Instant,
        ledger: &Ledger,
        room: usize,
    ) -> Option<Chosen<'_>> {
        self.on_call(path, now);
        self.note_in_flight(path, ledger);
        path.pacing.follow(self.config.urgency, false, path.bottleneck.rate());
        let choice = self.choose_and_note(path);
        self.gate.set_due(now, choice.is_some());
        let choice = choice.filter(|_| now >= self.gate.resume_at())?;
        if choice.is_opening() {
            self.cut_for_game(path);
        }
        let frame_bytes = self.chunks.frame_bytes(choice);
        if frame_bytes > room {
            return None;
        }
        let asking = Asking { is_tail: choice.is_tail, is_probe: self.silence.is_probing() };
        if !self.gate.admits(path, now, ledger, asking) {
            return None;
        }
        let chosen = self.chunks.take((choice, frame_bytes), ledger, ledger.next_number())?;
        self.stats.resent += u64::from(chosen.is_repeated);
        Some(chosen)
    }

    /// The next slice to send, if any.
    fn choose(&self, path: &PathState) -> Option<Choice> {
        if !self.silence.may_send() {
            return None;
        }
        let is_probe = self.silence.is_probe_due();
        let next = if is_probe { None } else { self.chunks.next_of_run() };
        next.or_else(|| self.chunks.choose(is_probe, &self.conditions(path)))
    }

    /// The same, and the next search goes on where this one ended.
    #[inline]
    fn choose_and_note(&mut self, path: &PathState) -> Option<Choice> {
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

    fn conditions<'a>(&self, path: &'a PathState) -> Conditions<'a> {
        let (rtt, rate) = (path.rtt_span, path.bottleneck.rate());
        Conditions { loss: &path.loss, rtt, rate, window: self.window(rtt, rate) }
    }

    /// Chunks that may be open: what is on the way in some round trips, and some.
    fn window(&self, rtt: Span, rate: Option<Rate>) -> usize {
        let rate = rate.map_or(Rate::ZERO, |rate| rate.min(self.gate.max_rate()));
        let bytes = window::ROUND_TRIPS * (rate * (rtt + window::ACK_DELAY));
        window::MIN_CHUNKS
            .saturating_add(bytes.in_units_of(window::CHUNK))
            .min(self.config.max_open)
    }

    /// When something else may go that shares the rate with slices, as far as is known.
    pub(crate) const fn gate_at(&self) -> Instant {
        self.gate.resume_at()
    }

    /// Whether it may go now.
    pub(crate) fn is_gate_open(&mut self, path: &mut PathState, now: Instant) -> bool {
        self.on_call(path, now);
        self.gate.admits_other(path, now, self.silence.is_probing())
    }

    /// No slice may be sent, for a reason outside this sender: a later call does not count as late.
    pub(crate) const fn on_blocked(&mut self) {
        self.gate.on_blocked();
    }

    /// A datagram was sent, with or without a slice; `bytes` includes UDP and IP.
    pub(crate) fn on_sent(
        &mut self,
        path: &mut PathState,
        now: Instant,
        number: u64,
        bytes: usize,
        slice: Option<(ChunkAt, Symbol)>,
    ) {
        (self.now, self.next_number) = (now, number + 1);
        let bytes = Bytes::from(bytes);
        let link = self.gate.link(path);
        self.gate.on_sent(now, bytes);
        path.delivered.on_sent(now, number);
        path.pacing.on_sent(now, number, bytes, &link);
        path.last_bytes = bytes;
        let Some((at, symbol)) = slice else { return };
        self.silence.on_slice_sent(now, path.drains_at(now));
        path.pacing.on_slice_sent(now, bytes, &link);
        if let Some(recalled) = &mut path.recalled {
            recalled.on_slice_sent(now, bytes);
        }
        path.trains.on_slice_sent();
        self.stats.slices += 1;
        self.stats.repairs += u64::from(symbol.index().1);
        self.chunks.on_sent(at, symbol);
    }

    /// A datagram was acknowledged for the first time.
    pub(crate) fn on_acked(&mut self, path: &mut PathState, now: Instant, acked: &Acked) {
        if acked.datagram.number < self.config.first_number {
            return;
        }
        self.chunks.rescan_margins();
        if path.is_of(&acked.datagram) {
            path.on_acked(acked);
        }
        let Some((at, symbol)) = acked.datagram.slice else { return };
        // Only slices count: acknowledged game packets would hide that a chunk makes no progress.
        self.has_progress = true;
        if acked.before == Fate::InFlight {
            self.chunks.on_landed(&acked.datagram);
        }
        // Once enough slices are acknowledged, only that the chunk is done is progress. A peer that
        // acknowledges probes and never says so must not keep the transfer alive.
        if self.chunks.on_received(at, acked.datagram.number, symbol) {
            self.silence.on_progress(now);
        }
    }

    /// The peer reported a datagram, no older than `number`, that met a queue: as if a queue stood.
    pub(crate) fn on_congestion_mark(&self, path: &mut PathState, number: u64) {
        path.pacing.on_congestion_mark(number);
        path.trains.stop();
    }

    /// All datagrams of an ack were passed to [`on_acked`](Self::on_acked). Datagrams of the path overtake
    /// others that were sent so much earlier.
    pub(crate) fn end_ack(
        &mut self,
        path: &mut PathState,
        now: Instant,
        ledger: &Ledger,
        reordering: Duration,
    ) {
        self.now = now;
        self.gate.on_input(now);
        if !core::mem::take(&mut self.has_progress) {
            return;
        }
        self.silence.on_feedback(now);
        path.heard_at = now;
        self.note_in_flight(path, ledger);
        if let Some(largest) = ledger.largest_acked() {
            path.delivered.end_ack(now, largest);
        }
        path.disorder = reordering.into();
        path.pacing.set_disorder(path.disorder);
        let rtt = path.rtt_span;
        path.recalled = path.recalled.filter(|recalled| !recalled.is_over(rtt));
        if !path.bottleneck.finder().has_train(path.trains.packets() / 2) {
            path.trains.try_again();
        }
        let is_alone = self.config.urgency == Urgency::LoadScreen;
        if is_alone && path.without_rate > TRAINLESS_AFTER && !path.trains.is_running() {
            path.bottleneck.do_without_trains();
        }
    }

    /// The peer reported when datagrams arrived. Called after the ack of these datagrams.
    pub(crate) fn on_arrivals(
        &mut self,
        path: &mut PathState,
        frame: &ArrivalsFrame,
        ledger: &Ledger,
    ) {
        let is_disordered = path.disorder > 0.75 * path.rtt_span;
        let is_long = path.acked > if is_disordered { flow::LONG / 4 } else { flow::LONG };
        let PathState { bottleneck, pacing, .. } = path;
        let known = bottleneck.rate();
        let count = bottleneck.on_arrivals(frame, ledger, &path.loss, self.now, is_long);
        let found = bottleneck.look_upward(count, ledger.next_number());
        let is_faster = |rate: &Rate| known.is_none_or(|known| *rate > TRAIN_ABOVE * known);
        if let Some(rate) = bottleneck.rate().filter(is_faster) {
            let has_short_ticks = bottleneck.is_near() && is_fast(rate, path.packet);
            let is_beside_game = self.config.urgency == Urgency::DuringPlay;
            if has_short_ticks || is_beside_game || known.is_some() && pacing.is_start() {
                // What waits for the queue to drain at a lower rate, or for a guess's tick, has waited.
                self.gate.resume(self.now);
            }
        }
        pacing.follow(self.config.urgency, is_long, bottleneck.rate());
        if let Some(rate) = bottleneck.rate().filter(|_| found.is_none() && bottleneck.is_clear()) {
            pacing.learn(rate);
        }
        for sample in bottleneck.newest(count) {
            pacing.on_arrival(self.now, sample);
        }
        if let Some(queue) = bottleneck.queueing_delay().filter(|_| bottleneck.is_near())
            && let Some(newest) = bottleneck.newest(1).next()
        {
            pacing.hold(newest.sent + queue);
        }
        if let Some(longer) = pacing.poll_rise() {
            bottleneck.on_longer(longer);
        }
        self.chunks.rescan_margins();
    }

    /// Acts on a deadline that has passed.
    pub(crate) fn handle_timeout(
        &mut self,
        path: &mut PathState,
        now: Instant,
        ledger: &mut Ledger,
    ) {
        self.on_call(path, now);
        if self.fails_at().is_some_and(|at| at <= now) {
            self.silence.on_failed();
        }
        if self.timeout_at(path).is_some_and(|at| at <= now) {
            if self.awaits_uplink() && ledger.in_flight() == 0 {
                // All was answered, and it is not the peer that is silent.
                return self.silence.begin(now);
            }
            path.on_given_up(ledger.give_up(path.from));
            self.chunks.on_given_up();
            self.silence.on_timeout(now);
            self.chunks.rescan_margins();
            self.note_in_flight(path, ledger);
        }
    }

    /// The fate of the next datagram is settled.
    pub(crate) fn on_settled(&mut self, path: &mut PathState, datagram: &Datagram) {
        if datagram.number < self.config.first_number {
            return;
        }
        if datagram.fate != Fate::Acked {
            self.chunks.rescan_margins();
            self.chunks.on_landed(datagram);
        }
        if path.is_of(datagram) {
            path.on_settled(datagram);
        }
    }

    /// The number of datagrams in flight may have changed: fates were settled, for example.
    pub(crate) fn note_in_flight(&self, path: &mut PathState, ledger: &Ledger) {
        let later = self.gate.lateness() + self.silence.later();
        let in_flight = (ledger.in_flight(), ledger.slices_in_flight());
        path.pacing.set_in_flight(in_flight, path.rtt_span, later);
    }

    /// The rate at which slices go, in bits per second; `None` while no rate is known.
    pub(crate) fn pace_bps(&self, path: &PathState) -> Option<u64> {
        self.gate.pace(path).map(Rate::bps)
    }

    /// The rate at which it would send: the pace, or what is guessed before it.
    pub(crate) fn first_bps(&self, path: &PathState) -> u64 {
        path.pacing.asks().min(self.gate.max_rate()).bps()
    }

    /// Whether the peer has not answered since a timeout: slices are probes, and limited.
    pub(crate) const fn is_probing(&self) -> bool {
        self.silence.is_probing()
    }

    /// The next deadline. That of the next slice is one only if its frame fits in `room` bytes.
    pub(crate) fn poll_timeout(&self, path: &PathState, room: usize) -> Option<Instant> {
        let fits = |choice: &Choice| self.chunks.frame_bytes(*choice) <= room;
        let slice = self.choose(path).filter(fits).map(|_| self.gate.resume_at());
        earliest(slice, earliest(self.timeout_at(path), self.fails_at()))
    }

    /// Whether no chunk made progress for too long.
    pub(crate) const fn has_failed(&self) -> bool {
        self.silence.has_failed()
    }

    /// When everything in flight is given up.
    pub(crate) fn timeout_at(&self, path: &PathState) -> Option<Instant> {
        self.silence.timeout_at(path.rtt).filter(|_| self.chunks.has_open())
    }

    pub(crate) fn check_invariants(&self) {
        self.chunks.check_invariants();
    }

    /// Memory held besides the bytes of the blocks, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.chunks.memory_bytes()
    }

    /// When the transfer fails, unless a chunk makes progress before. Not while the receiver, this end's own
    /// program or its uplink does not let it go on.
    fn fails_at(&self) -> Option<Instant> {
        let is_held_back = self.chunks.is_held_back() || self.awaits_uplink();
        if self.chunks.is_empty() || is_held_back || self.chunks.awaits_program() {
            return None;
        }
        self.silence.fails_at(self.config.give_up_after)
    }
}
