//! What is asked of the sources of blocks, and what their programs change while they are sent: pauses and
//! priorities.
//!
//! The invariant: beyond the chunks that are open, at most [`READ_AHEAD`] are asked for or here,
//! [`MIN_AHEAD`] of each block, and the first that is not done. So what a sender holds follows its window,
//! and a source that stands still keeps no other from being read.

use bytes::Bytes;

use super::block::SendBlock;
use super::chunk::OpenChunk;
use super::chunks::{Chunks, open_bytes};
use crate::transit::ChunkAt;

/// Chunks read ahead beyond those that are open: 4 MiB. So a disk has several requests at once, and the next
/// chunk is here when the last one is sent, at 1 Gbit/s and with a disk that takes 30 ms.
const READ_AHEAD: usize = 16;

/// Chunks read ahead of each block when other blocks have used up [`READ_AHEAD`].
const MIN_AHEAD: usize = 2;

impl Chunks {
    /// The next chunk to ask of a source: of the blocks in the order of sending.
    fn next_wanted(&self) -> Option<ChunkAt> {
        if !self.blocks.iter().any(SendBlock::is_from_source) {
            return None;
        }
        let ahead: usize = self.blocks.iter().map(SendBlock::ahead).sum();
        let wanted = |block: &SendBlock| {
            let may_want = ahead < READ_AHEAD || block.ahead() < MIN_AHEAD;
            // Without the first that is not done, a receiver may be able to take no other.
            let index = block.next_wanted().filter(|&it| may_want || it == block.first())?;
            Some(ChunkAt { block: block.number(), index })
        };
        let blocks = |key| self.blocks.iter().filter(move |block| block.class() == key);
        self.classes.iter().find_map(|class| blocks(class.key).find_map(wanted))
    }

    /// The next chunk to ask of a source; it counts as asked for. After `None` the next wanted chunk is
    /// reported to the program.
    pub(super) fn want(&mut self) -> Option<ChunkAt> {
        let wanted = self.next_wanted();
        match wanted {
            Some(at) => self.block_mut(at.block).into_iter().for_each(|it| it.on_wanted(at.index)),
            None => self.is_want_reported = false,
        }
        wanted
    }

    /// Whether it has to be reported to the program that chunks are wanted.
    pub(super) fn has_unreported_want(&self) -> bool {
        !self.is_want_reported && self.next_wanted().is_some()
    }

    /// A chunk is provided. Returns whether it was asked for.
    pub(super) fn provide(&mut self, at: ChunkAt, data: Bytes) -> bool {
        self.block_mut(at.block).is_some_and(|block| block.provide(at.index, data))
    }

    /// Whether nothing can be sent before this end's program provides or resumes it: no chunk is open, and
    /// none can be opened, whatever the receiver does.
    pub(super) fn awaits_program(&self) -> bool {
        !self.has_open()
            && self.blocks.iter().any(SendBlock::awaits_program)
            && self.blocks.iter().all(|block| block.next_here().is_none())
    }

