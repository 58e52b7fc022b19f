//! The receiving end: puts slices together, and acknowledges them.
//!
//! *Sending Large Blocks of Data*, "ChunkReceiver Implementation" and "The Importance of Soak Testing". The
//! invariant that keeps senders from hanging: every slice of the chunk in progress, of a complete one that
//! waits unread, or of the chunk just before (with the right count) makes an ack due.

use alloc::collections::VecDeque;
use core::time::Duration;

use bytes::Bytes;
use haulier_core::chunk::Assembly;
use haulier_core::time::earliest;

use crate::chunk::{Ack, ChunkId, ReceiverState, ReceiverTrigger, Slice, SliceCount, SliceSet};
use crate::debug_as;
use crate::settings;
use crate::{Instant, PacketDropReason};

settings! {
    /// How the receiver behaves.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ChunkReceiverConfig {
        /// The minimum time between two acks, except before the one that completes a chunk. Default 50 ms;
        /// the article says 50 or 100 ms. It prevents that a receiver is used as an amplifier.
        ack_interval: Duration = Duration::from_millis(50), with_ack_interval;
        /// Complete chunks that may wait to be read, at least 1 (0 counts as 1). Default 1, the article's
        /// "receive queue of length 1". While that many wait, slices of the next chunk are refused.
        max_unread: usize = 1, with_max_unread;
        /// An incomplete chunk is dropped after this long without a new slice; `None` keeps it without limit.
        /// Default 10 s, less than the sender's `give_up_after`: see there.
        abandon_after: Option<Duration> = Some(Duration::from_secs(10)), with_abandon_after;
        /// The id of the first chunk; the sender must use the same. Default 0.
        first_chunk_id: ChunkId = ChunkId::new(0), with_first_chunk_id;
    }
}

/// What an accepted slice changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceArrival {
    /// It is new, and more are missing.
    New,
    /// It was the last one missing: a complete chunk waits to be read.
    Completed,
}

/// An event of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChunkReceiverEvent {
    /// An incomplete chunk was dropped: no new slice arrived for [`ChunkReceiverConfig::abandon_after`].
    Abandoned {
        /// Its number.
        chunk_id: ChunkId,
        /// Slices that had arrived.
        received: usize,
        /// Slices of the whole chunk.
        slices: SliceCount,
    },
}

/// The progress of the chunk in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiveProgress {
    /// Its number.
    pub chunk_id: ChunkId,
    /// The slices that have arrived.
    pub received: SliceSet,
    /// Its size in bytes; unknown before its last slice has arrived.
    pub bytes: Option<usize>,
}

/// Counters of a receiver, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkReceiverStats {
    /// Chunks completed.
    pub chunks_received: u64,
    /// Incomplete chunks that were dropped.
    pub chunks_abandoned: u64,
    /// New slices.
    pub slices_received: u64,
    /// Slices that had arrived before, or belong to the chunk before.
    pub slices_duplicate: u64,
    /// Acks sent.
    pub acks_sent: u64,
}

/// Receives chunks, one at a time and in order. See [`ChunkSender`](super::ChunkSender) for an example.
#[derive(Clone)]
pub struct ChunkReceiver {
    config: ChunkReceiverConfig,
    state: ReceiverState,
    /// The chunk in progress, or the next one expected.
    chunk_id: ChunkId,
    /// `Some` exactly in the state `Receiving`.
    current: Option<(Assembly, Instant)>,
    /// The slice count of chunk `chunk_id - 1`, if this receiver completed that one.
    previous: Option<SliceCount>,
    unread: VecDeque<Bytes>,
    /// Whether an ack is due for the chunk in progress: the dirty flag of the article.
    ack_due: bool,
    /// Whether an ack is due for the chunk just before.
    previous_ack_due: bool,
    /// Whether that ack is the one that completes the chunk, which does not wait for the ack interval.
    completing: bool,
    /// When the last ack was sent, and for which chunk.
    last_ack: Option<(Instant, ChunkId)>,
    /// The newest event. One is enough: [`ChunkReceiverConfig::abandon_after`] lies between two, and the
    /// peer could make an unread queue grow.
    event: Option<ChunkReceiverEvent>,
    stats: ChunkReceiverStats,
}

debug_as! {
    ChunkReceiver: |receiver|
    config = receiver.config,
    state = receiver.state,
    chunk_id = receiver.chunk_id,
    unread = receiver.unread.len(),
    stats = receiver.stats,
}

