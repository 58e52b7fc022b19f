//! Sends the chunks of blocks: a scheduler of slices, which asks the path (`docs/SENDER.md`).
//!
//! [`choice`](super::choice) selects the next slice; a [`Pacer`] says when it may go; and
//! [`silence`](super::silence) says when all in flight is given up.
//!
//! Blocks come from `outgoing`, which announces them and receives their progress. The sender connects the
//! parts. It passes the fates of datagrams and the reported arrival times to the [`Controller`] of the path
//! that they took. The caller hands in the path to send on. The invariant: a slice is returned only if it may
//! be sent now.

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "numbers of a test")]
mod tests;
mod told;
mod wanted;

use core::time::Duration;

use haulier_control::{ACK_DELAY, Asking, Bytes, Controller, FULL_PACKET, Pacer, Rate, Span};

use super::choice::{Choice, Chosen, Conditions};
use super::chunks::{Chunks, Cutting};
use super::config::{SenderConfig, SenderStats};
use super::silence::Silence;
use super::tuning::window;
use crate::Instant;
use crate::time::earliest;
use crate::transit::{Acked, ArrivalsFrame, ChunkAt, Datagram, Fate, Ledger, Symbol};

/// Sends the chunks of blocks.
#[derive(Debug)]
pub(crate) struct Sender {
    config: SenderConfig,
    chunks: Chunks,
    pacer: Pacer,
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
    pub(crate) fn new(now: Instant, config: SenderConfig, path: &mut Controller) -> Self {
        let SenderConfig { slice_room: room, max_slice, has_repair, .. } = config;
        let mut sender = Self {
            chunks: Chunks::new(
                Cutting { room, is_fine: false, max_slice, has_repair },
                config.credit,
            ),
            pacer: Pacer::new(config.max_rate_bps, config.receive_buffer),
            silence: Silence::new(now, Duration::from_millis(config.idle_timeout_ms.into())),
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
    pub(crate) fn open_at_most(&self, path: &Controller) -> usize {
        self.conditions(path).window
    }

    /// The sender is called, perhaps late.
    fn on_call(&mut self, path: &mut Controller, now: Instant) {
        self.now = now;
        self.silence.on_call(now);
        self.pacer.on_call(path, now, self.config.urgency);
    }

    /// Whether to ask for a slice now, whose frame may have `room` bytes. To be asked whenever something may
    /// be sent: if nothing was due when the caller called, no later call is late.
    pub(crate) fn is_slice_due(
        &mut self,
        path: &mut Controller,
        now: Instant,
        room: usize,
    ) -> bool {
        self.on_call(path, now);
        let choice = self.choose_and_note(path);
        self.pacer.set_due(now, choice.is_some());
        choice.is_some_and(|choice| self.chunks.frame_bytes(choice) <= room)
            && now >= self.pacer.resume_at()
    }

    /// The slice to send now, if its frame fits in `room` bytes. The datagram with it must be reported by
    /// [`on_sent`](Self::on_sent). `is_next` if another slice was composed just before, and waits to be sent:
    /// then nothing is encoded, and there is a slice as soon as that is on its way.
    pub(crate) fn poll_slice(
        &mut self,
        path: &mut Controller,
        now: Instant,
        ledger: &Ledger,
        (room, is_next): (usize, bool),
    ) -> Option<Chosen<'_>> {
        self.on_call(path, now);
        self.note_in_flight(path, ledger);
        path.follow();
        let choice = self.choose_and_note(path);
        self.pacer.set_due(now, choice.is_some());
        let choice = choice.filter(|_| now >= self.pacer.resume_at())?;
        if is_next && self.chunks.has_to_encode(choice) {
            return None;
        }
        if choice.is_opening() {
            self.cut_for_game(path);
        }
        let frame_bytes = self.chunks.frame_bytes(choice);
        if frame_bytes > room {
            return None;
        }
        let asking = Asking { is_tail: choice.is_tail, is_probe: self.silence.is_probing() };
        if !self.pacer.admits(path, now, asking) {
            return None;
        }
        let chosen = self.chunks.take((choice, frame_bytes), ledger, ledger.next_number())?;
        self.stats.resent += u64::from(chosen.is_repeated);
        Some(chosen)
    }

    /// The next slice to send, if any.
    fn choose(&self, path: &Controller) -> Option<Choice> {
        if !self.silence.may_send() {
            return None;
        }
        let is_probe = self.silence.is_probe_due();
        let next = if is_probe { None } else { self.chunks.next_of_run() };
        next.or_else(|| self.chunks.choose(is_probe, &self.conditions(path)))
    }

    /// Chooses the next slice, and the next search goes on where this one ended.
    #[inline]
    fn choose_and_note(&mut self, path: &Controller) -> Option<Choice> {
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

    fn conditions<'a>(&self, path: &'a Controller) -> Conditions<'a> {
        let (rtt, rate) = (path.rtt_span(), path.link_rate());
        Conditions { loss: path.loss(), rtt, rate, window: self.window(rtt, rate) }
    }

    /// The number of chunks that may be open: [`window::MIN_CHUNKS`], and those that the path carries in
    /// [`window::ROUND_TRIPS`] round trips, at most `max_open`.
    fn window(&self, rtt: Span, rate: Option<Rate>) -> usize {
        let rate = rate.map_or(Rate::ZERO, |rate| rate.min(self.pacer.max_rate()));
        let bytes = window::ROUND_TRIPS * (rate * (rtt + ACK_DELAY));
        window::MIN_CHUNKS
            .saturating_add(bytes.in_units_of(window::CHUNK))
            .min(self.config.max_open)
    }

    /// When something else may go that shares the rate with slices, as far as is known.
    pub(crate) const fn gate_at(&self) -> Instant {
        self.pacer.resume_at()
    }

