//! The sending end: a queue of chunks, one in flight, sent slice by slice until all are acked.
//!
//! *Sending Large Blocks of Data*, "ChunkSender Implementation" and "Kicking it up a notch". Policy (burst,
//! budget, giving up) is here, its settings are in `sender_config.rs`, what it tells its application in
//! `sender_report.rs`, and the state of the chunk in flight in `sending.rs`.

use alloc::collections::VecDeque;
use core::time::Duration;

use bytes::Bytes;
use haulier_core::SendBudget;
use haulier_core::time::earliest;

use crate::chunk::sending::Sending;
use crate::chunk::{
    Ack, Cancelled, ChunkHandle, ChunkId, ChunkSenderConfig, ChunkSenderEvent, ChunkSenderStats,
    INITIAL_RESEND_DELAY, MAX_CHUNK_BYTES, SLICE_BYTES, SendChunkError, SendFailure, SendProgress,
    SenderState, SenderTrigger, Slice, SliceIndex, SliceState,
};
use crate::debug_as;
use crate::{ArticleRtt, Instant, PacketDropReason};

/// The longest time for which a busy sender makes up at once, when its application polls rarely. A game at
/// 10 frames a second still gets its whole rate; a game that froze for a minute does not send a minute's
/// worth at once.
const CATCH_UP: Duration = Duration::from_millis(100);

/// Sends chunks, one at a time and in order.
///
/// Call [`poll_slice`](Self::poll_slice) until it returns `None` whenever something happened: a chunk was
/// queued, an ack arrived, or [`poll_timeout`](Self::poll_timeout) passed.
///
/// ```
/// use haulier_article::Instant;
/// use haulier_article::chunk::{ChunkReceiver, ChunkReceiverConfig};
/// use haulier_article::chunk::{ChunkSender, ChunkSenderConfig, ChunkSenderEvent};
///
/// let mut sender = ChunkSender::new(ChunkSenderConfig::default());
/// let mut receiver = ChunkReceiver::new(ChunkReceiverConfig::default());
/// let handle = sender.send_chunk(vec![7; 5000])?;
///
/// let now = Instant::ZERO;
/// while let Some(slice) = sender.poll_slice(now) {
///     receiver.handle_slice(now, &slice)?;
/// }
/// let ack = receiver.poll_ack(now).expect("the completing ack goes out at once");
/// sender.handle_ack(now, &ack)?;
/// assert_eq!(receiver.pop().unwrap(), vec![7; 5000]);
/// assert!(matches!(sender.poll_event(), Some(ChunkSenderEvent::Sent { handle: h, .. }) if h == handle));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ChunkSender {
    config: ChunkSenderConfig,
    state: SenderState,
    queue: VecDeque<(ChunkHandle, Bytes)>,
    /// `Some` exactly while `state.is_sending()`.
    current: Option<Sending>,
    next_handle: u64,
    next_chunk_id: ChunkId,
    budget: SendBudget,
    /// When the wait after the burst ends.
    hold_until: Instant,
    rtt: ArticleRtt,
    events: VecDeque<ChunkSenderEvent>,
    stats: ChunkSenderStats,
}

debug_as! {
    ChunkSender: |sender|
    config = sender.config,
    state = sender.state,
    queued = sender.queue.len(),
    stats = sender.stats,
}

impl ChunkSender {
    /// A sender with nothing to send.
    #[must_use]
    pub fn new(config: ChunkSenderConfig) -> Self {
        let mut sender = Self {
            state: SenderState::Idle,
            queue: VecDeque::new(),
            current: None,
            next_handle: 0,
            next_chunk_id: config.first_chunk_id,
            budget: SendBudget::new(config.rate_bps, Instant::ZERO),
            hold_until: Instant::ZERO,
            rtt: ArticleRtt::new(),
            events: VecDeque::new(),
            stats: ChunkSenderStats::default(),
            config,
        };
        // A new sender counts as idle: it may send one RTT's worth at once.
        sender.budget.fill(sender.idle_cap());
        sender
    }