impl ChunkReceiver {
    /// A receiver that expects its first chunk. Allocates nothing yet.
    #[must_use]
    pub fn new(config: ChunkReceiverConfig) -> Self {
        Self {
            state: ReceiverState::Waiting,
            chunk_id: config.first_chunk_id,
            current: None,
            previous: None,
            unread: VecDeque::new(),
            ack_due: false,
            previous_ack_due: false,
            completing: false,
            last_ack: None,
            event: None,
            stats: ChunkReceiverStats::default(),
            config,
        }
    }

    /// Its state.
    #[must_use]
    pub const fn state(&self) -> ReceiverState {
        self.state
    }

    /// The id of the chunk in progress, or of the next one.
    #[must_use]
    pub const fn chunk_id(&self) -> ChunkId {
        self.chunk_id
    }

    /// The progress of the chunk in progress; `None` if no slice of it has arrived.
    #[must_use]
    pub fn progress(&self) -> Option<ReceiveProgress> {
        self.current.as_ref().map(|(assembly, _)| ReceiveProgress {
            chunk_id: self.chunk_id,
            received: *assembly.received(),
            bytes: assembly.chunk_bytes(),
        })
    }

    /// The number of complete chunks that wait to be read.
    #[must_use]
    pub fn unread(&self) -> usize {
        self.unread.len()
    }

    /// The chunk that an ack is due for, if any. The ack may have to wait for the ack interval.
    #[must_use]
    pub const fn ack_due(&self) -> Option<ChunkId> {
        // When both are due they alternate, so that neither starves the other.
        let last = match self.last_ack {
            Some((_, chunk_id)) => chunk_id.get(),
            None => self.chunk_id.get(),
        };
        let previous_is_next = !self.ack_due || last == self.chunk_id.get();
        if self.completing || (self.previous_ack_due && previous_is_next) {
            Some(self.chunk_id.previous())
        } else if self.ack_due {
            Some(self.chunk_id)
        } else {
            None
        }
    }

