//! A map of a block in transfer, for display: which of its chunks are done, and for the chunks in progress,
//! which slices were sent, have arrived, and are missing.
//!
//! The invariant: a map is a copy, of bounded size whatever the block's, and nothing is decided by it.

use alloc::vec::Vec;

use crate::BitSet;
use crate::chunk::MAX_SLICES;

/// Words of the largest chunk's slices, a bit each.
const WORDS: usize = MAX_SLICES / 32;

/// The number of chunks after the first unfinished one for which a map says whether they are done: as many as
/// may be open.
pub(crate) const MAX_AHEAD: u32 = 1024;

/// The state of a source slice, as known to the end that made the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SliceState {
    /// It was not sent yet; at the receiver, nothing is known of it.
    Waiting,
    /// It is in flight. Only a sender knows this.
    InFlight,
    /// It was lost, and is not in flight again; at the receiver, a later slice has arrived.
    Missing,
    /// The receiver has it.
    Arrived,
}

/// A chunk with slices in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkMap {
    /// Its place in the block, from 0.
    pub index: u32,
    /// Source slices that it is cut into, up to 256.
    pub slices: u16,
    /// Repair slices of it that were sent; 0 at the receiver, which does not know the number.
    pub repairs_sent: u16,
    /// Repair slices that have arrived: each replaces a missing slice.
    pub repairs_arrived: u16,
    sent: BitSet<WORDS>,
    missing: BitSet<WORDS>,
    arrived: BitSet<WORDS>,
}

impl ChunkMap {
    /// A chunk of which nothing was sent yet. `slices` is limited to [`MAX_SLICES`].
    pub(crate) fn new(index: u32, slices: usize) -> Self {
        let slices = u16::try_from(slices.min(MAX_SLICES)).unwrap_or_default();
        let none = BitSet::EMPTY;
        let (sent, missing, arrived) = (none, none, none);
        Self { index, slices, repairs_sent: 0, repairs_arrived: 0, sent, missing, arrived }
    }

    pub(crate) fn mark(&mut self, slice: usize, state: SliceState) {
        match state {
            SliceState::Waiting => false,
            SliceState::InFlight => self.sent.insert(slice),
            SliceState::Missing => self.missing.insert(slice),
            SliceState::Arrived => self.arrived.insert(slice),
        };
    }

    /// The state of each source slice, in order.
    pub fn states(&self) -> impl Iterator<Item = SliceState> + '_ {
        (0..usize::from(self.slices)).map(|slice| match slice {
            _ if self.arrived.contains(slice) => SliceState::Arrived,
            _ if self.missing.contains(slice) => SliceState::Missing,
            _ if self.sent.contains(slice) => SliceState::InFlight,
            _ => SliceState::Waiting,
        })
    }
}

/// A block on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockMap {
    /// The tag that the application chose for it.
    pub tag: u64,
    /// Its chunks.
    pub chunks: u32,
    /// The first chunk that is not done: all before it are.
    pub first: u32,
    /// Chunks after that one that are done, in order, as far as 1024 chunks ahead.
    pub done_ahead: Vec<u32>,
    /// The first chunks with slices on the way, in order, as many as were asked for at most.
    pub open: Vec<ChunkMap>,
    /// How many chunks have slices on the way, with those that are not in `open`.
    pub open_chunks: usize,
}
