//! Sends the chunks of blocks: [`choice`](super::choice) selects the next slice, and
//! [`pacing`](super::pacing) decides when it is sent (`docs/SENDER.md`).
//!
//! Blocks come from `outgoing`, which announces them and hears how far they are. The sender connects the
//! parts. It passes the fates of datagrams and the reported arrival times to what belongs to the path that
//! they went ([`PathState`]): the model of the bottleneck, the loss estimate and the pacing, which decide
//! about the next slice. The caller hands in the path to send on. The invariant: a slice is
//! returned only if it may be sent now.

mod fates;
mod timing;
mod told;
mod wanted;

use core::time::Duration;

use super::choice::{Choice, Chosen};
use super::chunks::{Chunks, Cutting};
use super::config::{SenderConfig, SenderStats};
use super::lateness::Lateness;
use super::limit::Limit;
use super::path::PathState;
use super::reader::Reader;
use super::silence::Silence;
use super::tuning::near::is_fast;
use super::tuning::rate_finder::{TRAIN_ABOVE, TRAINLESS_AFTER};
use super::tuning::{TICK, flow};
use super::units::{Bytes, Rate, Span};
use crate::Instant;
use crate::time::earliest;
use crate::transit::{Acked, ArrivalsFrame, ChunkAt, Fate, Ledger, Modelled, Symbol};
use crate::urgency::Urgency;

/// What a server's connections share, and take in turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Uplink {
    Open,
    Closed,
    /// A slice could go as soon as it is open.
    Awaited,
}

