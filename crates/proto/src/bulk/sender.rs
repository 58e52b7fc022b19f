//! Sends the chunks of blocks: [`choice`](super::choice) selects the next slice, and
//! [`pacing`](super::pacing) decides when it is sent (`docs/SENDER.md`).
//!
//! Blocks come from `outgoing`, which announces them and hears how far they are. The sender connects the
//! parts. It passes the fates of datagrams and the reported arrival times to the model of the bottleneck,
//! the loss estimate and the pacing, which decide about the next slice. The invariant: a slice is returned
//! only if it may be sent now.

mod fates;
mod timing;
mod told;
mod wanted;

use super::bottleneck::Bottleneck;
use super::choice::{Choice, Chosen};
use super::chunks::{Chunks, Cutting};
use super::config::{SenderConfig, SenderStats};
use super::delivered::{Delivered, Proven};
use super::known::{Known, Trust};
use super::lateness::Lateness;
use super::limit::Limit;
use super::loss::LossEstimate;
use super::pacing::{Blind, Pacing};
use super::reader::Reader;
use super::recalled::Recalled;
use super::silence::Silence;
use super::trains::Trains;
use super::tuning::near::is_fast;
use super::tuning::rate_finder::{TRAIN_ABOVE, TRAINLESS_AFTER};
use super::tuning::silence::MAX_COUNTED_LOST;
use super::tuning::{FULL_PACKET, TICK, flow};
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
    bottleneck: Bottleneck,
    loss: LossEstimate,
    pacing: Pacing,
    limit: Limit,
    delivered: Delivered,
    /// The rate is from an earlier connection.
    recalled: Option<Recalled>,
    trains: Trains,
    lateness: Lateness,
    silence: Silence,
    /// The number of acknowledged slices.
    acked: usize,
    /// Datagrams whose fate was settled while no rate was known.
    without_rate: usize,
    /// Datagrams below this number were sent faster than a policer passes them.
    too_fast_below: u64,
    /// No slice is sent before this: the end of the tick, or of the gap between two slices.
    resume_at: Instant,
    next_tail: Instant,
    /// The size of the last datagram.
    last_bytes: Bytes,
    /// The ack being handled acknowledges a slice.
    has_progress: bool,
    /// There was feedback since the datagrams in flight were replayed, which is not done before `replay_at`.
    is_stale: bool,
    replay_at: Instant,
    /// Slices in flight may not be expected to arrive.
    has_unexpected: bool,
    /// Datagrams acknowledged since fates were settled.
    news: u32,
    /// The size of a full datagram.
    packet: Bytes,
    reader: Reader,
    uplink: Uplink,
    /// The server paces the connections to this address together.
    is_paced_together: bool,
    has_failed: bool,
    /// When it was last called.
    now: Instant,
    /// The number after the last datagram sent.
    next_number: u64,
    /// Datagrams below this number went another way: what became of them says nothing of this path.
    path_from: u64,
    stats: SenderStats,
}

impl Sender {
    pub(crate) fn new(now: Instant, config: SenderConfig, known: Known) -> Self {
        let (floor, is_own) = (Rate::from_bps(config.min_rate_bps), known.trust == Trust::Own);
        let queue = if is_own { f64::from(known.queue_bytes) } else { 0.0 };
        let recalled = || Recalled::new(known.proven, Blind::new(floor, None));
        let SenderConfig { slice_room: room, max_slice, has_repair, .. } = config;
        let mut sender = Self {
            chunks: Chunks::new(
                Cutting { room, is_fine: false, max_slice, has_repair },
                config.credit,
            ),
            bottleneck: Bottleneck::new(known.rate, config.first_number).recalling(Bytes(queue)),
            loss: known.loss,
            pacing: Pacing::new(floor, known.rate).at_least(known.is_least),
            limit: Limit::new(config.max_rate_bps),
            delivered: Delivered::new(if is_own { known.proven } else { Proven::NOTHING }),
            recalled: (!is_own && known.rate.is_some()).then(recalled),
            trains: Trains::new(),
            lateness: Lateness::new(),
            silence: Silence::new(now, config.idle_timeout),
            acked: 0,
            without_rate: 0,
            too_fast_below: 0,
            resume_at: Instant::ZERO,
            next_tail: Instant::ZERO,
            last_bytes: FULL_PACKET,
            has_progress: false,
            is_stale: false,
            replay_at: Instant::ZERO,
            has_unexpected: false,
            news: 0,
            packet: FULL_PACKET,
            reader: Reader::new(config.receive_buffer),
            uplink: Uplink::Open,
            is_paced_together: false,
            has_failed: false,
            now,
            next_number: config.first_number,
            path_from: config.first_number,
            stats: SenderStats::default(),
            config,
        };
        sender.set_slice_room(room);
        sender
    }

