//! Sends the chunks of blocks: [`choice`](super::choice) selects the next slice, and
//! [`pacing`](super::pacing) decides when it is sent (`docs/SENDER.md`).
//!
//! The sender connects the parts. It passes the fates of datagrams and the reported arrival times to the
//! model of the bottleneck, the loss estimate and the pacing, which decide about the next slice. The
//! invariant: a slice is returned only if it may be sent now.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::SEND_WINDOW;
use super::bottleneck::Bottleneck;
use super::choice::{Choice, Chosen, Chunks, Path};
use super::chunk::{Chunk, OpenChunk};
use super::config::{SenderConfig, SenderEvent, SenderStats};
use super::known::Known;
use super::lateness::Lateness;
use super::limit::Limit;
use super::loss::LossEstimate;
use super::pacing::{Pacing, Queue};
use super::silence::Silence;
use super::trains::Trains;
use super::tuning::choice::TAIL_RATE;
use super::tuning::silence::MAX_COUNTED_LOST;
use super::tuning::{FULL_PACKET, MIN_PACKET, TICK, blind, flow, trains};
use super::units::{Bytes, Rate, Span};
use crate::Instant;
use crate::chunk::{Ack, ChunkId, MAX_SLICES};
use crate::time::earliest;
use crate::transit::{Acked, ArrivalsFrame, Datagram, Fate, Ledger, Symbol};
use crate::urgency::Urgency;

/// Sends the chunks of blocks.
#[derive(Debug)]
pub(crate) struct Sender {
    config: SenderConfig,
    chunks: Chunks,
    bottleneck: Bottleneck,
    loss: LossEstimate,
    pacing: Pacing,
    limit: Limit,
    trains: Trains,
    lateness: Lateness,
    silence: Silence,
    /// The number of acknowledged slices.
    acked: usize,
    /// No slice is sent before this: the end of the tick, or of the gap between two slices.
    resume_at: Instant,
    next_tail: Instant,
    /// The size of the last datagram.
    last_bytes: Bytes,
    /// The ack being handled acknowledges a slice.
    has_progress: bool,
    /// There was feedback since the datagrams in flight were replayed.
    is_stale: bool,
    events: VecDeque<SenderEvent>,
    stats: SenderStats,
}

impl Sender {
    pub(crate) fn new(now: Instant, config: SenderConfig, known: Known) -> Self {
        Self {
            chunks: Chunks::new(config.first_chunk_id),
            bottleneck: Bottleneck::new(known.rate, config.first_number),
            loss: known.loss,
            pacing: Pacing::new(Rate::from_bps(config.min_rate_bps), known.rate),
            limit: Limit::new(config.max_rate_bps),
            trains: Trains::new(),
            lateness: Lateness::new(),
            silence: Silence::new(now),
            acked: 0,
            resume_at: Instant::ZERO,
            next_tail: Instant::ZERO,
            last_bytes: FULL_PACKET,
            has_progress: false,
            is_stale: false,
            events: VecDeque::new(),
            stats: SenderStats::default(),
            config,
        }
    }

    pub(crate) const fn stats(&self) -> SenderStats {
        self.stats
    }

    pub(crate) const fn next_chunk_id(&self) -> ChunkId {
        self.chunks.next_id()
    }

    /// The measured rate and loss of the path.
    pub(crate) const fn known(&self) -> Known {
        Known { rate: self.bottleneck.rate(), loss: self.loss, at: self.silence.restarted_at() }
    }

    /// Whether the transfer has its own rate, its share of the link.
    #[cfg(test)]
    pub(crate) const fn has_share(&self) -> bool {
        self.pacing.has_own_rate()
    }

    /// The chunk with this id, while it is open.
    #[cfg(test)]
    pub(crate) fn chunk(&self, id: ChunkId) -> Option<&OpenChunk> {
        self.chunks.open().iter().find(|chunk| chunk.id == id)
    }

    /// The path changed: it is measured again, as at the start of a transfer.
    pub(crate) fn forget_path(&mut self) {
        self.bottleneck = Bottleneck::new(None, self.config.first_number);
        self.loss = LossEstimate::new();
        self.pacing = Pacing::new(Rate::from_bps(self.config.min_rate_bps), None);
        (self.trains, self.acked) = (Trains::new(), 0);
        self.is_stale = true;
    }