    /// Its state.
    #[must_use]
    pub const fn state(&self) -> SenderState {
        self.state
    }

    /// The progress of the chunk in flight, if any.
    #[must_use]
    pub fn progress(&self) -> Option<SendProgress> {
        self.current.as_ref().map(|sending| SendProgress {
            handle: sending.handle,
            chunk_id: sending.id,
            bytes: sending.bytes(),
            slices: sending.acked().count(),
            acked: sending.acked().len(),
        })
    }

    /// The states of the slices of the chunk in flight, first to last.
    pub fn slice_states(&self) -> impl Iterator<Item = SliceState> + '_ {
        self.current.iter().flat_map(|sending| {
            sending.acked().count().indices().map(|index| sending.state_of(index))
        })
    }

    /// The number of chunks that wait behind the one in flight.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// The id of the next chunk to start.
    #[must_use]
    pub const fn next_chunk_id(&self) -> ChunkId {
        self.next_chunk_id
    }

    /// The round-trip estimate. It includes the peer's delay before an ack.
    #[must_use]
    pub const fn rtt(&self) -> &ArticleRtt {
        &self.rtt
    }

    /// Counters.
    #[must_use]
    pub const fn stats(&self) -> &ChunkSenderStats {
        &self.stats
    }

    /// Queues a chunk of 1 byte to 256 KiB, without copying it.
    ///
    /// # Errors
    /// See [`SendChunkError`].
    pub fn send_chunk(&mut self, chunk: impl Into<Bytes>) -> Result<ChunkHandle, SendChunkError> {
        let chunk = chunk.into();
        if chunk.is_empty() {
            return Err(SendChunkError::Empty);
        }
        if chunk.len() > MAX_CHUNK_BYTES {
            return Err(SendChunkError::TooLarge { max: MAX_CHUNK_BYTES });
        }
        if self.state == SenderState::Stopped {
            return Err(SendChunkError::Stopped(chunk));
        }
        if self.queue.len() >= self.config.max_queued {
            return Err(SendChunkError::QueueFull(chunk));
        }
        let handle = ChunkHandle(self.next_handle);
        self.next_handle += 1;
        self.queue.push_back((handle, chunk));
        Ok(handle)
    }

    /// Cancels a chunk. A queued one is removed; one in flight ends the run, because this wire has no
    /// message for "forget chunk n" (docs/decisions/0004).
    pub fn cancel(&mut self, handle: ChunkHandle) -> Cancelled {
        if self.current.as_ref().is_some_and(|sending| sending.handle == handle) {
            self.fail(SendFailure::Cancelled);
            return Cancelled::InFlight;
        }
        match self.queue.iter().position(|&(queued, _)| queued == handle) {
            Some(at) => {
                self.queue.remove(at);
                self.push_failed(handle, SendFailure::Cancelled);
                Cancelled::Queued
            }
            None => Cancelled::Unknown,
        }
    }

    /// Restarts with chunk `first_chunk_id`; the receiver must be reset to the same. Every chunk not yet
    /// acked whole fails with [`SendFailure::Reset`].
    ///
    /// Packets of the old run may still be in flight, and an old ack for a new chunk with the same id and
    /// count would be accepted. Use an id far from the last one, or better, change the protocol id on both
    /// ends.
    pub fn reset(&mut self, first_chunk_id: ChunkId) {
        if let Some(sending) = self.current.take() {
            self.push_failed(sending.handle, SendFailure::Reset);
        }
        self.fail_queue(SendFailure::Reset);
        self.next_chunk_id = first_chunk_id;
        self.on(SenderTrigger::Reset);
    }

    /// Changes the budget, in bits per second.
    pub const fn set_rate_bps(&mut self, rate_bps: u64) {
        self.config.rate_bps = rate_bps;
        self.budget.set_rate_bps(rate_bps);
    }

    /// Switches the initial burst on or off, from the next chunk on.
    pub const fn set_burst(&mut self, burst: bool) {
        self.config.burst = burst;
    }

    /// Handles an ack. The work is bounded by the 256 slices of a chunk.
    ///
    /// # Errors
    /// Why it was dropped; nothing has changed then.
    pub fn handle_ack(&mut self, now: Instant, ack: &Ack) -> Result<(), PacketDropReason> {
        let sending = self.current.as_mut().ok_or(PacketDropReason::NotSending)?;
        if ack.chunk_id != sending.id {
            return Err(PacketDropReason::OtherChunk);
        }
        if ack.received.count() != sending.acked().count() {
            return Err(PacketDropReason::NumSlicesMismatch);
        }
        self.stats.acks_received += 1;
        let news = sending.on_ack(now, ack);
        if let Some(sample) = news.rtt_sample {
            self.rtt.on_sample(sample);
        }
        if sending.acked().is_full() {
            self.finish(now, ack.received.is_full());
        }
        Ok(())
    }

    /// Acts on deadlines that have passed; no effect at any other time.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.give_up_at().is_some_and(|at| at <= now) {
            self.fail(SendFailure::NoProgress);
        }
    }

    /// The next slice to send now, if any. Call until `None`: a burst has up to 256 of them.
    #[must_use]
    pub fn poll_slice(&mut self, now: Instant) -> Option<Slice<'_>> {
        self.start_next(now);
        let index = self.choose(now)?;
        let sending = self.current.as_mut()?;
        let is_retransmission = sending.on_sent(now, index);
        self.stats.slices_sent += 1;
        self.stats.slices_resent += u64::from(is_retransmission);
        let cost = cost(&self.config, sending, index);
        self.stats.wire_bytes = self.stats.wire_bytes.saturating_add(cost);
        if self.state == SenderState::Burst && index.is_last() {
            self.hold_until = now + self.config.burst_wait;
            // The burst was outside the budget. The budget fills from here on, for retransmissions.
            self.budget.empty(now);
            self.on(SenderTrigger::BurstSent);
        }
        self.current.as_ref()?.slice(index)
    }

    /// The next event. Call until `None` after every call that may cause one.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<ChunkSenderEvent> {
        self.events.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and [`poll_slice`](Self::poll_slice) next, if
    /// nothing else happens; a time in the past means at once.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let send_at = match self.state {
            SenderState::Stopped => None,
            SenderState::Idle => self.queue.front().map(|_| Instant::ZERO),
            SenderState::Burst => Some(Instant::ZERO),
            SenderState::Hold => Some(self.hold_until),
            SenderState::Budgeted => self.affordable_at(),
        };
        earliest(send_at, self.give_up_at())
    }

    /// Panics if the parts contradict each other. For tests, fuzzers and the simulator.
    pub fn check_invariants(&self) {
        assert_eq!(self.state.is_sending(), self.current.is_some(), "state {:?}", self.state);
        assert!(self.queue.len() <= self.config.max_queued);
        assert!(self.state != SenderState::Stopped || self.queue.is_empty());
        if let Some(sending) = &self.current {
            assert!(!sending.acked().is_full(), "a complete chunk is still in flight");
            sending.check_invariants();
        }
    }

    fn start_next(&mut self, now: Instant) {
        if self.state != SenderState::Idle {
            return;
        }
        let Some((handle, chunk)) = self.queue.pop_front() else { return };
        let Some(sending) = Sending::new(handle, self.next_chunk_id, chunk, now) else { return };
        self.current = Some(sending);
        self.budget.refill(now, self.idle_cap());
        self.on(if self.config.burst {
            SenderTrigger::StartWithBurst
        } else {
            SenderTrigger::StartWithBudget
        });
    }

    /// The slice that may be sent now. Its cost is taken from the budget, unless it is part of a burst.
    fn choose(&mut self, now: Instant) -> Option<SliceIndex> {
        if self.state == SenderState::Burst {
            return self.current.as_ref()?.next_unsent();
        }
        if self.state == SenderState::Hold && now >= self.hold_until {
            self.on(SenderTrigger::HoldOver);
        }
        if self.state != SenderState::Budgeted {
            return None;
        }
        self.budget.refill(now, self.busy_cap());
        let sending = self.current.as_ref()?;
        let Some(index) = sending.next_due(now, self.config.resend_delay(self.rtt.smoothed_rtt()))
        else {
            // Nothing is due: an idle budget is limited to one RTT's worth.
            self.budget.cap(self.idle_cap());
            return None;
        };
        self.budget.try_spend(cost(&self.config, sending, index)).then_some(index)
    }

    /// When the next slice is both due and affordable.
    fn affordable_at(&self) -> Option<Instant> {
        let sending = self.current.as_ref()?;
        let delay = self.config.resend_delay(self.rtt.smoothed_rtt());
        let due = sending.earliest_due(delay)?.max(self.budget.refilled_at());
        let index = sending.next_due(due, delay)?;
        let ready = self.budget.ready_at(cost(&self.config, sending, index))?;
        Some(due.max(ready))
    }

    /// The limit of an idle budget: one RTT's worth, at least one slice (docs/decisions/0007).
    fn idle_cap(&self) -> u64 {
        let rtt = self.rtt.smoothed_rtt().unwrap_or(INITIAL_RESEND_DELAY);
        self.budget.bytes_in(rtt).max(self.full_slice_cost())
    }

    /// The limit of a busy budget between two polls.
    fn busy_cap(&self) -> u64 {
        self.budget.bytes_in(CATCH_UP).max(self.idle_cap())
    }

    const fn full_slice_cost(&self) -> u64 {
        SLICE_BYTES.saturating_add(self.config.overhead_bytes) as u64
    }

    fn give_up_at(&self) -> Option<Instant> {
        Some(self.current.as_ref()?.last_progress + self.config.give_up_after?)
    }

    /// Every slice of the chunk in flight was acked at some time.
    ///
    /// The set of slices that an honest receiver has only grows, so the ack of the last missing slice names
    /// all of them. If it does not, the receiver dropped the chunk in between and began again: each slice
    /// was there once, the chunk is not.
    fn finish(&mut self, now: Instant, peer_has_all: bool) {
        if !peer_has_all {
            return self.fail(SendFailure::PeerForgot);
        }
        let Some(sending) = self.current.take() else { return };
        self.next_chunk_id = sending.id.next();
        self.stats.chunks_sent += 1;
        let elapsed = now.since(sending.started);
        self.events.push_back(ChunkSenderEvent::Sent { handle: sending.handle, elapsed });
        self.on(SenderTrigger::AllAcked);
    }

    /// The chunk in flight failed, and the run with it.
    fn fail(&mut self, reason: SendFailure) {
        let Some(sending) = self.current.take() else { return };
        self.push_failed(sending.handle, reason);
        self.fail_queue(SendFailure::RunEnded);
        self.on(SenderTrigger::Failed);
    }

    fn fail_queue(&mut self, reason: SendFailure) {
        while let Some((handle, _)) = self.queue.pop_front() {
            self.push_failed(handle, reason);
        }
    }

    fn push_failed(&mut self, handle: ChunkHandle, reason: SendFailure) {
        self.stats.chunks_failed += 1;
        self.events.push_back(ChunkSenderEvent::Failed { handle, reason });
    }

    fn on(&mut self, news: SenderTrigger) {
        match self.state.next(news) {
            Some(next) => self.state = next,
            None => debug_assert!(false, "{news:?} in state {:?}", self.state),
        }
    }
}

/// Bytes that a slice costs on the wire.
fn cost(config: &ChunkSenderConfig, sending: &Sending, index: SliceIndex) -> u64 {
    sending.slice_bytes(index).saturating_add(config.overhead_bytes) as u64
}
