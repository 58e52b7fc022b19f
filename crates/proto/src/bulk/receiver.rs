//! The receiving end of blocks: several chunks at a time, each whole from any of its slices.
//!
//! The invariants: chunks are handed over in order; a slice of a chunk that is done makes the ack that says
//! so due (so a sender that missed it need only send any slice again); and no slice within the window is
//! ever refused for want of room, because the sender learns that a chunk is done only while there is room for
//! what it may send next.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::done::DoneAcks;
use super::repair::{RepairSlice, decode};
use super::{RECEIVE_WINDOW, SEND_WINDOW};
use crate::chunk::{Ack, Assembly, ChunkId, SLICE_BYTES, Slice, SliceCount};
use crate::time::earliest;
use crate::{DropReason, Instant};

/// Acks of a chunk in progress are this far apart: they repeat what the acks of datagrams say, for the case
/// that many of those were lost.
const ACK_INTERVAL: Duration = Duration::from_millis(50);

/// Places whose chunks may be said to be done: then all that the sender may send has room.
const TOLD: usize = RECEIVE_WINDOW - SEND_WINDOW;

/// A chunk with slices here.
#[derive(Debug)]
struct Half {
    sources: Assembly,
    repairs: Vec<(u8, Box<[u8; SLICE_BYTES]>)>,
    /// Bytes of the last source slice, as a repair slice says.
    last_bytes: Option<usize>,
    acked_at: Instant,
    ack_due: bool,
}

impl Half {
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

    /// The chunk, from as many slices as it has; `None` if they contradict each other.
    fn finish(self, chunk_id: ChunkId) -> Option<Vec<u8>> {
        if self.sources.received().is_full() {
            return self.sources.finish();
        }
        let full = (self.count().get() - 1) * SLICE_BYTES;
        let bytes = self.sources.chunk_bytes().or(self.last_bytes.map(|last| full + last))?;
        decode(bytes, self.sources.slices(chunk_id), &self.repairs)
    }
}

#[derive(Debug)]
enum Place {
    Unseen,
    Half(Box<Half>),
    Done(Bytes, SliceCount),
}

/// Receives the chunks of blocks.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// The chunks from `first` on, as far as anything of them came.
    places: VecDeque<Place>,
    /// The oldest chunk that was not handed over.
    first: ChunkId,
    /// Acks of chunks that are done.
    done: DoneAcks,
    /// When a slice was new last.
    moved: Instant,
    abandon_after: Duration,
}

impl Receiver {
    pub(crate) const fn new(abandon_after: Duration) -> Self {
        Self {
            places: VecDeque::new(),
            first: ChunkId::new(0),
            done: DoneAcks::new(),
            moved: Instant::ZERO,
            abandon_after,
        }
    }

    /// Takes in a source slice.
    ///
    /// # Errors
    /// Why it was not used; it may have made an ack due.
    pub(crate) fn on_slice(&mut self, now: Instant, slice: &Slice<'_>) -> Result<(), DropReason> {
        let (at, half) = self.half(now, slice.chunk_id(), slice.index().count())?;
        if !half.sources.insert(slice) {
            return Err(DropReason::Duplicate);
        }
        self.on_new(now, at)
    }

    /// Takes in a repair slice.
    ///
    /// # Errors
    /// As [`on_slice`](Self::on_slice).
    pub(crate) fn on_repair(
        &mut self,
        now: Instant,
        slice: &RepairSlice<'_>,
    ) -> Result<(), DropReason> {
        let (at, half) = self.half(now, slice.chunk_id, slice.count)?;
        if half.repairs.iter().any(|(index, _)| *index == slice.index) {
            return Err(DropReason::Duplicate);
        }
        half.repairs.push((slice.index, Box::new(*slice.data)));
        half.last_bytes = Some(slice.last_bytes.into());
        self.on_new(now, at)
    }

    /// The oldest chunk, if it is done.
    pub(crate) fn pop(&mut self) -> Option<Bytes> {
        if !matches!(self.places.front(), Some(Place::Done(..))) {
            return None;
        }
        let Some(Place::Done(chunk, _)) = self.places.pop_front() else { return None };
        self.first = self.first.next();
        // There is room for one more now: the next that was kept back may be told.
        if let Some(Place::Done(_, count)) = self.places.get(TOLD - 1) {
            self.done.push(self.first.plus(place_number(TOLD - 1)), *count);
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
        let mut halves = self.halves_mut();
        let (at, half) = halves.find(|(_, half)| half.ack_at().is_some_and(|at| at <= now))?;
        half.ack_due = false;
        half.acked_at = now;
        let received = *half.sources.received();
        drop(halves);
        Some(Ack { chunk_id: self.first.plus(place_number(at)), received })
    }

    /// One that is not due, for a datagram that goes in any case, and that asks for an ack or not.
    pub(crate) fn poll_ack_along(&mut self, now: Instant, asks: bool) -> Option<Ack> {
        self.done.poll_along(now, asks)
    }

    /// When an ack is due; a moment in the past means at once.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        earliest(self.done.poll_timeout(), self.halves().filter_map(Half::ack_at).min())
    }