    pub(crate) const fn set_rtt(&mut self, rtt: Duration) {
        self.silence.set_rtt(rtt);
    }

    /// Sets the initial rate, as measured on the reverse path.
    pub(crate) const fn set_hint(&mut self, rate: Rate) {
        self.pacing.set_hint(rate);
    }

    pub(crate) fn set_max_rate_bps(&mut self, max_rate_bps: u64) {
        self.limit.set(max_rate_bps);
    }

    pub(crate) const fn set_urgency(&mut self, urgency: Urgency) {
        self.config.urgency = urgency;
    }

    /// The number of chunks of which no slice was sent.
    pub(crate) fn waiting(&self) -> usize {
        self.chunks.waiting()
    }

    /// Queues the next chunk.
    pub(crate) fn send(&mut self, now: Instant, chunk: Chunk) {
        if self.chunks.is_empty() {
            self.silence.begin(now);
        }
        self.chunks.push(chunk);
    }

    /// Bytes that the peer has of chunks that are not done.
    pub(crate) fn received_bytes(&self) -> usize {
        self.chunks.open().iter().map(OpenChunk::received_bytes).sum()
    }

    pub(crate) fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    /// The slice to send now. The datagram with it must be reported by [`on_sent`](Self::on_sent).
    pub(crate) fn poll_slice(&mut self, now: Instant, ledger: &Ledger) -> Option<Chosen<'_>> {
        self.on_call(now);
        self.pacing.follow(self.config.urgency, false, self.bottleneck.rate());
        let choice = self.choose();
        self.lateness.set_due(choice.map(|_| self.resume_at.max(now)));
        let choice = choice.filter(|_| now >= self.resume_at)?;
        if let Some(later) = self.opens_at(now, choice) {
            self.resume_at = later;
            self.lateness.set_due(Some(later));
            return None;
        }
        if choice.is_tail {
            let (now, late) = (Span::from(now), self.lateness.get());
            let paced_at = Span::from(self.next_tail).clamp(now - late, now);
            self.next_tail = (paced_at + self.tail_gap()).instant();
        }
        let chosen = self.chunks.take(choice, ledger)?;
        self.stats.resent += u64::from(chosen.is_repeated);
        Some(chosen)
    }

    /// No slice may be sent, for a reason outside this sender: a later call does not count as late.
    pub(crate) const fn on_blocked(&mut self) {
        self.lateness.set_due(None);
    }

    /// A datagram was sent, with or without a slice; `bytes` includes UDP and IP. Returns the modelled
    /// backlog in bytes for its record.
    pub(crate) fn on_sent(
        &mut self,
        now: Instant,
        number: u64,
        bytes: usize,
        slice: Option<(ChunkId, Symbol)>,
    ) -> f64 {
        let bytes = Bytes::from(bytes);
        let (backlog, passes) = self.bottleneck.on_sent(now, bytes);
        let queue = self.queue();
        self.limit.on_sent(now, bytes);
        self.pacing.on_sent(now, number, bytes, &queue);
        self.last_bytes = bytes;
        let Some((id, symbol)) = slice else { return backlog.0 };
        if !passes && self.pacing.is_modelled() {
            // The model expects it to be dropped: the next one must wait for room.
            self.resume_at = now + TICK;
        }
        self.silence.on_slice_sent(now, self.bottleneck.idle_at());
        self.pacing.on_slice_sent(now, bytes, &queue, self.limit.rate());
        self.trains.on_slice_sent();
        self.stats.slices += 1;
        self.stats.repairs += u64::from(usize::from(symbol) >= MAX_SLICES);
        let share = self.loss.share();
        if passes && let Some(chunk) = self.chunks.get_mut(id) {
            chunk.expect(share);
        }
        backlog.0
    }

    /// A datagram was acknowledged for the first time.
    pub(crate) fn on_acked(&mut self, now: Instant, acked: &Acked) {
        if acked.datagram.number < self.config.first_number {
            return;
        }
        self.is_stale = true;
        if matches!(acked.before, Fate::Lost | Fate::GivenUp) {
            self.loss.on_late();
        }
        let Some((id, symbol)) = acked.datagram.slice else { return };
        // Only slices count: acknowledged game packets would hide that a chunk makes no progress.
        self.has_progress = true;
        self.acked += 1;
        if let Some(chunk) = self.chunks.get_mut(id) {
            // Once enough slices are acknowledged, only the chunk ack is progress. A peer that acknowledges
            // probes and never acks the chunk must not keep the transfer alive.
            let had_enough = chunk.has_enough();
            if chunk.on_received(symbol) && !had_enough {
                self.silence.on_progress(now);
            }
        }
    }

    /// The peer reported a datagram, no older than `number`, that met a queue: as if a queue stood.
    pub(crate) fn on_congestion_mark(&mut self, number: u64) {
        self.pacing.on_congestion_mark(number);
    }

    /// All datagrams of an ack were passed to [`on_acked`](Self::on_acked).
    pub(crate) fn end_ack(&mut self, now: Instant, ledger: &Ledger) {
        self.lateness.on_input(now);
        if !core::mem::take(&mut self.has_progress) {
            return;
        }
        self.silence.on_feedback(now);
        if !self.bottleneck.finder().has_train(trains::PACKETS / 2) {
            self.trains.try_again();
        }
        if self.bottleneck.rate().is_none()
            && ledger.were_newest_acked(trains::PACKETS, self.config.first_number)
            && self.pacing.poll_train(now)
        {
            self.trains.restart();
        }
    }

    /// The peer reported when datagrams arrived. Called after the ack of these datagrams.
    pub(crate) fn on_arrivals(&mut self, frame: &ArrivalsFrame, ledger: &Ledger) {
        let is_long = self.acked > flow::LONG;
        let Self { bottleneck, pacing, .. } = self;
        let count = bottleneck.on_arrivals(frame, ledger, &self.loss, is_long);
        pacing.follow(self.config.urgency, is_long, bottleneck.rate());
        for sample in bottleneck.newest(count) {
            pacing.on_arrival(sample, self.silence.rtt().into());
        }
        self.is_stale = true;
    }

    /// The peer reported which slices of a chunk it has.
    pub(crate) fn on_chunk_ack(&mut self, now: Instant, ack: &Ack) {
        let Some(chunk) = self.chunks.get_mut(ack.chunk_id) else { return };
        if chunk.on_ack(&ack.received) {
            self.silence.on_feedback(now);
            self.silence.on_progress(now);
            self.is_stale = true;
        }
        self.lateness.on_input(now);
        while let Some(id) = self.chunks.pop_done() {
            self.events.push_back(SenderEvent::Done(id));
        }
    }

    /// Called before fates are settled. After feedback it corrects the backlog of each datagram, which
    /// decides how the missing ones were lost.
    pub(crate) fn begin_settling(&mut self, ledger: &mut Ledger) {
        if self.is_stale {
            self.bottleneck.replay_settled(ledger);
        }
    }

    /// How this datagram was lost: dropped at the bottleneck's queue, or lost behind it.
    pub(crate) fn lost_as(&self, datagram: &Datagram) -> Fate {
        self.bottleneck.fate_of(datagram)
    }

    /// The fate of the next datagram is settled.
    pub(crate) fn on_settled(&mut self, datagram: &Datagram) {
        let fate = datagram.fate;
        if datagram.number < self.config.first_number {
            return;
        }
        if fate != Fate::Acked {
            self.is_stale = true;
            self.bottleneck.on_lost(datagram);
        }
        self.pacing.on_settled(datagram.number, fate != Fate::Acked);
        // Without a rate, drops at the bottleneck and losses behind it cannot be distinguished.
        if self.bottleneck.rate().is_some() && fate != Fate::Dropped {
            self.loss.on_packet(fate == Fate::Lost);
        }
    }

    /// Called after fates are settled. After feedback it updates how many slices in flight are expected to
    /// arrive, and when the bottleneck will be idle.
    pub(crate) fn end_settling(&mut self, ledger: &Ledger) {
        if !core::mem::take(&mut self.is_stale) {
            return;
        }
        let Self { bottleneck, loss, chunks, .. } = self;
        chunks.open_mut().for_each(OpenChunk::clear_expected);
        let share = loss.share();
        bottleneck.replay_in_flight(ledger, |datagram, passes| {
            if passes
                && let Some((id, _)) = datagram.slice
                && let Some(chunk) = chunks.get_mut(id)
            {
                chunk.expect(share);
            }
        });
    }

    /// Acts on a deadline that has passed.
    pub(crate) fn handle_timeout(&mut self, now: Instant, ledger: &mut Ledger) {
        self.on_call(now);
        if self.fails_at().is_some_and(|at| at <= now) {
            self.silence.on_failed();
            self.events.push_back(SenderEvent::Failed);
        }
        if self.timeout_at().is_some_and(|at| at <= now) {
            let given_up = ledger.give_up(self.config.first_number);
            (0..given_up.min(MAX_COUNTED_LOST)).for_each(|_| self.loss.on_packet(true));
            self.silence.on_timeout(now);
            self.is_stale = true;
            self.begin_settling(ledger);
            self.end_settling(ledger);
        }
    }

    /// Whether the peer has not answered since a timeout: slices are probes, and limited.
    pub(crate) const fn is_probing(&self) -> bool {
        self.silence.is_probing()
    }

    /// The next deadline.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let slice = self.choose().map(|_| self.resume_at);
        earliest(earliest(slice, self.timeout_at()), self.fails_at())
    }

    /// When everything in flight is given up.
    pub(crate) fn timeout_at(&self) -> Option<Instant> {
        self.chunks.open().front()?;
        self.silence.timeout_at()
    }

    pub(crate) fn check_invariants(&self) {
        assert!(self.chunks.open().len() <= SEND_WINDOW);
    }

    /// When the transfer fails, unless a chunk makes progress before.
    fn fails_at(&self) -> Option<Instant> {
        if self.chunks.is_empty() { None } else { self.silence.fails_at(self.config.give_up_after) }
    }

    /// The sender is called, perhaps late.
    fn on_call(&mut self, now: Instant) {
        self.silence.on_call(now);
        self.lateness.on_call(now);
        let is_alone = self.config.urgency == Urgency::LoadScreen;
        self.bottleneck.try_more(is_alone && self.lateness.is_frame());
    }

    /// The next slice to send, if any.
    fn choose(&self) -> Option<Choice> {
        if !self.silence.may_send() {
            return None;
        }
        let (loss, rtt) = (&self.loss, self.silence.rtt().into());
        let path = Path { loss, rtt, rate: self.bottleneck.rate() };
        self.chunks.choose(self.silence.is_probe_due(), &path)
    }

    /// When it may be sent; `None` if now.
    fn opens_at(&self, now: Instant, choice: Choice) -> Option<Instant> {
        let queue = self.queue();
        let late = queue.lateness_at(self.limit.rate());
        self.limit
            .opens_at(now, self.train_over_limit(), late)
            .or_else(|| self.pacing.opens_at(now, &queue))
            .or_else(|| self.tail_at(now, &queue).filter(|_| choice.is_tail))
    }

    fn queue(&self) -> Queue {
        let packet = self.last_bytes.max(MIN_PACKET);
        let (rtt, late) = (self.silence.rtt().into(), self.lateness.get());
        Queue::new(&self.bottleneck, rtt, packet, self.trains.is_running(), late)
    }

    /// Bytes of a train that may exceed the limit; zero where the limit is below the initial rate.
    fn train_over_limit(&self) -> Bytes {
        let is_train = self.trains.is_running() && self.bottleneck.rate().is_none();
        if is_train && self.limit.rate() > blind::LATER_RATE { trains::BYTES } else { Bytes::ZERO }
    }

    /// When the next slice of the tail may be sent; `None` if now. Without a measured rate the tail is not
    /// slowed.
    fn tail_at(&self, now: Instant, queue: &Queue) -> Option<Instant> {
        self.pacing.rate(queue)?;
        Some(self.next_tail).filter(|&next| next > now)
    }

    fn tail_gap(&self) -> Span {
        let queue = self.queue();
        self.pacing.rate(&queue).map_or(Span::ZERO, |rate| queue.packet / (rate * TAIL_RATE))
    }
}