    pub(crate) const fn stats(&self) -> SenderStats {
        self.stats
    }

    /// The measured rate and loss of the path.
    pub(crate) fn known(&self) -> Known {
        let rate = self.bottleneck.rate();
        let least = self.pacing.least_rate().filter(|_| rate.is_none());
        Known {
            rate: rate.or(least),
            is_least: least.is_some(),
            proven: self.delivered.proven(),
            queue_bytes: self.bottleneck.queue_seen().saturating_u32(),
            loss: self.loss,
            at: self.silence.restarted_at(),
            trust: Trust::Own,
        }
    }

    /// Whether what is expected of the datagrams in flight is not up to date.
    #[cfg(test)]
    pub(crate) const fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Chunks that may be open.
    #[cfg(test)]
    pub(crate) fn open_at_most(&self) -> usize {
        self.path().window
    }

    /// Whether the transfer has its own rate, its share of the link.
    #[cfg(test)]
    pub(crate) const fn has_share(&self) -> bool {
        self.pacing.has_own_rate()
    }

    /// Whether to ask for a slice now, whose frame may have `room` bytes. To be asked whenever something may
    /// be sent: if nothing was due when the caller called, no later call is late.
    pub(crate) fn is_slice_due(&mut self, now: Instant, room: usize) -> bool {
        self.on_call(now);
        let choice = self.choose_and_note();
        self.lateness.set_due(choice.map(|_| self.resume_at.max(now)));
        choice.is_some_and(|choice| self.chunks.frame_bytes(choice) <= room)
            && now >= self.resume_at
    }