    /// A datagram that said that this chunk is done was acknowledged.
    pub(crate) fn on_done_heard(&mut self, chunk_id: ChunkId) {
        self.done.on_heard(chunk_id);
    }

    /// When what is half here is given up, unless more comes.
    pub(crate) fn abandon_at(&self) -> Option<Instant> {
        self.halves().next().map(|_| self.moved + self.abandon_after)
    }

    /// Gives up what is half here, if nothing was new for long: its sender is gone.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.abandon_at().is_some_and(|at| at <= now) {
            for place in &mut self.places {
                if matches!(place, Place::Half(_)) {
                    *place = Place::Unseen;
                }
            }
        }
    }

    /// Slices here of chunks that are not handed over.
    pub(crate) fn slices(&self) -> usize {
        let slices = |place: &Place| match place {
            Place::Unseen => 0,
            Place::Half(half) => half.slices(),
            Place::Done(_, count) => count.get(),
        };
        self.places.iter().map(slices).sum()
    }

    /// Memory held, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let memory = |place: &Place| match place {
            Place::Unseen => 0,
            Place::Half(half) => size_of::<Half>() + half.memory_bytes(),
            Place::Done(chunk, _) => chunk.len(),
        };
        let places = self.places.capacity() * size_of::<Place>();
        places + self.places.iter().map(memory).sum::<usize>()
    }

    pub(crate) fn check_invariants(&self) {
        assert!(self.places.len() <= RECEIVE_WINDOW);
        self.done.check_invariants();
        for half in self.halves() {
            half.sources.check_invariants();
            assert!(half.slices() < half.count().get(), "it is done");
        }
    }

    fn halves(&self) -> impl Iterator<Item = &Half> {
        self.places.iter().filter_map(|place| match place {
            Place::Half(half) => Some(&**half),
            _ => None,
        })
    }

    fn halves_mut(&mut self) -> impl Iterator<Item = (usize, &mut Half)> {
        self.places.iter_mut().enumerate().filter_map(|(at, place)| match place {
            Place::Half(half) => Some((at, &mut **half)),
            _ => None,
        })
    }

    /// The chunk a slice belongs to, begun if it is its first.
    fn half(
        &mut self,
        now: Instant,
        chunk_id: ChunkId,
        count: SliceCount,
    ) -> Result<(usize, &mut Half), DropReason> {
        let Ok(at) = usize::try_from(chunk_id.distance_from(self.first)) else {
            // Handed over already, whatever it was.
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
            if at < TOLD {
                self.done.on_late_slice(now, chunk_id, count);
            }
            return Err(DropReason::Duplicate);
        }
        let place = self.places.get_mut(at).ok_or(DropReason::FutureChunk)?;
        if matches!(place, Place::Unseen) {
            *place = Place::Half(Box::new(Half::new(now, count)));
        }
        let Place::Half(half) = place else { return Err(DropReason::Duplicate) };
        if half.count() != count {
            return Err(DropReason::NumSlicesMismatch);
        }
        half.ack_due = true;
        Ok((at, half))
    }

    fn on_new(&mut self, now: Instant, at: usize) -> Result<(), DropReason> {
        self.moved = now;
        let Some(place) = self.places.get_mut(at) else { return Ok(()) };
        if !matches!(place, Place::Half(half) if half.slices() >= half.count().get()) {
            return Ok(());
        }
        // Begun anew if it cannot be put together: then a repair slice lied, or was none.
        let Place::Half(half) = core::mem::replace(place, Place::Unseen) else { return Ok(()) };
        let (count, chunk_id) = (half.count(), self.first.plus(place_number(at)));
        let chunk = half.finish(chunk_id).ok_or(DropReason::OutOfRange)?;
        *place = Place::Done(chunk.into(), count);
        if at < TOLD {
            self.done.push(chunk_id, count);
        }
        Ok(())
    }
}

fn place_number(at: usize) -> u16 {
    u16::try_from(at).unwrap_or(u16::MAX)
}