    /// Memory held for the chunk in progress, in bytes: at most twice what arrived plus 16 KiB.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.current.as_ref().map_or(0, |(assembly, _)| assembly.capacity_bytes())
    }

    /// Counters.
    #[must_use]
    pub const fn stats(&self) -> &ChunkReceiverStats {
        &self.stats
    }

    /// Removes and returns the oldest complete chunk.
    #[must_use]
    pub fn pop(&mut self) -> Option<Bytes> {
        let chunk = self.unread.pop_front()?;
        if self.state == ReceiverState::Full {
            self.on(ReceiverTrigger::Read);
        }
        Some(chunk)
    }

    /// Restarts, expecting chunk `first_chunk_id`; the sender must be reset to the same. Drops the
    /// incomplete chunk and those that wait unread: [`pop`](Self::pop) them first to keep them.
    pub fn reset(&mut self, first_chunk_id: ChunkId) {
        self.on(ReceiverTrigger::Reset);
        self.chunk_id = first_chunk_id;
        self.current = None;
        self.previous = None;
        self.unread.clear();
        self.ack_due = false;
        self.previous_ack_due = false;
        self.completing = false;
    }

    /// Handles a slice. Constant work, except for one pass over a completed chunk that did not arrive in
    /// order.
    ///
    /// # Errors
    /// Why its data was dropped. It may still have made an ack due.
    pub fn handle_slice(
        &mut self,
        now: Instant,
        slice: &Slice<'_>,
    ) -> Result<SliceArrival, PacketDropReason> {
        if slice.chunk_id() == self.chunk_id {
            self.handle_current(now, slice)
        } else if slice.chunk_id() == self.chunk_id.previous() {
            Err(self.handle_previous(slice))
        } else if slice.chunk_id().is_newer_than(self.chunk_id) {
            Err(PacketDropReason::FutureChunk)
        } else {
            Err(PacketDropReason::OldChunk)
        }
    }

    /// Acts on deadlines that have passed; no effect at any other time.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.abandon_at().is_none_or(|at| now < at) {
            return;
        }
        if let Some((assembly, _)) = self.current.take() {
            self.stats.chunks_abandoned += 1;
            self.ack_due = false;
            self.on(ReceiverTrigger::Abandoned);
            self.event = Some(ChunkReceiverEvent::Abandoned {
                chunk_id: self.chunk_id,
                received: assembly.received().len(),
                slices: assembly.received().count(),
            });
        }
    }

    /// The ack to send now, if one is due and the ack interval has passed.
    #[must_use]
    pub fn poll_ack(&mut self, now: Instant) -> Option<Ack> {
        let chunk_id = self.ack_due()?;
        if self.ack_at().is_some_and(|at| now < at) {
            return None;
        }
        let received = if chunk_id == self.chunk_id {
            self.ack_due = false;
            *self.current.as_ref()?.0.received()
        } else {
            self.previous_ack_due = false;
            self.completing = false;
            SliceSet::full(self.previous?)
        };
        self.last_ack = Some((now, chunk_id));
        self.stats.acks_sent += 1;
        Some(Ack { chunk_id, received })
    }

    /// The next event. Call until `None`.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<ChunkReceiverEvent> {
        self.event.take()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and [`poll_ack`](Self::poll_ack) next, if
    /// nothing else happens; a time in the past means at once.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let ack_at = self.ack_due().map(|_| self.ack_at().unwrap_or(Instant::ZERO));
        earliest(ack_at, self.abandon_at())
    }

    /// Panics if the parts contradict each other. For tests, fuzzers and the simulator.
    pub fn check_invariants(&self) {
        assert_eq!(self.state == ReceiverState::Receiving, self.current.is_some());
        assert_eq!(self.state == ReceiverState::Full, self.unread.len() >= self.max_unread());
        assert!(self.unread.len() <= self.max_unread());
        assert!(!self.ack_due || self.current.is_some(), "an ack for a chunk without slices");
        assert!(!self.previous_ack_due || self.previous.is_some());
        assert!(!self.completing || self.previous_ack_due);
        if let Some((assembly, _)) = &self.current {
            assert!(!assembly.received().is_full(), "a complete chunk is still in progress");
            assert!(!assembly.received().is_empty());
            assembly.check_invariants();
        }
    }

    fn handle_current(
        &mut self,
        now: Instant,
        slice: &Slice<'_>,
    ) -> Result<SliceArrival, PacketDropReason> {
        if self.state == ReceiverState::Full {
            return Err(PacketDropReason::NotReadYet);
        }
        let count = slice.index().count();
        if self.state == ReceiverState::Waiting {
            self.current = Some((Assembly::new(count), now));
            self.on(ReceiverTrigger::FirstSlice);
        }
        let Some((assembly, last_new)) = self.current.as_mut() else {
            return Err(PacketDropReason::NotReadYet);
        };
        if count != assembly.received().count() {
            return Err(PacketDropReason::NumSlicesMismatch);
        }
        // From here on an ack is due, whether the slice is new or not: the ack for its first copy may be
        // lost. With this line below the next test the sender hangs (hang 1).
        self.ack_due = true;
        if !assembly.insert(slice) {
            self.stats.slices_duplicate += 1;
            return Err(PacketDropReason::Duplicate);
        }
        *last_new = now;
        self.stats.slices_received += 1;
        Ok(if assembly.received().is_full() { self.complete() } else { SliceArrival::New })
    }

    /// A slice of the chunk before the one in progress: complete here, but the sender does not know yet.
    /// Only a slice with the count of that chunk comes from its sender.
    fn handle_previous(&mut self, slice: &Slice<'_>) -> PacketDropReason {
        let Some(count) = self.previous else { return PacketDropReason::OldChunk };
        if slice.index().count() != count {
            return PacketDropReason::NumSlicesMismatch;
        }
        self.previous_ack_due = true;
        self.stats.slices_duplicate += 1;
        // Unread chunks are the newest ones: the chunk before is one of them unless all were read.
        if self.unread.is_empty() {
            PacketDropReason::OldChunk
        } else {
            PacketDropReason::Duplicate
        }
    }

    fn complete(&mut self) -> SliceArrival {
        let Some((assembly, _)) = self.current.take() else { return SliceArrival::New };
        self.previous = Some(assembly.received().count());
        self.chunk_id = self.chunk_id.next();
        self.stats.chunks_received += 1;
        self.unread.extend(assembly.finish().map(Bytes::from));
        self.ack_due = false;
        self.previous_ack_due = true;
        self.completing = true;
        self.on(if self.unread.len() < self.max_unread() {
            ReceiverTrigger::Completed
        } else {
            ReceiverTrigger::CompletedAndFull
        });
        SliceArrival::Completed
    }

    /// When the due ack may be sent: at once if it completes a chunk, else an ack interval after the last.
    fn ack_at(&self) -> Option<Instant> {
        if self.completing { None } else { Some(self.last_ack?.0 + self.config.ack_interval) }
    }

    fn abandon_at(&self) -> Option<Instant> {
        let (_, last_new) = self.current.as_ref()?;
        Some(*last_new + self.config.abandon_after?)
    }

    fn max_unread(&self) -> usize {
        self.config.max_unread.max(1)
    }

    fn on(&mut self, news: ReceiverTrigger) {
        match self.state.next(news) {
            Some(next) => self.state = next,
            None => debug_assert!(false, "{news:?} in state {:?}", self.state),
        }
    }
}