/// Sends the chunks of blocks.
#[derive(Debug)]
pub(crate) struct Sender {
    config: SenderConfig,
    chunks: Chunks,
    limit: Limit,
    lateness: Lateness,
    silence: Silence,
    /// No slice is sent before this: the end of the tick, or of the gap between two slices.
    resume_at: Instant,
    /// The ack being handled acknowledges a slice.
    has_progress: bool,
    /// There was feedback since the datagrams in flight were replayed, which is not done before `replay_at`.
    is_stale: bool,
    replay_at: Instant,
    /// Slices in flight may not be expected to arrive.
    has_unexpected: bool,
    /// Datagrams acknowledged since fates were settled.
    news: u32,
    reader: Reader,
    uplink: Uplink,
    /// The server paces the connections to this address together.
    is_paced_together: bool,
    has_failed: bool,
    /// When it was last called.
    now: Instant,
    /// The number after the last datagram sent.
    next_number: u64,
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
            limit: Limit::new(config.max_rate_bps),
            lateness: Lateness::new(),
            silence: Silence::new(now, config.idle_timeout),
            resume_at: Instant::ZERO,
            has_progress: false,
            is_stale: false,
            replay_at: Instant::ZERO,
            has_unexpected: false,
            news: 0,
            reader: Reader::new(config.receive_buffer),
            uplink: Uplink::Open,
            is_paced_together: false,
            has_failed: false,
            now,
            next_number: config.first_number,
            stats: SenderStats::default(),
            config,
        };
        sender.set_slice_room(path, room);
        sender
    }

    pub(crate) const fn stats(&self) -> SenderStats {
        self.stats
    }

    /// Whether what is expected of the datagrams in flight is not up to date.
    #[cfg(test)]
    pub(crate) const fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Chunks that may be open.
    #[cfg(test)]
    pub(crate) fn open_at_most(&self, path: &PathState) -> usize {
        self.conditions(path).window
    }

    /// Whether to ask for a slice now, whose frame may have `room` bytes. To be asked whenever something may
    /// be sent: if nothing was due when the caller called, no later call is late.
    pub(crate) fn is_slice_due(&mut self, path: &mut PathState, now: Instant, room: usize) -> bool {
        self.on_call(path, now);
        let choice = self.choose_and_note(path);
        self.lateness.set_due(choice.map(|_| self.resume_at.max(now)));
        choice.is_some_and(|choice| self.chunks.frame_bytes(choice) <= room)
            && now >= self.resume_at
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
        self.lateness.set_due(choice.map(|_| self.resume_at.max(now)));
        let choice = choice.filter(|_| now >= self.resume_at)?;
        if choice.is_opening() {
            self.cut_for_game(path);
        }
        let frame_bytes = self.chunks.frame_bytes(choice);
        if frame_bytes > room {
            return None;
        }
        if self.is_reader_full(path, ledger) {
            // An ack makes room, or a timeout: no call before that is late.
            self.resume_at = now + TICK;
            self.lateness.set_due(None);
            return None;
        }
        if let Some(later) = self.opens_at(path, now, choice.is_tail) {
            self.resume_at = later;
            self.lateness.set_due(Some(later));
            return None;
        }
        if !self.has_uplink(path, now) {
            return None;
        }
        if choice.is_tail {
            let (now, late) = (Span::from(now), self.lateness.get());
            let paced_at = Span::from(path.next_tail).clamp(now - late, now);
            path.next_tail = (paced_at + self.tail_gap(path)).instant();
        }
        let chosen = self.chunks.take((choice, frame_bytes), ledger, ledger.next_number())?;
        self.stats.resent += u64::from(chosen.is_repeated);
        Some(chosen)
    }

    /// When something else may go that shares the rate with slices, as far as is known.
    pub(crate) const fn gate_at(&self) -> Instant {
        self.resume_at
    }

    /// Whether it may go now: the rate that the laws set, the application or the receiver's program allow is
    /// for all of it, and the lanes say what goes first.
    pub(crate) fn is_gate_open(&mut self, path: &mut PathState, now: Instant) -> bool {
        self.on_call(path, now);
        if now >= self.resume_at
            && let Some(later) = self.opens_at(path, now, false)
        {
            self.resume_at = later;
        }
        now >= self.resume_at && self.has_uplink(path, now)
    }

    /// No slice may be sent, for a reason outside this sender: a later call does not count as late.
    pub(crate) const fn on_blocked(&mut self) {
        self.lateness.set_due(None);
    }

    /// A datagram was sent, with or without a slice; `bytes` includes UDP and IP. Returns what its record
    /// says of the model.
    pub(crate) fn on_sent(
        &mut self,
        path: &mut PathState,
        now: Instant,
        number: u64,
        bytes: usize,
        slice: Option<(ChunkAt, Symbol)>,
    ) -> Modelled {
        (self.now, self.next_number) = (now, number + 1);
        let bytes = Bytes::from(bytes);
        let (backlog, passes) = path.bottleneck.on_sent(now, bytes);
        let queue = self.queue(path);
        self.limit.on_sent(now, bytes);
        self.reader.on_sent(now, bytes);
        path.delivered.on_sent(now, number);
        path.pacing.on_sent(now, number, bytes, &queue);
        path.last_bytes = bytes;
        let Some((at, symbol)) = slice else {
            return Modelled { backlog: backlog.0, is_expected: false };
        };
        if !passes && path.pacing.is_modelled() {
            // The model expects it to be dropped: the next one must wait for room.
            self.resume_at = now + path.bottleneck.rate().map_or(TICK, |rate| queue.tick_at(rate));
        }
        self.silence.on_slice_sent(now, path.bottleneck.idle_at());
        path.pacing.on_slice_sent(now, bytes, &queue, self.max_rate());
        let max_rate = self.max_rate();
        if let Some(recalled) = &mut path.recalled {
            recalled.on_slice_sent(now, bytes, queue.rtt, max_rate);
        }
        path.trains.on_slice_sent();
        self.stats.slices += 1;
        self.stats.repairs += u64::from(symbol.index().1);
        let is_expected = passes || number >= self.model_believed_below(path);
        self.has_unexpected |= !is_expected;
        self.chunks.on_sent(at, symbol, is_expected);
        Modelled { backlog: backlog.0, is_expected }
    }

    /// A datagram was acknowledged for the first time.
    pub(crate) fn on_acked(&mut self, path: &mut PathState, now: Instant, acked: &Acked) {
        if acked.datagram.number < self.config.first_number {
            return;
        }
        self.set_stale();
        self.news += 1;
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
        path.pacing.on_congestion_mark(self.now, number);
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
        self.lateness.on_input(now);
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
        if path.bottleneck.rate().is_none()
            && ledger.were_newest_acked(path.trains.packets(), path.from)
            && path.pacing.poll_train(now)
        {
            path.trains.restart();
        }
        let is_alone = self.config.urgency == Urgency::LoadScreen;
        if is_alone && path.acked > TRAINLESS_AFTER && !path.trains.is_running() {
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
        let rtt = path.rtt_span;
        let is_disordered = path.disorder > 0.75 * rtt;
        let is_long = path.acked > if is_disordered { flow::LONG / 4 } else { flow::LONG };
        let bottleneck = &mut path.bottleneck;
        let (known, was_policed) = (bottleneck.rate(), bottleneck.finder().is_policed());
        let count = bottleneck.on_arrivals(frame, ledger, &path.loss, self.now, is_long);
        let found = bottleneck.look_upward(count, ledger.next_number());
        if bottleneck.finder().is_policed() && !was_policed {
            path.on_policed(self.next_number);
        }
        let PathState { bottleneck, pacing, .. } = path;
        let is_faster = |rate: &Rate| known.is_none_or(|known| *rate > TRAIN_ABOVE * known);
        if let Some(rate) = bottleneck.rate().filter(is_faster) {
            let has_short_ticks = bottleneck.is_near() && is_fast(rate, path.packet);
            let is_beside_game = self.config.urgency == Urgency::DuringPlay;
            if has_short_ticks || is_beside_game || known.is_some() && pacing.is_modelled() {
                // What waits for the queue to drain at a lower rate, or for a guess's tick, has waited.
                self.resume_at = self.resume_at.min(self.now);
            }
        }
        pacing.follow(self.config.urgency, is_long, bottleneck.rate());
        if let Some(rate) = bottleneck.rate().filter(|_| found.is_none() && bottleneck.is_clear()) {
            pacing.learn(rate);
        }
        for sample in bottleneck.newest(count) {
            pacing.on_arrival(self.now, sample);
        }
        if let Some(longer) = pacing.poll_rise() {
            bottleneck.on_longer(longer);
        }
        self.set_stale();
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
            self.has_failed = true;
        }
        if self.timeout_at(path).is_some_and(|at| at <= now) {
            if self.awaits_uplink() && ledger.in_flight() == 0 {
                // All was answered, and it is not the peer that is silent.
                return self.silence.begin(now);
            }
            path.on_given_up(ledger.give_up(path.from));
            self.chunks.on_given_up();
            self.silence.on_timeout(now);
            self.set_stale();
            self.replay_at = Instant::ZERO;
            self.begin_settling(path, ledger);
            self.end_settling(path, ledger);
        }
    }

    /// Whether the peer has not answered since a timeout: slices are probes, and limited.
    pub(crate) const fn is_probing(&self) -> bool {
        self.silence.is_probing()
    }

    /// The next deadline. That of the next slice is one only if its frame fits in `room` bytes.
    pub(crate) fn poll_timeout(&self, path: &PathState, room: usize) -> Option<Instant> {
        let fits = |choice: &Choice| self.chunks.frame_bytes(*choice) <= room;
        let slice = self.choose(path).filter(fits).map(|_| self.resume_at);
        let replay = (self.is_stale && self.replay_at > self.now).then_some(self.replay_at);
        earliest(earliest(slice, replay), earliest(self.timeout_at(path), self.fails_at()))
    }

    /// Whether no chunk made progress for too long.
    pub(crate) const fn has_failed(&self) -> bool {
        self.has_failed
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