    /// The slice to send now, if its frame fits in `room` bytes. The datagram with it must be reported by
    /// [`on_sent`](Self::on_sent).
    pub(crate) fn poll_slice(
        &mut self,
        now: Instant,
        ledger: &Ledger,
        room: usize,
    ) -> Option<Chosen<'_>> {
        self.on_call(now);
        self.note_in_flight(ledger);
        self.pacing.follow(self.config.urgency, false, self.bottleneck.rate());
        let choice = self.choose_and_note();
        self.lateness.set_due(choice.map(|_| self.resume_at.max(now)));
        let choice = choice.filter(|_| now >= self.resume_at)?;
        if choice.is_opening() {
            self.cut_for_game();
        }
        let frame_bytes = self.chunks.frame_bytes(choice);
        if frame_bytes > room {
            return None;
        }
        if self.is_reader_full(ledger) {
            // An ack makes room, or a timeout: no call before that is late.
            self.resume_at = now + TICK;
            self.lateness.set_due(None);
            return None;
        }
        if let Some(later) = self.opens_at(now, choice.is_tail) {
            self.resume_at = later;
            self.lateness.set_due(Some(later));
            return None;
        }
        if !self.has_uplink(now) {
            return None;
        }
        if choice.is_tail {
            let (now, late) = (Span::from(now), self.lateness.get());
            let paced_at = Span::from(self.next_tail).clamp(now - late, now);
            self.next_tail = (paced_at + self.tail_gap()).instant();
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
    pub(crate) fn is_gate_open(&mut self, now: Instant) -> bool {
        self.on_call(now);
        if now >= self.resume_at
            && let Some(later) = self.opens_at(now, false)
        {
            self.resume_at = later;
        }
        now >= self.resume_at && self.has_uplink(now)
    }

    /// No slice may be sent, for a reason outside this sender: a later call does not count as late.
    pub(crate) const fn on_blocked(&mut self) {
        self.lateness.set_due(None);
    }

    /// A datagram was sent, with or without a slice; `bytes` includes UDP and IP. Returns what its record
    /// says of the model.
    pub(crate) fn on_sent(
        &mut self,
        now: Instant,
        number: u64,
        bytes: usize,
        slice: Option<(ChunkAt, Symbol)>,
    ) -> Modelled {
        (self.now, self.next_number) = (now, number + 1);
        let bytes = Bytes::from(bytes);
        let (backlog, passes) = self.bottleneck.on_sent(now, bytes);
        let queue = self.queue();
        self.limit.on_sent(now, bytes);
        self.reader.on_sent(now, bytes);
        self.delivered.on_sent(now, number);
        self.pacing.on_sent(now, number, bytes, &queue);
        self.last_bytes = bytes;
        let Some((at, symbol)) = slice else {
            return Modelled { backlog: backlog.0, is_expected: false };
        };
        if !passes && self.pacing.is_modelled() {
            // The model expects it to be dropped: the next one must wait for room.
            self.resume_at = now + self.bottleneck.rate().map_or(TICK, |rate| queue.tick_at(rate));
        }
        self.silence.on_slice_sent(now, self.bottleneck.idle_at());
        self.pacing.on_slice_sent(now, bytes, &queue, self.max_rate());
        let max_rate = self.max_rate();
        if let Some(recalled) = &mut self.recalled {
            recalled.on_slice_sent(now, bytes, queue.rtt, max_rate);
        }
        self.trains.on_slice_sent();
        self.stats.slices += 1;
        self.stats.repairs += u64::from(symbol.index().1);
        let is_expected = passes || number >= self.model_believed_below();
        self.has_unexpected |= !is_expected;
        self.chunks.on_sent(at, symbol, is_expected);
        Modelled { backlog: backlog.0, is_expected }
    }

    /// A datagram was acknowledged for the first time.
    pub(crate) fn on_acked(&mut self, now: Instant, acked: &Acked) {
        if acked.datagram.number < self.config.first_number {
            return;
        }
        self.set_stale();
        self.news += 1;
        let bytes = Bytes(acked.datagram.wire_bytes());
        if acked.datagram.number >= self.path_from {
            self.delivered.on_acked(bytes);
        }
        self.bottleneck.on_acked(acked.datagram.number, bytes);
        if matches!(acked.before, Fate::Lost | Fate::GivenUp) {
            self.loss.on_late();
            self.pacing.on_spurious();
        }
        let Some((at, symbol)) = acked.datagram.slice else { return };
        // Only slices count: acknowledged game packets would hide that a chunk makes no progress.
        self.has_progress = true;
        self.acked += 1;
        if let Some(recalled) = &mut self.recalled {
            recalled.on_acked(bytes);
        }
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
    pub(crate) fn on_congestion_mark(&mut self, number: u64) {
        self.pacing.on_congestion_mark(self.now, number);
        self.trains.stop();
    }

    /// All datagrams of an ack were passed to [`on_acked`](Self::on_acked).
    pub(crate) fn end_ack(&mut self, now: Instant, ledger: &Ledger) {
        self.now = now;
        self.lateness.on_input(now);
        if !core::mem::take(&mut self.has_progress) {
            return;
        }
        self.silence.on_feedback(now);
        self.note_in_flight(ledger);
        if let Some(largest) = ledger.largest_acked() {
            self.delivered.end_ack(now, largest);
        }
        self.pacing.set_disorder(ledger.reordering().into());
        let rtt = self.silence.rtt_span();
        self.recalled = self.recalled.filter(|recalled| !recalled.is_over(rtt));
        if !self.bottleneck.finder().has_train(self.trains.packets() / 2) {
            self.trains.try_again();
        }
        if self.bottleneck.rate().is_none()
            && ledger.were_newest_acked(self.trains.packets(), self.config.first_number)
            && self.pacing.poll_train(now)
        {
            self.trains.restart();
        }
        let is_alone = self.config.urgency == Urgency::LoadScreen;
        if is_alone && self.acked > TRAINLESS_AFTER && !self.trains.is_running() {
            self.bottleneck.do_without_trains();
        }
    }

    /// The peer reported when datagrams arrived. Called after the ack of these datagrams.
    pub(crate) fn on_arrivals(&mut self, frame: &ArrivalsFrame, ledger: &Ledger) {
        let rtt = self.silence.rtt_span();
        let is_disordered = Span::from(ledger.reordering()) > 0.75 * rtt;
        let is_long = self.acked > if is_disordered { flow::LONG / 4 } else { flow::LONG };
        let Self { bottleneck, pacing, .. } = self;
        let (known, was_policed) = (bottleneck.rate(), bottleneck.finder().is_policed());
        let count = bottleneck.on_arrivals(frame, ledger, &self.loss, self.now, is_long);
        let found = bottleneck.look_upward(count, ledger.next_number());
        if bottleneck.finder().is_policed() && !was_policed {
            // What was lost so far was sent too fast.
            (self.loss, self.too_fast_below) = (LossEstimate::new(), self.next_number);
        }
        let is_faster = |rate: &Rate| known.is_none_or(|known| *rate > TRAIN_ABOVE * known);
        if let Some(rate) = bottleneck.rate().filter(is_faster) {
            let has_short_ticks = bottleneck.is_near() && is_fast(rate, self.packet);
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
            pacing.on_arrival(self.now, sample, self.silence.rtt_span());
        }
        self.set_stale();
    }

    /// Acts on a deadline that has passed.
    pub(crate) fn handle_timeout(&mut self, now: Instant, ledger: &mut Ledger) {
        self.on_call(now);
        if self.fails_at().is_some_and(|at| at <= now) {
            self.silence.on_failed();
            self.has_failed = true;
        }
        if self.timeout_at().is_some_and(|at| at <= now) {
            if self.awaits_uplink() && ledger.in_flight() == 0 {
                // All was answered, and it is not the peer that is silent.
                return self.silence.begin(now);
            }
            let given_up = ledger.give_up(self.config.first_number);
            (0..given_up.min(MAX_COUNTED_LOST)).for_each(|_| self.loss.on_packet(true));
            self.chunks.on_given_up();
            self.silence.on_timeout(now);
            self.set_stale();
            self.replay_at = Instant::ZERO;
            self.begin_settling(ledger);
            self.end_settling(ledger);
        }
    }

    /// Whether the peer has not answered since a timeout: slices are probes, and limited.
    pub(crate) const fn is_probing(&self) -> bool {
        self.silence.is_probing()
    }

    /// The next deadline. That of the next slice is one only if its frame fits in `room` bytes.
    pub(crate) fn poll_timeout(&self, room: usize) -> Option<Instant> {
        let fits = |choice: &Choice| self.chunks.frame_bytes(*choice) <= room;
        let slice = self.choose().filter(fits).map(|_| self.resume_at);
        let replay = (self.is_stale && self.replay_at > self.now).then_some(self.replay_at);
        earliest(earliest(slice, replay), earliest(self.timeout_at(), self.fails_at()))
    }

    /// Whether no chunk made progress for too long.
    pub(crate) const fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// When everything in flight is given up.
    pub(crate) fn timeout_at(&self) -> Option<Instant> {
        self.silence.timeout_at().filter(|_| self.chunks.has_open())
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
