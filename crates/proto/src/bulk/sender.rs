//! Sends the chunks of blocks: which slice goes next is the [`choice`](super::choice)'s to say, and when the
//! [`pacing`](super::pacing)'s (`docs/SENDER.md`).
//!
//! Here the parts meet. What the ledger says became of datagrams, and when the receiver says that they
//! arrived, reaches the model of the bottleneck, the estimate of the losses and the pacing; what these
//! say decides about the next slice. The invariant: a slice is handed out only if it may go now.

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
use super::tuning::silence::MAX_BLAMED;
use super::tuning::{FULL_PACKET, MIN_PACKET, TICK, blind, trains};
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
    /// Slices acknowledged.
    acked: usize,
    /// Nothing goes out before this: the end of the tick, or of the space between two slices.
    resume_at: Instant,
    next_tail: Instant,
    /// The size of the last datagram.
    last_bytes: Bytes,
    /// A slice was named by the ack that is being handled.
    has_progress: bool,
    /// There was news since what is in flight was replayed.
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

    /// What was learned of the path.
    pub(crate) const fn known(&self) -> Known {
        Known { rate: self.bottleneck.rate(), loss: self.loss, at: self.silence.progress() }
    }

    /// Whether the transfer keeps to a share of the link by now.
    #[cfg(test)]
    pub(crate) const fn has_share(&self) -> bool {
        self.pacing.has_own_rate()
    }

    /// The chunk with this number, while it is open.
    #[cfg(test)]
    pub(crate) fn chunk(&self, id: ChunkId) -> Option<&OpenChunk> {
        self.chunks.open().iter().find(|chunk| chunk.id == id)
    }

    /// The path is another one: it is measured anew, as at the beginning of a transfer.
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

    /// What the way back can carry: to begin with, while nothing better is known.
    pub(crate) const fn set_hint(&mut self, rate: Rate) {
        self.pacing.set_hint(rate);
    }

    pub(crate) fn set_max_rate_bps(&mut self, max_rate_bps: u64) {
        self.limit.set(max_rate_bps);
    }

    pub(crate) const fn set_urgency(&mut self, urgency: Urgency) {
        self.config.urgency = urgency;
    }

    /// Chunks handed in whose first slice was not sent.
    pub(crate) fn waiting(&self) -> usize {
        self.chunks.waiting()
    }

    /// Hands in the next chunk.
    pub(crate) fn send(&mut self, now: Instant, chunk: Chunk) {
        if self.chunks.is_empty() {
            self.silence.begin(now);
        }
        self.chunks.push(chunk);
    }

    /// Bytes that are with the peer, of chunks that are not done.
    pub(crate) fn bytes_with_peer(&self) -> usize {
        self.chunks.open().iter().map(OpenChunk::bytes_with_peer).sum()
    }

    pub(crate) fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    /// The slice to send now. What it is carried in must be reported by [`on_sent`](Self::on_sent).
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

    /// No slice may go, for other reasons than its own: whoever calls later is not late.
    pub(crate) const fn on_blocked(&mut self) {
        self.lateness.set_due(None);
    }

    /// A datagram of so many bytes (with UDP and IP) was sent, with a slice in it or without. Returns the
    /// backlog that it met, for its record.
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
            // It finds no room, if the model is right: whatever comes next must wait for some.
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
        // Not what else goes this way: a game would hide that nothing more is heard of a chunk.
        self.has_progress = true;
        self.acked += 1;
        if let Some(chunk) = self.chunks.get_mut(id) {
            // Once there is enough, only its chunk ack is progress: who acknowledges what follows a
            // timeout, and never says that it has the chunk, is not waited for.
            let was_enough = chunk.is_enough();
            if chunk.on_received(symbol) && !was_enough {
                self.silence.on_moved(now);
            }
        }
    }

    /// All of an ack was handed to [`on_acked`](Self::on_acked).
    pub(crate) fn end_ack(&mut self, now: Instant, ledger: &Ledger) {
        self.lateness.on_news(now);
        if !core::mem::take(&mut self.has_progress) {
            return;
        }
        self.silence.on_news(now);
        if !self.bottleneck.finder().has_train(trains::PACKETS / 2) {
            self.trains.try_again();
        }
        if self.bottleneck.rate().is_none()
            && ledger.were_newest_acked(trains::PACKETS, self.config.first_number)
            && self.pacing.poll_train(now)
        {
            self.trains.look_again();
        }
    }

    /// The peer says when datagrams arrived. Comes after the ack that names them.
    pub(crate) fn on_arrivals(&mut self, frame: &ArrivalsFrame, ledger: &Ledger) {
        let is_long = self.acked > MAX_SLICES;
        let Self { bottleneck, pacing, .. } = self;
        let news = bottleneck.on_arrivals(frame, ledger, &self.loss, is_long);
        pacing.follow(self.config.urgency, is_long, bottleneck.rate());
        for sample in bottleneck.newest(news) {
            pacing.on_arrival(sample, self.silence.rtt().into());
        }
        self.is_stale = true;
    }

    /// The peer says what it has of a chunk.
    pub(crate) fn on_chunk_ack(&mut self, now: Instant, ack: &Ack) {
        let Some(chunk) = self.chunks.get_mut(ack.chunk_id) else { return };
        if chunk.on_ack(&ack.received) {
            self.silence.on_news(now);
            self.silence.on_moved(now);
            self.is_stale = true;
        }
        self.lateness.on_news(now);
        while let Some(id) = self.chunks.pop_done() {
            self.events.push_back(SenderEvent::Done(id));
        }
    }

    /// Before fates are settled: after news, the backlog of each datagram is corrected, which says what
    /// became of those that are lost.
    pub(crate) fn begin_settling(&mut self, ledger: &mut Ledger) {
        if self.is_stale {
            self.bottleneck.replay_settled(ledger);
        }
    }

    /// Where this datagram was lost: behind the bottleneck, or in front of it.
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
        // What was dropped at the bottleneck and what was lost behind it cannot be told apart before.
        if self.bottleneck.rate().is_some() && fate != Fate::Dropped {
            self.loss.on_packet(fate == Fate::Lost);
        }
    }

    /// After fates are settled, if there was news: what is expected of what is in flight, and when the
    /// bottleneck will be idle.
    pub(crate) fn end_settling(&mut self, ledger: &Ledger) {
        if !core::mem::take(&mut self.is_stale) {
            return;
        }
        let Self { bottleneck, loss, chunks, .. } = self;
        chunks.open_mut().for_each(OpenChunk::expect_nothing);
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
            (0..given_up.min(MAX_BLAMED)).for_each(|_| self.loss.on_packet(true));
            self.silence.on_timeout(now);
            self.is_stale = true;
            self.begin_settling(ledger);
            self.end_settling(ledger);
        }
    }

    /// Whether what goes out now follows a timeout: few slices, to hear whether the peer is there.
    pub(crate) const fn is_probing(&self) -> bool {
        self.silence.is_probing()
    }

    /// When there is something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let slice = self.choose().map(|_| self.resume_at);
        earliest(earliest(slice, self.timeout_at()), self.fails_at())
    }

    /// When what is in flight counts as gone.
    pub(crate) fn timeout_at(&self) -> Option<Instant> {
        self.chunks.open().front()?;
        self.silence.timeout_at()
    }

    pub(crate) fn check_invariants(&self) {
        assert!(self.chunks.open().len() <= SEND_WINDOW);
    }

    /// When it fails, if nothing moves before.
    fn fails_at(&self) -> Option<Instant> {
        if self.chunks.is_empty() { None } else { self.silence.fails_at(self.config.give_up_after) }
    }

    /// It is called, perhaps late.
    fn on_call(&mut self, now: Instant) {
        self.silence.on_call(now);
        self.lateness.on_call(now);
        let is_alone = self.config.urgency == Urgency::LoadScreen;
        self.bottleneck.try_more(is_alone && self.lateness.is_frame());
    }

    /// What should go next, if anything.
    fn choose(&self) -> Option<Choice> {
        if !self.silence.may_send() {
            return None;
        }
        let (loss, rtt) = (&self.loss, self.silence.rtt().into());
        let path = Path { loss, rtt, rate: self.bottleneck.rate() };
        self.chunks.choose(self.silence.is_probe_due(), &path)
    }

    /// When that may go, if not now.
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

    /// A train that has to go in spite of the limit; none where that is below the guess.
    fn train_over_limit(&self) -> Bytes {
        let is_train = self.trains.is_running() && self.bottleneck.rate().is_none();
        if is_train && self.limit.rate() > blind::LATER_RATE { trains::BYTES } else { Bytes::ZERO }
    }

    /// When the next slice of the tail may go, if not now. At a guess it goes as all do.
    fn tail_at(&self, now: Instant, queue: &Queue) -> Option<Instant> {
        self.pacing.rate(queue)?;
        Some(self.next_tail).filter(|&next| next > now)
    }

    fn tail_gap(&self) -> Span {
        let queue = self.queue();
        self.pacing.rate(&queue).map_or(Span::ZERO, |rate| queue.packet / (rate * TAIL_RATE))
    }
}
