//! The receiving end of blocks: several chunks at a time, each reconstructed from any of its slices.
//!
//! The invariants: chunks are returned in order; a slice of a complete chunk makes its ack due again, so a
//! sender that missed the ack can send any slice; and no slice within the window is refused for lack of
//! room, because a completing ack is sent only when there is room for what the sender may send next.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::cut::{Cut, SliceSize};
use super::done::DoneAcks;
use super::repair::{RepairSlice, decode};
use super::{RECEIVE_WINDOW, SEND_WINDOW};
use crate::chunk::{Ack, Assembly, ChunkId, SLICE_BYTES, Slice, SliceCount};
use crate::time::earliest;
use crate::{DropReason, Instant};

/// The interval between acks of a chunk in progress. They repeat what the acks of datagrams report, in case
/// many of those were lost.
const ACK_INTERVAL: Duration = Duration::from_millis(50);

/// Completing acks are sent for this many places, from the oldest on: then everything that the sender may
/// send has room.
const MAX_REPORTED: usize = RECEIVE_WINDOW - SEND_WINDOW;

/// A chunk that is partly received.
#[derive(Debug)]
struct Partial {
    sources: Assembly,
    repairs: Vec<(u8, Box<[u8; SLICE_BYTES]>)>,
    /// Bytes of the last source slice, as a repair slice reports.
    last_bytes: Option<usize>,
    acked_at: Instant,
    ack_due: bool,
}

impl Partial {
    const fn new(now: Instant, count: SliceCount) -> Self {
        let sources = Assembly::new(count);
        Self { sources, repairs: Vec::new(), last_bytes: None, acked_at: now, ack_due: false }
    }

    const fn count(&self) -> SliceCount {
        self.sources.received().count()
    }

    fn slices(&self) -> usize {
        self.sources.received().len() + self.repairs.len()
    }

    fn memory_bytes(&self) -> usize {
        let repairs = self.repairs.capacity() * size_of::<(u8, usize)>();
        self.sources.capacity_bytes() + repairs + self.repairs.len() * SLICE_BYTES
    }

    fn ack_at(&self) -> Option<Instant> {
        self.ack_due.then(|| self.acked_at + ACK_INTERVAL)
    }

    /// The chunk, from as many slices as its count; `None` if they contradict each other.
    fn finish(self, chunk_id: ChunkId) -> Option<Vec<u8>> {
        if self.sources.received().is_full() {
            return self.sources.finish();
        }
        let full = (self.count().get() - 1) * SLICE_BYTES;
        let bytes = self.sources.chunk_bytes().or(self.last_bytes.map(|last| full + last))?;
        let cut = Cut::new(bytes, SliceSize::SMALLEST_OF_FULL_CHUNK)?;
        let index = |slice: &Slice<'_>| u8::try_from(slice.index().get()).unwrap_or_default();
        let sources = self.sources.slices(chunk_id).map(|slice| (index(&slice), slice.data()));
        decode(cut, sources, self.repairs.iter().map(|(index, data)| (*index, &data[..])))
    }
}

#[derive(Debug)]
enum Place {
    Unseen,
    Partial(Box<Partial>),
    Done(Bytes, SliceCount),
}

/// Receives the chunks of blocks.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// The chunks from `first` on, up to the last of which a slice arrived.
    places: VecDeque<Place>,
    /// The oldest chunk that was not returned yet.
    first: ChunkId,
    /// Acks of complete chunks.
    done: DoneAcks,
    /// When the last new slice arrived.
    progress_at: Instant,
    abandon_after: Duration,
    decodes: u64,
}

impl Receiver {
    pub(crate) const fn new(abandon_after: Duration) -> Self {
        Self {
            places: VecDeque::new(),
            first: ChunkId::new(0),
            done: DoneAcks::new(),
            progress_at: Instant::ZERO,
            abandon_after,
            decodes: 0,
        }
    }