    /// Changes the priority of a block: its open chunks go with those of its new class.
    pub(super) fn set_priority(&mut self, number: u32, priority: u8) {
        let Some(place) = self.place(number) else { return };
        let Some(mut block) = self.blocks.remove(place) else { return };
        let (old, open) = (block.class(), (block.open_chunks(), open_bytes(&block)));
        if self.blocks.iter().all(|other| other.class() != old) {
            self.classes.remove(old);
        } else if let Some(class) = self.class_mut(old) {
            class.forget(number, open.0, open.1);
        }
        block.set_priority(priority);
        self.classes.insert(block.class(), block.weight());
        if let Some(class) = self.class_mut(block.class()) {
            class.open += open.0;
            class.open_bytes += open.1;
            let active = block.iter_open().filter(|chunk| !chunk.has_enough());
            active.map(|chunk: &OpenChunk| chunk.at).for_each(|at| class.add(at));
        }
        self.blocks.insert(place, block);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::super::block::NewBlock;
    use super::super::chunks::Cutting;
    use super::super::content::Content;
    use super::super::credit::Credit;
    use super::super::cut::{Cut, SliceSize};
    use super::*;

    const CHUNK: u64 = 262_144;

    /// Blocks of 100 chunks from sources, with these priorities.
    fn blocks(priorities: &[u8]) -> Chunks {
        let max_slice = SliceSize::SMALLEST_OF_FULL_CHUNK;
        let cutting = Cutting { room: 0, is_fine: false, max_slice, has_repair: true };
        let mut chunks = Chunks::new(cutting, Credit::new(u64::MAX));
        for (number, &priority) in (0..).zip(priorities) {
            let content = Content::from_source(100 * CHUNK);
            chunks.push(NewBlock { priority, content, ..NewBlock::of(number, Bytes::new()) });
            chunks.block_mut(number).unwrap().set_ready(u32::MAX);
        }
        chunks
    }

    fn wanted(chunks: &mut Chunks) -> Vec<(u32, u32)> {
        core::iter::from_fn(|| chunks.want()).map(|at| (at.block, at.index)).collect()
    }

    fn give(chunks: &mut Chunks, index: u32) -> bool {
        chunks.provide(ChunkAt { block: 0, index }, alloc::vec![7; 262_144].into())
    }

    #[test]
    fn some_chunks_are_wanted_ahead_and_each_once() {
        let mut chunks = blocks(&[0]);
        assert!(chunks.has_unreported_want() && chunks.awaits_program());
        assert!(wanted(&mut chunks).into_iter().eq((0..16).map(|index| (0, index))));
        assert!(wanted(&mut chunks).is_empty() && !chunks.has_unreported_want());
        assert!(!give(&mut chunks, 16), "it was not asked for");
        assert!(give(&mut chunks, 3) && !give(&mut chunks, 3), "nor twice");
        assert!(chunks.awaits_program(), "they go in order");
        assert!(give(&mut chunks, 0) && !chunks.awaits_program());
        assert!(wanted(&mut chunks).is_empty(), "none was opened");
        chunks.check_invariants();
    }

    /// What the receiver has is neither asked for nor kept.
    #[test]
    fn chunks_that_are_done_are_not_wanted() {
        let mut chunks = blocks(&[0]);
        assert_eq!(chunks.want(), Some(ChunkAt { block: 0, index: 0 }));
        for index in [0, 1, 2, 5] {
            chunks.on_done(ChunkAt { block: 0, index });
        }
        assert!(give(&mut chunks, 0));
        assert_eq!(chunks.blocks[0].ahead(), 0);
        assert_eq!(wanted(&mut chunks)[..3], [(0, 3), (0, 4), (0, 6)]);
        chunks.check_invariants();
    }

    /// A source that does not answer leaves something to each other block.
    #[test]
    fn a_source_that_stands_still_holds_no_other_up() {
        let mut chunks = blocks(&[0, 0, 9]);
        let wanted = wanted(&mut chunks);
        let of = |block| wanted.iter().filter(|at| at.0 == block).count();
        assert_eq!([of(2), of(0), of(1)], [16, 2, 2]);
        assert_eq!(wanted[0], (2, 0), "the most urgent first");
        assert!(give(&mut chunks, 0) && !chunks.awaits_program());
    }

    /// The order may change while the source answers: what it reads for the old one goes too, and what is
    /// preferred now is asked for next.
    #[test]
    fn preferred_chunks_are_wanted_first() {
        let mut chunks = blocks(&[0]);
        let asked = wanted(&mut chunks);
        chunks.block_mut(0).unwrap().prefer((50, 60));
        assert!(wanted(&mut chunks).is_empty(), "16 are on the way");
        assert!(
            give(&mut chunks, 3) && chunks.blocks[0].next_here().is_none(),
            "the first is missing"
        );
        assert!(give(&mut chunks, 0) && chunks.blocks[0].next_here() == Some(0));
        let cut = Cut::new(262_144, SliceSize::SMALLEST_OF_FULL_CHUNK).unwrap();
        chunks.blocks[0].open(0, cut, true, 0);
        assert_eq!(chunks.blocks[0].next_here(), Some(3), "it is read already");
        assert_eq!(chunks.want(), Some(ChunkAt { block: 0, index: 50 }));
        assert_eq!(asked.len(), 16);
    }

    #[test]
    fn a_paused_block_wants_nothing_and_is_not_opened() {
        let mut chunks = blocks(&[0]);
        assert_eq!(chunks.want().map(|at| at.index), Some(0));
        chunks.block_mut(0).unwrap().set_paused(true);
        assert!(chunks.want().is_none() && give(&mut chunks, 0) && chunks.awaits_program());
        chunks.block_mut(0).unwrap().set_paused(false);
        assert!(chunks.want().is_some() && !chunks.awaits_program());
    }

    #[test]
    fn a_block_takes_its_chunks_along_to_another_priority() {
        let mut chunks = blocks(&[0, 0]);
        chunks.set_priority(1, 7);
        assert_eq!(chunks.want(), Some(ChunkAt { block: 1, index: 0 }));
        chunks.set_priority(1, 0);
        assert_eq!(chunks.want(), Some(ChunkAt { block: 0, index: 0 }));
        chunks.check_invariants();
    }
}