    /// Whether it may go now.
    pub(crate) fn is_gate_open(&mut self, path: &mut Controller, now: Instant) -> bool {
        self.on_call(path, now);
        self.pacer.admits_other(path, now, self.silence.is_probing())
    }

    /// No slice may be sent, for a reason outside this sender: a later call does not count as late.
    pub(crate) const fn on_blocked(&mut self) {
        self.pacer.on_blocked();
    }

    /// A datagram was sent, with or without a slice; `bytes` includes UDP and IP.
    pub(crate) fn on_sent(
        &mut self,
        path: &mut Controller,
        now: Instant,
        number: u64,
        bytes: usize,
        slice: Option<(ChunkAt, Symbol)>,
    ) {
        (self.now, self.next_number) = (now, number + 1);
        self.pacer.on_sent(path, now, number, Bytes::from(bytes), slice.is_some());
        let Some((at, symbol)) = slice else { return };
        self.silence.on_slice_sent(now, path.drains_at(now));
        self.stats.slices += 1;
        self.stats.repairs += u64::from(symbol.index().1);
        self.chunks.on_sent(at, symbol);
    }

    /// A datagram was acknowledged for the first time.
    pub(crate) fn on_acked(&mut self, path: &mut Controller, now: Instant, acked: &Acked) {
        if acked.datagram.number < self.config.first_number {
            return;
        }
        self.chunks.rescan_margins();
        let Datagram { number, path: on, slice, .. } = acked.datagram;
        if path.is_of(on, number) {
            path.on_acked(number, Bytes(acked.datagram.wire_bytes()), slice.is_some());
            if acked.before != Fate::InFlight {
                path.on_spurious(number, acked.before == Fate::GivenUp);
            }
        }
        let Some((at, symbol)) = slice else { return };
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
    pub(crate) fn on_congestion_mark(&self, path: &mut Controller, number: u64) {
        path.on_mark(number);
    }

    /// All datagrams of an ack were passed to [`on_acked`](Self::on_acked). Datagrams of the path overtake
    /// others that were sent up to `reordering` earlier.
    pub(crate) fn end_ack(
        &mut self,
        path: &mut Controller,
        now: Instant,
        ledger: &Ledger,
        reordering: Duration,
    ) {
        self.now = now;
        self.pacer.on_input(now);
        if !core::mem::take(&mut self.has_progress) {
            return;
        }
        self.silence.on_feedback(now);
        self.note_in_flight(path, ledger);
        path.end_ack(now, ledger.largest_acked(), reordering);
    }

    /// The peer reported when datagrams arrived. Called after the ack of these datagrams.
    pub(crate) fn on_arrivals(
        &mut self,
        path: &mut Controller,
        frame: &ArrivalsFrame,
        ledger: &Ledger,
    ) {
        let arrivals = frame.arrivals(ledger.next_number()).into_iter().flatten();
        if path.on_arrivals(self.now, arrivals, ledger) {
            self.pacer.resume(self.now);
        }
        self.chunks.rescan_margins();
    }

    /// Acts on a deadline that has passed.
    pub(crate) fn handle_timeout(
        &mut self,
        path: &mut Controller,
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
            path.on_given_up(ledger.give_up(path.from()));
            self.chunks.on_given_up();
            self.silence.on_timeout(now);
            self.chunks.rescan_margins();
            self.note_in_flight(path, ledger);
        }
    }

    /// The fate of the next datagram is settled.
    pub(crate) fn on_settled(&mut self, path: &mut Controller, datagram: &Datagram) {
        if datagram.number < self.config.first_number {
            return;
        }
        if datagram.fate != Fate::Acked {
            self.chunks.rescan_margins();
            self.chunks.on_landed(datagram);
        }
        if path.is_of(datagram.path, datagram.number) {
            path.on_settled(datagram.number, datagram.fate != Fate::Acked);
        }
    }

    /// The number of datagrams in flight may have changed: fates were settled, for example.
    pub(crate) fn note_in_flight(&self, path: &mut Controller, ledger: &Ledger) {
        let later = self.pacer.lateness() + self.silence.later();
        path.set_in_flight(ledger.in_flight(), ledger.slices_in_flight(), later);
        path.set_total(self.chunks.total());
    }

    /// The rate at which slices go, in bits per second; `None` while no rate is known.
    pub(crate) fn pace_bps(&self, path: &Controller) -> Option<u64> {
        self.pacer.pace(path).map(Rate::bps)
    }

    /// The rate at which it would send: the pace, or what is guessed before it.
    pub(crate) fn first_bps(&self, path: &Controller) -> u64 {
        path.asks().min(self.pacer.max_rate()).bps()
    }

    /// Whether the peer has not answered since a timeout: slices are probes, and limited.
    pub(crate) const fn is_probing(&self) -> bool {
        self.silence.is_probing()
    }

    /// The next deadline. That of the next slice is one only if its frame fits in `room` bytes.
    pub(crate) fn poll_timeout(&self, path: &Controller, room: usize) -> Option<Instant> {
        let fits = |choice: &Choice| self.chunks.frame_bytes(*choice) <= room;
        let slice = self.choose(path).filter(fits).map(|_| self.pacer.resume_at());
        earliest(slice, earliest(self.timeout_at(path), self.fails_at()))
    }

    /// Whether no chunk made progress for too long.
    pub(crate) const fn has_failed(&self) -> bool {
        self.silence.has_failed()
    }

    /// When everything in flight is given up.
    pub(crate) fn timeout_at(&self, path: &Controller) -> Option<Instant> {
        self.silence.timeout_at(path.rtt()).filter(|_| self.chunks.has_open())
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
