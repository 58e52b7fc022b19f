//! What is known of each chunk of an unfinished file.
//!
//! The invariant: memory follows the chunks that came, not the length of the file nor how far behind its
//! start one of them is; and the counts are those of the chunks, so that nobody goes through all of a large
//! file to learn whether any is missing.

use std::collections::{BTreeMap, VecDeque};

use haulier_proto::connection::ChunkValue;

use crate::ranges::Ranges;

/// Chunks whose states lie together: 2 KiB for 16 MiB of a file. A file that comes in order fills them, and
/// chunks far apart cost a hundredth of their bytes each.
const PAGE_CHUNKS: u32 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing, or not all of it, is here.
    Missing,
    /// The journal says that it was on the disk.
    Unchecked,
    /// It is here, and verified.
    Here,
}

type Known = (ChunkValue, State);
type Page = [Known; PAGE_CHUNKS as usize];

const NOTHING: Known = (ChunkValue::from_bytes([0; 32]), State::Missing);

/// What is known of each chunk.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// By number; only pages in which a chunk came exist.
    pages: BTreeMap<u32, Box<Page>>,
    /// Chunks of the file, as far as it is known to reach.
    count: u32,
    /// Chunks to hash again.
    pub(super) to_check: VecDeque<u32>,
    pub(super) unchecked: usize,
    /// Chunks that are not missing.
    present: u32,
    /// Chunks that came in pieces, with the bytes of the file that are here of them.
    pub(super) partial: BTreeMap<u32, Ranges>,
    /// Chunks of zeros that take space, which the end gives back.
    pub(super) zeros: Ranges,
}

impl Chunks {
    /// The chunks of a file with `count` chunks, all missing.
    pub(super) fn new(count: u32) -> Self {
        Self { count, ..Self::default() }
    }

    /// The states of the same file, with all chunks missing.
    pub(super) fn emptied(&self) -> Self {
        Self::new(self.count)
    }

    pub(super) fn set(&mut self, index: u32, value: ChunkValue, state: State) {
        self.count = self.count.max(index.saturating_add(1));
        let (number, place) = (index / PAGE_CHUNKS, (index % PAGE_CHUNKS) as usize);
        if state == State::Missing && !self.pages.contains_key(&number) {
            return;
        }
        let page =
            self.pages.entry(number).or_insert_with(|| Box::new([NOTHING; PAGE_CHUNKS as usize]));
        let before = std::mem::replace(&mut page[place], (value, state)).1;
        self.present -= u32::from(before != State::Missing);
        self.present += u32::from(state != State::Missing);
        self.unchecked -= usize::from(before == State::Unchecked);
        self.unchecked += usize::from(state == State::Unchecked);
    }

    /// The value of a chunk is not known any more.
    pub(super) fn forget(&mut self, index: u32) {
        self.set(index, NOTHING.0, State::Missing);
    }

    fn known(&self, index: u32) -> Known {
        let page = self.pages.get(&(index / PAGE_CHUNKS));
        page.map_or(NOTHING, |page| page[(index % PAGE_CHUNKS) as usize])
    }

    pub(super) fn state(&self, index: u32) -> State {
        self.known(index).1
    }

    pub(super) fn value(&self, index: u32) -> ChunkValue {
        self.known(index).0
    }

    /// Chunks of the file, as far as it is known to reach.
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    /// Whether none is here.
    pub(super) const fn has_nothing(&self) -> bool {
        self.present == 0
    }

    /// Those that are here.
    pub(super) fn present(&self) -> Ranges {
        let chunks = self
            .pages
            .iter()
            .flat_map(|(number, page)| (u64::from(number * PAGE_CHUNKS)..).zip(page.iter()));
        let present = chunks.filter(|(_, (_, state))| *state != State::Missing);
        present.map(|(index, _)| index..index + 1).collect()
    }

    /// The values of the first `count` chunks, if all of them are verified.
    pub(super) fn values(&self, count: u32) -> Option<Vec<ChunkValue>> {
        // Before room for them is made.
        if self.present < count {
            return None;
        }
        let known = (0..count).map(|index| self.known(index));
        known.map(|(value, state)| (state == State::Here).then_some(value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of them was 141 GB for one byte at the end of the longest file.
    #[test]
    fn chunks_far_apart_cost_a_page_each() {
        let mut chunks = Chunks::new(u32::MAX);
        let value = ChunkValue::from_bytes([7; 32]);
        for index in [0, 1, 1 << 20, u32::MAX - 1] {
            chunks.set(index, value, State::Here);
        }
        chunks.forget(1);
        chunks.forget(77);
        chunks.forget(1 << 30);
        assert_eq!((chunks.pages.len(), chunks.present, chunks.count()), (3, 3, u32::MAX));
        assert!(chunks.present().iter().eq([
            0..1,
            1 << 20..(1 << 20) + 1,
            0xffff_fffe..0xffff_ffff
        ]));
        assert_eq!((chunks.values(1), chunks.values(2)), (Some(vec![value]), None));
        assert!(!chunks.has_nothing() && chunks.emptied().has_nothing());
    }
}
