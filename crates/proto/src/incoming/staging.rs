//! Slices and pages that arrive before their block's announcement (H-4.2e, H-4.2j).
//!
//! The invariant: what is kept is at most the size of one chunk, with what keeping it costs, and eight pages;
//! nothing of it is decoded or hashed, and no credit is counted for it, before the announcement.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::Fate;
use super::pages::MAX_UNCHECKED;
use crate::Instant;
use crate::bulk::cut::ChunkAt;
use crate::bulk::tree::Value;
use crate::chunk::MAX_CHUNK_BYTES;
use crate::wire::frames::{HashesFrame, SliceFrame, SliceKind};

/// The list of slices grows by this many.
const STEP: usize = 16;

/// Bytes that a slice costs besides its data: its place in the list, and what an allocator adds.
const SLICE_COST: usize = size_of::<Staged>() + 16;

/// A slice that waits.
pub(super) struct Staged {
    at: ChunkAt,
    kind: SliceKind,
    index: u8,
    data: Box<[u8]>,
}

impl Staged {
    /// As it arrived.
    pub(super) fn frame(&self) -> SliceFrame<'_> {
        SliceFrame { at: self.at, kind: self.kind, index: self.index, data: &self.data }
    }

    fn is(&self, slice: &SliceFrame<'_>) -> bool {
        (self.at, self.kind, self.index) == (slice.at, slice.kind, slice.index)
            && self.data.len() == slice.data.len()
    }

    fn cost(&self) -> usize {
        SLICE_COST + self.data.len()
    }
}

/// A page that waits.
pub(super) struct StagedPage {
    block: u32,
    level: u8,
    first: u32,
    values: Box<[Value]>,
}

impl StagedPage {
    /// As it arrived.
    pub(super) fn frame(&self) -> HashesFrame<'_> {
        let Self { block, level, first, .. } = *self;
        HashesFrame { block, level, first, values: &self.values }
    }
}

/// The slices and pages of blocks that were not announced.
pub(super) struct Staging {
    slices: Vec<Staged>,
    /// The sum of their costs.
    bytes: usize,
    pages: Vec<StagedPage>,
    /// When the last new one arrived.
    newest_at: Instant,
}

crate::debug_as! { Staging: |staging| slices = staging.slices.len(), bytes = staging.bytes }

impl Staging {
    pub(super) const fn new() -> Self {
        Self { slices: Vec::new(), bytes: 0, pages: Vec::new(), newest_at: Instant::ZERO }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.slices.is_empty() && self.pages.is_empty()
    }

    /// When the last new one arrived, if any is kept.
    pub(super) fn newest_at(&self) -> Option<Instant> {
        (!self.is_empty()).then_some(self.newest_at)
    }

    /// Keeps a slice, if there is room.
    pub(super) fn insert(&mut self, now: Instant, slice: &SliceFrame<'_>) -> Fate {
        if self.slices.iter().any(|staged| staged.is(slice)) {
            return Fate::Dropped;
        }
        if self.bytes + SLICE_COST + slice.data.len() > MAX_CHUNK_BYTES {
            return Fate::NotKept;
        }
        let (at, kind, index) = (slice.at, slice.kind, slice.index);
        let staged = Staged { at, kind, index, data: slice.data.into() };
        if self.slices.len() == self.slices.capacity() {
            self.slices.reserve_exact(STEP);
        }
        self.bytes += staged.cost();
        self.slices.push(staged);
        self.newest_at = now;
        Fate::New
    }

    /// Keeps a page, if there is room.
    pub(super) fn insert_page(&mut self, now: Instant, page: &HashesFrame<'_>) -> Fate {
        if self.pages.iter().any(|staged| staged.frame() == *page) {
            return Fate::Dropped;
        }
        if self.pages.len() >= MAX_UNCHECKED {
            return Fate::NotKept;
        }
        let HashesFrame { block, level, first, values } = *page;
        self.pages.reserve_exact(1);
        self.pages.push(StagedPage { block, level, first, values: values.into() });
        self.newest_at = now;
        Fate::New
    }

    /// Removes the pages of a block.
    pub(super) fn take_pages(&mut self, block: u32) -> Vec<StagedPage> {
        let all = core::mem::take(&mut self.pages);
        let (taken, kept) = all.into_iter().partition(|staged| staged.block == block);
        self.pages = kept;
        self.pages.shrink_to_fit();
        taken
    }

    /// Removes the slices of a block, in the order of their arrival.
    pub(super) fn take(&mut self, block: u32) -> Vec<Staged> {
        if self.slices.iter().all(|staged| staged.at.block != block) {
            return Vec::new();
        }
        let all = core::mem::take(&mut self.slices);
        let (taken, kept) = all.into_iter().partition(|staged| staged.at.block == block);
        self.slices = kept;
        self.slices.shrink_to_fit();
        self.bytes = self.slices.iter().map(Staged::cost).sum();
        taken
    }

    /// Drops all of them: their sender is gone.
    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }

    /// Memory held, in bytes, besides itself.
    pub(super) fn memory_bytes(&self) -> usize {
        let data = self.bytes - self.slices.len() * SLICE_COST;
        let values = self.pages.iter().map(|page| page.values.len() * size_of::<Value>());
        let pages = values.sum::<usize>() + self.pages.capacity() * size_of::<StagedPage>();
        data + pages + self.slices.capacity() * size_of::<Staged>()
    }

    pub(super) fn check_invariants(&self) {
        assert_eq!(self.bytes, self.slices.iter().map(Staged::cost).sum::<usize>());
        assert!(self.bytes <= MAX_CHUNK_BYTES && self.pages.len() <= MAX_UNCHECKED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(block: u32, index: u8, data: &[u8]) -> SliceFrame<'_> {
        SliceFrame { at: ChunkAt { block, index: 0 }, kind: SliceKind::Source, index, data }
    }

    #[test]
    fn slices_wait_in_the_order_of_their_arrival() {
        let mut staging = Staging::new();
        for (block, index) in [(3, 1), (4, 7), (3, 0)] {
            assert_eq!(staging.insert(Instant::ZERO, &slice(block, index, b"ab")), Fate::New);
            assert_eq!(staging.insert(Instant::ZERO, &slice(block, index, b"ab")), Fate::Dropped);
        }
        let taken = staging.take(3);
        assert!(taken.iter().map(|staged| staged.frame().index).eq([1, 0]));
        staging.check_invariants();
        assert!(staging.take(5).is_empty() && staging.take(4).len() == 1 && staging.is_empty());
        assert_eq!(staging.memory_bytes(), 0);
    }

    /// However small the slices are.
    #[test]
    fn what_is_kept_is_at_most_one_chunk() {
        for bytes in [1, 1000, 60_000] {
            let mut staging = Staging::new();
            let data = alloc::vec![7; bytes];
            let mut refused = 0;
            for n in 0..10_000_u32 {
                let slice = SliceFrame { at: ChunkAt { block: 0, index: n }, ..slice(0, 0, &data) };
                refused += u32::from(staging.insert(Instant::ZERO, &slice) == Fate::NotKept);
            }
            staging.check_invariants();
            assert!(refused > 4000 && staging.memory_bytes() <= MAX_CHUNK_BYTES + 2000);
        }
    }
}