    /// Receives a source slice.
    ///
    /// # Errors
    /// Why it was not used; an ack may be due even then.
    pub(crate) fn on_slice(&mut self, now: Instant, slice: &Slice<'_>) -> Result<(), DropReason> {
        let (at, partial) = self.partial(now, slice.chunk_id(), slice.index().count())?;
        if !partial.sources.insert(slice) {
            return Err(DropReason::Duplicate);
        }
        self.on_new(now, at)
    }

    /// Receives a repair slice.
    ///
    /// # Errors
    /// As [`on_slice`](Self::on_slice).
    pub(crate) fn on_repair(
        &mut self,
        now: Instant,
        slice: &RepairSlice<'_>,
    ) -> Result<(), DropReason> {
        if usize::from(slice.index) >= slice.count.get().next_power_of_two() {
            return Err(DropReason::OutOfRange);
        }
        let (at, partial) = self.partial(now, slice.chunk_id, slice.count)?;
        if partial.repairs.iter().any(|(index, _)| *index == slice.index) {
            return Err(DropReason::Duplicate);
        }
        partial.repairs.push((slice.index, Box::new(*slice.data)));
        partial.last_bytes = Some(slice.last_bytes.into());
        self.on_new(now, at)
    }

    /// Removes the oldest chunk, if it is complete.
    pub(crate) fn pop(&mut self) -> Option<Bytes> {
        if !matches!(self.places.front(), Some(Place::Done(..))) {
            return None;
        }
        let Some(Place::Done(chunk, _)) = self.places.pop_front() else { return None };
        self.first = self.first.next();
        // There is room for one more now: the next ack that was held back may be sent.
        if let Some(Place::Done(_, count)) = self.places.get(MAX_REPORTED - 1) {
            self.done.push(self.first.plus(place_number(MAX_REPORTED - 1)), *count);
        }
        if self.places.is_empty() {
            self.places = VecDeque::new();
        }
        Some(chunk)
    }

    /// The ack of a chunk to send now, if one is due.
    pub(crate) fn poll_ack(&mut self, now: Instant) -> Option<Ack> {
        if let Some(ack) = self.done.poll(now) {
            return Some(ack);
        }
        let mut partials = self.partials_mut();
        let (at, partial) =
            partials.find(|(_, partial)| partial.ack_at().is_some_and(|at| at <= now))?;
        partial.ack_due = false;
        partial.acked_at = now;
        let received = *partial.sources.received();
        drop(partials);
        Some(Ack { chunk_id: self.first.plus(place_number(at)), received })
    }

    /// An ack that is not due, for a datagram that is sent anyway.
    pub(crate) fn poll_ack_along(&mut self, now: Instant, is_ack_eliciting: bool) -> Option<Ack> {
        self.done.poll_along(now, is_ack_eliciting)
    }

    /// When an ack is due; an instant in the past means now.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        earliest(self.done.poll_timeout(), self.partials().filter_map(Partial::ack_at).min())
    }

    /// A datagram with the completing ack of this chunk was acknowledged.
    pub(crate) fn on_done_confirmed(&mut self, chunk_id: ChunkId) {
        self.done.on_confirmed(chunk_id);
    }

    /// When partly received chunks are abandoned, unless a new slice arrives.
    pub(crate) fn abandon_at(&self) -> Option<Instant> {
        self.partials().next().map(|_| self.progress_at + self.abandon_after)
    }

    /// Abandons partly received chunks if no slice was new for `abandon_after`: the sender is gone.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.abandon_at().is_some_and(|at| at <= now) {
            for place in &mut self.places {
                if matches!(place, Place::Partial(_)) {
                    *place = Place::Unseen;
                }
            }
        }
    }

    /// The number of slices held of chunks that were not returned yet.
    pub(crate) fn slices(&self) -> usize {
        let slices = |place: &Place| match place {
            Place::Unseen => 0,
            Place::Partial(partial) => partial.slices(),
            Place::Done(_, count) => count.get(),
        };
        self.places.iter().map(slices).sum()
    }

    /// Chunks that were decoded, or tried to.
    pub(crate) const fn decodes(&self) -> u64 {
        self.decodes
    }

    /// Counts those of another receiver, too.
    pub(crate) const fn add_decodes(&mut self, decodes: u64) {
        self.decodes += decodes;
    }

    /// Memory held, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let memory = |place: &Place| match place {
            Place::Unseen => 0,
            Place::Partial(partial) => size_of::<Partial>() + partial.memory_bytes(),
            Place::Done(chunk, _) => chunk.len(),
        };
        let places = self.places.capacity() * size_of::<Place>();
        places + self.places.iter().map(memory).sum::<usize>()
    }

    pub(crate) fn check_invariants(&self) {
        assert!(self.places.len() <= RECEIVE_WINDOW);
        self.done.check_invariants();
        for partial in self.partials() {
            partial.sources.check_invariants();
            assert!(partial.slices() < partial.count().get(), "the chunk is complete");
        }
    }

    fn partials(&self) -> impl Iterator<Item = &Partial> {
        self.places.iter().filter_map(|place| match place {
            Place::Partial(partial) => Some(&**partial),
            _ => None,
        })
    }

    fn partials_mut(&mut self) -> impl Iterator<Item = (usize, &mut Partial)> {
        self.places.iter_mut().enumerate().filter_map(|(at, place)| match place {
            Place::Partial(partial) => Some((at, &mut **partial)),
            _ => None,
        })
    }

    /// The chunk of a slice, created if this is its first.
    fn partial(
        &mut self,
        now: Instant,
        chunk_id: ChunkId,
        count: SliceCount,
    ) -> Result<(usize, &mut Partial), DropReason> {
        let Ok(at) = usize::try_from(chunk_id.distance_from(self.first)) else {
            // Returned already.
            self.done.on_late_slice(now, chunk_id, count);
            return Err(DropReason::OldChunk);
        };
        if at >= RECEIVE_WINDOW {
            return Err(DropReason::FutureChunk);
        }
        self.done.on_slice(chunk_id);
        while self.places.len() <= at {
            self.places.push_back(Place::Unseen);
        }
        if let Some(&Place::Done(_, count)) = self.places.get(at) {
            if at < MAX_REPORTED {
                self.done.on_late_slice(now, chunk_id, count);
            }
            return Err(DropReason::Duplicate);
        }
        let place = self.places.get_mut(at).ok_or(DropReason::FutureChunk)?;
        if matches!(place, Place::Unseen) {
            *place = Place::Partial(Box::new(Partial::new(now, count)));
        }
        let Place::Partial(partial) = place else { return Err(DropReason::Duplicate) };
        if partial.count() != count {
            return Err(DropReason::NumSlicesMismatch);
        }
        partial.ack_due = true;
        Ok((at, partial))
    }

    fn on_new(&mut self, now: Instant, at: usize) -> Result<(), DropReason> {
        self.progress_at = now;
        let Some(place) = self.places.get_mut(at) else { return Ok(()) };
        if !matches!(place, Place::Partial(partial) if partial.slices() >= partial.count().get()) {
            return Ok(());
        }
        // If it cannot be decoded, a repair slice was forged: the chunk starts over.
        let Place::Partial(partial) = core::mem::replace(place, Place::Unseen) else {
            return Ok(());
        };
        self.decodes += u64::from(!partial.sources.received().is_full());
        let (count, chunk_id) = (partial.count(), self.first.plus(place_number(at)));
        let chunk = partial.finish(chunk_id).ok_or(DropReason::OutOfRange)?;
        *place = Place::Done(chunk.into(), count);
        if at < MAX_REPORTED {
            self.done.push(chunk_id, count);
        }
        Ok(())
    }
}

fn place_number(at: usize) -> u16 {
    u16::try_from(at).unwrap_or(u16::MAX)
}
